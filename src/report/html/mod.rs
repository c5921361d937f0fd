//! The report: one self-contained HTML file, created from results that were already computed.
//!
//! `sections` convert `sources` to data (`view`), `chart` draws, and `render` inserts both into the
//! templates, which escape texts. This module reads no files and computes no statistics.

mod chart;
mod error;
mod naming;
mod part;
mod picture;
mod render;
mod sections;
mod sources;
#[cfg(test)]
mod tests;
mod view;
mod watched;

use indexmap::IndexSet;

pub(crate) use error::PageError;
pub(crate) use picture::{PICTURE_MARK, Pictures};
pub(crate) use sources::{
    Calibrated, Chosen, ClassCurves, MeasuredRun, RepeatSpread, RunWithout, Sources, Span, SpanKind, Spread,
};
pub(crate) use watched::{LIVE_PLACE, LiveView, Watched, live, waiting};

use crate::report::format::plain;
use view::{Block, Figure, Found, Page, Section};

/// A report that has not been written yet.
pub(crate) struct Report {
    page: Page,
}

/// A figure as a separate file.
pub(crate) struct FigureFile {
    /// The name of the file, without its extension.
    pub(crate) name: String,
    /// The finding that the figure shows.
    pub(crate) title: String,
    /// The figure as an SVG document.
    pub(crate) svg: String,
}

impl Report {
    /// Creates the report of a plan's results.
    pub(crate) fn of(sources: &Sources) -> Result<Report, PageError> {
        let all: Vec<Found> = vec![
            sections::loads(sources)?,
            sections::jitter(sources)?,
            sections::heatmap(sources)?,
            sections::comparison(sources)?,
            sections::classes(sources)?,
            sections::pareto(sources)?,
            sections::capacity(sources)?,
            sections::distributions(sources)?,
            sections::time(sources)?,
            sections::symptoms(sources),
            sections::verdicts(sources),
            sections::timeline(sources)?,
            sections::runs(sources),
            sections::generator(sources)?,
            sections::disclosure(sources),
        ];
        let (mut there, mut missing): (Vec<Section>, _) = (sections::paths(sources)?.into_iter().collect(), Vec::new());
        for found in all {
            match found {
                Ok(section) => there.push(section),
                Err(why) => missing.push(why),
            }
        }
        there.push(sections::definitions(&metrics_of(&there, sources)));
        let (title, made) = (plain(&sources.plan.name), plain(&sources.made));
        let mut page = Page { title, made, first: sections::first(sources), sections: there, missing };
        part::add(&mut page, sources)?;
        Ok(Report { page })
    }

    /// Renders the whole report as one HTML file.
    pub(crate) fn html(&self) -> Result<String, PageError> {
        Ok(render::render(&self.page)?)
    }

    /// Renders the page served while a sweep runs, with a placeholder for its current state.
    pub(crate) fn watched(&self) -> Result<Watched, PageError> {
        Ok(Watched { html: render::watched(&self.page, LIVE_PLACE)? })
    }

    /// Renders each figure as a separate file.
    pub(crate) fn figures(&self) -> Result<Vec<FigureFile>, PageError> {
        let of = |figure: &Figure| {
            let svg = render::figure(figure, &self.page.made)?;
            Ok(FigureFile { name: figure.id.clone(), title: figure.title.clone(), svg })
        };
        figures(&self.page.sections).map(of).collect()
    }
}

fn figures(sections: &[Section]) -> impl Iterator<Item = &Figure> {
    let blocks = sections.iter().flat_map(|section| &section.blocks);
    let figures = blocks.filter_map(|block| match block {
        Block::Figures { figures } => Some(figures),
        _ => None,
    });
    figures.flatten()
}

/// Returns the keys of all metrics that the report shows.
fn metrics_of(sections: &[Section], sources: &Sources) -> IndexSet<&'static str> {
    let linked = figures(sections).filter_map(|figure| Some(figure.metric.as_ref()?.key));
    linked.chain(sections::metrics(sources)).chain(sections::keys_drawn(sources)).collect()
}
