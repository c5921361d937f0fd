//! Decides whether a run can be trusted. The verdict is a pure function of the run's rows, its facts,
//! the samples scraped during it and the plan's thresholds. It is computed when the run is read.
//!
//! Each reason is one small function that returns a finding with its figures, no finding, or why the
//! check was not possible.

use std::fmt;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::{Defaults, Limits, Percentile, Slo, Validity};
use crate::rows::{Began, Facts, HookRun, Measured, Outcome, Sample, TokenSource};
use crate::units::Nanos;

use super::by_worker::{self, OfWorker};
use super::failures::Failures;
use super::gaps::Events;
use super::generator::Generator;
use super::lateness::{self, Effect};
use super::prompts::Differ;
use super::queue::Queue;
use super::request::Metric;
use super::reuse::Reuse;
use super::server::{foreign, hits, reasons};
use super::state::exceeded;
use super::stats::raw_quantile;
use super::steady::Steadiness;
use super::window::{self, Counts};
use super::{pauses, quantile, responses, saturation, silence, undecided, waits};

pub use super::reason::Reason;
pub use super::state::State;

/// The verdict on a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    /// valid, suspect or invalid: the worst state among the reasons.
    pub state: State,
    /// The reasons that count against the run.
    pub reasons: Vec<Reason>,
    /// Labels that describe a run without counting against it, such as saturated.
    pub labels: Vec<Reason>,
    /// Names of reasons that could not be checked, each with the explanation.
    pub not_checked: IndexMap<&'static str, String>,
}

/// Reasons that concern the load generator or its machine, not the server.
const OF_THE_CLIENT: [&str; 7] =
    ["empty_window", "client_late", "client_paused", "worker_skewed", "client_saturated", "rate_missed", "clock"];

/// Reasons that a machine without a free core gives to any run, whatever the server and the program do.
const OF_A_BUSY_MACHINE: [&str; 8] = [
    "client_late",
    "client_paused",
    "worker_skewed",
    "rate_missed",
    "client_saturated",
    "unsteady",
    "warming_up",
    "paused",
];

/// Whether verdicts ignore what a busy machine does to a run. In builds with debug assertions,
/// `SWEEPLINE_ASSUME_QUIET=1` requests this, for tests whose outcome must not depend on the machine. The
/// rules themselves are tested on synthetic runs.
fn assumes_quiet_machine() -> bool {
    cfg!(debug_assertions) && std::env::var_os("SWEEPLINE_ASSUME_QUIET").is_some_and(|value| value == "1")
}

impl Verdict {
    /// Returns whether the run is invalid for a reason that concerns the client, possibly among other
    /// reasons. It then provides no evidence on the server.
    pub fn is_of_client(&self) -> bool {
        self.invalid().any(|name| OF_THE_CLIENT.contains(&name))
    }

    /// Returns the reasons that make the run invalid.
    pub fn invalid(&self) -> impl Iterator<Item = &'static str> {
        self.reasons.iter().filter(|reason| reason.state == State::Invalid).map(|reason| reason.name)
    }
}

impl fmt::Display for Verdict {
    /// Formats `valid`, `valid, saturated`, `suspect: client_late, errors`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.state.name())?;
        for (index, reason) in self.reasons.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { ": " } else { ", " }, reason.name)?;
        }
        self.labels.iter().try_for_each(|label| write!(f, ", {}", label.name))
    }
}

/// The result of checking one reason; an error states why the check was not possible.
type Finding = Result<Option<(State, String)>, String>;

/// The input of the checks.
struct Evidence<'a> {
    rows: &'a [Measured],
    samples: &'a [Sample],
    events: &'a Events,
    facts: &'a Facts,
    counts: Counts,
    generator: Generator<'a>,
    saturation: Option<saturation::Evidence>,
}

