//! Bounds of the group-sequential t test: the p-value required at each look so that the chance of a false
//! finding over all looks equals the level.
//!
//! The look after `n` values compares the plain p-value with `x · weight(n)`, with one `x` for all looks. The
//! probability that any look finds a difference where there is none, Λ(x), is computed exactly for normal
//! values with unknown deviation (as in Jennison and Turnbull 1991, Biometrika 78, 133–141): the t statistics
//! of 3, 4, 5, … values form a Markov chain. With `S` the sum of the values, `Q` the sum of their squares and
//! `z = S / √Q`, the next value relative to the new root of the sum of squares is `w = x / √(Q + x²)`. `w`
//! does not depend on anything before it, and `z′ = z √(1 − w²) + w`. So Λ(x) is a nest of one-dimensional
//! integrals over the angles `ψ = asin w` (density ∝ cosⁿ⁻¹ ψ) and `θ`, with `t = √(n − 1) tan θ`. An
//! observed p-value is converted by dividing it by its weight: `x = p / weight(n)`. Λ(x) is then the p-value
//! over the whole sequence, which is valid wherever the sequence stops.

use std::collections::BTreeMap;
use std::f64::consts::FRAC_PI_2;
use std::sync::{Arc, Mutex, PoisonError};

use statrs::function::gamma::ln_gamma;

use crate::analysis::student;

/// The looks of a sequence: after each value from `first` to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Looks {
    first: u32,
    last: u32,
}

/// Beyond this many looks, the sum of their levels replaces the exact probability, which never exceeds that
/// sum.
const MOST: u32 = 200;

impl Looks {
    /// Creates looks after each value from `first`, which is at least 2, to `last`.
    pub(crate) fn new(first: u32, last: u32) -> Looks {
        let first = first.max(2);
        Looks { first, last: last.max(first) }
    }

    /// Returns the p-value over the whole sequence for the plain two-sided p-value `p` of a t test of
    /// the first `n` values.
    pub(crate) fn p(self, n: usize, p: f64) -> f64 {
        if self.first == self.last { p } else { (SLACK * self.chances().any(p / self.weight(n))).min(1.0) }
    }

    /// Returns the plain two-sided level to test at after `n` values so that the whole sequence is
    /// tested at `level`.
    pub(crate) fn nominal(self, n: usize, level: f64) -> f64 {
        if self.first == self.last { level } else { (self.chances().of_any(level / SLACK) * self.weight(n)).min(1.0) }
    }

    /// Returns the half-width of an interval that contains the mean at every look with probability 1 −
    /// `level`, in standard errors of `n` values.
    pub(crate) fn critical(self, n: usize, level: f64) -> f64 {
        student::critical(self.nominal(n, level), (n - 1) as f64)
    }

    /// Returns the share of the level that a look may spend, relative to the main look. The main look, which
    /// takes place when half of the values exist, may spend the most, the last look may spend much, and all
    /// other looks may spend little.
    fn weight(self, n: usize) -> f64 {
        let (n, last) = (n as u32, self.last);
        let main = (MAIN * last).div_ceil(100);
        match n {
            n if n >= last => LAST,
            n if n == main => 1.0,
            n if n < main => EARLY * f64::from(n) / f64::from(main),
            _ => LATE,
        }
    }

    fn chances(self) -> Arc<Chances> {
        static KNOWN: Mutex<BTreeMap<Looks, Arc<Chances>>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(self).or_insert_with(|| Arc::new(Chances::of(self))))
    }
}

/// The position of the main look, in percent of the last look, and the shares that other looks may spend.
/// Chosen by simulation: with these values, half of the sequences end at 70 % of the rounds of a fixed design
/// or earlier, if both designs find a difference in 80 to 90 % of cases (`docs/SEQUENTIAL.md`).
const MAIN: u32 = 50;
const EARLY: f64 = 0.03;
const LATE: f64 = 0.05;
const LAST: f64 = 0.3;

/// Safety margin for runs that depend on the previous run. If each run inherits half of the deviation of
/// the previous one and there is no other dependence, rounds in random order find a nonexistent difference
/// more often than independent rounds, but at most by this factor.
pub(super) const SLACK: f64 = 1.2;

/// A table of Λ(x) at steps of x. It stores each Λ(x) as a share of the sum of all levels, because this share
/// changes slowly with x.
#[derive(Debug)]
struct Chances {
    /// Sum of all weights.
    total: f64,
    /// Shares by step, the largest x first.
    shares: Vec<f64>,
}

/// Number of steps of x per power of ten, and number of powers of ten below 1.
const PER_TEN: usize = 3;
const TENS: usize = 8;

impl Chances {
    fn of(looks: Looks) -> Chances {
        let total = (looks.first..=looks.last).map(|n| looks.weight(n as usize)).sum();
        let share = |step: usize| {
            let x = 10f64.powf(-(step as f64) / PER_TEN as f64);
            any(looks, x) / (x * total)
        };
        let shares = match looks.last - looks.first < MOST {
            true => (0..=TENS * PER_TEN).map(share).collect(),
            false => vec![1.0],
        };
        Chances { total, shares }
    }

