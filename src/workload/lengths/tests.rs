//! Compares draws with formulas. The references are the normal distribution of statrs and plain sums over it,
//! which share no code with the implementation.

use proptest::prelude::*;
use statrs::distribution::{Continuous, ContinuousCDF, Normal};

use super::*;
use crate::plan::model::lengths::{Bucket, Distribution, Joint, Preset, PresetFit, Range, Rows};
use crate::units::Decimal;

const DRAWS: u64 = 100_000;
/// A smaller number of draws for tests where it suffices, because draws are slow in builds without
/// optimization.
const FEWER: u64 = 20_000;

fn key(seed: u8) -> [u8; 32] {
    [seed; 32]
}

fn within(min: u32, max: u32) -> Range {
    Range { min, max }
}

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn normal(mean: &str, sd: &str, range: Range) -> Distribution {
    Distribution::Normal { mean: decimal(mean), sd: decimal(sd), within: range }
}

fn lognormal(mean: &str, sd: &str, range: Range) -> Distribution {
    Distribution::Lognormal { mean: decimal(mean), sd: decimal(sd), within: range }
}

fn buckets(rows: &[(u32, u32, &str)]) -> Distribution {
    let row = |(min, max, weight): &(u32, u32, &str)| Bucket { tokens: within(*min, *max), weight: decimal(weight) };
    Distribution::Histogram(Rows::new(rows.iter().map(row)))
}

/// Returns distributions of every kind, truncated in the middle, on one side and far out in a tail, and
/// the distributions of all presets.
fn all() -> Vec<Distribution> {
    let mut all = vec![
        Distribution::Constant(256),
        Distribution::Uniform(within(100, 1_000)),
        normal("500", "100", within(200, 800)),
        normal("500", "300", within(450, 2_000)),
        // Truncation leaves only the part beyond three standard deviations.
        normal("100", "100", within(400, 3_000)),
        lognormal("500", "300", within(50, 4_000)),
        lognormal("500", "300", within(600, 900)),
        Distribution::LognormalMedian { median: decimal("500"), sigma: decimal("0.8"), within: within(50, 4_000) },
        buckets(&[(16, 99, "3"), (100, 199, "0.5"), (200, 1_999, "1.25"), (5_000, 5_000, "0.1")]),
    ];
    for shape in [PresetFit::Lognormal, PresetFit::LognormalSigma08] {
        for lengths in Preset::ALL.map(|preset| preset.lengths(shape)) {
            let Lengths::Each { prompt, output } = lengths else { unreachable!("presets are drawn independently") };
            all.extend([prompt, output]);
        }
    }
    all
}

/// Returns the numbers from which the prompt lengths of 100 000 requests are drawn.
fn numbers(seed: u8) -> Vec<f64> {
    let sampler = Sampler::new(&Preset::Chat.lengths(PresetFit::Lognormal), key(seed));
    (0..DRAWS).map(|item| sampler.numbers(item, 0)[1]).collect()
}

/// Returns 100 000 sorted prompt lengths of a distribution, drawn with the same numbers for all
/// distributions. Also checks that a run's sampler draws the same first hundred lengths.
fn draws(distribution: &Distribution, numbers: &[f64], seed: u8) -> Vec<u32> {
    let lengths = Lengths::Each { prompt: distribution.clone(), output: Distribution::Constant(1) };
    let (law, sampler) = (law::Law::new(distribution), Sampler::new(&lengths, key(seed)));
    let mut all: Vec<u32> = numbers.iter().map(|u| law.at(*u)).collect();
    for item in 0..100 {
        assert_eq!(sampler.draw(item, 0), Drawn { prompt_tokens: all[item as usize], output_tokens: 1 });
    }
    all.sort_unstable();
    all
}

/// Returns the mean and the standard deviation of the logarithm: mu = ln(m² / √(m² + s²)), sigma² = ln(1 +
/// s²/m²).
fn logarithm(mean: Decimal, sd: Decimal) -> (f64, f64) {
    let (m, s) = (mean.to_f64(), sd.to_f64());
    ((m * m / (m * m + s * s).sqrt()).ln(), (1.0 + s * s / (m * m)).ln().sqrt())
}

