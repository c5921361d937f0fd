//! What a person sees while a sweep runs: an overall bar with the time left and a live line for each run under way. Without
//! a terminal: one plain line for each thing that happens. All of it goes to stderr.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::engine::Progress;
use crate::sweep::Waiting;
use crate::sweep::event::{Event, RunView};
use crate::units::text::page;
use crate::units::{Nanos, clock};

use super::format::{duration, fill_to, plain};
use super::live::{Live, Wait, columns};

const REFRESH: Duration = Duration::from_millis(250);

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Talk {
    /// Nothing but errors.
    Quiet,
    /// One line for each thing that happens.
    Normal,
    /// Also what is usually left out: probes, ids.
    Verbose,
}

/// A text of several lines, each fit for a terminal: the last lines of a server's log among them.
fn plain_lines(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// What happened, in lines that a terminal need not break: their later parts are indented.
fn wrapped(time: &str, text: &str, columns: usize) -> String {
    let line = |(number, line): (usize, &str)| {
        let words = line.trim_start();
        let indent = line.len() - words.len();
        let first = if number == 0 { time.to_owned() } else { String::new() } + &" ".repeat(indent);
        fill_to(columns, &first, indent + 2, words)
    };
    text.split('\n').enumerate().map(line).collect()
}

/// The screen of a running sweep.
pub(crate) struct Screen {
    talk: Talk,
    /// Whether lines begin with the time of day.
    with_times: bool,
    bars: Option<Bars>,
    total: usize,
    /// Why each endpoint is waited for, and its line.
    waiting: HashMap<String, (String, Option<ProgressBar>)>,
    /// Time that the sweep takes for each second of its runs: below 1 where runs go side by side.
    pace: f64,
}

struct Bars {
    multi: MultiProgress,
    overall: ProgressBar,
    state: Arc<Mutex<State>>,
    ticker: Option<JoinHandle<()>>,
}

/// What the ticker redraws.
#[derive(Default)]
struct State {
    live: Vec<Live>,
    waits: Vec<Wait>,
    /// Time that each run not yet ended takes as a whole, in nanoseconds, by number.
    remaining: HashMap<usize, u64>,
    pace: f64,
}

impl Screen {
    /// A screen; with bars only where stderr is a terminal.
    pub(crate) fn new(talk: Talk) -> Screen {
        let bars = (talk > Talk::Quiet && std::io::stderr().is_terminal()).then(Bars::start);
        Screen { talk, with_times: false, bars, total: 0, waiting: HashMap::new(), pace: 1.0 }
    }

    /// With the time of day, by the clock of the wall, before each line: what happens in a night is read in the morning.
    pub(crate) fn with_times(self) -> Screen {
        Screen { with_times: true, ..self }
    }

    /// For a sweep that takes `pace` seconds for each second of its runs.
    pub(crate) fn at_pace(self, pace: f64) -> Screen {
        Screen { pace, ..self }
    }

    /// Prints one line above the bars.
    pub(crate) fn line(&self, text: &str) {
        if self.talk > Talk::Quiet {
            self.error(text);
        }
    }

    /// Prints one line above the bars, even when told to be quiet.
    pub(crate) fn error(&self, text: &str) {
        let time = if self.with_times { format!("{} ", clock::time_now()) } else { String::new() };
        let text = match self.bars.is_some() && self.with_times {
            true => wrapped(&time, &page(text), columns()),
            false => format!("{time}{}\n", page(text)),
        };
        // A closed stderr must not end a sweep.
        let print = || drop(write!(std::io::stderr(), "{text}"));
        match &self.bars {
            Some(bars) => bars.multi.suspend(print),
            None => print(),
        }
    }

    /// Shows an event. `summary` says how a committed run came out.
    pub(crate) fn show(&mut self, event: &Event, summary: impl FnOnce(&RunView) -> String) {
        match event {
            Event::Begin { todo, settled } => self.begin(todo, *settled),
            Event::Endpoint { endpoint, result } if self.waiting.contains_key(endpoint) => {
                self.waited(endpoint, result)
            }
            Event::Endpoint { endpoint, result: Ok(found) } if self.talk == Talk::Verbose => {
                self.line(&format!("{endpoint}: {}", plain(found)));
            }
            Event::Endpoint { result: Ok(_), .. } => {}
            Event::Endpoint { endpoint, result: Err(reason) } => {
                self.error(&format!("{endpoint}: {}", plain_lines(reason)));
            }
            Event::Launching { endpoint, command } => self.line(&format!("{endpoint}: starting {}", plain(command))),
            Event::Launched { endpoint, after, log } => {
                self.waiting.remove(endpoint).and_then(|(_, bar)| bar).iter().for_each(ProgressBar::finish_and_clear);
                let after = Nanos::from(Duration::from_millis(after.as_millis() as u64));
                self.line(&format!("{endpoint}: ready after {after} (log: {})", plain(log)));
            }
            Event::Relaunching { endpoint, reason, again, of } => {
                self.error(&format!("{endpoint}: to be started again ({again} of {of}): {}", plain_lines(reason)));
            }
            Event::Slow { endpoint, url } => {
                self.line(&format!("{endpoint}: waiting for {} to answer", plain(url)));
            }
            Event::Far { endpoint, why } => self.line(&format!("{endpoint}: warning: {}", plain(why))),
            Event::Busy { endpoint, what } => self.line(&format!("{endpoint}: {}", plain(what))),
            Event::Waiting { endpoint, waiting } => self.waiting(endpoint, waiting),
            Event::Started { run, progress } => self.started(run, progress),
            Event::Committed { run } => {
                let what = self.ended(run, &summary(run));
                self.line(&what);
            }
            Event::Failed { run, reason } => {
                let what = self.ended(run, &format!("failed: {}", plain_lines(reason)));
                self.error(&what);
            }
            Event::Again { run, reason, again, of } => {
                let what = format!("spoiled, to be tried again ({again} of {of}): {}", plain_lines(reason));
                let line = self.named(run, &what);
                self.off(run, false);
                self.error(&line);
            }
            Event::GivenUp { run, cause, reason, times } => {
                let what = format!("given up: {cause} ({times} of {times}): {}", plain_lines(reason));
                let what = self.ended(run, &what);
                self.error(&what);
            }
            Event::Skipped { run, reason } => {
                let what = self.ended(run, &format!("skipped: {}", plain(reason)));
                self.error(&what);
            }
            Event::Stopping => {
                self.line("stopping: the runs under way are abandoned, committed runs stay (Ctrl-C again: at once)");
            }
            Event::End => {
                self.waiting.values().filter_map(|(_, bar)| bar.as_ref()).for_each(ProgressBar::finish_and_clear);
                self.bars = None;
            }
        }
    }

    fn begin(&mut self, todo: &[RunView], settled: usize) {
        self.total = settled + todo.len();
        if let Some(bars) = &self.bars {
            bars.overall.set_length(self.total as u64);
            bars.overall.set_position(settled as u64);
            let mut state = bars.state.lock().expect("no user of the lock panics");
            state.pace = self.pace;
            state.remaining = todo.iter().map(|run| (run.number, run.expected_ns())).collect();
            state.refresh(&bars.overall);
        }
    }

    fn started(&mut self, run: &RunView, progress: &Arc<Progress>) {
        match &self.bars {
            Some(bars) => bars.add(run, progress),
            None => {
                let takes = duration(run.expected_ns().div_ceil(1_000_000_000));
                self.line(&format!("[{}/{}] {} started, about {takes}", run.number, self.total, run.name));
            }
        }
    }

    /// A line when a wait begins and when its reason changes; between them the live line goes on counting.
    fn waiting(&mut self, endpoint: &str, waiting: &Waiting) {
        let Waiting { reason, waited, within } = waiting;
        let before = self.waiting.get(endpoint).map(|(reason, _)| reason.as_str());
        if before != Some(reason) {
            let left = duration(within.saturating_sub(*waited).as_secs_f64().ceil() as u64);
            self.line(&format!("{endpoint}: waiting for up to {left}: {}", plain(reason)));
        }
        let bar = self.waiting.remove(endpoint).and_then(|(_, bar)| bar);
        let bar = bar.or_else(|| self.bars.as_ref().map(Bars::line));
        if let (Some(bars), Some(bar)) = (&self.bars, &bar) {
            let (bar, since) = (bar.clone(), Instant::now().checked_sub(*waited));
            let (endpoint, reason) = (endpoint.to_owned(), plain(reason));
            let wait = Wait { bar, endpoint, reason, since, within: *within };
            bars.state.lock().expect("no user of the lock panics").wait(wait);
        }
        self.waiting.insert(endpoint.to_owned(), (reason.clone(), bar));
    }

    /// A wait is over, one way or the other.
    fn waited(&mut self, endpoint: &str, result: &Result<String, String>) {
        if let Some((_, Some(bar))) = self.waiting.remove(endpoint) {
            bar.finish_and_clear();
        }
        match result {
            Ok(_) => self.line(&format!("{endpoint}: ready")),
            Err(reason) => self.error(&format!("{endpoint}: {}", plain_lines(reason))),
        }
    }

    /// Takes a run off the screen; gives the line that says what became of it.
    fn ended(&mut self, run: &RunView, what: &str) -> String {
        self.off(run, true);
        self.named(run, what)
    }

    /// Takes a run off the screen; `for_good` says that it does not come back.
    fn off(&self, run: &RunView, for_good: bool) {
        if let Some(bars) = &self.bars {
            bars.remove(run, for_good);
        }
    }

    /// A line about a run.
    fn named(&self, run: &RunView, what: &str) -> String {
        let id = if self.talk == Talk::Verbose { format!(" ({})", run.id.short()) } else { String::new() };
        format!("[{}/{}] {}{id} · {what}", run.number, self.total, run.name)
    }
}

impl Bars {
    fn start() -> Bars {
        let multi = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let style =
            ProgressStyle::with_template("{pos}/{len} runs [{bar:30}] {msg}").expect("the template is constant");
        let overall = multi.add(ProgressBar::new(0).with_style(style.progress_chars("=> ")));
        let state: Arc<Mutex<State>> = Arc::default();
        let ticker = {
            let (state, overall) = (Arc::clone(&state), overall.clone());
            std::thread::spawn(move || {
                while !overall.is_finished() {
                    state.lock().expect("no user of the lock panics").refresh(&overall);
                    std::thread::park_timeout(REFRESH);
                }
            })
        };
        Bars { multi, overall, state, ticker: Some(ticker) }
    }

    /// A live line above the overall bar.
    fn line(&self) -> ProgressBar {
        let style = ProgressStyle::with_template("  {spinner} {msg}").expect("the template is constant");
        self.multi.insert_before(&self.overall, ProgressBar::new_spinner().with_style(style))
    }

    fn add(&self, run: &RunView, progress: &Arc<Progress>) {
        let bar = self.line();
        let mut live = Live::new(bar, run, progress);
        live.refresh();
        self.state.lock().expect("no user of the lock panics").live.push(live);
    }

    fn remove(&self, run: &RunView, for_good: bool) {
        let mut state = self.state.lock().expect("no user of the lock panics");
        state.live.retain(|live| {
            let stays = live.number() != run.number;
            if !stays {
                live.clear();
            }
            stays
        });
        if for_good {
            state.remaining.remove(&run.number);
            self.overall.inc(1);
        }
        state.refresh(&self.overall);
    }
}

impl State {
    /// An endpoint is waited for, in place of what was said of it before.
    fn wait(&mut self, wait: Wait) {
        wait.refresh();
        self.waits.retain(|other| other.endpoint != wait.endpoint);
        self.waits.push(wait);
    }

    fn refresh(&mut self, overall: &ProgressBar) {
        self.waits.retain(|wait| !wait.bar.is_finished());
        self.waits.iter().for_each(Wait::refresh);
        self.live.iter_mut().for_each(Live::refresh);
        if self.remaining.is_empty() {
            return;
        }
        let whole: u64 = self.remaining.values().sum();
        let gone: u64 = self.live.iter().map(|live| live.gone_ns()).sum();
        let left = whole.saturating_sub(gone) as f64 * self.pace / 1e9;
        overall.set_message(format!("about {} left", duration(left.ceil() as u64)));
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
