//! Pareto fronts over the rungs of all curves that serve the same.

use crate::plan::Slo;

use super::{Curve, FIGURES, Ordinate, Rung, alike, pareto};

/// A front: what is weighed against what.
#[derive(Debug, Clone, Copy)]
pub struct Front {
    /// What it is called.
    pub title: &'static str,
    /// Names of the two figures.
    pub of: [&'static str; 2],
    /// Of which of them less is better.
    less: [bool; 2],
}

/// The fronts.
pub static FRONTS: [Front; 2] = [
    Front {
        title: "tokens/s of a user over tokens/s of an accelerator",
        of: ["output_throughput_per_gpu", "user_throughput_mean"],
        less: [false, false],
    },
    Front {
        title: "output throughput over p99 of E2E latency",
        of: ["output_throughput", "e2e_p99"],
        less: [false, true],
    },
];

/// What tokens cost over the first latency that the objective limits, or without one over the median of TPOT. Only where prices are known
/// does a rung have the first figure.
pub fn money_front(slo: Option<&Slo>) -> Front {
    let limited = slo.and_then(|slo| FIGURES.iter().find(|reading| reading.limit(slo).is_some()));
    let (title, latency) = match limited {
        Some(reading) => ("cost per million output tokens over the objective's latency", reading.name),
        None => ("cost per million output tokens over p50 of TPOT", "tpot_p50"),
    };
    Front { title, of: ["cost_per_million_output_tokens", latency], less: [true, true] }
}

/// For each rung of each curve whether it is on the two fronts, among the curves that serve the same.
pub fn on_fronts(curves: &[Curve]) -> Vec<Vec<[bool; 2]>> {
    let [first, second] = FRONTS.each_ref().map(|front| on_front(curves, front));
    let pairs =
        |(first, second): (Vec<bool>, Vec<bool>)| first.into_iter().zip(second).map(<[bool; 2]>::from).collect();
    first.into_iter().zip(second).map(pairs).collect()
}

/// For each rung of each curve whether it is on this front, among the curves that serve the same.
pub fn on_front(curves: &[Curve], front: &Front) -> Vec<Vec<bool>> {
    let mut on: Vec<Vec<bool>> = curves.iter().map(|curve| vec![false; curve.rungs.len()]).collect();
    for group in alike(curves, |curve| &curve.series) {
        let places: Vec<(usize, usize)> =
            group.iter().flat_map(|at| (0..curves[*at].rungs.len()).map(move |rung| (*at, rung))).collect();
        let points: Vec<(f64, f64)> =
            places.iter().map(|(curve, rung)| front.point(&curves[*curve].rungs[*rung])).collect();
        for ((curve, rung), is_on) in places.iter().zip(pareto::front(&points)) {
            on[*curve][*rung] = is_on;
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

    /// Of which of the two figures less is better.
    pub fn is_less_better(&self) -> [bool; 2] {
        self.less
    }

    /// Two figures of which more is better.
    fn point(&self, rung: &Rung) -> (f64, f64) {
        let turned = |value: f64, less: bool| if less { -value } else { value };
        match self.values(rung) {
            Some([first, second]) => (turned(first, self.less[0]), turned(second, self.less[1])),
            None => (f64::NAN, f64::NAN),
        }
    }
}