/// Returns the probability of every number of tokens from first principles: the share of the truncated
/// distribution that rounds to that number.
fn probabilities(distribution: &Distribution) -> Vec<(u32, f64)> {
    let Range { min, max } = distribution.range();
    let bell = |mean: f64, sd: f64, scale: fn(f64) -> f64| {
        let bell = Normal::new(mean, sd).unwrap();
        // Uses the upper tail if it is the smaller one, because differences of numbers close to 1 lose
        // digits.
        let share = |low: f64, high: f64| {
            if low > mean { bell.sf(low) - bell.sf(high) } else { bell.cdf(high) - bell.cdf(low) }
        };
        let (low, high) = (f64::from(min), f64::from(max));
        let cut = |tokens: f64| scale(tokens.clamp(low, high));
        let left = share(scale(low), scale(high));
        let of = |tokens: u32| share(cut(f64::from(tokens) - 0.5), cut(f64::from(tokens) + 0.5)) / left;
        (min..=max).map(|tokens| (tokens, of(tokens))).collect::<Vec<_>>()
    };
    match distribution {
        Distribution::Constant(tokens) => vec![(*tokens, 1.0)],
        Distribution::Uniform(_) => (min..=max).map(|tokens| (tokens, 1.0 / f64::from(max - min + 1))).collect(),
        Distribution::Normal { mean, sd, .. } => bell(mean.to_f64(), sd.to_f64(), |tokens| tokens),
        Distribution::Lognormal { mean, sd, .. } => {
            let (mu, sigma) = logarithm(*mean, *sd);
            bell(mu, sigma, f64::ln)
        }
        Distribution::LognormalMedian { median, sigma, .. } => bell(median.to_f64().ln(), sigma.to_f64(), f64::ln),
        Distribution::Histogram(rows) => {
            let sum: f64 = rows.rows().iter().map(|row| row.weight.to_f64()).sum();
            let of_row = |row: &Bucket| {
                let share = row.weight.to_f64() / sum / f64::from(row.tokens.max - row.tokens.min + 1);
                (row.tokens.min..=row.tokens.max).map(move |tokens| (tokens, share))
            };
            rows.rows().iter().flat_map(of_row).collect()
        }
    }
}

/// Returns the mean, the standard deviation and the fourth central moment of a distribution.
fn summed(probabilities: &[(u32, f64)]) -> (f64, f64, f64) {
    let sum = |of: &dyn Fn(f64) -> f64| probabilities.iter().map(|(tokens, p)| p * of(f64::from(*tokens))).sum::<f64>();
    let mean = sum(&|tokens| tokens);
    (mean, sum(&|tokens| (tokens - mean).powi(2)).sqrt(), sum(&|tokens| (tokens - mean).powi(4)))
}

/// Tests all distributions and presets with 100 000 draws each.
///
/// - The mean and the standard deviation of the draws lie within 4 standard errors of the closed forms. The
///   standard error is sd / √n for the mean and √((m4 − sd⁴) / n) / (2 sd) for the standard deviation. If the
///   formulas are correct, this check fails for one seed in 16 000; the seed here is fixed.
/// - Kolmogorov-Smirnov: the largest distance between the shares of the draws and those of the distribution
///   is below 1.95 / √n, which a correct sample exceeds once in a thousand (less often for whole numbers).
/// - The closed forms describe the truncated distribution before rounding. Sums over whole tokens differ by
///   the effect of rounding, which is at most a thousandth of a standard deviation for lengths like these.
#[test]
fn draws_follow_the_formulas() {
    let (seed, n) = (1, DRAWS as f64);
    let numbers = numbers(seed);
    for distribution in all() {
        let Moments { mean, sd } = law::Law::new(&distribution).moments();
        let probabilities = probabilities(&distribution);
        let (summed_mean, summed_sd, fourth) = summed(&probabilities);
        assert!((mean - summed_mean).abs() <= 1e-3 * sd + 1e-6, "{mean} and {summed_mean}: {distribution}");
        assert!((sd - summed_sd).abs() <= 1e-3 * sd + 1e-6, "{sd} and {summed_sd}: {distribution}");

        let sample = draws(&distribution, &numbers, seed);
        let drawn = sample.iter().map(|tokens| f64::from(*tokens)).sum::<f64>() / n;
        let spread = (sample.iter().map(|tokens| (f64::from(*tokens) - drawn).powi(2)).sum::<f64>() / n).sqrt();
        let distance = distance(&sample, &probabilities);
        println!("{distribution}: mean {drawn:.2} of {mean:.2}, sd {spread:.2} of {sd:.2}, KS {distance:.5}");
        assert!((drawn - mean).abs() <= 4.0 * sd / n.sqrt(), "mean {drawn} of {mean}: {distribution}");
        let error = if sd == 0.0 { 0.0 } else { ((fourth - sd.powi(4)).max(0.0) / n).sqrt() / (2.0 * sd) };
        assert!((spread - sd).abs() <= 4.0 * error, "sd {spread} of {sd}: {distribution}");
        assert!(distance < 1.95 / n.sqrt(), "{distance}: {distribution}");
    }
}

