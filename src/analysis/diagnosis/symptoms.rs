//! Symptoms in the client's figures, one function each.

use std::collections::BTreeMap;

use indexmap::IndexSet;

use crate::analysis::curve::{Curve, Ordinate, Run, Rung};
use crate::analysis::{LengthCount, binomial};
use crate::plan::Percentile;

use super::evidence::{Evident, Finding, Predicted, Twins};
use super::look::{at, in_flight, looked, short};
use super::memory;
use super::named::Names;
use super::queued;
use super::shown::{Growth, Looked, Ranged, both, found, latency_growth, rate_growth};

/// Maximum number of requests in flight for a run to count as low-concurrency.
const FEW: f64 = 2.0;
/// A load is compared with a run that has about one request in flight only if the load has at least this many
/// requests in flight, and at least this many times as many as the run.
const HEAVIER: f64 = 2.0;
/// A figure has grown if it is larger by at least this factor.
const GROWN: f64 = 1.5;
/// Two figures are about equal if they differ by less than this factor.
const EQUAL: f64 = 1.1;
/// Minimum number of responses of one length for a comparison of their failures.
const LEAST_BY_LENGTH: u64 = 10;
/// Ratio of measured to predicted speed below which decoding is far from the bound.
const FAR: f64 = 0.3;

/// Returns the median TTFT of a run with its interval; `None` if it is unknown or 0.
fn ttft(run: &Run) -> Option<Ranged> {
    Ranged::of_estimate(&run.metrics.ttft.percentile(Percentile::P50)).filter(|found| found.value > 0.0)
}

/// Returns the runs of all curves, except for those that were excluded from their rungs.
fn runs<'a>(evident: &'a Evident) -> impl Iterator<Item = &'a Run<'a>> {
    evident.curves.iter().flat_map(|curve| &curve.rungs).flat_map(|rung| &rung.runs)
}

fn server<'a>(run: &'a Run) -> (&'a str, &'a str) {
    (&run.labels.endpoint, &run.labels.model)
}

pub(super) fn ttft_grows_with_input(evident: &Evident) -> Finding {
    let names = Names::of(evident);
    let alone: Vec<&Run> = runs(evident).filter(|run| in_flight(run) <= FEW && ttft(run).is_some()).collect();
    let servers: IndexSet<(&str, &str)> = alone.iter().map(|run| server(run)).collect();
    let prompt = |run: &Run| run.tokens.prompt.unwrap_or(0.0);
    let look = |of: &(&str, &str)| {
        let of_server = || alone.iter().filter(|run| server(run) == *of && run.tokens.prompt.is_some());
        let shortest = of_server().min_by(|a, b| prompt(a).total_cmp(&prompt(b)))?;
        let longest = of_server().max_by(|a, b| prompt(a).total_cmp(&prompt(b)))?;
        let (before, after) = (ttft(shortest)?, ttft(longest)?);
        if prompt(longest) < 2.0 * prompt(shortest) {
            return None;
        }
        let (first, last) = (before.value, after.value);
        let per_thousand = (last - first) / (prompt(longest) - prompt(shortest)) * 1000.0;
        let text = || {
            format!(
                "{}: {:.0} prompt tokens take {first:.1} ms (run {}), {:.0} take {last:.1} ms (run {}): \
                 {per_thousand:.1} ms per 1 000 tokens",
                names.server(of.0, of.1),
                prompt(shortest),
                short(shortest),
                prompt(longest),
                short(longest)
            )
        };
        Some(looked(latency_growth(before, after, GROWN), &[shortest, longest], text))
    };
    let missing = "no two runs of a server with at most 2 requests in flight and prompts that differ in length \
                  by a factor of two";
    let absent = || format!("p50 TTFT grows by less than {GROWN} × with prompts twice as long or more");
    found(servers.iter().map(look), missing, absent)
}

