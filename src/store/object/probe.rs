//! Whether a store keeps to "create, if absent".

use jiff::Timestamp;
use object_store::ObjectStoreExt as _;

use super::error::{Doing, ObjectError};
use super::{ObjectResults, SIDE_BY_SIDE};
use crate::units::NonceSeed;

impl ObjectResults {
    /// Has several writers create one object side by side, and one more behind them. Fails where not exactly one of them did, and where nothing
    /// can be written. The object is removed again; its time tells the store's clock.
    pub fn probe(&self) -> Result<(), ObjectError> {
        let name = NonceSeed::random().map_err(ObjectError::NoThread)?.to_string();
        let key = self.key(&["probes", &name]);
        let create = |_: &usize| self.create(&key, b"sweepline asks whether this is created once");
        let before = Timestamp::now();
        let writers: Vec<usize> = (0..SIDE_BY_SIDE).collect();
        let mut won = self.side_by_side(&writers, &create)?;
        let written = self.wait(self.objects.head(&key)).map_err(|error| self.failed(Doing::Read, &key, error))?;
        self.claims.set_clock(before, Timestamp::now(), &written);
        won.push(create(&0)?);
        // Best effort: who may not remove objects may share results all the same.
        drop(self.wait(self.objects.delete(&key)));
        match won.iter().filter(|won| **won).count() {
            1 => Ok(()),
            0 => {
                let why = "nobody could create a new object".to_owned();
                Err(ObjectError::Failed { url: self.url.clone(), doing: Doing::Write, key: key.to_string(), why })
            }
            winners => Err(ObjectError::Unconditional { url: self.url.clone(), winners, writers: won.len() }),
        }
    }
}
