//! Executes the nodes of the graph in order. Nodes run on their own threads and send their results as
//! messages. Only the scheduler's thread accesses the state of the walk, the servers and the observer.

mod asking;
mod choices;
mod claims;
mod ended;
mod endings;
mod failed_starts;
mod launches;
mod outcomes;
mod pools;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use petgraph::graph::NodeIndex;
use tokio::sync::watch;

use crate::engine::Progress;
use crate::expand::{Expansion, PlannedRun, RunId};
use crate::graph::{Graph, GraphError, Node, Outcome, Walk, build};
use crate::plan::Plan;
use crate::server::Embedded;
use crate::server::launch::EarlyEnd;
use crate::store::{StoreError, Writer};

use super::environment::{Expected, Guard, LaunchedSaid};
use super::event::{Event, Naming, Observer, RunView};
use super::hooks::{Cells, RunHooks};
use super::launching::{NotStarted, Started, secret_variables};
use super::live::Live;
use super::perform::{self, Order, RunError};
use super::ready::{ProbeOutcome, Waiting};
use super::settle::Settle;
use super::shared_load;
use super::tokenizers::Tokenizers;
use ended::EarlyEnds;
pub(crate) use ended::{EndsOf, OverBudget};
use failed_starts::{FailedStarts, Hopeless, ServerOfModel};
pub(crate) use pools::Choices;
use pools::Pools;

/// All data that is needed to execute a sweep.
pub struct Sweep<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The plan's folder. Files with secrets are relative to it.
    pub folder: &'a Path,
    /// The runs of the plan.
    pub expansion: &'a Expansion,
    /// For each run: whether it will be executed.
    pub(crate) todo: Vec<bool>,
    /// Number of selected runs that will not be executed. The runs to execute are numbered after these.
    pub(crate) settled: usize,
    /// For each run: why its committed result is replaced; `None` if it has no result.
    pub(crate) replaces: Vec<Option<String>>,
    /// For each run: the number of spoiled attempts that count towards the limit of retries.
    pub spoiled: Vec<u32>,
    /// For each run: whether the count of spoiled attempts starts again, because the run was given up and
    /// the user requests it again.
    pub afresh: Vec<bool>,
    /// The properties that servers are expected to have.
    pub(crate) environment: Expected,
    /// The writer of the results folder.
    pub writer: &'a Writer,
    /// The folder for the logs and leases of launched servers.
    pub servers: PathBuf,
    /// Maximum number of concurrent runs.
    pub jobs: usize,
    /// Chooses the runs of searches and ladders; `None` if the plan has none.
    pub(crate) choices: Option<Choices<'a>>,
    /// Decides when the repeats of a cell end early; `None` if the plan has no cells for which this is
    /// possible.
    pub(crate) ends: Option<EndsOf<'a>>,
    /// Decides from the results so far whether a run that is about to begin is skipped because of the
    /// budget, and why; `None` if the budget does not depend on results.
    pub(crate) over_budget: Option<OverBudget<'a>>,
    /// Names of the selected sweeps whose runs are not known yet.
    pub(crate) later: Vec<String>,
    /// Whether to stop at the first failure.
    pub(crate) fail_fast: bool,
}

/// The outcome of a sweep.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Number of runs that were committed.
    pub committed: usize,
    /// Number of runs that failed.
    pub failed: usize,
    /// Number of runs that were given up, because the environment spoiled every attempt.
    pub given_up: usize,
    /// Number of runs that were not executed because their endpoint was not ready in time.
    pub skipped: usize,
    /// Number of runs that were not measured or not committed because their server differs from the plan or
    /// from earlier results, or reported two versions. The user must fix this.
    pub refused: usize,
    /// Number of runs that remain to be done because the sweep was stopped.
    pub left: usize,
    /// Number of runs that were skipped because they are no longer needed, for example because their cell
    /// had ended.
    pub pruned: usize,
    /// Whether the sweep was stopped.
    pub interrupted: bool,
    /// Number of runs that other workers have committed in the meantime.
    pub(crate) shared: usize,
    /// Ids of the runs that other workers were measuring when this process wanted to start them.
    pub(crate) elsewhere: Vec<RunId>,
    /// Number of results that the sweep should have measured again, but that were kept because they are
    /// shared.
    pub(crate) kept: usize,
    /// What the servers that were launched for the sweep reported about themselves.
    pub(crate) launched: Vec<LaunchedSaid>,
}

