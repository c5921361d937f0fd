//! The aspect of a result that a lint puts in doubt. It determines the rank of the lint among
//! others.

/// The threats, the most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Threat {
    /// Whether the numbers of a run, or the verdict on the objective, hold at all.
    Verdict,
    /// Whether a difference is due to the compared variable.
    Comparison,
    /// Whether the results apply to the tail, and to loads and lengths that were not measured.
    Tail,
    /// Whether others can determine what was measured.
    Disclosure,
}

impl Threat {
    /// The threat as a heading.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Threat::Verdict => "the verdict: do these numbers hold?",
            Threat::Comparison => "the comparison: is a difference due to the compared variable?",
            Threat::Tail => "the tail: is enough known about it and about other loads?",
            Threat::Disclosure => "the disclosure: can others tell what was measured?",
        }
    }

    /// Returns the threat's name in a table.
    #[cfg(test)]
    pub(super) fn name(self) -> &'static str {
        match self {
            Threat::Verdict => "verdict",
            Threat::Comparison => "comparison",
            Threat::Tail => "tail",
            Threat::Disclosure => "disclosure",
        }
    }
}
