//! Metrics of a server and its hardware over the window of a run. They are computed from the samples
//! scraped during the run; each has a unit, and a value or the reason why it is missing.
//!
//! Scrapes exist at the borders of the window and between them. A value at an instant between two
//! scrapes is interpolated; a mean over time is a trapezoidal integral. A failed scrape in the window
//! makes a figure null, because the values in between are unknown. A counter that fell also makes a
//! figure null, because the counter was reset.

mod derived;
mod energy;
mod figure;
mod finding;
pub(crate) mod foreign;
mod foreign_room;
mod foreign_underway;
pub(crate) mod hits;
mod launch;
mod parts;
mod pooled;
pub(crate) mod reasons;
mod restart;
mod round_trips;
mod scraped;
mod series;
mod shared;
mod told;

pub use energy::{EnergyBy, PerJoule, tokens_per_joule};
pub use figure::ServerFigure;
pub use parts::{Part, Whole};

use crate::rows::{Facts, Measured, Sample};
use crate::telemetry::canonical::CANONICAL;

use super::stalls::Stalls;

use scraped::Scraped;

/// Returns the figures of a run, in the order of the canonical table, followed by the figures that are
/// computed from several series; empty if nothing was scraped. `output_tokens` is the number of output
/// tokens in the window, and `reusable` is the share of its prompt tokens that requests have in
/// common.
pub fn figures(
    samples: &[Sample],
    facts: &Facts,
    output_tokens: Option<f64>,
    reusable: Option<f64>,
) -> Vec<ServerFigure> {
    let scraped = Scraped::of(samples, facts);
    if scraped.is_empty() {
        return Vec::new();
    }
    let mut figures: Vec<ServerFigure> = CANONICAL.iter().flat_map(|series| scraped.of_series(series)).collect();
    figures.extend(derived::figures(&scraped, output_tokens, reusable));
    figures.extend(scraped.round_trips.figures());
    figures
}

/// Identifies the launch of the server by what its pages report; `None` if they do not.
pub fn launch(samples: &[Sample], facts: &Facts) -> Option<String> {
    launch::started(&Scraped::of(samples, facts))
}

/// Returns the mean TTFT and the mean E2E of the requests that ended in the window, as sums of parts
/// reported by client and server. Empty if nothing was scraped, and for runs that measure a start.
pub fn wholes<E>(
    samples: &[Sample],
    rows: &[Measured],
    facts: &Facts,
    stalls: impl FnOnce() -> Result<Stalls, E>,
) -> Result<Vec<Whole>, E> {
    let scraped = Scraped::of(samples, facts);
    let is_told = || rows.iter().any(|row| !row.server_times().is_empty());
    if facts.start.is_some() || scraped.is_empty() && !is_told() {
        return Ok(Vec::new());
    }
    Ok(parts::wholes(&scraped, rows, facts, &stalls()?))
}

#[cfg(test)]
mod energy_tests;
#[cfg(test)]
mod tests;
