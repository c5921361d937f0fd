//! Tests the whole workflow once: a plan, two runs, a table, and nothing left to do.

use lab::Lab;

const PLAN: &str = "
sweepline: 1
name: smoke
seed: 3
endpoints: { demo: { engine: mock, mock: { ttft: 2ms, itl: 1ms, slots: 4 } } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 6 } }
validity: { client_late: { suspect: 100%, invalid: 100% } }
phases: { fill: 50ms, stabilize: 50ms, measure: 400ms, drain: 2s }
sweeps:
  one:
    matrix: { endpoint: [demo], model: [m], scenario: [short], batch_size: [2] }
  two:
    matrix: { endpoint: [demo], model: [m], scenario: [short], qps: [40] }
";

#[test]
fn a_plan_becomes_judged_rows_once() {
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    let first = lab.run(&["run", "plan.yaml"]);
    // The client may be late on a busy machine; the run then correctly reports this.
    assert!(matches!(first.code, Some(0 | 3)), "{}{}", first.stdout, first.stderr);
    let runs = lab.runs();
    assert_eq!(runs.len(), 2);
    for run in runs.values() {
        assert!(!run.records.is_empty());
        let ok = run.records.iter().filter(|record| record.row.outcome.is_ok()).count();
        assert!(ok * 10 > run.records.len() * 8, "{ok} of {}", run.records.len());
    }
    let again = lab.run(&["run", "plan.yaml"]);
    assert_eq!(again.code, first.code);
    assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    assert_eq!(again.stdout, first.stdout, "the same table, computed from the rows");
}
