//! What an export was asked for: which rows, and which of their columns.

use super::source::Source;
use crate::cli::export::kind::Rows;
use crate::cli::failure::Failure;
use crate::export::runs::BRIEF;
use crate::export::{Column, NoPivot, Sheet, breakdown, curves, fits, marked, matching, wide};

/// Which columns a table has.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    /// Names as the call gives them; all columns where there are none.
    pub(crate) patterns: &'a [String],
    /// As a pivot.
    pub wide: bool,
    /// Where no names are given, those that a person reads.
    pub brief: bool,
}

impl Columns<'_> {
    /// The table of one kind of rows with its columns; a name that it does not have is refused.
    pub(crate) fn table<'s>(self, source: &'s Source, rows: Rows) -> Result<Sheet<'s>, Failure> {
        if self.wide {
            return wide(source.rows(rows), self.patterns).map_err(|why| no_pivot(source, rows, why));
        }
        let table = source.table(rows);
        let table = if self.brief { marked(table) } else { table };
        match (self.patterns, rows) {
            ([], Rows::Runs | Rows::Classes) if self.brief => Ok(brief(table, source.axes(), &BRIEF)),
            ([], Rows::Curves) if self.brief => Ok(brief(table, source.axes(), &curves::BRIEF)),
            ([], Rows::Lengths | Rows::Turns) if self.brief => Ok(brief(table, source.axes(), &breakdown::BRIEF)),
            ([], _) => Ok(table),
            (patterns, _) => {
                let kept = matching(&names(&table.columns), patterns)
                    .map_err(|wrong| unknown(wrong, &[rows], &table.columns))?;
                Ok(table.keep(kept))
            }
        }
    }

    /// The table as one sheet among others: a name that another sheet has is no mistake. None where it has none of them.
    pub(crate) fn table_of_several<'s>(self, source: &'s Source, rows: Rows) -> Result<Option<Sheet<'s>>, Failure> {
        if self.patterns.is_empty() || self.wide {
            return self.table(source, rows).map(Some);
        }
        let table = source.table(rows);
        let own = names(&table.columns);
        let is_own = |pattern: &&String| own.iter().any(|name| fits(pattern, name));
        let patterns: Vec<String> = self.patterns.iter().filter(is_own).cloned().collect();
        let kept = matching(&own, &patterns).unwrap_or_default();
        Ok((!kept.is_empty()).then(|| table.keep(kept)))
    }

    /// Refuses a name that none of the sheets has.
    pub(crate) fn known(self, source: &Source, kinds: &[Rows]) -> Result<(), Failure> {
        if self.wide {
            return Ok(());
        }
        let columns: Vec<Column> = kinds.iter().flat_map(|rows| source.table(*rows).columns).collect();
        matching(&names(&columns), self.patterns).map(drop).map_err(|wrong| unknown(wrong, kinds, &columns))
    }
}

fn names(columns: &[Column]) -> Vec<&str> {
    columns.iter().map(|column| column.name.as_str()).collect()
}

/// The columns that a person reads: the main ones, and whatever further axes tell the runs apart.
fn brief<'a>(sheet: Sheet<'a>, axes: &[String], main: &[&str]) -> Sheet<'a> {
    let is_axis = |name: &str| axes.iter().any(|axis| axis == name.strip_prefix("axis_").unwrap_or(name));
    let wanted = |name: &str| main.contains(&name) || is_axis(name);
    let kept = sheet.columns.iter().enumerate().filter(|(_, column)| wanted(&column.name)).map(|(at, _)| at).collect();
    sheet.keep(kept)
}

/// None of these kinds of rows has a column that is named like this.
fn unknown(wrong: &str, kinds: &[Rows], columns: &[Column]) -> Failure {
    let near = columns.iter().map(|column| column.name.as_str());
    let near = near.min_by_key(|name| strsim::damerau_levenshtein(wrong, name));
    let near = near.filter(|name| strsim::damerau_levenshtein(wrong, name) <= 1 + wrong.len() / 3);
    // Of a curve the load has a column, whatever it is counted in.
    let load = (kinds == [Rows::Curves] && ["qps", "batch_size"].contains(&wrong)).then_some("load");
    let remedy = match load.or(near) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`sweepline schema export` lists them; `*` stands for any characters".to_owned(),
    };
    let kinds: Vec<&str> = kinds.iter().map(|rows| rows.name()).collect();
    Failure::Usage(format!("no column of {} is named `{wrong}`: {remedy}", kinds.join(", ")))
}

fn no_pivot(source: &Source, rows: Rows, why: NoPivot) -> Failure {
    match why {
        NoPivot::NoMetric(wrong) => unknown(&wrong, &[rows], &source.table(rows).columns),
        NoPivot::Alike([a, b]) => Failure::Usage(format!(
            "runs {} and {} have the same names, load and repeat, and would be one value of the pivot: name the PLAN \
             whose runs are meant",
            &a[..a.len().min(8)],
            &b[..b.len().min(8)]
        )),
    }
}
