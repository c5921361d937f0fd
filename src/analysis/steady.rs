//! Checks whether a run is steady throughout its window: TTFT, TPOT, E2E and the rate at which tokens
//! are produced ([`super::change`]), and the share of failures ([`super::bunches`]).
//!
//! Latencies of single requests are compared as logarithms, in scheduled order. In an open loop,
//! latencies depend on the requests in flight. The requests in flight are therefore the companion, and
//! only changes that the load does not explain count. However, a server that becomes slow has more
//! requests in flight because of that, and a queue may be long in one part and short in another by
//! chance. TTFT and E2E of an open loop, which include the wait in the queue, are therefore compared
//! with their companion only if the requests in flight have swung [`SWINGS`] times, and [`EXCURSION`]
//! times on each side of a step. Without the companion, a step counts if the requests in flight have
//! swung on both sides of it ([`SIDES`]), because the requests then came and went as before, but at
//! another level.
//!
//! Rates are computed over parts of the window ([`super::emission`]). Synchronized slots of a closed
//! loop respond in waves. Whether a stretch contains one more wave is a matter of chance, so a
//! difference of one wave is always allowed. With think times, there is one wave per round, and the
//! length of a round replaces the length of a request.

use std::collections::BTreeMap;

use crate::plan::{Limits, Validity};
use crate::rows::{Facts, Measured, Outcome};

use super::bunches::{self, Stretch};
use super::change::{self, Change, Form};
use super::emission::{self, Emitted, Series};
use super::flight::Flight;
use super::gaps::Events;
use super::request::Metric;
use super::series::{PARTS, swings};
use super::state::{State, exceeded};
use super::window;

/// Minimum number of requests that is needed to check a latency.
const FEWEST_REQUESTS: usize = 40;
/// Minimum number of swings of the requests in flight that is needed to compare queue waits.
const SWINGS: u32 = 16;
/// Minimum number of swings on each side of a step; with fewer swings, the step may be a single long
/// queue.
const EXCURSION: u32 = 5;
/// Minimum number of swings on each side of a step that is found without the companion: first for TPOT,
/// then for latencies that include a wait. They show that the requests in flight came and went at both
/// levels.
const SIDES: [u32; 2] = [3, 8];
/// A step that is found without the companion must leave at least this share of the window on both
/// sides.
const EDGE: f64 = 0.15;
/// A change of a request's latency by less than this, in ms, may be due to the generator
/// (`client_late`).
const LEAST_MS: f64 = 1.0;
/// The limit for a change of a latency, as a multiple of the limit for a rate.
const LATENCY: f64 = 2.0;
/// A change to a better, lasting level within this share of the window is a warm-up.
const WARM_UP: f64 = 1.0 / 3.0;

/// Reason why latencies of a saturated run are not checked.
const SATURATED: &str = "the run is saturated";

/// The result of checking a reason; an error states why the check was not possible.
type Finding = Result<Option<(State, String)>, String>;

/// Changes during a run.
pub(super) struct Steadiness {
    found: Result<Vec<Moved>, String>,
    stretch: Option<(Stretch, [f64; 2])>,
    unchecked: Option<String>,
}

/// A change of one quantity.
struct Moved {
    what: &'static str,
    change: Change,
    /// The position of a step, in seconds since the beginning of the window.
    seconds: f64,
    /// The levels before and after the step; for a trend, the levels of the first and second half of the
    /// window.
    levels: [f64; 2],
    /// The size of the change, as a share of the mean of the two levels.
    share: f64,
    /// Factor by which the plan's limit is multiplied.
    times: f64,
    /// Whether the quantity improved early and then stayed constant.
    is_warm_up: bool,
}

impl Steadiness {
    /// Checks a run with requests in its window that is not saturated.
    pub(super) fn of(rows: &[Measured], events: &Events, facts: &Facts) -> Steadiness {
        let mut unchecked = None;
        let found = rates(rows, &events.emitted, facts).map(|rate| {
            // If the load changes, latency may change too.
            let latencies = if facts.window_qps.is_some() { vec![] } else { latencies(rows, facts, &mut unchecked) };
            rate.into_iter().chain(latencies).collect()
        });
        Steadiness { found, stretch: stretch(rows, facts), unchecked }
    }

