//! Reads `requests.parquet` and `events.parquet` of a run together.

use std::path::Path;

use super::cell::Lists;
use super::column::{BadColumn, Row, load};
use super::error::RowsError;
use super::measured::{Condenser, Measured, UNUSED};
use super::parquet::{RowFile, batches, batches_without};
use super::replay::{Replay, place};
use super::schema::{RequestRow, RunLabels, Table};

/// A run whose requests are held in memory in a compact form. The gaps between token events remain in the
/// file.
#[derive(Debug)]
pub struct RunReader {
    /// The labels shared by all rows; empty if there are no rows.
    pub labels: RunLabels,
    rows: Vec<Measured>,
    classes: Vec<String>,
    events: RowFile,
}

impl RunReader {
    /// Reads `requests.parquet` of the run in `dir`. Its `events.parquet` is read later, by
    /// [`Replay::replay`].
    pub fn open(dir: &Path) -> Result<RunReader, RowsError> {
        RunReader::of(dir.join(Table::Requests.file()).into(), dir.join(Table::Events.file()).into())
    }

    /// Reads the file `requests` of a run. The file `events` is read later, by [`Replay::replay`].
    pub fn of(requests: RowFile, events: RowFile) -> Result<RunReader, RowsError> {
        let path = requests.path();
        let bad = |bad: BadColumn| RowsError::column(path, bad);
        let mut labels = None;
        let mut condenser = Condenser::default();
        let (count, batches) = batches_without(&requests, &UNUSED)?;
        let mut rows = Vec::new();
        // Without a reservation, the list would grow by doubling and could take up to twice as much
        // memory. A failed reservation is ignored here: the allocation then fails while the list grows.
        let _ = rows.try_reserve_exact(count);
        for batch in batches {
            let batch = batch?;
            if labels.is_none() && batch.num_rows() > 0 {
                labels = RunLabels::from_batch(&batch.slice(0, 1)).map_err(bad)?.into_iter().next();
            }
            rows.extend(RequestRow::from_batch(&batch).map_err(bad)?.iter().map(|row| condenser.take(row)));
        }
        Ok(RunReader { labels: labels.unwrap_or_default(), rows, classes: condenser.classes, events })
    }

    /// Marks the shared prompt tokens of all rows as unknown.
    pub(crate) fn forget_reuse(&mut self) {
        self.rows.iter_mut().for_each(Measured::forget_reuse);
    }
}

impl Replay for RunReader {
    type Error = RowsError;

    fn rows(&self) -> &[Measured] {
        &self.rows
    }

    fn class(&self, name: &str) -> Option<u16> {
        place(&self.classes, name)
    }

    /// Fails if `events.parquet` does not contain the requests of `requests.parquet` in the same order.
    /// The files of one run are sealed from one journal, so such files belong to different runs.
    fn replay(&self, each: &mut dyn FnMut(&Measured, &[u64])) -> Result<(), RowsError> {
        let path = self.events.path();
        let mismatch = || RowsError::Mismatch { path: path.to_owned(), other: Table::Requests.file() };
        let mut rows = self.rows.iter();
        let mut gaps = Vec::new();
        for batch in batches(&self.events)? {
            let batch = batch?;
            let bad = |column: &'static str| move |why| RowsError::column(path, (column, why));
            let requests = load::<u64>(&batch, "request").map_err(|bad| RowsError::column(path, bad))?;
            let lists = Lists::of(batch.column_by_name("gaps_ns")).map_err(bad("gaps_ns"))?;
            for (at, request) in requests.enumerate() {
                lists.read(at, &mut gaps).map_err(bad("gaps_ns"))?;
                let row = rows.next().filter(|row| row.request == request).ok_or_else(mismatch)?;
                each(row, &gaps);
            }
        }
        if rows.next().is_some() { Err(mismatch()) } else { Ok(()) }
    }
}
