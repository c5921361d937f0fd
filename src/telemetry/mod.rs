//! Metrics of servers and their hardware, in the text formats of Prometheus and OpenMetrics. They are
//! scraped during a run (`scrape`, `http`, `totals`), parsed (`text`), and mapped to canonical series
//! (`canonical`, `engines`, `selector`, `page`). The round trip to the server is also measured
//! (`round_trip`). If no page covers the GPUs of this machine, this module reads them (`gpus`). The module
//! `plan` depends on this module, because plans name canonical series. This module depends neither on plans
//! nor on the engine that generates the load. See `docs/TELEMETRY.md`.

pub mod canonical;
#[cfg(test)]
mod docs;
pub mod engines;
mod gap;
mod gathered;
pub mod gpus;
pub mod http;
pub mod page;
pub mod round_trip;
pub mod scrape;
pub mod selector;
pub mod text;
mod totals;
