//! `{{ … }}` in values: expressions of minijinja over the plan's `vars`.
//!
//! A value that is one expression keeps its type; in a longer text each expression is replaced by what it gives. There are
//! expressions only, no statements: nothing loops, nothing is defined, no clock, environment or chance can be asked. Keys
//! and secrets are never made this way.

mod convert;
mod eval;
mod segments;
mod vars;

use crate::plan::diagnostic::error::{Code, Diagnostic, MOST_MISTAKES};
use crate::plan::syntax::template::eval::Evaluator;
use crate::plan::syntax::template::segments::{Mistake, is_template};
use crate::plan::text::span::{Span, clamp};
use crate::plan::text::tree::{Node, Value};
use crate::units::secrecy::is_secret_name;

/// Replaces every template in the tree by its value; `text` is what its places are in. A value that cannot be made is
/// left as a filler.
pub(crate) fn expand(tree: &mut Node, text: &str) -> Vec<Diagnostic> {
    let mut templates = Templates { text, evaluator: Evaluator::new(), found: Vec::new() };
    let Value::Map(entries) = &mut tree.value else { return Vec::new() };
    if let Some(vars) = entries.iter_mut().find(|entry| entry.key == "vars") {
        templates.vars(&mut vars.node);
    }
    entries.retain_mut(|entry| match entry.key.as_str() {
        "use" | "vars" => true,
        key => templates.value(&mut entry.node, is_secret_name(key)),
    });
    templates.found
}

/// The templates of one plan.
struct Templates<'t> {
    text: &'t str,
    evaluator: Evaluator,
    found: Vec<Diagnostic>,
}

impl Templates<'_> {
    /// Expands a value and all below it; false where a template gives none, so that there is no such entry.
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
            let message = "a secret is never made by a template";
            let remedy = "write the reference itself: { secret: env:NAME }";
            self.found.push(Diagnostic::new(Code::Secret, message).at(Some(node.span.clone())).remedy(remedy));
            return node.fail();
        }
        if self.found.len() >= MOST_MISTAKES {
            return node.fail();
        }
        match self.evaluator.template(template, &node.span) {
            Ok(Some(made)) => {
                node.value = made.value;
                node.via = made.via;
            }
            // What it depends on failed, and that was told.
            Ok(None) => node.fail(),
            Err(mistakes) => {
                let all = mistakes.into_iter().map(|mistake| self.diagnostic(mistake, template, &node.span));
                let all: Vec<Diagnostic> = all.collect();
                self.found.extend(all);
                node.fail();
            }
        }
    }

    /// A mistake at its place in the file.
    fn diagnostic(&self, mistake: Mistake, template: &str, span: &Span) -> Diagnostic {
        let Mistake { code, message, remedy, at } = mistake;
        // Where the text is written as it is read, its characters have places of their own.
        let written = clamp(span.clone(), self.text);
        let place = match self.text[written.clone()].find(template) {
            Some(offset) => written.start + offset + at.start..written.start + offset + at.end,
            None => span.clone(),
        };
        Diagnostic::new(code, message).at(Some(place)).remedy(remedy)
    }
}
