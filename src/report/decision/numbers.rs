//! Renders the accepted and the other configurations, with the figures of `curves` and `capacity`.

use schemars::JsonSchema;
use serde::Serialize;

use super::evidence::Evidence;
use super::markdown::{code, inert, list, sentence, table};
use super::standing::Standing;
use crate::analysis::curve::{Axis, Curve, Figure, Ordinate, Rung};
use crate::analysis::saturation::State;
use crate::plan::Slo;
use crate::report::capacity::{cheapest, per_million_ends};
use crate::report::configuration::Answer;
use crate::report::curves::{FEW, lines, marked, unknown};
use crate::report::format::digits;
use crate::report::spread;

/// How a configuration relates to the accepted configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kin {
    /// The accepted configuration itself.
    Accepted,
    /// The accepted configuration under another kind of load.
    Same,
    /// A configuration that serves the same requests as the accepted configuration, but was not accepted.
    Rejected,
    /// A configuration that serves different requests than the accepted configuration, so it is not an
    /// alternative.
    ServesOther,
}

/// Returns how `other` relates to the accepted curve.
pub(crate) fn kin(accepted: &Curve, other: &Curve) -> Kin {
    let (a, b) = (&accepted.series, &other.series);
    if a == b && accepted.axis == other.axis {
        return Kin::Accepted;
    }
    let is_same_load = accepted.axis == other.axis;
    let is_cap_alike = a.cap == b.cap || !is_same_load;
    if is_cap_alike && (&a.endpoint, &a.model, &a.scenario, &a.axes) == (&b.endpoint, &b.model, &b.scenario, &b.axes) {
        return Kin::Same;
    }
    let serves_same = a.scenario == b.scenario && a.of_requests().eq(b.of_requests());
    if serves_same { Kin::Rejected } else { Kin::ServesOther }
}

/// The figures of every row: their names in `curves`, and their headings.
const SHOWN: [(&str, &str); 7] = [
    ("output_throughput", "output tok/s#"),
    ("user_throughput_mean", "tok/s per user#"),
    ("ttft_p50", "TTFT p50 ms#"),
    ("ttft_p99", "TTFT p99 ms#"),
    ("tpot_p50", "TPOT p50 ms#"),
    ("e2e_p99", "E2E p99 ms#"),
    ("error_share", "error share#"),
];

/// Returns the figures of a row with their headings: the figures of every row, and the percentiles that the
/// objective limits.
fn shown(slo: Option<&Slo>) -> Vec<(&'static Ordinate, String)> {
    let all = SHOWN.iter().filter_map(|(name, heading)| Some((Ordinate::named(name)?, (*heading).to_owned())));
    let mut shown: Vec<(&Ordinate, String)> = all.collect();
    for reading in Ordinate::limited(slo) {
        if shown.iter().all(|(other, _)| other.name != reading.name) {
            shown.insert(shown.len() - 1, (reading, format!("{} ms#", reading.heading())));
        }
    }
    shown
}

pub(super) fn text(evidence: &Evidence, accepted: usize, standings: &[Standing]) -> String {
    let curves = evidence.curves;
    let of_kin = |wanted: Kin| -> Vec<usize> {
        let is = |at: &usize| kin(&curves[accepted], &curves[*at]) == wanted;
        (0..curves.len()).filter(is).collect()
    };
    let mut out = "## Configurations\n\n### Accepted\n\n".to_owned();
    out.push_str(&format!("{}, every load:\n\n", code(&evidence.name(accepted))));
    out.push_str(&ladder(&curves[accepted], evidence.objective()));
    out.push('\n');
    out.push_str(&list(&lines(&curves[accepted], true).iter().map(|line| inert(line)).collect::<Vec<_>>()));
    let same = of_kin(Kin::Same);
    if !same.is_empty() {
        out.push_str("\nThe same configuration under other loads:\n\n");
        out.push_str(&overview(evidence, &same, standings));
    }
    out.push_str("\n### Rejected\n\n");
    match of_kin(Kin::Rejected)[..] {
        [] => out.push_str("Nothing else that serves the same requests was measured.\n"),
        ref rejected => {
            out.push_str(match evidence.objective() {
                Some(_) => {
                    "Each is shown at the highest load that holds, or at the lightest measured load if none holds:\n\n"
                }
                None => "Each is shown at its heaviest load, because there is no objective:\n\n",
            });
            out.push_str(&overview(evidence, rejected, standings));
            if evidence.objective().is_some() {
                out.push_str(&format!("\n{}", reasons(evidence, rejected, standings)));
            }
        }
    }
    let others = of_kin(Kin::ServesOther);
    if !others.is_empty() {
        let names: Vec<String> = others.iter().map(|at| code(&evidence.name(*at))).collect();
        out.push_str(&format!("\nAlso measured, serving other requests: {}.\n", names.join(", ")));
    }
    out.push_str("\n### Cost\n\n");
    out.push_str(&costs(evidence));
    out.push_str(&format!("\n{}\n", legend(curves, evidence.objective())));
    out
}

