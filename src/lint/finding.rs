//! What a rule finds, and what it is about.

use std::fmt;

use crate::plan::Step;

/// What a finding is about.
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
    /// What it is, in the singular, and its name.
    pub(super) fn words(&self) -> (&'static str, Option<&str>) {
        match self {
            Scope::Plan => ("plan", None),
            Scope::Model(name) => ("model", Some(name)),
            Scope::Endpoint(name) => ("endpoint", Some(name)),
            Scope::Scenario(name) => ("scenario", Some(name)),
            Scope::Sweep(name) => ("sweep", Some(name)),
        }
    }

    /// Where the plan declares it.
    fn path(&self) -> Vec<Step> {
        let (kind, name) = self.words();
        name.map_or_else(Vec::new, |name| vec![Step::from(format!("{kind}s").as_str()), Step::from(name)])
    }
}

impl fmt::Display for Scope {
    /// `plan`, `sweep saturation`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words() {
            (kind, None) => f.write_str(kind),
            (kind, Some(name)) => write!(f, "{kind} {name}"),
        }
    }
}

/// What a rule found in one place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding {
    /// What it is about.
    pub scope: Scope,
    /// The path of what it is about.
    pub at: Vec<Step>,
    /// What is wrong, with its figures.
    pub message: String,
    /// What to type.
    pub remedy: String,
    /// Facts that are not disclosed, by name; empty where it is about something else.
    pub(super) undisclosed: Vec<String>,
}

impl Finding {
    /// One about a part of what it is about.
    pub(super) fn of(scope: Scope, part: &[&str], message: impl Into<String>, remedy: impl Into<String>) -> Finding {
        let at = scope.path().into_iter().chain(part.iter().map(|key| Step::from(*key))).collect();
        Finding { scope, at, message: message.into(), remedy: remedy.into(), undisclosed: Vec::new() }
    }

    /// The same, about facts that are not disclosed.
    pub(super) fn undisclosed(self, names: impl IntoIterator<Item = String>) -> Finding {
        Finding { undisclosed: names.into_iter().collect(), ..self }
    }
}
