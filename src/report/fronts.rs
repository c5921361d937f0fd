//! Pareto fronts over the rungs of all curves: which configurations no other one beats in both of two things.

use comfy_table::{Cell, CellAlignment};

use crate::analysis::curve::{Curve, Reading, Rung, pareto};

use super::curves::{differ, title};
use super::format::{self, digits};

/// A front: what is weighed against what.
struct Front {
    title: &'static str,
    /// Name and heading of the two figures.
    of: [(&'static str, &'static str); 2],
    /// Whether less of the second figure is better.
    less: bool,
}

const FRONTS: [Front; 2] = [
    Front {
        title: "tokens/s of a user over tokens/s of an accelerator",
        of: [("output_throughput_per_gpu", "per GPU\ntok/s"), ("user_throughput_mean", "per user\ntok/s")],
        less: false,
    },
    Front {
        title: "output throughput over p99 of E2E latency",
        of: [("output_throughput", "output\ntok/s"), ("e2e_p99", "E2E p99\nms")],
        less: true,
    },
];

/// For each rung of each curve whether it is on the two fronts, among the curves with its model and scenario.
pub fn on_fronts(curves: &[Curve]) -> Vec<Vec<[bool; 2]>> {
    let mut on: Vec<Vec<[bool; 2]>> = curves.iter().map(|curve| vec![[false; 2]; curve.rungs.len()]).collect();
    for group in groups(curves) {
        for (which, front) in FRONTS.iter().enumerate() {
            let places: Vec<(usize, usize)> =
                group.iter().flat_map(|at| (0..curves[*at].rungs.len()).map(move |rung| (*at, rung))).collect();
            let points: Vec<(f64, f64)> =
                places.iter().map(|(curve, rung)| front.point(&curves[*curve].rungs[*rung])).collect();
            for ((curve, rung), is_on) in places.iter().zip(pareto::front(&points)) {
                on[*curve][*rung][which] = is_on;
            }
        }
    }
    on
}

/// Curves that can be weighed against each other: of one model and scenario.
fn groups(curves: &[Curve]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, curve) in curves.iter().enumerate() {
        let like = |group: &&mut Vec<usize>| {
            let first = &curves[group[0]].series;
            first.model == curve.series.model && first.scenario == curve.series.scenario
        };
        match groups.iter_mut().find(like) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    groups
}

impl Front {
    fn values(&self, rung: &Rung) -> Option<[f64; 2]> {
        let value = |name: &str| Some(rung.figure(Reading::named(name)?)?.value);
        Some([value(self.of[0].0)?, value(self.of[1].0)?])
    }

    /// Two figures of which more is better.
    fn point(&self, rung: &Rung) -> (f64, f64) {
        match self.values(rung) {
            Some([first, second]) if self.less => (first, -second),
            Some([first, second]) => (first, second),
            None => (f64::NAN, f64::NAN),
        }
    }
}

/// The fronts as tables, for each model and scenario that has two rungs or more.
pub fn fronts(curves: &[Curve]) -> String {
    let on = on_fronts(curves);
    let mut out = String::new();
    for group in groups(curves) {
        for (which, front) in FRONTS.iter().enumerate() {
            out.push_str(&one(curves, &group, &on, (which, front)));
        }
    }
    out
}

fn one(curves: &[Curve], group: &[usize], on: &[Vec<[bool; 2]>], (which, front): (usize, &Front)) -> String {
    let all = || group.iter().flat_map(|at| curves[*at].rungs.iter().enumerate().map(move |(n, rung)| (*at, n, rung)));
    let known = all().filter(|(_, _, rung)| front.values(rung).is_some()).count();
    if known < 2 {
        return String::new();
    }
    let (models, sweeps) = differ(curves.iter().map(|curve| &curve.series));
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let mut table = format::table();
    table.set_header([
        Cell::new("configuration"),
        Cell::new("load"),
        right(front.of[0].1.to_owned()),
        right(front.of[1].1.to_owned()),
    ]);
    let mut lines: Vec<([f64; 2], usize, &Rung)> = all()
        .filter(|(at, n, _)| on[*at][*n][which])
        .filter_map(|(at, _, rung)| Some((front.values(rung)?, at, rung)))
        .collect();
    lines.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]));
    let beaten = known - lines.len();
    for ([first, second], at, rung) in lines {
        let curve = &curves[at];
        let load = format!("{} {}", curve.axis.name(), rung.load);
        let name = title(&curve.series, models, sweeps);
        table.add_row([Cell::new(name), Cell::new(load), right(digits(first)), right(digits(second))]);
    }
    let absent = all().count() - known;
    let note = match absent {
        0 => format!("{beaten} beaten in both"),
        absent => format!("{beaten} beaten in both; {absent} without one of the figures"),
    };
    format!("\nPareto front: {} ({note})\n\n{}\n", front.title, format::text(table, 2, &[0]))
}
