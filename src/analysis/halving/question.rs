//! The question that halving answers, its observations and its outcome.

/// The question that halving answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Number of configurations.
    pub configurations: usize,
    /// Duration of a run of each rung, in seconds.
    pub seconds: Vec<f64>,
    /// Maximum total duration of all runs, including server starts, in seconds.
    pub budget: f64,
    /// Whether higher values are better.
    pub is_more_better: bool,
}

/// The evidence that a run provides on its configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Says {
    /// A measurement.
    Value {
        /// The measured value.
        value: f64,
        /// Its standard deviation due to the limited number of requests.
        deviation: f64,
    },
    /// The configuration cannot be chosen: the run was given up, or is invalid because of the server.
    NotToChoose,
    /// No evidence, because the client spoiled the run.
    Nothing,
}

/// Whether a configuration meets the objective, based on all of its runs so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Meets {
    /// There is no objective.
    NotAsked,
    /// It is shown to meet it.
    Shown,
    /// It was observed to meet it, but this is not shown.
    Seems,
    /// It was observed to miss it, or there was no observation; neither meeting nor missing is shown.
    SeemsNot,
    /// It is shown to miss it.
    Misses,
}

impl Meets {
    /// Returns the name in files; `None` without an objective.
    pub fn name(self) -> Option<&'static str> {
        (self != Meets::NotAsked).then(|| self.into())
    }

    /// Returns whether no further evidence is needed.
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
    /// Its evidence.
    pub says: Says,
    /// Whether the objective is met, based on this run and earlier runs of its configuration.
    pub meets: Meets,
    /// How long its server took to start, in seconds; `None` if it was already running.
    pub start: Option<f64>,
}

/// The estimate of a configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Its mean over all of its runs, weighted by their evidence.
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
        /// The configuration.
        configuration: usize,
        /// The rung.
        rung: usize,
        /// Index among the runs of this configuration and rung, from 0; it is 1 if the first run
        /// provided no evidence.
        repeat: usize,
    },
    /// Nothing, because the search is over.
    Ended(Outcome),
}

/// The current state of the search.
#[derive(Debug, Clone, PartialEq)]
pub struct Stands {
    /// What to do next.
    pub next: Next,
    /// The current or last rung, from 0.
    pub rung: usize,
    /// The configurations of this rung.
    pub alive: Vec<usize>,
}

/// The final result.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The configuration with the best estimate among those that were shown or observed to meet the
    /// objective; `None` if there is none.
    pub best: Option<usize>,
    /// Configurations that may be just as good as the best one, in descending order of their
    /// estimates.
    pub rivals: Vec<usize>,
    /// Configurations that were indistinguishable from others that advanced, but did not fit in the
    /// budget, in descending order of their estimates.
    pub unaffordable: Vec<usize>,
    /// Configurations without evidence: the client spoiled their runs.
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
    /// Even the longest runs do not distinguish some of the configurations, or some configurations
    /// are unknown.
    Undecided,
    /// The budget does not allow the longer runs that are needed to decide.
    Budget,
    /// No configuration can be chosen, or none of those that can be chosen was observed to meet the
    /// objective.
    None,
}

impl End {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
