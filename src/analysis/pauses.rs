//! Checks whether the generator stood still during the measurement. The results then do not cover that time,
//! even if no request is late. A closed loop sends nothing while it is stopped and continues as if nothing
//! had happened.

use crate::rows::{Facts, Observed, Pauses, Standstill};

use super::state::State;

/// Share of the window spent in pauses above which a run is suspect, because throughput is too low by
/// the same share.
const SUSPECT: f64 = 0.01;
/// Share of the window spent in pauses above which a run is invalid, if the process or the machine was
/// stopped. If the pause was a wait for a core, the run is only suspect: it was the observing thread
/// that waited, and `client_late` and `client_saturated` are more reliable for the threads that send and
/// read.
const INVALID: f64 = 0.05;
/// A single pause of this length makes any window suspect: either the latency of every request in flight
/// includes the pause, or the server had nothing to do.
const LONG_NS: u64 = 250_000_000;
/// Minimum delay of a wake-up that counts as a pause if only the latest wake-up is known.
const LEAST_NS: u64 = 100_000_000;

/// Checks the pauses that the generator recorded and their effect on the run.
pub(super) fn judge(facts: &Facts) -> Result<Option<(State, String)>, String> {
    let window = facts.windows.measure_end_ns.saturating_sub(facts.windows.measure_start_ns);
    let pauses = match facts.pauses {
        Some(pauses) => pauses,
        None => of_an_older_run(facts, window).ok_or("the run does not record whether its generator stood still")?,
    };
    let Pauses { stopped, starved } = pauses;
    let share = |nanos: u64| if window == 0 { 0.0 } else { nanos as f64 / window as f64 };
    let all = share(stopped.in_window_ns + starved.in_window_ns);
    let longest = stopped.longest_ns.max(starved.longest_ns);
    let state = match () {
        () if share(stopped.in_window_ns) > INVALID => State::Invalid,
        () if all > SUSPECT || longest >= LONG_NS => State::Suspect,
        () => return Ok(None),
    };
    let told = [(stopped, cause_of_a_stop(facts)), (starved, cause_of_a_wait(facts))];
    let told = told.into_iter().filter(|(kind, _)| kind.count > 0);
    let told = told.map(|(kind, cause)| said(kind, share(kind.in_window_ns), cause));
    Ok(Some((state, told.collect::<Vec<_>>().join("; "))))
}

fn said(kind: Standstill, share: f64, cause: &str) -> String {
    let Standstill { count, in_window_ns, longest_ns } = kind;
    let (inside, share, longest) = (millis(in_window_ns), share * 100.0, millis(longest_ns));
    let times = if count == 1 { "once, for".to_owned() } else { format!("{count} times, for up to") };
    format!("{cause} {times} {longest:.0} ms: {inside:.0} ms ({share:.1}%) of the window")
}

fn cause_of_a_stop(facts: &Facts) -> &'static str {
    let canary = facts.observed.as_ref().and_then(|observed| observed.thread("canary"));
    match canary.map(|canary| canary.wait_ns) {
        // It is unknown whether the thread waited for a core.
        Some(None) => "no thread of sweepline ran",
        _ => "the process or the machine was stopped",
    }
}

fn cause_of_a_wait(facts: &Facts) -> &'static str {
    let others = |observed: &Observed| observed.others_ns().is_some_and(|others| others >= observed.process_cpu_ns);
    match facts.observed.as_ref() {
        Some(observed) if observed.machine.is_some() && !others(observed) => {
            "sweepline's own threads held the cores that it may use"
        }
        _ => "other processes held the cores",
    }
}

