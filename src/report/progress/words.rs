//! Describes a running sweep in words, as parts of lines with the most important ones first.

use super::state::{LivePhase, LiveRun, LiveSweep, LiveWait};
use crate::report::format::{digits, duration};
use crate::report::screen::MOST;
use crate::units::Nanos;
use crate::units::text::counted;

/// Describes the phase of a run, with its elapsed time and its planned length.
pub(crate) fn phase(run: &LiveRun) -> String {
    let passed = duration(run.phase_s as u64);
    let length = run.phase_length_s.map(length).unwrap_or_default();
    let name: &str = run.phase.into();
    match (run.phase, run.requests_wanted) {
        (LivePhase::Settle, _) => "waiting for an idle server".to_owned(),
        (LivePhase::Idle, _) => format!("idle for {length}"),
        (LivePhase::Measure, Some(wanted)) => {
            let most = run.at_most_s.map(|most| format!(", at most {}", self::length(most))).unwrap_or_default();
            format!("measure {passed}, waiting for {wanted} requests: {}{most}", run.requests_in_window)
        }
        // Drain ends with the last measured request, so its length is only an upper bound.
        (LivePhase::Drain, _) => format!("drain {passed} of at most {length}"),
        _ => format!("{name} {passed} of {length}"),
    }
}

/// Describes the figures of a run, the most important ones first.
pub(super) fn figures(run: &LiveRun) -> Vec<String> {
    let ms = |name: &str, value: Option<f64>| value.map(|ms| format!("{name} {} ms", digits(ms)));
    let parts = [
        Some(format!("{} in flight", run.in_flight)),
        Some(run.waiting).filter(|waiting| *waiting > 0).map(|waiting| format!("{waiting} waiting")),
        run.sent_per_s.map(|sent| match run.wanted_per_s {
            Some(wanted) => format!("{} of {} req/s", digits(sent), digits(wanted)),
            None => format!("{} req/s", digits(sent)),
        }),
        ms("TTFT", run.ttft_ms),
        ms("TPOT", run.tpot_ms),
        run.tokens_per_s.map(|tokens| format!("{tokens:.0} tok/s")),
        Some(format!("{} done", run.ended)),
    ];
    parts.into_iter().flatten().collect()
}

/// Describes the number of failed requests, and the error of the latest failed request; `None` if none
/// failed.
pub(super) fn errors(run: &LiveRun) -> Option<String> {
    let last = run.latest_failure.as_ref().map(|what| format!(", last: {what}")).unwrap_or_default();
    (run.failed > 0).then(|| format!("{}{last}", counted(run.failed as usize, "error")))
}

/// Describes a wait for an endpoint: how long it has lasted, and the reason.
pub(super) fn wait(wait: &LiveWait) -> Vec<String> {
    let seconds = |seconds: f64| duration(seconds as u64);
    let of = wait.within_s.map(|within| format!(" of {}", seconds(within))).unwrap_or_default();
    let passed = format!("{}{of}", seconds(wait.waited_s));
    vec![format!("{}: waiting", wait.endpoint), passed, wait.reason.clone()]
}

/// Describes the remaining time; returns an empty string while it is unknown.
pub(super) fn left(sweep: &LiveSweep) -> String {
    sweep.left().unwrap_or_default()
}

/// Formats a duration as in a plan.
fn length(seconds: f64) -> String {
    Nanos((seconds * 1e9).round() as u64).to_string()
}

/// Returns the number of columns and rows of the terminal on stderr.
pub(super) fn terminal() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let known = size.map(|size| (usize::from(size.ws_col).max(1), usize::from(size.ws_row).max(1)));
    known.unwrap_or((usize::from(MOST), 24))
}

/// Joins as many parts as fit into the columns, starting with the first. Parts are kept whole, because a
/// truncated figure would be a wrong figure.
pub(super) fn fitting(parts: &[String], columns: usize) -> String {
    let mut line = String::new();
    for part in parts {
        let joined = if line.is_empty() { part.clone() } else { format!("{line} · {part}") };
        if !line.is_empty() && joined.chars().count() > columns {
            break;
        }
        line = joined;
    }
    cut(&line, columns)
}

/// Truncates a line to this many columns.
pub(super) fn cut(line: &str, columns: usize) -> String {
    match line.chars().count() > columns {
        true => line.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
        false => line.to_owned(),
    }
}

/// Describes a run in lines of at most `columns` columns: its name and phase, the state of the search that
/// requested it, its figures, and its errors.
pub(super) fn lines(run: &LiveRun, columns: usize) -> Vec<String> {
    let phase = phase(run);
    let both = format!("{} · {phase}", run.name);
    let fits = both.chars().count() <= columns;
    let mut lines = if fits { vec![both] } else { vec![cut(&run.name, columns), cut(&phase, columns)] };
    lines.extend(run.standing.as_ref().map(|standing| cut(standing, columns)));
    lines.push(fitting(&figures(run), columns));
    lines.extend(errors(run).map(|errors| cut(&errors, columns)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_between_its_parts() {
        let parts = ["lean · short", "measure 0s of 2s", "2 in flight", "0 errors"].map(str::to_owned);
        assert_eq!(fitting(&parts, 100), "lean · short · measure 0s of 2s · 2 in flight · 0 errors");
        assert_eq!(fitting(&parts, 55), "lean · short · measure 0s of 2s · 2 in flight");
        assert_eq!(fitting(&parts, 1), "…", "a name that is longer than the terminal is truncated");
        assert_eq!(fitting(&parts, 10), "lean · sh…");
    }
}
