//! The worker process. It reads its order from standard input, sends its share of the load, and writes rows
//! to standard output. It exits when its input ends, so that no worker outlives its coordinator.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use crate::engine::{self, EngineError, Finish, Job, Part, Progress, SampleSink, Share, Sink, TextSink, monotonic};

use super::frame::{self, Kind};
use super::message::{Build, Counters, Failed, FromWorker, Order, ToWorker};
use super::sinks::{Output, RecordsOut, SamplesOut, TextsOut};
use super::{hooks, material};

/// How often a worker reports its counters. The coordinator treats a silent worker as lost.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// The destinations of a worker's results, and its share of the load.
pub struct Outlets {
    /// The destination of rows.
    pub sink: Box<dyn Sink>,
    /// The destination of time series.
    pub samples: Box<dyn SampleSink>,
    /// The destination of texts, which is used only for runs that record them.
    pub texts: Box<dyn TextSink>,
    /// The worker's share of the load, and the coordinator's cues.
    pub part: Part,
}

/// Serves one coordinator. `prepare` converts an order to a job; its errors are reported to the
/// coordinator.
///
/// # Errors
///
/// Fails if the pipes are broken, or if standard input does not come from a coordinator.
pub fn serve(prepare: impl FnOnce(Order, Outlets) -> Result<Job, String>) -> io::Result<()> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = Output::open()?;
    let Some(ToWorker::Hello(theirs)) = hear(&mut input)? else {
        return Err(io::Error::other("this command is started by `run` for a plan with `workers`"));
    };
    output.tell(&FromWorker::Hello(Build::own(), host()))?;
    if theirs != Build::own() {
        // The coordinator reports that the versions differ.
        return Ok(());
    }
    let Some(ToWorker::Order(mut order)) = hear(&mut input)? else { return Ok(()) };
    let Some((Kind::Material, content)) = frame::read(&mut input)? else { return Ok(()) };
    material::fill(&mut order.spec, &content)?;
    drop(content);
    let (cues, part) = cues(&output, order.share);
    let stop = cues.stop.subscribe();
    let outlets = Outlets {
        sink: Box::new(RecordsOut::new(output.clone()).map_err(io::Error::other)?),
        samples: Box::new(SamplesOut::new(output.clone())),
        texts: Box::new(TextsOut::new(output.clone())),
        part,
    };
    let listener = listen(input, output.clone(), cues);
    let told = match prepare(*order, outlets) {
        Ok(job) => perform(job, &output, stop),
        Err(reason) => FromWorker::Failed(Failed::Other(reason)),
    };
    output.tell(&told)?;
    // The worker must respond to pings until the coordinator has compared the clocks again.
    let _ = listener.join();
    Ok(())
}

fn perform(job: Job, output: &Output, stop: watch::Receiver<bool>) -> FromWorker {
    let progress = Arc::new(Progress::default());
    let is_over = Arc::new(AtomicBool::new(false));
    let reporter = report(output.clone(), Arc::clone(&progress), Arc::clone(&is_over));
    let finished = engine::execute(job, progress, stop);
    is_over.store(true, Ordering::Relaxed);
    // An error would mean that the reporting thread panicked, but it only sleeps and writes.
    let _ = reporter.join();
    match finished {
        Ok(finished) => FromWorker::Done(Box::new(finished.facts)),
        Err(EngineError::Stopped) => FromWorker::Failed(Failed::Stopped),
        Err(EngineError::Spoiled(spoiled)) => FromWorker::Failed(Failed::Spoiled(spoiled)),
        Err(error) => FromWorker::Failed(Failed::Other(error.to_string())),
    }
}

fn report(output: Output, progress: Arc<Progress>, is_over: Arc<AtomicBool>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            let counters = Counters {
                phase: progress.phase() as u8,
                elapsed_ns: progress.elapsed_ns(),
                window_ns: progress.window_ns(),
                in_flight: progress.in_flight.get(),
                in_window: progress.in_window.get(),
                token_events: progress.token_events.get(),
                signs: progress.signs.get(),
            };
            if output.tell(&FromWorker::Progress(counters)).is_err() {
                return;
            }
            std::thread::sleep(REPORT_EVERY);
        }
    })
}

/// The channels through which the coordinator's cues reach the run.
struct Cues {
    open: Option<oneshot::Sender<()>>,
    start: Option<oneshot::Sender<u64>>,
    finish: Finish,
    stop: watch::Sender<bool>,
}

fn cues(output: &Output, (index, count): (u32, u32)) -> (Cues, Part) {
    let (open, is_open) = oneshot::channel();
    let (start, started) = oneshot::channel();
    let (finish, stop) = (Finish::default(), watch::Sender::new(false));
    let told = output.clone();
    let part = Part {
        share: Share::new(index, count).unwrap_or(Share::WHOLE),
        open: is_open,
        start: started,
        finish: finish.clone(),
        // Errors do not matter: if the pipe is broken, the worker's input ends too, and then the worker
        // exits.
        tell: Box::new(move |stage| drop(told.tell(&FromWorker::Stage(stage.into())))),
    };
    (Cues { open: Some(open), start: Some(start), finish, stop }, part)
}

/// Starts a thread that handles the coordinator's messages until the goodbye message. If the coordinator is
/// gone, the thread ends the process.
fn listen(mut input: File, output: Output, mut cues: Cues) -> JoinHandle<()> {
    std::thread::spawn(move || {
        loop {
            match hear(&mut input) {
                Ok(Some(ToWorker::Ping(number))) => {
                    let read = monotonic() + hooks::ahead_ns();
                    std::thread::sleep(hooks::answers_after());
                    let _ = output.tell(&FromWorker::Pong(number, read));
                }
                Ok(Some(ToWorker::Open)) => drop(cues.open.take().map(|open| open.send(()))),
                Ok(Some(ToWorker::Start(at))) => {
                    let at = at.saturating_sub(hooks::ahead_ns());
                    std::thread::sleep(hooks::late(at.saturating_sub(monotonic())));
                    // An error means that the run was stopped.
                    let _ = cues.start.take().map(|start| start.send(at));
                }
                Ok(Some(ToWorker::Finish(at))) => cues.finish.set(at),
                // An error means that the run is over.
                Ok(Some(ToWorker::Stop)) => drop(cues.stop.send(true)),
                Ok(Some(ToWorker::Bye)) => return,
                Ok(Some(ToWorker::Hello(_) | ToWorker::Order(_)) | None) | Err(_) => std::process::exit(0),
            }
        }
    })
}

/// Returns the next message; `None` at the end of the input.
fn hear(input: &mut File) -> io::Result<Option<ToWorker>> {
    match frame::read(input)? {
        Some((Kind::Message, content)) => Ok(Some(serde_json::from_slice(&content)?)),
        Some(_) => Err(io::Error::other("expected a message")),
        None => Ok(None),
    }
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
