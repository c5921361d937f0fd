//! The result of checking a reason, and whether the check covers the time before the load.

use crate::analysis::state::State;

use super::scraped::Scraped;

/// The result of checking one reason; an error states why the check was not possible.
pub(super) type Finding = Result<Option<(State, String)>, String>;

/// Returns whether a sample with this timestamp, in seconds, was taken before the load began.
pub(super) fn is_before_load(at: f64) -> bool {
    at <= 0.0
}

/// Returns an error if the page was not read before the load. If it was read, a series that appears
/// only later did not exist before the load.
pub(super) fn before_load(scraped: &Scraped, page: u32) -> Result<(), String> {
    if let Some((_, why)) = scraped.failed(page).iter().find(|(at, _)| is_before_load(*at)) {
        return Err(format!("the scrape before the load failed ({why})"));
    }
    let is_read = scraped.read(page).iter().any(|at| is_before_load(*at));
    is_read.then_some(()).ok_or_else(|| "the scrape before the load had not finished when the load began".to_owned())
}

pub(super) fn suspect(text: String) -> Option<(State, String)> {
    Some((State::Suspect, text))
}
