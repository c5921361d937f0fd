//! The rows and columns that an export requests.

use super::source::Source;
use crate::cli::export::kind::Rows;
use crate::cli::failure::Failure;
use crate::export::{Column, NoPivot, Sheet, fits, marked, matching, wide};

/// The requested columns of a table.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    /// Column names with `*` for any characters, as given by `--columns`.
    pub(crate) patterns: &'a [String],
    /// Whether the table is a pivot.
    pub wide: bool,
    /// Whether only the columns for people (`Source::shown`) are included if no names are given.
    pub few: bool,
    /// Whether values are marked up for people, as in Markdown.
    pub marked: bool,
}

/// The pattern that selects all columns.
const ALL: &str = "all";

/// A table and, if it omits columns, the list of all columns that it could have.
pub(crate) struct Chosen<'s> {
    /// The table.
    pub table: Sheet<'s>,
    /// All possible columns, if the table omits some; otherwise `None`.
    pub all: Option<Vec<Column>>,
}

impl Columns<'_> {
    /// Returns the table of one kind of rows with the requested columns; rejects an unknown column name.
    pub(crate) fn table<'s>(self, source: &'s Source, rows: Rows) -> Result<Sheet<'s>, Failure> {
        Ok(self.chosen(source, rows)?.table)
    }

    /// Returns the table of one kind of rows with the requested columns, together with all possible columns
    /// if the table omits some.
    fn chosen<'s>(self, source: &'s Source, rows: Rows) -> Result<Chosen<'s>, Failure> {
        if self.wide {
            let patterns = if self.has_all() { &[] } else { self.patterns };
            let table = wide(source.rows(rows), patterns).map_err(|why| no_pivot(source, rows, why))?;
            return Ok(Chosen { table, all: None });
        }
        let table = source.table(rows);
        let table = if self.marked { marked(table) } else { table };
        let kept = match self.patterns {
            [] if !self.few => return Ok(Chosen { table, all: None }),
            [] => match source.shown(rows) {
                Some(choice) => choice.places(&table.columns),
                None => return Ok(Chosen { table, all: None }),
            },
            _ if self.has_all() => return Ok(Chosen { table, all: None }),
            patterns => {
                matching(&names(&table.columns), patterns).map_err(|wrong| unknown(wrong, &[rows], &table.columns))?
            }
        };
        let all = table.columns.clone();
        Ok(Chosen { table: table.keep(kept), all: Some(all) })
    }

    /// Whether the pattern `all` selects all columns.
    pub(crate) fn has_all(self) -> bool {
        self.patterns.iter().any(|pattern| pattern == ALL)
    }

    /// Returns the table as one of several sheets. A column name that exists only in another sheet is
    /// not an error. `None` if the table has none of the columns.
    pub(crate) fn table_of_several<'s>(self, source: &'s Source, rows: Rows) -> Result<Option<Chosen<'s>>, Failure> {
        if self.patterns.is_empty() || self.wide || self.has_all() {
            return self.chosen(source, rows).map(Some);
        }
        let table = source.table(rows);
        let own = names(&table.columns);
        let is_own = |pattern: &&String| own.iter().any(|name| fits(pattern, name));
        let patterns: Vec<String> = self.patterns.iter().filter(is_own).cloned().collect();
        let kept = matching(&own, &patterns).unwrap_or_default();
        let all = table.columns.clone();
        Ok((!kept.is_empty()).then(|| Chosen { table: table.keep(kept), all: Some(all) }))
    }

    /// Rejects a name that does not occur in any of the sheets.
    pub(crate) fn known(self, source: &Source, kinds: &[Rows]) -> Result<(), Failure> {
        if self.wide || self.has_all() {
            return Ok(());
        }
        let columns: Vec<Column> = kinds.iter().flat_map(|rows| source.table(*rows).columns).collect();
        matching(&names(&columns), self.patterns).map(drop).map_err(|wrong| unknown(wrong, kinds, &columns))
    }
}

fn names(columns: &[Column]) -> Vec<&str> {
    columns.iter().map(|column| column.name.as_str()).collect()
}

/// Returns the error for a column name that occurs in none of the `kinds` of rows.
fn unknown(wrong: &str, kinds: &[Rows], columns: &[Column]) -> Failure {
    let near = columns.iter().map(|column| column.name.as_str());
    let near = near.min_by_key(|name| strsim::damerau_levenshtein(wrong, name));
    let near = near.filter(|name| strsim::damerau_levenshtein(wrong, name) <= 1 + wrong.len() / 3);
    // In a table of curves, the load is always in the column `load`, whatever its unit is.
    let load = (kinds == [Rows::Curves] && ["qps", "batch_size"].contains(&wrong)).then_some("load");
    let remedy = match load.or(near) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`sweepline schema export` lists them; `*` matches any characters".to_owned(),
    };
    let kinds: Vec<&str> = kinds.iter().map(|rows| rows.name()).collect();
    Failure::Usage(format!("no column of {} is named `{wrong}`: {remedy}", kinds.join(", ")))
}

fn no_pivot(source: &Source, rows: Rows, why: NoPivot) -> Failure {
    match why {
        NoPivot::NoMetric(wrong) => unknown(&wrong, &[rows], &source.table(rows).columns),
        NoPivot::Alike([a, b]) => Failure::Usage(format!(
            "runs {} and {} have the same endpoint, model, scenario, axes, load and repeat, so they would share a cell \
             of the pivot table: give a PLAN to export only its runs",
            &a[..a.len().min(8)],
            &b[..b.len().min(8)]
        )),
    }
}
