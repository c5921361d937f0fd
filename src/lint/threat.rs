//! What a lint puts in doubt: its rank among others.

/// What is in doubt, the most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Threat {
    /// Whether the numbers of a run, or the answer on the objective, stand at all.
    Verdict,
    /// Whether a difference comes from what is compared.
    Comparison,
    /// What is known of the tail, and of other loads and lengths than those measured.
    Tail,
    /// Whether others can tell what was measured.
    Disclosure,
}

impl Threat {
    /// As a heading.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Threat::Verdict => "the verdict: do these numbers stand?",
            Threat::Comparison => "the comparison: is a difference due to what is compared?",
            Threat::Tail => "the tail: what is known of it, and of other loads?",
            Threat::Disclosure => "the disclosure: can others tell what was measured?",
        }
    }

    /// In a table.
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
