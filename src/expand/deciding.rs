//! Determines which findings of earlier sweeps a cell depends on.

use crate::plan::{AskedMetric, Plan};

use super::cell::Cell;
use super::gates::{gates_before, of_gate};
use super::known::{Finding, Known};
use super::pending::{Pending, Waits};

/// The findings of a sweep that apply to a cell: they have the same value on every common axis, except
/// for loads and aggregated axes.
pub(super) fn about<'k>(
    known: &'k Known,
    (from, metric): (&str, AskedMetric),
    over: &[String],
    cell: &Cell,
) -> Vec<&'k Finding> {
    let agrees = |(axis, value): &(String, String)| {
        over.contains(axis) || metric.is_over(axis) || cell.get(axis).is_none_or(|own| own.to_string() == *value)
    };
    let of_sweep = known.findings.iter().filter(|finding| *finding.sweep == *from && finding.metric == metric);
    of_sweep.filter(|finding| finding.cell.iter().all(agrees)).collect()
}

/// The findings of earlier sweeps that decide whether a cell becomes a run: findings for its load, its
/// `skip_if`, and the gates before it.
pub fn deciding<'k>(plan: &Plan, known: &'k Known, pending: &Pending) -> Vec<&'k Finding> {
    let Some(sweep) = plan.sweeps.get(&*pending.sweep) else { return Vec::new() };
    let (is_open, state) = (pending.state == Waits::Pending, pending.state);
    let takes = pending.cell.takes().filter(|_| is_open || state == Waits::Blocked);
    let taken = takes.flat_map(|take| about(known, (&take.from, take.take.into()), &take.over.0, &pending.cell));
    let skips = sweep.skip_if.iter().filter(|_| is_open || matches!(state, Waits::Blocked | Waits::Pruned));
    let skipped = skips.flat_map(|skip| about(known, (&skip.sweep, skip.metric), &[], &pending.cell));
    let is_gated = is_open || matches!(state, Waits::Stopped | Waits::Undecided);
    let gates = gates_before(plan, &pending.sweep).filter(|_| is_gated);
    let gated = gates.flat_map(|(_, gate)| of_gate(known, gate));
    let mut all: Vec<&Finding> = Vec::new();
    for finding in taken.chain(skipped).chain(gated) {
        if !all.iter().any(|other| std::ptr::eq(*other, finding)) {
            all.push(finding);
        }
    }
    all
}
