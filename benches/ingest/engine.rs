//! sweepline's engine as it runs: from the text of a plan to a committed run. Other work of `sweepline run`
//! (probe, verdict, report) is excluded because it is not part of the load.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use sweepline::engine::{self, Checked, Job, Progress, Sink, SinkError, Target};
use sweepline::expand::{PlannedRun, expand};
use sweepline::plan::{self, Format};
use sweepline::rows::{Journal, Record};
use sweepline::server::client_environment;
use sweepline::store::{Commit, Store};
use sweepline::sweep::perform::SampleFile;
use sweepline::workload::{Generator, NonceKey};
use tokio::sync::watch;

use crate::seen::Seen;

/// A run to make.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// The plan, whose first run is executed.
    pub plan: String,
    /// The mock's port.
    pub port: u16,
    /// The results folder.
    pub results: PathBuf,
    /// The start of every `x-request-id`.
    pub id_prefix: String,
}

/// Returns the first run of a plan.
pub fn first_run(text: &str) -> PlannedRun {
    let loaded = plan::parse(Path::new("bench.yaml"), text, Format::Yaml).unwrap_or_else(|errors| {
        panic!("the plan of the benchmark has errors: {}", errors.render(false));
    });
    expand(&loaded.plan).expect("the bench's plan expands").runs.swap_remove(0)
}

/// Executes the run: records, seals, checks and commits everything.
pub fn run(order: &Order) -> Seen {
    raise_file_limit();
    let run = first_run(&order.plan);
    let writer = Store::lock(&order.results).expect("a results folder of our own");
    let attempt = writer.begin(&run.id.to_string(), &run.spec).expect("an attempt");
    let (counting, counted) = std::sync::mpsc::channel();
    let journal = attempt.journal().expect("a journal");
    let job = Job {
        spec: Arc::clone(&run.spec),
        target: Target::parse(&format!("http://127.0.0.1:{}/v1", order.port)).expect("an address"),
        id_prefix: order.id_prefix.clone(),
        nonce_key: NonceKey::new(attempt.nonce_seed()),
        tokenizer: None,
        trace: None,
        sink: Box::new(Counting { journal, ended: Vec::new(), failed: 0, tell: counting }),
        samples: Box::new(SampleFile::new(attempt.samples().expect("a file of samples"))),
        texts: None,
        check: Arc::new(|_| Checked::Well),
        part: None,
        virtual_time: false,
    };
    // The sender stays alive until the run is over: without it the engine would treat the run as stopped.
    let (_running, stop) = watch::channel(false);
    let finished = engine::execute(job, Arc::new(Progress::default()), stop).expect("a run that ends");
    let digest = Generator::new(&run.spec.scenario, run.spec.seed, run.spec.repeat, None).digest();
    let held_open = finished.facts.lingering.map_or(0, |lingering| lingering.most);
    let (windows, start_monotonic_ns) = (finished.facts.windows, finished.facts.start_monotonic_ns);
    let commit = Commit {
        environment: client_environment(),
        facts: finished.facts,
        generator_digest: digest,
        samples: finished.samples,
        texts: None,
        reason: None,
    };
    attempt.commit(commit).expect("a committed run");
    let (ended, failed) = counted.recv().expect("the sink was finished");
    let within = ended.iter().filter(|(at, _)| *at < windows.measure_end_ns);
    let (streams, tokens) = within.fold((0, 0), |(streams, tokens), (_, more)| (streams + 1, tokens + more));
    let seconds = windows.measure_end_ns as f64 / 1e9;
    Seen { streams, tokens, failed, seconds, start_monotonic_ns, held_open, peak_rss: 0 }
}

/// Raises the limit of open files: each connection is a file, and the usual soft limit is far below ten
/// thousand.
fn raise_file_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If this is not permitted, connections fail, and the benchmark reports them.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// A journal that also counts its input.
struct Counting {
    journal: Journal,
    /// End and number of tokens of every complete stream.
    ended: Vec<(u64, u64)>,
    failed: u64,
    tell: std::sync::mpsc::Sender<(Vec<(u64, u64)>, u64)>,
}

impl Sink for Counting {
    fn append(&mut self, records: &[Record]) -> Result<(), SinkError> {
        for row in records.iter().map(|record| &record.row) {
            match (row.outcome.is_ok(), row.done_ns, row.output_tokens) {
                (true, Some(done), Some(tokens)) => self.ended.push((done, u64::from(tokens))),
                _ if row.outcome == sweepline::rows::Outcome::CutAtDrain => {}
                _ => self.failed += 1,
            }
        }
        Ok(self.journal.append(records)?)
    }

    fn finish(self: Box<Self>) -> Result<(), SinkError> {
        let Counting { journal, ended, failed, tell } = *self;
        journal.finish()?;
        Ok(tell.send((ended, failed))?)
    }
}
