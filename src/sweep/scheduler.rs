//! Walks the graph. Nodes run on threads of their own and answer by message; only this thread touches the walk, the
//! servers and the observer.

mod choices;
mod ended;
mod endings;
mod launches;
mod pools;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use petgraph::graph::NodeIndex;
use tokio::sync::watch;

use crate::engine::{Progress, Target};
use crate::expand::{Expansion, PlannedRun, RunSpec};
use crate::graph::{Graph, GraphError, Node, Outcome, SkipReason, Walk, build};
use crate::plan::{Engine, Plan};
use crate::rows::Spoiled;
use crate::server::{Embedded, Found, Unready};
use crate::store::{StoreError, Writer};
use crate::units::Nanos;

use super::environment::{Expected, Guard, LaunchedSaid};
use super::event::{Event, Naming, Observer, RunView};
use super::first_look::FirstLook;
use super::hooks::{self, Cells, RunHooks};
use super::launching::{NotStarted, Started};
use super::live::Live;
use super::perform::{self, Order, Retries, RunError};
use super::ready::{Asking, LOOK_UP, ProbeOutcome, Waiting};
use super::settle::Settle;
use super::tokenizers::Tokenizers;
use ended::EarlyEnds;
pub(crate) use ended::EndsOf;
pub(crate) use pools::Choices;
use pools::Pools;

/// For how long the first look at a server saves another one.
const FRESH: Duration = Duration::from_secs(30);

/// What is to be executed.
pub struct Sweep<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The plan's folder: secrets may lie under it.
    pub folder: &'a Path,
    /// Its runs.
    pub expansion: &'a Expansion,
    /// For each run whether it is to be executed.
    pub(crate) todo: Vec<bool>,
    /// Runs of the selection that are not to be executed: numbers go on behind them.
    pub(crate) settled: usize,
    /// For each run why its committed result is replaced, if it has one.
    pub(crate) replaces: Vec<Option<String>>,
    /// For each run how many attempts the environment spoiled that count.
    pub spoiled: Vec<u32>,
    /// For each run whether that count begins anew: it was given up, and the user asks for it again.
    pub afresh: Vec<bool>,
    /// What must not change, and what was said of it before the sweep.
    pub(crate) environment: Expected,
    /// The results folder, locked.
    pub writer: &'a Writer,
    /// Where logs and leases of launched servers are written.
    pub servers: PathBuf,
    /// Most runs at once.
    pub jobs: usize,
    /// What chooses among the runs of pools; none where the plan has none.
    pub(crate) choices: Option<Choices<'a>>,
    /// When cells end whose repeats may end early; none where the plan has no such cells.
    pub(crate) ends: Option<EndsOf<'a>>,
    /// Stop at the first failure.
    pub(crate) fail_fast: bool,
}

/// How a sweep came out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Runs committed.
    pub committed: usize,
    /// Runs that failed.
    pub failed: usize,
    /// Runs that were given up: the environment spoiled every attempt.
    pub given_up: usize,
    /// Runs that were not executed because their endpoint was not ready in time.
    pub skipped: usize,
    /// Runs that were not measured, or not committed, because their server is not the one that the plan or the results want, or
    /// is two: somebody must mend that.
    pub refused: usize,
    /// Runs that were left because the sweep was stopped.
    pub left: usize,
    /// Runs that were left out because their cells had ended: they are not needed.
    pub pruned: usize,
    /// Whether it was told to stop.
    pub interrupted: bool,
    /// What the servers said that were launched for it.
    pub(crate) launched: Vec<LaunchedSaid>,
}

impl Summary {
    /// This, and what came out of another one after it.
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
            launched: second.launched,
        }
    }
}

/// Why a sweep cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The plan has no graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The results folder.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Endpoints that no waiting makes ready, each with its reason.
    #[error("{}", told(.0))]
    Endpoints(Vec<(String, String)>),
    /// The system starts no more threads.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// How long a server is left alone before a run is tried again for the first time; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// What is shorter needs no words.
