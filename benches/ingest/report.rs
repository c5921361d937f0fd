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

    /// Whether a bound was missed by more than the factor.
    pub fn failed(&self) -> bool {
        self.beyond
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
        let verdict = bound.map_or_else(String::new, |bound| self.judge(ratio, bound, |x| format!("{x:.2} ×")));
        println!("{what:<28} bare {:<28} sweepline {:<28} {ratio:.2} ×  {verdict}", side(bare), side(ours));
    }

    /// One figure with its bound.
    pub fn figure(&mut self, what: &str, value: f64, show: Show, bound: Option<Bound>) {
        let verdict = bound.map_or_else(String::new, |bound| self.judge(value, bound, show));
        println!("{what:<72} {:>12}  {verdict}", show(value));
    }

    fn judge(&mut self, value: f64, bound: Bound, show: Show) -> String {
        let factor = self.factor.unwrap_or(1.0);
        let (sign, at, met, within) = match bound {
            Bound::Most(at) => ("≤", at, value <= at, value <= at * factor),
            Bound::Least(at) => ("≥", at, value >= at, value >= at / factor),
        };
        self.beyond |= self.factor.is_some() && !within;
        format!("{sign} {}: {}", show(at), if met { "met" } else { "not met" })
    }
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