/// Derives the pauses of older runs, which did not record them, from the latest wake-up of the window and
/// from the window's length as seen by the observing thread. A stop across a border of the window makes
/// this length longer or shorter. `None` if neither is recorded.
fn of_an_older_run(facts: &Facts, window: u64) -> Option<Pauses> {
    let observed = facts.observed.as_ref().filter(|observed| observed.for_ns > 0)?;
    let latest = observed.wakes?.max_ns;
    let across = observed.for_ns.abs_diff(window);
    let longest = latest.max(across);
    if longest < LEAST_NS {
        return Some(Pauses::default());
    }
    let inside = latest.min(window);
    let one = Standstill { count: 1, in_window_ns: inside, longest_ns: longest };
    let waited = observed.thread("canary").and_then(|canary| canary.wait_ns);
    Some(match waited {
        Some(waited) if waited >= longest / 2 => Pauses { starved: one, ..Pauses::default() },
        _ => Pauses { stopped: one, ..Pauses::default() },
    })
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::synthetic::{Run, verdict};
    use crate::plan::Validity;

    const MS: u64 = 1_000_000;

    fn facts(seconds: f64, change: impl FnOnce(&mut Facts)) -> Facts {
        let (_, mut facts) = Run { seconds, ..Run::default() }.make();
        change(&mut facts);
        facts
    }

    fn stood(count: u64, in_window_ms: u64, longest_ms: u64) -> Standstill {
        Standstill { count, in_window_ns: in_window_ms * MS, longest_ns: longest_ms * MS }
    }

    /// Returns the verdict on a window of 10 s with these pauses. `stood` takes the number of pauses,
    /// their time in the window and the longest one, in milliseconds.
    fn state(stopped: Standstill, starved: Standstill) -> Option<State> {
        let facts = facts(10.0, |facts| facts.pauses = Some(Pauses { stopped, starved }));
        judge(&facts).unwrap().map(|(state, _)| state)
    }

    #[test]
    fn thresholds_of_a_stop() {
        let none = Standstill::default();
        assert_eq!(state(none, none), None);
        assert_eq!(state(stood(1, 100, 100), none), None);
        assert_eq!(state(stood(1, 101, 101), none), Some(State::Suspect));
        assert_eq!(state(stood(5, 500, 100), none), Some(State::Suspect));
        assert_eq!(state(stood(5, 501, 101), none), Some(State::Invalid));
        // A pause that barely overlaps the window counts only if it is long.
        assert_eq!(state(stood(1, 0, 249), none), None);
        assert_eq!(state(stood(1, 0, 250), none), Some(State::Suspect));
        // Pauses in which the observing thread waited for a core.
        assert_eq!(state(none, stood(1, 100, 100)), None);
        assert_eq!(state(none, stood(40, 9000, 249)), Some(State::Suspect));
        assert_eq!(state(none, stood(1, 250, 250)), Some(State::Suspect));
        // The two kinds of pauses together exceed a threshold that neither kind exceeds alone.
        assert_eq!(state(stood(1, 60, 120), stood(1, 60, 120)), Some(State::Suspect));
    }

    #[test]
    fn a_second_is_never_valid_in_any_window() {
        for seconds in [2.0, 10.0, 60.0, 120.0, 3600.0] {
            let (records, facts) = Run { seconds, tokens: 2, batch_size: Some(1), ..Run::default() }.make();
            let stopped = stood(1, 1000, 1000);
            let facts = Facts { pauses: Some(Pauses { stopped, ..Pauses::default() }), ..facts };
            let verdict = verdict(&records, &facts, &Validity::default(), None);
            assert_ne!(verdict.state, State::Valid, "{seconds} s");
            assert_eq!(verdict.reasons[0].name, "client_paused");
        }
    }

    #[test]
    fn the_reason_says_what_and_how_much() {
        let text = |pauses| judge(&facts(5.0, |facts| facts.pauses = Some(pauses))).unwrap().unwrap().1;
        assert_eq!(
            text(Pauses { stopped: stood(1, 1003, 1003), starved: stood(2, 300, 170) }),
            "the process or the machine was stopped once, for 1003 ms: 1003 ms (20.1%) of the window; other processes \
             held \
             the cores 2 times, for up to 170 ms: 300 ms (6.0%) of the window"
        );
    }

    #[test]
    fn older_runs_are_judged_by_their_latest_wake_up() {
        let old = |change: &dyn Fn(&mut Observed)| {
            let facts = facts(10.0, |facts| {
                facts.pauses = None;
                change(facts.observed.as_mut().unwrap());
            });
            judge(&facts).unwrap().map(|(state, _)| state)
        };
        let latest = |ms: u64| old(&|observed| observed.wakes.as_mut().unwrap().max_ns = ms * MS);
        assert_eq!([99, 101, 501].map(latest), [None, Some(State::Suspect), Some(State::Invalid)]);
        assert_eq!(old(&|_| ()), None);
        // The observing thread reached a boundary a second late.
        assert_eq!(old(&|observed| observed.for_ns += 1000 * MS), Some(State::Suspect));
        assert_eq!(old(&|observed| observed.for_ns -= 1000 * MS), Some(State::Suspect));
        let starved = old(&|observed| {
            observed.wakes.as_mut().unwrap().max_ns = 600 * MS;
            observed.threads.iter_mut().for_each(|thread| thread.wait_ns = Some(500 * MS));
        });
        assert_eq!(starved, Some(State::Suspect));
        for silent in [Facts { observed: None, pauses: None, ..facts(10.0, |_| ()) }, Facts::default()] {
            assert_eq!(judge(&silent).unwrap_err(), "the run does not record whether its generator stood still");
        }
    }
}
