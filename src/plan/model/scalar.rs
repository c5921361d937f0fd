//! Values of several types: an axis accepts numbers and names, and a model accepts one or several ids.
//! Their visitors are written by hand, because serde's derive for untagged enums loses the location of
//! an error and the expected types.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, json};

use crate::plan::model::engine::Engine;
use crate::plan::model::table::Table;
use crate::units::{Decimal, Forms};

/// One value of a matrix axis or of a server fact.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    /// true or false.
    Bool(bool),
    /// An exact number.
    Number(Decimal),
    /// A text.
    Text(String),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(value) => f.pad(if *value { "true" } else { "false" }),
            Scalar::Number(value) => fmt::Display::fmt(value, f),
            Scalar::Text(value) => f.pad(value),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("a number, a string, true or false")
            .truth(Scalar::Bool)
            .number(Scalar::Number)
            .text(|text| Ok(Scalar::Text(text.to_owned())))
            .read(deserializer)
    }
}

/// One declared fact about a server: a scalar, or a table of scalars such as `flags`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Fact {
    /// One value.
    One(Scalar),
    /// A table of values.
    Many(Table<Scalar>),
}

impl<'de> Deserialize<'de> for Fact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("a number, a string, true or false, or a table of those")
            .truth(|value| Fact::One(Scalar::Bool(value)))
            .number(|value| Fact::One(Scalar::Number(value)))
            .text(|text| Ok(Fact::One(Scalar::Text(text.to_owned()))))
            .table(|table| Ok(Fact::Many(table)))
            .read(deserializer)
    }
}

/// A model id, the same for all engines or one per engine.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ModelId {
    /// The same id for every engine.
    Same(#[schemars(length(min = 1))] String),
    /// Ids by engine name; `default` applies to all other engines.
    ByEngine(#[schemars(schema_with = "crate::plan::model::scalar::by_engine")] Table<String>),
}

impl ModelId {
    /// The model's id on servers of this engine; `None` if the model has no id for it.
    pub fn for_engine(&self, engine: Engine) -> Option<&str> {
        match self {
            ModelId::Same(id) => Some(id),
            ModelId::ByEngine(ids) => ids.get(engine.name()).or_else(|| ids.get("default")).map(String::as_str),
        }
    }
}

impl<'de> Deserialize<'de> for ModelId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("a string, or a table of strings by engine with a `default`")
            .text(|text| Ok(ModelId::Same(text.to_owned())))
            .table(|ids| Ok(ModelId::ByEngine(ids)))
            .read(deserializer)
    }
}

/// The schema of a table with a model's ids, each under the name of an engine.
pub(super) fn by_engine(_: &mut SchemaGenerator) -> Schema {
    let engines = Engine::ALL.iter().map(|engine| (engine.name(), format!("The model id on {}.", engine.name())));
    let others = std::iter::once(("default", "The model id on all other engines.".to_owned()));
    let ids = engines.chain(others).map(|(name, meaning)| {
        let id = json!({ "type": "string", "description": meaning, "examples": ["llama-3.1-70b"] });
        (name.to_owned(), id)
    });
    json_schema!({ "type": "object", "additionalProperties": false, "properties": Map::from_iter(ids) })
}
