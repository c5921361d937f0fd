//! Renders curves as text: for each curve a table, then the knee and the highest load that meets the
//! objective.

use comfy_table::Cell;
use indexmap::IndexMap;

use crate::analysis::curve::{Axis, Basis, Bracket, Curve, Figure, Knee, Ordinate, Range, Rung, Series};
use crate::analysis::quantile;
use crate::analysis::saturation::State;
use crate::analysis::slo::Answer;
use crate::plan::{Percentile, Slo};
use crate::rows::GivenUp;

use super::format::{self, counts, digits, plain};
use super::grid::{self, right};
use super::spread;

/// The name and the heading of each figure that every table shows.
const SHOWN: [(&str, &str); 7] = [
    ("request_throughput", "requests\n/s"),
    ("output_throughput", "output\ntok/s"),
    ("user_throughput_mean", "per user\ntok/s"),
    ("ttft_p50", "TTFT p50\nms"),
    ("ttft_p99", "TTFT p99\nms"),
    ("tpot_p50", "TPOT p50\nms"),
    ("e2e_p99", "E2E p99\nms"),
];

/// Returns the figures of a table, each with its heading. They include every percentile that the objective
/// limits.
fn shown(slo: Option<&Slo>) -> Vec<(&'static Ordinate, String)> {
    let all = SHOWN.iter().filter_map(|(name, heading)| Some((Ordinate::named(name)?, (*heading).to_owned())));
    let mut shown: Vec<(&Ordinate, String)> = all.collect();
    for reading in Ordinate::limited(slo) {
        if shown.iter().all(|(other, _)| other.name != reading.name) {
            // The percentile is placed in ascending order among the percentiles of the same latency; if there
            // are none, it comes last.
            let is_of_it = |one: &Ordinate| one.name.split('_').next() == reading.name.split('_').next();
            let is_below = |one: &Ordinate| one.percentile < reading.percentile;
            let behind = shown.iter().rposition(|(other, _)| is_of_it(other) && is_below(other)).map(|at| at + 1);
            let before = shown.iter().position(|(other, _)| is_of_it(other));
            let place = behind.or(before).unwrap_or(shown.len());
            shown.insert(place, (reading, format!("{}\nms", reading.heading())));
        }
    }
    shown
}

/// Renders every curve with its conclusions; `slo` is the plan's objective. `why` adds the reasons why limits are
/// undecided.
pub fn curves(curves: &[Curve], slo: Option<&Slo>, why: bool) -> String {
    let shown = shown(slo);
    let (models, sweeps) = differ(curves.iter().map(|curve| &curve.series));
    let mut out = String::new();
    for curve in curves {
        let title = format::fill("", 2, &title(&curve.series, models, sweeps));
        out.push_str(&format!("\n{title}\n{}\n", table(curve, &shown)));
        for line in lines(curve, why) {
            out.push_str(&format::fill(" ", 4, &line));
        }
    }
    if !curves.is_empty() {
        out.push_str(&legend(curves));
        if slo.is_none() {
            let text = "no objective: add `slo` to the plan, or use --set 'slo={ ttft: { p99: 500ms } }'";
            out.push_str(&format::fill("", 2, text));
        }
        out.push_str(&of_few(curves, &shown));
    }
    out
}

fn legend(curves: &[Curve]) -> String {
    let several = curves.iter().flat_map(|curve| &curve.rungs).any(|rung| rung.runs.len() > 1);
    let interval = match several {
        true => {
            "second lines: 95 % intervals, over runs for loads with at least three runs, otherwise within the run; \
             for two runs, both values"
        }
        false => "second lines: 95 % intervals within the run; `repeats` would show the variation between runs",
    };
    let open = curves.iter().any(|curve| curve.axis == Axis::Qps);
    let due = match open {
        true => ". In brackets: actual arrivals in requests/s. Latencies are from the schedule",
        false => "",
    };
    format::fill("\n", 0, &format!("{interval}{due}. --explain describes the calculation")).replacen("\n ", "\n", 1)
}

