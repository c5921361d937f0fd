//! Evaluates the conditions of a script as far as possible without running it.

use super::arithmetic;
use super::expand::expand;
use super::lex::After;
use super::mark::{marks, without_mark_names};
use super::variable::Variables;
use crate::units::text::is_variable;

/// The result of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Truth {
    /// The condition is known to be true or false.
    Known(bool),
    /// The condition is true or false if a variable that the script does not set is empty, as in `${NAME:-}`.
    Assumed(bool),
    /// The result is known only when the script runs.
    Unknown,
}

use Truth::{Assumed, Known, Unknown};

impl Truth {
    pub(super) fn not(self) -> Truth {
        match self {
            Known(value) => Known(!value),
            Assumed(value) => Assumed(!value),
            Unknown => Unknown,
        }
    }

    pub(super) fn and(self, other: Truth) -> Truth {
        let both = [self, other];
        match both.iter().find(|one| **one == Known(false)).or(both.iter().find(|one| **one == Assumed(false))) {
            Some(no) => *no,
            None if both.contains(&Unknown) => Unknown,
            None if both.contains(&Assumed(true)) => Assumed(true),
            None => Known(true),
        }
    }

    pub(super) fn or(self, other: Truth) -> Truth {
        self.not().and(other.not()).not()
    }
}

/// Evaluates a statement that is a test; `None` for other commands. `keys` are variables with a secret.
pub(super) fn truth(raw: &str, variables: &Variables, keys: &[String]) -> Option<Truth> {
    let first = raw.split_whitespace().next()?;
    if first == "!" {
        return truth(raw.trim_start().strip_prefix('!')?, variables, keys).map(Truth::not);
    }
    if first.starts_with("((") {
        return Some(sum(raw, variables));
    }
    match first {
        "true" | ":" => return Some(Known(true)),
        "false" => return Some(Known(false)),
        "grep" | "pgrep" => return Some(Unknown),
        "[" | "[[" | "test" => {}
        _ => return None,
    }
    // A script is read as if it were started without arguments.
    let words = expand(&raw.replace("$#", "0"), variables).and_then(|text| shlex::split(&text));
    let Some(words) = words else { return Some(Unknown) };
    let end = match (first, words.last().map(String::as_str)) {
        ("[", Some("]")) | ("[[", Some("]]")) => words.len() - 1,
        ("test", _) => words.len(),
        _ => return Some(Unknown),
    };
    let words: Vec<&str> = words[1..end].iter().map(String::as_str).collect();
    let test = Test { variables, keys, has_globs: first == "[[" };
    let any = words
        .split(|word| *word == "||")
        .map(|all| all.split(|word| *word == "&&").map(|one| test.one(one)).fold(Known(true), Truth::and));
    Some(any.fold(Known(false), Truth::or))
}

/// Evaluates `((…))`: a comparison of whole numbers, or a number, which is true unless it is 0.
fn sum(raw: &str, variables: &Variables) -> Truth {
    let inner = raw.trim().strip_prefix("((").and_then(|text| text.strip_suffix("))"));
    let Some(inner) = inner.map(|text| text.replace("$#", "0")) else { return Unknown };
    let value = |text: &str| arithmetic::value(text, variables);
    for (sign, holds) in SIGNS {
        if let Some((left, right)) = inner.split_once(sign) {
            let (Some(left), Some(right)) = (value(left), value(right)) else { return Unknown };
            return Known(holds(left, right));
        }
    }
    value(&inner).map_or(Unknown, |value| Known(value != 0))
}

type Compare = fn(i64, i64) -> bool;

/// The comparisons inside `((…))`, with longer operators first.
const SIGNS: [(&str, Compare); 6] = [
    ("<=", |a, b| a <= b),
    (">=", |a, b| a >= b),
    ("==", |a, b| a == b),
    ("!=", |a, b| a != b),
    ("<", |a, b| a < b),
    (">", |a, b| a > b),
];

/// The comparisons of numbers inside `[ … ]`.
const NUMBERS: [(&str, Compare); 6] = [
    ("-eq", |a, b| a == b),
    ("-ne", |a, b| a != b),
    ("-lt", |a, b| a < b),
    ("-le", |a, b| a <= b),
    ("-gt", |a, b| a > b),
    ("-ge", |a, b| a >= b),
];

struct Test<'a> {
    variables: &'a Variables,
    keys: &'a [String],
    /// Whether the right side of `==` is a pattern.
    has_globs: bool,
}

