//! Options of command lines: how many words follow each, and what becomes of it.

/// How many words follow an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arity {
    /// None.
    Flag,
    /// One.
    One,
    /// All up to the next option.
    Many,
    /// One, and the option may stand there several times: all count.
    Each,
}

/// What becomes of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is read; where it has no effect, that is listed.
    Read,
    /// sweepline does it anyway, or needs it not.
    Needless(&'static str),
    /// There is no counterpart.
    Lost(&'static str),
}

/// An option without its dashes.
pub(crate) type Known = (&'static str, Arity, Fate);

/// Results of a run.
pub(crate) const STORED: Fate = Fate::Needless("every run is stored, one row per request");
/// Where results go.
pub(crate) const FOLDER: Fate = Fate::Needless("`sweepline run --results DIR` sets the results folder");
/// Which percentiles are told.
pub(crate) const PERCENTILES: Fate =
    Fate::Needless("every latency has its mean, p50 to p99.9 and maximum, in `show` and `export`");

/// The option of this name, or the only one that it begins (as Python's argparse takes it).
pub(super) fn find(table: &'static [Known], name: &str) -> Option<Known> {
    let exact = table.iter().find(|(option, ..)| *option == name);
    let mut begun = table.iter().filter(|(option, ..)| name.len() >= 3 && option.starts_with(name));
    exact.copied().or_else(|| match (begun.next(), begun.next()) {
        (Some(only), None) => Some(*only),
        _ => None,
    })
}
