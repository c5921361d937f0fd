//! The JSON Schema of exports: every column of every kind of row, in order, with its unit, its meaning and
//! when it is null. The copy in `schemas/` makes changes to the columns visible.

use serde_json::{Map, Value, json};

use crate::analysis::lengths::Bucket;

use super::breakdown::{self, Turn};
use super::further::Further;
use super::{COLUMNS_VERSION, Column, Kind, curves, events, requests, runs};

/// Returns the kinds of rows with their columns, without the columns that depend on the exported runs.
pub fn tables() -> [(&'static str, Vec<Column>); 7] {
    [
        ("runs", runs::columns(&Further::default(), false)),
        ("classes", runs::columns(&Further::default(), true)),
        ("lengths", breakdown::columns::<Bucket>(&[])),
        ("turns", breakdown::columns::<Turn>(&[])),
        ("curves", curves::columns(&[])),
        ("requests", requests::columns(&[])),
        ("events", events::columns()),
    ]
}

/// Returns the JSON Schema of `export --format json`, as text.
pub fn text() -> String {
    let definitions: Map<String, Value> =
        tables().into_iter().map(|(name, columns)| (name.to_owned(), table(&columns))).collect();
    let kinds: Vec<Value> = definitions.keys().map(|name| json!({ "$ref": format!("#/$defs/{name}") })).collect();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "sweepline export --format json",
        "description": "Rows of one kind, with the columns in this order in every format. A run's other axes are columns before `repeat`; an axis with the name of another column is called axis_<name>. Rows of \
            runs and classes have further columns if some run has them: declared.<fact> and read_back.<flag> of \
            its server, failed.<kind>, the number of requests with this failure, server.<figure>, metrics \
            reported by the server, and parts.<part>, where the time of requests went.",
        "columns_version": COLUMNS_VERSION,
        "type": "array",
        "items": { "anyOf": kinds },
        "$defs": definitions,
    });
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

fn table(columns: &[Column]) -> Value {
    let properties: Map<String, Value> = columns.iter().map(|column| (column.name.clone(), property(column))).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": { "type": ["string", "integer", "number", "null"] } })
}

fn property(column: &Column) -> Value {
    let kind = match column.kind {
        Kind::Text | Kind::Time => "string",
        Kind::Bool => "boolean",
        Kind::Int => "integer",
        Kind::Float => "number",
        Kind::Any => "any",
    };
    let mut property = if kind == "any" {
        json!({ "type": ["integer", "number", "string", "boolean", "null"] })
    } else {
        json!({ "type": if column.null.is_empty() && column.kind != Kind::Float { json!(kind) } else { json!([kind, "null"]) } })
    };
    if column.kind == Kind::Time {
        property["format"] = "date-time".into();
    }
    if !column.unit.is_empty() {
        property["unit"] = column.unit.into();
    }
    property["description"] = column.doc.as_str().into();
    if !column.null.is_empty() {
        property["null_when"] = column.null.as_str().into();
    }
    property
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/export.schema.json");

    /// Returns the name and the column names of each table, in the order of the file.
    fn names(schema: &Value) -> Vec<(String, Vec<String>)> {
        let tables = schema["$defs"].as_object().into_iter().flatten();
        let names =
            |table: &Value| table["properties"].as_object().into_iter().flat_map(|all| all.keys().cloned()).collect();
        tables.map(|(name, table)| (name.clone(), names(table))).collect()
    }

    /// Returns whether every name of `old` is in `new`, in the same order.
    fn goes_on(old: &[String], new: &[String]) -> bool {
        let mut new = new.iter();
        old.iter().all(|name| new.any(|other| other == name))
    }

    /// Readers use the names and may use the order, so neither may change without a new version.
    #[test]
    fn columns_are_those_of_their_version_and_the_file_is_current() {
        let kept = std::fs::read_to_string(PATH).unwrap_or_default();
        let old: Value = serde_json::from_str(&kept).unwrap_or_default();
        let new: Value = serde_json::from_str(&text()).unwrap();
        if old["columns_version"] == new["columns_version"] {
            for (name, columns) in names(&old) {
                let (_, now) = names(&new).into_iter().find(|(other, _)| *other == name).unwrap_or_default();
                assert!(
                    goes_on(&columns, &now),
                    "columns of {name} were renamed, removed or moved: increase COLUMNS_VERSION"
                );
            }
        }
        if std::env::var_os("SWEEPLINE_BLESS").is_some() {
            std::fs::write(PATH, text()).unwrap();
        }
        let kept = std::fs::read_to_string(PATH).unwrap_or_default();
        assert_eq!(kept, text(), "run SWEEPLINE_BLESS=1 cargo test --lib current");
    }

    #[test]
    fn an_added_column_is_no_change_of_the_others() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(goes_on(&names("a b c"), &names("a x b c y")));
        assert!(!goes_on(&names("a b c"), &names("a c b")) && !goes_on(&names("a b"), &names("a")));
    }

    #[test]
    fn every_column_says_what_it_holds() {
        for (table, columns) in tables() {
            for Column { name, doc, null, .. } in columns {
                assert!(!doc.is_empty(), "{table}.{name}");
                assert!(!doc.contains("null") && !null.ends_with('.'), "{table}.{name}: {doc}");
            }
        }
    }
}
