//! Slots, instants, ends: the log compared with the configuration. No test here requires speed.

use std::io::{Read, Write};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use lab::mock::{Mock, chat, read_until, request, with};
use lab::wait_for;

fn at(line: &Value, name: &str) -> u64 {
    line[name].as_u64().unwrap_or_else(|| panic!("no {name} in {line}"))
}

fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[test]
fn arrivals_are_stamped_by_the_kernel_however_late_the_mock_looks() {
    let mock = Mock::start(&[]);
    // The kernel starts timestamping a moment after the request for it, and the log shows when.
    let mut asked = 0;
    wait_for("a stamp of the kernel", || {
        asked += 1;
        mock.chat(&chat());
        let stamp = mock.log(asked).remove(asked - 1)["arrival_stamp"].clone();
        assert!(stamp == "kernel" || stamp == "user", "{stamp}");
        (stamp == "kernel").then_some(())
    });
    let process = Pid::from_child(&mock.child);
    let mut stream = mock.connect();
    kill_process(process, Signal::STOP).unwrap();
    let before = monotonic();
    stream.write_all(request("/v1/chat/completions", &chat(), "Connection: close\r\n").as_bytes()).unwrap();
    // The mock cannot read meanwhile; its own timestamp would be after this pause.
    thread::sleep(Duration::from_millis(300));
    let late = monotonic();
    kill_process(process, Signal::CONT).unwrap();
    lab::mock::Answer::read(&mut stream);
    let line = mock.log(asked + 1).remove(asked);
    assert_eq!(line["arrival_stamp"], "kernel");
    assert!((before..late).contains(&at(&line, "arrival_ns")), "{before} {late} {line}");
    assert!((before..late).contains(&at(&line, "body_ns")) && at(&line, "slot_ns") >= late);
}

#[test]
fn slots_are_given_in_order_and_never_more_than_there_are() {
    let mock = Mock::start(&["--slots", "2", "--ttft", "5ms", "--itl", "2ms"]);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(mock.chat(&chat()).data().last().unwrap(), "[DONE]"));
        }
    });
    let mut log = mock.log(8);
    log.sort_by_key(|line| at(line, "n"));
    assert!(log.is_sorted_by_key(|line| at(line, "slot_ns")), "first come, first served");
    for line in &log {
        let busy = |other: &&Value| {
            at(other, "slot_ns") <= at(line, "slot_ns") && at(line, "slot_ns") < at(other, "last_write_ns")
        };
        assert!(log.iter().filter(busy).count() <= 2);
        assert!(at(line, "arrival_ns") <= at(line, "body_ns") && at(line, "body_ns") <= at(line, "slot_ns"));
        assert!(at(line, "first_write_ns") >= at(line, "slot_ns") + 5_000_000);
        assert!(at(line, "last_write_ns") >= at(line, "slot_ns") + 15_000_000);
        assert!(at(line, "done_ns") >= at(line, "last_write_ns"));
    }
    let waited = log.iter().filter(|line| at(line, "slot_ns") - at(line, "body_ns") >= 10_000_000).count();
    assert!(waited >= 4, "six of eight had to wait, {waited} did");
}

#[test]
fn prefill_load_and_jitter_move_the_instants() {
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "2ms", "--prefill", "1ms/token", "--load", "1"]);
    mock.chat(&chat());
    let line = mock.log(1).remove(0);
    assert_eq!(line["prompt_tokens"], 12);
    assert!(at(&line, "first_write_ns") - at(&line, "slot_ns") >= 13_000_000);
    assert!(at(&line, "last_write_ns") - at(&line, "slot_ns") >= 23_000_000);
    let mock = Mock::start(&["--ttft", "20ms", "--jitter", "50%", "--seed", "7"]);
    let body = with(chat(), &json!({"max_tokens": 1}));
    (0..8).for_each(|_| drop(mock.chat(&body)));
    let log = mock.log(8);
    assert!(log.iter().all(|line| at(line, "first_write_ns") - at(line, "slot_ns") >= 10_000_000));
}

#[test]
fn a_client_that_goes_frees_its_slot() {
    let mock = Mock::start(&["--slots", "1", "--itl", "1h"]);
    let leave = |first_token: bool| {
        let mut stream = mock.connect();
        stream.write_all(request("/v1/chat/completions", &chat(), "").as_bytes()).unwrap();
        if first_token {
            read_until(&mut stream, "data: ", 2);
        }
        stream
    };
    let streaming = leave(true);
    let queued = leave(false);
    let body = with(chat(), &json!({"max_tokens": 1}));
    thread::scope(|scope| {
        let last = scope.spawn(|| mock.chat(&body));
        drop(queued);
        let log = mock.log(1);
        assert_eq!((&log[0]["outcome"], &log[0]["slot_ns"]), (&json!("client_closed"), &json!(null)));
        drop(streaming);
        assert_eq!(last.join().unwrap().data().last().unwrap(), "[DONE]");
    });
    let log = mock.log(3);
    let left = log.iter().find(|line| line["n"] == 1).unwrap();
    assert_eq!((&left["outcome"], &left["output_tokens"]), (&json!("client_closed"), &json!(1)));
    let served = log.iter().find(|line| line["outcome"] == "complete").unwrap();
    assert!(at(served, "slot_ns") >= at(left, "done_ns"));
}