/// Judges one run under the plan's thresholds. Samples that were scraped from servers are also checked,
/// but never make a run invalid.
pub fn judge(
    (rows, samples): (&[Measured], &[Sample]),
    events: &Events,
    facts: &Facts,
    validity: &Validity,
    slo: Option<&Slo>,
) -> Verdict {
    let counts = Counts::of(rows, facts);
    let generator = Generator::new(facts, read_delays(rows, facts));
    let saturation = Queue::of(rows, facts).saturation;
    let evidence = Evidence { rows, samples, events, facts, counts, generator, saturation };
    let parts = by_worker::parts(rows, facts);
    let workers: Vec<(&str, Evidence)> = parts.iter().map(|part| (&*part.called, evidence.of_worker(part))).collect();
    let each = |look: &dyn Fn(&Evidence) -> Finding| of_each(&evidence, &workers, look);
    let steadiness = evidence.steadiness();
    let steady = |look: &dyn Fn(&Steadiness) -> Finding| steadiness.as_ref().map_err(String::clone).and_then(look);
    let findings = [
        ("empty_window", evidence.empty_window()),
        ("not_idle", evidence.not_idle()),
        ("hook_failed", evidence.hook_failed()),
        ("not_near", evidence.not_near()),
        ("server_counts", foreign::judge(rows, samples, facts)),
        ("client_late", each(&|evidence| evidence.client_late(validity.client_late, slo))),
        ("client_paused", each(&|evidence| pauses::judge(evidence.facts))),
        ("worker_skewed", Ok(by_worker::skewed(facts, evidence.allowed_lateness()))),
        ("rate_missed", evidence.rate_missed()),
        ("client_saturated", each(&|evidence| evidence.client_saturated())),
        ("errors", evidence.errors(validity.errors)),
        ("output_length", evidence.output_length(validity.output_length)),
        ("prompt_length", evidence.prompt_length(validity.prompt_length)),
        ("warm_cache", evidence.warm_cache(validity.warm_cache)),
        ("impossible_usage", evidence.impossible_usage()),
        ("unsteady", steady(&|found| found.unsteady(validity.unsteady))),
        ("warming_up", Ok(steady(&|found| found.warming_up(validity.unsteady)).unwrap_or_default())),
        ("errors_bunched", steady(&Steadiness::errors_bunched)),
        ("paused", silence::judge(&events.signs, rows, facts, validity.paused)),
        ("few_samples", evidence.few_samples(slo)),
        ("clock", each(&|evidence| evidence.clock())),
    ];
    let mut verdict = Verdict { state: State::Valid, reasons: vec![], labels: vec![], not_checked: IndexMap::new() };
    let assume_quiet = assumes_quiet_machine();
    for (name, finding) in findings.into_iter().chain(reasons::judge(samples, facts)) {
        if assume_quiet && OF_A_BUSY_MACHINE.contains(&name) {
            continue;
        }
        match finding {
            Ok(Some((state, text))) => verdict.reasons.push(Reason { name, state, text }),
            Ok(None) => {}
            Err(why) => _ = verdict.not_checked.insert(name, why),
        }
    }
    let found = |name| verdict.reasons.iter().any(|reason: &Reason| reason.name == name);
    let queue = steadiness.as_ref().ok().and_then(Steadiness::unchecked).map(|why| ("unsteady", why.to_owned()));
    let partly: Vec<_> = evidence.partly_checked().chain(queue).filter(|(name, _)| !found(*name)).collect();
    verdict.not_checked.extend(partly);
    verdict.reasons.extend(responses::reasons(rows, facts));
    verdict.labels.extend(saturation.and_then(label));
    verdict.labels.extend(responses::labels(rows, facts));
    verdict.state = verdict.reasons.iter().map(|reason| reason.state).max().unwrap_or(State::Valid);
    verdict
}

/// Checks the client. If several processes sent the load, checks each process and all of them together.
fn of_each(whole: &Evidence, workers: &[(&str, Evidence)], look: &dyn Fn(&Evidence) -> Finding) -> Finding {
    let mut worst: Option<(State, String)> = None;
    for (called, evidence) in workers {
        if let Some((state, text)) = look(evidence)? {
            let found = (state, format!("{called}: {text}"));
            worst = Some(worst.map_or(found.clone(), |worst| by_worker::worse(worst, found)));
        }
    }
    // A fact that is unknown for all workers together may be known for each one.
    let of_whole = if workers.is_empty() { look(whole)? } else { look(whole).unwrap_or_default() };
    match (worst, of_whole) {
        (Some(worst), Some(whole)) => Ok(Some(by_worker::worse(worst, whole))),
        (worst, whole) => Ok(worst.or(whole)),
    }
}

