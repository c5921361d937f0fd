//! What is printed, and which bounds were met.

use crate::stats::Rounds;

/// What a figure must not pass.
#[derive(Debug, Clone, Copy)]
pub enum Bound {
    /// At most this.
    Most(f64),
    /// At least this.
    Least(f64),
}

/// A number with its unit.
pub type Show = fn(f64) -> String;

/// Prints figures beside their bounds and remembers what missed.
pub struct Report {
    factor: Option<f64>,
    beyond: bool,
}

impl Report {
    /// A report that fails where a bound is missed by more than `factor`; without one it never fails.
    pub fn new(factor: Option<f64>) -> Report {
        Report { factor, beyond: false }
    }

    /// Whether no bound was missed by more than the factor.
    pub fn holds(&self) -> bool {
        !self.beyond
    }

    /// A line of text.
    pub fn say(&self, text: &str) {
        println!("{text}");
    }

    /// The head of a part.
    pub fn head(&self, text: &str) {
        println!("\n== {text}");
    }

    /// Figures of both sides and their ratio, with the bound on that if there is one.
    pub fn ratio(&mut self, what: &str, bare: Rounds, ours: Rounds, show: Show, bound: Option<Bound>) {
        let side = |rounds: Rounds| format!("{} ({}–{})", show(rounds.median), show(rounds.least), show(rounds.most));
        let ratio = ours.median / bare.median;
        let verdict = bound.map_or_else(String::new, |bound| {
            // A busy machine only ever makes a round worse: what fails is judged by the best ones.
            self.check(match bound {
                Bound::Most(most) => (ours.least / bare.least) / most,
                Bound::Least(least) => least / (ours.most / bare.most),
            });
            judged(ratio, bound, |x| format!("{x:.2} ×"))
        });
        println!("{what:<24} bare {:<38} sweepline {:<38} {ratio:.2} ×  {verdict}", side(bare), side(ours));
    }

    /// One figure with its bound.
    pub fn figure(&mut self, what: &str, value: f64, show: Show, bound: Option<Bound>) {
        let verdict = bound.map_or_else(String::new, |bound| {
            self.check(match bound {
                Bound::Most(most) => value / most,
                Bound::Least(least) => least / value,
            });
            judged(value, bound, show)
        });
        println!("{what:<72} {:>12}  {verdict}", show(value));
    }

    /// One figure with a bound on the machine, not on us: it never fails.
    pub fn fact(&self, what: &str, value: f64, show: Show, bound: Bound) {
        println!("{what:<72} {:>12}  {}", show(value), judged(value, bound, show));
    }

    /// Notes a bound that is missed by `times`: more than the factor fails.
    fn check(&mut self, times: f64) {
        self.beyond |= self.factor.is_some_and(|factor| times > factor);
    }
}

/// A bound, and whether `value` meets it.
fn judged(value: f64, bound: Bound, show: impl Fn(f64) -> String) -> String {
    let (sign, at, met) = match bound {
        Bound::Most(at) => ("≤", at, value <= at),
        Bound::Least(at) => ("≥", at, value >= at),
    };
    format!("{sign} {}: {}", show(at), if met { "met" } else { "not met" })
}

/// `x` as seconds.
pub fn seconds(x: f64) -> String {
    format!("{x:.4} s")
}

/// `x` as thousands per second.
pub fn thousands(x: f64) -> String {
    format!("{:.1} k/s", x / 1e3)
}

/// `x` as microseconds.
pub fn micros(x: f64) -> String {
    format!("{x:.0} µs")
}

/// `x` bytes as megabytes.
pub fn megabytes(x: f64) -> String {
    format!("{:.1} MB", x / 1e6)
}

/// `x` as per cent.
pub fn share(x: f64) -> String {
    format!("{:.2} %", x * 100.0)
}

/// `x` by itself.
pub fn plain(x: f64) -> String {
    format!("{x:.4}")
}
