//! `profile:` of a scenario: where the file lies, and what was found in it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::Profiled;
use crate::dataset::profile::Profile;
use crate::plan::error::{Code, Diagnostic};
use crate::plan::load::Loader;
use crate::plan::model::Plan;
use crate::plan::tree::{Node, Span, Step};
use crate::units::Decimal;

/// Bytes of the largest profile that is read; one of 500 stretches has some 50 kB.
const MOST_BYTES: usize = 16 << 20;

/// An anonymous profile: its path, or `{ file: …, speed: … }`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileFile {
    /// The file, relative to the plan's.
    pub file: String,
    /// How many times as fast as it was recorded.
    pub speed: Decimal,
    /// What was found in the file when the plan was loaded.
    found: Option<Arc<Profiled>>,
    /// Where it was found, without links.
    pub(in crate::plan) lies_at: Option<PathBuf>,
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

/// Reads the profiles that the plan's scenarios name; each is read once, however many scenarios name it.
pub(in crate::plan) fn find(plan: &mut Plan, tree: &Node, loader: &mut Loader<'_>) {
    let mut known: HashMap<PathBuf, Profile> = HashMap::new();
    for (name, scenario) in &mut plan.scenarios {
        let Some(file) = scenario.profile.as_mut().filter(|file| file.speed.is_positive()) else { continue };
        let place = tree.walk(&["scenarios", name, "profile", "file"].map(Step::from));
        if place.broken {
            continue;
        }
        match read(file, &place.span(), loader, &mut known) {
            Ok((found, path)) => (file.found, file.lies_at) = (Some(Arc::new(found)), Some(path)),
            Err(diagnostic) => loader.found.push((*diagnostic).at(Some(place.span())).with(place.related())),
        }
    }
}

fn read(
    file: &ProfileFile,
    span: &Span,
    loader: &Loader<'_>,
    known: &mut HashMap<PathBuf, Profile>,
) -> Result<(Profiled, PathBuf), Box<Diagnostic>> {
    let written = &file.file;
    let (path, canonical) = loader.locate(written, span)?;
    let no_profile = |what: String| {
        let remedy = "write one with `sweepline dataset profile LOG -o profile.json`";
        Box::new(Diagnostic::new(Code::File, format!("`{written}` is no profile: {what}")).remedy(remedy))
    };
    if !known.contains_key(&canonical) {
        let bytes = loader.files().read(&path, MOST_BYTES + 1).map_err(|error| {
            let message = format!("the profile `{written}` cannot be read: {error}");
            Box::new(Diagnostic::new(Code::File, message).remedy("check the path and its permissions"))
        })?;
        if bytes.len() > MOST_BYTES {
            return Err(no_profile(format!("it has more than {MOST_BYTES} bytes")));
        }
        let profile = serde_json::from_slice(&bytes).map_err(|error| no_profile(error.to_string()))?;
        known.insert(canonical.clone(), profile);
    }
    let profiled = Profiled::new(&known[&canonical], file.speed).map_err(no_profile)?;
    Ok((profiled, canonical))
}
