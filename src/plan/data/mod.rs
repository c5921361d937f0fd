//! Data sets in plans: scenarios that send their texts, and lengths that are drawn from them.
//!
//! When a plan is loaded each file is read once, however many scenarios name it in one way. What was made of it (texts, or
//! pairs of lengths) is part of what a run is; the file's place is not.

mod corpus;
mod laid;
mod pairs;
mod read;
mod told;
mod written;

pub use corpus::{Asked, Corpus, Dialogue, LeftOut, Means, Order, Source};
pub use pairs::LengthsFile;
pub use told::{DataNote, data_notes};
pub(super) use written::TableOf;
pub use written::{Bounds, DataFile, DataFilter};

use super::load::Loader;
use super::model::Plan;
use super::tree::{Node, Step};
use read::Reader;

/// Reads the data sets that the plan's scenarios name.
pub(super) fn find(plan: &mut Plan, tree: &Node, loader: &mut Loader<'_>) {
    let mut reader = Reader::default();
    for (name, scenario) in &mut plan.scenarios {
        if let Some(data) = scenario.data.as_mut().filter(|data| data.table().is_sound()) {
            let place = tree.walk(&["scenarios", name, "data", "file"].map(Step::from));
            if !place.broken {
                // Where the scenario says how much is asked for, a question needs no answer.
                let unanswered = scenario.output_tokens.is_some();
                match reader.texts(&data.table(), unanswered, &place.span(), loader) {
                    Ok(source) => data.found = Some(source),
                    Err(diagnostic) => loader.found.push((*diagnostic).at(Some(place.span())).with(place.related())),
                }
            }
        }
        let lengths = scenario.lengths.as_mut().and_then(|lengths| lengths.data.as_mut());
        if let Some(data) = lengths.filter(|data| data.table().is_sound()) {
            let place = tree.walk(&["scenarios", name, "lengths", "data", "file"].map(Step::from));
            if !place.broken {
                match reader.pairs(&data.table(), &place.span(), loader) {
                    Ok(found) => data.found = Some(found),
                    Err(diagnostic) => loader.found.push((*diagnostic).at(Some(place.span())).with(place.related())),
                }
            }
        }
    }
}
