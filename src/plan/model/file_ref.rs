//! A file that a plan names: its path as written, and its content.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The path of a file, relative to the text that names it. In a resolved plan, it also holds the
/// file's content, or nothing if the file could not be read, which is an error in the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRef<T> {
    written: String,
    found: Option<T>,
    lies_at: Option<PathBuf>,
}

impl<T> FileRef<T> {
    /// The path as written.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// The content of the file, if it was read.
    pub fn found(&self) -> Option<&T> {
        self.found.as_ref()
    }

    /// Stores the content, and the file's location with links resolved.
    pub(crate) fn put(&mut self, found: T, lies_at: PathBuf) {
        (self.found, self.lies_at) = (Some(found), Some(lies_at));
    }
}

/// A file that a plan names, regardless of its content.
pub(crate) trait NamedFile {
    /// The path as written, as a mutable reference so that it can be rewritten, and the file's
    /// location with links resolved.
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
