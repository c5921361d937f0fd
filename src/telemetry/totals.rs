//! Computes how much the servers' counters on all pages increased from the first scrape to the last, for
//! comparison with the client's counts.

use super::page::Reading;
use crate::rows::Counted;

/// Canonical names of the counters that are tracked.
const FOLLOWED: [&str; 3] = ["requests_succeeded", "generation_tokens", "requests_failed"];

/// The counters of all pages, with their values in the first and the latest scrape.
#[derive(Debug)]
pub(super) struct Totals {
    pages: Vec<Page>,
}

/// The counters of one page.
#[derive(Debug, Clone, Default)]
struct Page {
    scrapes: u64,
    /// Whether the first scrape of the page failed.
    first_failed: bool,
    /// Whether the latest scrape of the page failed.
    last_failed: bool,
    counters: [Counter; FOLLOWED.len()],
}

/// One counter of one page.
#[derive(Debug, Clone, Copy, Default)]
struct Counter {
    first: Option<f64>,
    last: Option<f64>,
    has_fallen: bool,
    /// Whether the counter was present in a scrape and missing in a later one.
    is_partial: bool,
}

impl Totals {
    /// Creates empty totals for this many pages.
    pub(super) fn new(pages: usize) -> Totals {
        Totals { pages: vec![Page::default(); pages] }
    }

    /// Adds a scrape of a page; `reading` is `None` if the scrape failed.
    pub(super) fn take(&mut self, page: usize, reading: Option<&Reading>) {
        let Some(page) = self.pages.get_mut(page) else { return };
        let is_first = page.scrapes == 0;
        page.scrapes += 1;
        page.last_failed = reading.is_none();
        page.first_failed |= is_first && reading.is_none();
        let Some(reading) = reading else { return };
        for (counter, key) in page.counters.iter_mut().zip(FOLLOWED) {
            counter.take(reading.get(key), is_first);
        }
    }

    /// Returns how many requests the servers have completed according to the latest scrape; `None` if the
    /// latest scrape of a page failed, or if no page reports this number.
    pub(super) fn now(&self) -> Option<f64> {
        let has_it = |page: &&Page| page.counters[0].last.is_some();
        let said: Vec<f64> = self.pages.iter().filter(has_it).filter_map(|page| page.counters[0].last).collect();
        let all_read = self.pages.iter().all(|page| !page.last_failed);
        (all_read && !said.is_empty()).then(|| said.iter().sum())
    }

    /// Returns the counts over all scrapes.
    pub(super) fn counted(&self) -> Counted {
        // A page without any tracked counter, such as a page of GPUs, is ignored.
        let counting: Vec<&Page> =
            self.pages.iter().filter(|page| page.counters.iter().any(|counter| counter.last.is_some())).collect();
        let silent = self.pages.iter().any(|page| page.first_failed && page.counters.iter().all(Counter::is_unseen));
        let failed = silent || counting.iter().any(|page| page.first_failed || page.last_failed);
        let restarted = counting.iter().any(|page| page.counters.iter().any(|counter| counter.has_fallen));
        let unknown = match (restarted, failed) {
            (true, _) => Some("a counter of the server fell during the run"),
            (false, true) => Some("the scrape before the load or the one after it failed"),
            (false, false) => None,
        };
        let grown = |at: usize| {
            let grown: Option<Vec<f64>> = counting.iter().map(|page| page.counters[at].grown()).collect();
            grown.filter(|grown| !grown.is_empty() && unknown.is_none()).map(|grown| grown.iter().sum())
        };
        let [requests, generation_tokens, failed] = [grown(0), grown(1), grown(2)];
        Counted { requests, failed, generation_tokens, unknown: unknown.map(str::to_owned), restarted }
    }
}

impl Counter {
    /// Adds the value of the counter in a scrape; `value` is `None` if the counter is missing. A counter with
    /// labels appears on the page with its first event, so a counter that was missing in the first scrape is
    /// assumed to have started at 0.
    fn take(&mut self, value: Option<f64>, is_first: bool) {
        let Some(value) = value else {
            self.is_partial |= self.last.is_some();
            return;
        };
        if self.first.is_none() {
            self.first = Some(if is_first { value } else { 0.0 });
        }
        self.has_fallen |= self.last.is_some_and(|last| value < last);
        self.last = Some(value);
    }

    fn is_unseen(&self) -> bool {
        self.last.is_none()
    }

    fn grown(&self) -> Option<f64> {
        (!self.is_partial).then_some(self.last? - self.first?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::canonical::canonical;

    fn page(requests: f64, tokens: f64) -> Reading {
        let values = [("requests_succeeded", requests), ("generation_tokens", tokens)];
        let canonical = values.map(|(key, value)| (canonical(key).unwrap(), "", value)).to_vec();
        Reading { canonical, ..Reading::default() }
    }

    fn counted(pages: &[&[Option<Reading>]]) -> Counted {
        let mut totals = Totals::new(pages.len());
        for (at, readings) in pages.iter().enumerate() {
            readings.iter().for_each(|reading| totals.take(at, reading.as_ref()));
        }
        totals.counted()
    }

    #[test]
    fn replicas_add_up_and_pages_of_gpus_take_no_part() {
        let one = [Some(page(5.0, 50.0)), Some(page(15.0, 250.0))];
        let other = [Some(page(0.0, 0.0)), Some(page(3.0, 30.0))];
        let gpus = [Some(Reading::default()), Some(Reading::default())];
        let found = counted(&[&one, &other, &gpus]);
        let wanted = Counted { requests: Some(13.0), generation_tokens: Some(230.0), ..Counted::default() };
        assert_eq!(found, wanted);
    }

    #[test]
    fn what_failed_is_counted_where_all_pages_tell_it() {
        let with = |failed: f64| {
            let mut page = page(5.0, 50.0);
            page.canonical.push((canonical("requests_failed").unwrap(), "", failed));
            Some(page)
        };
        let telling = [with(1.0), with(4.0)];
        let silent = [Some(page(5.0, 50.0)), Some(page(5.0, 50.0))];
        assert_eq!(counted(&[&telling]).failed, Some(3.0));
        assert_eq!(counted(&[&telling, &silent]).failed, None);
    }

    #[test]
    fn what_falls_is_a_restart_and_never_negative() {
        let found = counted(&[&[Some(page(5.0, 50.0)), Some(page(2.0, 20.0)), Some(page(9.0, 90.0))]]);
        assert_eq!((found.requests, found.restarted), (None, true));
        assert_eq!(found.unknown.as_deref(), Some("a counter of the server fell during the run"));
    }

    #[test]
    fn a_gap_under_way_hides_nothing_and_one_at_an_end_all() {
        let inside = [Some(page(5.0, 50.0)), None, Some(page(9.0, 90.0))];
        assert_eq!(counted(&[&inside]).requests, Some(4.0));
        for ends in [[None, Some(page(9.0, 90.0))], [Some(page(5.0, 50.0)), None]] {
            let found = counted(&[&ends]);
            assert!(found.requests.is_none() && found.unknown.is_some() && !found.restarted);
        }
        assert_eq!(counted(&[&[None, None]]).requests, None);
    }

    #[test]
    fn a_counter_that_comes_with_its_first_event_was_0() {
        let found = counted(&[&[Some(Reading::default()), Some(page(9.0, 90.0))]]);
        assert_eq!((found.requests, found.unknown), (Some(9.0), None));
    }
}
