//! A JSON value in a plan, with exact numbers.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};

use crate::plan::model::table::Table;
use crate::units::Decimal;

/// A JSON value. Numbers are exact decimals and are sent in their shortest form. Tables keep their written
/// order, because a server may depend on it, for example in the properties of a JSON schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Json {
    /// true or false.
    Bool(bool),
    /// An exact number.
    Number(Decimal),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// A table.
    Table(Table<Json>),
}

impl Json {
    /// The kind of value, as text.
    pub fn kind(&self) -> &'static str {
        match self {
            Json::Bool(_) => "true or false",
            Json::Number(_) => "a number",
            Json::Text(_) => "a string",
            Json::List(_) => "a list",
            Json::Table(_) => "a table",
        }
    }
}

impl fmt::Display for Json {
    /// Formats the value as JSON, without spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a string, true or false, a list or a table")
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Json, E> {
        Decimal::deserialize(value.into_deserializer()).map(Json::Number)
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Json, E> {
        Decimal::deserialize(value.into_deserializer()).map(Json::Number)
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Json, E> {
        Decimal::deserialize(value.into_deserializer()).map(Json::Number)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Json, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Json::List)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Json, A::Error> {
        Table::deserialize(MapAccessDeserializer::new(map)).map(Json::Table)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

impl JsonSchema for Json {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Json".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let any = generator.subschema_for::<Json>();
        json_schema!({
            "type": ["boolean", "number", "string", "array", "object"],
            "items": any,
            "additionalProperties": any,
        })
    }
}
