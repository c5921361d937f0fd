//! Access to the gaps of a run without holding them in memory: the file is read again as often as
//! necessary.

use std::convert::Infallible;

use super::measured::{Condenser, Measured};
use super::schema::Record;

/// The requests of a run, in the order in which they ended, and a replay of the gaps between their token
/// events.
pub trait Replay {
    /// Why the gaps cannot be read.
    type Error;

    /// The requests.
    fn rows(&self) -> &[Measured];

    /// The index of a class among the classes of the run ([`Measured::class`]); `None` if no request
    /// has it.
    fn class(&self, name: &str) -> Option<u16>;

    /// Passes every request in order with its gaps, in nanoseconds. There is one gap fewer than events,
    /// and none if there are fewer than two events.
    fn replay(&self, each: &mut dyn FnMut(&Measured, &[u64])) -> Result<(), Self::Error>;
}

/// The index of a name among the names of classes.
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