/// Headings of figures that are dropped on a narrow screen, in this order.
const LESS_NEEDED: [&str; 3] = ["requests/s", "per user tok/s", "E2E p99 ms"];

/// Returns the table of a curve. On a narrow screen, the table has fewer figures, and the omitted ones are
/// named below it.
fn table(curve: &Curve, shown: &[(&Ordinate, String)]) -> String {
    grid::text_of_fewer(&LESS_NEEDED, (1, &[]), |left_out| {
        let places = grid::places(shown.iter().map(|(_, heading)| heading.as_str()), left_out);
        made(curve, &places.into_iter().map(|at| &shown[at]).collect::<Vec<_>>())
    })
}

fn made(curve: &Curve, shown: &[&(&Ordinate, String)]) -> comfy_table::Table {
    let mut table = grid::table();
    let load = match curve.axis {
        Axis::Qps => "qps\n(actual)",
        Axis::BatchSize => curve.axis.name(),
    };
    let mut header = vec![right(load), right("runs")];
    header.extend(shown.iter().map(|(_, heading)| right(heading)));
    let has_energy = curve.rungs.iter().any(|rung| rung.tokens_per_joule().is_some());
    header.extend(has_energy.then(|| right("output\ntok/J")));
    header.push(Cell::new("objective"));
    table.set_header(header);
    for rung in &curve.rungs {
        let actual = rung.arrived_rate().map(|rate| format!("\n({})", digits(rate)));
        let load = format!("{}{}", rung.load, actual.unwrap_or_default());
        let mut cells = vec![right(load), right(count(rung))];
        cells.extend(shown.iter().map(|(reading, _)| right(figure(rung, reading))));
        let energy = || rung.tokens_per_joule().map_or_else(|| "n/a".to_owned(), |energy| digits(energy.tokens));
        cells.extend(has_energy.then(|| right(energy())));
        cells.push(Cell::new(objective(rung)));
        table.add_row(cells);
    }
    table
}

fn count(rung: &Rung) -> String {
    let (runs, out) = (rung.runs.len(), rung.left_out.len() + rung.excluded.len());
    let out = if out > 0 { format!("\n({out} out)") } else { String::new() };
    format!("{runs}{out}")
}

fn figure(rung: &Rung, reading: &Ordinate) -> String {
    match rung.figure(reading) {
        None => unknown(rung, reading).replace(" (n=", "\nn=").replace(')', ""),
        Some(figure) => {
            let spread = spread::in_cell(&figure).map(|spread| format!("\n{spread}"));
            format!("{}{}", marked(&figure), spread.unwrap_or_default())
        }
    }
}

/// Returns the text for a figure without a value: `n/a`, with the number of values if there are too few, or
/// the lower bound if the figure lies among failed requests.
pub(crate) fn unknown(rung: &Rung, reading: &Ordinate) -> String {
    match (rung.too_few(reading), rung.at_least(reading)) {
        (Some(n), _) => format!("n/a (n={n})"),
        (None, Some(bound)) => format!("> {}", digits(bound)),
        (None, None) => "n/a".to_owned(),
    }
}

/// Formats the value, with `*` if it is computed from few samples.
pub(super) fn marked(figure: &Figure) -> String {
    format!("{}{}", digits(figure.value), if figure.few_samples { "*" } else { "" })
}

