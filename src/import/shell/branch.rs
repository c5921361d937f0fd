//! Determines which statements of a script run: `if`, `case`, `&&`, `||`, `continue`, `break` and
//! `exit`, as far as this can be determined without running it.

use super::lex::After;
use super::truth::Truth;

/// Whether a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Runs {
    /// The command runs.
    #[default]
    Surely,
    /// Whether the command runs is known only when the script runs; contains the line with the
    /// condition.
    Unsure(usize),
    /// The command does not run if variables that the script does not set are empty; contains the line with
    /// the condition.
    NotUnset(usize),
    /// The command does not run.
    Not,
}

impl Runs {
    /// Combines whether an outer statement runs with whether an inner statement runs.
    fn and(self, other: Runs) -> Runs {
        match (self, other) {
            (Runs::Not, _) | (_, Runs::Not) => Runs::Not,
            (not @ Runs::NotUnset(_), _) | (_, not @ Runs::NotUnset(_)) => not,
            (Runs::Surely, other) => other,
            (unsure, _) => unsure,
        }
    }

    fn of(truth: Truth, line: usize) -> Runs {
        match truth {
            Truth::Known(true) | Truth::Assumed(true) => Runs::Surely,
            Truth::Known(false) => Runs::Not,
            Truth::Assumed(false) => Runs::NotUnset(line),
            Truth::Unknown => Runs::Unsure(line),
        }
    }
}

/// An `if` or a `case`.
struct Branch {
    line: usize,
    /// The word of a `case`.
    word: Option<String>,
    /// The condition so far, while it is being read; otherwise `None`.
    condition: Option<Truth>,
    /// Whether an earlier branch of the statement runs.
    earlier: Truth,
    /// Whether the current branch runs.
    runs: Runs,
    /// Whether the current branch runs only because a variable has no value.
    is_assumed: bool,
}

/// The branches around a statement.
#[derive(Default)]
pub(super) struct Branches {
    open: Vec<Branch>,
    /// Each `continue` or `break` that may or may not be reached: its line, and whether it is a `break`.
    doubts: Vec<(usize, bool)>,
    /// Whether the previous statement was true; `None` if it was not a test.
    last: Option<Truth>,
    /// Whether the current part of a list joined by `&&` and `||` runs.
    list: Option<Runs>,
    /// Whether the current part of the list runs only because a variable has no value.
    is_list_assumed: bool,
    /// Whether the script has ended.
    pub(super) has_ended: bool,
}

impl Branches {
    /// Begins an `if`.
    pub(super) fn begin(&mut self, line: usize) {
        let (condition, earlier) = (Some(Truth::Unknown), Truth::Known(false));
        let (word, runs) = (None, Runs::Surely);
        self.open.push(Branch { line, word, condition, earlier, runs, is_assumed: false });
    }

    /// Begins a `case` of a word.
    pub(super) fn begin_case(&mut self, word: String, line: usize) {
        let (word, earlier) = (Some(word), Truth::Known(false));
        self.open.push(Branch { line, word, condition: None, earlier, runs: Runs::Not, is_assumed: false });
    }

    /// Ends the innermost `if` or `case`.
    pub(super) fn end(&mut self) {
        self.open.pop();
        (self.last, self.list) = (None, None);
    }

    /// Returns the word of the innermost `case`.
    pub(super) fn word(&self) -> Option<&str> {
        self.open.last()?.word.as_deref()
    }

    /// Whether a condition is being read.
    pub(super) fn is_condition(&self) -> bool {
        self.open.last().is_some_and(|branch| branch.condition.is_some())
    }

    /// Adds another part to the current condition.
    pub(super) fn add(&mut self, truth: Truth, after: After) {
        if let Some(condition) = self.open.last_mut().and_then(|branch| branch.condition.as_mut()) {
            *condition = match after {
                After::Success => condition.and(truth),
                After::Failure => condition.or(truth),
                _ => truth,
            };
        }
    }

