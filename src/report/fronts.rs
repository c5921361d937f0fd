//! Renders Pareto fronts of two figures over the rungs of all curves. A rung is on a front if no other rung
//! is at least as good in both figures and better in one.

use comfy_table::Cell;

use crate::analysis::curve::{Curve, FRONTS, Front, Ordinate, Rung, alike, money_front, on_front};
use crate::analysis::quantile;
use crate::analysis::saturation::State;
use crate::plan::Slo;

use super::curves::{FEW, differ, marked, title};
use super::format::{self, counts, plain};
use super::grid::{self, right};

/// Renders the fronts as tables, for the curves of the same requests, if they have at least two rungs. The front by cost
/// is included only if there is a price.
pub fn fronts(curves: &[Curve], slo: Option<&Slo>) -> String {
    let money = money_front(slo);
    let cost = Ordinate::named(money.of[0]);
    let mut rungs = curves.iter().flat_map(|curve| &curve.rungs);
    let has_price = rungs.any(|rung| cost.is_some_and(|cost| rung.figure(cost).is_some()));
    let all: Vec<Front> = FRONTS.into_iter().chain(has_price.then_some(money)).collect();
    let mut out = String::new();
    let groups = alike(curves, |curve| &curve.series);
    for group in &groups {
        // The heading names what is served only if there are several groups.
        let of =
            if groups.len() > 1 { format!("{}: ", plain(&curves[group[0]].series.served())) } else { String::new() };
        for front in &all {
            out.push_str(&one((curves, group), &on_front(curves, front), front, &of));
        }
    }
    out
}

fn one((curves, group): (&[Curve], &[usize]), on: &[Vec<bool>], front: &Front, of: &str) -> String {
    let all = || group.iter().flat_map(|at| curves[*at].rungs.iter().enumerate().map(move |(n, rung)| (*at, n, rung)));
    let known = all().filter(|(_, _, rung)| front.values(rung).is_some()).count();
    if known < 2 {
        // A single rung offers no choice, so nothing is printed. With several rungs, the text states why
        // there is no front.
        return match all().count() {
            0 | 1 => String::new(),
            rungs => {
                let left_out = left_out(all().map(|(_, _, rung)| rung), front);
                let text = format!("Pareto front: {of}{}: n/a ({known} of {rungs} loads count{left_out})", front.title);
                format!("\n{}", format::fill("", 2, &text))
            }
        };
    }
    let (models, sweeps) = differ(curves.iter().map(|curve| &curve.series));
    let mut table = grid::table();
    table.set_header([
        Cell::new("configuration"),
        Cell::new("load"),
        right(heading(front.of[0])),
        right(heading(front.of[1])),
    ]);
    let mut lines: Vec<([f64; 2], usize, &Rung)> = all()
        .filter(|(at, n, _)| on[*at][*n])
        .filter_map(|(at, _, rung)| Some((front.values(rung)?, at, rung)))
        .collect();
    lines.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]));
    let beaten = known - lines.len();
    let figures = |rung: &Rung| front.of.map(|name| rung.figure(Ordinate::named(name)?));
    let few = lines.iter().flat_map(|(_, _, rung)| figures(rung)).flatten().any(|figure| figure.few_samples);
    for (_, at, rung) in lines {
        let curve = &curves[at];
        let load = format!("{} {}", curve.axis.name(), rung.load);
        let name = title(&curve.series, models, sweeps);
        let [first, second] = figures(rung).map(|figure| figure.as_ref().map_or("n/a".to_owned(), marked));
        table.add_row([Cell::new(name), Cell::new(load), right(first), right(second)]);
    }
    let note = format!("{beaten} not on it{}", left_out(all().map(|(_, _, rung)| rung), front));
    let head = format::fill("", 2, &format!("Pareto front: {of}{} ({note})", front.title));
    let mark = if few { format!("{FEW}\n") } else { String::new() };
    format!("\n{head}\n{}{mark}\n", grid::text(table, 2, &[0]))
}

/// Returns the numbers of rungs that cannot be on a front, by reason, like `; 2 saturated; 1 without a run
/// that counts`. Each rung is counted only for the first reason that applies.
pub(crate) fn left_out<'r>(rungs: impl Iterator<Item = &'r Rung<'r>>, front: &Front) -> String {
    let reason = |rung: &Rung| match rung.state() {
        _ if front.values(rung).is_some() => None,
        _ if rung.is_rejected() => Some(GIVEN_UP),
        _ if rung.runs.is_empty() && !rung.given_up.is_empty() => Some(GIVEN_UP),
        _ if rung.runs.is_empty() => Some("without a run that counts"),
        Some(State::Saturated) => Some("saturated"),
        Some(State::NotShown) => Some("not shown to keep up"),
        Some(State::KeptUp) | None => Some("without one of the figures"),
    };
    counts(rungs.filter_map(reason)).iter().map(|(reason, count)| format!("; {count} {reason}")).collect()
}

const GIVEN_UP: &str = "given up";

/// Returns the heading of a figure's column.
fn heading(name: &str) -> String {
    let latency = |reading: &Ordinate| {
        let percentile = reading.percentile.map(quantile::name).unwrap_or_default();
        format!("{} {percentile}\nms", reading.metric(false).title)
    };
    match name {
        "output_throughput_per_gpu" => "per GPU\ntok/s".to_owned(),
        "user_throughput_mean" => "per user\ntok/s".to_owned(),
        "output_throughput" => "output\ntok/s".to_owned(),
        "cost_per_million_output_tokens" => "per million\ntokens".to_owned(),
        name => Ordinate::named(name).map_or_else(|| name.to_owned(), latency),
    }
}