impl Summary {
    /// Combines this summary with the summary of a later sweep.
    pub(crate) fn and(self, second: Summary) -> Summary {
        Summary {
            committed: self.committed + second.committed,
            failed: self.failed + second.failed,
            given_up: self.given_up + second.given_up,
            skipped: self.skipped + second.skipped,
            refused: self.refused + second.refused,
            left: self.left + second.left,
            pruned: self.pruned + second.pruned,
            interrupted: second.interrupted,
            shared: self.shared + second.shared,
            elsewhere: self.elsewhere.into_iter().chain(second.elsewhere).collect(),
            kept: self.kept + second.kept,
            launched: second.launched,
        }
    }
}

/// Why a sweep cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The graph of the plan cannot be built.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// An error of the results folder.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The endpoints for which waiting does not help, each with the reason.
    #[error("{}", told(.0))]
    Endpoints(Vec<(String, String)>),
    /// The system cannot start more threads.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// A server that is being probed and has not responded.
struct Unanswered {
    since: Instant,
    endpoint: String,
    url: String,
}

fn told(endpoints: &[(String, String)]) -> String {
    let told: Vec<String> = endpoints.iter().map(|(name, reason)| format!("endpoint `{name}`: {reason}")).collect();
    told.join("\n")
}

/// A message from a node's thread.
enum Answer {
    Served(Result<Embedded, String>),
    /// The plan's server was launched, or could not be launched.
    Launched(Result<Started, NotStarted>),
    /// The run is waiting, for example because its server is busy; the string gives the reason.
    Busy(String),
    /// The node's server is not ready yet; probing continues.
    Waits(Waiting),
    /// The node's server is ready, or will not become ready.
    Probed(Box<ProbeOutcome>),
    /// The run has ended, with this result. The pause after the run follows.
    Ran(Result<(), RunError>),
    /// The pause after the run has ended.
    Rested,
    /// The node's thread panicked.
    Panicked,
}

/// Executes the sweep. `stop` becomes true when the user stops it.
pub fn run(sweep: &Sweep<'_>, observer: &mut dyn Observer, stop: watch::Receiver<bool>) -> Result<Summary, SweepError> {
    let graph = build(sweep.expansion, &|at| sweep.todo[at])?;
    let (sender, receiver) = channel();
    let mut scheduler = Scheduler::new(sweep, &graph, observer, stop, sender);
    let result = scheduler.go(&receiver);
    scheduler.retire_all();
    scheduler.observer.event(Event::End);
    scheduler.summary.launched = scheduler.guard.launched();
    result.map(|()| scheduler.summary)
}

