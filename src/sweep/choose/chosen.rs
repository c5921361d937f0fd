//! The state and the outcome of a pool, and how they are described as text.

use std::fmt;

use super::settings::Settings;
use crate::analysis::halving;
use crate::analysis::highest::{Highest, Missed};
use crate::analysis::search::{Caveat, Cheapest, End, Outcome};
use crate::expand::{PlannedRun, Pool};
use crate::plan::model::search::Objective;

/// The state of a pool, which is a search or a ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// Positions of the finished members in the pool, in the order in which they were requested.
    pub finished: Vec<usize>,
    /// Positions of finished members that have no usable result and were replaced by members with a usable
    /// result. The outcome does not depend on them.
    pub replaced: Vec<usize>,
    /// For a search: positions of finished members at loads above the found load in which so many requests
    /// failed that the run is invalid. The search treats these runs as misses, which are expected above the
    /// found load.
    pub beyond: Vec<usize>,
    /// For a search: the objective for which each finished member and the next member were requested; empty
    /// for other pools.
    pub asked_for: Vec<Objective>,
    /// Position of the member that is requested next; `None` if the pool has ended.
    pub next: Option<usize>,
    /// The highest load that is known to meet the current objective, and the lowest load that is known to
    /// miss it.
    pub between: (Option<f64>, Option<f64>),
    /// How the pool ended; `None` while it continues. If there are several objectives, this is the outcome
    /// for the first objective that is not a cost.
    pub end: Option<Ended>,
    /// For a search: the results for the requested objectives, in their order, followed by the results for
    /// other limits of the plan's objective.
    pub parts: Vec<Part>,
    /// For a search: the latency limit that the load above the found load exceeds most; `None` if the
    /// objective does not limit several latencies.
    pub binds: Option<Objective>,
    /// For a search for the best settings of a server: the state of the search; `None` for other pools.
    pub settings: Option<Settings>,
    /// For a ladder: the loads that were measured but have no valid run.
    pub silent: Vec<f64>,
    /// For a search: the highest load that is shown to meet the plan's whole objective on latencies, and the
    /// highest load that met it in what was seen.
    pub highest: Highest,
    /// For a search: how much longer the runs must be to show whether a load meets the plan's objective, for the
    /// undecided loads between `highest.shown` and `highest.misses`, in rising order.
    pub needs: Vec<Needs>,
    /// The unit of loads, such as `qps` or `in flight`.
    pub(super) unit: &'static str,
}

/// How a pool ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// A search for a load ended.
    Search(Outcome),
    /// A search for the best settings of a server ended.
    Settings(halving::Outcome),
    /// A ladder ended after all of its loads were run.
    WholeLadder,
    /// A ladder ended early, because the stop rule applied.
    Cut {
        /// The last load that was run.
        load: f64,
        /// The result at this load that ended the ladder, as text.
        why: &'static str,
        /// Number of heavier loads that are skipped.
        pruned: usize,
    },
}

/// How much longer the runs of a search at one load must be to show whether the load meets the objective, if the
/// share of requests above each limit stays the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Needs {
    /// The load.
    pub load: f64,
    /// Whether the runs met the objective in what was seen.
    pub met: bool,
    /// The further time, in seconds.
    pub seconds: f64,
    /// The window of a long run that includes this time, in seconds.
    pub confirm: f64,
}

/// The result of a search for one objective.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The objective.
    pub of: Objective,
    /// Whether the plan requests a search for this objective. If not, the objective is only evaluated with
    /// the runs that were requested for other objectives.
    pub is_asked: bool,
    /// The highest load that is known to meet the objective, and the lowest load that is known to miss it.
    pub between: (Option<f64>, Option<f64>),
    /// The answer; `None` while the search continues, or if the objective is not requested.
    pub answer: Option<PartAnswer>,
    /// The highest load that is shown to meet the objective, and the highest load that met it in what was seen;
    /// empty for a cost.
    pub highest: Highest,
}

