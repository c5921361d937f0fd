//! What a person sees while a sweep runs: an overall bar with the time left and a live line for each run under way. Without
//! a terminal: one plain line for each thing that happens. All of it goes to stderr.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::engine::Progress;
use crate::rows::Phase;
use crate::sweep::event::{Event, RunView};

const REFRESH: Duration = Duration::from_millis(250);

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Talk {
    /// Nothing but errors.
    Quiet,
    /// One line for each thing that happens.
    Normal,
    /// Also what is usually left out: probes, ids.
    Verbose,
}

/// The screen of a running sweep.
pub struct Screen {
    talk: Talk,
    bars: Option<Bars>,
    total: usize,
    /// Time that the runs not yet ended take, in nanoseconds, by number.
    remaining: HashMap<usize, u64>,
}

struct Bars {
    multi: MultiProgress,
    overall: ProgressBar,
    live: Arc<Mutex<Vec<Live>>>,
    ticker: Option<JoinHandle<()>>,
}

struct Live {
    bar: ProgressBar,
    run: RunView,
    progress: Arc<Progress>,
    seen: (Instant, u64),
    rate: f64,
}

impl Screen {
    /// A screen; with bars only where stderr is a terminal.
    pub fn new(talk: Talk) -> Screen {
        let bars = (talk > Talk::Quiet && std::io::stderr().is_terminal()).then(Bars::start);
        Screen { talk, bars, total: 0, remaining: HashMap::new() }
    }

    /// Prints one line above the bars.
    pub fn line(&self, text: &str) {
        if self.talk == Talk::Quiet {
            return;
        }
        match &self.bars {
            Some(bars) => bars.multi.suspend(|| eprintln!("{text}")),
            // A closed stderr must not end a sweep.
            None => drop(writeln!(std::io::stderr(), "{text}")),
        }
    }

    /// Shows an event. `summary` says how a committed run came out.
    pub fn show(&mut self, event: &Event, summary: impl FnOnce(&RunView) -> String) {
        match event {
            Event::Begin { todo, .. } => self.begin(todo),
            Event::Endpoint { endpoint, result: Ok(found) } if self.talk == Talk::Verbose => {
                self.line(&format!("{endpoint}: {found}"));
            }
            Event::Endpoint { result: Ok(_), .. } => {}
            Event::Endpoint { endpoint, result: Err(reason) } => self.line(&format!("{endpoint}: {reason}")),
            Event::Started { run, progress } => self.started(run, progress),
            Event::Committed { run } => self.ended(run, &summary(run)),
            Event::Failed { run, reason } => self.ended(run, &format!("failed: {reason}")),
            Event::Skipped { run, reason } => self.ended(run, &format!("skipped: {reason}")),
            Event::Stopping => {
                self.line("stopping: the runs under way are abandoned, committed runs stay (Ctrl-C again: at once)");
            }
            Event::End => self.bars = None,
        }
    }

    fn begin(&mut self, todo: &[RunView]) {
        self.total = todo.len();
        self.remaining = todo.iter().map(|run| (run.number, run.expected_ns())).collect();
        if let Some(bars) = &self.bars {
            bars.overall.set_length(todo.len() as u64);
            self.tell_overall(bars);
        }
    }

    fn tell_overall(&self, bars: &Bars) {
        let left: u64 = self.remaining.values().sum();
        bars.overall.set_message(format!("about {} left", duration(left / 1_000_000_000)));
    }

    fn started(&mut self, run: &RunView, progress: &Arc<Progress>) {
        match &self.bars {
            Some(bars) => bars.add(run, progress),
            None => self.line(&format!("[{}/{}] {} started", run.number, self.total, run.name)),
        }
    }

    fn ended(&mut self, run: &RunView, what: &str) {
        self.remaining.remove(&run.number);
        if let Some(bars) = &self.bars {
            bars.remove(run);
            bars.overall.inc(1);
            self.tell_overall(bars);
        }
        let id = if self.talk == Talk::Verbose { format!(" ({})", run.id.short()) } else { String::new() };
        self.line(&format!("[{}/{}] {}{id} · {what}", run.number, self.total, run.name));
    }
}

impl Bars {
    fn start() -> Bars {
        let multi = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let style =
            ProgressStyle::with_template("{pos}/{len} runs [{bar:30}] {msg}").expect("the template is constant");
        let overall = multi.add(ProgressBar::new(0).with_style(style.progress_chars("=> ")));
        let live: Arc<Mutex<Vec<Live>>> = Arc::default();
        let ticker = {
            let (live, overall) = (Arc::clone(&live), overall.clone());
            std::thread::spawn(move || {
                while !overall.is_finished() {
                    live.lock().expect("no user of the lock panics").iter_mut().for_each(Live::refresh);
                    std::thread::park_timeout(REFRESH);
                }
            })
        };
        Bars { multi, overall, live, ticker: Some(ticker) }
    }

    fn add(&self, run: &RunView, progress: &Arc<Progress>) {
        let style = ProgressStyle::with_template("  {spinner} {wide_msg}").expect("the template is constant");
        let bar = self.multi.insert_before(&self.overall, ProgressBar::new_spinner().with_style(style));
        let mut live =
            Live { bar, run: run.clone(), progress: Arc::clone(progress), seen: (Instant::now(), 0), rate: 0.0 };
        live.refresh();
        self.live.lock().expect("no user of the lock panics").push(live);
    }

    fn remove(&self, run: &RunView) {
        self.live.lock().expect("no user of the lock panics").retain(|live| {
            let stays = live.run.number != run.number;
            if !stays {
                live.bar.finish_and_clear();
            }
            stays
        });
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.overall.finish_and_clear();
        if let Some(ticker) = self.ticker.take() {
            ticker.thread().unpark();
            // A ticker that panicked has nothing left to show.
            let _ = ticker.join();
        }
    }
}

impl Live {
    fn refresh(&mut self) {
        let (progress, phases) = (&self.progress, &self.run.phases);
        let events = progress.token_events.get();
        let since = self.seen.0.elapsed().as_secs_f64();
        if since >= 1.0 {
            self.rate = (events - self.seen.1) as f64 / since;
            self.seen = (Instant::now(), events);
        }
        let measure = phases.fill.0 + phases.stabilize.0;
        let (begin, length) = match progress.phase() {
            Phase::Fill => (0, phases.fill.0),
            Phase::Stabilize => (phases.fill.0, phases.stabilize.0),
            Phase::Measure => (measure, phases.measure.duration.0),
            Phase::Drain => (measure + phases.measure.duration.0, phases.drain.duration.0),
        };
        self.bar.set_message(format!(
            "{} · {} {}/{} · {} in flight · {:.0} tokens/s · {} done · {} errors",
            self.run.name,
            progress.phase().name(),
            duration(progress.elapsed_ns().saturating_sub(begin) / 1_000_000_000),
            duration(length / 1_000_000_000),
            progress.in_flight.get(),
            self.rate,
            progress.ended.get(),
            progress.failed.get(),
        ));
        self.bar.tick();
    }
}

/// Whole seconds as `1h02m`, `2m10s` or `9s`.
pub fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}
