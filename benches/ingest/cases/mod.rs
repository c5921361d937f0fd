//! The measurements.

pub mod memory;
pub mod open;
pub mod steps;
pub mod streams;
pub mod ttft;

use std::path::PathBuf;

use sweepline::rows::{RequestRow, Table, read_requests};
use sweepline::units::NonceSeed;
use sweepline::workload::{self, Generator, NonceKey, Shape};

use crate::args::{Args, Part};
use crate::child::{self, Done, Order};
use crate::engine;
use crate::report::Report;

/// Measures one part.
pub fn run(part: Part, args: &Args, report: &mut Report) {
    match part {
        Part::Streams => streams::coalesced(args, report),
        Part::PerEvent => streams::per_event(args, report),
        Part::OneToken => streams::one_token(args, report),
        Part::Open => open::open(args, report),
        Part::Ttft => ttft::ttft(args, report),
        Part::Memory => memory::memory(args, report),
        Part::Steps => steps::steps(args, report),
    }
}

/// A run that the engine has made and committed, for as long as this value lives.
pub struct Run {
    /// What it cost.
    pub done: Done,
    /// Its folder.
    pub dir: PathBuf,
    _folder: tempfile::TempDir,
}

impl Run {
    /// Has a child make the first run of `plan`; its request ids open with `id_prefix`.
    pub fn make(port: u16, plan: String, id_prefix: &str) -> Run {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let results = folder.path().join("results");
        let runs = results.join("runs");
        let done = child::run(&Order::Engine(engine::Order { plan, port, results, id_prefix: id_prefix.to_owned() }));
        assert_eq!(done.seen.failed, 0, "requests failed");
        let run = std::fs::read_dir(runs).expect("runs").next().expect("a committed run").expect("an entry");
        Run { done, dir: run.path(), _folder: folder }
    }

    /// Its rows, in the order of their numbers.
    pub fn rows(&self) -> Vec<RequestRow> {
        let (_, mut rows) = read_requests(&self.dir.join(Table::Requests.file())).expect("sealed rows");
        rows.sort_by_key(|row| row.request);
        rows
    }
}

/// The plan of a run against the mock on `port`: requests of 32 prompt tokens and `tokens` answer tokens under `load`
/// (an axis of the matrix) in `phases`.
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

/// The body of the first request of a plan, as the engine would send it.
pub fn body(plan: &str) -> String {
    String::from_utf8(bodies(plan)(0)).expect("a body is JSON")
}

/// Makes the bodies of a plan's requests by their number, as the engine does.
pub fn bodies(plan: &str) -> impl Fn(u64) -> Vec<u8> + use<> {
    let run = engine::first_run(plan);
    let spec = &run.spec;
    let nonce = NonceKey::new(NonceSeed([1; 16])).under(spec.shaping.nonce, None);
    let generator = Generator::new(&spec.scenario, spec.seed, spec.repeat, nonce);
    let shape = Shape {
        model: spec.model.id.clone(),
        api: spec.endpoint.api,
        stream: spec.shaping.stream,
        ignore_eos: spec.shaping.ignore_eos,
        conversation: false,
        temperature: spec.shaping.temperature,
        top_p: spec.shaping.top_p,
        presence_penalty: spec.shaping.presence_penalty,
        frequency_penalty: spec.shaping.frequency_penalty,
        stop: spec.shaping.stop.clone(),
        extra: spec.shaping.extra.clone(),
    };
    move |number| workload::body(&shape, &[], &generator.request(number))
}
