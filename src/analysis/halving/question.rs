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
        /// The standard deviation of the value due to the limited number of requests.
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
    /// The configuration is shown to meet the objective.
    Shown,
    /// The configuration was observed to meet the objective, but this is not shown.
    Seems,
    /// The configuration was observed to miss the objective, or there was no observation; neither
    /// meeting nor missing is shown.
    SeemsNot,
    /// The configuration is shown to miss the objective.
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
    /// The index of the run's configuration, from 0.
    pub configuration: usize,
    /// The index of the run's rung, from 0.
    pub rung: usize,
    /// The evidence of the run.
    pub says: Says,
    /// Whether the objective is met, based on this run and earlier runs of its configuration.
    pub meets: Meets,
    /// How long the run's server took to start, in seconds; `None` if the server was already running.
    pub start: Option<f64>,
}

/// The estimate of a configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The mean over all runs of the configuration, weighted by their evidence.
    pub value: f64,
    /// The lower end of the mean's interval.
    pub low: f64,
    /// The upper end of the mean's interval.
    pub high: f64,
    /// The rung of the configuration's longest run.
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
    /// Why the search ended.
    pub end: End,
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum End {
    /// One configuration is better than all others.
    Best,
    /// Even the longest runs do not distinguish some of the configurations, or some configurations
    /// are unknown.
    Undecided,
    /// The budget does not allow the longer runs that are needed to decide.
    Budget,
    /// No configuration is eligible, or no eligible configuration was observed to meet the objective.
    None,
}

impl End {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