/// Returns the legends for percentiles with few requests, percentiles with too few requests, and percentiles
/// that lie among failed requests.
fn of_few(curves: &[Curve], shown: &[(&'static Ordinate, String)]) -> String {
    let rungs = || curves.iter().flat_map(|curve| &curve.rungs);
    let shown = || rungs().flat_map(|rung| shown.iter().map(move |(reading, _)| (rung, *reading)));
    let few = shown().any(|(rung, reading)| rung.figure(reading).is_some_and(|figure| figure.few_samples));
    let none = shown().any(|(rung, reading)| rung.figure(reading).is_none() && rung.too_few(reading).is_some());
    let bounds = shown().any(|(rung, reading)| rung.too_few(reading).is_none() && rung.at_least(reading).is_some());
    let [p50, p99] = [Percentile::P50, Percentile::P99].map(quantile::need);
    let notes = [
        few.then(|| FEW.to_owned()),
        none.then(|| format!("n/a with n: too few requests in a run; p50 needs {p50}, p99 {p99}")),
        bounds.then(|| "> lies among failed requests, which count as slower than all others".to_owned()),
    ];
    notes.into_iter().flatten().map(|note| format!("{note}\n")).collect()
}

/// The legend of the mark `*`.
pub(super) const FEW: &str = "* from few samples: the true value may lie well away from it";

fn objective(rung: &Rung) -> String {
    let answer = rung.answer().map(Answer::name);
    let state = rung.state().and_then(|state| match state {
        State::KeptUp => None,
        State::Saturated => Some("saturated"),
        State::NotShown => Some("not shown\nto keep up"),
    });
    let failed = rung.has_failed().then_some("errors");
    let given_up = rung.why_given_up().map(|why| format!("given up:\n{}", narrow(&why)));
    answer.into_iter().chain(state).chain(failed).chain(given_up.as_deref()).collect::<Vec<_>>().join("\n")
}

/// Puts each word of the reasons on a separate line; only a count such as `(3 of 3)` stays on one line.
fn narrow(reasons: &str) -> String {
    let mut out = String::new();
    let mut is_counting = false;
    for word in reasons.split_inclusive(' ') {
        is_counting = (is_counting || word.starts_with('(')) && !word.trim_end_matches([',', ' ']).ends_with(')');
        out.push_str(word.trim_end_matches([',', ' ']));
        out.push(if is_counting { ' ' } else { '\n' });
    }
    out.trim_end().to_owned()
}

/// Returns the conclusions of a curve, one sentence each. `why` adds the reasons why limits are undecided.
pub(super) fn lines(curve: &Curve, why: bool) -> Vec<String> {
    let axis = curve.axis.name();
    let mut lines = vec![knee(curve)];
    if let (kept, Some(first)) = curve.saturation() {
        let kept = kept.map_or_else(String::new, |kept| format!("; the server keeps up at {axis} {kept}"));
        let is_saturated = curve.rung(first).is_some_and(Rung::is_saturated);
        let what = if is_saturated { "saturated" } else { "given up" };
        lines.push(format!("{what} from {axis} {first}{kept}"));
    }
    lines.extend(not_shown(curve));
    lines.extend(highest(curve, axis).map(|found| format!("objective: {found}")));
    lines.extend(undecided(curve, why));
    lines.extend(excluded(curve));
    lines.extend(given_up(curve));
    lines.extend(suspects(curve));
    lines
}

/// Lists the loads whose runs do not show whether the server keeps up, with the window that would show this;
/// `None` if there are no such loads.
fn not_shown(curve: &Curve) -> Option<String> {
    let of = |rung: &Rung| format!("{}{}", rung.load, window_to_keep_up(rung));
    let loads: Vec<String> = curve.not_shown().map(of).collect();
    let axis = curve.axis.name();
    (!loads.is_empty()).then(|| format!("not shown whether the server keeps up: {axis} {}", loads.join(", ")))
}

/// Returns the length of the window that would show whether the server keeps up, in brackets: ` (a window of
/// 40 s would suffice)`; empty if it is unknown.
pub(crate) fn window_to_keep_up(rung: &Rung) -> String {
    rung.would_show_keeping_up().map(|window| format!(" ({window})")).unwrap_or_default()
}

/// Lists the limits that are undecided at each load: what was observed, and what would decide them. `why` adds the
/// reasons.
pub(crate) fn undecided(curve: &Curve, why: bool) -> Vec<String> {
    let of = |rung: &Rung| {
        let limits = undecided_at(rung, why);
        let load = format!("{} {}", curve.axis.name(), rung.load);
        (!limits.is_empty()).then(|| format!("undecided at {load}: {}", limits.join("; ")))
    };
    curve.rungs.iter().filter_map(of).collect()
}

/// Lists the parts of the objective that the runs of a load do not decide: what was observed, and what would
/// decide them. `why` adds the reasons. Empty if the objective as a whole is decided.
pub(crate) fn undecided_at(rung: &Rung, why: bool) -> Vec<String> {
    if rung.answer() != Some(Answer::Undecided) {
        return Vec::new();
    }
    let limits = rung.limits().into_iter().filter(|limit| limit.answer == Answer::Undecided);
    let mut said: Vec<String> = limits.map(|limit| format!("{} {}", limit.name(), limit.undecided(why))).collect();
    if rung.judged().is_some_and(|judged| judged.cost == Some(Answer::Undecided)) {
        said.push("cost_per_million (unknown, or repeats lie on both sides of the limit)".to_owned());
    }
    said
}

/// Lists the excluded invalid runs: `vllm · chat at qps 60, repeat 1: client_late`.
pub fn left_out(curves: &[Curve]) -> Vec<String> {
    let (models, sweeps) = differ(curves.iter().map(|curve| &curve.series));
    let mut names = Vec::new();
    for curve in curves {
        let title = title(&curve.series, models, sweeps);
        let of = |rung: &Rung| {
            let (load, axis) = (rung.load, curve.axis.name());
            let one = |(repeat, why): (u32, String)| format!("{title} at {axis} {load}, repeat {repeat}: {why}");
            rung.left_out_repeats().into_iter().map(one).collect::<Vec<_>>()
        };
        names.extend(curve.rungs.iter().flat_map(of));
    }
    names
}

/// Lists the excluded repeats of each load, with the reason; `None` if no repeats are excluded.
fn excluded(curve: &Curve) -> Option<String> {
    let of = |rung: &Rung| Some(format!("{} {} {}", curve.axis.name(), rung.load, rung.why_excluded()?));
    let loads: Vec<String> = curve.rungs.iter().filter_map(of).collect();
    (!loads.is_empty()).then(|| format!("excluded, because most repeats were not affected: {}", loads.join("; ")))
}

/// Lists the loads at which runs were given up, one sentence per reason, with the consequence: `given up: 429
/// (3 of 3) at qps 50 (repeat 2 of 3), 100: does not sustain the load`. Repeats are numbered from 0, as
/// everywhere.
fn given_up(curve: &Curve) -> Vec<String> {
    let at_load = |rung: &Rung<'_>, repeats: Vec<String>| {
        let of = rung.runs.len() + rung.left_out.len() + rung.given_up.len();
        match repeats.len() {
            all if all == of => rung.load.to_string(),
            1 => format!("{} (repeat {} of {of})", rung.load, repeats[0]),
            _ => format!("{} (repeats {} of {of})", rung.load, repeats.join(", ")),
        }
    };
    let mut all = Vec::new();
    for rung in &curve.rungs {
        let repeats = by_reason(rung.given_up.iter().map(|run| (run.given_up, run.labels.repeat.to_string())));
        all.extend(repeats.into_iter().map(|(why, repeats)| (why, at_load(rung, repeats))));
    }
    let axis = curve.axis.name();
    let line = |(why, loads): (&GivenUp, Vec<String>)| {
        let means = if why.is_a_miss() { "does not sustain the load" } else { "load not measured" };
        format!("{why} at {axis} {}: {means}", loads.join(", "))
    };
    by_reason(all.into_iter()).into_iter().map(line).collect()
}

/// Groups given-up runs by reason.
fn by_reason<'g>(all: impl Iterator<Item = (&'g GivenUp, String)>) -> Vec<(&'g GivenUp, Vec<String>)> {
    let mut reasons: IndexMap<String, (&GivenUp, Vec<String>)> = IndexMap::new();
    for (why, what) in all {
        reasons.entry(why.reason()).or_insert_with(|| (why, Vec::new())).1.push(what);
    }
    reasons.into_values().collect()
}

