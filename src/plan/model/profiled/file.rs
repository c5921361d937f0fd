//! `profile:` of a scenario: where the file lies, and what was found in it.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::plan::model::profiled::Profiled;
use crate::units::Decimal;

/// An anonymous profile: its path, or `{ file: …, speed: … }`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileFile {
    /// The file, relative to the plan's.
    pub file: String,
    /// How many times as fast as it was recorded.
    pub speed: Decimal,
    /// What was found in the file when the plan was loaded.
    pub(crate) found: Option<Arc<Profiled>>,
    /// Where it was found, without links.
    pub(crate) lies_at: Option<PathBuf>,
}

/// An anonymous profile of traffic, as `sweepline dataset profile` writes it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ProfileFile")]
struct Long {
    /// The file, relative to the plan's.
    #[schemars(example = "data/profile.json")]
    file: String,
    /// How many times as fast as it was recorded: times are divided by it, and the recorded rate grows with it. Default 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(extend("default" = 1), range(min = 0.000001), example = 24)]
    speed: Decimal,
}

fn one() -> Decimal {
    Decimal::from(1)
}

fn is_one(speed: &Decimal) -> bool {
    *speed == one()
}

impl ProfileFile {
    fn new(file: String, speed: Decimal) -> ProfileFile {
        ProfileFile { file, speed, found: None, lies_at: None }
    }

    /// What the file says; none where it could not be read, which is a mistake of the plan.
    pub fn found(&self) -> Option<&Profiled> {
        self.found.as_deref()
    }
}

impl<'de> Deserialize<'de> for ProfileFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = ProfileFile;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the path of a profile, or { file: …, speed: … }")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ProfileFile, E> {
                Ok(ProfileFile::new(text.to_owned(), one()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ProfileFile, A::Error> {
                let Long { file, speed } = Long::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ProfileFile::new(file, speed))
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl Serialize for ProfileFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match is_one(&self.speed) {
            true => serializer.serialize_str(&self.file),
            false => Long { file: self.file.clone(), speed: self.speed }.serialize(serializer),
        }
    }
}

impl JsonSchema for ProfileFile {
    fn schema_name() -> Cow<'static, str> {
        "PathOrProfile".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string", "minLength": 1 }, generator.subschema_for::<Long>()] })
    }
}
