//! Tests of the comparison of servers' counts during a run.

use super::*;
use crate::rows::{Phase, RequestRow, Telemetry, Windows};

const S: u64 = 1_000_000_000;

/// Returns ten requests per second for ten seconds, each lasting 100 ms. The last ten are truncated at
/// 15 s; their last token arrives at `last`.
fn rows(last: Option<u64>) -> Vec<Measured> {
    let row = |request: u64| {
        let sent = request * S / 10;
        let is_cut = request >= 90;
        let done = (!is_cut).then_some(sent + S / 10);
        let row = RequestRow {
            sent_ns: Some(sent),
            last_token_ns: if is_cut { last } else { done },
            done_ns: done,
            ended_ns: done,
            outcome: if is_cut { Outcome::CutAtDrain } else { Outcome::Ok },
            ..RequestRow::wanted(request, Phase::Measure, sent)
        };
        Measured::from(&row)
    };
    (0..100).map(row).collect()
}

fn facts() -> Facts {
    let windows = Windows { end_ns: 15 * S, ..Windows::default() };
    Facts { windows, telemetry: Some(Telemetry::default()), ..Facts::default() }
}

/// Returns the samples of two pages that are scraped every second. Each scrape takes 20 ms. One page has
/// counted 1 000 requests before the run and counts the client's requests; the other counts `more` requests.
fn scraped(more: f64) -> Vec<Sample> {
    let one = |at: u64, url: u32, source: &str, name: &str, value: f64| Sample {
        at_ns: at,
        url: Some(url),
        source: source.to_owned(),
        name: name.to_owned(),
        value,
        ..Sample::default()
    };
    let of = |second: u64| {
        let at = second * S;
        let own = (second * 10).min(90) as f64;
        // The counter appears with its first event.
        let other = (second > 0).then(|| one(at, 1, "server", COUNTER, (more * second as f64 / 10.0).min(more)));
        let own = one(at, 0, "server", COUNTER, 1_000.0 + own);
        [0, 1].map(|url| one(at, url, "scrape", "scrape_duration_seconds", 0.02)).into_iter().chain([own]).chain(other)
    };
    (0..=16).flat_map(of).collect()
}

#[test]
fn what_was_cut_is_known_to_be_open_before() {
    let found = |more, last| most(&rows(last), &scraped(more), &facts());
    assert_eq!(found(0.0, Some(15 * S)), None);
    assert_eq!(found(2.0, Some(15 * S)), None, "a difference of two is ignored");
    // At the end, the extra requests are hidden among the ten truncated ones; at 14 s and before, none of
    // the truncated ones was complete.
    assert_eq!(found(3.0, Some(15 * S)), Some([93.0, 90.0]));
    assert_eq!(found(3.0, None), Some([93.0, 90.0]), "no token has come yet");
    // Stalled streams may be complete at the server, with their ends lost.
    assert_eq!(found(3.0, Some(9 * S + S / 2)), None);
}

#[test]
fn an_answer_may_be_on_the_way() {
    let mut samples = scraped(0.0);
    // At 5 s, the server has counted five more requests than the client had received; these are the
    // requests of the next half second.
    let of = |sample: &&mut Sample| sample.name == COUNTER && sample.url == Some(0) && sample.at_ns == 5 * S;
    samples.iter_mut().find(of).unwrap().value += 5.0;
    assert_eq!(most(&rows(Some(15 * S)), &samples, &facts()), None);
    samples.iter_mut().find(of).unwrap().value += 4.0;
    assert_eq!(most(&rows(Some(15 * S)), &samples, &facts()), Some([59.0, 55.0]));
}