    /// Returns the probability that any look finds a difference at the levels x · weight.
    fn any(&self, x: f64) -> f64 {
        if x <= 0.0 {
            return 0.0;
        }
        let at = (-x.log10() * PER_TEN as f64).max(0.0);
        let (below, last) = (at as usize, self.shares.len() - 1);
        let share = match below < last {
            true => self.shares[below] + (self.shares[below + 1] - self.shares[below]) * (at - below as f64),
            false => self.shares[last].max(1.0),
        };
        (x * self.total * share).min(1.0)
    }

    /// Returns the x at which the probability returned by `any` is `level`.
    fn of_any(&self, level: f64) -> f64 {
        student::bisect(|x| self.any(x) >= level)
    }
}

/// Number of steps of an angle between 0 and the bound.
const STEPS: usize = 96;

/// Computes Λ(x), the probability that any look finds a difference where there is none.
fn any(looks: Looks, x: f64) -> f64 {
    let bound = |n: u32| {
        let level = x * looks.weight(n as usize);
        let critical = if level < 1.0 { student::critical(level, f64::from(n - 1)) } else { 0.0 };
        (critical / f64::from(n - 1).sqrt()).atan()
    };
    // The probability of a finding at later looks, tabulated by the angle after `n` values.
    let mut later = vec![0.0; STEPS + 1];
    let mut next = bound(looks.last);
    for n in (looks.first..looks.last).rev() {
        let here = bound(n);
        let (reach, density) = (f64::from(n + 1).sqrt() * next.sin(), Density::of(f64::from(n - 1)));
        let step = Step { n: f64::from(n), reach, bound: next, later: &later, density };
        let made = (0..=STEPS).map(|at| step.chance(here * at as f64 / STEPS as f64)).collect();
        (later, next) = (made, here);
    }
    let density = Density::of(f64::from(looks.first) - 2.0);
    let inside = integral(-next, next, |angle| density.at(angle) * read(&later, angle.abs() / next));
    (x * looks.weight(looks.first as usize)).min(1.0) + inside
}

/// The step from `n` values to the next value.
struct Step<'a> {
    n: f64,
    /// The |z| beyond which the next look finds a difference.
    reach: f64,
    /// The bound `reach` as an angle.
    bound: f64,
    /// The probability of a finding at looks after the next one.
    later: &'a [f64],
    /// Probability density of the angle ψ.
    density: Density,
}

impl Step<'_> {
    /// Returns the probability of a finding at the next or a later look, given an angle of at least 0.
    fn chance(&self, angle: f64) -> f64 {
        let z = self.n.sqrt() * angle.sin();
        let (long, lean) = ((1.0 + z * z).sqrt(), z.atan());
        let (from, to) = (lean - FRAC_PI_2, lean + FRAC_PI_2);
        let of = |low: f64, high: f64, found: &dyn Fn(f64) -> f64| {
            // The probability beyond 9 deviations of ψ is below 1e-15.
            let far = (9.0 / self.n.sqrt()).min(FRAC_PI_2);
            let (low, high) = (low.max(from).max(lean - far), high.min(to).min(lean + far));
            if low < high { integral(low, high, |at| self.density.at(at - lean) * found(at)) } else { 0.0 }
        };
        let go_on = |at: f64| {
            let next = (long * at.sin() / (self.n + 1.0).sqrt()).clamp(-1.0, 1.0).asin();
            read(self.later, next.abs() / self.bound)
        };
        let share = self.reach / long;
        if share >= 1.0 {
            return of(from, to, &go_on);
        }
        let edge = share.asin();
        let fold = 2.0 * FRAC_PI_2 - edge;
        let found = of(from, -edge, &|_| 1.0) + of(edge, fold, &|_| 1.0);
        found + of(-edge, edge, &go_on) + of(fold, to, &go_on)
    }
}

/// The density of an angle, which is proportional to a power of the angle's cosine.
#[derive(Clone, Copy)]
struct Density {
    power: f64,
    scale: f64,
}

impl Density {
    fn of(power: f64) -> Density {
        let scale = (ln_gamma(power / 2.0 + 1.0) - ln_gamma(power / 2.0 + 0.5)).exp();
        Density { power, scale: scale / std::f64::consts::PI.sqrt() }
    }

    fn at(self, angle: f64) -> f64 {
        self.scale * angle.cos().max(0.0).powf(self.power)
    }
}

/// Interpolates a table at a position given as a share of its length.
fn read(table: &[f64], share: f64) -> f64 {
    let at = share.clamp(0.0, 1.0) * STEPS as f64;
    let below = (at as usize).min(STEPS - 1);
    table[below] + (table[below + 1] - table[below]) * (at - below as f64)
}

/// Returns the integral of a smooth function, by the five-point Gauss–Legendre rule on panels of equal width.
fn integral(from: f64, to: f64, of: impl Fn(f64) -> f64) -> f64 {
    const PANELS: usize = 6;
    const RULE: [(f64, f64); 5] = [
        (-0.906_179_845_938_664, 0.236_926_885_056_189_1),
        (-0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
        (0.0, 0.568_888_888_888_888_9),
        (0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
        (0.906_179_845_938_664, 0.236_926_885_056_189_1),
    ];
    let half = (to - from) / PANELS as f64 / 2.0;
    let panel = |index: usize| {
        let middle = from + (2 * index + 1) as f64 * half;
        RULE.iter().map(|(node, weight)| weight * of(middle + node * half)).sum::<f64>() * half
    };
    (0..PANELS).map(panel).sum()
}
