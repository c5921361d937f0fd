//! The value of a sampling parameter in a plan: a number, or `omit`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::units::{Decimal, Forms, Misfit};

/// A number to send, or `omit` if the field is not sent and the server's default applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ParameterValue {
    /// The field is not sent.
    Omit,
    /// The value to send.
    #[serde(untagged)]
    Number(Decimal),
}

impl ParameterValue {
    /// The word for a field that is not sent.
    pub(crate) const OMIT: &str = "omit";

    /// The number; `None` if the field is not sent.
    pub fn number(self) -> Option<Decimal> {
        match self {
            ParameterValue::Number(number) => Some(number),
            ParameterValue::Omit => None,
        }
    }
}

impl<'de> Deserialize<'de> for ParameterValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("a number, or omit")
            .number(ParameterValue::Number)
            .text(|text| match text {
                ParameterValue::OMIT => Ok(ParameterValue::Omit),
                _ => Err(Misfit::Unexpected),
            })
            .read(deserializer)
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
