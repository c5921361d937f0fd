//! The JSON Schema of a plan, for editors. It is generated from the types, so it describes all of them. Rules
//! that a type does not express (such as that a table needs an entry) are added here if a schema can express
//! them.

mod loose;
mod shape;

use serde_json::{Map, Value, json};

use crate::plan::model::length_field::LengthField;
use crate::plan::model::plan::Plan;
use crate::plan::model::sampling;
use crate::units::Decimal;

/// The dialect of the schema.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The JSON Schema (draft 2020-12) of a plan.
pub fn schema() -> Value {
    let generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    let mut types = generator.into_root_schema_for::<Plan>().to_value();
    shape::shape(&mut types);
    examples_of_axes(&mut types);
    loose::expressions(&mut types);
    loose::fragments(&mut types);
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

/// Example values of an axis for editors; `None` for the remaining axes, which already have choices.
fn example_of_axis(name: &str) -> Option<Value> {
    Some(match name {
        "endpoint" => json!(["vllm", "sglang"]),
        "model" => json!(["llama-70b"]),
        "scenario" => json!(["A1", "B1", "C", "D"]),
        "batch_size" | "concurrency" => json!([1, 8, 64]),
        "qps" | "request_rate" => json!([1, 5, 10]),
        "prompt_tokens" => json!([256, 2048]),
        asked if asked == "max_tokens" || LengthField::KEYS.contains(&asked) => json!([128, 1024]),
        "system_tokens" => json!([0, 2000]),
        "turns" => json!([1, 5]),
        "think" => json!(["0s", "5s"]),
        "context_limit" => json!([4096, 8192]),
        "stream" | "ignore_eos" => json!([true, false]),
        "inputs" | "documents" => json!([1, 16, 128]),
        "query_tokens" => json!([32, 256]),
        other => {
            let hundredths = sampling::named(other)?.examples;
            json!(hundredths.map(|value| Decimal::new(value, 2)))
        }
    })
}

/// Adds an example for each axis to every table of axes.
fn examples_of_axes(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(examples_of_axes),
        Value::Object(fields) => {
            fields.values_mut().for_each(examples_of_axes);
            let Some(Value::Object(axes)) = fields.get_mut("properties") else { return };
            if !axes.contains_key("batch_size") {
                return;
            }
            for (name, axis) in axes {
                if let (Value::Object(axis), Some(example)) = (axis, example_of_axis(name)) {
                    axis.entry("examples").or_insert(json!([example]));
                }
            }
        }
        _ => {}
    }
}
