//! Groups curves that are drawn together: they are from the same sweep, and have the same load axis, model
//! and scenario. A group has at most as many curves as a chart can distinguish.

use super::super::chart::MOST_SERIES;
use super::super::naming::arm;
use crate::analysis::curve::{Axis, Curve};
use crate::report::format::plain;

/// Curves that are drawn together.
pub(super) struct Group {
    /// The title of the group.
    pub(super) title: String,
    /// The load axis of the curves.
    pub(super) axis: Axis,
    /// The indices of the curves among all curves, at most as many as a chart can distinguish.
    pub(super) members: Vec<usize>,
    /// The labels that distinguish the curves, one per member.
    pub(super) labels: Vec<String>,
}

/// Groups all curves, in the order of each group's first curve.
pub(super) fn groups(curves: &[Curve]) -> Vec<Group> {
    let mut alike: Vec<Vec<usize>> = Vec::new();
    for (at, curve) in curves.iter().enumerate() {
        let fits = |group: &&mut Vec<usize>| is_alike(&curves[group[0]], curve);
        match alike.iter_mut().find(fits) {
            Some(group) => group.push(at),
            None => alike.push(vec![at]),
        }
    }
    let mut all = Vec::new();
    for members in alike {
        let first = &curves[members[0]];
        let parts = members.len().div_ceil(MOST_SERIES);
        for (part, members) in members.chunks(MOST_SERIES).enumerate() {
            let part = if parts > 1 { format!(", part {} of {parts}", part + 1) } else { String::new() };
            let by = match first.axis {
                Axis::Qps => "over the offered rate",
                Axis::BatchSize => "over batch size",
            };
            let title = format!("{}: {} {by}{part}", plain(&first.series.sweep), plain(&first.series.served()));
            let labels = members.iter().map(|at| arm(&curves[*at])).collect();
            all.push(Group { title, axis: first.axis, members: members.to_vec(), labels });
        }
    }
    all
}

fn is_alike(one: &Curve, other: &Curve) -> bool {
    let (a, b) = (&one.series, &other.series);
    one.axis == other.axis && (&a.sweep, &a.model, &a.scenario, &a.axes) == (&b.sweep, &b.model, &b.scenario, &b.axes)
}
