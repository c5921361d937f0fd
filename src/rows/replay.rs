//! The gaps of a run, without holding them: a run is gone through, as often as it takes.

use std::convert::Infallible;

use super::request::Record;
use super::schema::RequestRow;

/// The requests of a run, in the order in which they ended, and a way through the gaps between their token events.
pub trait Replay {
    /// Why the gaps cannot be read.
    type Error;

    /// The requests.
    fn rows(&self) -> &[RequestRow];

    /// Gives every request in its order with its gaps, in nanoseconds: one fewer than its events, none without two.
    fn replay(&self, each: &mut dyn FnMut(&RequestRow, &[u64])) -> Result<(), Self::Error>;
}

/// The requests of a short run with their gaps, all in memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Records {
    rows: Vec<RequestRow>,
    gaps_ns: Vec<Vec<u64>>,
}

impl FromIterator<Record> for Records {
    fn from_iter<I: IntoIterator<Item = Record>>(records: I) -> Records {
        let (rows, gaps_ns) = records.into_iter().map(|record| (record.row, record.gaps_ns)).unzip();
        Records { rows, gaps_ns }
    }
}

impl Replay for Records {
    type Error = Infallible;

    fn rows(&self) -> &[RequestRow] {
        &self.rows
    }

    fn replay(&self, each: &mut dyn FnMut(&RequestRow, &[u64])) -> Result<(), Infallible> {
        self.rows.iter().zip(&self.gaps_ns).for_each(|(row, gaps)| each(row, gaps));
        Ok(())
    }
}
