//! The tokenizers of a plan's models. Each tokenizer is created only once, when the first run needs it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::expand::RunSpec;
use crate::plan::{Disk, Plan, TokenizerFiles, TokenizerPath};
use crate::protocol::Framing;
use crate::server::{ProbeError, Question};
use crate::workers::TokenizerTexts;
use crate::workload::Tokenizer;

use super::learn::Learned;

/// The tokenizers of a plan's models, from files and from the counts of servers.
#[derive(Default)]
pub struct Tokenizers {
    paths: HashMap<String, PathBuf>,
    made: Mutex<HashMap<String, Arc<Tokenizer>>>,
    /// The token counts of servers, by address and model; `None` if the server does not count tokens.
    learned: Mutex<HashMap<(String, String), Option<Taught>>>,
}

/// The token counts of a server, and the tokenizers derived from them.
struct Taught {
    learned: Learned,
    of_chats: Option<Arc<Tokenizer>>,
    of_texts: Option<Arc<Tokenizer>>,
}

impl Tokenizers {
    /// Prepares the tokenizers that the models of `plan` name. None of them is created yet.
    pub fn new(plan: &Plan) -> Tokenizers {
        let found = plan.models.values().filter_map(|model| model.tokenizer.as_ref()?.found());
        let paths = found.map(|found| (found.digest.clone(), found.path.clone())).collect();
        Tokenizers { paths, ..Tokenizers::default() }
    }

    /// Returns the tokenizer of a run; `None` if the run has no tokenizer, or if the server is supposed to
    /// count the tokens (`tokenizer: server`) but cannot. Creates the tokenizer if necessary; other runs
    /// wait until it has been created. `question` contains the settings for requests to such a server.
    pub fn of(&self, spec: &RunSpec, question: &Question) -> Result<Option<Arc<Tokenizer>>, String> {
        let Some(digest) = &spec.model.tokenizer else { return Ok(None) };
        if digest == TokenizerPath::SERVER {
            return self.taught(question);
        }
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tokenizer) = made.get(digest) {
            return Ok(Some(Arc::clone(tokenizer)));
        }
        let path = self.paths.get(digest).ok_or("the plan names no tokenizer with this run's digest")?;
        let files = TokenizerFiles::read(&Disk, path).map_err(|error| error.to_string())?;
        if files.digest() != *digest {
            return Err(format!("{} has changed since the plan was read; run the command again", path.display()));
        }
        let tokenizer = Tokenizer::new(&files).map_err(|error| format!("{}: {error}", path.display()))?;
        let tokenizer = Arc::new(tokenizer);
        made.insert(digest.clone(), Arc::clone(&tokenizer));
        Ok(Some(tokenizer))
    }

    /// Returns the content of the files of a run's tokenizer, to send to another process; `None` if the run
    /// has no tokenizer, or if the server counts the tokens.
    pub(super) fn texts(&self, spec: &RunSpec) -> Result<Option<TokenizerTexts>, String> {
        let Some(path) = spec.model.tokenizer.as_ref().and_then(|digest| self.paths.get(digest)) else {
            return Ok(None);
        };
        let TokenizerFiles { tokenizer, config, template } =
            TokenizerFiles::read(&Disk, path).map_err(|error| error.to_string())?;
        let text = |bytes| String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8 text", path.display()));
        Ok(Some(TokenizerTexts {
            tokenizer: text(tokenizer)?,
            config: config.map(text).transpose()?,
            template: template.map(text).transpose()?,
        }))
    }

    fn taught(&self, question: &Question) -> Result<Option<Arc<Tokenizer>>, String> {
        let wrong = |error: ProbeError| format!("the server's tokens cannot be counted: {error}");
        let mut all = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let taught = match all.entry((question.route.to_string(), question.model.clone())) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let learned = Learned::from(question).map_err(wrong)?;
                new.insert(learned.map(|learned| Taught { learned, of_chats: None, of_texts: None }))
            }
        };
        let Some(Taught { learned, of_chats, of_texts }) = taught else { return Ok(None) };
        let framing = question.api.protocol().framing();
        let made = match framing {
            Framing::Chat => of_chats,
            Framing::Text => of_texts,
        };
        if made.is_none() {
            *made = Some(Arc::new(learned.tokenizer(framing).map_err(wrong)?));
        }
        Ok(made.clone())
    }
}
