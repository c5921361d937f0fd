//! Renders the load that each configuration sustains under the objective, and the cost of serving a target
//! load.

use comfy_table::Cell;

use crate::analysis::capacity::{Bound, Fleet, Instance, Target};
use crate::analysis::curve::{Curve, Figure, Limit, Rung, alike};
use crate::analysis::slo;
use crate::plan::{Percentile, Slo};
use crate::units::Currency;
use crate::units::Nanos;

use super::configuration::{Answer, Configuration};
use super::curves::{differ, highest, suspect_reasons, title, undecided_at, window_to_keep_up};
use super::format::{self, digits, plain};
use super::grid::{self, right};
use super::scaling::scalings;
use super::spread;

/// Formats an amount with its currency: `0.347 EUR`; only the number if the plan names no currency.
pub(crate) fn priced(money: String, currency: Option<Currency>) -> String {
    currency.map_or(money.clone(), |currency| format!("{money} {currency}"))
}

/// Returns the indices of the cheapest configurations for each model and scenario, by cost per month at the
/// target, or without a target, by cost per token. There are several if their costs are equal. If a
/// configuration that meets the objective at some load has no price, there is no result for its model and
/// scenario.
pub fn cheapest(configurations: &[Configuration], target: Option<Target>) -> Vec<Vec<usize>> {
    let of = |group: &Vec<usize>| {
        let holding = group.iter().filter(|at| matches!(configurations[**at].answer, Answer::Holds { .. }));
        let priced: Option<Vec<(usize, f64)>> =
            holding.map(|at| Some((*at, configurations[*at].price(target)?))).collect();
        let priced = priced.unwrap_or_default();
        let least = priced.iter().map(|(_, price)| *price).min_by(f64::total_cmp)?;
        Some(priced.iter().filter(|(_, price)| *price <= least * (1.0 + 1e-9)).map(|(at, _)| *at).collect())
    };
    groups(configurations).iter().filter_map(of).collect()
}

/// Groups configurations that serve the same model and scenario.
fn groups(configurations: &[Configuration]) -> Vec<Vec<usize>> {
    alike(configurations, |one| &one.curve.series)
}

/// Renders the whole result, at most 100 columns wide. `why` adds the reasons why limits are undecided.
pub fn capacity(configurations: &[Configuration], target: Option<Target>, slo: Option<&Slo>, why: bool) -> String {
    let (models, sweeps) = differ(configurations.iter().map(|one| &one.curve.series));
    let name = |at: usize| title(&configurations[at].curve.series, models, sweeps);
    let mut out = format::fill("", 0, &head(target, slo)).trim_start().to_owned();
    for line in failed(configurations) {
        out.push_str(&format::fill("errors: ", 8, &line));
    }
    let holding: Vec<usize> =
        (0..configurations.len()).filter(|at| matches!(configurations[*at].answer, Answer::Holds { .. })).collect();
    if !holding.is_empty() {
        out.push_str(&format!("\n{}\n", table(configurations, &holding, target, &name)));
        out.push_str(&format::fill("", 2, legend(target)));
    }
    for note in notes(configurations, &holding, &name, why) {
        out.push_str(&format::fill("note: ", 6, &note));
    }
    for measured in scalings(configurations) {
        out.push_str(&format::fill("", 4, &measured.line(target)));
    }
    for best in cheapest(configurations, target) {
        out.push_str(&format::fill("", 4, &cheapest_line(configurations, &best, target, &name)));
        for doubt in doubts(configurations, &best, target, &name) {
            out.push_str(&format::fill(" ", 4, &format!("not certain: {doubt}")));
        }
    }
    if cheapest(configurations, target).is_empty() && !holding.is_empty() {
        let text = "cannot determine the cheapest: declare hardware: { price_per_hour } or { owned } for every \
            endpoint that holds";
        out.push_str(&format::fill("", 4, text));
    }
    let others: Vec<String> =
        (0..configurations.len()).filter_map(|at| other(&configurations[at], &name(at))).collect();
    if !others.is_empty() {
        out.push_str("\nnot counted\n");
        others.iter().for_each(|line| out.push_str(&format::fill(" ", 4, line)));
    }
    out
}

