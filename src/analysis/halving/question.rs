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

/// What a run says of its configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Says {
    /// What was measured.
    Value {
        /// The number.
        value: f64,
        /// Its standard deviation that follows from the number of requests.
        deviation: f64,
    },
    /// That it cannot be chosen: the run was given up, or is invalid for what the server did.
    NotToChoose,
    /// Nothing: the client spoiled the run.
    Nothing,
}

/// Whether a configuration meets the objective, by all of its runs so far together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Meets {
    /// No objective is asked.
    NotAsked,
    /// It is shown to.
    Shown,
    /// It did as observed, which is not shown.
    Seems,
    /// It did not as observed, or nothing was observed; neither is shown.
    SeemsNot,
    /// It is shown to miss it.
    Misses,
}

impl Meets {
    /// The name in files; none where no objective is asked.
    pub fn name(self) -> Option<&'static str> {
        (self != Meets::NotAsked).then(|| self.into())
    }

    /// Whether nothing more has to be shown.
    pub(super) fn is_settled(self) -> bool {
        matches!(self, Meets::NotAsked | Meets::Shown)
    }
}

/// One finished run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Its configuration, from 0.
    pub configuration: usize,
    /// Its rung, from 0.
    pub rung: usize,
    /// What it says.
    pub says: Says,
    /// What it and the runs of its configuration before it say of the objective.
    pub meets: Meets,
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
        /// Which of this configuration and rung it is, from 0: 1 where the first says nothing.
        repeat: usize,
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
    /// The configuration with the best estimate of those that meet the objective, shown or as observed; none where none does.
    pub best: Option<usize>,
    /// Those that may as well be the best, from the best estimate down.
    pub rivals: Vec<usize>,
    /// Those that could not be told from the others that went on, and for which the budget had no time, from the best estimate down.
    pub unaffordable: Vec<usize>,
    /// Those of which nothing is known: the client spoiled their runs.
    pub unknown: Vec<usize>,
    /// Why it ended.
    pub end: End,
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum End {
    /// One is better than all others.
    Best,
    /// The longest runs do not tell some from each other, or nothing is known of some.
    Undecided,
    /// The budget has no time for longer runs that would.
    Budget,
    /// No configuration can be chosen, or none that can is seen to meet the objective.
    None,
}

impl End {
    /// The name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
