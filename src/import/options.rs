//! Options of command lines: the number of words after each option, and how the option is handled.

/// The number of words after an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arity {
    /// No word.
    Flag,
    /// One word.
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
    /// The option is not needed: sweepline does the same anyway, or has no use for it.
    Needless(&'static str),
    /// The option has no counterpart.
    Lost(&'static str),
}

/// An option, with its name without dashes.
pub(crate) type Known = (&'static str, Arity, Fate);

/// How options that store the results of a run are handled.
pub(crate) const STORED: Fate = Fate::Needless("every run is stored, one row per request");
/// How options that set the results folder are handled.
pub(crate) const FOLDER: Fate = Fate::Needless("`sweepline run --results DIR` sets the results folder");
/// How options that select the reported percentiles are handled.
pub(crate) const PERCENTILES: Fate =
    Fate::Needless("every latency has its mean, p50 to p99.9 and maximum, in `show` and `export`");

/// Returns the option of this name, or else the only option whose name has this prefix, as in Python's
/// argparse.
pub(super) fn find(table: &'static [Known], name: &str) -> Option<Known> {
    let exact = table.iter().find(|(option, ..)| *option == name);
    let mut begun = table.iter().filter(|(option, ..)| name.len() >= 3 && option.starts_with(name));
    exact.copied().or_else(|| match (begun.next(), begun.next()) {
        (Some(only), None) => Some(*only),
        _ => None,
    })
}