struct Scheduler<'a, 'o> {
    sweep: &'a Sweep<'a>,
    graph: &'a Graph,
    walk: Walk<'a>,
    observer: &'o mut dyn Observer,
    /// Becomes true when the user stops the sweep. `halt` passes this on to the threads of the nodes.
    stop: watch::Receiver<bool>,
    halt: watch::Sender<bool>,
    answers: Sender<(NodeIndex, Answer)>,
    /// Servers that have not responded to the first probe of a wait. An entry is removed when the user is
    /// notified.
    unanswered: HashMap<NodeIndex, Unanswered>,
    servers: HashMap<String, Live>,
    /// For each resource: the threads that are ending launched servers, which use the resource until they
    /// have ended.
    retiring: HashMap<String, Vec<JoinHandle<()>>>,
    /// For each probe: the starts of its server that ended before it was ready.
    failed_starts: HashMap<NodeIndex, FailedStarts>,
    /// For each run for which a running server was replaced: how the new server ended before it was ready.
    failed_changes: HashMap<usize, EarlyEnd>,
    /// Servers that are not started again, because they reject their settings or the plan must be changed.
    hopeless: HashMap<ServerOfModel, Hopeless>,
    /// Number of remaining runs on each endpoint. After the last run, the endpoint's server is ended.
    runs_left: HashMap<String, usize>,
    /// Number of remaining runs on each resource. No pause is needed after the last run.
    waiting: HashMap<String, usize>,
    views: HashMap<usize, RunView>,
    tokenizers: Arc<Tokenizers>,
    settle: Arc<Settle>,
    /// For each endpoint: how long the sweep has waited for it so far.
    waited: HashMap<String, Duration>,
    /// Endpoints on which something has failed since the last probe. They are probed again before the next
    /// run.
    doubted: HashSet<String>,
    /// Endpoints that are no longer used, because they were not ready in time or are refused, each with the
    /// reason.
    lost: HashMap<String, String>,
    /// Endpoints for which waiting does not help: the plan or the server must be changed.
    wants_a_change: HashSet<String>,
    /// Checks that servers are as expected, and that each endpoint has only one server.
    guard: Guard,
    /// The names of the environment variables that contain the plan's secrets.
    withheld: Arc<BTreeSet<String>>,
    /// Runs whose server is being probed again before they start.
    asking: HashSet<NodeIndex>,
    /// The runs in `asking` whose server is being ended, because each attempt requires a new server.
    restarting: HashSet<NodeIndex>,
    /// Runs for which the server was restarted with other settings.
    changed: HashSet<usize>,
    /// For each run: the number of spoiled attempts, including those of earlier invocations.
    spoiled: Vec<u32>,
    /// Runs with at least one attempt in this invocation, with the live counters of the last attempt.
    begun: HashMap<usize, Arc<Progress>>,
    /// Tracks which runs are the first and the last of their cells.
    cells: Cells,
    runs_under_way: usize,
    /// For each node of a pool: the run that it currently represents.
    pools: Pools,
    /// Runs that have ended in this invocation, and whether they are settled, that is, committed or given
    /// up. They are recorded because two sweeps may contain the same run.
    over: HashMap<RunId, bool>,
    /// The runs that are skipped because they are no longer needed.
    early: EarlyEnds,
    fatal: Option<SweepError>,
    summary: Summary,
}

impl<'a, 'o> Scheduler<'a, 'o> {
    fn new(
        sweep: &'a Sweep<'a>,
        graph: &'a Graph,
        observer: &'o mut dyn Observer,
        stop: watch::Receiver<bool>,
        answers: Sender<(NodeIndex, Answer)>,
    ) -> Self {
        let runs: Vec<usize> = graph
            .nodes()
            .into_iter()
            .filter_map(|at| match graph.node(at) {
                Node::Run(run) => Some(*run),
                Node::Serve { .. } | Node::Probe { .. } | Node::Gate { .. } => None,
            })
            .collect();
        let planned = |run: &usize| &sweep.expansion.runs[*run];
        let (mut runs_left, mut waiting) = (HashMap::new(), HashMap::new());
        for run in &runs {
            let endpoint = &planned(run).spec.endpoint.name;
            *runs_left.entry(endpoint.clone()).or_default() += 1;
            *waiting.entry(sweep.expansion.resources[endpoint].clone()).or_default() += 1;
        }
        let naming = Naming::of(&sweep.expansion.runs);
        let view = |(at, run): (usize, &usize)| {
            let view = RunView::among(sweep.settled + at + 1, planned(run), &naming);
            let standing = sweep.choices.as_ref().and_then(|choices| choices.standing(*run, &sweep.expansion.pools));
            (*run, RunView { standing, ..view })
        };
        let views = runs.iter().enumerate().map(view).collect();
        let (halt, _) = watch::channel(false);
        Scheduler {
            sweep,
            graph,
            walk: Walk::new(graph, sweep.jobs),
            observer,
            stop,
            halt,
            answers,
            servers: HashMap::new(),
            retiring: HashMap::new(),
            failed_starts: HashMap::new(),
            failed_changes: HashMap::new(),
            hopeless: HashMap::new(),
            unanswered: HashMap::new(),
            runs_left,
            waiting,
            views,
            tokenizers: Arc::new(Tokenizers::new(sweep.plan)),
            settle: Arc::default(),
            waited: HashMap::new(),
            doubted: HashSet::new(),
            lost: HashMap::new(),
            wants_a_change: HashSet::new(),
            guard: Guard::new(sweep.environment.clone()),
            withheld: Arc::new(secret_variables(sweep.plan)),
            asking: HashSet::new(),
            restarting: HashSet::new(),
            changed: HashSet::new(),
            spoiled: sweep.spoiled.clone(),
            begun: HashMap::new(),
            cells: Cells::of(runs.iter().map(planned)),
            runs_under_way: 0,
            pools: Pools::behind(sweep.settled + runs.len()),
            over: HashMap::new(),
            early: EarlyEnds::of(sweep.expansion, &sweep.todo, graph),
            fatal: None,
            summary: Summary::default(),
        }
    }

