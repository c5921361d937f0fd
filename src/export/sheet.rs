//! A table, which is the input of every export format.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use crate::analysis::metric::{self, Number};

/// A text in a table. Cloning it is cheap, which matters because labels are repeated in every row of a run.
#[derive(Debug, Clone)]
pub enum Text {
    /// A text that is part of the program.
    Word(&'static str),
    /// Any other text.
    Shared(Arc<str>),
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Word(word) => word,
            Text::Shared(text) => text,
        }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        **self == **other
    }
}

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
    Text(Text),
}

/// The type of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Texts.
    Text,
    /// A time, as an RFC 3339 text.
    Time,
    /// True or false.
    Bool,
    /// Whole numbers.
    Int,
    /// Numbers.
    Float,
    /// Mixed: the type may differ between rows.
    Any,
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The name of the column, with the unit as a suffix.
    pub name: String,
    /// The type of the column's cells.
    pub kind: Kind,
    /// The unit of the column's values; empty for names, texts and numbers without a unit.
    pub unit: &'static str,
    /// The meaning of the column's values.
    pub doc: String,
    /// When a value is null; empty if it never is.
    pub null: String,
    /// Whether the column's numbers are labels from the plan, which are shown without rounding.
    pub(crate) is_label: bool,
}

impl Column {
    /// Creates a column with this name and meaning that is never null. The unit follows from the suffix of
    /// the name.
    pub fn new(name: impl Into<String>, kind: Kind, doc: impl Into<String>) -> Column {
        let name = name.into();
        Column { unit: unit_of(&name), name, kind, doc: doc.into(), null: String::new(), is_label: false }
    }

    /// Returns the same column with a description of when it is null; if the description is empty,
    /// the column is never null.
    pub fn null(self, case: impl Into<String>) -> Column {
        Column { null: case.into(), ..self }
    }

    /// Returns the same column, marked as a label.
    pub fn label(self) -> Column {
        Column { is_label: true, ..self }
    }

    /// Returns the column of a metric.
    pub fn of(metric: &metric::Column) -> Column {
        let kind = if metric.counts() { Kind::Int } else { Kind::Float };
        Column { unit: metric.unit(), ..Column::new(&metric.name, kind, &metric.doc).null(&metric.null) }
    }
}

/// Returns the unit that follows from the suffix of a column's name; empty if the suffix names no unit.
fn unit_of(name: &str) -> &'static str {
    const ENDS: [(&str, &str); 5] =
        [("_ns", "ns"), ("_tokens_per_s", "tokens/s"), ("_ms", "ms"), ("_tokens", "tokens"), ("bytes", "bytes")];
    ENDS.iter().find(|(end, _)| name.ends_with(end)).map_or("", |(_, unit)| unit)
}

/// A table whose rows are created while they are written. Every row has as many cells as there are columns.
pub struct Sheet<'a> {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Box<dyn Iterator<Item = Vec<Cell>> + 'a>,
}

impl<'a> Sheet<'a> {
    /// Returns the same table with only the columns of these names, in this order; unknown names are ignored.
    #[cfg(test)]
    pub(crate) fn select(self, names: &[&str]) -> Self {
        let at = |name: &&str| self.columns.iter().position(|column| column.name == *name);
        let kept = names.iter().filter_map(at).collect();
        self.keep(kept)
    }

    /// Returns the same table with only the columns at the indices `kept`, in this order. Each index may
    /// occur only once.
    pub fn keep(self, kept: Vec<usize>) -> Self {
        let columns = kept.iter().map(|index| self.columns[*index].clone()).collect();
        let take = |row: &mut Vec<Cell>, index: usize| std::mem::replace(&mut row[index], Cell::Null);
        let rows = self.rows.map(move |mut row| kept.iter().map(|index| take(&mut row, *index)).collect());
        Sheet { columns, rows: Box::new(rows) }
    }
}