/// The answer for one objective.
#[derive(Debug, Clone, PartialEq)]
pub enum PartAnswer {
    /// The highest load that meets the objective.
    Highest {
        /// How the search for the objective ended.
        outcome: Outcome,
    },
    /// The lowest load at which tokens are cheap enough.
    Cheapest(Cheapest),
}

impl PartAnswer {
    /// Returns the highest load that the search found; `None` if it found none, and for a cost.
    pub(super) fn highest(&self) -> Option<f64> {
        match self {
            PartAnswer::Highest { outcome } => outcome.found,
            PartAnswer::Cheapest(_) => None,
        }
    }
}

impl Part {
    /// Returns the found load, and the adjacent load that does not meet the objective. The found load is
    /// the highest load that meets latencies, or the lowest load that is cheap enough.
    pub fn found(&self) -> (Option<f64>, Option<f64>) {
        match &self.answer {
            None => (None, None),
            Some(PartAnswer::Highest { outcome }) => (outcome.found, outcome.misses),
            Some(PartAnswer::Cheapest(Cheapest::From { load, dearer })) => (Some(*load), *dearer),
            Some(PartAnswer::Cheapest(Cheapest::Never { load })) => (None, Some(*load)),
            Some(PartAnswer::Cheapest(Cheapest::Unknown)) => (None, None),
        }
    }

    /// Returns how the search for this objective ended; `None` while it continues. For a cost,
    /// `below_range` means that the lightest load is cheap enough, and `above_range` that no load is.
    pub fn end(&self) -> Option<&'static str> {
        Some(match self.answer.as_ref()? {
            PartAnswer::Highest { outcome } => outcome.end.name(),
            PartAnswer::Cheapest(Cheapest::From { dearer: Some(_), .. }) => "found",
            PartAnswer::Cheapest(Cheapest::From { dearer: None, .. }) => "below_range",
            PartAnswer::Cheapest(Cheapest::Never { .. }) => "above_range",
            PartAnswer::Cheapest(Cheapest::Unknown) => "unknown",
        })
    }

    /// Returns a phrase that refers to the objective in a sentence.
    fn what(&self) -> &'static str {
        if self.of == Objective::Slo { "the objective" } else { "it" }
    }

    /// Returns both figures and the load above them that missed the objective; `of` names the latency that
    /// limits the load.
    fn figures(&self, unit: &str, of: &str) -> String {
        let what = self.what();
        let missed = match self.highest.missed {
            Some(Missed { load, is_shown: true }) => format!("{load} misses {what}{of}"),
            Some(Missed { load, is_shown: false }) => format!("{load} missed {what}{of} as observed"),
            None if self.highest.observed.is_none() => return "no valid run".to_owned(),
            None => format!("no heavier run missed {what}"),
        };
        format!("{}; {missed}", self.highest.words(|load| format!("{load} {unit}")))
    }

    /// Returns the answer as text. `binds` is the latency limit that the load above the found load exceeds
    /// most.
    fn said(&self, unit: &str, binds: Option<Objective>) -> String {
        match &self.answer {
            Some(PartAnswer::Highest { outcome }) => self.highest(outcome, unit, binds),
            Some(PartAnswer::Cheapest(cheapest)) => match cheapest {
                Cheapest::From { load, dearer: Some(dearer) } => {
                    format!("met from {load} {unit} upwards; {dearer} is more expensive")
                }
                Cheapest::From { load, dearer: None } => {
                    format!("met from {load} {unit} upwards, the lightest load of the range")
                }
                Cheapest::Never { load } => format!("met by no load of the range, not even {load} {unit}"),
                Cheapest::Unknown => "unknown: no output-token count available".to_owned(),
            },
            None if self.of == Objective::CostPerMillion => match self.between {
                (Some(low), Some(high)) => format!("{low} {unit} missed it, {high} met it"),
                (Some(low), None) => format!("{low} {unit} missed it"),
                (None, Some(high)) => format!("{high} {unit} met it"),
                (None, None) => "no valid run".to_owned(),
            },
            None => self.figures(unit, ""),
        }
    }

    fn highest(&self, outcome: &Outcome, unit: &str, binds: Option<Objective>) -> String {
        let what = self.what();
        let of = binds.map(|binds| format!(" ({})", binds.name())).unwrap_or_default();
        let is_seen = self.highest.observed.is_some();
        let mut said = match (outcome.found, outcome.end) {
            (Some(_), End::AboveRange) if self.highest.missed.is_none() => {
                let figures = self.highest.words(|load| format!("{load} {unit}"));
                format!("{figures}; the range has no heavier load")
            }
            (None, End::BelowRange) if !is_seen => {
                let missed = outcome.misses.map(|load| format!(": {load} {unit} misses it{of}")).unwrap_or_default();
                format!("no load of the range meets {what}{missed}")
            }
            (None, End::OutOfProbes) if !is_seen && self.highest.missed.is_none() => {
                "no valid run within the run limit".to_owned()
            }
            (None, end) if !is_seen => nothing_found(end, what),
            (None, end) if self.highest.missed.is_none() => {
                format!("{}; {}", self.highest.words(|load| format!("{load} {unit}")), nothing_found(end, what))
            }
            (None, end) => format!("{}; {}", self.figures(unit, &of), nothing_found(end, what)),
            (Some(_), _) => self.figures(unit, &of),
        };
        // The search weighs all of its runs, so its result may differ from what was seen at a single load.
        let estimate = outcome.found.filter(|found| Some(*found) != self.highest.observed);
        said.extend(estimate.map(|found| format!("; the search settled on {found}")));
        // The figures state what is shown.
        let is_of_figures = |caveat: &Caveat| matches!(caveat, Caveat::NotShown { .. });
        for caveat in outcome.caveats.iter().filter(|caveat| !is_of_figures(caveat)) {
            said.push_str(&format!("; {caveat}"));
        }
        said
    }
}

