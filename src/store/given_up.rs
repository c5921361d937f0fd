//! Runs that were given up: the last attempt that was spoiled says so, and no result was committed since.

use std::collections::BTreeMap;

use super::error::StoreError;
use super::layout::{short, split_numbered};
use super::record::{AttemptRecord, Moment, run_labels};
use super::{Store, disk};
use crate::expand::RunSpec;
use crate::rows::{GivenUp, RunLabels};

/// A run that has no result and is not tried again by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenUpRun {
    /// The full RunId, 64 hex digits.
    pub id: String,
    /// The attempt with which it was given up, from 1.
    pub attempt: u32,
    /// When that attempt began.
    pub started: Moment,
    /// When it ended.
    pub ended: Option<Moment>,
    /// The run as it was asked for.
    pub spec: RunSpec,
    /// Why it was given up.
    pub given_up: GivenUp,
}

impl GivenUpRun {
    /// What its rows would share, if it had any.
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
    /// The runs that were given up since their last commit, sorted by id. One that had a result before, and was given up when it was
    /// repeated, is there too: its result is what it was.
    pub fn given_up(&self) -> Result<Vec<GivenUpRun>, StoreError> {
        let names = disk::names(&self.layout.attempts())?;
        let mut numbers: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (id, number) in names.iter().filter_map(|name| split_numbered(name)) {
            numbers.entry(id).or_default().push(number);
        }
        let given_up = numbers.into_iter().filter_map(|(id, numbers)| self.given_up_with(id, numbers));
        given_up.filter_map(|run| self.unless_measured_since(run).transpose()).collect()
    }

    /// The run `id` (short), where the last of these attempts that was spoiled gave it up, and none was begun afresh since. Of an
    /// attempt that cannot be read nothing is known.
    fn given_up_with(&self, id: &str, mut numbers: Vec<u32>) -> Option<GivenUpRun> {
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        let records = numbers.into_iter().filter_map(|number| {
            let record = AttemptRecord::read(&self.layout.attempt(id, number)).ok()?;
            Some(record).filter(|record| short(&record.id) == id && record.attempt == number)
        });
        let decides = |record: &AttemptRecord| record.spoiled.is_some() || record.afresh;
        records.into_iter().find(decides).and_then(GivenUpRun::of)
    }

    fn unless_measured_since(&self, run: GivenUpRun) -> Result<Option<GivenUpRun>, StoreError> {
        let committed = self.run(&run.id)?.and_then(|listed| listed.record);
        Ok(Some(run).filter(|run| committed.is_none_or(|record| record.attempt < run.attempt)))
    }
}
