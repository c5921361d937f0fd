//! The JSON Schema of a plan, for editors. It is made from the types, so it cannot know less than they do; what a type
//! does not say (a table must have an entry, a server is a `url` or the mock) is added here, where a schema can say it.

mod loose;
mod shape;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::axis;
use super::model::{Engine, Percentile, Plan, Scenario};
use super::scenario::BUILT_IN;
use crate::units::Nanos;

/// The dialect that the schema is written in.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A name: something to read, in one line.
const NAME: &str = r"^(?=.*\S)[^\x00-\x1f\x7f-\x9f]+$";

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

/// A table with at least one entry of this type, under names that people can read.
pub(super) fn named<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let entry = generator.subschema_for::<T>();
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "propertyNames": { "pattern": NAME },
        "additionalProperties": entry,
    })
}

/// The plan's own scenarios: none may have the name of a built-in one.
pub(super) fn own_scenarios(generator: &mut SchemaGenerator) -> Schema {
    let taken: Vec<&str> = BUILT_IN.iter().map(|(name, ..)| *name).collect();
    let entry = generator.subschema_for::<Scenario>();
    json_schema!({
        "type": "object",
        "propertyNames": { "pattern": NAME, "not": { "enum": taken } },
        "additionalProperties": entry,
        "default": {},
    })
}

/// Ids of a model, each under the name of an engine.
pub(super) fn by_engine(_: &mut SchemaGenerator) -> Schema {
    let engines = Engine::ALL.iter().map(|engine| (engine.name(), format!("The id that {} knows.", engine.name())));
    let others = std::iter::once(("default", "The id that every other engine knows.".to_owned()));
    let ids = engines.chain(others).map(|(name, meaning)| {
        let id = json!({ "type": "string", "description": meaning, "examples": ["llama-3.1-70b"] });
        (name.to_owned(), id)
    });
    json_schema!({ "type": "object", "additionalProperties": false, "properties": Map::from_iter(ids) })
}

/// The base address of an API: http or https, and no call behind it.
pub(super) fn url(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": r"^https?://[^/\s](?!.*/completions/*$)",
        "patternErrorMessage": "write the base address of the API, like http://127.0.0.1:8000/v1",
        "examples": ["http://127.0.0.1:8000/v1"],
    })
}

/// A duration longer than none.
pub(super) fn above_zero(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<AboveZero>()
}

/// The type of such a duration, for schemas alone.
pub(super) struct AboveZero;

impl JsonSchema for AboveZero {
    fn schema_name() -> Cow<'static, str> {
        "DurationAboveZero".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Nanos::json_schema(generator);
        let pattern =
            schema.get("pattern").and_then(Value::as_str).unwrap_or_default().replacen('^', "^(?=.*[1-9])", 1);
        schema.insert("pattern".to_owned(), pattern.into());
        let message = "write a duration above 0s with its unit, like 120s, 1m30s or 250ms";
        schema.insert("patternErrorMessage".to_owned(), message.into());
        schema
    }
}

/// Limits of one latency, by percentile.
pub(super) fn by_percentile(generator: &mut SchemaGenerator) -> Schema {
    let limit = above_zero(generator).to_value();
    let limits = Percentile::ALL.map(|percentile| {
        let mut limit = limit.clone();
        limit["description"] = percentile.meaning().into();
        limit["examples"] = json!(["500ms"]);
        (percentile.name().to_owned(), limit)
    });
    json_schema!({
        "type": "object",
        "additionalProperties": false,
        "properties": Map::from_iter(limits),
        "examples": [{ "p99": "500ms" }],
    })
}

/// An endpoint is a `url` or the embedded mock, and `mock` describes only the latter.
pub(super) fn one_server(schema: &mut Schema) {
    let mock = json!({ "pattern": r"^mock$|\{\{" });
    let embedded = json!({ "required": ["engine"], "properties": { "engine": mock } });
    schema.insert("anyOf".to_owned(), json!([{ "required": ["url"] }, embedded]));
    schema.insert("if".to_owned(), json!({ "required": ["mock"] }));
    schema.insert("then".to_owned(), json!({ "allOf": [embedded, { "not": { "required": ["url"] } }] }));
}

/// A field of a scenario has the range of the axis that is called so.
pub(super) fn ranges_of_axes(schema: &mut Schema) {
    let Some(Value::Object(fields)) = schema.get_mut("properties") else { return };
    for (name, field) in fields.iter_mut() {
        let range = axis::kind(name).map(axis::Kind::schema);
        if let (Some(Value::Object(range)), Value::Object(field)) = (range, field) {
            field.extend(range.into_iter().filter(|(key, _)| key.to_lowercase().ends_with("imum")));
        }
    }
    if let Some(mut other) = fields.get("output_tokens").cloned() {
        other["description"] = "Another name of `output_tokens`.".into();
        fields.insert("max_tokens".to_owned(), other);
    }
}

/// What an editor offers as values of an axis; the others are choices already.
fn example_of_axis(name: &str) -> Option<Value> {
    Some(match name {
        "endpoint" => json!(["vllm", "sglang"]),
        "model" => json!(["llama-70b"]),
        "scenario" => json!(["A1", "B1", "C", "D"]),
        "batch_size" | "concurrency" => json!([1, 8, 64]),
        "qps" | "request_rate" => json!([1, 5, 10]),
        "prompt_tokens" => json!([256, 2048]),
        "output_tokens" | "max_tokens" => json!([128, 1024]),
        "system_tokens" => json!([0, 2000]),
        "turns" => json!([1, 5]),
        "think" => json!(["0s", "5s"]),
        "context_limit" => json!([4096, 8192]),
        "stream" | "ignore_eos" => json!([true, false]),
        "temperature" => json!([0, 0.7]),
        "top_p" => json!([0.95, 1]),
        "presence_penalty" | "frequency_penalty" => json!([0, 0.5]),
        _ => return None,
    })
}

/// Gives every table of axes, wherever it stands, an example for each.
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
