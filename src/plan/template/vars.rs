//! The plan's variables: their names, and the order in which they are made of each other.

use std::collections::VecDeque;

use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::template::Templates;
use crate::plan::template::segments::is_template;
use crate::plan::text::span::Span;
use crate::plan::text::tree::{Entry, Node, Value};
use crate::units::secrecy::is_secret_name;

/// Words of expressions, which name no variable.
const WORDS: [&str; 12] = ["and", "else", "false", "False", "if", "in", "is", "none", "None", "not", "or", "true"];

impl Templates<'_> {
    /// Makes every variable, whatever order they are written in.
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

    /// Reports a name that no expression could use, or that of a secret.
    fn name(&mut self, entry: &Entry) {
        let mut letters = entry.key.chars();
        let first = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        let is_word = first && letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
        let diagnostic = if !is_word || WORDS.contains(&entry.key.as_str()) {
            Diagnostic::new(Code::WrongValue, format!("`{}` cannot be the name of a variable", entry.key))
                .remedy("write letters, digits and `_`, like measure_time")
        } else if is_secret_name(&entry.key) {
            Diagnostic::new(Code::Secret, format!("the variable `{}` is named like a secret", entry.key))
                .remedy("secrets do not go through variables: write { secret: env:NAME } where it is used")
        } else {
            return;
        };
        self.found.push(diagnostic.at(Some(entry.key_span.clone())));
    }

    /// For each variable, which others it is made of.
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

    /// Reports variables that wait for themselves; what depends on them fails in silence.
    fn circles(&mut self, entries: &mut [Entry], uses: &[Vec<usize>], waits: &[usize]) {
        let mut told = vec![false; entries.len()];
        let mut step_of = vec![usize::MAX; entries.len()];
        for start in (0..entries.len()).filter(|at| waits[*at] > 0) {
            let mut way = Vec::new();
            let mut at = start;
            // Each of these waits for another of them, so the way comes back to a place it has been at, or to a told one.
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
                let message = format!("variables are made of each other: {}", names.collect::<Vec<_>>().join(" → "));
                let at = Some(entries[circle[0]].node.span.clone());
                let remedy = "give one of them a value of its own";
                self.found.push(Diagnostic::new(Code::Circle, message).at(at).remedy(remedy));
            }
            way.iter().for_each(|at| told[*at] = true);
        }
        entries.iter_mut().zip(waits).filter(|(_, waits)| **waits > 0).for_each(|(entry, _)| entry.node.fail());
    }
}

/// A variable that a template makes none: only what uses it can be left out.
fn nothing(node: &Node) -> Diagnostic {
    let remedy = "let the value that uses it be none: \"{{ a if b else none }}\"";
    Diagnostic::new(Code::Template, "a variable cannot be none").at(Some(node.span.clone())).remedy(remedy)
}

/// Where a variable is given its value.
fn place(entry: &Entry) -> Span {
    match entry.node.value {
        Value::List(_) | Value::Map(_) | Value::Null => entry.key_span.clone(),
        _ => entry.node.span.clone(),
    }
}