/// Lists the loads with results from suspect runs, by reason: `suspect: client_late at batch_size 4 (2
/// of 3), 8; unsteady at batch_size 8 (1 of 3)`.
fn suspects(curve: &Curve) -> Option<String> {
    let mut reasons: IndexMap<&str, Vec<String>> = IndexMap::new();
    for rung in &curve.rungs {
        let of = rung.runs.len();
        for (reason, count) in suspect_reasons(rung) {
            let share = if count < of { format!(" ({count} of {of})") } else { String::new() };
            reasons.entry(reason).or_default().push(format!("{}{share}", rung.load));
        }
    }
    let axis = curve.axis.name();
    let part = |(reason, loads): (&&str, &Vec<String>)| format!("{reason} at {axis} {}", loads.join(", "));
    let parts: Vec<String> = reasons.iter().map(part).collect();
    (!parts.is_empty()).then(|| format!("suspect: {}", parts.join("; ")))
}

/// Returns the reasons why runs of a rung are suspect, with the number of runs for each reason.
pub(super) fn suspect_reasons<'r>(rung: &Rung<'r>) -> IndexMap<&'r str, usize> {
    counts(rung.runs.iter().flat_map(|run| &run.verdict.reasons).map(|reason| reason.name))
}

fn knee(curve: &Curve) -> String {
    let axis = curve.axis.name();
    match curve.knee() {
        Knee::At { load, range, .. } if curve.axis == Axis::Qps => {
            let actual =
                curve.rung(load).and_then(Rung::arrived_rate).map(|rate| format!(" (actual {})", digits(rate)));
            let actual = actual.unwrap_or_default();
            format!("knee: {axis} {load}{actual}, {} (highest throughput / latency)", ranged(&range, f64::to_string))
        }
        Knee::At { load, range, .. } => format!(
            "knee: about {} requests in flight, {} (highest throughput × latency at the lightest load)",
            digits(load),
            ranged(&range, |end| digits(*end))
        ),
        Knee::Beyond { meet, heaviest } => format!(
            "knee: n/a: highest throughput × latency at the lightest load is {} requests in flight, above the \
             heaviest load ({heaviest}): measure heavier loads, and the lightest for longer",
            digits(meet)
        ),
        Knee::Before(load) => format!("knee: at or below {axis} {load}, the lightest load: measure lighter ones"),
        Knee::NotReached { .. } if curve.rejected_from().is_some() => {
            "knee: not reached below the first load that was given up: measure loads in between".to_owned()
        }
        Knee::NotReached { between: (before, last), rise } => {
            let remedy = match curve.not_shown().any(|rung| rung.load > last) {
                true => "measure the heavier loads for longer",
                false => "measure heavier loads",
            };
            let rise = digits(rise * 100.0);
            format!("knee: not reached; from {axis} {before} to {last}, requests/s rise by {rise} %: {remedy}")
        }
        Knee::TooFew(loads) => format!(
            "knee: n/a (loads={loads} < 3{})",
            if curve.axis == Axis::Qps { " that the server is shown to keep up with" } else { "" }
        ),
    }
}

