//! Whether a store keeps to "create, if absent".

use object_store::{Error, ObjectStoreExt as _, PutMode, PutOptions};

use super::error::{Doing, ObjectError};
use super::{ObjectResults, SIDE_BY_SIDE};
use crate::units::NonceSeed;

impl ObjectResults {
    /// Has several writers create one object side by side, and one more behind them. Fails where not exactly one of them did, and where nothing
    /// can be written. The object is removed again.
    pub fn probe(&self) -> Result<(), ObjectError> {
        let name = NonceSeed::random().map_err(ObjectError::NoThread)?.to_string();
        let key = self.key(&["probes", &name]);
        let create = |_: &usize| -> Result<bool, ObjectError> {
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            match self.wait(self.objects.put_opts(
                &key,
                b"sweepline asks whether this is created once".to_vec().into(),
                options,
            )) {
                Ok(_) => Ok(true),
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
                Err(error) => Err(self.failed(Doing::Write, &key, error)),
            }
        };
        let writers: Vec<usize> = (0..SIDE_BY_SIDE).collect();
        let mut won = self.side_by_side(&writers, &create)?;
        won.push(create(&0)?);
        self.wait(self.objects.delete(&key)).map_err(|error| self.failed(Doing::Remove, &key, error))?;
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
