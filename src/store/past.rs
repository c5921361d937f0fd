//! Lists the time that was spent on runs but did not lead to their current results: in attempts without a
//! result, and in results that were replaced.

use super::error::StoreError;
use super::layout::{is_short_id, short, split_numbered};
use super::record::{Moment, RunRecord};
use super::tries::{How, try_at};
use super::{Store, disk};

/// The period of an attempt that did not lead to the committed result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastTry {
    /// The run's short id.
    pub id: String,
    /// The number of the attempt at the run, from 1.
    pub number: u32,
    /// When the period began.
    pub started: Moment,
    /// When the period ended; `None` if the attempt is still in progress, or if the end is unknown.
    pub ended: Option<Moment>,
    /// The outcome of the attempt; `None` if the attempt was committed and later replaced.
    pub how: Option<How>,
}

impl Store {
    /// Returns, for the runs whose short ids are `wanted`, every attempt without a result and every
    /// replaced result, ordered by start. Unreadable attempts are omitted, because their times are unknown.
    pub fn past_tries(&self, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<PastTry>, StoreError> {
        let is_wanted = |id: &str| is_short_id(id) && wanted(id);
        let mut past = Vec::new();
        for name in disk::names(&self.layout.attempts())? {
            let Some((id, number)) = split_numbered(&name).filter(|(id, _)| is_wanted(id)) else { continue };
            let Some(found) = try_at(self, id, number) else { continue };
            let Some(started) = found.started else { continue };
            past.push(PastTry { id: id.to_owned(), number, started, ended: found.ended, how: Some(found.how) });
        }
        for name in disk::names(&self.layout.superseded())? {
            let Some((id, number)) = split_numbered(&name).filter(|(id, _)| is_wanted(id)) else { continue };
            let Ok(record) = RunRecord::read(&self.layout.superseded_run(id, number)) else { continue };
            let is_its_own = short(&record.id) == id && record.attempt == number;
            let RunRecord { started, ended, .. } = record;
            past.extend(is_its_own.then(|| PastTry {
                id: id.to_owned(),
                number,
                started,
                ended: Some(ended),
                how: None,
            }));
        }
        past.sort_by_key(|one| (one.started, one.number));
        Ok(past)
    }
}