/// Returns the largest distance between the cumulative shares of a sorted sample and those of a distribution.
fn distance(sample: &[u32], probabilities: &[(u32, f64)]) -> f64 {
    let (mut upto, mut worst, mut at) = (0.0, 0.0f64, 0);
    for (tokens, share) in probabilities {
        upto += share;
        while sample.get(at).is_some_and(|one| one <= tokens) {
            at += 1;
        }
        worst = worst.max((at as f64 / sample.len() as f64 - upto).abs());
    }
    worst
}

/// The two lengths of a pair are drawn together, so the correlation in a table is kept, and the marginal
/// distributions are those of its columns.
#[test]
fn pairs_keep_what_they_have_to_do_with_each_other() {
    let row = |(prompt, output, weight): (u32, u32, &str)| Joint {
        prompt: Range::one(prompt),
        output: Range::one(output),
        weight: decimal(weight),
    };
    let pairs = [(256, 1_024, "2"), (2_048, 128, "1"), (8_000, 64, "0.5")];
    let lengths = Lengths::Joint(Rows::new(pairs.map(row)));
    let sampler = Sampler::new(&lengths, key(3));
    let mut counts = [0u32; 3];
    for item in 0..FEWER {
        let Drawn { prompt_tokens: prompt, output_tokens: output } = sampler.draw(item, 0);
        let at = pairs.iter().position(|pair| (pair.0, pair.1) == (prompt, output));
        counts[at.expect("a pair of the table")] += 1;
    }
    for (count, weight) in counts.iter().zip([2.0, 1.0, 0.5]) {
        let (share, n) = (weight / 3.5, FEWER as f64);
        let error = (share * (1.0 - share) / n).sqrt();
        assert!((f64::from(*count) / n - share).abs() < 4.0 * error, "{counts:?}");
    }
    let [prompt, output] = moments(&lengths);
    assert!((prompt.mean - (256.0 * 2.0 + 2_048.0 + 8_000.0 * 0.5) / 3.5).abs() < 1e-9);
    assert!((output.mean - (1_024.0 * 2.0 + 128.0 + 64.0 * 0.5) / 3.5).abs() < 1e-9);
}

/// Within a bucket of a joint table, prompt and response lengths are independent and cover their whole
/// ranges.
#[test]
fn joint_buckets_are_filled_evenly() {
    let bucket = Joint { prompt: within(100, 109), output: within(1, 4), weight: decimal("1") };
    let sampler = Sampler::new(&Lengths::Joint(Rows::new([bucket])), key(4));
    let mut counts = [[0u32; 4]; 10];
    (0..FEWER).map(|item| sampler.draw(item, 0)).for_each(|drawn| {
        counts[drawn.prompt_tokens as usize - 100][drawn.output_tokens as usize - 1] += 1;
    });
    let expected = FEWER as f64 / 40.0;
    // Chi-squared with 39 degrees of freedom: a correct sample exceeds 72.05 once in a thousand.
    let chi: f64 = counts.iter().flatten().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
    assert!(chi < 72.05, "{chi}");
}

