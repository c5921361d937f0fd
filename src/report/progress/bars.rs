//! Bars for a terminal: one bar for the sweep and, above it, a live line for each wait and two to four
//! lines for each active run.

use std::collections::HashMap;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::face::Face;
use super::state::LiveSweep;
use super::words;

/// Number of columns before a live line: a margin of two, the spinner, and a blank.
const MARGIN: usize = 4;

/// The bars of a sweep.
pub(super) struct Bars {
    multi: MultiProgress,
    overall: ProgressBar,
    /// The lines of runs, by number.
    runs: HashMap<usize, ProgressBar>,
    /// The lines of waits, by endpoint.
    waits: HashMap<String, ProgressBar>,
}

impl Bars {
    /// Creates bars without content.
    pub(super) fn new() -> Bars {
        let multi = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{pos}/{len}{prefix} runs [{bar:30}] {msg}")
            .expect("the template is constant");
        let overall = multi.add(ProgressBar::new(0).with_style(style.progress_chars("=> ")));
        Bars { multi, overall, runs: HashMap::new(), waits: HashMap::new() }
    }

    /// Adds a live line above the overall bar.
    fn line(multi: &MultiProgress, overall: &ProgressBar) -> ProgressBar {
        let style = ProgressStyle::with_template("  {spinner} {msg}").expect("the template is constant");
        multi.insert_before(overall, ProgressBar::new_spinner().with_style(style))
    }
}

impl Face for Bars {
    fn draw(&mut self, now: &LiveSweep) {
        let Bars { multi, overall, runs, waits } = self;
        let room = words::terminal().0.saturating_sub(MARGIN);
        runs.retain(|number, bar| {
            let stays = now.running.iter().any(|run| run.number == *number);
            if !stays {
                bar.finish_and_clear();
            }
            stays
        });
        waits.retain(|endpoint, bar| {
            let stays = now.waiting.iter().any(|wait| wait.endpoint == *endpoint);
            if !stays {
                bar.finish_and_clear();
            }
            stays
        });
        for wait in &now.waiting {
            let bar = waits.entry(wait.endpoint.clone()).or_insert_with(|| Bars::line(multi, overall));
            bar.set_message(words::fitting(&words::wait(wait), room));
            bar.tick();
        }
        for run in &now.running {
            let bar = runs.entry(run.number).or_insert_with(|| Bars::line(multi, overall));
            bar.set_message(words::lines(run, room).join(&format!("\n{}", " ".repeat(MARGIN))));
            bar.tick();
        }
        overall.set_length(now.runs as u64);
        overall.set_prefix(if now.may_grow { "+" } else { "" });
        overall.set_position(now.done() as u64);
        overall.set_message(words::left(now));
    }

    fn print(&mut self, text: &str) {
        self.multi.suspend(|| super::face::write(text));
    }

    fn close(&mut self) {
        self.runs.values().chain(self.waits.values()).for_each(ProgressBar::finish_and_clear);
        self.overall.finish_and_clear();
    }
}