fn head(target: Option<Target>, slo: Option<&Slo>) -> String {
    let objective = slo.map(objective).unwrap_or_default();
    match target {
        Some(Target { qps, headroom }) if headroom > 0.0 => {
            format!("to serve {qps} requests/s with {} % headroom, under {objective}", headroom * 100.0)
        }
        Some(Target { qps, .. }) => format!("to serve {qps} requests/s, under {objective}"),
        None => format!("what one instance sustains under {objective} (--target-qps N counts instances)"),
    }
}

/// Formats the objective in one line: `ttft p99 ≤ 500ms, itl p99 ≤ 50ms`.
pub(crate) fn objective(slo: &Slo) -> String {
    let Slo { ttft, itl, tpot, e2e, cost_per_million } = slo;
    let of = |name: &'static str, limits: &indexmap::IndexMap<Percentile, Nanos>| -> Vec<String> {
        limits.iter().map(|(percentile, limit)| format!("{name} {} ≤ {limit}", percentile.name())).collect()
    };
    let limits = [of("ttft", ttft), of("itl", itl), of("tpot", tpot), of("e2e", e2e)].concat();
    let cost = cost_per_million.map(|cost| format!("cost per million output tokens ≤ {cost}"));
    limits.into_iter().chain(cost).collect::<Vec<_>>().join(", ")
}

/// Returns one sentence for each load whose result is affected by errors, for one of three reasons: the
/// server failed so many requests that a run is invalid, repeats are excluded because of a burst of errors,
/// or failures are at least half of the requests above a limit that is not shown to be met. The sentences are
/// shown above the prices, which depend on these loads.
pub fn failed(configurations: &[Configuration]) -> Vec<String> {
    let (models, sweeps) = differ(configurations.iter().map(|one| &one.curve.series));
    let mut lines = Vec::new();
    for curve in configurations.iter().map(|one| one.curve) {
        let name = title(&curve.series, models, sweeps);
        for rung in &curve.rungs {
            lines.extend(failed_at(rung).map(|why| format!("{name} at {} {}: {why}", curve.axis.name(), rung.load)));
        }
    }
    lines
}

fn failed_at(rung: &Rung) -> Option<String> {
    let (failed, requests) = rung.failed_requests();
    let is_by_errors = |limit: &Limit| {
        // ITL limits count gaps instead of requests, and a failed request has no gaps.
        let is_of_requests = limit.metric != "itl" && limit.evidence.above > 0;
        limit.answer != slo::Answer::Holds && is_of_requests && 2 * failed >= limit.evidence.above
    };
    let kinds = || {
        let mut kinds: Vec<String> = Vec::new();
        for failure in rung.runs.iter().chain(&rung.left_out).flat_map(|run| &run.metrics.failures.0) {
            let kind = failure.outcome.to_string();
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds.join(", ")
    };
    let count = || format!("{failed} of {requests} requests failed ({})", kinds());
    let burst = rung.excluded.iter().find(|one| one.reason == "errors_bunched").and_then(|_| rung.why_excluded());
    match (rung.has_failed(), burst) {
        (true, _) => Some(format!("{}: does not sustain the load", count())),
        (false, Some(why)) => Some(format!("excluded: {why}")),
        (false, None) if failed > 0 && rung.limits().iter().any(is_by_errors) => {
            Some(format!("{}: they are at least half of the requests above a limit", count()))
        }
        (false, None) => None,
    }
}

/// Returns the legend that explains the figures in brackets; `--explain` describes all other figures.
fn legend(target: Option<Target>) -> &'static str {
    match target {
        Some(_) => {
            "in brackets: the lowest load that misses (none: no load is shown to miss), and the lowest possible \
             number of instances and cost (?: unknown); n instances are assumed to serve n times as much as one; \
             figures per token and per joule: at max qps; --explain describes the calculation"
        }
        None => {
            "in brackets: the lowest load that misses (none: no load is shown to miss); --explain describes the \
            calculation"
        }
    }
}