#[test]
fn the_parents_end_is_the_mocks_end() {
    let mut mock = Mock::start_with(&["--parent-pipe"], |command| command.stdin(Stdio::piped()));
    assert_eq!(mock.chat(&chat()).status(), 200);
    assert!(mock.child.try_wait().unwrap().is_none());
    drop(mock.child.stdin.take());
    assert!(mock.wait().success());
    assert_eq!(mock.log_now().len(), 1);
}

#[test]
fn a_signal_ends_it_with_a_whole_log() {
    let mut mock = Mock::start(&["--ttft", "1h"]);
    let mut stream = mock.connect();
    let health = "GET /health HTTP/1.1\r\n\r\n";
    stream.write_all(health.as_bytes()).unwrap();
    stream.read_exact(&mut [0; 20]).unwrap();
    let mut waiting = mock.connect();
    waiting.write_all(request("/v1/chat/completions", &chat(), "").as_bytes()).unwrap();
    // The role chunk shows that the request has its slot.
    waiting.read_exact(&mut [0; 20]).unwrap();
    assert!(mock.terminate().success());
    let log = mock.log_now();
    assert_eq!(log.len(), 2);
    assert_eq!((&log[0]["path"], &log[1]["outcome"]), (&json!("/health"), &json!("interrupted")));
}

#[test]
fn every_request_has_its_line() {
    let mock = Mock::start(&["--slots", "3", "--fault", "http:500@every:7", "--fault", "reset@every:5"]);
    thread::scope(|scope| {
        for client in 0..6 {
            let mock = &mock;
            scope.spawn(move || {
                for turn in 0..20 {
                    let mut stream = mock.connect();
                    let fields = format!("Connection: close\r\nX-Request-Id: {client}-{turn}\r\n");
                    stream.write_all(request("/v1/chat/completions", &chat(), &fields).as_bytes()).unwrap();
                    lab::mock::Answer::read(&mut stream);
                }
            });
        }
    });
    let log = mock.log(120);
    let ids: std::collections::BTreeSet<_> = log.iter().map(|line| line["request_id"].as_str().unwrap()).collect();
    assert_eq!((log.len(), ids.len()), (120, 120));
    for line in &log {
        let n = at(line, "n");
        let fault = if n.is_multiple_of(7) {
            "http:500"
        } else if n.is_multiple_of(5) {
            "reset"
        } else {
            ""
        };
        assert_eq!(line["fault"].as_str().unwrap_or(""), fault);
        assert_eq!(line["outcome"], if fault.is_empty() { "complete" } else { "fault" });
    }
}

#[test]
fn two_hundred_streams_keep_their_own_time() {
    let mock = Mock::start(&["--slots", "200", "--ttft", "20ms", "--itl", "5ms"]);
    let asked = request("/v1/chat/completions", &chat(), "Connection: close\r\n");
    let mut streams: Vec<_> = (0..200).map(|_| mock.connect()).collect();
    streams.iter_mut().for_each(|stream| stream.write_all(asked.as_bytes()).unwrap());
    for stream in &mut streams {
        assert_eq!(lab::mock::Answer::read(stream).data().last().unwrap(), "[DONE]");
    }
    let log = mock.log(200);
    assert!(log.iter().all(|line| at(line, "last_write_ns") - at(line, "slot_ns") >= 45_000_000));
}

/// Returns the two gauges of `/metrics`; `None` if they are disabled.
fn load(mock: &Mock) -> Option<(u64, u64)> {
    let text = mock.get("/metrics", "").text();
    let gauge = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("vllm:{name}{{")))?;
        line.rsplit(' ').next().unwrap().parse().ok().map(|value: f64| value as u64)
    };
    gauge("num_requests_running").zip(gauge("num_requests_waiting"))
}

#[test]
fn an_abandoned_request_ends_at_once_or_goes_on_and_the_gauges_tell() {
    for (flags, goes_on) in [(&[][..], false), (&["--finish-abandoned"], true)] {
        let mock = Mock::start(&[&["--slots", "1", "--ttft", "300ms"], flags].concat());
        assert_eq!(load(&mock), Some((0, 0)));
        let asked = request("/v1/chat/completions", &chat(), "");
        let mut streams: Vec<_> = (0..3).map(|_| mock.connect()).collect();
        streams.iter_mut().for_each(|stream| stream.write_all(asked.as_bytes()).unwrap());
        wait_for("one that runs and two that wait", || (load(&mock) == Some((1, 2))).then_some(()));
        let left = Instant::now();
        drop(streams);
        wait_for("an idle server", || (load(&mock) == Some((0, 0))).then_some(()));
        // At least two whole generations were still to come.
        assert!(left.elapsed() >= Duration::from_millis(600) || !goes_on, "{flags:?}: {:?}", left.elapsed());
        let generations = wait_for("their lines", || {
            let generations: Vec<Value> = mock.log_now().into_iter().filter(|line| !line["n"].is_null()).collect();
            (generations.len() == 3).then_some(generations)
        });
        let tokens = if goes_on { 6 } else { 0 };
        let ended = |line: &Value| line["outcome"] == "client_closed" && line["output_tokens"] == tokens;
        assert!(generations.iter().all(ended), "{flags:?}: {generations:?}");
    }
}

#[test]
fn a_server_need_not_tell_its_load() {
    assert_eq!(load(&Mock::start(&["--no-load-gauges"])), None);
}
