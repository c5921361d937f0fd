//! The live lines of a sweep: one for each server that is waited for, two or three for each run under way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::engine::Progress;
use crate::expand::Course;
use crate::rows::Phase;
use crate::sweep::event::RunView;
use crate::units::Nanos;

use super::format::{WIDTH, digits, duration, plain};

/// Rates and latencies are those of the last so many seconds.
const RECENT: f64 = 5.0;
/// Columns in front of a live line: two of margin, the spinner, and a blank.
const MARGIN: usize = 4;

/// A server that is waited for.
pub(super) struct Wait {
    pub(super) bar: ProgressBar,
    pub(super) endpoint: String,
    pub(super) reason: String,
    pub(super) since: Option<Instant>,
    pub(super) within: Duration,
}

impl Wait {
    pub(super) fn refresh(&self) {
        let waited = self.since.map_or(Duration::ZERO, |since| since.elapsed()).min(self.within);
        let seconds = |time: Duration| duration(time.as_secs());
        let passed = format!("{} of {}", seconds(waited), seconds(self.within));
        let parts = [format!("{}: waiting", self.endpoint), passed, self.reason.clone()];
        self.bar.set_message(fitting(&parts, room()));
        self.bar.tick();
    }
}

/// A run under way.
pub(super) struct Live {
    bar: ProgressBar,
    pub(super) run: RunView,
    pub(super) progress: Arc<Progress>,
    /// Arrivals per second that the plan wants over time; none in a closed loop.
    course: Option<Course>,
    /// What the counters said at some instants of the last seconds, the oldest first.
    seen: Vec<Seen>,
}

/// What the counters said.
#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Instant,
    sent: u64,
    token_events: u64,
}

impl Live {
    pub(super) fn new(bar: ProgressBar, run: &RunView, progress: &Arc<Progress>) -> Live {
        let course = Course::new(&run.load, &run.phases);
        Live { bar, run: run.clone(), progress: Arc::clone(progress), course, seen: Vec::new() }
    }

    /// The run's number.
    pub(super) fn number(&self) -> usize {
        self.run.number
    }

    /// How much of the time that it takes has passed, in nanoseconds.
    pub(super) fn gone_ns(&self) -> u64 {
        self.progress.elapsed_ns().min(self.run.expected_ns())
    }

    /// Takes it off the screen.
    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    pub(super) fn refresh(&mut self) {
        self.look();
        let (name, phase) = (plain(&self.run.name), self.phase());
        let both = format!("{name} · {phase}");
        let fits = both.chars().count() <= room();
        let mut lines = if fits { vec![both] } else { vec![cut(&name, room()), cut(&phase, room())] };
        lines.push(fitting(&self.figures(), room()));
        let failed = self.progress.failed.get();
        if failed > 0 {
            let last =
                self.progress.recent.failure().map(|what| format!(", last: {}", plain(&what))).unwrap_or_default();
            let errors = if failed == 1 { "1 error".to_owned() } else { format!("{failed} errors") };
            lines.push(cut(&format!("{errors}{last}"), room()));
        }
        self.bar.set_message(lines.join(&format!("\n{}", " ".repeat(MARGIN))));
        self.bar.tick();
    }

    /// Reads the counters, and forgets what they said long ago.
    pub(super) fn look(&mut self) {
        let Progress { ended, in_flight, token_events, .. } = &*self.progress;
        let now = Instant::now();
        self.seen.push(Seen { at: now, sent: ended.get() + in_flight.get(), token_events: token_events.get() });
        let is_old = |seen: &Seen| now.duration_since(seen.at).as_secs_f64() > RECENT;
        // One from before the span stays, so that rates are of the whole of it.
        let old = self.seen.iter().take_while(|seen| is_old(seen)).count();
        self.seen.drain(..old.saturating_sub(1));
    }