    fn go(&mut self, receiver: &Receiver<(NodeIndex, Answer)>) -> Result<(), SweepError> {
        let mut todo: Vec<RunView> = self.views.values().cloned().collect();
        todo.sort_by_key(|run| run.number);
        self.first_look()?;
        let open = self.pools_that_go_on().into_iter().chain(self.sweep.later.iter().cloned()).collect();
        let runs = &self.sweep.expansion.runs;
        let starts = self.graph.launches(self.sweep.expansion).map(|run| runs[run].spec.endpoint.name.clone());
        let (starts, settled) = (starts.collect(), self.sweep.settled);
        self.observer.event(Event::Begin { todo, settled, open, starts });
        loop {
            self.look_for_stop();
            while !self.halted() {
                let Some(node) = self.walk.next_node() else { break };
                if let Err(error) = self.start(node) {
                    self.fatal.get_or_insert(error);
                    self.halt.send_replace(true);
                    self.walk.done(node, Outcome::Failed);
                }
            }
            // After a stop, the scheduler waits only for runs. It does not wait for probes, which may hang
            // and have no results to save.
            if self.walk.under_way() == 0 || (self.halted() && self.runs_under_way == 0) {
                break;
            }
            self.tell_slow_probes();
            // The timeout ensures that a stop is noticed soon.
            if let Ok((node, answer)) = receiver.recv_timeout(Duration::from_millis(50)) {
                self.take(node, answer);
            }
        }
        // Runs that were waiting for a probe remain to be done too, like runs that were begun and stopped.
        self.summary.left += self.asking.len();
        let is_over = |run: usize| self.over.contains_key(&self.sweep.expansion.runs[run].id);
        let is_left =
            |at: &&NodeIndex| matches!(self.node(**at), Node::Run(run) if !self.early.leaves_out(run) && !is_over(run));
        self.summary.left += self.walk.left().iter().filter(is_left).count();
        self.fatal.take().map_or(Ok(()), Err)
    }

    fn halted(&self) -> bool {
        *self.halt.borrow()
    }

    fn look_for_stop(&mut self) {
        if *self.stop.borrow() && !self.summary.interrupted {
            self.summary.interrupted = true;
            self.observer.event(Event::Stopping);
            self.halt.send_replace(true);
        }
    }

    fn start(&mut self, node: NodeIndex) -> Result<(), SweepError> {
        if self.has_nothing_to_do(node) {
            self.walk.done(node, Outcome::Ok);
            return Ok(());
        }
        if self.is_over_budget(node) {
            self.walk.done(node, Outcome::Ok);
            return Ok(());
        }
        match self.node(node) {
            Node::Gate { .. } => {
                self.walk.done(node, Outcome::Ok);
                Ok(())
            }
            Node::Serve { endpoint, .. } if self.guard.refuses(&endpoint) => {
                self.lose(node, endpoint.clone(), refused(&endpoint));
                Ok(())
            }
            Node::Serve { endpoint, run } if self.sweep.plan.endpoints[&endpoint].launch.is_some() => {
                self.start_server(node, &endpoint, run)
            }
            Node::Serve { endpoint, .. } => {
                let figures = self.sweep.plan.endpoints[&endpoint].mock.clone().unwrap_or_default();
                self.spawn(node, move || Answer::Served(perform::serve(&figures)))
            }
            Node::Probe { endpoint, run } => self.start_probe(node, &endpoint, run),
            Node::Run(run) => self.start_run(node, run),
        }
    }

