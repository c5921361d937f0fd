//! The findings of a rule and their subjects.

use std::fmt;

use crate::plan::Step;

/// The subject of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// The plan as a whole.
    Plan,
    /// A model, by name.
    Model(String),
    /// An endpoint, by name.
    Endpoint(String),
    /// A scenario, by name.
    Scenario(String),
    /// A sweep, by name.
    Sweep(String),
}

impl Scope {
    /// The kind of the subject, in the singular, and its name.
    pub(super) fn words(&self) -> (&'static str, Option<&str>) {
        match self {
            Scope::Plan => ("plan", None),
            Scope::Model(name) => ("model", Some(name)),
            Scope::Endpoint(name) => ("endpoint", Some(name)),
            Scope::Scenario(name) => ("scenario", Some(name)),
            Scope::Sweep(name) => ("sweep", Some(name)),
        }
    }

    /// The path in the plan at which the subject is declared; empty for the plan itself.
    fn path(&self) -> Vec<Step> {
        let (kind, name) = self.words();
        name.map_or_else(Vec::new, |name| vec![Step::from(format!("{kind}s").as_str()), Step::from(name)])
    }
}

impl fmt::Display for Scope {
    /// Formats the kind and the name, as in `plan` or `sweep saturation`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words() {
            (kind, None) => f.write_str(kind),
            (kind, Some(name)) => write!(f, "{kind} {name}"),
        }
    }
}

/// One finding of a rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding {
    /// The subject of the finding.
    pub scope: Scope,
    /// The path in the plan to which the finding refers.
    pub at: Vec<Step>,
    /// The problem, with its figures.
    pub message: String,
    /// The remedy, such as the text to write in the plan.
    pub remedy: String,
    /// Names of facts that are not disclosed; empty if the finding is about something else.
    pub(super) undisclosed: Vec<String>,
}

impl Finding {
    /// Creates a finding about a part of its subject. `part` is the path of the part below the subject.
    pub(super) fn of(scope: Scope, part: &[&str], message: impl Into<String>, remedy: impl Into<String>) -> Finding {
        let at = scope.path().into_iter().chain(part.iter().map(|key| Step::from(*key))).collect();
        Finding { scope, at, message: message.into(), remedy: remedy.into(), undisclosed: Vec::new() }
    }

    /// Returns the same finding with the names of undisclosed facts.
    pub(super) fn undisclosed(self, names: impl IntoIterator<Item = String>) -> Finding {
        Finding { undisclosed: names.into_iter().collect(), ..self }
    }
}
