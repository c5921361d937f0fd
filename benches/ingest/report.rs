//! Prints the figures and checks which limits were met.

use crate::stats::Rounds;

/// The limit of a figure.
#[derive(Debug, Clone, Copy)]
pub enum Bound {
    /// The figure must be at most this.
    Most(f64),
    /// The figure must be at least this.
    Least(f64),
}

/// A number with its unit.
pub type Show = fn(f64) -> String;

/// Prints figures next to their limits and records the missed ones.
pub struct Report {
    factor: Option<f64>,
    beyond: bool,
}

impl Report {
    /// Creates a report that fails if a limit is exceeded by more than `factor`; without a factor it never
    /// fails.
    pub fn new(factor: Option<f64>) -> Report {
        Report { factor, beyond: false }
    }

    /// Returns whether no limit was exceeded by more than the factor.
    pub fn holds(&self) -> bool {
        !self.beyond
    }

    /// Prints a line of text.
    pub fn say(&self, text: &str) {
        println!("{text}");
    }

    /// Prints the heading of a part.
    pub fn head(&self, text: &str) {
        println!("\n== {text}");
    }

    /// Prints the figures of both sides and their ratio, with the limit of the ratio if there is one.
    pub fn ratio(&mut self, what: &str, bare: Rounds, ours: Rounds, show: Show, bound: Option<Bound>) {
        let side = |rounds: Rounds| format!("{} ({}–{})", show(rounds.median), show(rounds.least), show(rounds.most));
        let ratio = ours.median / bare.median;
        let verdict = bound.map_or_else(String::new, |bound| {
            // A busy machine can only make a round worse, so the best rounds decide whether the bench fails.
            self.check(match bound {
                Bound::Most(most) => (ours.least / bare.least) / most,
                Bound::Least(least) => least / (ours.most / bare.most),
            });
            judged(ratio, bound, |x| format!("{x:.2} ×"))
        });
        println!("{what:<24} bare {:<38} sweepline {:<38} {ratio:.2} ×  {verdict}", side(bare), side(ours));
    }

    /// Prints one figure with its limit.
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

    /// Prints one figure whose limit depends on the machine; missing this limit never fails the bench.
    pub fn fact(&self, what: &str, value: f64, show: Show, bound: Bound) {
        println!("{what:<72} {:>12}  {}", show(value), judged(value, bound, show));
    }

    /// Records that a limit is exceeded by the factor `times`; if it is larger than the allowed factor, the
    /// bench fails.
    fn check(&mut self, times: f64) {
        self.beyond |= self.factor.is_some_and(|factor| times > factor);
    }
}

/// Formats a limit, and whether `value` meets it.
fn judged(value: f64, bound: Bound, show: impl Fn(f64) -> String) -> String {
    let (sign, at, met) = match bound {
        Bound::Most(at) => ("≤", at, value <= at),
        Bound::Least(at) => ("≥", at, value >= at),
    };
    format!("{sign} {}: {}", show(at), if met { "met" } else { "not met" })
}

/// Formats `x` as seconds.
pub fn seconds(x: f64) -> String {
    format!("{x:.4} s")
}

/// Formats `x` as thousands per second.
pub fn thousands(x: f64) -> String {
    format!("{:.1} k/s", x / 1e3)
}

/// Formats `x` as microseconds.
pub fn micros(x: f64) -> String {
    format!("{x:.0} µs")
}

/// Formats `x` bytes as megabytes.
pub fn megabytes(x: f64) -> String {
    format!("{:.1} MB", x / 1e6)
}

/// Formats `x` as percent.
pub fn share(x: f64) -> String {
    format!("{:.2} %", x * 100.0)
}

/// Formats `x` without a unit.
pub fn plain(x: f64) -> String {
    format!("{x:.4}")
}
