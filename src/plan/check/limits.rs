//! Checks of phases, timeouts, thresholds and objectives: their numbers must be within range and consistent.

use indexmap::IndexMap;

use super::checker::{Checker, is_not_positive, out_of_range, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::client::{LoadEnginePatch, Workers};
use crate::plan::model::objective::{Goodput, Limits, Percentile, Slo};
use crate::plan::model::phases::PhasesPatch;
use crate::plan::model::plan::Plan;
use crate::plan::text::tree::Step;
use crate::units::Nanos;

impl Checker<'_> {
    /// Checks the settings at the top level of the plan, which apply to every sweep.
    pub(super) fn limits(&mut self, plan: &Plan) {
        self.phases(&steps!["phases"], &plan.phases);
        let timeouts = plan.timeouts;
        for (field, value) in [("connect", timeouts.connect), ("request", timeouts.request), ("stall", timeouts.stall)]
        {
            self.above_zero(&steps!["timeouts", field], field, value);
        }
        self.engine(&steps!["engine"], &plan.engine);
        let validity = &plan.validity;
        for (reason, limits) in [
            ("client_late", validity.client_late),
            ("errors", validity.errors),
            ("output_length", validity.output_length),
            ("warm_cache", validity.warm_cache),
            ("prompt_length", validity.prompt_length),
            ("unsteady", validity.unsteady),
            ("paused", validity.paused),
        ] {
            self.thresholds(reason, limits);
        }
        if let Some(slo) = &plan.slo {
            self.slo(slo);
        }
        self.objectives_without_tokens(plan);
        if let Some(goodput) = &plan.goodput {
            for (field, value) in [("ttft", goodput.ttft), ("tpot", goodput.tpot), ("e2e", goodput.e2e)] {
                if let Some(value) = value {
                    self.above_zero(&steps!["goodput", field], field, value);
                }
            }
        }
    }

    /// Reports objectives on tokens for an endpoint whose responses have no tokens, because such objectives
    /// could never be met.
    fn objectives_without_tokens(&mut self, plan: &Plan) {
        let Some((endpoint, server)) = plan.endpoints.iter().find(|(_, server)| !server.api.generates()) else {
            return;
        };
        let api = server.api.name();
        let mut refuse = |table: &str, field: &str| {
            let message = format!(
                "`{field}` depends on tokens, but responses of endpoint `{endpoint}` (`api: {api}`) have none, so \
                 `{field}` cannot be measured there"
            );
            let remedy = "limit `e2e`, or measure that endpoint in a separate plan";
            self.report_key(&steps![table, field], Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        };
        if let Some(Slo { ttft, itl, tpot, e2e: _, cost_per_million }) = &plan.slo {
            let latencies = [("ttft", ttft), ("itl", itl), ("tpot", tpot)];
            latencies.iter().filter(|(_, limits)| !limits.is_empty()).for_each(|(field, _)| refuse("slo", field));
            cost_per_million.iter().for_each(|_| refuse("slo", "cost_per_million"));
        }
        if let Some(Goodput { ttft, tpot, e2e: _ }) = plan.goodput {
            ttft.iter().for_each(|_| refuse("goodput", "ttft"));
            tpot.iter().for_each(|_| refuse("goodput", "tpot"));
        }
    }

    pub(super) fn above_zero(&mut self, at: &[Step], field: &str, value: Nanos) {
        if value == Nanos::ZERO {
            self.report(at, out_of_range(field, "a time above 0s", value));
        }
    }

    /// Checks the load generator settings of the plan or of a sweep.
    pub(super) fn engine(&mut self, at: &[Step], engine: &LoadEnginePatch) {
        let most = LoadEnginePatch::MOST_THREADS;
        let wrong = engine.threads.filter(|threads| !(1..=most).contains(threads));
        self.outside(at, "threads", &format!("a whole number from 1 to {most}"), wrong);
        let Some(workers) = &engine.workers else { return };
        let (most, count) = (Workers::MOST, workers.count);
        let at = [at, &steps!["workers"]].concat();
        self.outside(
            &at,
            "count",
            &format!("a whole number from 1 to {most}"),
            Some(count).filter(|count| !(1..=most).contains(count)),
        );
        if !workers.has_a_command_for_each() {
            let message = format!("`start` has {} commands for {count} workers", workers.start.len());
            let remedy = "write one command for each worker, or one command for all workers";
            self.report_key(
                &[&at[..], &steps!["start"]].concat(),
                Diagnostic::new(Code::Contradiction, message).remedy(remedy),
            );
        }
        for (index, command) in workers.start.iter().enumerate().filter(|(_, command)| holds_output_back(command)) {
            let message = format!("`{command}` would hold back what a worker sends: srun passes on whole lines only");
            let remedy = "write srun --unbuffered …";
            self.report(
                &[&at[..], &steps!["start", index]].concat(),
                Diagnostic::new(Code::WrongValue, message).remedy(remedy),
            );
        }
    }

    /// Checks the phases of the plan or of a sweep.
    pub(super) fn phases(&mut self, at: &[Step], phases: &PhasesPatch) {
        let inside = |phase: &str, field: &str| [at, &steps![phase, field]].concat();
        if let Some(fill) = phases.fill {
            let at_fill = [at, &steps!["fill"]].concat();
            self.outside(&at_fill, "per_second", "a number above 0", fill.per_second.filter(is_not_positive));
            if fill.duration.is_none() && fill.per_second.is_none() {
                let remedy = "write `fill: 30s` or `fill: { per_second: 1 }`";
                self.empty(&at_fill, "`fill` sets neither a duration nor a speed", remedy);
            }
        }
        let Some(measure) = phases.measure else { return };
        self.above_zero(&inside("measure", "for"), "measure", measure.duration);
        let at_measure = [at, &steps!["measure"]].concat();
        self.outside(&at_measure, "min_requests", "1 or more", measure.min_requests.filter(|fewest| *fewest == 0));
        if let Some(at_most) = measure.at_most.filter(|at_most| *at_most < measure.duration) {
            let message = format!("`at_most` ({at_most}) is shorter than the window itself ({})", measure.duration);
            let remedy = "`at_most` is the maximum length of an extended window: write at least the length of the \
                          window itself";
            self.report(&inside("measure", "at_most"), Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }

    fn thresholds(&mut self, reason: &str, limits: Limits) {
        if let (Some(suspect), Some(invalid)) = (limits.suspect, limits.invalid)
            && suspect > invalid
        {
            let message =
                format!("`{reason}` makes a run suspect above {suspect}, but already invalid above {invalid}");
            let remedy = "`suspect` must not be above `invalid`: swap the two thresholds";
            let at = steps!["validity", reason, "suspect"];
            self.report(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }

    fn slo(&mut self, slo: &Slo) {
        let mut latency = |metric: &str, limits: &IndexMap<Percentile, Nanos>| {
            for (percentile, limit) in limits {
                let name = percentile.name();
                self.above_zero(&steps!["slo", metric, name], name, *limit);
            }
        };
        latency("ttft", &slo.ttft);
        latency("itl", &slo.itl);
        latency("tpot", &slo.tpot);
        latency("e2e", &slo.e2e);
        let cost = slo.cost_per_million.filter(is_not_positive);
        self.outside(&steps!["slo"], "cost_per_million", "a number above 0", cost);
    }
}

/// Returns whether a command starts workers with `srun` but without `--unbuffered` (`-u`). By default, srun
/// passes on the output of a task line by line, and the messages of a worker are not lines. With Slurm 22.05,
/// no message arrived within ten seconds, so the workers were given up as lost.
fn holds_output_back(command: &str) -> bool {
    let mut words = command.split_whitespace();
    words.next().is_some_and(|program| program.rsplit('/').next() == Some("srun"))
        && !words.any(|word| word == "-u" || word == "--unbuffered")
}
