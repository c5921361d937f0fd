//! Reads the profiles that scenarios replay.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::dataset::profile::Profile;
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::files::loader::Loader;
use crate::plan::files::tables::Found;
use crate::plan::model::profiled::Profiled;
use crate::plan::model::profiled::file::ProfileFile;
use crate::plan::text::span::Span;
use crate::units::regular_file;

/// Maximum size of a profile in bytes. A profile with 500 stretches of time is about 50 kB in size.
const MOST_BYTES: usize = 16 << 20;

/// The profiles of a plan, each read once.
#[derive(Default)]
pub(crate) struct Profiles {
    known: HashMap<PathBuf, Profile>,
}

impl Profiles {
    /// The content of a scenario's profile, replayed at the scenario's speed.
    pub(crate) fn read(&mut self, file: &ProfileFile, span: &Span, loader: &Loader<'_>) -> Found<Arc<Profiled>> {
        let written = file.file.written();
        let (path, canonical) = loader.locate(written, span)?;
        let no_profile = |what: String| {
            let remedy = "write one with `sweepline dataset profile LOG -o profile.json`";
            Box::new(Diagnostic::new(Code::File, format!("`{written}` is not a profile: {what}")).remedy(remedy))
        };
        if !self.known.contains_key(&canonical) {
            let bytes = loader.files().read(&path, MOST_BYTES + 1).map_err(|error| {
                let message = format!("the profile `{written}` cannot be read: {error}");
                Box::new(Diagnostic::new(Code::File, message).remedy(regular_file::remedy(&error)))
            })?;
            if bytes.len() > MOST_BYTES {
                return Err(no_profile(format!("it has more than {MOST_BYTES} bytes")));
            }
            let profile = serde_json::from_slice(&bytes).map_err(|error| no_profile(error.to_string()))?;
            self.known.insert(canonical.clone(), profile);
        }
        let profiled = Profiled::new(&self.known[&canonical], file.speed).map_err(no_profile)?;
        Ok((Arc::new(profiled), canonical))
    }
}
