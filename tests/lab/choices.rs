//! A plan that chooses the settings of a launched mock, and what its choices must satisfy.

use serde_json::Value;

use super::Lab;

/// Returns a plan with eight requests in flight on a mock with this many slots: one slot serves an eighth
/// of the rate of eight slots, and sixteen serve no more than eight.
pub fn plan(sweep: &str) -> String {
    format!(
        "\
sweepline: 1
name: tuned
endpoints:
  m:
    engine: mock
    launch: {{ command: [sweepline, mock, --ttft, 5ms, --itl, 2ms, --port, '{{{{ port }}}}', '{{{{ server.args }}}}'], port: auto }}
models: {{ tiny: {{ id: mock }} }}
scenarios: {{ short: {{ base: B1, output_tokens: 8 }} }}
phases: {{ fill: 0s, stabilize: 100ms, measure: 500ms, drain: 10s }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}
sweeps:
  flags: {{ matrix: {{ batch_size: 8, server.slots: [1, 8, 16] }}, {sweep} }}
"
    )
}

/// Returns the only choice of the plan, from `preview`.
pub fn choice(lab: &Lab) -> Value {
    let preview = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
    lab.follows("preview", &preview);
    preview["choices"][0].clone()
}

/// Asserts that decisions do not depend on where a sweep is interrupted, that is, each run is the one that
/// follows from the runs before it.
pub fn decides_the_same_wherever_it_is_cut(lab: &Lab) {
    let ended = choice(lab);
    let dir = lab.results().join("runs");
    let aside = lab.path().join("aside");
    std::fs::rename(&dir, &aside).unwrap();
    std::fs::create_dir(&dir).unwrap();
    for (at, id) in ended["finished"].as_array().unwrap().iter().enumerate() {
        assert_eq!(choice(lab)["next"], *id, "decision {at}");
        let short = &id.as_str().unwrap()[..16];
        std::fs::rename(aside.join(short), dir.join(short)).unwrap();
    }
    assert_eq!(choice(lab)["standing"], ended["standing"]);
}
