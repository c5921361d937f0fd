//! sweepline: declarative, resumable sweeps of LLM-serving benchmarks.
//!
//! Data goes one way: a plan file becomes a `Plan` (`plan`), which expands into `RunSpec`s (`expand`) and a graph
//! (`graph`); the engine (`engine`) sends what `workload` prepares and writes rows (`rows`, kept by `store`); the
//! `sweep` walks the graph; `analysis` turns rows into numbers, `export` and `report` show them; `cli` is the program.

#![warn(missing_docs)]

pub mod units;

pub mod analysis;
pub mod cli;
pub mod dataset;
pub mod engine;
pub mod expand;
pub mod explain;
pub mod export;
pub mod graph;
pub mod import;
pub mod lint;
pub mod metrics;
pub mod mock;
pub mod plan;
pub mod report;
pub mod rows;
pub mod server;
pub mod store;
pub mod sweep;
pub mod workload;
