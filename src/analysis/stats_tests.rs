//! Compares percentiles with known results from numpy, and tests the properties that every percentile
//! must have.

use proptest::prelude::*;

use super::*;

/// Returns the same stream of values as the script that generated [`NUMPY`].
fn sample(n: usize) -> Vec<f64> {
    let mut x: u64 = 12345;
    let uniform = || {
        x = (x * 1_103_515_245 + 12345) % (1 << 31);
        x as f64 / f64::from(1u32 << 31)
    };
    std::iter::repeat_with(uniform).take(n).map(|u| -(1.0 - u).ln() * 10.0).collect()
}

/// For each n: the six percentiles, mean, standard deviation and maximum, computed with numpy 2:
///
/// ```python
/// def lcg(n):
///     x = 12345; out = []
///     for _ in range(n):
///         x = (x * 1103515245 + 12345) % 2**31; out.append(x / 2**31)
///     return np.array(out)
/// for n in (6, 7, 13, 40, 100, 368, 1000, 3688, 5000):
///     v = -np.log(1 - lcg(n)) * 10
///     print(n, np.quantile(v, [.5, .75, .9, .95, .99, .999]), v.mean(), v.std(ddof=1), v.max())
/// ```
#[rustfmt::skip]
// The digits are exactly as printed by numpy; shortened digits could not be compared with its output
// again.
#[allow(clippy::excessive_precision)]
const NUMPY: [(usize, [f64; 6], [f64; 3]); 9] = [
    (6, [6.997742419501739, 9.802075970234403, 10.942332279965125, 11.090211025149085, 11.208514021296255, 11.235132195429367],
        [6.774167872163692, 3.9213580768318006, 11.238089770333046]),
    (7, [7.268579512146004, 9.935739411522947, 10.883180781891541, 11.060635276112292, 11.202598871488895, 11.23454068044863],
        [7.12427303806155, 3.6975969262838206, 11.238089770333046]),
    (13, [4.686960128393411, 9.224904033448691, 11.119786774185878, 13.728124445408683, 16.71616605549946, 17.38847541776989],
        [6.541342711719685, 4.602765114549303, 17.46317645802216]),
    (40, [7.5060612577317425, 12.208576652434068, 15.643347060558002, 18.534111421107507, 42.048125272852374, 43.87001640915705],
        [9.306097014113115, 8.838562468332762, 44.07244875763536]),
    (100, [6.81250008301596, 12.392282360782659, 20.13070260905403, 32.42168959221474, 47.402806427218174, 51.58098543977621],
        [9.752960006736737, 10.297256084554572, 52.045227552282675]),
    (368, [6.881709130809572, 13.647464952762842, 22.799918495132285, 28.37619770678585, 43.96298207774878, 58.201800058127155],
        [9.737010348600887, 9.451651310890696, 61.77125046830899]),
    (1000, [6.893732918965176, 13.576110331926447, 22.314571904299488, 27.814340376469886, 44.078383182739096, 61.78355616930185],
        [9.709241249673784, 9.44566336398903, 74.07695146145956]),
    (3688, [7.056025321390333, 13.807451363681768, 23.1882816262894, 29.506983127796328, 46.155609025470724, 68.85894204874411],
        [10.065083738777615, 9.917640661066168, 74.07695146145956]),
    (5000, [6.919526436350329, 13.805449406722332, 23.18901573875718, 30.224510892869816, 47.35905495749952, 69.33188963010751],
        [10.08486889195174, 10.20313607873399, 116.9999107441952]),
];

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

#[test]
fn percentiles_and_moments_are_numpys() {
    for (n, expected, [mean, sd, max]) in NUMPY {
        let summary = Summary::of(sample(n), 0, None);
        for (percentile, expected) in quantile::ALL.into_iter().zip(expected) {
            match summary.percentile(percentile) {
                Estimate::Is { value: Value::Exact(value), .. } => {
                    assert!(close(value, expected), "{n} {percentile:?}")
                }
                Estimate::NotEnough { need, .. } => assert!((n as u64) < need),
                other => panic!("{other:?}"),
            }
        }
        assert!(close(summary.mean.unwrap(), mean) && close(summary.sd.unwrap(), sd));
        assert_eq!(summary.max.unwrap(), Value::Exact(summary.max.unwrap().exact().unwrap()));
        assert!(close(summary.max.unwrap().exact().unwrap(), max));
    }
}

#[test]
fn quantiles_below_their_minimum_are_still_type_7() {
    // The verdict computes quantiles of few values, for the halves of a window and for read delays, so the
    // formula does not require a minimum number of values.
    let values = [1.0, 2.0, 4.0];
    let at = |index: u64| values[index as usize];
    let ordered = Ordered { observed: 3, at: &at, failures: 0, largest: None };
    assert_eq!(ordered.quantile(990), Value::Exact(3.96));
    assert_eq!(ordered.quantile(0), Value::Exact(1.0));
    assert_eq!(ordered.quantile(1000), Value::Exact(4.0));
}

