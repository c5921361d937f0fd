//! Curves that belong in one chart: same sweep, same load axis, same workload.

use indexmap::IndexMap;

use super::{Axis, Curve, alike};

/// Groups the curves, in the order of the first curve of each group. A group contains at most `most` curves,
/// as many as can be distinguished in a chart.
pub fn together<'c, 'a>(curves: &'c [Curve<'a>], most: usize) -> Vec<Vec<&'c Curve<'a>>> {
    let mut groups: Vec<Vec<&Curve>> = Vec::new();
    for served in alike(curves, |curve| &curve.series) {
        let mut of_sweeps: IndexMap<(&str, Axis), Vec<&Curve>> = IndexMap::new();
        for curve in served.into_iter().map(|at| &curves[at]) {
            of_sweeps.entry((&curve.series.sweep, curve.axis)).or_default().push(curve);
        }
        for all in of_sweeps.into_values() {
            groups.extend(all.chunks(most.max(1)).map(<[_]>::to_vec));
        }
    }
    groups
}
