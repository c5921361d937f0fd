//! The full-screen view of a running sweep: each run with its current figures and their recent history,
//! with the log of events below. It uses the terminal's alternate screen. When the sweep ends, the log is
//! printed again on the primary screen.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use super::face::{Face, write};
use super::state::{LiveRun, LiveSweep};
use super::words;
use crate::report::format::{digits, width};
use crate::report::spark;

/// Switches to the alternate screen and hides the cursor (xterm's private modes 1049 and 25).
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
/// Shows the cursor and switches back to the primary screen.
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";
/// Moves the cursor to the upper left corner.
const HOME: &str = "\u{1b}[H";
/// Clears the rest of the line; `CLEAR_BELOW` clears the rest of the screen.
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_BELOW: &str = "\u{1b}[J";

/// Number of points in the history of a figure, one per second.
const KEPT: usize = 60;
/// Maximum number of log lines kept.
const LOG: usize = 10_000;
/// Width of the bar of the whole sweep, in columns.
const BAR: usize = 30;

/// Whether the terminal shows its alternate screen.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

/// Restores the terminal's primary screen. Also called when the program ends abruptly.
pub(crate) fn leave() {
    if IS_ENTERED.swap(false, SeqCst) {
        write(LEAVE);
    }
}

/// The full-screen view.
pub(super) struct Full {
    log: VecDeque<String>,
    lately: HashMap<usize, Lately>,
}

/// The history of a run's figures over the last minute, with the latest value last.
struct Lately {
    at: Instant,
    sent: VecDeque<Option<f64>>,
    ttft: VecDeque<Option<f64>>,
    tpot: VecDeque<Option<f64>>,
    tokens: VecDeque<Option<f64>>,
}

impl Lately {
    fn new(run: &LiveRun) -> Lately {
        let mut lately = Lately {
            at: Instant::now(),
            sent: VecDeque::new(),
            ttft: VecDeque::new(),
            tpot: VecDeque::new(),
            tokens: VecDeque::new(),
        };
        lately.take(run);
        lately
    }

    fn take(&mut self, run: &LiveRun) {
        let of = [
            (&mut self.sent, run.sent_per_s),
            (&mut self.ttft, run.ttft_ms),
            (&mut self.tpot, run.tpot_ms),
            (&mut self.tokens, run.tokens_per_s),
        ];
        for (values, value) in of {
            values.push_back(value);
            if values.len() > KEPT {
                values.pop_front();
            }
        }
    }

    fn look(&mut self, run: &LiveRun) {
        if self.at.elapsed() >= Duration::from_secs(1) {
            self.at = Instant::now();
            self.take(run);
        }
    }
}

impl Full {
    pub(super) fn new() -> Full {
        IS_ENTERED.store(true, SeqCst);
        write(ENTER);
        Full { log: VecDeque::new(), lately: HashMap::new() }
    }

    /// Returns the lines of the screen, for a terminal with this many columns and rows.
    fn screen(&self, now: &LiveSweep, (columns, rows): (usize, usize)) -> Vec<String> {
        let filled = (now.done() * BAR).checked_div(now.runs).unwrap_or(0);
        let bar = format!("[{}{}]", "=".repeat(filled), " ".repeat(BAR - filled));
        let parts = [format!("{} of {} runs {bar}", now.done(), now.all()), words::left(now)];
        let mut lines = vec![parts.join(" "), String::new()];
        for wait in &now.waiting {
            lines.push(words::wait(wait).join(" · "));
        }
        for run in &now.running {
            lines.extend(self.run(run, columns));
            lines.push(String::new());
        }
        let room = rows.saturating_sub(lines.len() + 1);
        if room > 1 && !self.log.is_empty() {
            lines.push("events".to_owned());
            let shown = self.log.len().saturating_sub(room - 1);
            lines.extend(self.log.iter().skip(shown).cloned());
        }
        lines.truncate(rows.saturating_sub(1));
        lines.iter().map(|line| words::cut(line, columns)).collect()
    }

