//! Each fault, at the level of bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use serde_json::json;

use lab::mock::{Answer, Mock, chat, read_until, request, with};

/// Returns one chat against a mock with one fault on every request, and its log line.
fn struck(fault: &str) -> (Answer, serde_json::Value) {
    let mock = Mock::start(&["--fault", &format!("{fault}@all")]);
    let answer = mock.chat(&chat());
    let line = mock.log(1).remove(0);
    assert_eq!(line["fault"], if fault.starts_with("http") { fault } else { fault.split(':').next().unwrap() });
    (answer, line)
}

/// Returns the number of non-empty texts in the response.
fn tokens(answer: &Answer) -> usize {
    answer.deltas("content").iter().filter(|text| !text.is_empty()).count()
}

#[test]
fn refuse_resets_the_connection_unread() {
    let mock = Mock::start(&["--fault", "refuse@1"]);
    let mut stream = mock.connect();
    // Either call may encounter the reset.
    let written = stream.write_all(request("/v1/chat/completions", &chat(), "").as_bytes());
    let error = written.and_then(|()| stream.read(&mut [0; 1])).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
    assert_eq!(mock.chat(&chat()).status(), 200);
    let log = mock.log(2);
    assert_eq!((&log[0]["fault"], &log[0]["n"], &log[0]["outcome"]), (&json!("refuse"), &json!(null), &json!("fault")));
    assert_eq!((&log[1]["fault"], &log[1]["n"]), (&json!(null), &json!(1)));
}

