//! Data sets that scenarios name, for their texts or for lengths: each is read once, however many scenarios name it in one way.

use std::path::PathBuf;

use crate::plan::files::data_reader::Reader;
use crate::plan::files::loader::Loader;
use crate::plan::model::plan::Plan;
use crate::plan::text::span::Span;
use crate::plan::text::tree::{Node, Step};

/// Reads the data sets that the plan's scenarios name.
pub(crate) fn find(plan: &mut Plan, tree: &Node, loader: &mut Loader<'_>) {
    let mut reader = Reader::default();
    for (name, scenario) in &mut plan.scenarios {
        if let Some(data) = scenario.data.as_mut().filter(|data| data.table().is_sound()) {
            let place = tree.walk(&["scenarios", name, "data", "file"].map(Step::from));
            if !place.broken {
                // Where the scenario says how much is asked for, a question needs no answer.
                let unanswered = scenario.max_completion_tokens.or(scenario.output_tokens).is_some();
                match reader.texts(&data.table(), unanswered, &place.span(), loader) {
                    Ok(source) => {
                        (data.found, data.lies_at) = (Some(source), lies_at(&data.file, &place.span(), loader))
                    }
                    Err(diagnostic) => loader.found.push((*diagnostic).at(Some(place.span())).with(place.related())),
                }
            }
        }
        let lengths = scenario.lengths.as_mut().and_then(|lengths| lengths.data.as_mut());
        if let Some(data) = lengths.filter(|data| data.table().is_sound()) {
            let place = tree.walk(&["scenarios", name, "lengths", "data", "file"].map(Step::from));
            if !place.broken {
                match reader.pairs(&data.table(), &place.span(), loader) {
                    Ok(found) => (data.found, data.lies_at) = (Some(found), lies_at(&data.file, &place.span(), loader)),
                    Err(diagnostic) => loader.found.push((*diagnostic).at(Some(place.span())).with(place.related())),
                }
            }
        }
    }
}

/// Where a file that was read lies, without links.
fn lies_at(written: &str, span: &Span, loader: &Loader<'_>) -> Option<PathBuf> {
    loader.locate(written, span).ok().map(|(_, canonical)| canonical)
}
