//! `{{ … }}` in values: minijinja expressions over the plan's `vars`.
//!
//! A value that is a single expression keeps its type; in a longer text, each expression is replaced by its
//! result. There are only expressions and no statements: no loops, no definitions, and no access to the
//! clock, the environment or random numbers. Keys and secrets never contain expressions.
//!
//! The launch settings, hooks, hardware and facts of an endpoint may also use names that each cell defines
//! (`cell`): such expressions stay as written until the cell is known. This module depends on `text` and
//! `diagnostic`. `files` uses it to expand trees, and `check` and `expand` use it to evaluate cells.

pub(crate) mod cell;
mod convert;
pub(crate) mod eval;
mod segments;
mod vars;

use crate::plan::diagnostic::error::{Code, Diagnostic, MOST_MISTAKES};
use crate::plan::template::eval::Evaluator;
use crate::plan::template::segments::{Mistake, is_template};
use crate::plan::text::span::{Span, clamp};
use crate::plan::text::tree::{Node, Value};
use crate::units::secrecy::is_secret_name;

/// Replaces every template in the tree with its value; a value that cannot be computed is replaced by a
/// placeholder. `text` is the text in which the tree has its places.
pub(crate) fn expand(tree: &mut Node, text: &str) -> Vec<Diagnostic> {
    let mut templates = Templates { text, evaluator: Evaluator::new(), found: Vec::new() };
    let Value::Map(entries) = &mut tree.value else { return Vec::new() };
    if let Some(vars) = entries.iter_mut().find(|entry| entry.key == "vars") {
        templates.vars(&mut vars.node);
    }
    entries.retain_mut(|entry| match entry.key.as_str() {
        "use" | "vars" => true,
        "endpoints" => templates.endpoints(&mut entry.node),
        key => templates.value(&mut entry.node, is_secret_name(key)),
    });
    templates.found
}

/// The fields of an endpoint whose expressions may use names that each cell defines.
const OF_CELLS: [&str; 4] = ["launch", "hooks", "hardware", "server"];

/// The templates of one plan.
struct Templates<'t> {
    text: &'t str,
    evaluator: Evaluator,
    found: Vec<Diagnostic>,
}

impl Templates<'_> {
    /// Expands the table of endpoints.
    fn endpoints(&mut self, node: &mut Node) -> bool {
        let Value::Map(endpoints) = &mut node.value else { return self.value(node, false) };
        for endpoint in endpoints {
            let Value::Map(fields) = &mut endpoint.node.value else {
                self.value(&mut endpoint.node, false);
                continue;
            };
            fields.retain_mut(|field| {
                self.evaluator.in_cells = OF_CELLS.contains(&field.key.as_str());
                let stays = self.value(&mut field.node, is_secret_name(&field.key));
                self.evaluator.in_cells = false;
                stays
            });
        }
        true
    }

    /// Expands a value and everything below it. Returns false if a template has no value, in which case
    /// the entry is removed.
    fn value(&mut self, node: &mut Node, secret: bool) -> bool {
        match &mut node.value {
            Value::List(items) => items.retain_mut(|item| self.value(item, secret)),
            Value::Map(entries) => {
                entries.retain_mut(|entry| self.value(&mut entry.node, secret || is_secret_name(&entry.key)))
            }
            Value::Text(text) if is_template(text) => {
                let text = std::mem::take(text);
                self.template(node, &text, secret);
                return !matches!(node.value, Value::Null);
            }
            _ => {}
        }
        true
    }

    fn template(&mut self, node: &mut Node, template: &str, secret: bool) {
        if secret {
            let message = "a secret cannot be the result of a template";
            let remedy = "write the reference itself: { secret: env:NAME }";
            self.found.push(Diagnostic::new(Code::Secret, message).at(Some(node.span.clone())).remedy(remedy));
            return node.fail();
        }
        if self.found.len() >= MOST_MISTAKES {
            return node.fail();
        }
        let made = match self.evaluator.in_cells && self.evaluator.names_a_cell(template) {
            true => self.evaluator.keeping_cells(template, &node.span),
            false => self.evaluator.template(template, &node.span),
        };
        match made {
            Ok(Some(made)) => {
                node.value = made.value;
                node.via = made.via;
            }
            // A dependency failed, which has already been reported.
            Ok(None) => node.fail(),
            Err(mistakes) => {
                let all = mistakes.into_iter().map(|mistake| self.diagnostic(mistake, template, &node.span));
                let all: Vec<Diagnostic> = all.collect();
                self.found.extend(all);
                node.fail();
            }
        }
    }

    /// Converts an error in a template to a diagnostic at its place in the file.
    fn diagnostic(&self, mistake: Mistake, template: &str, span: &Span) -> Diagnostic {
        let Mistake { code, message, remedy, at } = mistake;
        // If the template is written literally in the file, the place of each of its characters is known.
        let written = clamp(span.clone(), self.text);
        let place = match self.text[written.clone()].find(template) {
            Some(offset) => written.start + offset + at.start..written.start + offset + at.end,
            None => span.clone(),
        };
        Diagnostic::new(code, message).at(Some(place)).remedy(remedy)
    }
}
