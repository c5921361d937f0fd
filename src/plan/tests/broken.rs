//! Invalid plans and their errors. Each snapshot shows the errors as a user sees them; to review a snapshot,
//! read it aloud.

use super::*;

/// Returns the errors of a plan, as text.
pub(super) fn errors(text: &str, format: Format) -> String {
    let name = if format == Format::Yaml { "plans/x.yaml" } else { "plans/x.toml" };
    parse(Path::new(name), text, format).map(|_| String::new()).unwrap_or_else(|errors| errors.render(false))
}

/// Returns a plan that is valid except for the given parts: the lines before `sweeps`, and the sweeps.
pub(super) fn plan(head: &str, sweeps: &str) -> String {
    format!(
        "sweepline: 1\nname: test\n{head}\nendpoints:\n  demo: {{ engine: mock }}\n  vllm: {{ url: \"http://h:1/v1\", engine: vllm }}\n\
         models: {{ small: {{ id: small }}, large: {{ id: {{ vllm: org/large }} }} }}\nsweeps:\n{sweeps}\n"
    )
}

const SWEEP: &str = "  s: { matrix: { endpoint: demo, model: small, batch_size: [1, 8] } }";

/// Returns a sweep with these axes in addition to endpoint and model, and with these entries outside its
/// matrix.
pub(super) fn sweep(axes: &str, rest: &str) -> String {
    plan("", &format!("  s:\n    matrix: {{ endpoint: [demo, vllm], model: [small], {axes} }}\n    {rest}"))
}

macro_rules! snapshots {
    ($($name:ident: $text:expr;)*) => {$(
        #[test]
        fn $name() {
            let text: String = $text.into();
            insta::with_settings!({ omit_expression => true }, {
                insta::assert_snapshot!(errors(&text, Format::Yaml));
            });
        }
    )*};
}
pub(super) use snapshots;

