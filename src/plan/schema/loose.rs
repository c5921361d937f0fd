//! Relaxes a schema for values that it cannot check: results of expressions, and values that a
//! fragment adds.

use serde_json::{Map, Value, json};

/// The beginning of an expression in a value that is otherwise not a text.
const EXPRESSION: &str = r"\{\{";

/// Fields that an expression never computes: the version of the format, file names, the variables themselves,
/// and secrets.
const WRITTEN_OUT: [&str; 4] = ["sweepline", "use", "vars", "api_key"];

/// Allows an expression for every value, except for the plan as a whole.
pub(crate) fn expressions(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    for (key, value) in fields.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(named)) => {
                let values = named.iter_mut().filter(|(name, _)| !WRITTEN_OUT.contains(&name.as_str()));
                values
                    .filter(|(name, _)| !["Secret", "SecretReference", "TokenCommand"].contains(&name.as_str()))
                    .for_each(|(_, one)| value_or_expression(one));
            }
            ("additionalProperties" | "items", one @ Value::Object(_)) => value_or_expression(one),
            ("anyOf" | "oneOf" | "allOf", Value::Array(branches)) => branches.iter_mut().for_each(expressions),
            _ => {}
        }
    }
}

fn value_or_expression(schema: &mut Value) {
    expressions(schema);
    let Value::Object(fields) = schema else { return };
    if fields.contains_key("const") {
        return;
    }
    if let Some(choices) = fields.shift_remove("enum") {
        let mut listed = Map::from_iter([("enum".to_owned(), choices)]);
        for key in ["type", "enumDescriptions"] {
            listed.extend(fields.shift_remove(key).map(|value| (key.to_owned(), value)));
        }
        let expression =
            json!({ "type": "string", "pattern": EXPRESSION, "description": "An expression over `vars`." });
        fields.insert("anyOf".to_owned(), json!([listed, expression]));
        return;
    }
    let mut types = match fields.get("type") {
        Some(Value::Array(types)) => types.clone(),
        Some(one) => vec![one.clone()],
        None => match fields.get_mut("anyOf") {
            Some(Value::Array(branches)) => {
                return branches.push(json!({ "type": "string", "pattern": EXPRESSION }));
            }
            _ => return,
        },
    };
    if !types.contains(&json!("string")) {
        fields.insert("patternErrorMessage".to_owned(), format!("write {}", wanted(&types)).into());
        types.push(json!("string"));
        fields.insert("type".to_owned(), types.into());
        fields.insert("pattern".to_owned(), EXPRESSION.into());
    } else if let Some(pattern) = fields.get("pattern").and_then(Value::as_str) {
        let either = format!("{EXPRESSION}|{pattern}");
        fields.insert("pattern".to_owned(), either.into());
    }
}

/// A description of the values of these types, for users.
fn wanted(types: &[Value]) -> String {
    let words = types.iter().filter_map(Value::as_str).map(|one| match one {
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "object" => "a table",
        _ => "a list",
    });
    words.collect::<Vec<_>>().join(" or ")
}

/// Allows a plan with fragments to omit required fields, even in the entries of its tables.
pub(crate) fn fragments(schema: &mut Value) {
    let Value::Object(plan) = schema else { return };
    let needed = plan.shift_remove("required").unwrap_or_else(|| json!([]));
    let mut tables = Map::new();
    for (table, entry) in [("endpoints", "Endpoint"), ("models", "Model"), ("sweeps", "Sweep")] {
        let Some(Value::Object(entry)) = plan.get_mut("$defs").and_then(|defs| defs.get_mut(entry)) else { continue };
        let needs =
            ["required", "anyOf"].into_iter().filter_map(|key| Some((key.to_owned(), entry.shift_remove(key)?)));
        tables.insert(table.to_owned(), json!({ "additionalProperties": Map::from_iter(needs) }));
    }
    plan.insert("required".to_owned(), json!(["sweepline", "name"]));
    plan.insert("if".to_owned(), json!({ "not": { "required": ["use"] } }));
    plan.insert("then".to_owned(), json!({ "required": needed, "properties": tables }));
}