/// Returns notes on the runs that the results are based on. `why` adds the reasons why limits are undecided.
pub(super) fn notes(configurations: &[Configuration], holding: &[usize], name: Name, why: bool) -> Vec<String> {
    let rung = |at: usize| match &configurations[at].answer {
        Answer::Holds { instance, .. } => configurations[at].curve.rung(instance.holds),
        _ => None,
    };
    let is_single = |at: &usize| rung(*at).is_some_and(|rung| rung.runs.len() == 1);
    let all_single = !holding.is_empty() && holding.iter().all(is_single);
    let single = "based on one run: `repeats` would show the variation between runs";
    let mut notes: Vec<String> = all_single.then(|| format!("each of these is {single}")).into_iter().collect();
    for at in holding {
        let mut parts = Vec::new();
        if is_single(at) && !all_single {
            parts.push(single.to_owned());
        }
        let suspect = rung(*at).map(|rung| (suspect_reasons(rung), rung.runs.len())).unwrap_or_default();
        if !suspect.0.is_empty() {
            let reasons = suspect.0.iter().map(|(reason, count)| format!("{reason} ({count} of {})", suspect.1));
            parts.push(format!("suspect: {}", reasons.collect::<Vec<_>>().join(", ")));
        }
        let Answer::Holds { instance, bracket, .. } = &configurations[*at].answer else { continue };
        let curve = configurations[*at].curve;
        // A search runs many loads close to its result, so its figures say more than each of them.
        match curve.search {
            Some(found) => {
                let observed = found.observed.filter(|observed| *observed > instance.holds);
                parts.extend(observed.map(|observed| format!("observed qps {observed}, not shown")));
            }
            None => {
                let above = bracket.undecided.iter().filter(|load| **load > instance.holds);
                parts.extend(above.map(|load| undecided_above(curve, *load, why)));
            }
        }
        parts.extend(rung(*at).and_then(|rung| rung.why_excluded()).map(|why| format!("excluded: {why}")));
        if !parts.is_empty() {
            notes.push(format!("{} at qps {}: {}", name(*at), instance.holds, parts.join("; ")));
        }
        let missed = bracket.misses.and_then(|load| configurations[*at].curve.rung(load));
        let given_up = missed.and_then(|rung| Some((rung.load, rung.why_given_up()?)));
        notes.extend(given_up.map(|(load, why)| format!("{} at qps {load}: given up: {why}", name(*at))));
    }
    notes
}

/// Describes an undecided load above the highest load that meets the objective, and what would decide it.
fn undecided_above(curve: &Curve, load: f64, why: bool) -> String {
    let mut said = curve.rung(load).map(|rung| undecided_at(rung, why)).unwrap_or_default();
    let not_shown = curve.not_shown().find(|rung| rung.load == load);
    said.extend(not_shown.map(|rung| format!("whether the server keeps up{}", window_to_keep_up(rung))));
    let said = if said.is_empty() { String::new() } else { format!(": {}", said.join(", ")) };
    format!("the higher load {load} is undecided{said}")
}

/// Describes how another configuration could be the cheapest: its limit may be higher within its bracket, or
/// above the measured loads.
pub(super) fn doubts(
    configurations: &[Configuration],
    best: &[usize],
    target: Option<Target>,
    name: Name,
) -> Vec<String> {
    let Some(least) = best.first().and_then(|at| configurations[*at].price(target)) else { return Vec::new() };
    let group = groups(configurations).into_iter().find(|group| group.contains(&best[0])).unwrap_or_default();
    let doubt = |at: usize| {
        let Answer::Holds { instance, bracket, .. } = &configurations[at].answer else { return None };
        let name = name(at);
        let Some(misses) = instance.misses else {
            let holds = instance.holds;
            return Some(match bracket.untold_above()[..] {
                [] => format!("{name} has not reached its limit: measure above qps {holds}"),
                [first, ..] => {
                    format!(
                        "{name} is not shown to have reached its limit: measure for longer, from qps \
                        {first} upwards"
                    )
                }
            });
        };
        let price = instance.price_at_most(target).filter(|price| *price < least)?;
        let what = if target.is_some() { "a month" } else { "per million output tokens" };
        let price = priced(digits(price), configurations[at].currency);
        let holds = instance.holds;
        let limit = match instance.bound()? {
            Bound::Missed(_) => format!("its limit is just below qps {misses}"),
            Bound::Served(rate) => format!(
                "one instance meets the objective at {} requests/s, the most it served when saturated (upper \
                end of a 95 % interval)",
                digits(rate)
            ),
        };
        Some(format!(
            "{name} could cost as little as {price} {what} if {limit}; measure between qps {holds} and {misses}"
        ))
    };
    group.into_iter().filter(|at| !best.contains(at)).filter_map(doubt).collect()
}

