//! The sections of a page, a file each: results to blocks of text, tables and figures.

mod capacity;
mod comparison;
mod definitions;
mod disclosure;
mod distributions;
mod each_run;
mod first;
mod groups;
mod heatmap;
mod jitter;
mod loads;
mod over_load;
mod runs;
mod stretches;
mod symptoms;
mod timeline;
mod verdicts;

pub(super) use capacity::capacity;
pub(super) use comparison::comparison;
pub(super) use definitions::definitions;
pub(super) use disclosure::disclosure;
pub(super) use distributions::distributions;
pub(super) use each_run::{RunPart, parts};
pub(super) use first::first;
pub(super) use heatmap::heatmap;
pub(super) use jitter::jitter;
pub(super) use loads::loads;
pub(super) use runs::{metrics, runs};
pub(super) use symptoms::symptoms;
pub(super) use timeline::timeline;
pub(super) use verdicts::verdicts;