    /// What it is doing, and for how long.
    pub(super) fn phase(&self) -> String {
        let (progress, phases) = (&self.progress, &self.run.phases);
        if progress.settling.get() > 0 {
            return "waiting for an idle server".to_owned();
        }
        if let Some(idle) = phases.idle.filter(|_| progress.idling.get() > 0) {
            return format!("left alone for {idle}");
        }
        let measure = phases.fill.0 + phases.stabilize.0;
        let (begin, length) = match progress.phase() {
            Phase::Fill => (0, phases.fill.0),
            Phase::Stabilize => (phases.fill.0, phases.stabilize.0),
            Phase::Measure => (measure, phases.measure.duration.0),
            Phase::Drain => (measure + phases.measure.duration.0, phases.drain.duration.0),
        };
        let passed = progress.elapsed_ns().saturating_sub(begin);
        let wanted = phases.measure.min_requests.filter(|wanted| progress.in_window.get() < *wanted);
        if let (Phase::Measure, Some(wanted), true) = (progress.phase(), wanted, passed >= length) {
            let most = phases.measure.at_most.map(|most| format!(", at most {most}")).unwrap_or_default();
            let (came, passed) = (progress.in_window.get(), duration(passed / 1_000_000_000));
            return format!("measure {passed}, waiting for {wanted} requests: {came}{most}");
        }
        // Drain ends with the last measured request; its length is only a bound.
        let bound = if progress.phase() == Phase::Drain { "at most " } else { "" };
        let passed = duration(passed / 1_000_000_000);
        format!("{} {passed} of {bound}{}", progress.phase().name(), Nanos(length))
    }

    /// What goes on, what matters most first.
    fn figures(&self) -> Vec<String> {
        let progress = &self.progress;
        let pace = progress.recent.pace(self.recent_since());
        let ms = |name: &str, value: Option<f64>| value.map(|ms| format!("{name} {} ms", digits(ms)));
        let [sent, tokens] = self.rates();
        let waiting = Some(progress.waiting.get()).filter(|waiting| *waiting > 0);
        let parts = [
            Some(format!("{} in flight", progress.in_flight.get())),
            waiting.map(|waiting| format!("{waiting} waiting")),
            sent.map(|sent| match self.wanted() {
                Some(wanted) => format!("{} of {} req/s", digits(sent), digits(wanted)),
                None => format!("{} req/s", digits(sent)),
            }),
            ms("TTFT", pace.ttft_ms),
            ms("TPOT", pace.tpot_ms),
            tokens.map(|tokens| format!("{tokens:.0} tok/s")),
            Some(format!("{} done", progress.ended.get())),
        ];
        parts.into_iter().flatten().collect()
    }

    /// Where the last seconds begin, in nanoseconds since the run's start.
    pub(super) fn recent_since(&self) -> u64 {
        self.progress.elapsed_ns().saturating_sub((RECENT * 1e9) as u64)
    }

    /// Requests sent and token events received per second, lately; none so soon that a figure would be chance.
    pub(super) fn rates(&self) -> [Option<f64>; 2] {
        let (Some(first), Some(last)) = (self.seen.first(), self.seen.last()) else { return [None; 2] };
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        let rate = |before: u64, now: u64| (seconds >= 0.2).then(|| now.saturating_sub(before) as f64 / seconds);
        [rate(first.sent, last.sent), rate(first.token_events, last.token_events)]
    }

    /// Requests per second that the plan wants over the span that rates are of; none in a closed loop.
    pub(super) fn wanted(&self) -> Option<f64> {
        let now = self.progress.elapsed_ns() as f64 / 1e9;
        let span = self.seen.last()?.at.duration_since(self.seen.first()?.at).as_secs_f64().min(now);
        let course = self.course.as_ref()?;
        let arrivals = course.expected(now) - course.expected(now - span);
        (span > 0.0).then(|| arrivals / span * self.run.requests_per_arrival)
    }
}

/// Columns for a live line.
fn room() -> usize {
    columns().saturating_sub(MARGIN)
}

/// Columns of the terminal that stderr is.
pub(super) fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    size.map_or(usize::from(WIDTH), |size| usize::from(size.ws_col).max(1))
}

/// As many parts as fit, what matters most first: half a figure would be another figure.
fn fitting(parts: &[String], columns: usize) -> String {
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

/// A line of words that is too long for its place, cut.
fn cut(line: &str, columns: usize) -> String {
    match line.chars().count() > columns {
        true => line.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
        false => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_between_its_parts() {
        let parts = ["lean · short", "measure 0s of 2s", "2 in flight", "0 errors"].map(str::to_owned);
        assert_eq!(fitting(&parts, 100), "lean · short · measure 0s of 2s · 2 in flight · 0 errors");
        assert_eq!(fitting(&parts, 55), "lean · short · measure 0s of 2s · 2 in flight");
        assert_eq!(fitting(&parts, 1), "…", "a name that is longer than the terminal is cut");
        assert_eq!(fitting(&parts, 10), "lean · sh…");
    }
}
