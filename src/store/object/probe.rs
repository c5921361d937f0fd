//! Tests whether a store implements "create if absent".

use jiff::Timestamp;
use object_store::ObjectStoreExt as _;

use super::error::{Doing, ObjectError};
use super::{ObjectResults, SIDE_BY_SIDE};
use crate::units::NonceSeed;

impl ObjectResults {
    /// Has several writers create one object concurrently, and one more writer after them. Fails unless
    /// exactly one of them succeeds, or if nothing can be written. The object is then removed; its
    /// timestamp shows the store's clock.
    pub fn probe(&self) -> Result<(), ObjectError> {
        let name = NonceSeed::random().map_err(ObjectError::NoThread)?.to_string();
        let key = self.key(&["probes", &name]);
        let create = |_: &usize| self.create(&key, b"sweepline tests whether this is created once");
        let before = Timestamp::now();
        let writers: Vec<usize> = (0..SIDE_BY_SIDE).collect();
        let mut won = self.side_by_side(&writers, &create)?;
        let written = self.wait(self.objects.head(&key)).map_err(|error| self.failed(Doing::Read, &key, error))?;
        self.claims.set_clock(before, Timestamp::now(), &written);
        won.push(create(&0)?);
        // Best effort: users without permission to remove objects may still share results.
        drop(self.wait(self.objects.delete(&key)));
        match won.iter().filter(|won| **won).count() {
            1 => Ok(()),
            0 => {
                let why = "no new object could be created".to_owned();
                Err(ObjectError::Failed { url: self.url.clone(), doing: Doing::Write, key: key.to_string(), why })
            }
            winners => Err(ObjectError::Unconditional { url: self.url.clone(), winners, writers: won.len() }),
        }
    }
}
