//! Compares the rows with the bytes of a real inference server, which is third-party code.

use std::collections::BTreeSet;

use lab::Lab;
use lab::realserver::RealServer;
use lab::wire_and_rows::{Load, measured};

fn rows_tell_what_a_real_server_said() {
    let lab = Lab::new();
    let Some(server) = RealServer::start(lab.path()) else { return };
    let wire =
        measured(&lab, server.port, &Load { phases: "fill: 200ms, stabilize: 200ms, measure: 1s, drain: 60s", qps: 8 });
    let versions: BTreeSet<&str> = wire.values().filter_map(|e| e.response.as_ref()?.head.line.get(..8)).collect();
    assert_eq!(versions, ["HTTP/1.0"].into(), "the proxy saw the real server");
}

lab::measured_tests![rows_tell_what_a_real_server_said];
