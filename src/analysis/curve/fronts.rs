//! Pareto fronts over the rungs of all curves that serve the same.

use super::{Curve, Reading, Rung, pareto};

/// A front: what is weighed against what.
#[derive(Debug, Clone, Copy)]
pub struct Front {
    /// What it is called.
    pub title: &'static str,
    /// Names of the two figures.
    pub of: [&'static str; 2],
    /// Whether less of the second figure is better.
    less: bool,
}

/// The fronts.
pub static FRONTS: [Front; 2] = [
    Front {
        title: "tokens/s of a user over tokens/s of an accelerator",
        of: ["output_throughput_per_gpu", "user_throughput_mean"],
        less: false,
    },
    Front { title: "output throughput over p99 of E2E latency", of: ["output_throughput", "e2e_p99"], less: true },
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
pub fn groups(curves: &[Curve]) -> Vec<Vec<usize>> {
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
    /// The two figures of a rung; none where it lacks one.
    pub fn values(&self, rung: &Rung) -> Option<[f64; 2]> {
        let value = |name: &str| Some(rung.figure(Reading::named(name)?)?.value);
        Some([value(self.of[0])?, value(self.of[1])?])
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