/// Describes the range in which a knee may lie: `between 40 and 80`. If the range is based on repeats instead
/// of neighboring loads, this is stated too.
fn ranged(range: &Range, shown: fn(&f64) -> String) -> String {
    let Range { low, high, basis } = range;
    let text = match (low, high) {
        (Some(low), Some(high)) => format!("between {} and {}", shown(low), shown(high)),
        (Some(low), None) => format!("above {}, possibly above the measured loads", shown(low)),
        (None, Some(high)) => format!("below {}, possibly below the measured loads", shown(high)),
        (None, None) => "anywhere within the measured loads, as far as the repeats show".to_owned(),
    };
    match basis {
        Basis::Neighbours => text,
        Basis::Repeats => format!("{text} (95 %, {})", basis.name()),
    }
}

/// Describes the highest load of a curve that meets the objective; `None` without an objective, or if nothing is
/// known at any load. If a search chose the loads, these are the figures of the search.
pub(crate) fn highest(curve: &Curve, axis: &str) -> Option<String> {
    let found = curve.bracket()?;
    let highest = curve.highest();
    Some(match curve.search {
        Some(_) => {
            let is_alone = |rung: &&Rung| highest.observed < Some(rung.load) && rung.seen().met == Some(true);
            let alone: Vec<String> = curve.rungs.iter().filter(is_alone).map(|rung| rung.load.to_string()).collect();
            let alone = match alone.is_empty() {
                true => String::new(),
                false => format!(
                    "; {} met it alone as observed, but not by all runs of the search together",
                    alone.join(", ")
                ),
            };
            format!("{}{alone}", highest.words(|load| format!("{axis} {load}")))
        }
        None => bracket(&found, highest.observed, axis),
    })
}