/// Returns why a search found no load.
fn nothing_found(end: End, what: &str) -> String {
    match end {
        End::BelowRange => "the curve through all runs lies below the range".to_owned(),
        End::Unconfirmed => "no load was confirmed by its long run".to_owned(),
        End::TooFewRequests => "not found".to_owned(),
        End::OutOfProbes => "not found within the run limit".to_owned(),
        _ => format!("no load is shown to meet {what}"),
    }
}

impl Chosen {
    /// Returns the state of a pool without any results.
    pub(super) fn nothing(unit: &'static str) -> Chosen {
        Chosen {
            finished: Vec::new(),
            replaced: Vec::new(),
            beyond: Vec::new(),
            asked_for: Vec::new(),
            next: None,
            between: (None, None),
            end: None,
            parts: Vec::new(),
            binds: None,
            settings: None,
            silent: Vec::new(),
            highest: Highest::default(),
            needs: Vec::new(),
            unit,
        }
    }

    /// Returns how the search for the plan's whole objective ended; `None` while it continues, or if it is
    /// not requested.
    pub fn of_whole_objective(&self) -> Option<&Outcome> {
        let slo = self.parts.iter().find(|part| part.of == Objective::Slo)?;
        match &slo.answer {
            Some(PartAnswer::Highest { outcome }) => Some(outcome),
            Some(PartAnswer::Cheapest(_)) | None => None,
        }
    }

    /// Whether the pool has ended with an answer, rather than because it ran out of runs or had too few
    /// requests.
    pub fn is_answered(&self) -> bool {
        match &self.end {
            Some(Ended::Search(outcome)) => !matches!(outcome.end, End::OutOfProbes | End::TooFewRequests),
            Some(Ended::Settings(_) | Ended::WholeLadder | Ended::Cut { .. }) => true,
            None => false,
        }
    }