pub(super) fn failures_grow_with_output(evident: &Evident) -> Finding {
    let names = Names::of(evident);
    // Runs with many failures are invalid, and excluded from their rungs.
    let rungs = evident.curves.iter().flat_map(|curve| &curve.rungs);
    let all = rungs.flat_map(|rung| rung.runs.iter().chain(&rung.left_out));
    let forced: Vec<&Run> = all.filter(|run| !run.metrics.length_failures.0.is_empty()).collect();
    let servers: IndexSet<(&str, &str)> = forced.iter().map(|run| server(run)).collect();
    let look = |of: &(&str, &str)| {
        let of_server: Vec<&Run> = forced.iter().copied().filter(|run| server(run) == *of).collect();
        let counts = counts_by_length(&of_server);
        let ((short_of, few), (long_from, many)) = (counts.first_key_value()?, counts.last_key_value()?);
        if short_of == long_from || few.requests < LEAST_BY_LENGTH || many.requests < LEAST_BY_LENGTH {
            return None;
        }
        let [low, high] = [few, many].map(failed_share);
        let growth = match many.failed * few.requests > few.failed * many.requests {
            false => Growth::No,
            true if high.is_above(low.ends.map_or(1.0, |[_, end]| end)) => Growth::Shown,
            true => Growth::NotShown,
        };
        let text = || {
            format!(
                "{}: {} of {} responses of less than {} tokens failed midway, and {} of {} of at least {long_from}",
                names.server(of.0, of.1),
                few.failed,
                few.requests,
                short_of * 2,
                many.failed,
                many.requests
            )
        };
        Some(looked(growth, &of_server, text))
    };
    let missing = "no server with `ignore_eos` and responses whose requested lengths differ by a factor of two";
    let absent = || "long responses do not fail more often than short ones".to_owned();
    found(servers.iter().map(look), missing, absent)
}

/// Adds up the counts of failures by length of several runs.
fn counts_by_length(runs: &[&Run]) -> BTreeMap<u32, LengthCount> {
    let mut sums = BTreeMap::<u32, LengthCount>::new();
    for (length, count) in runs.iter().flat_map(|run| &run.metrics.length_failures.0) {
        let sum = sums.entry(*length).or_default();
        sum.requests += count.requests;
        sum.failed += count.failed;
    }
    sums
}

/// Returns the share of failed responses with its interval, which assumes that failures are independent.
fn failed_share(count: &LengthCount) -> Ranged {
    let (requests, failed) = (count.requests as f64, count.failed as f64);
    let value = failed / requests;
    Ranged { value, ends: Some(binomial::share_interval(requests, value)) }
}

/// Returns the rungs of a curve that have this figure, each with the figure.
fn with<'a>(curve: &'a Curve<'a>, name: &str) -> Vec<(&'a Rung<'a>, Ranged)> {
    let Some(reading) = Ordinate::named(name) else { return Vec::new() };
    let value = |rung: &'a Rung<'a>| Some((rung, Ranged::of(&rung.figure(reading)?)));
    curve.rungs.iter().filter_map(value).filter(|(_, found)| found.value > 0.0).collect()
}

/// Returns the rungs of a curve that have both figures.
fn with_both<'a>(curve: &'a Curve<'a>, [first, second]: [&str; 2]) -> Vec<(&'a Rung<'a>, Ranged, Ranged)> {
    let others = with(curve, second);
    let other = |rung: &Rung| others.iter().find(|(other, _)| other.load == rung.load).map(|(_, found)| *found);
    with(curve, first).into_iter().filter_map(|(rung, found)| Some((rung, found, other(rung)?))).collect()
}

pub(super) fn tpot_high_alone(evident: &Evident) -> Finding {
    let names = Names::of(evident);
    let look = |curve: &Curve| {
        let tpots = with(curve, "tpot_p50");
        let ((first, tpot), (last, most)) = (tpots.first()?, tpots.last()?);
        let (alone, most) = (tpot.value, most.value);
        let run = first.runs.first().filter(|run| in_flight(run) <= 1.5)?;
        let (limit, against) = match evident.token_limit_ms {
            Some(limit) => (limit, format!("the objective's {limit} ms")),
            None if is_heavier(last, run) => (most / 2.0, format!("half of the {most:.2} ms at {}", at(curve, last))),
            None => return None,
        };
        let predicted = evident.predicted.iter().find(|one| one.run.labels.run_id == run.labels.run_id);
        let share = predicted
            .and_then(Predicted::ratio)
            .map_or_else(|| "; its distance from the bandwidth bound is unknown".to_owned(), share_of_bound);
        let text = || {
            format!(
                "{}: p50 TPOT is {alone:.2} ms with {:.1} requests in flight (run {}), above {against}{share}{}",
                names.run(run),
                in_flight(run),
                short(run),
                memory::clause(run)
            )
        };
        let growth = match alone > limit {
            false => Growth::No,
            true if tpot.is_above(limit) => Growth::Shown,
            true => Growth::NotShown,
        };
        Some(looked(growth, &[run], text))
    };
    let missing = match evident.token_limit_ms {
        Some(_) => "no run with one request in flight",
        None => {
            "no run with one request in flight and a load of at least twice as many (2 or more), and no limit on \
             TPOT or ITL in `slo`"
        }
    };
    let absent = || "TPOT at concurrency one is within its limit".to_owned();
    found(evident.curves.iter().map(look), missing, absent)
}

