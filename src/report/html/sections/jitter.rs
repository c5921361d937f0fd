//! The section on the evenness of token arrivals: the jitter ratio against the load, with marks that
//! describe its values.

use super::super::error::PageError;
use super::super::sources::Sources;
use super::super::view::{Block, Found, Missing, Section};
use super::groups::groups;
use super::over_load::OverLoad;
use crate::analysis::curve::Ordinate;
use crate::metrics::{JITTER_MARKS, ScaleMark};
use crate::units::text::counted;

const TITLE: &str = "Evenness of the stream";

/// Maximum number of figures in this section.
const MOST_FIGURES: usize = 6;

/// Builds the section, or states why it is missing.
pub(crate) fn jitter(sources: &Sources) -> Result<Found, PageError> {
    let Some(reading) = Ordinate::named("jitter_ratio") else { return Ok(Err(missing())) };
    let curves = sources.curves;
    let (mut figures, mut left) = (Vec::new(), 0);
    for (number, group) in groups(curves).into_iter().enumerate() {
        let rungs = || group.members.iter().flat_map(|at| &curves[*at].rungs);
        if !rungs().any(|rung| rung.figure(reading).is_some()) {
            continue;
        }
        let one = OverLoad {
            plan: sources.plan,
            curves,
            group: &group,
            reading,
            prefix: "jitter",
            is_judged: true,
            marks: &JITTER_MARKS,
        };
        if figures.len() >= MOST_FIGURES {
            left += 1;
            continue;
        }
        figures.extend(one.figure(number)?);
    }
    if figures.is_empty() {
        return Ok(Err(missing()));
    }
    let marks: Vec<String> = JITTER_MARKS.iter().map(ScaleMark::said).collect();
    let text = format!(
        "Ratio of the longest of a hundred gaps between tokens to the typical one: p99(ITL) ÷ p50(ITL). It shows how \
         even a stream feels, regardless of its speed: {}.",
        marks.join(", ")
    );
    let heading = Block::Heading { text: "Jitter ratio over load".to_owned() };
    let mut blocks = vec![Block::Text { text }, heading, Block::Figures { figures }];
    if left > 0 {
        let left = counted(left, "more figure");
        blocks.push(Block::Text {
            text: format!("{left} would make the page too large: `sweepline export --rows curves` has every number."),
        });
    }
    Ok(Ok(Section { id: "jitter", title: TITLE, blocks }))
}

fn missing() -> Missing {
    let why =
        "no counted run has enough gaps between tokens for p50 and p99 of ITL, on which the jitter ratio is based";
    Missing { title: TITLE, why: why.to_owned() }
}
