//! The JSON Schema of a plan, for editors. It is made from the types, so it cannot know less than they do.

use serde_json::{Map, Value, json};

use super::model::Plan;

/// The dialect that the schema is written in.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The JSON Schema (draft 2020-12) of a plan.
pub fn schema() -> Value {
    let generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    let mut types = generator.into_root_schema_for::<Plan>().to_value();
    without_null(&mut types);
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), DIALECT.into());
    schema.insert("title".to_owned(), "sweepline plan".into());
    if let Value::Object(fields) = types {
        for (key, value) in fields {
            schema.entry(key).or_insert(value);
        }
    }
    Value::Object(schema)
}

/// The text of `schemas/plan.schema.json`.
pub fn schema_text() -> String {
    let mut text = serde_json::to_string_pretty(&schema()).unwrap_or_default();
    text.push('\n');
    text
}

/// An optional field may be left out, but a key without a value is a mistake: null is taken out of the types.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Object(fields) => {
            fields.values_mut().for_each(without_null);
            if fields.get("default") == Some(&Value::Null) {
                fields.shift_remove("default");
            }
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|one| *one != json!("null"));
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    fields.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
                choices.retain(|one| *one != json!({ "type": "null" }));
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    fields.shift_remove("anyOf");
                    fields.extend(only);
                }
            }
        }
        _ => {}
    }
}