/// Returns the indices of the columns that match `patterns`, in the order of the patterns and each only once.
/// A `*` in a pattern matches any characters. The error is the first pattern that matches no name.
pub(crate) fn matching<'p>(names: &[&str], patterns: &'p [String]) -> Result<Vec<usize>, &'p str> {
    let mut places: Vec<usize> = Vec::new();
    for pattern in patterns {
        let fits = |(place, name): (usize, &&str)| fits(pattern, name).then_some(place);
        let found: Vec<usize> = names.iter().enumerate().filter_map(fits).collect();
        if found.is_empty() {
            return Err(pattern);
        }
        places.extend(found);
    }
    let mut seen = std::collections::HashSet::new();
    places.retain(|place| seen.insert(*place));
    Ok(places)
}

/// Whether `name` matches `pattern`.
pub fn fits(pattern: &str, name: &str) -> bool {
    let Some((before, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(before) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(end)
}

/// An output format of a table.
pub trait Format {
    /// Writes the whole table.
    fn write(&self, sheet: Sheet<'_>, out: &mut (dyn Write + Send)) -> io::Result<()>;
}

impl From<f64> for Cell {
    /// Converts a number to a cell; a number that is not finite becomes null.
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

impl From<&'static str> for Cell {
    fn from(value: &'static str) -> Cell {
        Cell::Text(Text::Word(value))
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Cell {
        Cell::Text(Text::Shared(value.into()))
    }
}

impl From<Cow<'static, str>> for Cell {
    fn from(value: Cow<'static, str>) -> Cell {
        match value {
            Cow::Borrowed(word) => word.into(),
            Cow::Owned(text) => text.into(),
        }
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

    /// Returns a table with every kind of cell and every text that needs special care in some format.
    pub(crate) fn awkward() -> Sheet<'static> {
        let texts = ["plain", "=1+1", "-5 °C", "a|b", "say \"hi\",\nand go", "@cmd", "+1", "\tx", ""];
        let cells = [Cell::Null, Cell::Bool(true), Cell::Int(-3), Cell::Float(0.1 + 0.2), Cell::Float(-1.5)];
        let mut numbers = cells.into_iter().cycle();
        let rows: Vec<Vec<Cell>> = texts.into_iter().map(|text| vec![text.into(), numbers.next().unwrap()]).collect();
        Sheet {
            columns: vec![Column::new("name", Kind::Text, ""), Column::new("value_ms", Kind::Any, "")],
            rows: Box::new(rows.into_iter()),
        }
    }

    pub(crate) fn written(format: &dyn Format, sheet: Sheet<'_>) -> String {
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
    fn patterns_name_columns_in_their_order_and_once() {
        let names = ["run_id", "ttft_p50_ms", "ttft_p99_ms", "e2e_p50_ms", "ttft_n"];
        let at = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            matching(&names, &patterns).map_err(str::to_owned)
        };
        assert_eq!(at(&["e2e_p50_ms", "run_id"]), Ok(vec![3, 0]));
        assert_eq!(at(&["ttft_*", "*_p50_ms"]), Ok(vec![1, 2, 4, 3]));
        assert_eq!(at(&["*t*_p*_ms"]), Ok(vec![1, 2]));
        assert_eq!(at(&["*"]).unwrap().len(), names.len());
        assert_eq!(at(&["run_id", "ttft_p5*9"]), Err("ttft_p5*9".to_owned()));
        assert_eq!(at(&["ttft"]), Err("ttft".to_owned()), "a name is matched as a whole");
        // The parts before and after a star must not overlap.
        assert!(!fits("ab*ba", "aba") && fits("ab*ba", "abba") && fits("a**a", "aa"));
    }

    #[test]
    fn a_column_knows_its_unit_and_when_it_is_null() {
        let column = Column::new("x_ms", Kind::Float, "What it is.").null("never seen");
        assert_eq!((column.unit, column.doc.as_str(), column.null.as_str()), ("ms", "What it is.", "never seen"));
        assert_eq!(Column::new("attempts", Kind::Int, "Number.").null, "");
    }

    #[test]
    fn columns_can_be_chosen() {
        let sheet = awkward().select(&["value_ms", "unknown column"]);
        assert_eq!(sheet.columns.len(), 1);
        assert_eq!(sheet.rows.last().unwrap().len(), 1);
    }
}
