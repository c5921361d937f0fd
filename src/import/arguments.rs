//! Parses the words of a command into options, as Python's argparse does: `--a b`, `--a=b`, `_` in place of
//! `-`. If an option is repeated, its last value counts, except for options that collect all values. Unknown
//! options are listed in the notes.

use std::cell::RefCell;
use std::str::FromStr;

use super::error::ImportError;
use super::notes::{Noted, Notes};
use super::options::{Arity, Fate, Known, find};
use super::said::Said;
use super::secrets::{Secrets, names_headers, shown_headers};
use super::shell::{marks, shown};
use crate::units::secrecy::{is_scheme, names_secret};

/// Options that only name or describe a run; they are skipped if their value contains a variable without a
/// value.
const IN_WORDS: [&str; 4] = ["experiment-name", "label", "metadata", "tag"];

/// One option of a command.
#[derive(Debug)]
struct Given {
    /// The first name of the option, without dashes.
    name: String,
    values: Vec<String>,
    fate: Option<Fate>,
    used: bool,
}

/// Whether a word, given without its leading dashes, is a known option. The word may contain `=` and a value.
fn is_known(table: &'static [Known], option: &str) -> bool {
    let name = option.split_once('=').map_or(option, |(name, _)| name);
    find(table, &name.replace('_', "-")).is_some()
}

/// Returns words with short options replaced by their long forms, such as `-m` by `--model`.
pub(crate) fn long_forms(words: &[String], short: &[(&str, &str)]) -> Vec<String> {
    let long = |word: &String| {
        let (option, value) =
            word.split_once('=').map_or((word.as_str(), None), |(option, value)| (option, Some(value)));
        let long = short.iter().find(|(short, _)| *short == option).map_or(option, |(_, long)| long);
        value.map_or_else(|| long.to_owned(), |value| format!("{long}={value}"))
    };
    words.iter().map(|word| if word.starts_with("--") { word.clone() } else { long(word) }).collect()
}

/// The options of one command.
pub(crate) struct Arguments<'a> {
    /// The line at which the command begins.
    pub line: usize,
    given: RefCell<Vec<Given>>,
    /// The command's notes.
    pub notes: &'a Notes<'a>,
    table: &'static [Known],
}

