//! Broken questions to earlier sweeps and what is said about them. Read the snapshots aloud.

use super::broken::{errors, snapshots};
use super::*;

/// A search over two endpoints, and sweeps behind it.
fn behind(sweeps: &str) -> String {
    format!(
        "sweepline: 1\nname: test\nendpoints:\n  demo: {{ engine: mock }}\n  other: {{ engine: mock }}\nmodels: {{ small: {{ id: small }} }}\n\
         slo: {{ ttft: {{ p99: 500ms }} }}\nsweeps:\n  limit:\n    matrix: {{ endpoint: [demo, other] }}\n    \
         search: {{ qps: {{ from: 1, to: 100 }} }}\n{sweeps}\n"
    )
}

snapshots! {
    taken_tables: behind("  s:\n    matrix:\n      endpoint: demo\n      qps:\n        - { from: limit }\n        - { from: limit, times: 2 }\n        - { from: 1, take: max_qps_under_slo }\n        - { take: max_qps_under_slo }\n        - { from: limit, take: max_qps, times: 0.8 }\n        - { from: limit, take: max_qps_under_slo, to: 5 }\n        - { from: limit, take: max_qps_under_slo, value: 5 }\n        - { over: endpoint, use: min }\n        - { from: limit, take: max_qps_under_slo, times: fast }\n        - { from: limit, take: max_qps_under_slo, use: mean }");
    taken_values: behind("  a: { matrix: { endpoint: demo, qps: { from: limit, take: max_qps_under_slo, times: 0 } } }\n  b: { matrix: { endpoint: demo, qps: { from: limit, take: max_batch_size_under_slo } } }\n  c: { matrix: { endpoint: demo, qps: 1, prompt_tokens: [{ from: limit, take: max_qps_under_slo }] } }\n  d: { matrix: { endpoint: demo, qps: { from: limit, take: max_qps_under_slo, use: max } } }\n  e: { matrix: { endpoint: demo, load: { zip: { qps: [{ from: limit, take: max_qps_under_slo }] } } } }\n  f: { matrix: { endpoint: demo, qps: [{ from: limit, take: max_qps_under_slo }, { from: limit, take: max_qps_under_slo }] } }");
    taken_from_what_cannot_answer: behind("  starts: { matrix: { endpoint: demo, batch_size: [1, 2] } }\n  caps: { matrix: { endpoint: demo, qps: [1, 2], batch_size: 8 } }\n  a: { matrix: { endpoint: demo, qps: { from: limt, take: max_qps_under_slo } } }\n  b: { matrix: { endpoint: demo, qps: { from: starts, take: max_qps_under_slo } } }\n  c: { matrix: { endpoint: demo, batch_size: { from: caps, take: max_batch_size_under_slo } } }");
    taken_without_an_objective: behind("  lists: { matrix: { endpoint: demo, qps: [1, 2] } }\n  a: { matrix: { endpoint: demo, qps: { from: lists, take: max_qps_under_slo } } }").replace("slo: { ttft: { p99: 500ms } }\n", "").replace("    search: { qps: { from: 1, to: 100 } }\n", "").replace("[demo, other]", "[demo, other], qps: [1, 2]");
    taken_of_other_cells: behind("  narrow: { matrix: { endpoint: demo }, search: { qps: { from: 1, to: 9 } } }\n  deep: { matrix: { endpoint: demo, prompt_tokens: [50, 90] }, search: { qps: { from: 1, to: 9 } } }\n  a: { matrix: { endpoint: [demo, other], qps: { from: narrow, take: max_qps_under_slo } } }\n  b: { matrix: { endpoint: demo, qps: { from: deep, take: max_qps_under_slo } } }\n  c: { matrix: { endpoint: demo, qps: { from: deep, take: max_qps_under_slo, over: [prompt_token, qps] } } }");
    taken_by_arms: behind("  a: { matrix: { endpoint: [demo, other], qps: { from: limit, take: max_qps_under_slo, times: 0.8 } }, repeats: 3, compare: { by: endpoint, baseline: demo } }");
    taken_in_a_circle: behind("  a: { matrix: { endpoint: demo, qps: { from: b, take: max_qps_under_slo } } }\n  b: { matrix: { endpoint: demo, qps: { from: a, take: max_qps_under_slo } } }\n  c: { matrix: { endpoint: demo, qps: { from: c, take: max_qps_under_slo } } }\n  d: { matrix: { endpoint: demo, qps: [1, 2] }, after: e }\n  e: { matrix: { endpoint: demo, qps: 1 }, gate: { sweep: d, metric: max_qps_under_slo, at_least: 1 } }");
    taken_from_what_is_optional: behind("  more: { matrix: { endpoint: demo, qps: [1, 2] }, optional: true }\n  a: { matrix: { endpoint: demo, qps: { from: more, take: max_qps_under_slo } } }\n  b: { matrix: { endpoint: demo, qps: 1 }, gate: { sweep: more, metric: max_qps_under_slo, at_least: 1 } }\n  c: { matrix: { endpoint: demo, qps: { from: more, take: max_qps_under_slo } }, optional: true }\nbudget: { time: 2h }");
    gates: behind("  a: { matrix: { endpoint: demo, qps: 1 }, gate: { sweep: limit, metric: max_qps_under_slo } }\n  b: { matrix: { endpoint: demo, qps: 1 }, gate: { sweep: limt, metric: max_qps, at_least: -1 } }\n  c: { matrix: { endpoint: demo, qps: 1 }, gate: { sweep: limit, metric: max_batch_size_under_slo, at_least: 5, at_most: 2 } }\n  d: { matrix: { endpoint: demo, qps: 1 }, skip_if: { sweep: limit, metric: max_qps_under_slo, below: 5, above: 2 } }\n  e: { matrix: { endpoint: demo, qps: 1 }, skip_if: { sweep: nothing, metric: max_qps_under_slo, below: 0 } }\n  f: { matrix: { endpoint: demo, qps: 1 }, skip_if: { sweep: limit, below: 2, at_least: 5 } }");
    stops: behind("  a: { matrix: { endpoint: demo, qps: [1, 2] }, stop: cost_per_million }\n  b: { matrix: { endpoint: demo, qps: [1, 2] }, stop: { cost_per_million: cheap } }\n  c: { matrix: { endpoint: demo, qps: [1, 2] }, stop: { errors: 1 } }\n  d: { matrix: { endpoint: demo, qps: [1, 2] }, stop: { cost_per_million: 3 } }");
    metrics: behind("  load: { matrix: { endpoint: demo, qps: 1 } }\n  a: { matrix: { endpoint: demo, qps: 1 }, gate: { sweep: load, metric: ttft_p99, at_most: 500 } }\n  b: { matrix: { endpoint: demo, qps: 1 }, gate: { sweep: load, metric: error_share, at_most: 0.01 } }\n  c: { matrix: { endpoint: demo, qps: 1 }, gate: { sweep: load, metric: output_throughput, at_least: 10ms } }\n  d: { matrix: { endpoint: demo, qps: 1 }, skip_if: { sweep: load, metric: error_share, above: 0% } }\n  e: { matrix: { endpoint: demo, qps: 1 }, gate: { sweep: limit, metric: ttft_p99, at_most: 500ms } }\n  f: { matrix: { endpoint: demo, qps: 1 }, gate: { sweep: load, metric: ttft_p99, at_least: 2s, at_most: 1s } }\n  g: { matrix: { endpoint: demo, qps: 1 }, gate: { sweep: load, metric: ttft_p98, at_most: 2s } }");
}

#[test]
fn what_takes_a_load_comes_after_the_sweep_that_finds_it() {
    let text = behind("  a: { matrix: { qps: { from: limit, take: max_qps_under_slo } , endpoint: demo } }");
    let plan = parse(Path::new("x.yaml"), &text, Format::Yaml).unwrap_or_else(|errors| panic!("{errors}")).plan;
    assert_eq!(plan.sweeps["a"].after.0, ["limit"]);
}
