//! The thread that scrapes pages during a run. It is separate from the threads that send the load, and
//! times its samples on the run's clock. The pages are scraped before the load, at both ends of the measure
//! window, when all requests have ended, and in between at each multiple of the interval. A failed scrape
//! is a gap in the series. The memory and the time of a scrape are limited.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::gap::Gap;
use super::gpus::{self, Reader, Sharing};
use super::http::Page;
use super::page::{Reading, Wanted};
use super::round_trip::{self, Far};
use super::totals::Totals;
use crate::rows::{Sample, Telemetry};
use crate::units::Nanos;

/// The time limit of a scrape, however long the interval is.
pub const LONGEST_SCRAPE: Duration = Duration::from_secs(5);
/// The longest sleep before the bounds of the measure window are checked again.
const LOOK: Duration = Duration::from_millis(100);
/// Maximum number of repetitions of the last scrape. It is repeated until two scrapes agree, because a
/// server counts a request only shortly after its response.
const LAST_TRIES: usize = 10;
const LAST_PAUSE: Duration = Duration::from_millis(50);

/// The times of the run, if they are already known.
pub trait Timeline: Send + Sync {
    /// Returns the start of the run on the machine's monotonic clock, in nanoseconds; `None` before the
    /// start.
    fn origin(&self) -> Option<u64>;
    /// Returns the start and the end of the measure window, in nanoseconds since the run's start. A time
    /// that is not known yet is 0.
    fn window(&self) -> [u64; 2];
}

/// The error that ended scraping early: from the sink or from the operating system.
pub type ScrapeError = Box<dyn std::error::Error + Send + Sync>;

/// A function that stores samples. It returns an error if it cannot store them.
pub type Sink = Box<dyn FnMut(&[Sample]) -> Result<(), ScrapeError> + Send>;

/// The settings of a scraper.
pub struct Settings {
    /// The pages to scrape.
    pub pages: Vec<Page>,
    /// The interval between scrapes.
    pub every: Nanos,
    /// The values that are read from the pages.
    pub wanted: Wanted,
    /// The GPUs of this machine to read in addition to the pages; `None` if none are read.
    pub gpus: Option<gpus::Wanted>,
    /// The server whose round trip is measured in each round; `None` if it is not measured.
    pub far: Option<Far>,
}

/// A running scraper. If it is dropped, it ends without a last scrape.
pub struct Scraper {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<Telemetry, ScrapeError>>>,
}

impl Scraper {
    /// Starts scraping, and returns once the first scrape has completed or failed.
    ///
    /// # Errors
    /// Fails if no thread can be started.
    pub fn start(settings: Settings, timeline: Arc<dyn Timeline>, sink: Sink) -> Result<Scraper, ScrapeError> {
        let (stop, stopped) = oneshot::channel();
        let (begun, has_begun) = sync_channel(1);
        let work = move || scrape(settings, timeline, sink, (begun, stopped));
        let thread = std::thread::Builder::new().name("telemetry".to_owned()).spawn(work);
        let thread = thread.map_err(|error| format!("no thread for telemetry: {error}"))?;
        wait(&has_begun);
        Ok(Scraper { stop: Some(stop), thread: Some(thread) })
    }

    /// Makes the last scrape, and returns the results.
    ///
    /// # Errors
    /// Fails if the sink could not consume the samples.
    pub fn finish(mut self) -> Result<Telemetry, ScrapeError> {
        if let Some(stop) = self.stop.take() {
            // A failed send means that the thread has ended with an error, which is returned below.
            let _ = stop.send(());
        }
        let thread = self.thread.take().ok_or("telemetry has ended")?;
        thread.join().map_err(|_| "the thread of telemetry panicked")?
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The run has failed, so the samples are not needed, and errors are ignored.
            let _ = thread.join();
        }
    }
}

/// Waits until the thread has made its first scrape or has ended. Both close the channel.
fn wait(has_begun: &Receiver<()>) {
    let _ = has_begun.recv();
}

/// The body of the scraping thread.
fn scrape(
    settings: Settings,
    timeline: Arc<dyn Timeline>,
    sink: Sink,
    (begun, mut stopped): (SyncSender<()>, oneshot::Receiver<()>),
) -> Result<Telemetry, ScrapeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let gpus = match settings.gpus.clone() {
            Some(wanted) => gpus::open(wanted).await,
            None => None,
        };
        let far = match &settings.far {
            Some(far) => far.resolved().await,
            None => Vec::new(),
        };
        let mut rounds = Rounds::new((settings, gpus, far), timeline, sink);
        rounds.begin();
        rounds.settle().await?;
        drop(begun);
        loop {
            let rest = rest(rounds.due());
            tokio::select! {
                biased;
                told = &mut stopped => {
                    // A message requests the last scrape. If the sender was dropped without a message, the
                    // last scrape is skipped.
                    if told.is_ok() {
                        rounds.last().await?;
                    }
                    return Ok(rounds.ended());
                }
                Some(ended) = rounds.under_way.join_next(), if !rounds.under_way.is_empty() => rounds.take(ended?)?,
                () = rest => {}
            }
            if rounds.is_due() {
                rounds.begin();
            }
        }
    })
}