/// Returns whether a rung has so many more requests in flight than `light` that a comparison of their TPOTs
/// shows whether TPOT is already high with one request in flight.
fn is_heavier(rung: &Rung, light: &Run) -> bool {
    let crowd = rung.runs.iter().map(in_flight).fold(f64::INFINITY, f64::min);
    crowd.is_finite() && crowd >= HEAVIER && crowd >= HEAVIER * in_flight(light)
}

/// Describes how far decoding is from the bound.
fn share_of_bound(ratio: f64) -> String {
    let above = if ratio > 1.0 {
        ": the declared figures do not match the actual setup, or a step produces several tokens; correct them first"
    } else {
        ""
    };
    format!("; decoding at {:.0} % of what bandwidth allows{above}", ratio * 100.0)
}

pub(super) fn ttft_tail_spikes(evident: &Evident) -> Finding {
    let names = Names::of(evident);
    let look_at_tail = |curve: &Curve, tail_name: &str, tail_word: &str| {
        let both = with_both(curve, ["ttft_p50", tail_name]);
        let ((first, median, tail), others) = both.split_first().filter(|(_, others)| !others.is_empty())?;
        // The first load at which the symptom is shown, or else the first at which it may be present.
        let growth = |(_, m, t): &(&Rung, Ranged, Ranged)| match m.value <= 1.25 * median.value {
            true => latency_growth(*tail, *t, 2.0),
            false => Growth::No,
        };
        let at_growth = |wanted: Growth| others.iter().find(|one| growth(one) == wanted);
        let Some(spike) = at_growth(Growth::Shown).or_else(|| at_growth(Growth::NotShown)) else {
            return Some(Looked::Absent);
        };
        let (rung, m, t) = spike;
        let before = first.runs.first()?;
        let is_few = |rung: &Rung| {
            Ordinate::named(tail_name).and_then(|tail| rung.figure(tail)).is_some_and(|tail| tail.few_samples)
        };
        let few = if is_few(first) || is_few(rung) { " (few samples)" } else { "" };
        let queue = queued::clause(first, rung).unwrap_or_default();
        let text = || {
            format!(
                "{}: from {} to {} p50 TTFT goes from {:.1} to {:.1} ms, {tail_word} from {:.1} to {:.1} \
                 ms{few}{queue}",
                names.run(before),
                at(curve, first),
                at(curve, rung),
                median.value,
                m.value,
                tail.value,
                t.value
            )
        };
        let runs = first.runs.iter().chain(&rung.runs).collect::<Vec<_>>();
        Some(looked(growth(spike), &runs, text))
    };
    // Light loads often have too few requests for p99, so p95 reaches further down the curve.
    let look = |curve: &Curve| {
        let tails = [("ttft_p99", "p99"), ("ttft_p95", "p95")];
        tails.into_iter().filter_map(|(name, word)| look_at_tail(curve, name, word)).reduce(Looked::or)
    };
    let missing = "no curve with p50 and p99 (368 requests) or p95 (72) of TTFT at two loads";
    let absent = || "no tail of TTFT doubles while the median grows by less than a quarter".to_owned();
    found(evident.curves.iter().map(look), missing, absent)
}