    /// Returns the loads of the finished runs, in rising order, each once.
    pub(super) fn loads(&self, pool: &Pool) -> Vec<f64> {
        let mut loads: Vec<f64> = self.finished.iter().map(|at| pool.members[*at].load).collect();
        loads.sort_unstable_by(f64::total_cmp);
        loads.dedup();
        loads
    }

    /// Returns the finished runs at a load.
    pub fn runs_at<'p>(&self, load: f64, pool: &'p Pool) -> Vec<&'p PlannedRun> {
        let there = self.finished.iter().map(|at| &pool.members[*at]).filter(|member| member.load == load);
        there.map(|member| &member.run).collect()
    }

    /// Returns the positions of the finished members and of the next member.
    pub fn members(&self) -> Vec<usize> {
        self.finished.iter().copied().chain(self.next).collect()
    }

    /// Describes the result of a search: the answer for each objective, with the objective's name if there
    /// are several.
    fn searched(&self) -> String {
        let with_name = |part: &Part| {
            let binds = self.binds.filter(|_| part.of == Objective::Slo);
            let said = part.said(self.unit, binds);
            match (self.parts.len(), part.of) {
                (1, _) | (_, Objective::Slo) => said,
                (_, Objective::CostPerMillion) => format!("the cost is {said}"),
                (_, of) => format!("{} alone: {said}", of.name()),
            }
        };
        self.parts.iter().map(with_name).collect::<Vec<_>>().join("; ")
    }

    /// Returns the objective that is currently searched for, which is the first objective without an
    /// answer; `None` if the plan requests only one.
    fn searching(&self) -> Option<Objective> {
        let asked = || self.parts.iter().filter(|part| part.is_asked);
        let open = asked().find(|part| part.answer.is_none())?;
        (asked().count() > 1).then_some(open.of)
    }
}

/// Writes the state of the pool in short form: `estimated between 24 and 28 qps, 6 runs so far`.
impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = self.unit;
        let runs = match self.finished.len() {
            1 => "1 run".to_owned(),
            runs => format!("{runs} runs"),
        };
        let silent = self.silent.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
        let silent = if silent.is_empty() { silent } else { format!("; no valid run at {silent}") };
        if let (None, Some(objective)) = (&self.end, self.searching()) {
            write!(f, "{}: ", objective.name())?;
        }
        // A search weighs all of its runs; the runs at the loads themselves may be undecided.
        let estimated = if self.parts.is_empty() { "" } else { "estimated " };
        if let Some(settings) = &self.settings {
            let so_far = if self.end.is_none() { " so far" } else { "" };
            return write!(f, "{settings}; {runs}{so_far}");
        }
        match (&self.end, self.between) {
            (Some(Ended::Settings(outcome)), _) => write!(f, "{}; {runs}", outcome.end.name()),
            (Some(Ended::Search(_)), _) => write!(f, "{}; {runs}", self.searched()),
            (Some(Ended::WholeLadder), _) if !self.silent.is_empty() => {
                write!(f, "no load ended the ladder{silent}; {runs}")
            }
            (Some(Ended::WholeLadder), _) => write!(f, "no load ended the ladder; {runs}"),
            (Some(Ended::Cut { load, why, pruned: 0 }), _) => write!(f, "{load} {unit} {why}{silent}; {runs}"),
            (Some(Ended::Cut { load, why, pruned }), _) => {
                let loads = if *pruned == 1 {
                    "one heavier load was".to_owned()
                } else {
                    format!("{pruned} heavier loads were")
                };
                write!(f, "{load} {unit} {why}, so {loads} skipped{silent}; {runs}")
            }
            (None, (Some(low), Some(high))) => write!(f, "{estimated}between {low} and {high} {unit}, {runs} so far"),
            (None, (Some(low), None)) => write!(f, "{estimated}above {low} {unit}, {runs} so far"),
            (None, (None, Some(high))) => write!(f, "{estimated}below {high} {unit}, {runs} so far"),
            (None, (None, None)) => write!(f, "{runs} so far"),
        }
    }
}
