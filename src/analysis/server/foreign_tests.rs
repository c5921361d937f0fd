//! Tests of the comparison of servers' counts with clients' counts.

use super::*;
use crate::analysis::synthetic::{Run, fail};
use crate::rows::{Outcome, Telemetry};

/// Returns a run whose server counted `more` requests and tokens than the client.
fn judged(more: [f64; 2], failed: usize) -> Result<Option<(State, String)>, String> {
    let (mut records, mut facts) = Run::default().make();
    for record in &mut records {
        record.row.token_source = Some(TokenSource::Usage);
    }
    records.iter_mut().take(failed).for_each(|record| fail(record, Outcome::Reset, 30_000_000));
    let rows: Vec<Measured> = records.iter().map(|record| Measured::from(&record.row)).collect();
    assert!(rows.len() >= 400, "{}", rows.len());
    let ok = rows.iter().filter(|row| row.outcome.is_ok());
    let tokens: f64 = ok.clone().filter_map(|row| row.output_tokens()).map(f64::from).sum();
    let counted = Counted {
        requests: Some(ok.count() as f64 + more[0]),
        generation_tokens: Some(tokens + more[1]),
        ..Counted::default()
    };
    facts.telemetry = Some(Telemetry { counted, ..Telemetry::default() });
    judge(&rows, &[], &facts)
}

fn rows() -> f64 {
    Run::default().make().0.len() as f64
}

#[test]
fn two_in_a_hundred_are_found_and_none_is_claimed_of_a_clean_run() {
    assert_eq!(judged([0.0, 0.0], 0), Ok(None));
    assert_eq!(judged([rows() * 0.009, 0.0], 0), Ok(None));
    let (state, text) = judged([(rows() * 0.02).round(), 0.0], 0).unwrap().unwrap();
    assert_eq!(state, State::Suspect);
    assert!(text.contains("(+2.0%): something else used it too"), "{text}");
    let (_, text) = judged([-(rows() * 0.02).round(), 0.0], 0).unwrap().unwrap();
    assert!(text.contains("(-2.0%): its pages do not cover all servers that responded"), "{text}");
}

#[test]
fn few_long_requests_show_in_the_tokens() {
    let (_, text) = judged([1.0, 100_000.0], 0).unwrap().unwrap();
    assert!(text.contains("output tokens during the run"), "{text}");
}

#[test]
fn requests_that_failed_may_have_been_answered_or_not() {
    for counted in [0.0, 20.0] {
        assert_eq!(judged([counted, 0.0], 20), Ok(None));
    }
    assert!(judged([40.0, 0.0], 20).unwrap().is_some());
}

#[test]
fn more_tokens_than_what_was_cut_can_have_had_are_found() {
    // Twenty requests were truncated, with 16 tokens each; two of the longest ones are within
    // tolerance.
    let (answered, cut) = ((rows() - 20.0) * 16.0, 20.0 * 16.0);
    let room = (answered * 0.01f64).max(32.0);
    assert_eq!(judged([0.0, cut + room - 1.0], 20), Ok(None));
    let (_, text) = judged([0.0, cut + room + 2.0], 20).unwrap().unwrap();
    assert!(text.contains("output tokens during the run"), "{text}");
    assert!(judged([0.0, -room - 2.0], 20).unwrap().is_some(), "fewer than those of the completed requests");
}

#[test]
fn what_the_server_refused_it_cannot_have_answered() {
    let row = |outcome| {
        let mut record = Run::default().make().0.swap_remove(0);
        fail(&mut record, outcome, 1_000_000);
        Measured::from(&record.row)
    };
    assert!([Outcome::Timeout, Outcome::Http(504), Outcome::CutAtDrain].map(row).iter().all(may_be_answered));
    assert!(![Outcome::Connect, Outcome::Http(429)].map(row).iter().any(may_be_answered));
}

#[test]
fn what_cannot_be_known_says_why() {
    let of = |counted| Facts { telemetry: Some(Telemetry { counted, ..Telemetry::default() }), ..Facts::default() };
    assert_eq!(judge(&[], &[], &Facts::default()), Ok(None));
    let unknown = Counted { unknown: Some("the scrape failed".to_owned()), ..Counted::default() };
    assert_eq!(judge(&[], &[], &of(unknown)), Err("the scrape failed".to_owned()));
    assert!(judge(&[], &[], &of(Counted::default())).is_err());
    let restarted = Counted { restarted: true, unknown: Some("it fell".to_owned()), ..Counted::default() };
    // The reason `server_restarted` reports the restart.
    assert_eq!(judge(&[], &[], &of(restarted)), Err("it fell".to_owned()));
}
