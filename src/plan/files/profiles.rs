//! Profiles that scenarios replay: each file is read once, however many scenarios name it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::dataset::profile::Profile;
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::files::loader::Loader;
use crate::plan::model::plan::Plan;
use crate::plan::model::profiled::Profiled;
use crate::plan::model::profiled::file::ProfileFile;
use crate::plan::text::span::Span;
use crate::plan::text::tree::{Node, Step};

/// Bytes of the largest profile that is read; one of 500 stretches has some 50 kB.
const MOST_BYTES: usize = 16 << 20;

/// Reads the profiles that the plan's scenarios name; each is read once, however many scenarios name it.
pub(crate) fn find(plan: &mut Plan, tree: &Node, loader: &mut Loader<'_>) {
    let mut known: HashMap<PathBuf, Profile> = HashMap::new();
    for (name, scenario) in &mut plan.scenarios {
        let Some(file) = scenario.profile.as_mut().filter(|file| file.speed.is_positive()) else { continue };
        let place = tree.walk(&["scenarios", name, "profile", "file"].map(Step::from));
        if place.broken {
            continue;
        }
        match read(file, &place.span(), loader, &mut known) {
            Ok((found, path)) => (file.found, file.lies_at) = (Some(Arc::new(found)), Some(path)),
            Err(diagnostic) => loader.found.push((*diagnostic).at(Some(place.span())).with(place.related())),
        }
    }
}

fn read(
    file: &ProfileFile,
    span: &Span,
    loader: &Loader<'_>,
    known: &mut HashMap<PathBuf, Profile>,
) -> Result<(Profiled, PathBuf), Box<Diagnostic>> {
    let written = &file.file;
    let (path, canonical) = loader.locate(written, span)?;
    let no_profile = |what: String| {
        let remedy = "write one with `sweepline dataset profile LOG -o profile.json`";
        Box::new(Diagnostic::new(Code::File, format!("`{written}` is no profile: {what}")).remedy(remedy))
    };
    if !known.contains_key(&canonical) {
        let bytes = loader.files().read(&path, MOST_BYTES + 1).map_err(|error| {
            let message = format!("the profile `{written}` cannot be read: {error}");
            Box::new(Diagnostic::new(Code::File, message).remedy("check the path and its permissions"))
        })?;
        if bytes.len() > MOST_BYTES {
            return Err(no_profile(format!("it has more than {MOST_BYTES} bytes")));
        }
        let profile = serde_json::from_slice(&bytes).map_err(|error| no_profile(error.to_string()))?;
        known.insert(canonical.clone(), profile);
    }
    let profiled = Profiled::new(&known[&canonical], file.speed).map_err(no_profile)?;
    Ok((profiled, canonical))
}
