//! sweepline: declarative, resumable sweeps of LLM-serving benchmarks.
//!
//! Data flows in one direction: a plan file becomes a `Plan` (`plan`), which expands into `RunSpec`s
//! (`expand`) and a graph (`graph`); the engine (`engine`) sends the requests that `workload` prepares and
//! writes rows (`rows`, stored by `store`); the `sweep` walks the graph; `analysis` turns rows into
//! numbers, `export` and `report` show them; `cli` is the program.

#![warn(missing_docs, unreachable_pub)]

pub use sweepline_analysis::analysis;
pub use sweepline_core::{
    dataset, engine, expand, graph, metrics, network, plan, protocol, rows, server, store, telemetry, tls, units,
    workers, workload,
};
pub use sweepline_mock::mock;

pub mod cli;
pub mod explain;
pub mod export;
pub mod import;
pub mod lint;
pub mod report;
pub mod submit;
pub mod sweep;