impl<'a> Arguments<'a> {
    /// Parses the words that follow the name of a program, whose options are in `table`.
    pub(crate) fn new(words: &[String], line: usize, table: &'static [Known], notes: &'a Notes<'a>) -> Arguments<'a> {
        let arguments = Arguments { line, given: RefCell::default(), notes, table };
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix("--").filter(|option| !option.is_empty()) else {
                // The word may be an API key after a mistyped option, so it is not shown.
                let before = arguments.given.borrow().last().map(|given| format!("a word after --{}", given.name));
                let what = before.unwrap_or_else(|| "a word before any option".to_owned());
                arguments.missing(&what, "not an option, and this command takes no other arguments");
                continue;
            };
            let (name, inline) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (option, None),
            };
            let name = name.replace('_', "-");
            let known = find(table, &name);
            let arity = known.map_or(Arity::Many, |(_, arity, _)| arity);
            let mut values: Vec<String> = inline.into_iter().collect();
            let most = match arity {
                Arity::Flag => 0,
                Arity::One | Arity::Each => 1,
                Arity::Many => usize::MAX,
            };
            while values.len() < most {
                // The word after `Bearer` is a key, even if it looks like an option. The first word after an
                // option for secrets or headers is also a key, unless it is a known option.
                let is_key = values.last().is_some_and(|word| is_scheme(word));
                let holds_key = values.is_empty() && (names_headers(&name) || names_secret(&name));
                let is_value = |word: &&String| match word.strip_prefix("--") {
                    None => true,
                    Some(option) => is_key || holds_key && !is_known(table, option),
                };
                let Some(value) = words.next_if(is_value) else { break };
                values.push(value.clone());
            }
            let name = known.map_or(name, |(name, ..)| name.to_owned());
            arguments.give(name, values, known.map(|(_, _, fate)| fate), arity);
        }
        arguments
    }

    fn give(&self, name: String, values: Vec<String>, fate: Option<Fate>, arity: Arity) {
        let given = Given { name, values, fate, used: false };
        self.notes.setting(&format!("--{}", given.name), self.line);
        if matches!(arity, Arity::One | Arity::Each) && given.values.is_empty() {
            return self.missing(&format!("--{}", given.name), "it has no value");
        }
        let mut all = self.given.borrow_mut();
        if arity == Arity::Each
            && let Some(before) = all.iter_mut().find(|known| known.name == given.name)
        {
            return before.values.extend(given.values);
        }
        if let Some(before) = all.iter().position(|known| known.name == given.name) {
            let earlier = all.remove(before);
            if earlier.values != given.values {
                self.missing(&self.words(&earlier), "overridden later in the same command: the last value counts");
            }
        }
        all.push(given);
    }

    fn words(&self, given: &Given) -> String {
        // The value of a header may be secret; only its name is shown.
        let values = if names_headers(&given.name) {
            shown_headers(&given.values)
        } else {
            let values = given.values.iter().map(|value| self.notes.secrets.shown(&given.name, &shown(value)));
            values.collect::<Vec<_>>().join(" ")
        };
        format!("--{} {values}", given.name).trim_end().to_owned()
    }

    /// Sets the values of an option, which replace any values given before.
    pub(crate) fn replace(&self, name: &str, values: Vec<String>) {
        let known = find(self.table, name);
        let name = known.map_or(name, |(name, ..)| name).to_owned();
        self.notes.setting(&format!("--{name}"), self.line);
        let mut all = self.given.borrow_mut();
        all.retain(|given| given.name != name);
        all.push(Given { name, values, fate: known.map(|(_, _, fate)| fate), used: false });
    }

    /// Whether an option is given, without marking it as used.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.given.borrow().iter().any(|given| given.name == name)
    }

    /// Removes a flag, and counts it as a setting.
    pub(crate) fn unset(&self, name: &str) {
        self.notes.setting(&format!("--{name}"), self.line);
        self.given.borrow_mut().retain(|given| given.name != name);
    }

    /// Returns the values of an option and marks it as used; `None` if it is not given, or if a variable in
    /// it has no value.
    pub(crate) fn many(&self, name: &str) -> Option<Said<Vec<String>>> {
        debug_assert!(
            find(self.table, name).is_some_and(|(known, _, fate)| known == name && fate == Fate::Read),
            "{name}"
        );
        let mut all = self.given.borrow_mut();
        let given = all.iter_mut().find(|given| given.name == name)?;
        given.used = true;
        let (values, words) = (given.values.clone(), self.words(given));
        if let Some(unset) = values.iter().flat_map(|value| marks(value)).next()
            && name != "header"
            && !names_secret(name)
        {
            match IN_WORDS.contains(&name) {
                true => self.missing(&words, &format!("`{unset}` has no value in what was imported; write it there")),
                false => self.notes.add_unset(&words, unset, self.line),
            }
            return None;
        }
        Some(Said { value: values, origin: words })
    }

    /// Returns the single value of an option.
    pub(crate) fn text(&self, name: &str) -> Option<Said<String>> {
        let said = self.many(name)?;
        Some(said.map(|values| values.into_iter().next().unwrap_or_default()))
    }

    /// Returns the single value of an option that the measurement needs; variables in it must have a value.
    pub(crate) fn needed(&self, place: &str, name: &str) -> Result<Option<Said<String>>, ImportError> {
        self.needed_unless(false, place, name)
    }

    /// Like [`Arguments::needed`], except that variables in the option may lack a value if `is_known` is set,
    /// that is, if another source provides the value.
    pub(crate) fn needed_unless(
        &self,
        is_known: bool,
        place: &str,
        name: &str,
    ) -> Result<Option<Said<String>>, ImportError> {
        let before = self.notes.unset.borrow().len();
        let said = self.text(name);
        if is_known {
            self.notes.unset.borrow_mut().truncate(before);
        }
        match said {
            None => self.notes.first_unset(|_| place.to_owned()).map_or(Ok(None), Err),
            said => Ok(said),
        }
    }

    /// Returns the origin of a flag and marks the flag as used; `None` if it is not given.
    pub(crate) fn flag(&self, name: &str) -> Option<Said<()>> {
        self.many(name).map(|said| said.map(drop))
    }

    /// Returns the single value of an option as a number.
    pub(crate) fn number<T: FromStr>(&self, name: &str, wanted: &str) -> Option<Said<T>> {
        let said = self.text(name)?;
        match said.value.trim().parse() {
            Ok(value) => Some(Said { value, origin: said.origin }),
            Err(_) => {
                self.notes.wrong(&said.origin, &format!("this is not {wanted}"), self.line);
                None
            }
        }
    }

    /// Returns the single value of an option as a whole number.
    pub(crate) fn whole(&self, name: &str) -> Option<Said<u32>> {
        self.number(name, "a whole number")
    }

    /// Lists a setting that has no counterpart in a plan.
    pub(crate) fn missing(&self, what: &str, why: &str) {
        self.notes.missing(what, why, self.line);
    }

    /// Lists a setting that the plan does not need.
    pub(crate) fn needless(&self, what: &str, why: &str) {
        self.notes.needless(what, why, self.line);
    }

    /// Lists a setting that is in the plan with a different meaning.
    pub(crate) fn differs(&self, what: &str, why: &str) {
        self.notes.differs(what, why, self.line);
    }

    /// Returns the notes for this command.
    pub(crate) fn noted(&self) -> Noted<'_> {
        self.notes.at(self.line)
    }

    /// Returns the secrets that must not be shown.
    pub(crate) fn secrets(&self) -> &Secrets {
        self.notes.secrets
    }

    /// Lists each unused option with the reason why it is not in the plan.
    pub(crate) fn list_unused(self) {
        let given = self.given.take();
        for one in given.iter().filter(|one| !one.used) {
            let words = self.words(one);
            match one.fate {
                Some(Fate::Needless(why)) => self.needless(&words, why),
                Some(Fate::Lost(why)) => self.missing(&words, why),
                Some(Fate::Read) => self.needless(&words, "it has no effect with the other options of this command"),
                None => self.missing(&words, "unknown option"),
            }
        }
    }
}