/// Sleeps until `due`, when the next round begins, but at least a millisecond and at most [`LOOK`].
async fn rest(due: u64) {
    let left = Duration::from_nanos(due.saturating_sub(monotonic()));
    tokio::time::sleep(left.min(LOOK).max(Duration::from_millis(1))).await;
}

/// The state of the scraper. A round consists of one scrape of each page, one reading of the GPUs of this
/// machine, which are treated as an additional last page, and one measurement of the round trip.
struct Rounds {
    settings: Settings,
    gpus: Option<Reader>,
    sharing: Sharing,
    wanted: Arc<Wanted>,
    timeline: Arc<dyn Timeline>,
    sink: Sink,
    under_way: JoinSet<Ended>,
    /// For each page: whether a scrape of it is in progress.
    busy: Vec<bool>,
    /// The addresses of the server whose round trip is measured; empty if no round trip is measured.
    far: Arc<[SocketAddr]>,
    /// Whether a measurement of the round trip is in progress.
    is_measuring: bool,
    /// Samples taken before the start of the run was known, with times on the machine's clock.
    early: Vec<Sample>,
    totals: Totals,
    telemetry: Telemetry,
    /// When the last round began, in nanoseconds on the machine's clock.
    begun: u64,
    /// When the next round is due, in nanoseconds on the machine's clock.
    next: u64,
}

/// A completed task.
enum Ended {
    Scrape(Scraped),
    /// The time when a round trip was measured, in nanoseconds on the machine's clock, and its duration in
    /// seconds; `None` if there was no response.
    RoundTrip(u64, Option<f64>),
}

/// The result of one scrape.
struct Scraped {
    page: usize,
    began: u64,
    ended: u64,
    reading: Result<Reading, Gap>,
    /// The processes on the GPUs that were read.
    processes: gpus::Processes,
}

impl Rounds {
    fn new(asked: (Settings, Option<Reader>, Vec<SocketAddr>), timeline: Arc<dyn Timeline>, sink: Sink) -> Rounds {
        let (settings, gpus, far) = asked;
        let pages = settings.pages.iter().map(|page| page.shown.clone());
        let urls = pages.chain(gpus.as_ref().map(|gpus| gpus.shown.clone())).collect();
        let telemetry = Telemetry { urls, every_ns: settings.every.0, ..Telemetry::default() };
        let pages = settings.pages.len();
        let now = monotonic();
        Rounds {
            wanted: Arc::new(settings.wanted.clone()),
            settings,
            gpus,
            sharing: Sharing::default(),
            timeline,
            sink,
            under_way: JoinSet::new(),
            busy: vec![false; pages + 1],
            far: far.into(),
            is_measuring: false,
            early: Vec::new(),
            totals: Totals::new(pages),
            telemetry,
            begun: now,
            next: now,
        }
    }

    fn is_due(&self) -> bool {
        monotonic() >= self.due()
    }

    /// Returns the time at which the next round is due: the next multiple of the interval or, if this is
    /// earlier, the start or the end of the measure window.
    fn due(&self) -> u64 {
        let Some(origin) = self.timeline.origin() else { return self.next };
        let borders =
            self.timeline.window().into_iter().filter(|border| *border > 0).map(|border| origin.saturating_add(border));
        borders.filter(|border| *border > self.begun).chain([self.next]).min().unwrap_or(self.next)
    }

    /// Begins a scrape of each page that is not already being scraped, so that a scrape that hangs does not
    /// delay the others.
    fn begin(&mut self) {
        self.begun = monotonic();
        if self.timeline.origin().is_none() {
            // Only the newest samples before the run's start are kept, however long the run takes to start.
            self.early.clear();
        }
        self.begin_pages();
        self.begin_gpus();
        self.begin_round_trip();
        let every = self.settings.every.0.max(1);
        self.next += every * (self.begun.saturating_sub(self.next) / every + 1);
    }

    fn begin_pages(&mut self) {
        let limit = Duration::from(self.settings.every).min(LONGEST_SCRAPE);
        for (at, page) in self.settings.pages.iter().enumerate() {
            if std::mem::replace(&mut self.busy[at], true) {
                continue;
            }
            let page = page.clone();
            let wanted = Arc::clone(&self.wanted);
            self.under_way.spawn(async move {
                let began = monotonic();
                let text = timeout(limit, page.fetch()).await;
                let ended = monotonic();
                let late =
                    || Gap { kind: "timeout", why: format!("no complete response within {}", Nanos::from(limit)) };
                let text = text.unwrap_or_else(|_| Err(late()));
                let reading = text.and_then(|text| wanted.read(&text).map_err(Gap::from));
                Ended::Scrape(Scraped { page: at, began, ended, reading, processes: None })
            });
        }
    }