pub(super) type Name<'a> = &'a dyn Fn(usize) -> String;

fn table(configurations: &[Configuration], holding: &[usize], target: Option<Target>, name: Name) -> String {
    let currency = configurations.first().and_then(|one| one.currency);
    let money = currency.map_or_else(|| "money".to_owned(), |currency| currency.to_string());
    let a_month = format!("{money} a month\n(at least)");
    let per_million = format!("{money}\nper M tok");
    let tokens_per = format!("tok per\n{money}");
    let in_one_line = tokens_per.replace('\n', " ");
    // Headings of the columns that are dropped on a narrow screen, in this order.
    let less_needed = ["tok per joule", in_one_line.as_str(), "actual req/s"];
    let mut headings = vec!["configuration", "max qps\n(misses)", "actual\nreq/s", "output\ntok/s"];
    if target.is_some() {
        headings.extend(["instances\n(at least)", "GPUs", a_month.as_str()]);
    }
    headings.extend([per_million.as_str(), tokens_per.as_str(), "tok per\njoule"]);
    grid::text_of_fewer(&less_needed, (1, &[0]), |left_out| {
        let places = grid::places(headings.iter().copied(), left_out);
        let aligned = |at: usize, text: &str| if at == 0 { Cell::new(text) } else { right(text) };
        let mut table = grid::table();
        table.set_header(places.iter().map(|at| aligned(*at, headings[*at])));
        for at in holding {
            let Some(cells) = cells(&configurations[*at], target, &name(*at)) else { continue };
            table.add_row(places.iter().map(|at| aligned(*at, &cells[*at])));
        }
        table
    })
}

/// Returns all cells of a configuration that meets the objective at some load; `None` for other
/// configurations.
fn cells(one: &Configuration, target: Option<Target>, name: &str) -> Option<Vec<String>> {
    let Answer::Holds { instance, bracket, output } = &one.answer else { return None };
    let misses = bracket.misses.map_or("none".to_owned(), |load| load.to_string());
    let actual = instance.bears_less_than.map(|rate| format!("\n({})", digits(rate))).unwrap_or_default();
    let mut cells = vec![
        name.to_owned(),
        format!("{}\n({misses})", instance.holds),
        format!("{}{actual}", digits(instance.bears)),
        with_ends(output),
    ];
    cells.extend(target.map(|target| fleet(&instance.fleet(target))).into_iter().flatten());
    cells.push(per_million(instance, output));
    cells.push(or_na(instance.tokens_per_money(), digits));
    cells.push(per_joule(instance));
    Some(cells)
}

/// Formats the tokens per joule: a measured value is followed by its source, a declared value is shown alone.
fn per_joule(instance: &Instance) -> String {
    match (instance.measured, instance.tokens_per_joule()) {
        (Some(measured), _) => format!("{}\n{}", digits(measured.tokens), measured.by.name()),
        (None, declared) => or_na(declared, digits),
    }
}

fn or_na(value: Option<f64>, shown: fn(f64) -> String) -> String {
    value.map_or_else(|| "n/a".to_owned(), shown)
}

fn with_ends(figure: &Figure) -> String {
    let spread = spread::in_cell(figure).map(|spread| format!("\n{spread}"));
    format!("{}{}", digits(figure.value), spread.unwrap_or_default())
}

