//! Compares the rows with the bytes of the mock, which keeps connections open and sends chunks. The measured
//! suite does the same with a real inference server.

use std::collections::BTreeSet;

use lab::Lab;
use lab::mock::Mock;
use lab::wire_and_rows::{Load, measured};

#[test]
fn rows_tell_what_the_mock_said() {
    let lab = Lab::new();
    let shape = ["--words", "escaped", "--reasoning", "3", "--cut", "random", "--crlf"];
    let mock = Mock::start(&[&["--ttft", "3ms", "--itl", "1ms"], &shape[..]].concat());
    let wire =
        measured(&lab, mock.port, &Load { phases: "fill: 0s, stabilize: 20ms, measure: 600ms, drain: 60s", qps: 40 });
    let versions: BTreeSet<&str> = wire.values().filter_map(|e| e.response.as_ref()?.head.line.get(..8)).collect();
    assert_eq!(versions, ["HTTP/1.1"].into());
}