#[test]
fn too_few_values_say_so() {
    let summary = Summary::of(sample(212), 0, None);
    assert_eq!(summary.percentile(Percentile::P99).to_string(), "n/a (n=212 < 368)");
    assert_eq!(summary.highest(), Some(Percentile::P95));
    let none = Summary::of(vec![], 0, None);
    assert_eq!((none.mean, none.sd, none.max, none.highest()), (None, None, None, None));
    assert_eq!(none.percentile(Percentile::P50).to_string(), "n/a");
}

#[test]
fn small_samples_are_marked() {
    let marks = |n| {
        let summary = Summary::of(sample(n), 0, None);
        [Percentile::P95, Percentile::P99, Percentile::P999].map(|p| summary.percentile(p).few_samples())
    };
    assert_eq!(marks(999), [false, true, false]);
    assert_eq!(marks(1_000), [false, false, false]);
    assert_eq!(marks(99_999), [false, false, true]);
    assert_eq!(marks(100_000), [false, false, false]);
}

#[test]
fn failures_are_above_all_others() {
    let values: Vec<f64> = (1..=95).map(f64::from).collect();
    let summary = Summary::of(values.clone(), 5, None);
    // (100 − 1) × 0.95 = 94.05 lies between the 95th value and the first failure.
    assert_eq!(summary.percentile(Percentile::P95).to_string(), "> 95");
    assert_eq!(summary.percentile(Percentile::P90).exact(), Some(90.1));
    assert_eq!((summary.n, summary.failures, summary.mean), (100, 5, Some(48.0)));
    assert_eq!(summary.max.unwrap().to_string(), "> 95");
    assert_eq!(summary.above, Some(95.0));
    let bounded = Summary::of(values, 5, Some(600.0));
    assert_eq!(bounded.percentile(Percentile::P95).value(), Some(Value::AtLeast(600.0)));
    let all_failed = Summary::of(vec![], 10, None);
    assert_eq!(all_failed.percentile(Percentile::P50).to_string(), "failed");
}

#[test]
fn a_rank_exactly_below_the_failures_is_exact() {
    // (11 − 1) × 0.9 = 9 is exactly the index of the tenth value, so the adjacent failure does not
    // contribute.
    let values: Vec<f64> = (1..=40).map(f64::from).collect();
    let at = |index: u64| values[index as usize];
    let ordered = Ordered { observed: 10, at: &at, failures: 1, largest: Some(10.0) };
    assert_eq!(ordered.quantile(900), Value::Exact(10.0));
}

#[test]
fn intervals_are_order_statistics() {
    let values: Vec<f64> = (1..=1000).map(f64::from).collect();
    let summary = Summary::of(values, 0, None);
    // Ranks by scipy for n = 1000, as tested in `binomial.rs`: 469 and 532 for p = 0.5, 983 and 997 for p =
    // 0.99.
    let ends = |p| summary.percentile(p).interval().map(|i| (i.low.unwrap(), i.high.unwrap()));
    assert_eq!(ends(Percentile::P50), Some((Value::Exact(469.0), Value::Exact(532.0))));
    assert_eq!(ends(Percentile::P99), Some((Value::Exact(983.0), Value::Exact(997.0))));
}

proptest! {
    #[test]
    fn percentiles_rise_and_stay_inside(values in prop::collection::vec(-1e6f64..1e6, 1..200), failures in 0u64..20) {
        let mut sorted = values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |index: u64| sorted[index as usize];
        let largest = sorted.last().copied();
        let ordered = Ordered { observed: sorted.len() as u64, at: &at, failures, largest };
        let found: Vec<f64> = (0..=1000).map(|p| ordered.quantile(p).or_infinity()).collect();
        prop_assert!(found.windows(2).all(|pair| pair[0] <= pair[1]));
        prop_assert!(found.iter().all(|value| *value >= sorted[0]));
        prop_assert!(found.iter().all(|value| *value <= largest.unwrap() || (failures > 0 && value.is_infinite())));
    }

    #[test]
    fn order_does_not_matter(values in prop::collection::vec(0f64..1e6, 1..400), failures in 0u64..5) {
        let mut reversed = values.clone();
        reversed.reverse();
        prop_assert_eq!(Summary::of(values, failures, None), Summary::of(reversed, failures, None));
    }

    #[test]
    fn an_interval_holds_its_percentile(values in prop::collection::vec(0f64..1e6, 6..400)) {
        for estimate in Summary::of(values, 0, None).percentiles {
            if let Some(interval) = estimate.interval() {
                let (low, high) = (interval.low_number().unwrap(), interval.high_number().unwrap());
                let value = estimate.exact().unwrap();
                prop_assert!(low <= value && value <= high);
            }
        }
    }
}
