//! Pareto fronts over the rungs of all curves: which configurations no other one beats in both of two things.

use comfy_table::Cell;

use crate::analysis::curve::{Curve, FRONTS, Front, Ordinate, Rung, alike, on_fronts};
use crate::analysis::saturation::State;

use super::curves::{FEW, differ, marked, title};
use super::format::{self, counts, plain};
use super::grid::{self, right};

/// The fronts as tables, for each model and scenario that has two rungs or more.
pub fn fronts(curves: &[Curve]) -> String {
    let on = on_fronts(curves);
    let mut out = String::new();
    let groups = alike(curves, |curve| &curve.series);
    for group in &groups {
        // What is served stands in the heading where it tells fronts apart.
        let of =
            if groups.len() > 1 { format!("{}: ", plain(&curves[group[0]].series.served())) } else { String::new() };
        for (which, front) in FRONTS.iter().enumerate() {
            out.push_str(&one((curves, group), &on, (which, front), &of));
        }
    }
    out
}

fn one(
    (curves, group): (&[Curve], &[usize]),
    on: &[Vec<[bool; 2]>],
    (which, front): (usize, &Front),
    of: &str,
) -> String {
    let all = || group.iter().flat_map(|at| curves[*at].rungs.iter().enumerate().map(move |(n, rung)| (*at, n, rung)));
    let known = all().filter(|(_, _, rung)| front.values(rung).is_some()).count();
    if known < 2 {
        // A single rung is no choice; where there are several, what they lack is said.
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
        .filter(|(at, n, _)| on[*at][*n][which])
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

/// Why rungs are on no front, each for the first reason that is true of it: `; 2 saturated; 1 without a valid run`.
pub(crate) fn left_out<'r>(rungs: impl Iterator<Item = &'r Rung<'r>>, front: &Front) -> String {
    let reason = |rung: &Rung| match rung.state() {
        _ if front.values(rung).is_some() => None,
        _ if rung.is_rejected() => Some(GIVEN_UP),
        _ if rung.runs.is_empty() && !rung.given_up.is_empty() => Some(GIVEN_UP),
        _ if rung.runs.is_empty() => Some("without a run that counts"),
        Some(State::Saturated) => Some("saturated"),
        Some(State::NotShown) => Some("not shown to be kept up with"),
        Some(State::KeptUp) | None => Some("without one of the figures"),
    };
    counts(rungs.filter_map(reason)).iter().map(|(reason, count)| format!("; {count} {reason}")).collect()
}

const GIVEN_UP: &str = "given up";

/// The heading of a figure.
fn heading(name: &str) -> &'static str {
    match name {
        "output_throughput_per_gpu" => "per GPU\ntok/s",
        "user_throughput_mean" => "per user\ntok/s",
        "output_throughput" => "output\ntok/s",
        _ => "E2E p99\nms",
    }
}