    /// Checks a saturated run. Latencies grow because requests wait, and arrivals do not measure the
    /// work done. But a server that is never idle completes as much work at the end as at the beginning,
    /// so a falling rate is caused by the server. A rising rate may be due to an initially empty queue.
    pub(crate) fn of_saturated(rows: &[Measured], facts: &Facts) -> Steadiness {
        if facts.window_qps.is_some() {
            return Steadiness { found: Err(SATURATED.to_owned()), stretch: None, unchecked: None };
        }
        let series = emission::done(rows, facts);
        let residuals = series.residuals();
        let is_known = residuals.iter().all(|residual| residual.is_finite());
        let change = is_known.then(|| change::find(&residuals, None)).flatten().filter(Change::is_shown);
        let moved = change.map(|change| Moved::of_rate(change, &series, "completed tokens/s"));
        let falls = moved.filter(|moved| moved.levels[1] < moved.levels[0]);
        Steadiness { found: Ok(falls.into_iter().collect()), stretch: None, unchecked: Some(SATURATED.to_owned()) }
    }

    /// Returns which part could not be checked, and why; `None` if every part could be checked.
    pub(crate) fn unchecked(&self) -> Option<&str> {
        self.unchecked.as_deref().filter(|_| self.found.is_ok())
    }

    /// Returns whether a level or the share of failures changed.
    pub(super) fn unsteady(&self, limits: Limits) -> Finding {
        let failures = self.stretch.filter(|(stretch, _)| !stretch.is_bunch()).and_then(|(stretch, seconds)| {
            let [inside, outside] = stretch.shares();
            let state = exceeded(limits, Validity::UNSTEADY, |limit| inside - outside > limit)?;
            let percent = |share: f64| format!("{:.1}%", share * 100.0);
            let ([from, to], inside, outside) = (seconds, percent(inside), percent(outside));
            Some((state, format!("{inside} of requests failed from {from:.1} s to {to:.1} s, {outside} otherwise")))
        });
        let moved = self.judge(limits, false);
        match failures {
            Some((state, text)) => {
                let before = moved.unwrap_or_default();
                Ok(Some(before.map_or((state, text.clone()), |(worst, told)| (worst.max(state), told + "; " + &text))))
            }
            None => moved,
        }
    }

    /// Returns whether the window began before the server had warmed up.
    pub(super) fn warming_up(&self, limits: Limits) -> Finding {
        Ok(self.judge(limits, true).unwrap_or_default())
    }

    /// Returns whether failures were clustered.
    pub(super) fn errors_bunched(&self) -> Finding {
        let bunch = self.stretch.filter(|(stretch, _)| stretch.is_bunch());
        Ok(bunch.map(|(Stretch { from, to, failed, of, requests }, [begin, end])| {
            let (inside, outside) = (to - from, requests - (to - from));
            let others = of - failed;
            let text = format!(
                "{failed} of {of} failures occurred between {begin:.1} s and {end:.1} s of the window: {failed} \
                 of {inside} requests that ended there, {others} of {outside} others"
            );
            (State::Suspect, text)
        }))
    }

    fn judge(&self, limits: Limits, is_warm_up: bool) -> Finding {
        let moved = self.found.as_ref().map_err(String::clone)?.iter().filter(|moved| moved.is_warm_up == is_warm_up);
        let judged = moved.filter_map(|moved| {
            let state = exceeded(limits, Validity::UNSTEADY, |limit| moved.share > limit * moved.times)?;
            Some((state, moved.text()))
        });
        Ok(judged.reduce(|(a, first), (b, second)| (a.max(b), format!("{first}; {second}"))))
    }
}

impl Moved {
    /// Describes a rate that changed, which is never a warm-up.
    fn of_rate(change: Change, series: &Series, what: &'static str) -> Moved {
        let parts = series.parts;
        let at = place(&change, parts.count);
        let levels = [series.ratio(0, at), series.ratio(at, parts.count)];
        let seconds = at as f64 * parts.part_ns / 1e9;
        Moved { what, change, seconds, levels, share: change.by.abs(), times: 1.0, is_warm_up: false }
    }

    fn text(&self) -> String {
        let Moved { what, share, levels: [a, b], seconds, .. } = self;
        let percent = share * 100.0;
        match self.change.form {
            Form::Step if *a > 0.0 => {
                let percent = (b / a - 1.0).abs() * 100.0;
                format!("{what} moved by {percent:.0}% after {seconds:.1} s: {a:.2}, then {b:.2}")
            }
            Form::Step => format!("{what} moved by {percent:.0}% after {seconds:.1} s: {a:.2}, then {b:.2}"),
            Form::Trend => {
                format!("{what} moved by {percent:.0}% over the whole window: {a:.2}, then {b:.2} in its halves")
            }
        }
    }
}

