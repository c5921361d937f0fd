//! A part of a run that is treated like a run.

use super::measured::Measured;
use super::replay::Replay;

/// The requests of a run that match a rule, with their gaps.
pub struct Only<'r, R: ?Sized, F> {
    run: &'r R,
    takes: F,
    rows: Vec<Measured>,
}

impl<'r, R: Replay + ?Sized, F: Fn(&Measured) -> bool> Only<'r, R, F> {
    /// Selects the requests of `run` for which `takes` returns true.
    pub fn new(run: &'r R, takes: F) -> Self {
        let rows = run.rows().iter().filter(|row| takes(row)).cloned().collect();
        Only { run, takes, rows }
    }
}

impl<R: Replay + ?Sized, F: Fn(&Measured) -> bool> Replay for Only<'_, R, F> {
    type Error = R::Error;

    fn rows(&self) -> &[Measured] {
        &self.rows
    }

    fn class(&self, name: &str) -> Option<u16> {
        self.run.class(name)
    }

    fn replay(&self, each: &mut dyn FnMut(&Measured, &[u64])) -> Result<(), R::Error> {
        self.run.replay(&mut |row, gaps| {
            if (self.takes)(row) {
                each(row, gaps);
            }
        })
    }
}