impl Test<'_> {
    fn one(&self, words: &[&str]) -> Truth {
        match words {
            ["!", rest @ ..] => self.one(rest).not(),
            ["-z", text] => self.is_empty(text),
            ["-n", text] => self.is_empty(text).not(),
            [text] if !text.starts_with('-') => self.is_empty(text).not(),
            [left, sign, right] => self.compared(left, sign, right),
            _ => Unknown,
        }
    }

    fn is_empty(&self, text: &str) -> Truth {
        let names = marks(text);
        if names.is_empty() || without_mark_names(text).iter().any(|beside| !beside.is_empty()) {
            return Known(text.is_empty());
        }
        let unset = |name: &&str| is_argument(name) || (is_variable(name) && !self.variables.contains_key(*name));
        match names {
            names if names.iter().any(|name| self.keys.iter().any(|key| key == name)) => Known(false),
            names if names.iter().all(unset) => Assumed(true),
            _ => Unknown,
        }
    }

    fn compared(&self, left: &str, sign: &str, right: &str) -> Truth {
        let names = || marks(left).into_iter().chain(marks(right));
        if names().any(|name| !is_argument(name)) {
            return Unknown;
        }
        let is_assumed = names().next().is_some();
        let (left, right) = (without_mark_names(left).concat(), without_mark_names(right).concat());
        let numbers = || Some((left.parse::<i64>().ok()?, right.parse::<i64>().ok()?));
        let holds = match sign {
            "=" | "==" | "!=" if self.has_globs && right.contains(['*', '?', '[']) => None,
            "=" | "==" => Some(left == right),
            "!=" => Some(left != right),
            sign => NUMBERS
                .iter()
                .find(|(known, _)| *known == sign)
                .and_then(|(_, holds)| numbers().map(|(left, right)| holds(left, right))),
        };
        match holds {
            Some(holds) if is_assumed => Assumed(holds),
            Some(holds) => Known(holds),
            None => Unknown,
        }
    }
}

/// Whether the condition of a loop depends on the arguments of the script.
pub(super) fn reads_arguments(condition: &str) -> bool {
    ["$#", "${#", "getopts", "\"$1\"", "$1 ", "${1"].iter().any(|sign| condition.contains(sign))
}

/// Whether the pattern of a `case` matches its word.
pub(super) fn fits(word: &str, pattern: &str, after: After) -> Truth {
    let pattern = pattern.trim_end_matches(')').trim().trim_matches(['"', '\'']);
    let names = marks(word);
    match pattern {
        _ if after == After::Pipe => Truth::Unknown,
        "*" => Truth::Known(true),
        _ if pattern.contains(['*', '?', '[', '$']) || !names.iter().all(|name| is_argument(name)) => Truth::Unknown,
        _ if names.is_empty() => Truth::Known(word == pattern),
        _ => Truth::Assumed(without_mark_names(word).concat() == pattern),
    }
}

/// Whether a mark stands for an argument of the script.
fn is_argument(name: &str) -> bool {
    name == "@" || name == "*" || (!name.is_empty() && name.chars().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::super::variable::Variable;
    use super::*;

    #[test]
    fn conditions_over_known_values_are_worked_out() {
        let variables =
            Variables::from([("A".to_owned(), Variable::Text("4".to_owned())), ("B".to_owned(), Variable::Branched)]);
        for (raw, expected) in [
            ("[ \"$A\" = 4 ]", Some(Known(true))),
            ("[[ $A == 5 || $A -gt 3 ]]", Some(Known(true))),
            ("[[ $A -gt 3 && -z $X ]]", Some(Assumed(true))),
            ("! [ -n \"$X\" ]", Some(Assumed(true))),
            ("[ -z \"$1\" ]", Some(Assumed(true))),
            ("[ $# -lt 1 ]", Some(Known(true))),
            ("((A * 2 >= 9))", Some(Known(false))),
            ("[ \"$X\" = long ]", Some(Unknown)),
            ("[ -n \"$B\" ]", Some(Unknown)),
            ("[ -n \"$KEY\" ]", Some(Known(true))),
            ("[ -f x ]", Some(Unknown)),
            ("[[ $A == 4* ]]", Some(Unknown)),
            ("[ \"$(nproc)\" = 4 ]", Some(Unknown)),
            ("grep -q x y", Some(Unknown)),
            ("f", None),
        ] {
            assert_eq!(truth(raw, &variables, &["KEY".to_owned()]), expected, "{raw}");
        }
    }
}
