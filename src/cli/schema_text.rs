//! The JSON Schema of what a command prints, as text.

use schemars::JsonSchema;

/// The JSON Schema (draft 2020-12) of what a command prints, made from its type.
pub(crate) fn text_of<T: JsonSchema>(title: &str) -> String {
    let generator = schemars::generate::SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