impl Evidence<'_> {
    /// Returns the evidence about one worker. Its server-related fields are not used.
    fn of_worker<'w>(&'w self, part: &'w OfWorker) -> Evidence<'w> {
        let OfWorker { rows, facts, .. } = part;
        let (counts, generator) = (Counts::of(rows, facts), Generator::new(facts, read_delays(rows, facts)));
        Evidence { rows, samples: &[], events: self.events, facts, counts, generator, saturation: None }
    }

    fn is_saturated(&self) -> bool {
        self.saturation.is_some_and(|saturation| saturation.state() == saturation::State::Saturated)
    }

    fn members(&self) -> impl Iterator<Item = &Measured> {
        window::members(self.rows, self.facts)
    }

    fn values(&self, metric: Metric) -> impl Iterator<Item = f64> {
        self.members().filter_map(move |row| window::request(row, self.facts).observe(metric).value())
    }

    /// Checks for a window without requests. A run with an empty window must not look valid, and no other
    /// reason applies to it.
    fn empty_window(&self) -> Finding {
        let text = "no request was scheduled inside the measure window".to_string();
        Ok((self.counts.requests == 0).then_some((State::Invalid, text)))
    }

    /// Checks whether the server was busy when the load began. If it was still working for others or for
    /// the previous run, that work competed with this run.
    fn not_idle(&self) -> Finding {
        let busy = self.facts.began.as_ref().filter(|began| !began.idle);
        Ok(busy.map(|Began { waited_ns, endpoint, seen, .. }| {
            let who = endpoint.as_ref().map(|endpoint| format!(" on endpoint {endpoint}")).unwrap_or_default();
            let waited = Nanos(*waited_ns).secs();
            let text =
                format!("the server was still busy{who} when the load began, after {waited:.1} s of waiting: {seen}");
            (State::Suspect, text)
        }))
    }

    /// Checks for hooks that failed during the run.
    fn hook_failed(&self) -> Finding {
        let failed: Vec<&HookRun> = self.facts.hooks.iter().filter(|hook| !hook.is_ok()).collect();
        let Some(first) = failed.first() else { return Ok(None) };
        let others = match failed.len() - 1 {
            0 => String::new(),
            more => format!("; {more} more failed"),
        };
        let text = format!("the {} hook `{}` failed: {}{others}", first.when, first.what, first.ended());
        Ok(Some((State::Suspect, text)))
    }

    /// Checks whether latencies include a network path although the plan declares that there is none.
    fn not_near(&self) -> Finding {
        Ok(self.facts.not_near.clone().map(|why| (State::Suspect, why)))
    }

    /// Returns the allowed send lateness of a request, in milliseconds: 1 % of the median TTFT, but at
    /// least 1 ms.
    fn allowed_lateness(&self) -> f64 {
        let ttft = median(self.values(Metric::Ttft).collect());
        ttft.map_or(1.0, |ttft| (ttft / 100.0).max(1.0))
    }

    /// Checks for requests that were sent late, provided that they may have changed a figure or an answer.
    fn client_late(&self, limits: Limits, slo: Option<&Slo>) -> Finding {
        let allowed = self.allowed_lateness();
        let late: Vec<f64> = self.values(Metric::Lateness).filter(|lateness| *lateness > allowed).collect();
        let (typical, late) = (median(late.clone()), late.len());
        let sent = self.values(Metric::Lateness).count();
        let waits = waits::cause(self.rows, self.facts, allowed);
        let causes = [waits, typical.and_then(|delay| self.generator.cause(delay))];
        let causes: Vec<String> = causes.into_iter().flatten().collect();
        let cause = if causes.is_empty() { String::new() } else { format!(": {}", causes.join("; ")) };
        let text =
            |share| format!("{share} of requests ({late} of {sent}) were sent more than {allowed:.1} ms late{cause}");
        let Some((state, text)) = judge_share((late, sent), limits, Validity::CLIENT_LATE, text) else {
            return Ok(None);
        };
        Ok(match lateness::effect(self.rows, self.facts, allowed, slo) {
            Effect::Nothing => None,
            Effect::Figure(why) => Some((state, format!("{text}; effect: {why}"))),
            Effect::Answer(why) => Some((State::Invalid, format!("{text}; effect: {why}"))),
        })
    }

    fn rate_missed(&self) -> Finding {
        let Facts { open_loop, thinks, never_sent, scheduled_in_window, .. } = *self.facts;
        let missed = (open_loop || thinks) && never_sent > 0;
        let text = || format!("{never_sent} of {scheduled_in_window} scheduled requests were never sent");
        Ok(missed.then(|| (State::Invalid, text())))
    }

    fn client_saturated(&self) -> Finding {
        Ok(self.generator.saturated()?.map(|text| (State::Suspect, text)))
    }

    /// Returns the parts of reasons that could not be checked.
    fn partly_checked(&self) -> impl Iterator<Item = (&'static str, String)> {
        let no_boottime = self.facts.monotonic_ns > 0 && self.facts.boottime_ns.is_none();
        let asleep =
            no_boottime.then_some("no clock on this system includes time in suspend: only the wall clock was checked");
        let client = self.generator.unchecked().map(|why| ("client_saturated", why));
        client.into_iter().chain(asleep.map(|why| ("clock", why.to_string())))
    }

    fn errors(&self, limits: Limits) -> Finding {
        let Counts { requests, completed, .. } = self.counts;
        if requests > 0 && completed == 0 {
            let kinds = Failures::of(self.rows, self.facts).kinds();
            return Ok(Some((State::Invalid, format!("none of {requests} requests completed ({kinds})"))));
        }
        let patient = |outcome| matches!(outcome, Outcome::CutAtDrain | Outcome::Timeout | Outcome::Stalled);
        let excused = |row: &&Measured| self.is_saturated() && patient(row.outcome);
        let failed = self.members().filter(|row| !row.outcome.is_ok() && !excused(row));
        let mut outcomes = std::collections::BTreeMap::new();
        failed.for_each(|row| *outcomes.entry(row.outcome.to_string()).or_insert(0usize) += 1);
        let kinds: Vec<String> = outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        let failed = outcomes.values().sum();
        let text = |share| format!("{share} of requests failed ({})", kinds.join(", "));
        Ok(judge_share((failed, self.counts.requests as usize), limits, Validity::ERRORS, text))
    }

    fn output_length(&self, limits: Limits) -> Finding {
        if !self.facts.ignore_eos {
            return Err("ignore_eos was not sent: any length is valid".into());
        }
        let counted = |row: &&Measured| {
            row.outcome.is_ok() && row.token_source.is_some_and(|source| source != TokenSource::Events)
        };
        let all = self.members().filter(counted).count();
        if all == 0 && self.counts.completed > 0 {
            return Err("no output-token count available".into());
        }
        let differs = |row: &&Measured| row.output_tokens() != Some(row.requested_tokens);
        let wrong = self.members().filter(counted).filter(differs).count();
        let text = |share| format!("{share} of responses ({wrong} of {all}) do not have the requested length");
        Ok(judge_share((wrong, all), limits, Validity::OUTPUT_LENGTH, text))
    }

    fn prompt_length(&self, limits: Limits) -> Finding {
        if self.facts.start.is_some() {
            return Err("the run measures a start, which ends with one short prompt".into());
        }
        let Differ { share, ours, server, is_estimate } = Differ::of(self.rows, self.facts)?;
        let state = exceeded(limits, Validity::PROMPT_LENGTH, |limit| share > limit);
        Ok(state.map(|state| {
            let share = share * 100.0;
            let whose = if is_estimate { "the estimate is" } else { "we" };
            let mut text =
                format!("the server counts {server:.1} tokens per prompt, {whose} {ours:.1}: {share:.1}% apart");
            if is_estimate {
                text += "; set tokenizer: FILE, or tokenizer: server, for the model";
            }
            (state, text)
        }))
    }

    fn warm_cache(&self, limits: Limits) -> Finding {
        let reuse = Reuse::of(self.rows, self.facts);
        let Some(cached) = reuse.cached else { return self.warm_by_metrics(limits) };
        let declared = reuse.declared.ok_or(Reuse::why_unknown(self.facts))?;
        let excess = reuse.excess().unwrap_or_default();
        let state = exceeded(limits, Validity::WARM_CACHE, |limit| excess > limit);
        let percent = |share: f64| format!("{:.1}%", share * 100.0);
        Ok(state.map(|state| {
            let (cached, declared) = (percent(cached), percent(declared));
            (state, format!("{cached} of prompt tokens came from the prefix cache; the run's prompts share {declared}"))
        }))
    }

    /// Uses the server's metrics to check for a warm cache, if the responses do not report cached tokens. The
    /// server's counters cover the whole run and all other users, so they never make a run invalid.
    fn warm_by_metrics(&self, limits: Limits) -> Finding {
        let not_told = "the server does not report cached prompt tokens";
        let cached = hits::share(self.samples, self.facts).ok_or(not_told)?;
        let cached =
            cached.map_err(|why| format!("{not_told} in its responses, and its metrics do not help: {why}"))?;
        let reuse = Reuse::beside(self.rows, cached);
        let declared = reuse.declared.ok_or(Reuse::why_unknown(self.facts))?;
        let excess = reuse.excess().ok_or("the server does not report the length of prompts with its chat template")?;
        let state = exceeded(limits, Validity::WARM_CACHE, |limit| excess > limit);
        Ok(state.map(|_| {
            let [cached, declared] = [cached, declared].map(|share| format!("{:.1}%", share * 100.0));
            let text = format!(
                "by the server's metrics, {cached} of prompt tokens came from its prefix cache during the run; the \
                 run's prompts share {declared}"
            );
            (State::Suspect, text)
        }))
    }

    /// Checks for impossible token counts in the responses. A server that reports one impossible value
    /// may also report wrong values that go unnoticed.
    fn impossible_usage(&self) -> Finding {
        let completed = || self.members().filter(|row| row.outcome.is_ok());
        let doubts: Vec<&str> = completed().filter_map(Measured::usage_doubt).collect();
        let (wrong, all) = (doubts.len(), completed().count());
        let text = |first| format!("the usage of {wrong} of {all} responses is impossible: {first}");
        Ok(doubts.first().map(|first| (State::Suspect, text(first))))
    }

    fn steadiness(&self) -> Result<Steadiness, String> {
        if self.counts.requests == 0 {
            return Err("no request lies in the window".into());
        }
        if self.is_saturated() {
            return Ok(Steadiness::of_saturated(self.rows, self.facts));
        }
        Ok(Steadiness::of(self.rows, self.events, self.facts))
    }

    fn few_samples(&self, slo: Option<&Slo>) -> Finding {
        let Some(slo) = slo else { return Ok(None) };
        let latencies = [&slo.ttft, &slo.itl, &slo.tpot, &slo.e2e];
        let highest: Option<Percentile> = latencies.into_iter().flat_map(|limits| limits.keys()).max().copied();
        let n = self.counts.requests;
        let short = highest.filter(|percentile| n < quantile::need_to_decide(*percentile));
        Ok(short.map(|percentile| {
            let need = quantile::need_to_decide(percentile);
            let name = quantile::name(percentile);
            (
                State::Suspect,
                format!(
                    "{n} requests cannot show that an SLO on {name} holds: it takes {need}, and more if \
                                     they depend on each other"
                ),
            )
        }))
    }

    fn clock(&self) -> Finding {
        const ALLOWED_MS: f64 = 100.0;
        let Facts { monotonic_ns, wall_ns, boottime_ns, .. } = *self.facts;
        if monotonic_ns == 0 {
            return Err("the clocks were not read".into());
        }
        let drift = (wall_ns as f64 - monotonic_ns as f64) / 1e6;
        let asleep = boottime_ns.map_or(0.0, |boottime| (boottime as f64 - monotonic_ns as f64) / 1e6);
        let moved =
            (drift.abs() > ALLOWED_MS).then(|| format!("wall and monotonic clocks moved apart by {drift:.0} ms"));
        let slept = (asleep > ALLOWED_MS).then(|| format!("the machine was suspended for {asleep:.0} ms"));
        Ok(slept.or(moved).map(|text| (State::Invalid, text)))
    }
}

