//! The schema of additional fields, for editors.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::plan::model::engine::Engine;
use crate::plan::model::extra::dialect;
use crate::plan::model::extra::dialect::Takes;
use crate::plan::model::extra::json::Json;
use crate::units::Decimal;

/// Additional fields by name: any fields except those that sweepline sends itself.
pub struct Fields;

impl JsonSchema for Fields {
    fn schema_name() -> Cow<'static, str> {
        "ExtraFields".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let any = generator.subschema_for::<Json>();
        let fields = dialect::known().map(|(name, takes)| {
            let engines = Engine::ALL.into_iter().filter(|engine| dialect::names(*engine, name));
            let engines: Vec<&str> = engines.map(Engine::name).collect();
            let mut field = takes.schema(&any);
            field["description"] = format!("Known to {}: {}.", engines.join(", "), takes.wanted()).into();
            (name.to_owned(), field)
        });
        let refused: Vec<&str> = dialect::all_refused().collect();
        json_schema!({
            "type": "object",
            "properties": Map::from_iter(fields),
            "propertyNames": { "not": { "enum": refused } },
            "additionalProperties": any,
        })
    }
}

/// The fields of a scenario: fields for all engines, and fields for one engine under its name.
pub(crate) fn of_scenario(generator: &mut SchemaGenerator) -> Schema {
    let fields = generator.subschema_for::<Fields>().to_value();
    let own = Engine::ALL.map(|engine| {
        let mut own = fields.clone();
        own["description"] = format!("Sent only to {}.", engine.name()).into();
        if dialect::fields_of(engine).next().is_some() {
            own["propertyNames"] = json!({ "enum": dialect::fields_of(engine).collect::<Vec<_>>() });
        }
        (engine.name().to_owned(), own)
    });
    json_schema!({
        "type": "object",
        "properties": Map::from_iter(own),
        "allOf": [fields],
        "examples": [{ "top_k": 20 }, { "vllm": { "min_p": 0.05 } }],
    })
}

impl Takes {
    fn schema(self, any: &Schema) -> Value {
        let bounded = |kind: &str, least: Option<Value>, most: Option<Value>, example: Value| {
            let mut schema = json!({ "type": kind, "examples": [example] });
            for (bound, value) in [("minimum", least), ("maximum", most)] {
                if let Some(value) = value {
                    schema[bound] = value;
                }
            }
            schema
        };
        match self {
            Takes::Whole(least, most) => bounded(
                "integer",
                (least != i64::MIN).then(|| json!(least)),
                (most != i64::MAX).then(|| json!(most)),
                json!(1),
            ),
            Takes::Number(least, most) => bounded(
                "number",
                (least != -i64::MAX).then(|| json!(Decimal::new(least, 2))),
                (most != i64::MAX).then(|| json!(Decimal::new(most, 2))),
                json!(0.5),
            ),
            Takes::Flag => json!({ "type": "boolean" }),
            Takes::Text => json!({ "type": "string", "examples": ["text"] }),
            Takes::List => json!({ "type": "array", "items": any, "examples": [[]] }),
            Takes::Table => json!({ "type": "object", "additionalProperties": any }),
            Takes::Any => {
                let mut any = any.clone().to_value();
                any["examples"] = json!([true]);
                any
            }
        }
    }
}
