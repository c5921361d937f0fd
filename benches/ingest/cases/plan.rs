//! The plan of a run, and the requests that it sends.

use sweepline::units::NonceSeed;
use sweepline::workload::{BodyWriter, Generator, NonceKey, RequestShape};

use crate::engine;

/// Returns the plan of a run against the mock on `port`: requests of 32 prompt tokens and `tokens` output
/// tokens under `load` (an axis of the matrix) in `phases`.
pub fn plan(port: u16, tokens: u32, load: &str, phases: &str) -> String {
    format!(
        "sweepline: 1\nname: ingest\nseed: 5\n\
         endpoints: {{ mock: {{ url: 'http://127.0.0.1:{port}/v1', engine: mock }} }}\n\
         models: {{ m: {{ id: tiny }} }}\n\
         scenarios: {{ bench: {{ base: B1, prompt_tokens: 32, output_tokens: {tokens} }} }}\n\
         phases: {{ {phases} }}\n\
         sweeps: {{ s: {{ matrix: {{ endpoint: [mock], model: [m], scenario: [bench], {load} }} }} }}\n"
    )
}

/// Returns the body of the first request of a plan, as the engine would send it.
pub fn body(plan: &str) -> String {
    String::from_utf8(bodies(plan)(0)).expect("a body is JSON")
}

/// Returns a function that generates the bodies of a plan's requests by number, as the engine does.
pub fn bodies(plan: &str) -> impl Fn(u64) -> Vec<u8> + use<> {
    let run = engine::first_run(plan);
    let spec = &run.spec;
    let nonce = NonceKey::new(NonceSeed([1; 16])).under(spec.shaping.nonce, None);
    let generator = Generator::new(&spec.scenario, spec.seed, spec.repeat, nonce);
    let shape = RequestShape {
        model: spec.model.id.clone(),
        api: spec.endpoint.api,
        stream: spec.shaping.stream,
        ignore_eos: spec.shaping.ignore_eos,
        conversation: false,
        fields: spec.shaping.fields.clone(),
        extra: spec.shaping.extra.clone(),
    };
    let bodies = BodyWriter::new(shape);
    move |number| bodies.write(&[], &generator.request(number))
}
