//! The notes that all readers of an import share: the secrets, the lists, and the counted settings.

use std::cell::RefCell;

use indexmap::IndexMap;

use super::draft::{Kind, Listed};
use super::error::ImportError;
use super::secrets::Secrets;
use super::text::one_line;

/// The number of settings of the source, by result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Settings that are in the plan, or that sweepline applies anyway.
    pub mapped: usize,
    /// Settings without a counterpart, each of which is listed.
    pub missing: usize,
}

/// The secrets, the lists, and the counted settings of the source.
pub(super) struct Notes<'a> {
    pub(super) secrets: &'a Secrets,
    pub(super) listed: RefCell<Vec<Listed>>,
    /// For each setting, given by its name and line, whether it is mapped to the plan.
    settings: RefCell<IndexMap<(String, usize), bool>>,
    /// Mapped options whose value contains a variable without a value, each with its words, the variable and
    /// the line.
    pub(super) unset: RefCell<Vec<(String, String, usize)>>,
    /// Variables whose value depends on a branch, each with the line of the branch's condition.
    pub(super) branched: RefCell<Vec<(String, usize)>>,
    /// Invalid values, each with its words, the reason and the line.
    wrong: RefCell<Vec<(String, String, usize)>>,
}

impl<'a> Notes<'a> {
    /// Creates notes without entries.
    pub(super) fn new(secrets: &'a Secrets) -> Notes<'a> {
        let (listed, settings) = Default::default();
        let (unset, branched, wrong) = Default::default();
        Notes { secrets, listed, settings, unset, branched, wrong }
    }

    /// Counts a setting of the source, which is an option or a field. The setting counts as mapped unless
    /// it is listed as missing.
    pub(super) fn setting(&self, name: &str, line: usize) {
        self.settings.borrow_mut().entry((name.to_owned(), line)).or_insert(true);
    }

    /// Counts a setting that has no counterpart in a plan.
    pub(super) fn lost(&self, name: &str, line: usize) {
        self.settings.borrow_mut().insert((name.to_owned(), line), false);
    }

    /// Lists a setting that has no counterpart in a plan. The setting is recognized by the beginning of
    /// `what`.
    pub(super) fn missing(&self, what: &str, why: &str, line: usize) {
        let name = self.name_in(what, line).unwrap_or(what);
        self.lost(name, line);
        self.add(Kind::Missing, what, why, line);
    }

    /// Lists a setting that has no counterpart in a plan and whose line is unknown. The line is taken from
    /// the counted setting with the longest name with which `what` begins.
    pub(super) fn missing_somewhere(&self, what: &str, why: &str) {
        let begins = |name: &str| {
            what.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '=', ':']))
        };
        let lines: Vec<(usize, usize)> = {
            let settings = self.settings.borrow();
            settings.keys().filter(|(name, _)| begins(name)).map(|(name, line)| (name.len(), *line)).collect()
        };
        self.missing(what, why, lines.into_iter().max_by_key(|(length, _)| *length).map_or(0, |(_, line)| line));
    }

    /// Notes that the value of a mapped option contains a variable without a value. Using a default would
    /// change the benchmark, so the import fails.
    pub(super) fn add_unset(&self, words: &str, variable: &str, line: usize) {
        self.unset.borrow_mut().push((self.secrets.hide(words), variable.to_owned(), line));
    }

    /// Returns the first option whose value contains a variable without a value, as an error with
    /// its line.
    pub(super) fn first_unset(&self, place: impl Fn(usize) -> String) -> Option<ImportError> {
        let unset = self.unset.borrow();
        let (words, variable, line) = unset.first()?;
        let mut others: Vec<&str> =
            unset.iter().map(|(_, other, _)| other.as_str()).filter(|o| o != variable).collect();
        others.sort_unstable();
        others.dedup();
        if let Some((_, condition)) = self.branched.borrow().iter().find(|(name, _)| name == variable) {
            let what = format!(
                "`{words}`: `{variable}` is set under a condition (line {condition}) whose result is only known when \
                 the script runs"
            );
            let remedy = "set the variables of the condition before it, or keep only the branch that counts";
            return Some(ImportError::shape(place(*line), what, remedy));
        }
        let others = if others.is_empty() { String::new() } else { format!(", and so on for {}", others.join(", ")) };
        let what = format!("`{words}`: `{variable}` has no value in the imported text");
        Some(ImportError::shape(
            place(*line),
            what,
            format!("set it before the command{others}, or write the value itself"),
        ))
    }

    /// Notes an invalid value. Using a default would change the benchmark, so the import fails.
    pub(super) fn wrong(&self, what: &str, why: &str, line: usize) {
        self.wrong.borrow_mut().push((self.secrets.hide(what), why.to_owned(), line));
    }

    /// Returns the first invalid value, as an error with its line.
    pub(super) fn first_wrong(&self, place: impl Fn(usize) -> String) -> Option<ImportError> {
        let wrong = self.wrong.borrow();
        let (what, why, line) = wrong.first()?;
        Some(ImportError::shape(place(*line), one_line(&format!("{what}: {why}")), "fix it there and import again"))
    }

    /// Lists a setting that is in the plan with a different meaning.
    pub(super) fn differs(&self, what: &str, why: &str, line: usize) {
        self.add(Kind::Differs, what, why, line);
    }

    /// Lists a setting that the plan does not need.
    pub(super) fn needless(&self, what: &str, why: &str, line: usize) {
        self.add(Kind::Needless, what, why, line);
    }

    /// Lists a setting without counting it.
    pub(super) fn add(&self, kind: Kind, what: &str, why: &str, line: usize) {
        let (what, why) = (self.secrets.hide(what), self.secrets.hide_quoted(why));
        self.listed.borrow_mut().push(Listed { what, why, lines: vec![line], kind });
    }

    /// Adds entries that were listed elsewhere.
    pub(super) fn extend(&self, listed: Vec<Listed>) {
        for Listed { what, why, lines, kind } in listed {
            let line = lines.first().copied().unwrap_or_default();
            if kind == Kind::Missing {
                self.lost(&what, line);
            }
            self.add(kind, &what, &why, line);
        }
    }

    /// Returns the name of the setting with which a text begins; `None` if it begins with no counted setting.
    fn name_in<'t>(&self, what: &'t str, line: usize) -> Option<&'t str> {
        let settings = self.settings.borrow();
        let ends = what.match_indices([' ', '=', ':']).map(|(at, _)| at).take(4).chain([what.len()]);
        let names: Vec<&str> = ends.map(|end| &what[..end]).collect();
        names.into_iter().rev().find(|name| settings.contains_key(&((*name).to_owned(), line)))
    }

    /// Stops counting a setting, because another one is counted instead.
    pub(super) fn uncount(&self, name: &str, line: usize) {
        self.settings.borrow_mut().swap_remove(&(name.to_owned(), line));
    }

    /// Removes all counted settings, because they will be counted again in another form.
    pub(super) fn forget(&self) {
        self.settings.borrow_mut().clear();
    }

    /// Returns the number of settings.
    pub(super) fn counts(&self) -> Counts {
        let settings = self.settings.borrow();
        let mapped = settings.values().filter(|is_mapped| **is_mapped).count();
        Counts { mapped, missing: settings.len() - mapped }
    }

    /// Returns a view of these notes for one line.
    pub(super) fn at(&self, line: usize) -> Noted<'_> {
        Noted { notes: self, line }
    }
}

/// Notes about one line of the source.
#[derive(Clone, Copy)]
pub(super) struct Noted<'a> {
    notes: &'a Notes<'a>,
    line: usize,
}

impl Noted<'_> {
    /// Lists a setting that has no counterpart in a plan.
    pub(super) fn missing(&self, what: &str, why: &str) {
        self.notes.missing(what, why, self.line);
    }

    /// Lists a setting that the plan does not need.
    pub(super) fn needless(&self, what: &str, why: &str) {
        self.notes.needless(what, why, self.line);
    }
}
