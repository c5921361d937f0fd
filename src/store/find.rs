//! From the beginning of an id to the run it means.

use super::Store;
use super::error::StoreError;
use super::layout::short;
use super::list::{Listed, inspect};

impl Store {
    /// The one committed run whose id begins with `prefix` (any length up to all 64 digits, in either case).
    ///
    /// Fails with `NotFound` or with `Ambiguous`, which names the candidates.
    pub fn find(&self, prefix: &str) -> Result<Listed, StoreError> {
        let wanted = prefix.to_ascii_lowercase();
        let not_found = || StoreError::NotFound { dir: self.layout.root().to_owned(), prefix: prefix.to_owned() };
        let mut candidates = self.run_names()?;
        candidates.retain(|name| name.starts_with(short(&wanted)));
        if candidates.len() > 1 {
            return Err(StoreError::Ambiguous { prefix: prefix.to_owned(), candidates });
        }
        let name = candidates.pop().ok_or_else(not_found)?;
        let listed = inspect(&self.layout.run(&name), &name)?;
        // The folder's name says 16 digits; what is asked for beyond them stands in `run.json`.
        match &listed.record {
            Some(record) if !record.id.starts_with(&wanted) => Err(not_found()),
            _ => Ok(listed),
        }
    }
}