/// Returns how the token rate changed; an error states why it cannot be compared.
fn rates(rows: &[Measured], emitted: &Emitted, facts: &Facts) -> Result<Option<Moved>, String> {
    let series = emitted.series(rows, facts)?;
    let parts = series.parts;
    let what = if facts.open_loop { "the ratio of completed to offered tokens" } else { "throughput (tok/s)" };
    let residuals = series.residuals();
    if residuals.iter().any(|residual| !residual.is_finite()) {
        return Ok(None);
    }
    let of_rest = |at: usize| change::find(&residuals[at..], None);
    Ok(change::find(&residuals, None).filter(Change::is_shown).and_then(|change| {
        let moved = Moved::of_rate(change, &series, what);
        let at = place(&change, parts.count);
        // Each side of the step may contain one wave more or one wave less.
        let wave = |count: usize| parts.typical / (count as f64 * parts.part_ns);
        let wave = if facts.open_loop { 0.0 } else { wave(at) + wave(parts.count - at) };
        let [before, behind] = moved.levels;
        let is_warm_up = is_early(&change) && behind > before && !of_rest(at).is_some_and(|rest| rest.is_shown());
        (moved.share > wave).then_some(Moved { is_warm_up, ..moved })
    }))
}

/// Returns the index of the first of `n` values after a step; for a trend, the index of the middle value.
fn place(change: &Change, n: usize) -> usize {
    match change.form {
        Form::Step => (change.at * n as f64).round() as usize,
        Form::Trend => n / 2,
    }
    .clamp(1, n - 1)
}

fn is_early(change: &Change) -> bool {
    change.form == Form::Step && change.at <= WARM_UP
}

/// Returns how TTFT, TPOT and E2E changed. Failures are covered by the reasons for errors.
fn latencies(rows: &[Measured], facts: &Facts, unchecked: &mut Option<String>) -> Vec<Moved> {
    let mut members: Vec<&Measured> = window::members(rows, facts).filter(|row| row.outcome.is_ok()).collect();
    members.sort_by_key(|row| row.scheduled_ns);
    let carried = facts.open_loop.then(|| Carried::new(Flight::of(rows, facts).averages(PARTS), facts));
    if let Some(swings) = carried.as_ref().map(|carried| carried.swings).filter(|swings| *swings < SWINGS) {
        let text =
            format!("requests in flight rose and fell {swings} times; the comparison of TTFT and E2E needs {SWINGS}");
        *unchecked = Some(text);
    }
    let all = [(Metric::Ttft, "TTFT (ms)"), (Metric::Tpot, "TPOT (ms)"), (Metric::E2eFromSchedule, "E2E (ms)")];
    all.into_iter().filter_map(|of| moved(&members, facts, of, carried.as_ref())).collect()
}

/// The requests in flight over the window, from which the mean between any two instants is computed.
struct Carried {
    averages: Vec<f64>,
    /// Number of swings of the requests in flight over the window.
    swings: u32,
    /// Areas under the curve from the beginning of the window to each border of its parts.
    areas: Vec<f64>,
    from: u64,
    part_ns: f64,
}

impl Carried {
    fn new(averages: Vec<f64>, facts: &Facts) -> Carried {
        let mut areas = vec![0.0];
        averages.iter().for_each(|average| areas.push(areas[areas.len() - 1] + average));
        let windows = &facts.windows;
        let part_ns = (windows.measure_end_ns - windows.measure_start_ns) as f64 / averages.len().max(1) as f64;
        Carried { areas, from: windows.measure_start_ns, part_ns, swings: swings(&averages), averages }
    }

    /// Returns the number of swings before or after an instant, whichever is smaller.
    fn sides(&self, at: u64) -> u32 {
        let (before, behind) = self.averages.split_at(self.place(at) as usize);
        swings(before).min(swings(behind))
    }

    fn place(&self, at: u64) -> f64 {
        (at.saturating_sub(self.from) as f64 / self.part_ns).min(self.areas.len() as f64 - 1.0)
    }

    fn area(&self, place: f64) -> f64 {
        let part = (place as usize).min(self.areas.len().saturating_sub(2));
        self.areas[part] + (place - part as f64) * (self.areas[part + 1] - self.areas[part])
    }

    /// Returns the mean number of requests in flight over the part of the window in which the request of
    /// `row` was in flight.
    fn of(&self, row: &Measured, facts: &Facts) -> f64 {
        let (from, to) = (self.place(row.scheduled_ns), self.place(window::request(row, facts).end_ns()));
        // For a request that is shorter than a part, the mean is taken over the length of a part.
        let to = if to - from < 1.0 { (from + 1.0).min(self.areas.len() as f64 - 1.0) } else { to };
        let from = from.min(to - 1.0).max(0.0);
        (self.area(to) - self.area(from)) / (to - from)
    }
}