/// Returns the label of an open loop whose server was not shown to keep up; `None` if it kept up.
fn label(saturation: saturation::Evidence) -> Option<Reason> {
    let saturation::Evidence { arrived, seconds, growth, .. } = saturation;
    let (rate, [low, high]) = saturation.completion_rate();
    let came = format!("{arrived} requests arrived, {:.1} per second", saturation.rate());
    let text = match saturation.state() {
        saturation::State::KeptUp => return None,
        saturation::State::Saturated => format!(
            "{came}, and {rate:.1} ({low:.1} to {high:.1}) per second completed; requests in flight or waiting \
            rose by {growth:.0}"
        ),
        saturation::State::NotShown => match undecided::would_show_keeping_up(&saturation, 1) {
            Some(window) => {
                format!("{came} in {seconds:.3} s, too few or too similar to show whether the server kept up; {window}")
            }
            None => "no request arrived, so nothing shows whether the server kept up".to_owned(),
        },
    };
    Some(Reason { name: saturation.state().name(), state: State::Valid, text })
}

/// Returns the state for `count` of `all` if the share is above the plan's limits or, without those,
/// above the limits of `docs/METRICS.md` (`defaults`, in percent).
fn judge_share(
    (count, all): (usize, usize),
    limits: Limits,
    defaults: Defaults,
    text: impl FnOnce(String) -> String,
) -> Option<(State, String)> {
    let share = count as f64 / all.max(1) as f64;
    let state = exceeded(limits, defaults, |limit| share > limit)?;
    Some((state, text(format!("{:.1}%", share * 100.0))))
}

fn median(values: Vec<f64>) -> Option<f64> {
    raw_quantile(values, 500)
}

/// Returns the read delays of the window's requests, in ms.
fn read_delays(rows: &[Measured], facts: &Facts) -> Vec<f64> {
    window::members(rows, facts).filter_map(|row| row.read_delay_ns()).map(|ns| ns as f64 / 1e6).collect()
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "threshold_tests.rs"]
mod thresholds;

#[cfg(test)]
#[path = "false_alarm_tests.rs"]
mod false_alarms;

#[cfg(test)]
#[path = "clean_run_tests.rs"]
mod clean_runs;

#[cfg(test)]
#[path = "grid_tests.rs"]
mod grid;
