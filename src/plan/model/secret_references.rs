//! Collects the references to secrets in a plan.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::plan::model::plan::Plan;
use crate::plan::text::secret::SecretRef;

/// Returns every reference to a secret in a plan, wherever it is.
pub fn secret_references(plan: &Plan) -> BTreeSet<SecretRef> {
    let mut references = BTreeSet::new();
    collect(&serde_json::to_value(plan).unwrap_or_default(), &mut references);
    references
}

fn collect(value: &Value, references: &mut BTreeSet<SecretRef>) {
    match value {
        Value::Object(table) => {
            if let (1, Some(_)) = (table.len(), table.get("secret")) {
                references.extend(serde_json::from_value::<SecretRef>(value.clone()).ok());
            }
            table.values().for_each(|value| collect(value, references));
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, references)),
        _ => {}
    }
}