const LONG_PAUSE: Duration = Duration::from_secs(2);
/// The longest such pause that the server does not ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A probe that is not answered for so long is told.
const SLOW_PROBE: Duration = Duration::from_secs(2);

/// A server that has been asked and has not answered.
struct Unanswered {
    since: Instant,
    endpoint: String,
    url: String,
}

fn told(endpoints: &[(String, String)]) -> String {
    let told: Vec<String> = endpoints.iter().map(|(name, reason)| format!("endpoint `{name}`: {reason}")).collect();
    told.join("\n")
}

/// What a node answers.
enum Answer {
    Served(Result<Embedded, String>),
    /// A server that the plan launches was started, or was not.
    Launched(Result<Started, NotStarted>),
    /// What a run's server is still busy with; the run goes on.
    Busy(String),
    /// Its server is not ready yet; it goes on asking.
    Waits(Waiting),
    /// Its server is ready, or will not be.
    Probed(Box<ProbeOutcome>),
    /// With the pause after it.
    Ran(Result<(), RunError>),
    /// The pause after a run is over.
    Rested,
    /// The node's thread panicked.
    Panicked,
}

/// Executes what is to be executed. `stop` turns true when the user wants it to end.
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
    /// The user's wish to stop, and ours to the runs under way.
    stop: watch::Receiver<bool>,
    halt: watch::Sender<bool>,
    answers: Sender<(NodeIndex, Answer)>,
    /// Servers that have not answered the first probe of a wait, until the user hears that they take their time.
    unanswered: HashMap<NodeIndex, Unanswered>,
    servers: HashMap<String, Live>,
    /// Launched servers that are being ended, by the resource that they hold until then.
    retiring: HashMap<String, Vec<JoinHandle<()>>>,
    /// How often the server behind a probe ended before it was ready.
    failed_starts: HashMap<NodeIndex, u32>,
    /// Runs left on each endpoint; with the last one its embedded server goes.
    runs_left: HashMap<String, usize>,
    /// Runs left on each resource; the last one needs no pause after it.
    waiting: HashMap<String, usize>,
    views: HashMap<usize, RunView>,
    tokenizers: Arc<Tokenizers>,
    settle: Arc<Settle>,
    /// How long each endpoint was waited for so far.
    waited: HashMap<String, Duration>,
    /// Endpoints on which something failed since they were asked last: asked again before the next run.
    doubted: HashSet<String>,
    /// Endpoints that were not ready in time, or are refused.
    lost: HashMap<String, String>,
    /// Endpoints whose launched server answers in a way that no waiting changes: the plan, or the server, must be another one.
    wants_a_change: HashSet<String>,
    /// Whether servers are the expected ones, and each is one.
    guard: Guard,
    /// Runs whose server is being asked again before they start.
    asking: HashSet<NodeIndex>,
    /// Runs of those whose server is being ended, since each attempt wants a new one.
    restarting: HashSet<NodeIndex>,
    /// Runs for which the server was started anew with other settings.
    changed: HashSet<usize>,
    /// How many attempts at each run the environment spoiled, those of earlier invocations included.
    spoiled: Vec<u32>,
    /// Runs of which an attempt was begun, with the live counters of the last one.
    begun: HashMap<usize, Arc<Progress>>,
    /// Which runs are the first and the last of their cells.
    cells: Cells,
    runs_under_way: usize,
    /// What the nodes of pools stand for.
    pools: Pools,
    /// What is left out since its cell has ended.
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
            asking: HashSet::new(),
            restarting: HashSet::new(),
            changed: HashSet::new(),
            spoiled: sweep.spoiled.clone(),
            begun: HashMap::new(),
            cells: Cells::of(runs.iter().map(planned)),
            runs_under_way: 0,
            pools: Pools::behind(sweep.settled + runs.len()),
            early: EarlyEnds::of(sweep.expansion, &sweep.todo, graph),
            fatal: None,
            summary: Summary::default(),
        }
    }

    fn go(&mut self, receiver: &Receiver<(NodeIndex, Answer)>) -> Result<(), SweepError> {
        let mut todo: Vec<RunView> = self.views.values().cloned().collect();
        todo.sort_by_key(|run| run.number);
        self.first_look()?;
        self.observer.event(Event::Begin { todo, settled: self.sweep.settled });
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
            // Once stopped, only runs are waited for: a probe of a server that hangs has nothing to bring home.
            if self.walk.under_way() == 0 || (self.halted() && self.runs_under_way == 0) {
                break;
            }
            self.tell_slow_probes();
            // Bounded, so that a wish to stop is seen soon.
            if let Ok((node, answer)) = receiver.recv_timeout(Duration::from_millis(50)) {
                self.take(node, answer);
            }
        }
        // Beside those that were begun and abandoned.
        self.summary.left += self.asking.len();
        let is_left = |at: &&NodeIndex| matches!(self.graph.node(**at), Node::Run(run) if !self.early.leaves_out(*run));
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

    /// What a node stands for now: that of a pool for the member that was chosen last.
    fn node(&self, node: NodeIndex) -> Node {
        self.pools.run(node).map_or_else(|| self.graph.node(node).clone(), Node::Run)
    }

    /// Runs `work` on a thread of its own; its answer comes by message, also if it panics.
    fn spawn(&self, node: NodeIndex, work: impl FnOnce() -> Answer + Send + 'static) -> Result<(), SweepError> {
        let answers = self.answers.clone();
        thread::Builder::new().name("node".to_owned()).spawn(move || {
            let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(Answer::Panicked);
            // The scheduler may have given up.
            let _ = answers.send((node, answer));
        })?;
        Ok(())
    }

    /// Asks every server once, all at the same time, before anything is sent. What an edit must mend ends the sweep here, all
    /// of it in one message; what time may bring is waited for when its runs come.
    fn first_look(&mut self) -> Result<(), SweepError> {
        let mut names: Vec<String> = self.runs_left.keys().cloned().collect();
        let mut wrong = self.wrong_launches(&names);
        wrong.extend(self.wrong_hooks());
        names.retain(|name| self.sweep.plan.endpoints[name].is_served_elsewhere());
        names.sort_by_key(|name| self.sweep.plan.endpoints.get_index_of(name));
        let mut look =
            FirstLook::start(names.iter().map(|name| (name.clone(), self.asking(name, self.first_spec(name), true))))?;
        let mut is_told = false;
        while !look.is_over() {
            self.look_for_stop();
            if self.halted() {
                return Ok(());
            }
            look.take(LOOK_UP);
            if !is_told && look.since() > SLOW_PROBE {
                is_told = true;
                for (endpoint, url) in look.unanswered() {
                    self.observer.event(Event::Slow { endpoint, url });
                }
            }
        }
        wrong.extend(std::mem::take(&mut look.wrong));
        for (name, (target, found)) in look.ready {
            if let Err(reason) = self.guard.take(&name, None, &found.said, &self.sweep.expansion.runs) {
                wrong.push((name, reason));
                continue;
            }
            let asked = Some(Instant::now());
            self.servers.insert(name, Live { target: Some(target), found, asked, ..Live::default() });
        }
        wrong.sort_by_key(|(name, _)| self.sweep.plan.endpoints.get_index_of(name));
        if wrong.is_empty() { Ok(()) } else { Err(SweepError::Endpoints(wrong)) }
    }

    /// What is wrong with hooks before anything is sent: endpoint and reason, each once.
    fn wrong_hooks(&self) -> Vec<(String, String)> {
        let Sweep { plan, folder, expansion, todo, .. } = self.sweep;
        let mut wrong: Vec<(String, String)> = Vec::new();
        for (run, _) in expansion.runs.iter().zip(todo).filter(|(_, todo)| **todo) {
            let name = &run.spec.endpoint.name;
            let endpoint = &plan.endpoints[name];
            if wrong.iter().any(|(other, _)| other == name) || endpoint.hooks.is_empty() {
                continue;
            }
            if let Err(reason) = hooks::look(endpoint, folder, run) {
                wrong.push((name.clone(), reason));
            }
        }
        wrong
    }

    /// What is asked of an endpoint before runs like `spec`; `all_models` that its runs send are asked for before the first of them.
    fn asking(&self, name: &str, spec: &Arc<RunSpec>, all_models: bool) -> Asking {
        let endpoint = self.sweep.plan.endpoints[name].clone();
        let live = self.servers.get(name);
        let embedded = live.and_then(|live| live.embedded.as_ref());
        let embedded = embedded.map(|embedded| (embedded.url().to_owned(), embedded.alive()));
        let started = live.and_then(|live| live.launched.as_ref());
        let served = started.map(|started| (started.url.clone(), started.server.watch().alive())).or(embedded);
        let watch = started.map(|started| started.server.watch().clone());
        let launched = endpoint.launch.is_some().then(|| (self.launching(name, spec), watch));
        let mut other_models = Vec::new();
        if all_models {
            let of_server = self.specs(name).filter(|other| other.endpoint.launch == spec.endpoint.launch);
            other_models.extend(of_server.map(|spec| spec.model.id.clone()));
            other_models.sort();
            other_models.dedup();
            other_models.retain(|model| *model != spec.model.id);
        }
        Asking {
            endpoint,
            served,
            launched,
            is_first: false,
            restarts: false,
            spec: Arc::clone(spec),
            other_models,
            secrets: perform::secrets_of(self.specs(name)),
            folder: self.sweep.folder.to_owned(),
        }
    }

    /// The first run to do on an endpoint.
    fn first_spec(&self, name: &str) -> &'a Arc<RunSpec> {
        self.specs(name).next().expect("an endpoint is asked for its runs")
    }

    /// The specs of the runs to do on an endpoint, in the order of the plan.
    fn specs(&self, endpoint: &str) -> impl Iterator<Item = &'a Arc<RunSpec>> {
        let Sweep { expansion, todo, .. } = self.sweep;
        let runs = expansion.runs.iter().zip(todo).filter(|(_, todo)| **todo);
        runs.map(|(run, _)| &run.spec).filter(move |spec| spec.endpoint.name == endpoint)
    }

    fn start_probe(&mut self, node: NodeIndex, name: &str, run: usize) -> Result<(), SweepError> {
        let is_fresh = |live: &Live| live.asked.is_some_and(|asked| asked.elapsed() < FRESH);
        if let Some(live) = self.servers.get(name).filter(|live| is_fresh(live)) {
            let engine = self.sweep.plan.endpoints[name].engine;
            let said = live.target.as_ref().map(|target| describe(target, &live.found, engine)).unwrap_or_default();
            self.observer.event(Event::Endpoint { endpoint: name.to_owned(), result: Ok(said) });
            let far = live.found.not_near.clone();
            self.tell_far(name, far);
            self.walk.done(node, Outcome::Ok);
            return Ok(());
        }
        let is_launched = self.sweep.plan.endpoints[name].launch.is_some();
        let spec = if is_launched { &self.sweep.expansion.runs[run].spec } else { self.first_spec(name) };
        self.ask(node, name, (&Arc::clone(spec), true), Duration::ZERO)
    }

    /// Asks an endpoint on a thread of its own until it is ready, for as long as it may still be waited for; the first time
    /// after a pause.
    fn ask(
        &mut self,
        node: NodeIndex,
        name: &str,
        (spec, all_models): (&Arc<RunSpec>, bool),
        pause: Duration,
    ) -> Result<(), SweepError> {
        let mut asking = self.asking(name, spec, all_models);
        asking.restarts = self.restarting.remove(&node);
        asking.is_first =
            matches!(self.graph.node(node), Node::Probe { .. }) && !self.failed_starts.contains_key(&node);
        if let Some(url) = asking.url().filter(|_| pause.is_zero()) {
            self.unanswered.insert(node, Unanswered { since: Instant::now(), endpoint: name.to_owned(), url });
        }
        let within = Duration::from(asking.endpoint.ready_within());
        let left = within.saturating_sub(self.waited.get(name).copied().unwrap_or_default());
        let (halt, answers) = (self.halt.subscribe(), self.answers.clone());
        let tell = move |waiting| drop(answers.send((node, Answer::Waits(waiting))));
        self.spawn(node, move || Answer::Probed(Box::new(asking.wait(pause, left, &halt, tell))))
    }

    /// Says once of each server that takes its time what is being waited for.
    fn tell_slow_probes(&mut self) {
        let slow = |_: &NodeIndex, asked: &mut Unanswered| asked.since.elapsed() > SLOW_PROBE;
        for (_, Unanswered { endpoint, url, .. }) in self.unanswered.extract_if(slow) {
            self.observer.event(Event::Slow { endpoint, url });
        }
    }

    fn start_run(&mut self, node: NodeIndex, at: usize) -> Result<(), SweepError> {
        let endpoint = self.sweep.expansion.runs[at].spec.endpoint.name.clone();
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

    /// How often the environment may spoil a run, and has.
    fn retries(&self, at: usize) -> Retries {
        let endpoint = &self.sweep.expansion.runs[at].spec.endpoint.name;
        Retries { spoiled: self.spoiled[at], allowed: self.sweep.plan.endpoints[endpoint].retries() }
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
                    self.start_failed(node, endpoint, run, unready.reason);
                }
                Err(unready) => {
                    if unready.is_final {
                        self.wants_a_change.insert(endpoint.clone());
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
                    "the thread that asked its server panicked; this is a bug in sweepline".to_owned(),
                );
            }
            (Node::Run(run), _) => {
                let reason = "its thread panicked; this is a bug in sweepline".to_owned();
                self.run_ended(node, run, Err(RunError::Failed(reason)));
            }
            (Node::Gate { .. }, _) => {}
        }
    }

    fn waits(&mut self, node: NodeIndex, endpoint: String, waiting: Waiting) {
        self.walk.wait(node);
        self.observer.event(Event::Waiting { endpoint, waiting });
    }

    /// Keeps what an endpoint said, or gives why it cannot be measured.
    fn asked(&mut self, endpoint: &str, asked: ProbeOutcome) -> Result<(), Unready> {
        *self.waited.entry(endpoint.to_owned()).or_default() += asked.waited;
        if let Some(embedded) = asked.embedded {
            self.servers.entry(endpoint.to_owned()).or_default().embedded = Some(embedded);
        }
        if let Some(started) = asked.launched {
            let live = self.servers.entry(endpoint.to_owned()).or_default();
            (live.start, live.target) = (None, None);
            // The one before has ended, or was not there.
            let before = live.launched.replace(started);
            self.retire(endpoint, before);
        }
        let (target, found) = asked.answer?;
        let runs = &self.sweep.expansion.runs;
        let live = self.servers.entry(endpoint.to_owned()).or_default();
        let launched = live.launched.as_ref().map(|started| &started.spec);
        self.guard.take(endpoint, launched, &found.said, runs).map_err(Unready::for_good)?;
        let said = describe(&target, &found, self.sweep.plan.endpoints[endpoint].engine);
        let is_known = live.found.not_near.is_some();
        let far = found.not_near.clone().filter(|_| !is_known);
        (live.target, live.found, live.asked) = (Some(target), found, Some(Instant::now()));
        if let (Some(started), None) = (&live.launched, &live.start) {
            let (start, after) = started.ready(asked.answered, &self.sweep.servers);
            let log = started.server.watch().log().display().to_string();
            live.start = Some(start);
            self.observer.event(Event::Launched { endpoint: endpoint.to_owned(), after, log });
        }
        self.doubted.remove(endpoint);
        self.observer.event(Event::Endpoint { endpoint: endpoint.to_owned(), result: Ok(said) });
        self.tell_far(endpoint, far);
        Ok(())
    }

    /// Tells that a server is not near, where the plan says that it is.
    fn tell_far(&mut self, endpoint: &str, far: Option<String>) {
        if let Some(why) = far {
            self.observer.event(Event::Far { endpoint: endpoint.to_owned(), why });
        }
    }

    /// The server of a run was asked again before it starts.
    fn asked_again(&mut self, node: NodeIndex, at: usize, asked: ProbeOutcome) {
        if !self.asking.remove(&node) {
            return;
        }
        let endpoint = self.sweep.expansion.runs[at].spec.endpoint.name.clone();
        match self.asked(&endpoint, asked) {
            _ if self.halted() => {
                self.summary.left += 1;
                self.walk.done(node, Outcome::Skipped);
            }
            // Another run may have started meanwhile; the walk gives this one out when that has ended.
            Ok(()) if self.walk.come_back(node) => {}
            Ok(()) => {
                if let Err(error) = self.begin(node, at) {
                    self.fatal.get_or_insert(error);
                    self.halt.send_replace(true);
                    self.walk.done(node, Outcome::Failed);
                }
            }
            // What a server cannot even start with is an answer, and the next settings are tried.
            Err(unready) if unready.has_ended && !unready.is_final && self.changed.contains(&at) => {
                self.changed_in_vain(node, at, unready.reason);
            }
            Err(unready) => {
                let is_final = unready.is_final;
                self.observer.event(Event::Endpoint { endpoint: endpoint.clone(), result: Err(unready.reason) });
                let skip = SkipReason::NotReady { endpoint: endpoint.clone() }.to_string();
                // A model that is gone, say, is that of this run; others of the endpoint may be there.
                let is_refused = self.guard.refuses(&endpoint);
                let skip = if is_refused { refused(&endpoint) } else { skip };
                if !is_final || is_refused {
                    self.lost.insert(endpoint, skip.clone());
                }
                self.skip(node, at, skip);
                if self.sweep.fail_fast {
                    self.halt.send_replace(true);
                }
            }
        }
    }

    /// Something failed on an endpoint: it, and all that share its resource, are asked again before their next run.
    fn doubt(&mut self, endpoint: &str) {
        let resources = &self.sweep.expansion.resources;
        let shared = |name: &&String| resources[*name] == resources[endpoint];
        self.doubted.extend(self.runs_left.keys().filter(shared).cloned());
    }

    /// Counts a run that is left out.
    fn count_skipped(&mut self, endpoint: &str) {
        let is_refused = self.guard.refuses(endpoint) || self.wants_a_change.contains(endpoint);
        let count = if is_refused { &mut self.summary.refused } else { &mut self.summary.skipped };
        *count += 1;
    }

    /// Leaves out a run that was given out.
    fn skip(&mut self, node: NodeIndex, at: usize, reason: String) {
        let endpoint = &self.sweep.expansion.runs[at].spec.endpoint.name;
        self.count_skipped(endpoint);
        self.cells.end(&self.sweep.expansion.runs[at]);
        if one_less(&mut self.runs_left, endpoint) == 0 {
            self.forget(endpoint);
        }
        one_less(&mut self.waiting, &self.sweep.expansion.resources[endpoint]);
        self.observer.event(Event::Skipped { run: self.views[&at].clone(), reason });
        self.walk.done(node, Outcome::Skipped);
    }

    /// An endpoint cannot be made ready: its runs are left out.
    fn lose(&mut self, node: NodeIndex, endpoint: String, reason: String) {
        let is_stopped = self.halted();
        if !is_stopped {
            self.observer.event(Event::Endpoint { endpoint: endpoint.clone(), result: Err(reason) });
        }
        for skipped in self.walk.done(node, Outcome::Failed) {
            if let Node::Run(run) = self.graph.node(skipped.node) {
                if self.early.leaves_out(*run) {
                    continue;
                }
                // It may be ready next time: nobody waited to the end.
                if is_stopped {
                    self.summary.left += 1;
                    continue;
                }
                self.count_skipped(&endpoint);
                self.cells.end(&self.sweep.expansion.runs[*run]);
                one_less(&mut self.runs_left, &endpoint);
                one_less(&mut self.waiting, &self.sweep.expansion.resources[&endpoint]);
                let is_refused = self.guard.refuses(&endpoint);
                let reason = if is_refused { refused(&endpoint) } else { skipped.reason.to_string() };
                let event = Event::Skipped { run: self.views[run].clone(), reason };
                self.observer.event(event);
            }
        }
        self.forget(&endpoint);
        if self.sweep.fail_fast {
            self.halt.send_replace(true);
        }
    }

    fn run_ended(&mut self, node: NodeIndex, at: usize, result: Result<(), RunError>) {
        self.runs_under_way -= 1;
        let given_up = self.summary.given_up;
        let run = &self.sweep.expansion.runs[at];
        let view = self.views[&at].clone();
        // Whether the run has ended for good, and a search may go on from it.
        let mut is_settled = result.is_ok();
        let outcome = match result {
            Err(RunError::Spoiled(spoiled)) => match self.spoiled(node, at, spoiled) {
                Some(outcome) => {
                    is_settled = self.summary.given_up > given_up;
                    outcome
                }
                None => return,
            },
            Ok(()) => {
                self.summary.committed += 1;
                if self.begun.get(&at).is_some_and(|progress| progress.ended.get() == progress.failed.get()) {
                    self.doubt(&run.spec.endpoint.name);
                }
                self.observer.event(Event::Committed { run: view });
                Outcome::Ok
            }
            Err(RunError::Stopped) => {
                self.summary.left += 1;
                Outcome::Skipped
            }
            Err(RunError::Failed(reason)) => {
                self.summary.failed += 1;
                self.doubt(&run.spec.endpoint.name);
                self.observer.event(Event::Failed { run: view, reason });
                if self.sweep.fail_fast {
                    self.halt.send_replace(true);
                }
                Outcome::Failed
            }
            Err(RunError::TwoVersions(reason)) => {
                let endpoint = run.spec.endpoint.name.clone();
                self.summary.refused += 1;
                self.guard.refuse(&endpoint);
                self.lost.insert(endpoint.clone(), refused(&endpoint));
                self.observer.event(Event::Failed { run: view, reason });
                if self.sweep.fail_fast {
                    self.halt.send_replace(true);
                }
                Outcome::Failed
            }
            Err(RunError::Store(error)) => {
                self.observer.event(Event::Failed { run: view, reason: error.to_string() });
                self.fatal.get_or_insert(error.into());
                self.halt.send_replace(true);
                Outcome::Failed
            }
        };
        let goes_on = !self.halted() && is_settled && self.choose_next(node, at);
        if is_settled {
            self.end_early(at);
        }
        let endpoint = &run.spec.endpoint.name;
        self.cells.end(run);
        if one_less(&mut self.runs_left, endpoint) == 0 {
            self.forget(endpoint);
        }
        // Another endpoint may wait for the same resource.
        let last = one_less(&mut self.waiting, &self.sweep.expansion.resources[endpoint]) == 0;
        let pause = Duration::from(run.spec.between.cooldown);
        if !pause.is_zero() && !last && !self.halted() && self.rest(node, pause).is_ok() {
            if goes_on {
                self.pools.goes_on(node);
            }
        } else if goes_on {
            self.walk.again(node);
        } else {
            self.walk.done(node, outcome);
        }
    }

    /// The environment spoiled an attempt. The run is tried again when its server is well: then nothing is given. Otherwise how it
    /// ended.
    fn spoiled(&mut self, node: NodeIndex, at: usize, spoiled: Spoiled) -> Option<Outcome> {
        let retries = self.retries(at);
        self.spoiled[at] += 1;
        let spec = Arc::clone(&self.sweep.expansion.runs[at].spec);
        self.doubt(&spec.endpoint.name);
        let run = self.views[&at].clone();
        let is_spent = retries.allowed == 0 || retries.given_up_with_this().is_some();
        let pause = pause_after(&spoiled, self.spoiled[at]);
        let within = Duration::from(self.sweep.plan.endpoints[&spec.endpoint.name].ready_within());
        let is_too_long = pause > within.max(LONGEST_PAUSE);
        if is_too_long {
            // For the whole endpoint: whoever runs the same command later begins behind it.
            let (name, pause) = (&spec.endpoint.name, Nanos::from(pause));
            let reason = format!(
                "endpoint `{name}` asks to be left alone for {pause} (Retry-After), longer than `ready.within`"
            );
            self.lost.insert(name.clone(), reason);
        }
        if !is_spent && !is_too_long && !self.sweep.fail_fast && !self.halted() {
            let (detail, again, of) = (spoiled.detail, self.spoiled[at], retries.allowed);
            self.observer.event(Event::Again { run, reason: detail, again, of });
            if pause >= LONG_PAUSE {
                let is_asked_for = spoiled.retry_after.is_some_and(|asked| Duration::from(asked) == pause);
                let reason = if is_asked_for {
                    "the server asks for it (Retry-After)"
                } else {
                    "a pause before the next attempt"
                };
                let waiting = Waiting { reason: reason.to_owned(), waited: Duration::ZERO, within: pause };
                self.observer.event(Event::Waiting { endpoint: spec.endpoint.name.clone(), waiting });
            }
            self.walk.wait(node);
            self.asking.insert(node);
            let restarts = spec.endpoint.restarts();
            if restarts {
                self.restarting.insert(node);
            }
            return match self.ask(node, &spec.endpoint.name, (&spec, false), pause) {
                Ok(()) => {
                    if restarts {
                        self.end_server(&spec.endpoint.name);
                    }
                    None
                }
                Err(error) => {
                    self.asking.remove(&node);
                    self.fatal.get_or_insert(error);
                    self.halt.send_replace(true);
                    Some(Outcome::Failed)
                }
            };
        }
        match retries.given_up_with_this() {
            Some(times) => {
                self.summary.given_up += 1;
                self.observer.event(Event::GivenUp { run, cause: spoiled.cause, reason: spoiled.detail, times });
            }
            None => {
                self.summary.failed += 1;
                self.observer.event(Event::Failed { run, reason: spoiled.detail });
            }
        }
        if self.sweep.fail_fast {
            self.halt.send_replace(true);
        }
        Some(Outcome::Failed)
    }

    /// Keeps a run's resource taken for the pause after it.
    fn rest(&self, node: NodeIndex, pause: Duration) -> Result<(), SweepError> {
        let halt = self.halt.subscribe();
        self.spawn(node, move || {
            let end = std::time::Instant::now() + pause;
            while !*halt.borrow() && std::time::Instant::now() < end {
                thread::sleep(Duration::from_millis(20).min(end.saturating_duration_since(std::time::Instant::now())));
            }
            Answer::Rested
        })
    }
}

