//! What halving is asked, what it has seen, and what it answers.

/// What is looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// How many configurations there are.
    pub configurations: usize,
    /// How long a run of each rung takes, in seconds.
    pub seconds: Vec<f64>,
    /// How long all runs may take together, with the starts of their servers, in seconds.
    pub budget: f64,
    /// Whether more is better.
    pub is_more_better: bool,
}

/// One finished run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Its configuration, from 0.
    pub configuration: usize,
    /// Its rung, from 0.
    pub rung: usize,
    /// What was measured; none where the configuration cannot be chosen: an invalid run, one that was given up, a missed objective.
    pub value: Option<f64>,
    /// The standard deviation of what was measured that follows from the number of requests.
    pub deviation: f64,
    /// How long its server took to start, in seconds; none where it was up.
    pub start: Option<f64>,
}

/// What is known of a configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Its mean over all of its runs, weighted by what they are worth.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The rung of its longest run.
    pub rung: usize,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// A run.
    Run {
        /// Of this configuration.
        configuration: usize,
        /// Of this rung.
        rung: usize,
    },
    /// Nothing: it is over.
    Ended(Outcome),
}

/// How it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Stands {
    /// What to do next.
    pub next: Next,
    /// The rung that runs now, or that was the last, from 0.
    pub rung: usize,
    /// The configurations that this rung has.
    pub alive: Vec<usize>,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The configuration with the best estimate; none where none can be chosen.
    pub best: Option<usize>,
    /// Those that may as well be the best, from the best estimate down.
    pub rivals: Vec<usize>,
    /// Those that could not be told from the others that went on, and for which the budget had no time, from the best estimate down.
    pub unaffordable: Vec<usize>,
    /// Why it ended.
    pub end: End,
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum End {
    /// One is better than all others.
    Best,
    /// The longest runs do not tell some from each other.
    Undecided,
    /// The budget has no time for longer runs that would.
    Budget,
    /// No configuration can be chosen.
    None,
}

impl End {
    /// The name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