    /// Returns the current node at this index. If it belongs to a pool, this is the run that was chosen
    /// last.
    fn node(&self, node: NodeIndex) -> Node {
        self.pools.run(node).map_or_else(|| self.graph.node(node).clone(), Node::Run)
    }

    /// Runs `work` on its own thread. The result is sent as a message, even if `work` panics.
    fn spawn(&self, node: NodeIndex, work: impl FnOnce() -> Answer + Send + 'static) -> Result<(), SweepError> {
        let answers = self.answers.clone();
        thread::Builder::new().name("node".to_owned()).spawn(move || {
            let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(Answer::Panicked);
            // A failed send is ignored, because the scheduler may be gone.
            let _ = answers.send((node, answer));
        })?;
        Ok(())
    }

    fn start_run(&mut self, node: NodeIndex, at: usize) -> Result<(), SweepError> {
        if let Some(is_settled) = self.over.get(&self.sweep.expansion.runs[at].id).copied() {
            self.was_measured(node, at, is_settled);
            return Ok(());
        }
        let endpoint = self.sweep.expansion.runs[at].spec.endpoint.name.clone();
        if !self.lost.contains_key(&endpoint) && self.is_someone_elses(node, at)? {
            return Ok(());
        }
        if let Some(reason) = self.lost.get(&endpoint).cloned() {
            self.skip(node, at, reason);
            return Ok(());
        }
        if self.needs_another_server(at) {
            return self.change_server(node, at);
        }
        if self.doubted.contains(&endpoint) {
            self.asking.insert(node);
            let spec = Arc::clone(&self.sweep.expansion.runs[at].spec);
            return self.ask(node, &endpoint, (&spec, false), Duration::ZERO);
        }
        self.begin(node, at)
    }

    fn begin(&mut self, node: NodeIndex, at: usize) -> Result<(), SweepError> {
        let run: PlannedRun = self.sweep.expansion.runs[at].clone();
        let live = self.servers.get(&run.spec.endpoint.name);
        let target = live.and_then(|live| live.target.clone()).expect("a run starts after its endpoint's probe");
        let found = live.map(|live| live.found.clone()).unwrap_or_default();
        let watch = live.and_then(|live| live.launched.as_ref()).map(|started| started.server.watch().clone());
        let launched = watch.zip(live.and_then(|live| live.start.clone()));
        let (id, writer) = (run.id.to_string(), self.sweep.writer);
        let is_afresh = !self.begun.contains_key(&at) && self.sweep.afresh[at];
        let attempt = if is_afresh { writer.begin_afresh(&id, &run.spec) } else { writer.begin(&id, &run.spec) }?;
        let retries = self.retries(at);
        let progress = Arc::new(Progress::default());
        self.begun.insert(at, Arc::clone(&progress));
        self.observer.event(Event::Started { run: self.views[&at].clone(), progress: Arc::clone(&progress) });
        let (reason, stop) = (self.sweep.replaces[at].clone(), self.halt.subscribe());
        let tokenizers = Arc::clone(&self.tokenizers);
        let endpoint = &self.sweep.plan.endpoints[&run.spec.endpoint.name];
        let resource = self.sweep.expansion.resources[&run.spec.endpoint.name].clone();
        let (settle, answers) = (Arc::clone(&self.settle), self.answers.clone());
        let tell = Box::new(move |what| drop(answers.send((node, Answer::Busy(what)))));
        let (is_first, is_last) = self.cells.begin(at, &run);
        let folder = self.sweep.folder.to_owned();
        let order = Order {
            hooks: RunHooks { endpoint: endpoint.clone(), folder, is_first, is_last },
            ready: endpoint.ready_path(),
            starts: shared_load::starts(self.sweep.plan, &run),
            run,
            attempt,
            target,
            found,
            tokenizers,
            reason,
            retries,
            progress,
            stop,
            settle,
            launched,
            resource,
            tell,
        };
        self.spawn(node, move || Answer::Ran(perform::execute(order)))?;
        self.runs_under_way += 1;
        Ok(())
    }

