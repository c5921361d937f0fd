//! Groups curves that are drawn together: they are from the same sweep, and have the same load axis and the same
//! requests. A group has at most as many curves as a chart can distinguish.

use super::super::chart::MOST_SERIES;
use crate::analysis::curve::{Axis, Curve, Together, together};
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
    let group = |found: Together| {
        let first = &curves[found.members[0]];
        let by = match first.axis {
            Axis::Qps => "over the offered rate",
            Axis::BatchSize => "over batch size",
        };
        let (sweep, served) = (plain(&first.series.sweep), plain(&first.series.served()));
        Group {
            title: format!("{sweep}: {served} {by}{}", found.part_of()),
            axis: first.axis,
            labels: found.labels.iter().map(|label| plain(label)).collect(),
            members: found.members,
        }
    };
    together(curves, MOST_SERIES).into_iter().map(group).collect()
}