/// Returns one sentence on the standing of each configuration in `which`.
fn reasons(evidence: &Evidence, which: &[usize], standings: &[Standing]) -> String {
    let why = |at: &usize| format!("{}: {}", code(&evidence.name(*at)), inert(&sentence(&standings[*at].words)));
    list(&which.iter().map(why).collect::<Vec<_>>())
}

/// Returns the legend of the tables.
fn legend(curves: &[Curve], slo: Option<&Slo>) -> String {
    let rungs = || curves.iter().flat_map(|curve| &curve.rungs);
    let readings = shown(slo);
    let shown = || readings.iter().map(|(reading, _)| *reading);
    let is_open = curves.iter().any(|curve| curve.axis == Axis::Qps);
    let is_short = |rung: &Rung| shown().any(|one| rung.figure(one).is_none() && rung.too_few(one).is_some());
    let has_few = |rung: &Rung| shown().filter_map(|one| rung.figure(one)).any(|figure| figure.few_samples);
    let parts = [
        Some(
            "In square brackets: 95 % intervals, over runs for loads with at least three runs, otherwise within the \
             run; for two runs, both values."
                .to_owned(),
        ),
        is_open.then(|| "Latencies of open loops are from the schedule.".to_owned()),
        rungs().any(is_short).then(|| "n/a with n: too few requests in a run for that percentile.".to_owned()),
        rungs().any(has_few).then(|| sentence(&inert(FEW))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Returns a table with a row for each load of a curve.
fn ladder(curve: &Curve, slo: Option<&Slo>) -> String {
    let shown = shown(slo);
    let mut headings = vec![curve.axis.name(), "actual requests/s#", "runs", "objective"];
    headings.extend(shown.iter().map(|(_, heading)| heading.as_str()));
    let row = |rung: &Rung| {
        let objective = rung.judged().and_then(|judged| judged.answer()).map_or("n/a", |answer| answer.name());
        let objective = format!("{objective}{}", not_kept_up(rung));
        let mut cells = vec![rung.load.to_string(), arrived(rung), runs(rung), objective];
        cells.extend(shown.iter().map(|(reading, _)| figure(rung, reading)));
        cells
    };
    table(&headings, &curve.rungs.iter().map(row).collect::<Vec<_>>())
}

/// Returns a note if the server is not shown to keep up with a load; otherwise an empty string.
fn not_kept_up(rung: &Rung) -> &'static str {
    match rung.state() {
        _ if rung.runs.is_empty() => "",
        Some(State::Saturated) => ", saturated",
        Some(State::NotShown) => ", not shown to keep up",
        Some(State::KeptUp) | None => "",
    }
}

/// Returns a table with one row for each configuration.
fn overview(evidence: &Evidence, which: &[usize], standings: &[Standing]) -> String {
    let shown = shown(evidence.objective());
    let mut headings = vec!["configuration", "objective", "load", "actual requests/s#", "runs"];
    headings.extend(shown.iter().map(|(_, heading)| heading.as_str()));
    let row = |at: &usize| {
        let (curve, standing) = (&evidence.curves[*at], &standings[*at]);
        let rung = standing.load.and_then(|load| curve.rung(load));
        let load = standing.load.map(|load| format!("{} {load}", curve.axis.name().replace('_', " ")));
        let outcome = format!("{}{}", standing.outcome.word(), rung.map(not_kept_up).unwrap_or_default());
        let mut cells = vec![code(&evidence.name(*at)), outcome];
        cells.push(load.unwrap_or_else(na));
        cells.push(rung.map_or_else(na, arrived));
        cells.push(rung.map_or_else(na, runs));
        cells.extend(shown.iter().map(|(reading, _)| rung.map_or_else(na, |rung| figure(rung, reading))));
        cells
    };
    table(&headings, &which.iter().map(row).collect::<Vec<_>>())
}

fn na() -> String {
    "n/a".to_owned()
}

fn arrived(rung: &Rung) -> String {
    rung.arrived_rate().map_or_else(na, digits)
}

/// Describes the runs of a load: the beginnings of the ids of the counted runs, the number of excluded runs,
/// and why runs were given up.
fn runs(rung: &Rung) -> String {
    let ids: Vec<String> = rung.runs.iter().map(|run| code(&run.labels.run_id[..8])).collect();
    let out = rung.left_out.len() + rung.excluded.len();
    let out = if out > 0 { format!("{out} excluded") } else { String::new() };
    let given_up = rung.why_given_up().map(|why| format!("given up: {}", inert(&why))).unwrap_or_default();
    let parts: Vec<String> = [ids.join(" "), out, given_up].into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { na() } else { parts.join("; ") }
}

fn figure(rung: &Rung, reading: &Ordinate) -> String {
    rung.figure(reading).as_ref().map_or_else(|| unknown(rung, reading), with_ends)
}

fn with_ends(figure: &Figure) -> String {
    let spread = match (figure.pair, figure.ends) {
        (Some(_), _) => spread::in_sentence(figure).map(|pair| format!(" ({pair})")),
        (None, ends) => ends.map(|ends| format!(" [{}, {}]", digits(ends.low), digits(ends.high))),
    };
    format!("{}{}", marked(figure).replace('*', "\\*"), spread.unwrap_or_default())
}

/// Returns a table of the cost of one instance of each configuration, which marks the cheapest configuration.
fn costs(evidence: &Evidence) -> String {
    let configurations = evidence.configurations;
    let best = cheapest(configurations, None).concat();
    let row = |at: usize| {
        let Answer::Holds { instance, bracket, output } = &configurations[at].answer else { return None };
        let spread = |[low, high]: [String; 2]| match output.pair {
            Some(_) => format!(" (2 repeats: {low} and {high})"),
            None => format!(" [{low}, {high}]"),
        };
        let ends = per_million_ends(instance, output).map(|ends| spread(ends.map(digits)));
        let per_million = instance.per_million().map(|money| format!("{}{}", digits(money), ends.unwrap_or_default()));
        Some(vec![
            code(&evidence.name(at)),
            instance.holds.to_string(),
            configurations[at].curve.highest().observed.map_or_else(na, |load| load.to_string()),
            bracket.misses.map_or("none".to_owned(), |load| load.to_string()),
            with_ends(output),
            instance.gpus.map_or_else(na, |gpus| gpus.to_string()),
            instance.price_per_hour.map_or_else(na, digits),
            per_million.unwrap_or_else(na),
            instance.per_joule().map_or_else(na, |(tokens, by)| format!("{} ({by})", digits(tokens))),
            if best.contains(&at) { "cheapest" } else { "" }.to_owned(),
        ])
    };
    let rows: Vec<Vec<String>> = (0..configurations.len()).filter_map(row).collect();
    if rows.is_empty() {
        let why = if evidence.objective().is_none() {
            "the plan has no objective, and cost is computed at the highest load that meets one"
        } else {
            "no open loop is shown to meet the objective, and cost is computed at the highest rate that does"
        };
        return format!("n/a: {why}.\n");
    }
    let headings = [
        "configuration",
        "shown, qps#",
        "observed, qps#",
        "misses at, qps#",
        "output tok/s#",
        "GPUs#",
        "price per hour#",
        "money per million output tokens#",
        "tokens per joule#",
        "",
    ];
    let unpriced = rows.iter().any(|row| row[6] == "n/a");
    let mut out = table(&headings, &rows);
    let currency = evidence.plan.currency.map_or_else(|| "the plan's currency".to_owned(), |code| code.to_string());
    out.push_str(&format!("\nMoney is in {currency}, for an instance that runs at the highest load that holds.\n"));
    if unpriced {
        out.push_str(
            "n/a: the plan declares neither `price_per_hour` nor `owned` for that endpoint; or it declares no watts, \
             and `telemetry` has no energy for it.\n",
        );
    }
    out
}
