//! The report: one HTML file that asks nobody, from results that were computed before.
//!
//! `sections` make data (`view`) of `sources`, `chart` draws, `render` puts both into the templates, which escape. Nothing here reads a
//! file or computes a statistic.

mod chart;
mod error;
mod naming;
mod render;
mod sections;
mod sources;
#[cfg(test)]
mod tests;
mod view;

use indexmap::IndexSet;

pub(crate) use error::PageError;
pub(crate) use sources::{MeasuredRun, RunWithout, Sources, Spread};

use crate::report::format::plain;
use view::{Block, Found, Page, Section};

/// The page of a plan's results.
pub(crate) fn page(sources: &Sources) -> Result<String, PageError> {
    let all: Vec<Found> = vec![
        sections::loads(sources)?,
        sections::comparison(sources)?,
        sections::capacity(sources),
        sections::distributions(sources)?,
        sections::symptoms(sources),
        sections::verdicts(sources),
        sections::runs(sources),
        sections::disclosure(sources),
    ];
    let (mut there, mut missing) = (Vec::new(), Vec::new());
    for found in all {
        match found {
            Ok(section) => there.push(section),
            Err(why) => missing.push(why),
        }
    }
    there.push(sections::definitions(&metrics_of(&there)));
    let page = Page {
        title: plain(&sources.plan.name),
        made: plain(&sources.made),
        first: sections::first(sources),
        sections: there,
        missing,
    };
    Ok(render::render(&page)?)
}

/// The keys of every metric that is shown.
fn metrics_of(sections: &[Section]) -> IndexSet<&'static str> {
    let figures = sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
        Block::Figures { figures } => Some(figures),
        _ => None,
    });
    let linked = figures.flatten().filter_map(|figure| Some(figure.metric.as_ref()?.key));
    linked.chain(sections::METRICS).collect()
}
