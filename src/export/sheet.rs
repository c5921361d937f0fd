//! A table of any origin: what formats write, and all they know.

use std::io::{self, Write};

use crate::analysis::metric::Number;

/// One value of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A finite number.
    Float(f64),
    /// A text.
    Text(String),
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name, with the unit at the end.
    pub name: String,
    /// What it holds and when it is null.
    pub doc: String,
}

impl Column {
    /// A column of that name and meaning.
    pub fn new(name: impl Into<String>, doc: impl Into<String>) -> Column {
        Column { name: name.into(), doc: doc.into() }
    }
}

/// A table whose rows are made as they are written. Every row has as many cells as there are columns.
pub struct Sheet<'a> {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Box<dyn Iterator<Item = Vec<Cell>> + 'a>,
}

impl Sheet<'_> {
    /// The same table with only the columns of these names, in this order; names it does not have are left out.
    pub fn select(self, names: &[&str]) -> Self {
        let at = |name: &&str| self.columns.iter().position(|column| column.name == *name);
        let kept: Vec<usize> = names.iter().filter_map(at).collect();
        let columns = kept.iter().map(|index| self.columns[*index].clone()).collect();
        let rows = self.rows.map(move |row| kept.iter().map(|index| row[*index].clone()).collect());
        Sheet { columns, rows: Box::new(rows) }
    }
}

/// One way to write a table.
pub trait Format {
    /// Writes the whole table.
    fn write(&self, sheet: Sheet<'_>, out: &mut dyn Write) -> io::Result<()>;
}

impl From<f64> for Cell {
    /// What is not finite is no number to anyone who reads a table.
    fn from(value: f64) -> Cell {
        if value.is_finite() { Cell::Float(value) } else { Cell::Null }
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Cell {
        i64::try_from(value).map_or(Cell::Float(value as f64), Cell::Int)
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Cell {
        Cell::Int(i64::from(value))
    }
}

impl From<u16> for Cell {
    fn from(value: u16) -> Cell {
        Cell::Int(i64::from(value))
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Cell {
        Cell::Text(value.to_string())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Cell {
        Cell::Text(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Null, Into::into)
    }
}

impl From<Number> for Cell {
    fn from(value: Number) -> Cell {
        match value {
            Number::Count(count) => count.into(),
            Number::Float(value) => value.into(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A table with every kind of cell and every text that some format must take care of.
    pub fn awkward() -> Sheet<'static> {
        let texts = ["plain", "=1+1", "-5 °C", "a|b", "say \"hi\",\nand go", "@cmd", "+1", "\tx", ""];
        let cells = [Cell::Null, Cell::Bool(true), Cell::Int(-3), Cell::Float(0.1 + 0.2), Cell::Float(-1.5)];
        let mut numbers = cells.into_iter().cycle();
        let rows: Vec<Vec<Cell>> = texts.into_iter().map(|text| vec![text.into(), numbers.next().unwrap()]).collect();
        Sheet { columns: vec![Column::new("name", ""), Column::new("value_ms", "")], rows: Box::new(rows.into_iter()) }
    }

    pub fn written(format: &dyn Format, sheet: Sheet<'_>) -> String {
        let mut out = Vec::new();
        format.write(sheet, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nothing_infinite_becomes_a_number() {
        assert_eq!(
            [Cell::from(f64::NAN), Cell::from(f64::INFINITY), Cell::from(None::<f64>)],
            [const { Cell::Null }; 3]
        );
        assert_eq!(Cell::from(u64::MAX), Cell::Float(u64::MAX as f64));
    }

    #[test]
    fn columns_can_be_chosen() {
        let sheet = awkward().select(&["value_ms", "no such column"]);
        assert_eq!(sheet.columns.len(), 1);
        assert_eq!(sheet.rows.last().unwrap().len(), 1);
    }
}
