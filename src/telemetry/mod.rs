//! What servers and their hardware say of themselves, in the text formats of Prometheus and OpenMetrics: read (`text`), taken for the
//! canonical series that it is (`canonical`, `engines`, `selector`, `page`), and scraped beside a run (`scrape`, `http`, `totals`), with the round
//! trip to the server (`round_trip`); where no page has the GPUs of this machine they are read here (`gpus`). It lies below
//! `plan`, for a plan names canonical series; it knows neither plans nor the engine that makes the load. `docs/TELEMETRY.md` is its page.

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
