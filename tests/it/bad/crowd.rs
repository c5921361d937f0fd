//! Very many requests at once.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sweepline::rows::{Outcome, Phase};

use super::raw::{PROBE_ANSWER, read_request};
use super::{MB, watched};
use lab::mock::Mock;
use lab::plans::{by_number, plan};
use lab::{DEADLINE, Lab};

/// Returns a plan with the shortest possible prompts: the test is about their number.
fn tiny(port: u16, rest: &str) -> String {
    plan(&[("a", port)], rest).replace("output_tokens: 8", "prompt_tokens: 16, output_tokens: 2")
}

#[test]
fn ten_thousand_arrivals_in_a_moment_are_ten_thousand_rows() {
    let mock = Mock::start(&["--slots", "10000"]);
    let lab = Lab::new();
    let rest = "phases: { fill: 0s, stabilize: 0s, measure: 100ms, drain: { for: 1s, mode: stop } }\n\
         sweeps: { s: { matrix: { endpoint: [a], model: [m], scenario: [short], qps: [100000] }, arrivals: constant } }\n";
    watched(&lab, &tiny(mock.port, rest)).is_committed_within(300 * MB);
    let run = lab.only_run();
    assert_eq!(run.json["facts"]["scheduled"], run.records.len());
    let mut records = by_number(run);
    // Requests that came due between the end of the window and the moment when the run noticed it belong to
    // drain.
    records.retain(|record| record.row.phase == Phase::Measure);
    // One every 10 µs; the last one is at the end of the window, up to a rounding error.
    assert!((9_999..=10_000).contains(&records.len()), "{} rows", records.len());
    for (at, record) in records.iter().enumerate() {
        let row = &record.row;
        assert!(row.scheduled_ns.abs_diff((at as u64 + 1) * 10_000) <= 1, "never re-timed: {row:?}");
        assert!(row.sent_ns.is_none_or(|sent| sent >= row.scheduled_ns), "{row:?}");
        let fits = match row.outcome {
            Outcome::Ok => row.sent_ns.is_some() && row.events == 2,
            outcome => outcome == Outcome::CutAtDrain && row.error.is_some(),
        };
        assert!(fits, "{row:?}");
    }
}

/// Reads a request on each of the connections from `accepted` until there are `crowd`, then responds to all
/// at once. Returns the connections, so that they stay open.
fn answer_together(accepted: &Receiver<TcpStream>, crowd: usize) -> Vec<TcpStream> {
    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
         3b\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"All together \"}}]}\n\n\r\n\
         4b\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"now.\"},\"finish_reason\":\"length\"}]}\n\n\r\n\
         e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";
    let mut held = Vec::new();
    while held.len() < crowd {
        let mut stream = accepted.recv_timeout(DEADLINE).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        match read_request(&mut stream) {
            Some(true) => held.push(stream),
            Some(false) => {
                let length = PROBE_ANSWER.len();
                // The client may have given the check up meanwhile.
                let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{PROBE_ANSWER}");
            }
            None => {}
        }
    }
    held.iter_mut().for_each(|stream| stream.write_all(answer.as_bytes()).unwrap());
    held
}

#[test]
fn thousands_of_streams_begin_and_end_at_once() {
    // This process holds the other ends.
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let crowd =
        maximum.unwrap_or(u64::MAX).saturating_sub(1_000).min(if lab::is_whole() { 10_000 } else { 1_000 }) as usize;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let over = Arc::new(AtomicBool::new(false));
    let (accept, accepted) = channel();
    let is_over = Arc::clone(&over);
    let accepting = std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            if is_over.load(Ordering::SeqCst) || accept.send(stream).is_err() {
                return;
            }
        }
    });
    let answering = std::thread::spawn(move || answer_together(&accepted, crowd));
    let lab = Lab::new();
    let rest = format!(
        "phases: {{ fill: 0s, stabilize: 0s, measure: 1ms, drain: 100s }}\n\
         sweeps: {{ s: {{ matrix: {{ endpoint: [a], model: [m], scenario: [short], batch_size: [{crowd}] }} }} }}\n"
    );
    let run = watched(&lab, &tiny(port, &rest));
    over.store(true, Ordering::SeqCst);
    drop(TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
    accepting.join().unwrap();
    run.is_committed_within(600 * MB);
    assert_eq!(answering.join().unwrap().len(), crowd);

    let records = by_number(lab.only_run());
    let measured: Vec<_> = records.iter().map(|record| &record.row).filter(|row| row.phase == Phase::Measure).collect();
    assert_eq!(measured.len(), crowd);
    for row in &measured {
        assert_eq!((row.outcome, row.events), (Outcome::Ok, 2), "{row:?}");
        assert_eq!(row.text_digest, measured[0].text_digest);
        assert!(row.done_ns.unwrap() >= row.sent_ns.unwrap());
    }
    let sent = measured.iter().map(|row| row.sent_ns.unwrap()).max().unwrap();
    let (first, last) =
        (measured.iter().map(|row| row.done_ns.unwrap()), measured.iter().map(|row| row.done_ns.unwrap()));
    let (first, last) = (first.min().unwrap(), last.max().unwrap());
    assert!(first > sent, "the first response arrived when the last request had been read");
    eprintln!(
        "{crowd} streams: the last was sent after {} ms, all ended within {} ms",
        sent / 1_000_000,
        (last - first) / 1_000_000
    );
}
