//! The components of a sweep: from plans and runs to the load engine, its rows and the store. The modules
//! are in folders next to this one. They form a separate crate so that an edit in `analysis`, `report` or
//! `cli` does not recompile them.

#![warn(missing_docs, unreachable_pub)]

#[path = "../dataset/mod.rs"]
pub mod dataset;
#[path = "../engine/mod.rs"]
pub mod engine;
#[path = "../expand/mod.rs"]
pub mod expand;
#[path = "../graph/mod.rs"]
pub mod graph;
#[path = "../metrics/mod.rs"]
pub mod metrics;
#[path = "../network/mod.rs"]
pub mod network;
#[path = "../plan/mod.rs"]
pub mod plan;
#[path = "../protocol/mod.rs"]
pub mod protocol;
#[path = "../rows/mod.rs"]
pub mod rows;
#[path = "../server/mod.rs"]
pub mod server;
#[path = "../store/mod.rs"]
pub mod store;
#[path = "../telemetry/mod.rs"]
pub mod telemetry;
#[path = "../tls/mod.rs"]
pub mod tls;
#[path = "../units/mod.rs"]
pub mod units;
#[path = "../workers/mod.rs"]
pub mod workers;
#[path = "../workload/mod.rs"]
pub mod workload;