/// Lengths are part of the requests that a run sends, so these values must never change.
#[test]
fn lengths_are_pinned() {
    let chat = Sampler::new(&Preset::Chat.lengths(PresetFit::Lognormal), key(7));
    let shown = |drawn: Drawn| format!("{} {}", drawn.prompt_tokens, drawn.output_tokens);
    let items: Vec<String> = (0..6).map(|item| shown(chat.draw(item, 0))).collect();
    insta::assert_snapshot!(items.join(", "), @"731 111, 519 155, 1127 140, 398 103, 256 310, 425 117");
    let turns: Vec<String> = (0..4).map(|turn| shown(chat.draw(0, turn))).collect();
    insta::assert_snapshot!(turns.join(", "), @"731 111, 957 101, 308 86, 530 127");
}

/// The presets have the values in `docs/WORKLOADS.md`: mean and standard deviation after truncation.
#[test]
fn presets_have_the_moments_that_the_documentation_says() {
    let mut table = String::new();
    for preset in Preset::ALL {
        for shape in [PresetFit::Lognormal, PresetFit::LognormalSigma08] {
            let [prompt, output] = moments(&preset.lengths(shape));
            let shape = if shape == PresetFit::Lognormal { "`lognormal`" } else { "`lognormal_sigma_0_8`" };
            table.push_str(&format!(
                "| `{}` | {shape} | {:.0} ± {:.0} | {:.0} ± {:.0} |\n",
                preset.name(),
                prompt.mean,
                prompt.sd,
                output.mean,
                output.sd
            ));
        }
    }
    let page = include_str!("../../../docs/WORKLOADS.md");
    assert!(page.contains(&table), "docs/WORKLOADS.md should have\n{table}");
}

/// Compares the normal distribution with that of statrs, from one tail to the other.
#[test]
fn the_normal_distribution_is_exact() {
    let reference = Normal::new(0.0, 1.0).unwrap();
    for step in -320..=320 {
        let z = f64::from(step) / 40.0;
        let (share, expected) = (normal::below(z), reference.cdf(z));
        assert!((share - expected).abs() <= 1e-9 * expected, "{z}: {share} and {expected}");
        assert!((normal::density(z) - reference.pdf(z)).abs() <= 1e-14, "{z}");
        // Shares close to 1 do not have enough digits to be inverted.
        if z <= 5.0 {
            let back = normal::quantile(share);
            assert!((back - z).abs() <= 1e-9, "{z} came back as {back}");
        }
    }
    // Quantiles to 16 digits, from Applied Statistics 37.
    for (p, z) in [(0.25, -0.674_489_750_196_081_7), (0.001, -3.090_232_306_167_813_5), (1e-20, -9.262_340_089_798_408)]
    {
        assert!((normal::quantile(p) - z).abs() <= 1e-14 * z.abs() * 4.0, "{p}: {}", normal::quantile(p));
    }
}

fn any_range() -> impl Strategy<Value = Range> {
    (1u32..10_000, 0u32..50_000).prop_map(|(min, more)| within(min, min + more))
}

fn any_distribution() -> impl Strategy<Value = Distribution> {
    let hundredths = |most: i64| (1..=most).prop_map(|value| Decimal::new(value, 2));
    let bell = || {
        (any_range(), 0.0f64..=1.0, hundredths(10_000_000)).prop_map(|(range, at, sd)| {
            let mean = f64::from(range.min) + at * f64::from(range.max - range.min);
            (Decimal::from(mean as u32), sd, range)
        })
    };
    prop_oneof![
        (1u32..4_000_000).prop_map(Distribution::Constant),
        any_range().prop_map(Distribution::Uniform),
        bell().prop_map(|(mean, sd, within)| Distribution::Normal { mean, sd, within }),
        bell().prop_map(|(mean, sd, within)| Distribution::Lognormal { mean, sd, within }),
        (any_range(), 1i64..500).prop_map(|(within, sigma)| Distribution::LognormalMedian {
            median: Decimal::from(within.min),
            sigma: Decimal::new(sigma, 2),
            within
        }),
        proptest::collection::vec((any_range(), hundredths(1_000)), 1..20).prop_map(|rows| {
            Distribution::Histogram(Rows::new(rows.into_iter().map(|(tokens, weight)| Bucket { tokens, weight })))
        }),
    ]
}