pub(super) fn throughput_for_tpot(evident: &Evident) -> Finding {
    let names = Names::of(evident);
    let look = |curve: &Curve| {
        let all = with_both(curve, ["output_throughput", "tpot_p50"]);
        if all.len() < 2 {
            return None;
        }
        let growth = |pair: &[(&Rung, Ranged, Ranged)]| {
            let [(_, rate, tpot), (_, more, slower)] = pair else { return Growth::No };
            both(rate_growth(*rate, *more, EQUAL), latency_growth(*tpot, *slower, EQUAL))
        };
        // The first pair of adjacent loads that shows the symptom, or else the first pair that may show it.
        let at_growth = |wanted: Growth| all.windows(2).find(|pair| growth(pair) == wanted);
        let Some(pair) = at_growth(Growth::Shown).or_else(|| at_growth(Growth::NotShown)) else {
            return Some(Looked::Absent);
        };
        let [(low, rate, tpot), (high, more, slower)] = pair else { return Some(Looked::Absent) };
        let run = low.runs.first()?;
        let single = if rate.ends.is_none() || more.ends.is_none() { " (single runs)" } else { "" };
        let text = || {
            format!(
                "{}: from {} to {} output throughput goes from {:.0} to {:.0} tok/s{single}, p50 TPOT from {:.2} to \
                 {:.2} ms",
                names.run(run),
                at(curve, low),
                at(curve, high),
                rate.value,
                more.value,
                tpot.value,
                slower.value
            )
        };
        Some(looked(growth(pair), &low.runs.iter().chain(&high.runs).collect::<Vec<_>>(), text))
    };
    let missing = "no curve with output throughput and TPOT at two loads";
    let absent = || "no step to a higher load raises both throughput and TPOT by a tenth".to_owned();
    found(evident.curves.iter().map(look), missing, absent)
}

pub(super) fn warm_equals_cold(evident: &Evident) -> Finding {
    const DECLARED: f64 = 0.2;
    let names = Names::of(evident);
    let look = |Twins { warm, cold }: &Twins| {
        let declared = warm.metrics.reuse.declared.filter(|declared| *declared >= DECLARED)?;
        let (fast, slow) = (ttft(warm)?, ttft(cold)?);
        let cached = warm.metrics.reuse.cached;
        let cached = cached.map_or("does not report".to_owned(), |share| format!("reports {:.0} %", share * 100.0));
        let text = || {
            format!(
                "{}: p50 TTFT is {:.1} ms warm (run {}) and {:.1} ms cold (run {}), although {:.0} % of the \
                 prompt tokens could be reused; the server {cached} from its cache",
                names.run(warm),
                fast.value,
                short(warm),
                slow.value,
                short(cold),
                declared * 100.0
            )
        };
        // "Equal" here means that the cold run cannot be much slower than the warm one.
        let ruled_out = fast.ends.is_some_and(|[low, _]| slow.is_below(GROWN * low));
        let growth = match slow.value < EQUAL * fast.value {
            false => Growth::No,
            true if ruled_out => Growth::Shown,
            true => Growth::NotShown,
        };
        Some(looked(growth, &[warm, cold], text))
    };
    let missing = "no warm run that declares 20 % of reuse or more with a cold twin (`cache: cold`)";
    let absent = || "cold runs are slower to their first token than their warm twins".to_owned();
    found(evident.twins.iter().map(look), missing, absent)
}

pub(super) fn far_below_prediction(evident: &Evident) -> Finding {
    let names = Names::of(evident);
    let look = |predicted: &Predicted| {
        let (measured, ratio, run) = (predicted.measured()?, predicted.ratio()?, &predicted.run);
        let text = || {
            format!(
                "{}: a stream gets {measured:.1} tok/s with {:.1} requests in flight (run {}), bandwidth allows \
                {:.1}: {:.0} %{}",
                names.run(run),
                in_flight(run),
                short(run),
                predicted.prediction.best(),
                ratio * 100.0,
                memory::beside_overhead(run)
            )
        };
        // The fastest TPOT that is compatible with the run is the lower end of its interval.
        let tpot = Ranged::of_estimate(&run.metrics.tpot.percentile(Percentile::P50))?;
        let growth = match ratio < FAR {
            false => Growth::No,
            true if tpot.is_above(1000.0 / (FAR * predicted.prediction.best())) => Growth::Shown,
            true => Growth::NotShown,
        };
        Some(looked(growth, &[run], text))
    };
    let missing = match evident.unpredicted {
        [] => "no run".to_owned(),
        reasons => format!("no run has a prediction: {}", reasons.join("; ")),
    };
    let absent = || format!("every run decodes at {:.0} % of the bound or more", FAR * 100.0);
    found(evident.predicted.iter().map(look), &missing, absent)
}