    fn take(&mut self, node: NodeIndex, answer: Answer) {
        self.unanswered.remove(&node);
        match (self.node(node), answer) {
            (Node::Serve { endpoint, .. }, Answer::Launched(Ok(started))) => {
                self.server_started(node, endpoint, started);
            }
            (Node::Serve { endpoint, .. }, Answer::Launched(Err(error))) => self.lose(node, endpoint, error.reason),
            (Node::Serve { endpoint, .. }, Answer::Served(Ok(embedded))) => {
                self.servers.insert(endpoint, Live { embedded: Some(embedded), ..Live::default() });
                self.walk.done(node, Outcome::Ok);
            }
            (Node::Probe { endpoint, .. }, Answer::Waits(waiting)) => self.waits(node, endpoint, waiting),
            (Node::Run(run), Answer::Waits(waiting)) => {
                let endpoint = self.sweep.expansion.runs[run].spec.endpoint.name.clone();
                self.waits(node, endpoint, waiting);
            }
            (Node::Probe { endpoint, run }, Answer::Probed(asked)) => match self.asked(&endpoint, *asked) {
                Ok(()) => drop(self.walk.done(node, Outcome::Ok)),
                Err(unready) if unready.has_ended && !unready.is_final && !self.halted() => {
                    self.start_failed(node, endpoint, run, unready);
                }
                Err(unready) => {
                    if unready.is_final {
                        self.wants_a_change.insert(endpoint.clone());
                        self.remember_as_hopeless(run, Hopeless::WantsAChange(unready.reason.clone()));
                    }
                    self.lose(node, endpoint, unready.reason);
                }
            },
            (Node::Run(run), Answer::Probed(asked)) => self.asked_again(node, run, *asked),
            (Node::Serve { endpoint, .. }, Answer::Served(Err(reason))) => self.lose(node, endpoint, reason),
            (Node::Serve { endpoint, .. } | Node::Probe { endpoint, .. }, _) => {
                self.lose(node, endpoint, "its thread panicked; this is a bug in sweepline".to_owned());
            }
            (Node::Run(_), Answer::Rested) if self.pools.went_on(node) => self.walk.again(node),
            (Node::Run(_), Answer::Rested) => drop(self.walk.done(node, Outcome::Ok)),
            (Node::Run(run), Answer::Busy(what)) => {
                let endpoint = self.sweep.expansion.runs[run].spec.endpoint.name.clone();
                self.observer.event(Event::Busy { endpoint, what });
            }
            (Node::Run(run), Answer::Ran(result)) => self.run_ended(node, run, result),
            (Node::Run(run), _) if self.asking.remove(&node) => {
                self.skip(
                    node,
                    run,
                    "the thread that probed its server panicked; this is a bug in sweepline".to_owned(),
                );
            }
            (Node::Run(run), _) => {
                let reason = "its thread panicked; this is a bug in sweepline".to_owned();
                self.run_ended(node, run, Err(RunError::Failed(reason)));
            }
            (Node::Gate { .. }, _) => {}
        }
    }
}

/// Returns the reason for skipping runs if the server of their endpoint is refused.
fn refused(endpoint: &str) -> String {
    format!("the server of endpoint `{endpoint}` is not the expected one")
}

/// Decrements the count of `name` and returns the new count.
fn one_less(counts: &mut HashMap<String, usize>, name: &str) -> usize {
    let count = counts.get_mut(name).expect("every run was counted");
    *count -= 1;
    *count
}
