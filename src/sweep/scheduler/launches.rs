//! The part of the scheduler that starts and ends launched servers. Only one launched server runs on a
//! resource at a time. Servers are ended on separate threads, because this takes time.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use petgraph::graph::NodeIndex;

use crate::expand::RunSpec;
use crate::graph::{Node, Outcome};
use crate::rows::{SpoilCause, Spoiled};
use crate::server::Unready;

use super::failed_starts::{Hopeless, ServerOfModel};
use super::{Answer, Scheduler, SweepError, one_less};
use crate::sweep::event::Event;
use crate::sweep::launching::{Launching, Started};
use crate::sweep::live::Live;
use crate::sweep::perform::RunError;
use crate::units::text::quoted;

/// The pause before a server that exited before it was ready is started again. The pause doubles each time,
/// up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause before a server is started again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Why a server that rejects its settings is not started a third time.
const TWICE: &str = "not started again, because it ended twice in the same way";

impl Scheduler<'_, '_> {
    /// Returns the data that is needed to launch the server of a run like `spec`.
    pub(super) fn launching(&self, name: &str, spec: &Arc<RunSpec>) -> Launching {
        Launching {
            endpoint: self.sweep.plan.endpoints[name].clone(),
            spec: Arc::clone(spec),
            folder: self.sweep.folder.to_owned(),
            servers: self.sweep.servers.clone(),
            withheld: Arc::clone(&self.withheld),
        }
    }

    /// Starts the server of an endpoint, after ending the launched servers that run on the same resource.
    pub(super) fn start_server(&mut self, node: NodeIndex, name: &str, run: usize) -> Result<(), SweepError> {
        let spec = Arc::clone(&self.sweep.expansion.runs[run].spec);
        if let Some(hopeless) = self.hopeless.get(&server_of(&spec)).cloned() {
            self.not_started_again(node, name, hopeless);
            return Ok(());
        }
        let resource = self.sweep.expansion.resources[name].clone();
        self.lost.remove(name);
        self.wants_a_change.remove(name);
        self.waited.remove(name);
        self.guard.forget(name);
        let shares = |other: &&String| self.sweep.expansion.resources[*other] == resource;
        let up: Vec<String> = self.servers.keys().filter(shares).cloned().collect();
        for other in up {
            if self.sweep.plan.endpoints[&other].launch.is_some() {
                self.forget(&other);
            }
        }
        let ending = self.retiring.remove(&resource).unwrap_or_default();
        let launching = self.launching(name, &spec);
        self.spawn(node, move || {
            for server in ending {
                // Even if the thread panicked, the server has ended.
                let _ = server.join();
            }
            Answer::Launched(launching.start())
        })
    }

    /// Whether the running server was launched with other settings than a run needs. This happens only if a
    /// pool has chosen the run and its settings differ from those of the previous run. For other runs, the
    /// graph ensures that their server is started first.
    pub(super) fn needs_another_server(&self, at: usize) -> bool {
        let spec = &self.sweep.expansion.runs[at].spec;
        let up = self.servers.get(&spec.endpoint.name).and_then(|live| live.launched.as_ref());
        up.is_some_and(|started| started.spec.endpoint.launch != spec.endpoint.launch)
    }

    /// Ends the running server, and starts a server with the settings that a run needs. The run begins when
    /// the server is ready.
    pub(super) fn change_server(&mut self, node: NodeIndex, at: usize) -> Result<(), SweepError> {
        let spec = Arc::clone(&self.sweep.expansion.runs[at].spec);
        let name = spec.endpoint.name.clone();
        self.waited.remove(&name);
        self.guard.forget(&name);
        self.asking.insert(node);
        self.restarting.insert(node);
        self.changed.insert(at);
        // With `port: auto`, the port is known only after the start.
        let port = self.sweep.plan.endpoints[&name].launch_port().map_or("auto".to_owned(), |port| port.to_string());
        let written = spec.endpoint.launch.iter().flat_map(|launch| &launch.command);
        let filled = written.map(|part| part.replace("{{ port }}", &port).replace("{{port}}", &port));
        let command = filled.map(|part| quoted(&part)).collect::<Vec<_>>().join(" ");
        self.observer.event(Event::Launching { endpoint: name.clone(), command });
        self.ask(node, &name, (&spec, true), Duration::ZERO)?;
        self.end_server(&name);
        Ok(())
    }

    /// Handles a server that was started with the settings of a run and ended before it was ready. The
    /// attempt is spoiled.
    pub(super) fn changed_in_vain(&mut self, node: NodeIndex, at: usize, unready: Unready) {
        let run = &self.sweep.expansion.runs[at];
        let earlier = unready.early_end.and_then(|end| Some((self.failed_changes.insert(at, end.clone())?, end)));
        if earlier.is_some_and(|(before, now)| now.repeats(&before)) {
            // No more retries are left.
            self.spoiled[at] = self.spoiled[at].max(self.retries(at).allowed);
        }
        let spoiled = Spoiled { cause: SpoilCause::NotStarted, detail: unready.reason, retry_after: None };
        let given_up = self.retries(at).given_up_with_this();
        let attempt = self.sweep.writer.begin(&run.id.to_string(), &run.spec);
        let kept = attempt.and_then(|attempt| attempt.spoil(spoiled.clone(), given_up));
        self.runs_under_way += 1;
        self.run_ended(node, at, Err(kept.err().map_or(RunError::Spoiled(spoiled), RunError::Store)));
    }

    /// Records that a server was started. It is not ready yet.
    pub(super) fn server_started(&mut self, node: NodeIndex, name: String, started: Started) {
        let command = started.command.clone();
        self.servers.insert(name.clone(), Live { launched: Some(started), ..Live::default() });
        self.observer.event(Event::Launching { endpoint: name, command });
        self.walk.done(node, Outcome::Ok);
    }

