//! How looking for the best settings stands, and the words for it.

use std::fmt;

use crate::analysis::halving::{End, Estimate, Outcome};
use crate::plan::Aim;
use crate::units::text::{counted, digits};

/// How looking for the best settings stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What they are to be best at.
    pub aim: Aim,
    /// All of them, in the order of the matrix.
    pub all: Vec<Setting>,
    /// The rung that runs now, from 1.
    pub rung: usize,
    /// How many rungs there are.
    pub rungs: usize,
    /// How it ended.
    pub outcome: Option<Outcome>,
}

/// What is known of some settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Their values on `server` axes.
    pub name: String,
    /// How many runs they have.
    pub runs: usize,
    /// What they came to; none without a run, and where they cannot be chosen.
    pub estimate: Option<Estimate>,
}

impl Setting {
    fn with_value(&self, aim: Aim) -> String {
        match self.estimate {
            Some(Estimate { value, low, high, .. }) => {
                format!("{} with {} {} ({} to {})", self.name, digits(value), aim.unit(), digits(low), digits(high))
            }
            None => self.name.clone(),
        }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |at: &usize| self.all.get(*at).map(|setting| setting.with_value(self.aim)).unwrap_or_default();
        let Some(outcome) = &self.outcome else {
            return write!(f, "{}, rung {} of {}", counted(self.all.len(), "setting"), self.rung, self.rungs);
        };
        let best = outcome.best.as_ref().map(named).unwrap_or_default();
        let rivals = outcome.rivals.iter().map(named).collect::<Vec<_>>().join(" and ");
        match outcome.end {
            End::None => {
                write!(f, "no settings can be chosen: their runs are invalid, given up, or miss the objective")?
            }
            End::Best => write!(f, "best: {best}")?,
            End::Undecided => write!(f, "undecided between {best} and {rivals}")?,
            End::Budget if rivals.is_empty() => write!(f, "the budget is spent; ahead: {best}")?,
            End::Budget => write!(f, "the budget has no time for longer runs; undecided between {best} and {rivals}")?,
        }
        if !outcome.unaffordable.is_empty() {
            let names: Vec<&str> = outcome.unaffordable.iter().map(|at| self.all[*at].name.as_str()).collect();
            write!(f, "; not told from the others, and without a longer run for want of time: {}", names.join(", "))?;
        }
        Ok(())
    }
}
