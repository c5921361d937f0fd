//! Pareto fronts over the rungs of all comparable curves.

use crate::plan::Slo;

use super::{Curve, Ordinate, Rung, alike, pareto};

/// A front: two figures with a trade-off between them.
#[derive(Debug, Clone, Copy)]
pub struct Front {
    /// The title of the front.
    pub title: &'static str,
    /// Names of the two figures.
    pub of: [&'static str; 2],
    /// For each of the two figures, whether less is better.
    less: [bool; 2],
}

/// The fronts that are the same for every plan.
pub static FRONTS: [Front; 2] = [
    Front {
        title: "tokens/s per user against tokens/s per accelerator",
        of: ["output_throughput_per_gpu", "user_throughput_mean"],
        less: [false, false],
    },
    Front {
        title: "output throughput against p99 of E2E latency",
        of: ["output_throughput", "e2e_p99"],
        less: [false, true],
    },
];

/// The front of token cost against the first latency that the objective limits, or against the median
/// TPOT if the objective limits no latency. A rung has a token cost only if prices are known.
pub fn money_front(slo: Option<&Slo>) -> Front {
    let (title, latency) = match Ordinate::limited(slo).first() {
        Some(reading) => ("cost per million output tokens against the objective's latency", reading.name),
        None => ("cost per million output tokens against p50 of TPOT", "tpot_p50"),
    };
    Front { title, of: ["cost_per_million_output_tokens", latency], less: [true, true] }
}

/// Whether a rung is on each of the fronts; `None` if the rung lacks one of the two figures, if it was
/// given up, or if the server was not shown to keep up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnFronts {
    /// Whether the rung is on the front of tokens/s per user against tokens/s per accelerator.
    pub user_over_gpu: Option<bool>,
    /// Whether the rung is on the front of output throughput against p99 of E2E latency.
    pub throughput_over_p99: Option<bool>,
    /// Whether the rung is on the front that [`money_front`] returns.
    pub cost_over_latency: Option<bool>,
}

/// Returns, for each rung of each curve, whether it is on each of the fronts among comparable curves.
pub fn on_fronts(curves: &[Curve], slo: Option<&Slo>) -> Vec<Vec<OnFronts>> {
    let fronts = [FRONTS[0], FRONTS[1], money_front(slo)];
    let on = fronts.each_ref().map(|front| on_front(curves, front));
    let of = |(at, curve): (usize, &Curve)| {
        let of = |(place, rung): (usize, &Rung)| {
            let is_on = |which: usize| fronts[which].values(rung).map(|_| on[which][at][place]);
            OnFronts { user_over_gpu: is_on(0), throughput_over_p99: is_on(1), cost_over_latency: is_on(2) }
        };
        curve.rungs.iter().enumerate().map(of).collect()
    };
    curves.iter().enumerate().map(of).collect()
}

/// Returns, for each rung of each curve, whether it is on this front among comparable curves.
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
    /// Returns the two figures of a rung; `None` if it lacks one. Also `None` if the server was not
    /// shown to keep up, because the served rate may then differ from the arrivals and looks worse the
    /// longer it is measured. Also `None` for a load that was given up in one of its repeats, because
    /// the server does not sustain this load.
    pub fn values(&self, rung: &Rung) -> Option<[f64; 2]> {
        if !rung.counts() || rung.is_rejected() {
            return None;
        }
        let value = |name: &str| Some(rung.figure(Ordinate::named(name)?)?.value);
        Some([value(self.of[0])?, value(self.of[1])?])
    }

    /// Returns, for each of the two figures, whether less is better.
    pub fn is_less_better(&self) -> [bool; 2] {
        self.less
    }

    /// Returns the two figures of a rung, negated if less is better, so that more is better for both;
    /// NaN if the rung has no figures that count.
    fn point(&self, rung: &Rung) -> (f64, f64) {
        let turned = |value: f64, less: bool| if less { -value } else { value };
        match self.values(rung) {
            Some([first, second]) => (turned(first, self.less[0]), turned(second, self.less[1])),
            None => (f64::NAN, f64::NAN),
        }
    }
}
