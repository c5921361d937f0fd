//! Figures that are computed from several series: shares, energy and energy per token.

use crate::telemetry::canonical::{Canonical, Unit, canonical};

use super::figure::ServerFigure;
use super::reasons::HARMLESS;
use super::scraped::Scraped;
use super::series::Together;

/// Names of the two energy figures. One is computed from the growth of counters, the other from the
/// integral of power.
pub(super) const BY_COUNTER: &str = "energy_by_counter";
pub(super) const BY_POWER: &str = "energy_by_power";
/// Name of the figure for output tokens per joule.
pub(super) const PER_JOULE: &str = "tokens_per_joule";

/// Computes the figures that the scraped series allow.
pub(super) fn figures(scraped: &Scraped, output_tokens: Option<f64>, reusable: Option<f64>) -> Vec<ServerFigure> {
    let share = |name: &str, part: &str, whole: &str, doc: &str| {
        let both = of(scraped, part).zip(of(scraped, whole))?;
        Some(ServerFigure::new(name, Unit::Share, doc, ratio(&both)))
    };
    let hits = share(
        "prefix_hit_share",
        "prefix_cache_hits",
        "prefix_cache_queries",
        "Share of the prompt tokens looked up in the prefix cache in the window that were found there.",
    );
    let shared = hits.as_ref().map(|_| {
        let doc = "Share of the window's prompt tokens that belong to a prefix shared with earlier requests of the \
                   run: \
                   the maximum that a prefix cache can find.";
        let value = reusable.ok_or_else(|| "the shared prefixes of some requests are unknown".to_owned());
        ServerFigure::new("prefix_reusable_share", Unit::Share, doc, value)
    });
    let accepted = share(
        "spec_accepted_share",
        "spec_accepted",
        "spec_drafts",
        "Share of the tokens proposed by speculative decoding in the window that were accepted.",
    );
    let energy = energy(scraped);
    let per_token = energy.as_ref().map(|energy| per_token(energy, output_tokens));
    let per_joule = energy.as_ref().map(|energy| per_joule(energy, output_tokens));
    let all = [hits, shared, accepted, cpu(scraped), throttled(scraped), energy, per_token, per_joule];
    all.into_iter().flatten().collect()
}

fn of(scraped: &Scraped, key: &str) -> Option<Together> {
    let series: &Canonical = canonical(key)?;
    scraped.series(key, series)
}

fn ratio((part, whole): &(Together, Together)) -> Result<f64, String> {
    match (part.growth()?, whole.growth()?) {
        (_, 0.0) => Err("nothing was counted in the window".to_owned()),
        (part, whole) => Ok(part / whole),
    }
}

fn cpu(scraped: &Scraped) -> Option<ServerFigure> {
    let both = of(scraped, "cpu_idle_seconds").zip(of(scraped, "cpu_seconds"))?;
    let doc = "Share of the host's CPU time in the window that was used.";
    Some(ServerFigure::new("cpu_used_share", Unit::Share, doc, ratio(&both).map(|idle| 1.0 - idle)))
}

fn throttled(scraped: &Scraped) -> Option<ServerFigure> {
    let reasons = of(scraped, "gpu_throttle_reasons")?;
    let doc = "Share of the scrapes in the window at which a GPU's clock was lowered by power, heat or hardware.";
    let value = reasons.share(|mask| mask as u64 & !HARMLESS != 0);
    Some(ServerFigure::new("gpu_throttled_share", Unit::Share, doc, value))
}

/// Returns the energy of all GPUs, from the counter if there is one, or else from the integral of the
/// power. The name of the figure states which of the two was used; `None` if there is neither.
fn energy(scraped: &Scraped) -> Option<ServerFigure> {
    if let Some(counter) = of(scraped, "gpu_energy_joules") {
        let doc = "Energy of all GPUs in the window, by their counters.";
        return Some(ServerFigure::new(BY_COUNTER, Unit::Joules, doc, counter.growth()));
    }
    let power = of(scraped, "gpu_power_watts")?;
    let doc = "Energy of all GPUs in the window: the trapezoidal integral of their power, because there is no \
              counter.";
    Some(ServerFigure::new(BY_POWER, Unit::Joules, doc, power.integral()))
}

fn per_joule(energy: &ServerFigure, output_tokens: Option<f64>) -> ServerFigure {
    let value = energy.value.clone().and_then(|joules| match output_tokens {
        None => Err("the number of output tokens is unknown".to_owned()),
        Some(_) if joules <= 0.0 => Err("no energy was counted in the window".to_owned()),
        Some(tokens) => Ok(tokens / joules),
    });
    let doc = "Output tokens that the client received in the window per joule of all GPUs.";
    ServerFigure::new(PER_JOULE, Unit::TokensPerJoule, doc, value)
}

fn per_token(energy: &ServerFigure, output_tokens: Option<f64>) -> ServerFigure {
    let value = energy.value.clone().and_then(|joules| match output_tokens {
        Some(tokens) if tokens > 0.0 => Ok(joules / tokens),
        _ => Err("no output token in the window".to_owned()),
    });
    let doc = "Energy of all GPUs in the window per output token that the client received in the window.";
    ServerFigure::new("joules_per_output_token", Unit::Joules, doc, value)
}
