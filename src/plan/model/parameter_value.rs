//! What a plan says of a sampling parameter: a number, or `omit`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, IntoDeserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::units::Decimal;

/// A number that is sent, or `omit`: the field is not sent, and the server's default holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParameterValue {
    /// This is sent.
    Number(Decimal),
    /// Nothing is sent.
    Omit,
}

impl ParameterValue {
    /// The word for nothing.
    pub(crate) const OMIT: &str = "omit";

    /// The number; none where nothing is sent.
    pub fn number(self) -> Option<Decimal> {
        match self {
            ParameterValue::Number(number) => Some(number),
            ParameterValue::Omit => None,
        }
    }
}

impl Serialize for ParameterValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ParameterValue::Number(number) => number.serialize(serializer),
            ParameterValue::Omit => serializer.serialize_str(ParameterValue::OMIT),
        }
    }
}

impl<'de> Deserialize<'de> for ParameterValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = ParameterValue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or omit")
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<ParameterValue, E> {
                Decimal::deserialize(value.into_deserializer()).map(ParameterValue::Number)
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<ParameterValue, E> {
                Decimal::deserialize(value.into_deserializer()).map(ParameterValue::Number)
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<ParameterValue, E> {
                Decimal::deserialize(value.into_deserializer()).map(ParameterValue::Number)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ParameterValue, E> {
                match text {
                    ParameterValue::OMIT => Ok(ParameterValue::Omit),
                    other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                }
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for ParameterValue {
    fn schema_name() -> Cow<'static, str> {
        "NumberOrOmit".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "number" }, { "const": ParameterValue::OMIT }] })
    }
}
