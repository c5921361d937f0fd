//! Tests claims about runs on servers that change while they are measured.

use lab::Lab;
use lab::mock::Mock;
use lab::plans::single_token_servers;
use lab::sweeps::shown;

const SLOWED: &str =
    "phases: { fill: 0s, stabilize: 500ms, measure: { for: 8s, min_requests: 1, at_most: 8s }, drain: 10s }
sweeps:
  closed: { matrix: { endpoint: e0, model: m, scenario: one, batch_size: 4 } }
  open: { matrix: { endpoint: e1, model: m, scenario: one, qps: 80 } }
  over: { matrix: { endpoint: e2, model: m, scenario: one, qps: 160 } }
";

fn a_server_that_halves_its_speed_under_way_is_never_valid() {
    let slowed =
        |from: &str| Mock::start(&["--ttft", "20ms", "--slots", "4", "--fault", &format!("slow:2@{from}-999999")]);
    // The rates are 200, 80 and 160 requests per second. The request numbers are chosen so that a slow
    // machine also reaches them within the window. The last rate is more than the slowed server can handle,
    // so it is saturated from halfway on.
    let mocks = [slowed("600"), slowed("360"), slowed("640")];
    let lab = Lab::measured_time();
    let runs = shown(&lab, &single_token_servers(&mocks.each_ref().map(|mock| mock.port), SLOWED), "3");
    assert_eq!(runs.len(), 3);
    for run in &runs {
        assert_ne!(run["verdict"]["state"], "valid", "{:#}", run["verdict"]);
    }
}

lab::measured_tests![a_server_that_halves_its_speed_under_way_is_never_valid];
