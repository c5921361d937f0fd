//! The tokenizers of a plan's models, each made once, when the first run needs it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::expand::RunSpec;
use crate::plan::{Disk, Plan, TokenizerFiles};
use crate::workload::Tokenizer;

/// The tokenizers by their digest.
#[derive(Debug, Default)]
pub struct Tokenizers {
    paths: HashMap<String, PathBuf>,
    made: Mutex<HashMap<String, Arc<Tokenizer>>>,
}

impl Tokenizers {
    /// Those that the models of `plan` name.
    pub fn new(plan: &Plan) -> Tokenizers {
        let found = plan.models.values().filter_map(|model| model.tokenizer.as_ref()?.found());
        let paths = found.map(|found| (found.digest.clone(), found.path.clone())).collect();
        Tokenizers { paths, made: Mutex::default() }
    }

    /// The tokenizer of a run, if it has one. Runs that wait for the same one wait for it to be made.
    pub fn of(&self, spec: &RunSpec) -> Result<Option<Arc<Tokenizer>>, String> {
        let Some(digest) = &spec.model.tokenizer else { return Ok(None) };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tokenizer) = made.get(digest) {
            return Ok(Some(Arc::clone(tokenizer)));
        }
        let path = self.paths.get(digest).ok_or("the plan names no tokenizer with the digest of this run")?;
        let files = TokenizerFiles::read(&Disk, path).map_err(|error| error.to_string())?;
        if files.digest() != *digest {
            return Err(format!("{} has changed since the plan was read; start again", path.display()));
        }
        let tokenizer = Tokenizer::new(&files).map_err(|error| format!("{}: {error}", path.display()))?;
        let tokenizer = Arc::new(tokenizer);
        made.insert(digest.clone(), Arc::clone(&tokenizer));
        Ok(Some(tokenizer))
    }
}