    /// Ends the condition and begins the branch that depends on it.
    pub(super) fn then(&mut self) {
        let condition = self.open.last_mut().and_then(|branch| branch.condition.take());
        self.arm(condition.unwrap_or(Truth::Unknown));
    }

    /// Begins another condition after earlier branches.
    pub(super) fn elif(&mut self) {
        if let Some(branch) = self.open.last_mut() {
            branch.condition = Some(Truth::Unknown);
            branch.runs = Runs::of(branch.earlier.not(), branch.line);
        }
    }

    /// Begins a branch that runs if this condition is true and no earlier branch ran.
    pub(super) fn arm(&mut self, truth: Truth) {
        let Some(branch) = self.open.last_mut() else { return };
        let holds = branch.earlier.not().and(truth);
        branch.runs = Runs::of(holds, branch.line);
        branch.is_assumed = matches!(holds, Truth::Assumed(true));
        branch.earlier = branch.earlier.or(truth);
        self.list = None;
    }

    /// Reads the operator before a statement, and determines whether the statement runs within its list.
    pub(super) fn statement(&mut self, after: After, line: usize) {
        let before = self.list.unwrap_or_default();
        self.is_list_assumed = after != After::Any && matches!(self.last, Some(Truth::Assumed(_)));
        self.list = match (after, self.last) {
            (After::Any | After::Pattern, _) => None,
            (After::Pipe, _) => self.list,
            (_, _) if matches!(before, Runs::Unsure(_)) => self.list,
            (After::Success, None) => Some(before),
            (After::Failure, None) => Some(Runs::Unsure(line)),
            (After::Success, Some(truth)) => Some(Runs::of(truth, line)),
            (After::Failure, Some(truth)) => Some(Runs::of(truth.not(), line)),
        };
    }

    /// Records whether a statement that ran was true; `None` for a command that is not a test.
    pub(super) fn held(&mut self, truth: Option<Truth>) {
        let runs = self.list.unwrap_or_default();
        match runs {
            Runs::Surely => self.last = truth,
            Runs::Unsure(_) => self.last = Some(Truth::Unknown),
            // A skipped statement does not change the previous result.
            Runs::Not | Runs::NotUnset(_) => {}
        }
    }

    /// Whether the statement runs.
    pub(super) fn runs(&self) -> Runs {
        if self.has_ended {
            return Runs::Not;
        }
        let doubt = self.doubts.first().map_or(Runs::Surely, |(line, _)| Runs::Unsure(*line));
        let all = self.open.iter().map(|branch| branch.runs).chain(self.list).chain([doubt]);
        all.fold(Runs::Surely, Runs::and)
    }

    /// Whether a branch around the statement only runs because a variable has no value.
    pub(super) fn is_assumed(&self) -> bool {
        self.is_list_assumed || self.open.iter().any(|branch| branch.is_assumed)
    }

    /// Records a `continue` or `break` that may or may not be reached.
    pub(super) fn doubt(&mut self, line: usize, is_break: bool) {
        self.doubts.push((line, is_break));
    }

    /// Returns the number of open branches and of doubts, for [`Branches::back_to`].
    pub(super) fn depth(&self) -> (usize, usize) {
        (self.open.len(), self.doubts.len())
    }

    /// Restores the open branches to their state before an iteration of a loop or, with `is_end`, before the
    /// whole loop. Doubts from the iteration are dropped, except that a `break` stays in doubt until the loop
    /// ends.
    pub(super) fn back_to(&mut self, (open, doubts): (usize, usize), is_end: bool) {
        self.open.truncate(open);
        let kept: Vec<(usize, bool)> =
            self.doubts.drain(doubts.min(self.doubts.len())..).filter(|(_, is_break)| *is_break && !is_end).collect();
        self.doubts.extend(kept);
        (self.last, self.list) = (None, None);
    }
}
