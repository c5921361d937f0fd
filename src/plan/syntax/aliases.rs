//! The alias of a field of scenarios: `max_tokens` stands for `output_tokens`, as in a matrix. It is
//! resolved before texts are merged, so that later code need not handle it.

use crate::plan::diagnostic::error::Diagnostic;
use crate::plan::text::tree::{Node, Step, Value};

/// The name of the field in requests, and its name in plans.
const OTHER: (&str, &str) = ("max_tokens", "output_tokens");

/// Renames the fields of scenarios to their canonical names, and reports fields that are written
/// under both names.
pub(crate) fn settle(tree: &mut Node) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let path = [Step::from("scenarios")];
    let Some(Value::Map(scenarios)) = tree.at_mut(&path).map(|node| &mut node.value) else { return found };
    for scenario in scenarios {
        let Some(mut other) = scenario.node.take(OTHER.0) else { continue };
        if let Some(own) = scenario.node.entry(OTHER.1) {
            let first = Some((own.key_span.clone(), format!("`{}` is the same", OTHER.1)));
            found.push(Diagnostic::duplicate_key(OTHER.0, other.key_span, first));
        } else if let Value::Map(fields) = &mut scenario.node.value {
            OTHER.1.clone_into(&mut other.key);
            fields.push(other);
        }
    }
    found
}

/// The canonical name of a step of a path into a plan.
pub(crate) fn step(parents: &[Step], step: Step) -> Step {
    match parents {
        [Step::Key(table), Step::Key(_)] if table == "scenarios" && step == Step::from(OTHER.0) => Step::from(OTHER.1),
        _ => step,
    }
}
