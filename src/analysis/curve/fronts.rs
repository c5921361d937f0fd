//! Pareto fronts over the rungs of all curves that serve the same.

use super::{Curve, Ordinate, Rung, alike, pareto};

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

/// For each rung of each curve whether it is on the two fronts, among the curves that serve the same.
pub fn on_fronts(curves: &[Curve]) -> Vec<Vec<[bool; 2]>> {
    let mut on: Vec<Vec<[bool; 2]>> = curves.iter().map(|curve| vec![[false; 2]; curve.rungs.len()]).collect();
    for group in alike(curves, |curve| &curve.series) {
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

impl Front {
    /// The two figures of a rung; none where it lacks one, and where the server was not shown to keep up: what is served then may
    /// not be what came, and the longer it is measured the worse it looks. Nor of a load that was given up in one of its repeats:
    /// the server does not meet it.
    pub fn values(&self, rung: &Rung) -> Option<[f64; 2]> {
        if !rung.counts() || rung.is_rejected() {
            return None;
        }
        let value = |name: &str| Some(rung.figure(Ordinate::named(name)?)?.value);
        Some([value(self.of[0])?, value(self.of[1])?])
    }

    /// Whether less of the second figure is better.
    pub fn is_less_better(&self) -> bool {
        self.less
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
