//! Finds the files that a plan names. Each file is read once, however often the plan names it.

use std::path::PathBuf;

use crate::plan::files::data_reader::DataReader;
use crate::plan::files::loader::Loader;
use crate::plan::files::profiles::Profiles;
use crate::plan::files::tables::Found;
use crate::plan::files::tokenizers::Tokenizers;
use crate::plan::files::traces::Traces;
use crate::plan::model::file_ref::FileRef;
use crate::plan::model::plan::Plan;
use crate::plan::text::span::Span;
use crate::plan::text::tree::{Node, Step};

/// The plan written in `tree`, with the content of the files that it names; unreadable files are
/// reported to the loader. Files that `check` rejects anyway are not searched.
pub(crate) fn find(written: &Plan, tree: &Node, loader: &mut Loader<'_>) -> Plan {
    let mut plan = written.clone();
    let (mut traces, mut data, mut profiles) = (Traces::default(), DataReader::default(), Profiles::default());
    let mut finder = Finder { tree, loader };
    for (name, scenario) in &mut plan.scenarios {
        let at = |inside: &[&str]| {
            let path = ["scenarios", name].into_iter().chain(inside.iter().copied());
            path.map(Step::from).collect::<Vec<_>>()
        };
        if let Some(trace) = scenario.trace.as_mut().filter(|trace| trace.is_sound()) {
            let found = finder.read(&at(&["trace", "file"]), |span, loader| traces.read(trace, span, loader));
            finder.put(&mut trace.file, found);
        }
        // If the scenario sets the output length, a question needs no response.
        let unanswered = scenario.asked_tokens().is_some();
        if let Some(file) = scenario.data.as_mut().filter(|data| data.table().is_sound()) {
            let table = file.table();
            let found =
                finder.read(&at(&["data", "file"]), |span, loader| data.texts(&table, unanswered, span, loader));
            finder.put(&mut file.file, found);
        }
        let lengths = scenario.lengths.as_mut().and_then(|lengths| lengths.data.as_mut());
        if let Some(file) = lengths.filter(|data| data.table().is_sound()) {
            let table = file.table();
            let found = finder.read(&at(&["lengths", "data", "file"]), |span, loader| data.pairs(&table, span, loader));
            finder.put(&mut file.file, found);
        }
        if let Some(profile) = scenario.profile.as_mut().filter(|profile| profile.speed.is_positive()) {
            let found = finder.read(&at(&["profile", "file"]), |span, loader| profiles.read(profile, span, loader));
            finder.put(&mut profile.file, found);
        }
    }
    let mut tokenizers = Tokenizers::default();
    for (name, model) in &mut plan.models {
        let Some(tokenizer) = model.tokenizer.as_mut().filter(|tokenizer| !tokenizer.is_server()) else { continue };
        let at = ["models", name, "tokenizer"].map(Step::from);
        let found = finder.read(&at, |span, loader| tokenizers.read(tokenizer.0.written(), span, loader));
        finder.put(&mut tokenizer.0, found);
    }
    plan
}

struct Finder<'a, 'l> {
    tree: &'a Node,
    loader: &'a mut Loader<'l>,
}

impl<'l> Finder<'_, 'l> {
    /// Reads a file that is named at a path of the plan; `None` if it cannot be read, or if an error
    /// has already been reported for the value that names it.
    fn read<T>(&mut self, at: &[Step], read: impl FnOnce(&Span, &Loader<'l>) -> Found<T>) -> Option<(T, PathBuf)> {
        let place = self.tree.walk(at);
        if place.broken {
            return None;
        }
        let span = place.span();
        match read(&span, self.loader) {
            Ok(found) => Some(found),
            Err(diagnostic) => {
                self.loader.found.push((*diagnostic).at(Some(span)).with(place.related()));
                None
            }
        }
    }

    fn put<T>(&self, file: &mut FileRef<T>, found: Option<(T, PathBuf)>) {
        if let Some((found, lies_at)) = found {
            file.put(found, lies_at);
        }
    }
}
