//! Explains why something is undecided and what would decide it. `run`, `show`, `curves`, `capacity` and
//! gates use the same words.

use super::saturation;
use super::worth::{Evidence, MOST_TIMES};

/// With fewer swings, the pace at which the requests in flight rise and fall is hardly known.
const FEW_SWINGS: u32 = 8;

/// Describes on which side of its limit a percentile was observed; `None` without requests. If one request more or less
/// above the limit would be the allowed share, the percentile itself, which may lie between two requests, may be on the
/// other side than the share.
pub fn observed(evidence: &Evidence, allowed: f64) -> Option<&'static str> {
    let away = (evidence.above as f64 - allowed * evidence.n as f64).abs();
    evidence.met(allowed).map(|is_met| match is_met {
        _ if evidence.above > 0 && away <= 1.0 => "observed at the limit",
        true => "observed to hold",
        false => "observed to miss",
    })
}

/// Describes the window that would suffice for each of `runs` runs: `a window of 34 s would suffice`, `a window of 34 s in
/// each of 3 runs would suffice`.
pub fn would_do(seconds: f64, runs: usize) -> String {
    format!("a window of {}{} would suffice", window(seconds), each_of(runs))
}

/// Describes what would decide a limit: the length of the window of each of `runs` runs, or why no window of reasonable
/// length would suffice. `needed` independent requests, none of them above the limit, show that the limit
/// holds.
pub fn would_decide(evidence: &Evidence, needed: u64, seconds: Option<f64>, runs: usize) -> String {
    match seconds {
        Some(seconds) => would_do(seconds, runs),
        None => {
            let too_close = "the observed share is too close to the allowed share: ";
            let why = if evidence.worth.requests * MOST_TIMES < needed as f64 { "" } else { too_close };
            format!("{why}a window {MOST_TIMES} times as long would not suffice")
        }
    }
}

/// Describes the effective number of independent requests for a limit, rounded down: `12`, or `0.7` for
/// numbers below ten. `None` if it equals the number of requests.
pub fn worth(evidence: &Evidence) -> Option<String> {
    let worth = evidence.worth.requests;
    let shown = if worth < 10.0 { (worth * 10.0).floor() / 10.0 } else { worth.floor() };
    (shown < evidence.n as f64).then(|| shown.to_string())
}

/// Returns the window in seconds that would show whether a server kept up; `None` if no request arrived,
/// because the arrival rate is then unknown.
pub fn keeps_up(evidence: &saturation::Evidence) -> Option<f64> {
    (evidence.arrived > 0).then(|| evidence.would_do())
}

/// Describes the window that would show whether a server kept up, for each of `runs` runs; `None` if no request
/// arrived.
pub fn would_show_keeping_up(evidence: &saturation::Evidence, runs: usize) -> Option<String> {
    let seconds = keeps_up(evidence)?;
    let each = each_of(runs);
    Some(match evidence.swings < FEW_SWINGS {
        true => format!("a window of at least {}{each} is needed", window(seconds)),
        false => would_do(seconds, runs),
    })
}

fn each_of(runs: usize) -> String {
    if runs > 1 { format!(" in each of {runs} runs") } else { String::new() }
}

/// Formats a window's length, rounded up to two digits: `34 s`.
fn window(seconds: f64) -> String {
    let unit = 10f64.powi((seconds.max(1e-3).log10().floor() as i32) - 1);
    let rounded = (seconds / unit * (1.0 - 1e-9)).ceil() * unit;
    format!("{} s", (rounded * 1e4).round() / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::worth::Worth;

    fn evidence(n: u64, above: u64, worth: f64) -> Evidence {
        Evidence { n, above, worth: Worth { requests: worth, is_bound: false } }
    }

    #[test]
    fn what_is_undecided_always_says_what_would_decide_it() {
        let of = |evidence: Evidence| would_decide(&evidence, 59, evidence.would_do(0.05).map(|times| 10.0 * times), 1);
        assert_eq!(of(evidence(40, 0, 20.0)), "a window of 30 s would suffice");
        assert_eq!(
            of(evidence(1_000, 50, 20.0)),
            "the observed share is too close to the allowed share: a window 100 times as long would not suffice"
        );
        assert_eq!(of(evidence(40, 0, 0.5)), "a window 100 times as long would not suffice");
    }

    #[test]
    fn a_worth_is_never_more_than_it_is_and_never_nothing() {
        let of = |worth_of| worth(&evidence(300, 3, worth_of));
        assert_eq!(of(298.9).as_deref(), Some("298"));
        assert_eq!([of(0.75).as_deref(), of(8.0).as_deref(), of(300.0).as_deref()], [Some("0.7"), Some("8"), None]);
    }

    #[test]
    fn a_share_within_one_request_of_the_allowed_one_is_at_the_limit() {
        let of = |n, above| observed(&evidence(n, above, 20.0), 0.05).unwrap_or("nothing");
        assert_eq!([of(78, 4), of(78, 3), of(20, 1)], ["observed at the limit"; 3]);
        assert_eq!(
            [of(78, 5), of(78, 2), of(12, 0), of(0, 0)].map(|words| words.rsplit(' ').next().unwrap()),
            ["miss", "hold", "hold", "nothing"]
        );
    }

    #[test]
    fn windows_are_rounded_up() {
        assert_eq!([33.2, 120.0, 1_234.0, 0.51].map(window), ["34 s", "120 s", "1300 s", "0.51 s"]);
    }
}