snapshots! {
    empty_file: "";
    only_a_text: "hello";
    nothing_but_a_version: "sweepline: 1\n";
    tab_indentation: "sweepline: 1\nendpoints:\n\tdemo: { engine: mock }\n";
    open_bracket: "sweepline: 1\nname: a\nsweeps: { a: [1, 2\n";
    open_quote: "sweepline: 1\nname: \"a\nmodels: {}\n";
    colon_in_text: "sweepline: 1\nname: a\nnotes: first: second\n";
    two_documents: "sweepline: 1\n---\nsweepline: 1\n";
    unknown_anchor: "sweepline: 1\nname: *nothing\n";
    duplicate_keys: plan("seed: 1\nseed: 2\nphases: { fill: 1s, fill: 2s }", SWEEP);
    unknown_keys: plan("sed: 1\nphases: { stabilise: 1s, warmup: 2s }\nslo: { ttft: { p98: 1s } }", SWEEP);
    wrong_types: plan("seed: soon\nstream: yes\nnotes: 5\nphases: [1]\nhypothesis: { a: 1 }\nscenarios: { a: 5 }", SWEEP);
    wrong_units: plan("timeouts: { connect: 10, request: 10 minutes, stall: 1.5 }\nvalidity: { errors: { suspect: 0.01 } }", SWEEP);
    wrong_choices: plan("nonce: maybe\nenvironment: matching\nphases: { drain: { for: 1s, mode: 5 } }", SWEEP);
    key_without_value: plan("notes:\nscenarios:", SWEEP);
    other_version: plan("", SWEEP).replace("sweepline: 1", "sweepline: 2");
    empty_tables: "sweepline: 1\nname: ''\nendpoints: {}\nmodels: {}\nsweeps: {}\n";
    empty_matrix: plan("", "  a: { matrix: {} }\n  b: { matrix: { endpoint: demo, model: small, batch_size: [] } }");
    unknown_axes: sweep("batchsize: [1], rps: [2], flavour: [x], stream: [true]", "");
    axis_beside_matrix: sweep("stream: true", "qps: [1, 2]");
    axis_twice: sweep("batch_size: [1], concurrency: [2]", "exclude: [{ batch_size: 1, concurrency: 1 }]");
    server_axis: sweep("qps: [10], server: [{ max_num_seqs: 64 }, { max_num_seqs: 128 }]", "");
    unknown_names: plan("scenarios: { chat: { base: D }, more: { base: chta } }",
        "  one: { matrix: { endpoint: [vlm], model: smal, scenario: [A1, A3, chatt], qps: 1 } }\n  two: { after: [on, x], matrix: { endpoint: demo, model: small, qps: 1 } }");
    wrong_axis_values: sweep("batch_size: [0, 1.5, '8', many], qps: [-1, fast], prompt_tokens: 8, stream: [on], temperature: 3, arrivals: [poison], scenario: [5]", "");
    values_twice: sweep("batch_size: [1, 8, 8, 8.0]", "");
    axis_value_is_a_table: sweep("batch_size: [{ from: 1 }]", "");
    missing_axes: plan("", "  s: { matrix: { batch_size: 1 } }");
    no_load: plan("", "  s: { matrix: { endpoint: demo, model: small, scenario: [A1] } }");
    dead_excludes: sweep("batch_size: [1, 8]",
        "exclude: [{ endpoint: vlm }, { batch_size: 16 }, { batch_size: '8' }, { batchsize: 8 }, { scenario: D }, {}]");
    all_excluded: sweep("batch_size: [1, 8]",
        "exclude: [{ endpoint: demo }, { endpoint: vllm, batch_size: 1 }, { batch_size: 8 }]");
    circle_of_sweeps: plan("",
        "  a: { after: b, matrix: { endpoint: demo, model: small, qps: 1 } }\n  b: { after: [c], matrix: { endpoint: demo, model: small, qps: 1 } }\n  c: { after: [a], matrix: { endpoint: demo, model: small, qps: 1 } }\n  d: { after: [d], matrix: { endpoint: demo, model: small, qps: 1 } }");
    scenario_mistakes: plan("scenarios:\n  A1: { output_tokens: 5 }\n  x: { base: y }\n  y: { base: x }\n  short: { prompt_tokens: 5, output_tokens: 0, top_p: 1.5 }\n  talk: { base: B1, turns: 3 }", SWEEP);
    turns_without_conversation: sweep("scenario: [A1, D, C], turns: [1, 3], qps: 1", "exclude: [{ scenario: C, turns: 3 }]");
    endpoint_mistakes: "sweepline: 1\nname: a\nendpoints:\n  none: {}\n  both: { url: http://h/v1, engine: mock, mock: {} }\n  wrong: { url: \"http://h/v1\", engine: vllm, mock: { slots: 0 } }\n  bare: { url: localhost:8000 }\n  full: { url: http://h/v1/chat/completions }\n  odd: { url: http:// , hardware: { gpus: 0 } }\nmodels: { m: { id: m } }\nsweeps: { s: { matrix: { endpoint: none, qps: 1 } } }\n";
    secrets: "sweepline: 1\nname: a\nendpoints:\n  a: { url: \"http://user:hunter2@h/v1\" }\n  b: { url: http://h/v1, api_key: sk-abcdefghijklmnop }\n  c: { url: http://h/v1, api_key: { secret: env:my-key } }\n  d: { url: http://h/v1, api_key: { secret: file:../key } }\nmodels: { m: { id: m } }\nsweeps: { s: { matrix: { endpoint: a, qps: 1 } } }\n";
    model_ids: plan("", "  s: { matrix: { endpoint: [vllm, demo], model: [large], qps: 1 } }").replace("vllm: org", "vlm: x, vllm: org");
    numbers_out_of_range: plan("phases: { fill: { per_second: 0 }, measure: { for: 1m, min_requests: 0, at_most: 30s } }\ntimeouts: { stall: 0s }\nvalidity: { errors: { suspect: 10%, invalid: 5% } }\nslo: { ttft: { p99: 0s } }",
        "  s: { repeats: 0, matrix: { endpoint: demo, model: small, qps: 1 }, phases: { measure: 0s, fill: {} } }");
    arrivals_without_qps: sweep("batch_size: [1], arrivals: [constant]", "arrivals: poisson");
    clients: plan("connections: worm\nengine: { threads: 0, timer: spinn, cores: 2 }",
        "  s: { connections: hot, engine: { threads: 257 }, matrix: { endpoint: demo, model: small, qps: 1 } }\n  t: { connections: cold, threads: 2, matrix: { endpoint: demo, model: small, batch_size: 1, connections: [warm, per_reqest] } }\n  u: { connections: 1, engine: 4, matrix: { endpoint: demo, model: small, batch_size: 1, threads: 2 } }");
    arrivals_twice: sweep("qps: [1], arrivals: [constant]", "arrivals: poisson");
    aliased_mistake: "sweepline: 1\nname: a\nendpoints:\n  e: &b { engine: mock, mock: { slot: 4 } }\n  f: { <<: *b, apii: completions }\n  g: { <<: *b }\nmodels: { m: { id: m } }\nsweeps: { s: { matrix: { endpoint: [e, f], qps: 5 } } }\n";
    lists_for_tables: "sweepline: '1'\nname: a\nendpoints: [ { url: x } ]\nmodels: [llama]\nsweeps:\n  - matrix: { qps: 1 }\n";
    wrong_figures: "sweepline: 1\nname: a\nendpoints: { e: { engine: mock, mock: { prefill: 1ms, jitter: 200%, ttft: -5ms } }, v: { url: http://h/v1, engine: VLM } }\nmodels: { m: { id: { vllm: m }, parameters: 70B } }\nsweeps: { s: { matrix: { endpoint: v, qps: 1, scenario: [b1] } } }\n";
    many_at_once: "sweepline: 1\nnme: typo\nseed: -1\nendpoints:\n  demo: { engine: moc }\n  gpu: { url: http://h/v1, enigne: vllm }\nmodels:\n  m: {}\nphases: { measure: 120 }\nsweeps:\n  s:\n    matrix: { endpoint: [demo, gpuu], batch_size: [1, two], model: [m] }\n    exclude: { endpoint: demo }\n    repeats: three\n";
}

#[test]
fn toml_mistakes() {
    let text = "sweepline = 1\nname = test\nseed = = 2\n[endpoints.demo]\nengine = \"mock\n";
    insta::assert_snapshot!(errors(text, Format::Toml));
}

#[test]
fn toml_duplicates_and_types() {
    let text = "sweepline = 1\nname = \"a\"\nname = \"b\"\nseed = 2026-01-01\n\n[endpoints.demo]\nengine = \"mcok\"\n\n[models]\n\
                m.id = \"m\"\n\n[sweeps.s]\nmatrix.qps = [1, \"2\"]\nmatrx.qps = 1\n\n[alidity]\nerrors.suspect = 5\n";
    insta::assert_snapshot!(errors(text, Format::Toml));
}

#[test]
fn json_form() {
    let errors = parse(Path::new("plans/x.yaml"), &plan("sed: 1", SWEEP), Format::Yaml).unwrap_err();
    insta::assert_snapshot!(serde_json::to_string_pretty(&errors.json()).unwrap());
}