    fn run(&self, run: &LiveRun, columns: usize) -> Vec<String> {
        let mut lines = vec![run.name.clone(), format!("  {}", words::phase(run))];
        lines.extend(run.standing.as_ref().map(|standing| format!("  {standing}")));
        let waiting = if run.waiting > 0 { format!(" · {} waiting", run.waiting) } else { String::new() };
        lines.push(format!("  {} in flight{waiting} · {} done", run.in_flight, run.ended));
        if let Some(lately) = self.lately.get(&run.number) {
            let sent = run.sent_per_s.map(|sent| match run.wanted_per_s {
                Some(wanted) => format!("{} of {} req/s", digits(sent), digits(wanted)),
                None => format!("{} req/s", digits(sent)),
            });
            let ms = |value: Option<f64>| value.map(|ms| format!("{} ms", digits(ms)));
            let tokens = run.tokens_per_s.map(|tokens| format!("{tokens:.0} tok/s"));
            lines.push(curve("sent", sent, &lately.sent, columns));
            lines.push(curve("TTFT", ms(run.ttft_ms), &lately.ttft, columns));
            lines.push(curve("TPOT", ms(run.tpot_ms), &lately.tpot, columns));
            lines.push(curve("output", tokens, &lately.tokens, columns));
        }
        lines.extend(words::errors(run).map(|errors| format!("  {errors}")));
        lines
    }
}

/// Formats a figure with its history over the last minute. The history is scaled from 0 to its maximum, which
/// is shown.
fn curve(name: &str, value: Option<String>, values: &VecDeque<Option<f64>>, columns: usize) -> String {
    let head = format!("  {name:<7}{:<22}", value.unwrap_or_else(|| "n/a".to_owned()));
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let tail = if most > 0.0 { format!("  at most {}", digits(most)) } else { String::new() };
    let room = columns.saturating_sub(width(&head) + width(&tail)).min(KEPT);
    let shown: Vec<Option<f64>> = values.iter().skip(values.len().saturating_sub(room)).copied().collect();
    format!("{head}{}{tail}", spark::with_gaps(&shown))
}

impl Face for Full {
    fn draw(&mut self, now: &LiveSweep) {
        self.lately.retain(|number, _| now.running.iter().any(|run| run.number == *number));
        for run in &now.running {
            self.lately.entry(run.number).or_insert_with(|| Lately::new(run)).look(run);
        }
        let lines = self.screen(now, words::terminal());
        let body: String = lines.iter().map(|line| format!("{line}{CLEAR_LINE}\r\n")).collect();
        write(&format!("{HOME}{body}{CLEAR_BELOW}"));
    }

    fn print(&mut self, text: &str) {
        self.log.extend(text.lines().map(str::to_owned));
        self.log.drain(..self.log.len().saturating_sub(LOG));
    }

    fn close(&mut self) {
        leave();
        let log: String = self.log.drain(..).map(|line| line + "\n").collect();
        write(&log);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::progress::state::LivePhase;

    fn run() -> LiveRun {
        LiveRun {
            number: 2,
            id: "0".repeat(64),
            name: "lean · short · 10 qps".to_owned(),
            standing: Some("between 8 and 16 qps, 3 runs so far".to_owned()),
            phase: LivePhase::Measure,
            phase_s: 12.4,
            phase_length_s: Some(60.0),
            requests_wanted: None,
            requests_in_window: 120,
            at_most_s: None,
            in_flight: 8,
            waiting: 0,
            sent_per_s: Some(9.8),
            wanted_per_s: Some(10.0),
            ttft_ms: None,
            tpot_ms: Some(2.0),
            tokens_per_s: Some(240.0),
            ended: 130,
            failed: 1,
            latest_failure: Some("http_503: busy".to_owned()),
        }
    }

    #[test]
    fn a_screen_fits_its_terminal_and_draws_nothing_that_is_not_known() {
        let mut lately = Lately::new(&run());
        lately.take(&LiveRun { sent_per_s: None, tokens_per_s: Some(120.0), ..run() });
        lately.take(&run());
        let log = ["14:05:01 [1/3] lean · short · 5 qps · valid".to_owned()].into();
        // The alternate screen is not entered, because the test has no terminal.
        let full = Full { log, lately: HashMap::from([(2, lately)]) };
        let now = LiveSweep { runs: 3, settled: 1, left_s: Some(70.0), running: vec![run()], ..LiveSweep::default() };
        insta::assert_snapshot!(full.screen(&now, (64, 24)).join("\n"), @r"
        1 of 3 runs [==========                    ] about 1m10s left

        lean · short · 10 qps
          measure 12s of 1m
          between 8 and 16 qps, 3 runs so far
          8 in flight · 130 done
          sent   9.80 of 10.0 req/s    █ █  at most 9.80
          TTFT   n/a                      
          TPOT   2.00 ms               ███  at most 2.00
          output 240 tok/s             █▄█  at most 240
          1 error, last: http_503: busy

        events
        14:05:01 [1/3] lean · short · 5 qps · valid
        ");
        for (columns, rows) in [(20, 6), (1, 1), (200, 3)] {
            let screen = full.screen(&now, (columns, rows));
            assert!(screen.len() < rows.max(2), "{screen:?}");
            assert!(screen.iter().all(|line| line.chars().count() <= columns), "{screen:?}");
        }
    }
}
