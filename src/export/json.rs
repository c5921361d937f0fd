//! JSON: an array of objects with keys in column order, one row per line. Null stays null, and numbers
//! stay numbers.

use std::io::{self, Write};

use serde_json::{Map, Value};

use super::{Cell, Format, Sheet};

/// An array of objects.
pub(crate) struct Json;

impl Format for Json {
    fn write(&self, sheet: Sheet<'_>, out: &mut (dyn Write + Send)) -> io::Result<()> {
        let Sheet { columns, rows } = sheet;
        out.write_all(b"[")?;
        for (index, row) in rows.enumerate() {
            out.write_all(if index == 0 { b"\n" } else { b",\n" })?;
            let named = columns.iter().map(|column| column.name.clone());
            let object: Map<String, Value> = named.zip(row.into_iter().map(Cell::json)).collect();
            serde_json::to_writer(&mut *out, &object)?;
        }
        out.write_all(b"\n]\n")
    }
}

impl Cell {
    /// The cell as a JSON value.
    pub fn json(self) -> Value {
        match self {
            Cell::Null => Value::Null,
            Cell::Bool(value) => value.into(),
            Cell::Int(value) => value.into(),
            Cell::Float(value) => value.into(),
            Cell::Text(text) => (*text).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::sheet::tests::{awkward, written};

    #[test]
    fn cells_keep_their_types() {
        let text = written(&Json, awkward());
        let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(rows.len(), 9);
        let values: Vec<&Value> = rows.iter().take(4).map(|row| &row["value_ms"]).collect();
        assert_eq!(values, [&Value::Null, &true.into(), &Value::from(-3), &Value::from(0.1 + 0.2)]);
        assert_eq!(rows[1]["name"], "=1+1");
    }

    #[test]
    fn no_rows_are_an_empty_array() {
        let empty = Sheet { columns: vec![], rows: Box::new(std::iter::empty()) };
        assert_eq!(serde_json::from_str::<Vec<Value>>(&written(&Json, empty)).unwrap().len(), 0);
    }
}
