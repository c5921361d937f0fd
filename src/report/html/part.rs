//! Adds parts for single runs to a page, as many as fit, and links to these parts.

use indexmap::IndexMap;

use super::error::PageError;
use super::render;
use super::sections::{self, RunPart};
use super::sources::Sources;
use super::view::{Block, Page, Section, Table};

/// Maximum size of a page, in bytes. A page of this size is still quick to open and to send.
const MOST_BYTES: usize = 4_800_000;

/// If the parts together take at most this many bytes, the rest of the page is not measured, because a page
/// with so few runs is never too large.
const SMALL: usize = 400_000;

/// Size of a link to a part, with the lines around it, in bytes.
const AROUND: usize = 64;

/// Headings of columns that name runs.
const OF_RUNS: [&str; 2] = ["run", "id"];

/// Adds a section after the table of runs, with a part for each run, until no further part fits.
pub(super) fn add(page: &mut Page, sources: &Sources) -> Result<(), PageError> {
    let runs = sections::parts(sources);
    let Some(behind) = page.sections.iter().position(|section| section.id == "runs").filter(|_| !runs.is_empty())
    else {
        return Ok(());
    };
    let parts = render::parts(&runs)?;
    let all: usize = parts.iter().map(|part| part.len() + AROUND).sum();
    let room = if all <= SMALL { all } else { MOST_BYTES.saturating_sub(render::render(page)?.len()) };
    let sizes = parts.iter().scan(0, |used, part| {
        *used += part.len() + AROUND;
        Some(*used)
    });
    let count = sizes.take_while(|used| *used <= room).count();
    link(page, &runs[..count]);
    let parts = parts.into_iter().take(count).collect();
    let blocks = vec![Block::Text { text: said(count, runs.len(), sources) }, Block::Runs { parts }];
    page.sections.insert(behind + 1, Section { id: "each-run", title: "Each run", blocks });
    Ok(())
}

/// Returns the description of the section, which states how many runs are omitted.
fn said(count: usize, of: usize, sources: &Sources) -> String {
    let order = "Invalid runs come first, then suspect ones, those that were given up or cannot be read, those \
                 with the lowest and the highest figures, and then the rest in the order of the plan.";
    let prints = "Open parts are printed.";
    if count == of {
        return format!("A part for each run that has a result or a reason. {order} {prints}");
    }
    format!(
        "{count} runs have a part here; {} more have none, because the page would be too large: `{} ID` shows \
        each. {order} {prints}",
        of - count,
        sources.show
    )
}

/// Links the names of runs in tables to the parts for these runs. A name that two runs share gets no link.
fn link(page: &mut Page, runs: &[RunPart]) {
    let mut anchors: IndexMap<&str, Option<&str>> = IndexMap::new();
    for run in runs {
        anchors.entry(&run.short).and_modify(|anchor| *anchor = None).or_insert(Some(&run.anchor));
    }
    for table in page.sections.iter_mut().flat_map(|section| &mut section.blocks).filter_map(table) {
        let Some(at) = table.columns.iter().position(|column| OF_RUNS.contains(&column.title.as_str())) else {
            continue;
        };
        for cell in table.rows.iter_mut().filter_map(|row| row.get_mut(at)) {
            cell.link = anchors.get(cell.text.as_str()).copied().flatten().map(str::to_owned);
        }
    }
}

/// Returns the table of a block, if the block is a table. The tables of figures are not included, because
/// they are collapsed.
fn table(block: &mut Block) -> Option<&mut Table> {
    match block {
        Block::Table { table } => Some(table),
        _ => None,
    }
}