proptest! {
    /// For any distribution and any random number, the drawn length stays within the distribution's range.
    #[test]
    fn bounds_are_kept(distribution in any_distribution(), seed: u8, item: u64) {
        let range = distribution.range();
        let law = law::Law::new(&distribution);
        let ends = [f64::EPSILON / 8.0, 0.5 / (1u64 << 52) as f64, 0.5, 1.0 - 0.5 / (1u64 << 52) as f64];
        let sampler = Sampler::new(
            &Lengths::Each { prompt: distribution.clone(), output: distribution.clone() }, key(seed));
        let Drawn { prompt_tokens: prompt, output_tokens: output } = sampler.draw(item, 3);
        for tokens in ends.map(|u| law.at(u)).into_iter().chain([prompt, output]) {
            prop_assert!((range.min..=range.max).contains(&tokens), "{tokens} outside of {distribution}");
        }
        let Moments { mean, sd } = law.moments();
        prop_assert!(mean >= f64::from(range.min) - 1.0 && mean <= f64::from(range.max) + 1.0, "{mean}: {distribution}");
        prop_assert!(sd >= 0.0 && sd <= f64::from(range.max - range.min) + 1.0, "{sd}: {distribution}");
    }

    /// A draw depends on key, item and turn only; the order of draws does not matter.
    #[test]
    fn draws_are_pure(distribution in any_distribution(), seed: u8, item in 0u64..1 << 40, turn in 0u32..10_000) {
        let lengths = Lengths::Each { prompt: distribution.clone(), output: distribution };
        let (one, other) = (Sampler::new(&lengths, key(seed)), Sampler::new(&lengths, key(seed)));
        let late = (0..5).map(|k| other.draw(item + k, turn)).collect::<Vec<_>>();
        for k in (0..5).rev() {
            prop_assert_eq!(one.draw(item + k, turn), late[k as usize]);
        }
    }

    /// A larger random number never gives a smaller length.
    #[test]
    fn laws_rise(distribution in any_distribution(), a in 0.0001f64..0.9999, b in 0.0001f64..0.9999) {
        prop_assume!(!matches!(distribution, Distribution::Histogram(_)));
        let law = law::Law::new(&distribution);
        prop_assert!(law.at(a.min(b)) <= law.at(a.max(b)));
    }
}

/// Draws with different keys, items or turns are independent, and so are the prompt and response lengths of
/// one request.
#[test]
fn draws_are_independent() {
    let lengths = Preset::Code.lengths(PresetFit::Lognormal);
    let sampler = Sampler::new(&lengths, key(9));
    let pairs: Vec<[f64; 2]> = (0..FEWER)
        .map(|item| sampler.draw(item, 0))
        .map(|one| [one.prompt_tokens.into(), one.output_tokens.into()])
        .collect();
    let next: Vec<[f64; 2]> = pairs.windows(2).map(|two| [two[0][0], two[1][0]]).collect();
    let turns: Vec<[f64; 2]> =
        (0..FEWER).map(|item| [0, 1].map(|turn| f64::from(sampler.draw(item, turn).prompt_tokens))).collect();
    let keys: Vec<[f64; 2]> = (0..FEWER)
        .map(|item| [9, 10].map(|seed| f64::from(Sampler::new(&lengths, key(seed)).draw(item, 0).prompt_tokens)))
        .collect();
    for (what, pairs) in [("prompt and answer", pairs), ("neighbours", next), ("turns", turns), ("keys", keys)] {
        let n = pairs.len() as f64;
        let mean = [0, 1].map(|side| pairs.iter().map(|pair| pair[side]).sum::<f64>() / n);
        let sum = |a: usize, b: usize| pairs.iter().map(|one| (one[a] - mean[a]) * (one[b] - mean[b])).sum::<f64>();
        let correlation = sum(0, 1) / (sum(0, 0) * sum(1, 1)).sqrt();
        assert!(correlation.abs() < 4.0 / n.sqrt(), "{what}: {correlation}");
    }
}
