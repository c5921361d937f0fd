//! Plans that many tests use, and the rows of their runs.

use sweepline::rows::Record;

use super::Run;

/// Returns a plan over `endpoints` (name and port), with response length, phases and sweeps in `rest`.
pub fn plan(endpoints: &[(&str, u16)], rest: &str) -> String {
    let endpoints: String = endpoints
        .iter()
        .map(|(name, port)| format!("  {name}: {{ url: 'http://127.0.0.1:{port}/v1', engine: mock }}\n"))
        .collect();
    format!(
        "sweepline: 1\nname: test\nseed: 5\nendpoints:\n{endpoints}models: {{ m: {{ id: tiny }} }}\n\
         scenarios: {{ short: {{ base: B1, output_tokens: 8 }} }}\n{rest}"
    )
}

/// Returns a plan with one run of one slot that sends at least `requests` requests, one after the other.
/// All of them are measured, however they end.
pub fn one_by_one(port: u16, requests: usize, timeouts: &str) -> String {
    let plan = plan(
        &[("a", port)],
        &format!(
            "timeouts: {{ {timeouts} }}\n\
             phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 50ms, min_requests: {requests}, at_most: 90s }}, drain: 10s }}\n\
             sweeps: {{ s: {{ matrix: {{ endpoint: [a], model: [m], scenario: [short], batch_size: [1] }} }} }}\n"
        ),
    );
    plan.replace("engine: mock }", "engine: mock, errors: measured }")
}

/// Returns the records of a run in the order of their numbers.
pub fn by_number(run: Run) -> Vec<Record> {
    let mut records = run.records;
    records.sort_by_key(|record| record.row.request);
    assert!(records.iter().enumerate().all(|(at, record)| record.row.request == at as u64), "one row for each number");
    records
}

/// Returns a plan over running servers, by their ports, whose responses have a single token.
pub fn single_token_servers(ports: &[u16], rest: &str) -> String {
    let endpoint = |(at, port): (usize, &u16)| {
        format!("  e{at}: {{ url: 'http://127.0.0.1:{port}/v1', engine: mock, errors: measured }}\n")
    };
    let endpoints: String = ports.iter().enumerate().map(endpoint).collect();
    format!(
        "sweepline: 1\nname: claims\nseed: 11\nendpoints:\n{endpoints}models: {{ m: {{ id: tiny }} }}\n\
         scenarios: {{ one: {{ prompt_tokens: 16, output_tokens: 1 }} }}\n\
         validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}\n{rest}"
    )
}

/// A server with four slots. With up to four requests in flight, none waits; with eight, each waits for a
/// whole response, which is 60 ms. A window has so many responses that enough independent ones are left for
/// a decision, even if a busy machine slows them down together.
pub const LADDER: &str = "
sweepline: 1
name: staged
endpoints: { a: { engine: mock, mock: { ttft: 20ms, itl: 10ms, slots: 4 } } }
models: { m: { id: demo } }
scenarios: { short: { prompt_tokens: 20, output_tokens: 5 } }
slo: { ttft: { p50: 50ms } }
phases: { fill: 0s, stabilize: 100ms, measure: 3500ms, drain: 5s }
# A busy machine sends late; what is asked here is which runs are made.
validity: { client_late: { suspect: 100%, invalid: 100% } }
sweeps:
  ladder: { matrix: { scenario: short, batch_size: [2, 4, 8] }, stop: slo_missed }
";