/// Formats the cost per million tokens, with an interval that is derived from the interval of the output
/// throughput.
fn per_million(instance: &Instance, output: &Figure) -> String {
    let joined = if output.pair.is_some() { " and " } else { "–" };
    let ends = per_million_ends(instance, output).map(|ends| format!("\n{}", ends.map(digits).join(joined)));
    format!("{}{}", or_na(instance.per_million(), digits), ends.unwrap_or_default())
}

/// Returns the ends of the interval of the cost per million tokens; for two repeats, the values of both
/// repeats. `None` if there is no interval or no price.
pub(super) fn per_million_ends(instance: &Instance, output: &Figure) -> Option<[f64; 2]> {
    let at = |throughput: f64| Instance { output_throughput: throughput, ..*instance }.per_million();
    let [low, high] = output.span()?;
    Some([at(high)?, at(low)?])
}

fn fleet(fleet: &Fleet) -> [String; 3] {
    let at_least = fleet.at_least.map_or("?".to_owned(), |least| least.to_string());
    let money = |money: f64| format!("{money:.0}");
    let lower_end = fleet.per_month.map(|_| format!("\n({})", fleet.per_month_at_least.map_or("?".to_owned(), money)));
    [
        format!("{}\n({at_least})", fleet.instances),
        fleet.gpus.map_or("n/a".to_owned(), |gpus| gpus.to_string()),
        format!("{}{}", or_na(fleet.per_month, money), lower_end.unwrap_or_default()),
    ]
}

pub(super) fn cheapest_line(
    configurations: &[Configuration],
    best: &[usize],
    target: Option<Target>,
    name: Name,
) -> String {
    let Some(first) = best.first().map(|at| &configurations[*at]) else { return String::new() };
    let Answer::Holds { instance, .. } = &first.answer else { return String::new() };
    let of = plain(&first.curve.series.served());
    let alike = if best.len() > 1 { " alike" } else { "" };
    let names = best.iter().map(|at| name(*at)).collect::<Vec<_>>().join(" and ");
    match target {
        Some(target) => {
            let fleet = instance.fleet(target);
            let instances = if fleet.instances == 1 { "instance" } else { "instances" };
            let range = |least: Option<f64>, most: f64, shown: fn(f64) -> String| {
                let lower = least.filter(|least| *least < most).map(|least| format!("{} to ", shown(least)));
                priced(format!("{}{}", lower.unwrap_or_default(), shown(most)), first.currency)
            };
            let whole = |money: f64| format!("{money:.0}");
            let money = fleet.per_month.map(|money| range(fleet.per_month_at_least, money, whole));
            let money = money.unwrap_or_else(|| "n/a".to_owned());
            let at_target = fleet.per_million_at_target.map_or_else(String::new, |money| {
                let money = range(fleet.per_million_at_target_at_least, money, digits);
                format!(", {money} per million output tokens at {} requests/s", target.qps)
            });
            let least = fleet.at_least.filter(|least| *least < fleet.instances);
            let least = least.map(|least| format!("{least} to ")).unwrap_or_default();
            let count = fleet.instances;
            format!("cheapest for {of}: {names}{alike}, {least}{count} {instances}, {money} a month{at_target}")
        }
        None => format!(
            "cheapest for {of}: {names}{alike}, {} per million output tokens at qps {}",
            instance.per_million().map_or_else(|| "n/a".to_owned(), |money| priced(digits(money), first.currency)),
            instance.holds
        ),
    }
}

/// Describes a configuration that is not in the table; `None` if it is in the table.
pub(super) fn other(one: &Configuration, name: &str) -> Option<String> {
    match &one.answer {
        Answer::Holds { .. } => None,
        Answer::Rejected(why) => Some(format!("{name}: {why}")),
        Answer::Closed(_) => {
            let found = highest(one.curve, one.curve.axis.name())?;
            let text = "a closed loop does not measure arrival rates (sweep `qps` for that)";
            Some(format!("{name}: {text}; objective: {found}"))
        }
    }
}