#[test]
fn after_its_last_connection_nobody_listens() {
    let mock = Mock::start(&["--refuse-after", "1"]);
    assert_eq!(mock.chat(&chat()).status(), 200);
    let error = TcpStream::connect(("127.0.0.1", mock.port)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn http_answers_with_the_status() {
    let (answer, line) = struck("http:503");
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.json()["error"]["code"], 503);
    assert_eq!((&line["status"], &line["outcome"]), (&json!(503), &json!("fault")));
}

#[test]
fn reset_comes_after_so_many_tokens() {
    for (fault, expected) in [("reset", 3), ("reset:0", 0), ("reset:5", 5)] {
        let (answer, line) = struck(fault);
        assert_eq!(answer.error, Some(ErrorKind::ConnectionReset));
        assert_eq!((tokens(&answer), &line["output_tokens"]), (expected, &json!(expected)));
    }
}

#[test]
fn truncate_and_close_cut_the_json() {
    for (fault, body_ends) in [("truncate", true), ("close", false)] {
        let (answer, line) = struck(fault);
        assert_eq!(answer.error, None);
        assert_eq!(answer.chunks().1, body_ends, "{fault}");
        assert!(answer.text().ends_with("\"content\":\""), "{fault}");
        assert_eq!((tokens(&answer), &line["outcome"]), (3, &json!("fault")));
    }
}

#[test]
fn garbage_comes_between_good_events() {
    let (answer, line) = struck("invalid-json:2");
    let broken = |data: &String| data != "[DONE]" && serde_json::from_str::<serde_json::Value>(data).is_err();
    assert_eq!(answer.data().iter().position(broken), Some(3));
    assert_eq!((tokens(&answer), &line["outcome"]), (6, &json!("complete")));
    let (answer, _) = struck("wrong-shape");
    assert!(answer.events().contains(&json!({"choices": {"delta": "text"}})));
    let (answer, _) = struck("invalid-utf8");
    let body = answer.body();
    assert!(std::str::from_utf8(&body).is_err());
    assert!(String::from_utf8_lossy(&body).ends_with("data: [DONE]\n\n"));
    let (answer, _) = struck("huge-line:300000");
    assert!(answer.data().iter().any(|data| data.len() > 300_000));
    assert_eq!(tokens(&answer), 7);
}

#[test]
fn an_error_object_ends_a_200_stream() {
    let (answer, line) = struck("error-object:4");
    let data = answer.data();
    assert_eq!(answer.status(), 200);
    assert!(answer.events().last().unwrap()["error"]["message"].is_string());
    assert_eq!((data.last().unwrap().as_str(), tokens(&answer)), ("[DONE]", 4));
    assert_eq!((&line["outcome"], answer.chunks().1), (&json!("fault"), true));
}

#[test]
fn lengths_are_wrong_on_demand() {
    let (answer, _) = struck("empty");
    assert_eq!((answer.status(), tokens(&answer), answer.data().last().unwrap().as_str()), (200, 0, "[DONE]"));
    for (fault, expected) in [("short", 3), ("short:2", 2), ("long", 12), ("long:8", 8)] {
        let (answer, line) = struck(fault);
        assert_eq!((tokens(&answer), &line["output_tokens"]), (expected, &json!(expected)), "{fault}");
        assert_eq!(answer.events().last().unwrap()["usage"]["completion_tokens"], expected);
    }
}

#[test]
fn stalls_hold_the_connection_and_free_the_slot() {
    let mock = Mock::start(&["--slots", "1", "--fault", "stall:2@1", "--fault", "stall-headers@2"]);
    let asked = request("/v1/chat/completions", &chat(), "");
    let mut stalled = mock.connect();
    stalled.write_all(asked.as_bytes()).unwrap();
    read_until(&mut stalled, "\"content\":", 3);
    let mut silent = mock.connect();
    silent.write_all(asked.as_bytes()).unwrap();
    // The third request is served although the first two are still open, on one slot.
    assert_eq!(tokens(&mock.chat(&chat())), 6);
    for stream in [&mut stalled, &mut silent] {
        stream.set_nonblocking(true).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    drop((stalled, silent));
    let log = mock.log(3);
    assert_eq!(log.iter().filter(|line| line["outcome"] == "fault").count(), 2);
}

#[test]
fn slow_multiplies_the_times() {
    let flags = ["--ttft", "2ms", "--itl", "2ms", "--fault", "slow:5@all"];
    let mock = Mock::start(&flags);
    mock.chat(&chat());
    let line = mock.log(1).remove(0);
    let at = |name: &str| line[name].as_u64().unwrap();
    assert!(at("first_write_ns") - at("slot_ns") >= 10_000_000);
    assert!(at("last_write_ns") - at("slot_ns") >= 60_000_000);
}

#[test]
fn a_pause_holds_up_every_stream_once() {
    let mock = Mock::start(&["--itl", "300ms", "--fault", "pause:500@2"]);
    let asked = request("/v1/chat/completions", &chat(), "");
    let mut first = mock.connect();
    first.write_all(asked.as_bytes()).unwrap();
    read_until(&mut first, "\"content\":", 2);
    assert_eq!(tokens(&mock.chat(&chat())), 6);
    assert_eq!(tokens(&mock.chat(&chat())), 6);
    let log = mock.log(3);
    let of = |n: u64, name: &str| log.iter().find(|line| line["n"] == n).unwrap()[name].clone();
    let at = |n: u64, name: &str| of(n, name).as_u64().unwrap();
    assert_eq!([of(1, "fault"), of(2, "fault"), of(3, "fault")], [json!(null), json!("pause"), json!(null)]);
    assert!(at(2, "first_write_ns") - at(2, "slot_ns") >= 499_000_000);
    // Five gaps of 300 ms, one of which is the pause and the rest of that gap: 200 ms more, wherever it
    // started.
    assert!(at(1, "last_write_ns") - at(1, "first_write_ns") >= 1_690_000_000);
}

#[test]
fn exit_takes_the_server_away() {
    let mut mock = Mock::start(&["--fault", "exit@2"]);
    assert_eq!(mock.chat(&chat()).status(), 200);
    let answer = mock.chat(&chat());
    assert_eq!((answer.head.as_str(), answer.raw.len()), ("", 0));
    assert_eq!(mock.wait().code(), Some(1));
    assert_eq!(mock.log_now()[1]["fault"], "exit");
}

#[test]
fn whole_answers_are_struck_too() {
    let whole = with(chat(), &json!({"stream": false}));
    let answer = |fault: &str| Mock::start(&["--fault", &format!("{fault}@all")]).chat(&whole);
    let length = |answer: &Answer| {
        let field = answer.head.lines().find_map(|line| line.strip_prefix("content-length: "));
        field.unwrap().parse::<usize>().unwrap()
    };
    let is_json = |answer: &Answer| serde_json::from_slice::<serde_json::Value>(&answer.raw).is_ok();
    for (fault, whole, error) in
        [("reset", false, Some(ErrorKind::ConnectionReset)), ("close", false, None), ("truncate", true, None)]
    {
        let answer = answer(fault);
        assert_eq!((length(&answer) == answer.raw.len(), answer.error), (whole, error), "{fault}");
        assert!(!is_json(&answer), "{fault}");
    }
    assert!(!is_json(&answer("invalid-json")));
    assert!(std::str::from_utf8(&answer("invalid-utf8").raw).is_err());
    assert!(answer("error-object").json()["error"].is_object());
    assert!(answer("wrong-shape").json()["choices"].is_object());
    assert_eq!(answer("empty").json()["choices"][0]["message"]["content"], "");
    assert_eq!(answer("short").json()["usage"]["completion_tokens"], 3);
}
