//! The part of the scheduler that probes servers: before any load is sent, before runs, and after a
//! failure.

use std::sync::Arc;
use std::time::{Duration, Instant};

use petgraph::graph::NodeIndex;

use super::{Answer, Scheduler, Sweep, SweepError, Unanswered, refused};
use crate::engine::Target;
use crate::expand::RunSpec;
use crate::graph::{Node, Outcome, SkipReason};
use crate::plan::Engine;
use crate::server::{Found, Unready};
use crate::sweep::event::Event;
use crate::sweep::first_look::FirstLook;
use crate::sweep::live::Live;
use crate::sweep::ready::{Asking, LOOK_UP, ProbeOutcome, Waiting};
use crate::sweep::{perform, preflight};

/// How long the result of a server's first probe remains valid, so that the server is not probed again
/// before its first run.
const FRESH: Duration = Duration::from_secs(30);

/// A server that has not responded to a probe for this long is reported as slow.
const SLOW_PROBE: Duration = Duration::from_secs(2);

impl<'a> Scheduler<'a, '_> {
    /// Probes all servers concurrently before any load is sent. If there are problems that waiting does not
    /// fix, the sweep ends here with an error that contains all of these problems. If other servers are not
    /// ready, the sweep waits for them before their runs.
    pub(super) fn first_look(&mut self) -> Result<(), SweepError> {
        let mut names: Vec<String> = self.runs_left.keys().cloned().collect();
        let unmet = self.unmet();
        self.look_for_stop();
        if self.halted() {
            return Ok(());
        }
        if !unmet.is_empty() {
            return Err(SweepError::Endpoints(unmet));
        }
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
        let mut wrong = std::mem::take(&mut look.wrong);
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

    /// Returns what the runs need and this machine lacks, as the endpoint's name and the reason.
    fn unmet(&self) -> Vec<(String, String)> {
        let Sweep { plan, folder, expansion, todo, .. } = self.sweep;
        let runs = expansion.runs.iter().zip(todo).filter(|(_, todo)| **todo).map(|(run, _)| run);
        let unmet = preflight::unmet_until(plan, folder, runs, Some(&self.stop));
        unmet.into_iter().map(|unmet| (unmet.endpoint, unmet.reason)).collect()
    }

    /// Returns the data for probing an endpoint before runs like `spec`. If `all_models` is set, the probe
    /// covers the models of all runs that use the same server.
    pub(super) fn asking(&self, name: &str, spec: &Arc<RunSpec>, all_models: bool) -> Asking {
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

    /// Returns the spec of the first run to execute on an endpoint.
    pub(super) fn first_spec(&self, name: &str) -> &'a Arc<RunSpec> {
        self.specs(name).next().expect("only endpoints with runs are used")
    }

    /// Returns the specs of the runs to execute on an endpoint, in the order of the plan.
    pub(super) fn specs(&self, endpoint: &str) -> impl Iterator<Item = &'a Arc<RunSpec>> {
        let Sweep { expansion, todo, .. } = self.sweep;
        let runs = expansion.runs.iter().zip(todo).filter(|(_, todo)| **todo);
        runs.map(|(run, _)| &run.spec).filter(move |spec| spec.endpoint.name == endpoint)
    }

    pub(super) fn start_probe(&mut self, node: NodeIndex, name: &str, run: usize) -> Result<(), SweepError> {
        let is_fresh = |live: &Live| live.asked.is_some_and(|asked| asked.elapsed() < FRESH);
        if let Some(live) = self.servers.get(name).filter(|live| is_fresh(live)) {
            let engine = self.sweep.plan.endpoints[name].engine;
            let said = live.target.as_ref().map(|target| describe(target, &live.found, engine)).unwrap_or_default();
            self.observer.event(Event::Endpoint { endpoint: name.to_owned(), result: Ok(said) });
            let (far, refused_list) = (live.found.not_near.clone(), live.found.refused_list);
            self.tell_far(name, far);
            self.tell_refused_list(name, refused_list);
            self.walk.done(node, Outcome::Ok);
            return Ok(());
        }
        let is_launched = self.sweep.plan.endpoints[name].launch.is_some();
        let spec = if is_launched { &self.sweep.expansion.runs[run].spec } else { self.first_spec(name) };
        self.ask(node, name, (&Arc::clone(spec), true), Duration::ZERO)
    }

    /// Starts a thread that probes an endpoint until it is ready or its remaining waiting time is used up.
    /// The first probe is sent after `pause`.
    pub(super) fn ask(
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

    /// Reports servers that are slow to respond to a probe, each of them once.
    pub(super) fn tell_slow_probes(&mut self) {
        let slow = |_: &NodeIndex, asked: &mut Unanswered| asked.since.elapsed() > SLOW_PROBE;
        for (_, Unanswered { endpoint, url, .. }) in self.unanswered.extract_if(slow) {
            self.observer.event(Event::Slow { endpoint, url });
        }
    }

    pub(super) fn waits(&mut self, node: NodeIndex, endpoint: String, waiting: Waiting) {
        self.walk.wait(node);
        self.observer.event(Event::Waiting { endpoint, waiting });
    }

    /// Handles the result of probing an endpoint, and records what its server reported. Fails with the
    /// reason if the endpoint cannot be measured.
    pub(super) fn asked(&mut self, endpoint: &str, asked: ProbeOutcome) -> Result<(), Unready> {
        *self.waited.entry(endpoint.to_owned()).or_default() += asked.waited;
        if let Some(embedded) = asked.embedded {
            self.servers.entry(endpoint.to_owned()).or_default().embedded = Some(embedded);
        }
        if let Some(started) = asked.launched {
            let live = self.servers.entry(endpoint.to_owned()).or_default();
            (live.start, live.target) = (None, None);
            // The previous server, if there was one, has ended.
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
        let refused_list = found.refused_list.filter(|_| live.found.refused_list.is_none());
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
        self.tell_refused_list(endpoint, refused_list);
        Ok(())
    }

    /// Reports that a server is not near, although the plan declares that it is. `far` is the reason;
    /// `None` if there is nothing to report.
    pub(super) fn tell_far(&mut self, endpoint: &str, far: Option<String>) {
        if let Some(why) = far {
            self.observer.event(Event::Far { endpoint: endpoint.to_owned(), why });
        }
    }

    /// Reports that a server refuses to list its models with an HTTP status; `None` if there is nothing to
    /// report.
    fn tell_refused_list(&mut self, endpoint: &str, status: Option<u16>) {
        if let Some(status) = status {
            let note = format!(
                "note: the server refuses to list its models (HTTP {status}), but generates; it was checked with a \
                 generation of one token"
            );
            self.observer.event(Event::ListRefused { endpoint: endpoint.to_owned(), note });
        }
    }

    /// Handles the result of probing the server of a run again before the run starts.
    pub(super) fn asked_again(&mut self, node: NodeIndex, at: usize, asked: ProbeOutcome) {
        if !self.asking.remove(&node) {
            return;
        }
        let endpoint = self.sweep.expansion.runs[at].spec.endpoint.name.clone();
        match self.asked(&endpoint, asked) {
            _ if self.halted() => {
                self.summary.left += 1;
                self.walk.done(node, Outcome::Skipped);
            }
            // If another run has started in the meantime, the walk dispatches this run when the other run
            // has ended.
            Ok(()) if self.walk.come_back(node) => {}
            Ok(()) => {
                if let Err(error) = self.begin(node, at) {
                    self.fatal.get_or_insert(error);
                    self.halt.send_replace(true);
                    self.walk.done(node, Outcome::Failed);
                }
            }
            // A server's failure to start with its settings is a result too, so the search continues with
            // the next settings.
            Err(unready) if unready.has_ended && !unready.is_final && self.changed.contains(&at) => {
                self.changed_in_vain(node, at, unready);
            }
            Err(unready) => {
                let is_final = unready.is_final;
                self.observer.event(Event::Endpoint { endpoint: endpoint.clone(), result: Err(unready.reason) });
                let skip = SkipReason::NotReady { endpoint: endpoint.clone() }.to_string();
                // A final problem may affect only this run: if its model is missing, for example, other
                // models of the endpoint may exist.
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

    /// Records that something failed on an endpoint. All endpoints on its resource are then probed again
    /// before their next run.
    pub(super) fn doubt(&mut self, endpoint: &str) {
        let resources = &self.sweep.expansion.resources;
        let shared = |name: &&String| resources[*name] == resources[endpoint];
        self.doubted.extend(self.runs_left.keys().filter(shared).cloned());
    }
}

/// Maximum number of models of a server that are listed in messages.
const FEW_MODELS: usize = 20;

fn describe(target: &Target, found: &Found, declared: Engine) -> String {
    let server = found.server.as_deref().map(|server| format!(", server {server}")).unwrap_or_default();
    let version = found.said.version.as_ref().map(|version| format!(", version {version}")).unwrap_or_default();
    let models = match found.refused_list {
        Some(status) => format!("list refused (HTTP {status})"),
        None if found.models.is_empty() => "no list of models".to_owned(),
        None => found.listed(FEW_MODELS),
    };
    let hint = found.said.hint(declared).map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{} responds{server}{version}, models: {models}{hint}", target.authority())
}