/// Describes between which loads the highest load that meets the objective lies. `observed` is the highest load
/// that met the objective in what was seen.
fn bracket(found: &Bracket, observed: Option<f64>, axis: &str) -> String {
    let Bracket { holds, misses, undecided, too_dear, unknown, out_of_order, .. } = found;
    let mut text = match (holds, misses) {
        (Some(holds), Some(misses)) => format!("holds up to {axis} {holds}, misses at {misses}"),
        (Some(holds), None) if found.untold_above().is_empty() => {
            format!("holds up to {axis} {holds}; no load misses, so the limit lies above the measured loads")
        }
        (Some(holds), None) => {
            format!("holds up to {axis} {holds}; no load is shown to miss, so the limit may lie anywhere above")
        }
        (None, Some(misses)) => format!("no load is shown to hold; {axis} {misses} misses"),
        (None, None) => "no load is shown to hold or to miss".to_owned(),
    };
    if let Some(observed) = observed.filter(|observed| holds.is_none_or(|holds| *observed > holds)) {
        text.push_str(&format!("; observed up to {axis} {observed}, not proven"));
    }
    for (loads, before, after) in [
        (undecided, "undecided at", ""),
        (too_dear, "too expensive at", " (cost falls as load rises)"),
        (unknown, "no valid run at", ""),
        (out_of_order, "holds again at", " (not counted)"),
    ] {
        if !loads.is_empty() {
            let list = loads.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
            text.push_str(&format!("; {before} {list}{after}"));
        }
    }
    text
}

/// Returns the title of a curve: `vllm · chat`. `models` and `sweeps` add the model and the sweep, if these
/// distinguish curves.
pub fn title(series: &Series, models: bool, sweeps: bool) -> String {
    let mut parts = vec![plain(&series.endpoint)];
    parts.extend(models.then(|| plain(&series.model)));
    parts.push(plain(&series.scenario));
    parts.extend(series.axes.iter().map(|(name, value)| format!("{}={}", plain(name), plain(value))));
    parts.extend(series.cap.map(|cap| format!("at most {cap} in flight")));
    let title = parts.join(" · ");
    if sweeps { format!("{}: {title}", plain(&series.sweep)) } else { title }
}

/// Returns whether curves differ in their model, and whether they differ in their sweep.
pub fn differ<'a>(all: impl Iterator<Item = &'a Series> + Clone) -> (bool, bool) {
    let first = all.clone().next();
    let any = |other: fn(&Series, &Series) -> bool| first.is_some_and(|first| all.clone().any(|one| other(first, one)));
    (any(|a, b| a.model != b.model), any(|a, b| a.sweep != b.sweep))
}

#[cfg(test)]
#[path = "curves_tests.rs"]
mod tests;
