//! Lists runs that were given up. Their last spoiled attempt records this, and no result has been committed
//! since.

use super::Store;
use super::error::StoreError;
use super::layout::short;
use super::record::{AttemptRecord, Moment, run_labels};
use crate::expand::RunSpec;
use crate::rows::{GivenUp, RunLabels};

/// A run that was given up: it is not retried automatically.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenUpRun {
    /// The full RunId, 64 hex digits.
    pub id: String,
    /// The number of the attempt with which the run was given up, from 1.
    pub attempt: u32,
    /// When the attempt with which the run was given up began.
    pub started: Moment,
    /// When the attempt with which the run was given up ended; `None` if this was not recorded.
    pub ended: Option<Moment>,
    /// The spec of the run.
    pub spec: RunSpec,
    /// Why the run was given up.
    pub given_up: GivenUp,
}

impl GivenUpRun {
    /// Returns the labels that the rows of the run would share, if it had rows.
    pub fn labels(&self) -> RunLabels {
        run_labels(&self.id, self.attempt, &self.spec)
    }

    fn of(record: AttemptRecord) -> Option<GivenUpRun> {
        let AttemptRecord { id, attempt, started, ended, spoiled, given_up, spec, .. } = record;
        let given_up = GivenUp { spoiled: spoiled?, retries: given_up? };
        Some(GivenUpRun { id, attempt, started, ended, spec, given_up })
    }
}

impl Store {
    /// Returns the runs that were given up since their last commit, sorted by id. This includes runs that
    /// already have a result and were given up when they were repeated; their results are unchanged. An
    /// attempt is ignored if its `attempt.json` belongs to another attempt.
    pub fn given_up(&self) -> Result<Vec<GivenUpRun>, StoreError> {
        let tries = self.tries()?;
        let numbers = tries.into_iter().filter_map(|(id, tries)| Some((id, tries.given_up?.number)));
        let mut runs: Vec<GivenUpRun> = numbers.filter_map(|(id, number)| self.given_up_with(&id, number)).collect();
        runs.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(runs)
    }

    /// Returns the run `id` (short), which was given up with attempt `number`; `None` if its `attempt.json`
    /// cannot be read or belongs to another attempt.
    fn given_up_with(&self, id: &str, number: u32) -> Option<GivenUpRun> {
        let record = AttemptRecord::read(&self.layout.attempt(id, number)).ok()?;
        let is_its_own = short(&record.id) == id && record.attempt == number;
        GivenUpRun::of(record).filter(|_| is_its_own)
    }
}
