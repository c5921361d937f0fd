//! Where a curve bends: the load beyond which more of it costs more than it brings.
//!
//! Open loops: the load with the most *power*, throughput over latency (Kleinrock, "Power and deterministic rules of thumb
//! for probabilistic problems in computer communications", ICC 1979). For one server with Poisson arrivals and a coefficient
//! of variation c of its service times, that is at a utilization of 1 / (1 + √((1 + c²) / 2)).
//!
//! Closed loops: where the two bounds of operational analysis meet (Denning and Buzen, "The operational analysis of queueing
//! network models", 1978): few requests in flight cannot bring more than N / R₀, many not more than X_max, so
//! N* = X_max × R₀. R₀ is the latency at the lightest load, X_max the highest throughput, and only where the curve is flat at its
//! end: else it has not bent yet.

/// One load of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Arrivals per second, or requests in flight.
    pub load: f64,
    /// Completed requests per second.
    pub throughput: f64,
    /// Mean latency of a request, in seconds.
    pub latency: f64,
}

/// Where a curve bends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Knee {
    /// Here.
    At {
        /// The load.
        load: f64,
        /// The loads of the ladder between which it lies for certain.
        between: (f64, f64),
    },
    /// The curve still rises at its last load: by this share of throughput from the last but one.
    NotReached(f64),
    /// The curve falls from its first load on: the knee is at or below it.
    Before(f64),
    /// Fewer than three loads.
    TooFew(usize),
}

/// A rise of throughput from one load to the next that is less than this share of the rise of the load is flat.
const FLAT: f64 = 0.1;

/// The knee of an open loop; `steps` rise in load.
pub fn open(steps: &[Step]) -> Knee {
    if steps.len() < 3 {
        return Knee::TooFew(steps.len());
    }
    let power = |step: &Step| step.throughput / step.latency;
    let best = (0..steps.len()).max_by(|a, b| power(&steps[*a]).total_cmp(&power(&steps[*b]))).unwrap_or(0);
    match best {
        0 => Knee::Before(steps[0].load),
        last if last + 1 == steps.len() => Knee::NotReached(rise(steps)),
        best => Knee::At { load: steps[best].load, between: (steps[best - 1].load, steps[best + 1].load) },
    }
}

/// The knee of a closed loop; `steps` rise in load.
pub fn closed(steps: &[Step]) -> Knee {
    if steps.len() < 3 {
        return Knee::TooFew(steps.len());
    }
    let last = steps.len() - 1;
    let grown = steps[last].load / steps[last - 1].load - 1.0;
    if rise(steps) > FLAT * grown {
        return Knee::NotReached(rise(steps));
    }
    let most = steps.iter().map(|step| step.throughput).fold(0.0, f64::max);
    // The lightest load's own requests may wait for each other: its latency over its share of the load is no less than R₀.
    let load = most * steps[0].latency;
    if load <= steps[0].load {
        return Knee::Before(steps[0].load);
    }
    let below = steps.iter().map(|step| step.load).filter(|at| *at <= load).fold(steps[0].load, f64::max);
    let above = steps.iter().map(|step| step.load).filter(|at| *at > load).fold(f64::INFINITY, f64::min);
    Knee::At { load, between: (below, above.min(steps[last].load).max(below)) }
}

/// The share by which throughput rises from the last but one load to the last.
fn rise(steps: &[Step]) -> f64 {
    let [.., before, last] = steps else { return 0.0 };
    last.throughput / before.throughput - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean number of a G/G/1's customers by Pollaczek and Khinchine, service of mean 1 and variation `cv`.
    fn one_server(cv: f64, load: f64) -> Step {
        let latency = 1.0 + load * (1.0 + cv * cv) / (2.0 * (1.0 - load));
        Step { load, throughput: load, latency }
    }

    /// M/G/k with service of mean 1: Erlang's C and Lee and Longton's factor for its variation.
    fn servers(k: u32, cv: f64, load: f64) -> Step {
        let (servers, utilization) = (f64::from(k), load / f64::from(k));
        let mut term = 1.0;
        let mut below = 0.0;
        for n in 0..k {
            below += term;
            term *= load / f64::from(n + 1);
        }
        let queued = term / (1.0 - utilization);
        let waits = queued / (below + queued);
        let wait = waits / (servers - load) * (1.0 + cv * cv) / 2.0;
        Step { load, throughput: load, latency: 1.0 + wait }
    }

    fn ladder(from: f64, to: f64, step: f64) -> impl Iterator<Item = f64> {
        let rungs = ((to - from) / step).round() as u32;
        (0..=rungs).map(move |n| from + f64::from(n) * step)
    }

    fn between(knee: Knee) -> (f64, f64) {
        let Knee::At { between, .. } = knee else { panic!("{knee:?}") };
        between
    }

    #[test]
    fn one_server_bends_where_kleinrock_says() {
        for cv in [0.0, 0.5, 1.0, 2.0] {
            let known = 1.0 / (1.0 + ((1.0 + cv * cv) / 2.0_f64).sqrt());
            let steps: Vec<Step> = ladder(0.1, 0.95, 0.05).map(|load| one_server(cv, load)).collect();
            let (low, high) = between(open(&steps));
            assert!(low <= known && known <= high, "cv {cv}: {known} is not in {low}..{high}");
        }
    }

    #[test]
    fn several_servers_bend_where_a_fine_search_says() {
        for (k, cv) in [(2, 1.0), (8, 1.0), (8, 0.3), (32, 1.5)] {
            let fine: Vec<Step> = (1..1_000).map(|n| servers(k, cv, f64::from(k) * f64::from(n) / 1_000.0)).collect();
            let Knee::At { load: known, .. } = open(&fine) else { panic!("no knee") };
            let capacity = f64::from(k);
            // A rung beyond capacity: what completes is the capacity, and latency has grown with the window.
            let overload = Step { load: capacity * 1.2, throughput: capacity, latency: 30.0 };
            let rungs = ladder(0.1 * capacity, 0.95 * capacity, 0.05 * capacity).map(|load| servers(k, cv, load));
            let steps: Vec<Step> = rungs.chain([overload]).collect();
            let (low, high) = between(open(&steps));
            assert!(low <= known && known <= high, "k {k}, cv {cv}: {known} is not in {low}..{high}");
        }
    }

    #[test]
    fn a_closed_loop_bends_at_its_servers() {
        for k in [1.0, 6.0, 16.0, 40.0_f64] {
            let at = |load: f64| Step { load, throughput: load.min(k) / 0.5, latency: 0.5 * (load / k).max(1.0) };
            let steps: Vec<Step> = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0].map(at).into();
            let Knee::At { load, between } = closed(&steps) else { panic!("no knee") };
            assert!((load - k).abs() < 1e-9 && between.0 <= k && k <= between.1, "{k}: {load}, {between:?}");
        }
    }

    #[test]
    fn a_curve_that_has_not_bent_says_so() {
        let linear = |load: f64| Step { load, throughput: load * 2.0, latency: 0.5 };
        let steps = [1.0, 2.0, 4.0].map(linear);
        assert_eq!(closed(&steps), Knee::NotReached(1.0));
        assert_eq!(open(&steps), Knee::NotReached(1.0));
        assert_eq!(closed(&steps[..2]), Knee::TooFew(2));
        let full = |load: f64| Step { load, throughput: 2.0, latency: load / 2.0 };
        assert_eq!(open(&[1.0, 2.0, 4.0].map(full)), Knee::Before(1.0));
        assert_eq!(closed(&[1.0, 2.0, 4.0].map(full)), Knee::Before(1.0));
    }
}
