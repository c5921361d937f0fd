//! The plan's variables: their names, and the order of their evaluation.

use std::collections::VecDeque;

use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::template::Templates;
use crate::plan::template::segments::is_template;
use crate::plan::text::span::Span;
use crate::plan::text::tree::{Entry, Node, Value};
use crate::units::secrecy::is_secret_name;

/// Keywords of expressions, which cannot be variables.
const WORDS: [&str; 12] = ["and", "else", "false", "False", "if", "in", "is", "none", "None", "not", "or", "true"];

impl Templates<'_> {
    /// Evaluates every variable, regardless of the written order.
    pub(super) fn vars(&mut self, node: &mut Node) {
        let Value::Map(entries) = &mut node.value else { return };
        for entry in entries.iter() {
            self.name(entry);
            self.evaluator.declare(&entry.key, place(entry));
        }
        let uses = self.dependencies(entries);
        let mut waits: Vec<usize> = uses.iter().map(Vec::len).collect();
        let mut ready: VecDeque<usize> = (0..entries.len()).filter(|at| waits[*at] == 0).collect();
        let mut used_by: Vec<Vec<usize>> = vec![Vec::new(); entries.len()];
        for (at, uses) in uses.iter().enumerate() {
            uses.iter().for_each(|used| used_by[*used].push(at));
        }
        while let Some(at) = ready.pop_front() {
            let Entry { key, node, .. } = &mut entries[at];
            if !self.value(node, false) {
                self.found.push(nothing(node));
                node.fail();
            }
            if !node.is_damaged() && !matches!(node.value, Value::Null) {
                self.evaluator.define(key, node);
            }
            for later in &used_by[at] {
                waits[*later] -= 1;
                if waits[*later] == 0 {
                    ready.push_back(*later);
                }
            }
        }
        self.circles(entries, &uses, &waits);
    }

    /// Reports a name that expressions cannot use, or that looks like a secret.
    fn name(&mut self, entry: &Entry) {
        let mut letters = entry.key.chars();
        let first = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        let is_word = first && letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
        let diagnostic = if !is_word || WORDS.contains(&entry.key.as_str()) {
            Diagnostic::new(Code::WrongValue, format!("`{}` cannot be the name of a variable", entry.key))
                .remedy("write letters, digits and `_`, like measure_time")
        } else if is_secret_name(&entry.key) {
            Diagnostic::new(Code::Secret, format!("the name of the variable `{}` suggests a secret", entry.key))
                .remedy("variables cannot hold secrets: write { secret: env:NAME } where it is used")
        } else {
            return;
        };
        self.found.push(diagnostic.at(Some(entry.key_span.clone())));
    }

    /// For each variable, the other variables that it uses.
    fn dependencies(&self, entries: &[Entry]) -> Vec<Vec<usize>> {
        let places: std::collections::HashMap<&str, usize> =
            entries.iter().enumerate().map(|(at, entry)| (entry.key.as_str(), at)).collect();
        let of = |entry: &Entry| {
            let mut names = Vec::new();
            self.names(&entry.node, &mut names);
            let mut used: Vec<usize> = names.iter().filter_map(|name| places.get(name.as_str()).copied()).collect();
            used.sort_unstable();
            used.dedup();
            used
        };
        entries.iter().map(of).collect()
    }

    fn names(&self, node: &Node, into: &mut Vec<String>) {
        match &node.value {
            Value::Text(text) if is_template(text) => into.extend(self.evaluator.uses(text)),
            Value::List(items) => items.iter().for_each(|item| self.names(item, into)),
            Value::Map(entries) => entries.iter().for_each(|entry| self.names(&entry.node, into)),
            _ => {}
        }
    }

    /// Reports variables that depend on themselves. Other variables that use them are marked as invalid without
    /// a separate error.
    fn circles(&mut self, entries: &mut [Entry], uses: &[Vec<usize>], waits: &[usize]) {
        let mut told = vec![false; entries.len()];
        let mut step_of = vec![usize::MAX; entries.len()];
        for start in (0..entries.len()).filter(|at| waits[*at] > 0) {
            let mut way = Vec::new();
            let mut at = start;
            // Each of these variables depends on another one of them, so the path returns to an earlier
            // variable, or to a variable that has already been reported.
            while !told[at] && step_of[at] == usize::MAX {
                step_of[at] = way.len();
                way.push(at);
                match uses[at].iter().copied().find(|used| waits[*used] > 0) {
                    Some(next) => at = next,
                    None => break,
                }
            }
            let again = (!told[at] && way.len() > step_of[at]).then(|| step_of[at]);
            if let Some(first) = again {
                let circle = &way[first..];
                let names = circle.iter().chain(circle.first()).map(|at| entries[*at].key.as_str());
                let message = format!("circular variables: {}", names.collect::<Vec<_>>().join(" → "));
                let at = Some(entries[circle[0]].node.span.clone());
                let remedy = "set one of them to a fixed value";
                self.found.push(Diagnostic::new(Code::Circle, message).at(at).remedy(remedy));
            }
            way.iter().for_each(|at| told[*at] = true);
        }
        entries.iter_mut().zip(waits).filter(|(_, waits)| **waits > 0).for_each(|(entry, _)| entry.node.fail());
    }
}

/// The error for a variable whose template yields `none`. A value that uses a variable may be `none`, which
/// omits the value, but the variable itself may not.
fn nothing(node: &Node) -> Diagnostic {
    let remedy = "set the value that uses it to none: \"{{ a if b else none }}\"";
    Diagnostic::new(Code::Template, "a variable cannot be none").at(Some(node.span.clone())).remedy(remedy)
}

/// The place where the value of a variable is set.
fn place(entry: &Entry) -> Span {
    match entry.node.value {
        Value::List(_) | Value::Map(_) | Value::Null => entry.key_span.clone(),
        _ => entry.node.span.clone(),
    }
}