    /// Handles a server that ended while it was being probed, before it was ready. It is started again, or its
    /// runs are given up.
    pub(super) fn start_failed(&mut self, node: NodeIndex, name: String, run: usize, unready: Unready) {
        let Unready { reason, early_end, .. } = unready;
        let allowed = self.sweep.plan.endpoints[&name].retries();
        let failed = self.failed_starts.entry(node).or_default();
        failed.count += 1;
        let earlier = std::mem::replace(&mut failed.last, early_end.clone());
        let rejects = early_end.zip(earlier).is_some_and(|(now, before)| now.repeats(&before));
        let (again, spec) = (failed.count, Arc::clone(&self.sweep.expansion.runs[run].spec));
        if again <= allowed && !rejects && !self.sweep.fail_fast {
            self.observer.event(Event::Relaunching { endpoint: name.clone(), reason, again, of: allowed });
            self.waited.remove(&name);
            self.walk.wait(node);
            let pause = FIRST_PAUSE.saturating_mul(1 << (again - 1).min(16)).min(LONGEST_PAUSE);
            if let Err(error) = self.ask(node, &name, (&spec, true), pause) {
                self.end_for(error);
                self.lose(node, name, "its server could not be probed".to_owned());
            }
            return;
        }
        if allowed == 0 {
            return self.lose(node, name, reason);
        }
        let told = match rejects {
            true => format!("{TWICE}: {reason}"),
            false => reason.clone(),
        };
        if rejects {
            self.remember_as_hopeless(run, Hopeless::Rejects(reason.clone()));
        }
        self.give_up_behind(node, &name, &told, &reason);
    }

    /// Records that the server of a run is not started again.
    pub(super) fn remember_as_hopeless(&mut self, run: usize, why: Hopeless) {
        let spec = &self.sweep.expansion.runs[run].spec;
        if spec.endpoint.launch.is_some() {
            self.hopeless.insert(server_of(spec), why);
        }
    }

    /// Handles the runs of a server that is not started again.
    fn not_started_again(&mut self, node: NodeIndex, name: &str, why: Hopeless) {
        match why {
            Hopeless::Rejects(reason) => {
                let told = format!("{TWICE}, as reported above");
                self.give_up_behind(node, name, &told, &reason);
            }
            Hopeless::WantsAChange(reason) => {
                self.wants_a_change.insert(name.to_owned());
                self.lose(node, name.to_owned(), reason);
            }
        }
    }

    /// Gives up every run that needs a server that does not start, for `reason`; the endpoint is reported with
    /// `told`. The runs are given up instead of skipped, because the server's failure to start with these settings
    /// is a result.
    fn give_up_behind(&mut self, node: NodeIndex, name: &str, told: &str, reason: &str) {
        let times = self.sweep.plan.endpoints[name].retries();
        self.observer.event(Event::Endpoint { endpoint: name.to_owned(), result: Err(told.to_owned()) });
        let spoiled = Spoiled { cause: SpoilCause::NotStarted, detail: reason.to_owned(), retry_after: None };
        let short = spoiled.in_one_line();
        for skipped in self.walk.done(node, Outcome::Failed) {
            let Node::Run(at) = self.graph.node(skipped.node) else { continue };
            if self.early.leaves_out(*at) {
                continue;
            }
            let run = &self.sweep.expansion.runs[*at];
            let attempt = self.sweep.writer.begin(&run.id.to_string(), &run.spec);
            if let Err(error) = attempt.and_then(|attempt| attempt.spoil(spoiled.clone(), Some(times))) {
                self.end_for(error.into());
            }
            self.summary.given_up += 1;
            self.cells.end(run);
            one_less(&mut self.runs_left, name);
            one_less(&mut self.waiting, &self.sweep.expansion.resources[name]);
            let (run, cause) = (self.views[at].clone(), SpoilCause::NotStarted);
            self.observer.event(Event::GivenUp { run, cause, reason: short.clone(), times });
        }
        self.forget(name);
    }

    fn end_for(&mut self, error: SweepError) {
        self.fatal.get_or_insert(error);
        self.halt.send_replace(true);
    }

    /// Ends the launched server of an endpoint. The endpoint remains in use, and the next probe starts the
    /// server again.
    pub(super) fn end_server(&mut self, name: &str) {
        let launched = self.servers.get_mut(name).and_then(|live| live.launched.take());
        self.retire(name, launched);
    }

    /// Removes an endpoint from the servers in use, and ends its server if sweepline started it.
    pub(super) fn forget(&mut self, name: &str) {
        let launched = self.servers.remove(name).and_then(|live| live.launched);
        self.retire(name, launched);
    }

    /// Ends a launched server on a separate thread.
    pub(super) fn retire(&mut self, name: &str, launched: Option<Started>) {
        let Some(started) = launched else { return };
        let resource = self.sweep.expansion.resources[name].clone();
        // If no thread can be started, the server is dropped, and thus ended, here.
        let ending = thread::Builder::new().name("server end".to_owned()).spawn(move || started.server.end());
        if let Ok(ending) = ending {
            self.retiring.entry(resource).or_default().push(ending);
        }
    }

    /// Ends all launched servers and waits until all their processes are gone.
    pub(super) fn retire_all(&mut self) {
        let names: Vec<String> = self.servers.keys().cloned().collect();
        names.iter().for_each(|name| self.forget(name));
        for ending in self.retiring.drain().flat_map(|(_, ending)| ending) {
            let _ = ending.join();
        }
    }
}

fn server_of(spec: &RunSpec) -> ServerOfModel {
    (spec.endpoint.name.clone(), spec.endpoint.launch.clone(), spec.model.id.clone())
}
