//! The path of a file with certificates or a private key.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::plan::text::secret::SecretRef;
use crate::units::Forms;

/// The path of a PEM file, relative to the plan's folder. A plan may also write it as other references to files
/// and secrets are written: `file:PATH`, or `{ secret: file:PATH }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PemFile(pub String);

impl<'de> Deserialize<'de> for PemFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("the path of a PEM file, or a reference like { secret: file:PATH }")
            .text(|text| Ok(PemFile(text.strip_prefix("file:").unwrap_or(text).to_owned())))
            .table(|reference| match reference {
                SecretRef::File(path) => Ok(PemFile(path)),
                SecretRef::Env(_) | SecretRef::Command(_) => {
                    Err("certificates and keys are read from files: write { secret: file:PATH }".to_owned())
                }
            })
            .read(deserializer)
    }
}

impl JsonSchema for PemFile {
    fn schema_name() -> Cow<'static, str> {
        "PemFile".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The path of a PEM file: PATH, file:PATH or { secret: file:PATH }.",
            "anyOf": [
                { "type": "string", "minLength": 1 },
                {
                    "type": "object",
                    "properties": {
                        "secret": {
                            "description": "file:PATH for the file.",
                            "type": "string",
                            "pattern": "^file:.+$",
                            "examples": ["file:certs/client.key"],
                        },
                    },
                    "required": ["secret"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}
