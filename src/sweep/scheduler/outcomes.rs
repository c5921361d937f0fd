//! The part of the scheduler that handles the outcomes of runs, which are committed, retried, given up,
//! failed, skipped, or stopped.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use petgraph::graph::NodeIndex;

use super::{Answer, Scheduler, SweepError, one_less, refused};
use crate::graph::{Node, Outcome};
use crate::rows::Spoiled;
use crate::sweep::event::Event;
use crate::sweep::perform::{Retries, RunError};
use crate::sweep::ready::Waiting;
use crate::units::Nanos;
/// The pause before the first retry of a run. It doubles with each retry, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Only pauses of at least this length are reported.
const LONG_PAUSE: Duration = Duration::from_secs(2);
/// The longest pause before a retry, unless the server requests a longer pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Scheduler<'_, '_> {
    /// Returns how often the environment has spoiled a run, and how often the run may be retried.
    pub(super) fn retries(&self, at: usize) -> Retries {
        let endpoint = &self.sweep.expansion.runs[at].spec.endpoint.name;
        Retries { spoiled: self.spoiled[at], allowed: self.sweep.plan.endpoints[endpoint].retries() }
    }

    /// Counts a skipped run in the summary, either as refused or as skipped.
    pub(super) fn count_skipped(&mut self, endpoint: &str) {
        let is_refused = self.guard.refuses(endpoint) || self.wants_a_change.contains(endpoint);
        let count = if is_refused { &mut self.summary.refused } else { &mut self.summary.skipped };
        *count += 1;
    }

    /// Skips the run of a node that the walk has reached.
    pub(super) fn skip(&mut self, node: NodeIndex, at: usize, reason: String) {
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

    /// Records that the server of an endpoint could not be started or did not become ready. The runs that
    /// depend on `node` are skipped.
    pub(super) fn lose(&mut self, node: NodeIndex, endpoint: String, reason: String) {
        let is_stopped = self.halted();
        if !is_stopped {
            self.observer.event(Event::Endpoint { endpoint: endpoint.clone(), result: Err(reason) });
        }
        for skipped in self.walk.done(node, Outcome::Failed) {
            if let Node::Run(run) = self.graph.node(skipped.node) {
                if self.early.leaves_out(*run) {
                    continue;
                }
                // The wait was interrupted, so the server may be ready next time, and the run is counted as
                // left.
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

    pub(super) fn run_ended(&mut self, node: NodeIndex, at: usize, result: Result<(), RunError>) {
        self.runs_under_way -= 1;
        let given_up = self.summary.given_up;
        let run = &self.sweep.expansion.runs[at];
        let view = self.views[&at].clone();
        // Whether the run was committed or given up, so that a search may continue from its result.
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
        self.over.insert(run.id, is_settled);
        let goes_on = !self.halted() && is_settled && self.choose_next(node, at);
        if is_settled {
            self.end_early(at);
        }
        let endpoint = &run.spec.endpoint.name;
        self.cells.end(run);
        if one_less(&mut self.runs_left, endpoint) == 0 {
            self.forget(endpoint);
        }
        // The pause is needed even if no more runs follow on this endpoint, because another endpoint may
        // use the same resource.
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

    /// Handles an attempt that the environment spoiled. Returns `None` if the run will be retried when its
    /// server is ready, otherwise the outcome of the run.
    pub(super) fn spoiled(&mut self, node: NodeIndex, at: usize, spoiled: Spoiled) -> Option<Outcome> {
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
            // The pause applies to the whole endpoint, so its other runs are skipped too. They are executed
            // when the user runs the same command again later.
            let (name, pause) = (&spec.endpoint.name, Nanos::from(pause));
            let reason =
                format!("endpoint `{name}` requests a pause of {pause} (Retry-After), longer than `ready.within`");
            self.lost.insert(name.clone(), reason);
        }
        if !is_spent && !is_too_long && !self.sweep.fail_fast && !self.halted() {
            let (detail, again, of) = (spoiled.detail, self.spoiled[at], retries.allowed);
            self.observer.event(Event::Again { run, reason: detail, again, of });
            if pause >= LONG_PAUSE {
                let is_asked_for = spoiled.retry_after.is_some_and(|asked| Duration::from(asked) == pause);
                let reason = if is_asked_for {
                    "the server requests it (Retry-After)"
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

    /// Keeps the resource of a run occupied during the pause after the run.
    pub(super) fn rest(&self, node: NodeIndex, pause: Duration) -> Result<(), SweepError> {
        let halt = self.halt.subscribe();
        self.spawn(node, move || {
            let end = Instant::now() + pause;
            while !*halt.borrow() && Instant::now() < end {
                thread::sleep(Duration::from_millis(20).min(end.saturating_duration_since(Instant::now())));
            }
            Answer::Rested
        })
    }
}

/// Returns the pause after a spoiled attempt. The pause grows with each spoiled attempt, and is at least as
/// long as the server requests.
fn pause_after(spoiled: &Spoiled, times: u32) -> Duration {
    let growing = FIRST_PAUSE.saturating_mul(1 << times.saturating_sub(1).min(16)).min(LONGEST_PAUSE);
    spoiled.retry_after.map_or(growing, |asked| growing.max(asked.into()))
}