fn moved(
    members: &[&Measured],
    facts: &Facts,
    (metric, what): (Metric, &'static str),
    carried: Option<&Carried>,
) -> Option<Moved> {
    let value = |row: &&&Measured| window::request(row, facts).observe(metric).value().filter(|value| *value > 0.0);
    let of: Vec<&&Measured> = members.iter().filter(|row| value(row).is_some()).collect();
    if of.len() < FEWEST_REQUESTS {
        return None;
    }
    let raw: Vec<f64> = of.iter().filter_map(value).collect();
    let mut logs: Vec<f64> = raw.iter().map(|value| value.ln()).collect();
    by_turn(&of, &mut logs);
    let companion: Option<Vec<f64>> =
        carried.map(|carried| of.iter().map(|row| carried.of(row, facts)).map(scale(metric)).collect());
    let (explained, plain) = (change::find(&logs, companion.as_deref()), carried.and(change::find(&logs, None)));
    let waits = metric != Metric::Tpot;
    let sides = |change: &Change| {
        let at = of[place(change, of.len())].scheduled_ns;
        carried.map_or(u32::MAX, |carried| carried.sides(at))
    };
    let is_seen = |change: &Change| {
        let swings = carried.map_or(u32::MAX, |carried| carried.swings);
        !waits || swings >= SWINGS && (change.form == Form::Trend || sides(change) >= EXCURSION)
    };
    let is_at_home = |change: &Change| {
        let is_inside = (EDGE..=1.0 - EDGE).contains(&change.at);
        change.form == Form::Step && is_inside && sides(change) >= SIDES[usize::from(waits)]
    };
    let (explained, plain) = (explained.filter(is_seen), plain.filter(is_at_home));
    let shown = [explained, plain].into_iter().flatten().filter(Change::is_shown);
    let change = shown.max_by(|a, b| a.errors.total_cmp(&b.errors))?;
    let at = place(&change, raw.len());
    let level = |values: &[f64]| (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp();
    let levels = [level(&raw[..at]), level(&raw[at..])];
    // The difference of the two levels relative to their mean, computed from the difference of their
    // logarithms.
    let share = 2.0 * (change.by.abs() / 2.0).tanh();
    let gaps = match metric {
        Metric::Tpot => {
            of.iter().filter_map(|row| row.streamed_tokens()).map(|tokens| f64::from(tokens) - 1.0).sum::<f64>()
                / of.len() as f64
        }
        _ => 1.0,
    };
    let rest = || change::find(&logs[at..], companion.as_ref().map(|companion| &companion[at..]));
    let is_warm_up = is_early(&change) && levels[1] < levels[0] && !rest().is_some_and(|rest| rest.is_shown());
    let seconds = (of[at].scheduled_ns - facts.windows.measure_start_ns) as f64 / 1e9;
    let is_told = share * (levels[0] + levels[1]) / 2.0 * gaps > LEAST_MS;
    is_told.then_some(Moved { what, change, seconds, levels, share, times: LATENCY, is_warm_up })
}

/// Returns how a latency depends on the requests in flight: each token takes longer for each concurrent
/// request, and queue waits are proportional to the number of requests.
fn scale(metric: Metric) -> fn(f64) -> f64 {
    if metric == Metric::Tpot { |carried| carried } else { f64::ln_1p }
}

/// Removes the differences between turns of conversations, because later turns have longer prompts.
fn by_turn(of: &[&&Measured], logs: &mut [f64]) {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (row, log) in of.iter().zip(logs.iter()) {
        let sum = sums.entry(row.turn().unwrap_or_default()).or_default();
        *sum = (sum.0 + log, sum.1 + 1.0);
    }
    if sums.len() > 1 {
        for (row, log) in of.iter().zip(logs) {
            let (sum, count) = sums[&row.turn().unwrap_or_default()];
            *log -= sum / count;
        }
    }
}

/// Returns the stretch with more failures than elsewhere, and when its first and last requests ended, in
/// seconds since the beginning of the window. Truncated requests are excluded, because they ended only
/// with the run.
fn stretch(rows: &[Measured], facts: &Facts) -> Option<(Stretch, [f64; 2])> {
    let of = window::members(rows, facts).filter(|row| row.outcome != Outcome::CutAtDrain);
    let mut ended: Vec<(u64, bool)> =
        of.map(|row| (window::request(row, facts).end_ns(), !row.outcome.is_ok())).collect();
    ended.sort_unstable();
    let failed: Vec<bool> = ended.iter().map(|(_, failed)| *failed).collect();
    let stretch = bunches::find(&failed)?;
    let seconds = |at: usize| ended[at].0.saturating_sub(facts.windows.measure_start_ns) as f64 / 1e9;
    Some((stretch, [seconds(stretch.from), seconds(stretch.to - 1)]))
}

#[cfg(test)]
#[path = "steady_tests.rs"]
mod tests;
