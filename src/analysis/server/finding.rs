//! What looking for a reason comes to, and whether anybody could look before the load.

use crate::analysis::state::State;

use super::scraped::Scraped;

/// What looking for one reason came to; an error says why nobody could look.
pub(super) type Finding = Result<Option<(State, String)>, String>;

/// What was scraped before the start of the run has its time.
pub(super) fn is_before_load(at: f64) -> bool {
    at <= 0.0
}

/// A page that was read before the load, and did not have what it has later, had none of it.
pub(super) fn before_load(scraped: &Scraped, page: u32) -> Result<(), String> {
    if let Some((_, why)) = scraped.failed(page).iter().find(|(at, _)| is_before_load(*at)) {
        return Err(format!("the scrape before the load failed ({why})"));
    }
    let is_read = scraped.read(page).iter().any(|at| is_before_load(*at));
    is_read.then_some(()).ok_or_else(|| "the scrape before the load was not over when that began".to_owned())
}

pub(super) fn suspect(text: String) -> Option<(State, String)> {
    Some((State::Suspect, text))
}
