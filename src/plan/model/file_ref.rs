//! A file that a plan names: as it is written, and what was found there.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The path of a file, relative to the text that names it. In a plan that was resolved also what was found in it; nothing
/// where it could not be read, which is a mistake of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRef<T> {
    written: String,
    found: Option<T>,
    lies_at: Option<PathBuf>,
}

impl<T> FileRef<T> {
    /// As it is written.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// What was found in it.
    pub fn found(&self) -> Option<&T> {
        self.found.as_ref()
    }

    /// Keeps what was found, and where, without links.
    pub(crate) fn put(&mut self, found: T, lies_at: PathBuf) {
        (self.found, self.lies_at) = (Some(found), Some(lies_at));
    }
}

/// A file that a plan names, whatever was found in it.
pub(crate) trait NamedFile {
    /// As it is written, to be written otherwise, and where it was found, without links.
    fn named(&mut self) -> (&mut String, Option<&Path>);
}

impl<T> NamedFile for FileRef<T> {
    fn named(&mut self) -> (&mut String, Option<&Path>) {
        (&mut self.written, self.lies_at.as_deref())
    }
}

impl<T> From<String> for FileRef<T> {
    fn from(written: String) -> FileRef<T> {
        FileRef { written, found: None, lies_at: None }
    }
}

impl<T> Serialize for FileRef<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.written)
    }
}

impl<'de, T> Deserialize<'de> for FileRef<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(FileRef::from)
    }
}

impl<T> JsonSchema for FileRef<T> {
    fn schema_name() -> Cow<'static, str> {
        "FileRef".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