    /// Begins a reading of the GPUs if none is in progress. A reading may take longer than the interval,
    /// because the tools may be slow.
    fn begin_gpus(&mut self) {
        let page = self.settings.pages.len();
        let Some(gpus) = &self.gpus else { return };
        if std::mem::replace(&mut self.busy[page], true) {
            return;
        }
        let began = monotonic();
        let said = gpus.ask();
        self.under_way.spawn(async move {
            let said = said.await;
            let ended = monotonic();
            let (reading, processes) = match said {
                Ok(said) => (Ok(said.reading), said.processes),
                Err(gap) => (Err(gap), None),
            };
            Ended::Scrape(Scraped { page, began, ended, reading, processes })
        });
    }

    fn begin_round_trip(&mut self) {
        if self.far.is_empty() || std::mem::replace(&mut self.is_measuring, true) {
            return;
        }
        let far = Arc::clone(&self.far);
        self.under_way.spawn(async move {
            let seconds = round_trip::measure(&far).await;
            Ended::RoundTrip(monotonic(), seconds)
        });
    }

    /// Waits for all scrapes in progress.
    async fn settle(&mut self) -> Result<(), ScrapeError> {
        while let Some(ended) = self.under_way.join_next().await {
            self.take(ended?)?;
        }
        Ok(())
    }

    /// Makes the last round, and repeats its scrapes until two in a row agree on how many requests the server
    /// has completed.
    async fn last(&mut self) -> Result<(), ScrapeError> {
        self.settle().await?;
        self.begin();
        self.settle().await?;
        for _ in 0..LAST_TRIES {
            let before = self.totals.now();
            if before.is_none() {
                break;
            }
            tokio::time::sleep(LAST_PAUSE).await;
            self.begin_pages();
            self.settle().await?;
            if self.totals.now() == before {
                break;
            }
        }
        Ok(())
    }

    fn take(&mut self, ended: Ended) -> Result<(), ScrapeError> {
        match ended {
            Ended::Scrape(scraped) => self.take_scrape(scraped),
            Ended::RoundTrip(at_ns, seconds) => {
                self.is_measuring = false;
                self.hand_over(seconds.map(|seconds| round_trip::sample(at_ns, seconds)).into_iter().collect())
            }
        }
    }

    fn take_scrape(&mut self, scraped: Scraped) -> Result<(), ScrapeError> {
        let Scraped { page, began, ended, reading, processes } = scraped;
        self.busy[page] = false;
        self.sharing.take(processes);
        let url = u32::try_from(page).unwrap_or(u32::MAX);
        let at_ns = began + (ended - began) / 2;
        let one = |source: &str, name: String, value: f64| Sample {
            at_ns,
            source: source.to_owned(),
            name,
            value,
            url: Some(url),
            labels: None,
            error: None,
        };
        let seconds = one("scrape", "scrape_duration_seconds".to_owned(), (ended - began) as f64 / 1e9);
        self.telemetry.scrapes += 1;
        self.totals.take(page, reading.as_ref().ok());
        let samples = match reading {
            Ok(Reading { canonical, raw, exporter }) => {
                self.telemetry.note(page, exporter);
                let known = canonical
                    .iter()
                    .map(|(series, part, value)| one(series.source, format!("{}{part}", series.key), *value));
                let raw = raw
                    .into_iter()
                    .map(|(name, labels, value)| Sample { labels: Some(labels), ..one("raw", name, value) });
                let up = one("scrape", "up".to_owned(), 1.0);
                [up, seconds].into_iter().chain(known).chain(raw).collect::<Vec<_>>()
            }
            Err(Gap { kind, why }) => {
                self.telemetry.gaps += 1;
                let shown = &self.telemetry.urls[page];
                self.telemetry.first_gap.get_or_insert_with(|| format!("{shown}: {why}"));
                let up = one("scrape", "up".to_owned(), 0.0);
                vec![Sample { error: Some(kind.to_owned()), ..up }, seconds]
            }
        };
        self.hand_over(samples)
    }

    /// Passes samples to the sink, with times on the run's clock. Before the run's start is known, they are
    /// kept in `early`.
    fn hand_over(&mut self, samples: Vec<Sample>) -> Result<(), ScrapeError> {
        self.early.extend(samples);
        let Some(origin) = self.timeline.origin() else { return Ok(()) };
        let mut ready = std::mem::take(&mut self.early);
        ready.iter_mut().for_each(|sample| sample.at_ns = sample.at_ns.saturating_sub(origin));
        (self.sink)(&ready)
    }

    fn ended(self) -> Telemetry {
        let counted = self.totals.counted();
        let page = u32::try_from(self.settings.pages.len()).unwrap_or(u32::MAX);
        let gpus = self.gpus.map(|_| self.sharing.ended(page));
        Telemetry { counted, gpus, ..self.telemetry }
    }
}

/// Returns the time on the machine's monotonic clock, in nanoseconds.
fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
