//! Options of command lines: the number of words after each option, and how the option is handled.

/// The number of words after an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arity {
    /// None.
    Flag,
    /// One.
    One,
    /// All words up to the next option.
    Many,
    /// One word; the option may be repeated, and all occurrences count.
    Each,
}

/// How an option is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The option is read; if it has no effect, it is listed.
    Read,
    /// sweepline does this anyway, or does not need it.
    Needless(&'static str),
    /// The option has no counterpart.
    Lost(&'static str),
}

/// An option, with its name without dashes.
pub(crate) type Known = (&'static str, Arity, Fate);

/// Results of a run.
pub(crate) const STORED: Fate = Fate::Needless("every run is stored, one row per request");
/// The results folder.
pub(crate) const FOLDER: Fate = Fate::Needless("`sweepline run --results DIR` sets the results folder");
/// The reported percentiles.
pub(crate) const PERCENTILES: Fate =
    Fate::Needless("every latency has its mean, p50 to p99.9 and maximum, in `show` and `export`");

/// Returns the option of this name, or the only one with this prefix (as in Python's argparse).
pub(super) fn find(table: &'static [Known], name: &str) -> Option<Known> {
    let exact = table.iter().find(|(option, ..)| *option == name);
    let mut begun = table.iter().filter(|(option, ..)| name.len() >= 3 && option.starts_with(name));
    exact.copied().or_else(|| match (begun.next(), begun.next()) {
        (Some(only), None) => Some(*only),
        _ => None,
    })
}