/// Why runs of an endpoint are left out whose server is not the expected one.
fn refused(endpoint: &str) -> String {
    format!("the server of endpoint `{endpoint}` is not the expected one")
}

/// How long a server is left alone after it spoiled an attempt: as long as it asks for, and longer each time.
fn pause_after(spoiled: &Spoiled, times: u32) -> Duration {
    let growing = FIRST_PAUSE.saturating_mul(1 << times.saturating_sub(1).min(16)).min(LONGEST_PAUSE);
    spoiled.retry_after.map_or(growing, |asked| growing.max(asked.into()))
}

/// Takes one from the count under `name`; gives what is left.
fn one_less(counts: &mut HashMap<String, usize>, name: &str) -> usize {
    let count = counts.get_mut(name).expect("every run was counted");
    *count -= 1;
    *count
}

/// How many of the models that a server lists are named.
const FEW_MODELS: usize = 20;

fn describe(target: &Target, found: &Found, declared: Engine) -> String {
    let server = found.server.as_deref().map(|server| format!(", server {server}")).unwrap_or_default();
    let version = found.said.version.as_ref().map(|version| format!(", version {version}")).unwrap_or_default();
    let models = if found.models.is_empty() { "no list of models".to_owned() } else { found.listed(FEW_MODELS) };
    let hint = found.said.hint(declared).map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{} answers{server}{version}, models: {models}{hint}", target.authority)
}
