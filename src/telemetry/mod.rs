//! Metrics of servers and their hardware, in the text formats of Prometheus and OpenMetrics. They are
//! parsed (`text`), mapped to canonical series (`canonical`, `engines`, `selector`, `page`), and scraped
//! during a run (`scrape`, `http`, `totals`), with the round trip to the server (`round_trip`). If no
//! page covers the GPUs of this machine, they are read here (`gpus`). This module is below `plan`,
//! because plans name canonical series; it depends neither on plans nor on the engine that generates the
//! load. See `docs/TELEMETRY.md`.

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
