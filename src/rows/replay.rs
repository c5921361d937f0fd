//! Access to the gaps between a run's token events without holding them in memory: the file is read again
//! as often as necessary.

use std::convert::Infallible;

use super::measured::{Condenser, Measured};
use super::schema::Record;

/// Access to the requests of a run, in the order in which they ended, and to the gaps between their token
/// events.
pub trait Replay {
    /// Why the gaps cannot be read.
    type Error;

    /// Returns the requests, in the order in which they ended.
    fn rows(&self) -> &[Measured];

    /// Returns the index of a class among the classes of the run ([`Measured::class`]); `None` if no
    /// request belongs to the class.
    fn class(&self, name: &str) -> Option<u16>;

    /// Calls `each` for every request in order, with its gaps in nanoseconds. There is one gap fewer than
    /// token events, and none if there are fewer than two token events.
    fn replay(&self, each: &mut dyn FnMut(&Measured, &[u64])) -> Result<(), Self::Error>;
}

/// Returns the index of the class `name` in `classes`; `None` if it is missing.
pub(super) fn place(classes: &[String], name: &str) -> Option<u16> {
    let place = classes.iter().position(|class| class == name)?;
    u16::try_from(place).ok()
}

/// The requests of a short run with their gaps, all in memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Records {
    rows: Vec<Measured>,
    classes: Vec<String>,
    gaps_ns: Vec<Vec<u64>>,
}

impl FromIterator<Record> for Records {
    fn from_iter<I: IntoIterator<Item = Record>>(records: I) -> Records {
        let mut condenser = Condenser::default();
        let small = |record: Record| (condenser.take(&record.row), record.gaps_ns);
        let (rows, gaps_ns) = records.into_iter().map(small).unzip();
        Records { rows, gaps_ns, classes: condenser.classes }
    }
}

impl Replay for Records {
    type Error = Infallible;

    fn rows(&self) -> &[Measured] {
        &self.rows
    }

    fn class(&self, name: &str) -> Option<u16> {
        place(&self.classes, name)
    }

    fn replay(&self, each: &mut dyn FnMut(&Measured, &[u64])) -> Result<(), Infallible> {
        self.rows.iter().zip(&self.gaps_ns).for_each(|(row, gaps)| each(row, gaps));
        Ok(())
    }
}
