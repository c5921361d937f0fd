//! The JSON Schema of field types that several tables share.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::units::Nanos;

/// The pattern of a name, which is one line of visible text.
pub(crate) const NAME: &str = r"^(?=.*\S)[^\x00-\x1f\x7f-\x9f]+$";

/// The schema of a table with at least one entry of type `T`, under readable names.
pub(crate) fn named<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let entry = generator.subschema_for::<T>();
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "propertyNames": { "pattern": NAME },
        "additionalProperties": entry,
    })
}

/// The schema of the base address of an API: http or https, without the path of a call, a fragment or spaces.
pub(crate) fn url(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": r"^https?://(?![^?]*/completions/*(\?|$))[^/?#\s][^#\s]*$",
        "patternErrorMessage": "write the base address of the API, like http://127.0.0.1:8000/v1",
        "examples": ["http://127.0.0.1:8000/v1"],
    })
}

/// The schema of a duration above zero.
pub(crate) fn above_zero(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<AboveZero>()
}

/// The type of a duration above zero, used only in schemas.
pub(crate) struct AboveZero;

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
