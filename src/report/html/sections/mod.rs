//! The sections of a page, one file each. They convert results to blocks of text, tables and
//! figures.

mod capacity;
mod caveats;
mod classes;
mod comparison;
mod definitions;
mod disclosure;
mod distributions;
mod each_run;
mod first;
mod generator;
mod groups;
mod heatmap;
mod jitter;
mod loads;
mod over_load;
mod pareto;
mod paths;
mod percentiles;
mod runs;
mod stretches;
mod symptoms;
mod time;
mod timeline;
mod verdicts;

pub(super) use capacity::capacity;
pub(super) use classes::classes;
pub(super) use comparison::comparison;
pub(super) use definitions::definitions;
pub(super) use disclosure::disclosure;
pub(super) use distributions::distributions;
pub(super) use each_run::{RunPart, keys_drawn, parts};
pub(super) use first::first;
pub(super) use generator::generator;
pub(super) use heatmap::heatmap;
pub(super) use jitter::jitter;
pub(super) use loads::loads;
pub(super) use pareto::pareto;
pub(super) use paths::paths;
pub(super) use runs::{metrics, runs};
pub(super) use symptoms::symptoms;
pub(super) use time::time;
pub(super) use timeline::timeline;
pub(super) use verdicts::verdicts;
