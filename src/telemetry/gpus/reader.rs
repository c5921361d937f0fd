//! The thread that reads the GPUs. Calls to the driver block, and a driver that hangs may block the thread
//! forever. In that case, the thread is abandoned, each reading fails, and nothing waits for the thread to
//! end.

use std::future::Future;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::super::gap::Gap;
use super::super::page::Reading;
use super::choose::choose;
use super::device::{Device, together};
use super::find::find;
use super::sharing::{Found, Processes};
use super::source::{Source, Tool};
use super::wanted::{IsOwn, Wanted};
use crate::units::Nanos;

/// Time limit of a reading.
const LONGEST: Duration = Duration::from_secs(5);
/// Minimum interval between process queries if a query costs as much as a reading.
const PROCESSES_EVERY: Duration = Duration::from_secs(5);

/// The result of one reading.
#[derive(Debug, PartialEq)]
pub(in crate::telemetry) struct Said {
    /// The canonical values, combined over all GPUs that are read.
    pub(in crate::telemetry) reading: Reading,
    /// The processes on the GPUs that are read.
    pub(in crate::telemetry) processes: Processes,
}

/// The handle to the thread that reads the GPUs.
pub(in crate::telemetry) struct Reader {
    asks: Sender<oneshot::Sender<Result<Said, Gap>>>,
    /// A description of the GPUs that are read, such as `GPUs of this machine by nvml: 0, 1`.
    pub(in crate::telemetry) shown: String,
}

/// The result of looking for GPUs.
enum Opened {
    /// There are GPUs, described by this text. If they cannot be listed or selected, each reading fails.
    Found(String),
    /// There are no GPUs.
    Nothing,
}

/// Looks for GPUs to read. Returns `None` if there are no GPUs and none are required.
pub(in crate::telemetry) async fn open(wanted: Wanted) -> Option<Reader> {
    let (asks, asked) = channel();
    let (tell, opened) = oneshot::channel();
    let may_be_none = wanted.may_be_none;
    let tried = wanted.tools.iter().map(|tool| tool.name()).collect::<Vec<_>>().join(", ");
    // If no thread can be started, every reading is a gap.
    let _ = std::thread::Builder::new().name("gpus".to_owned()).spawn(move || serve(wanted, tell, asked));
    let opened = timeout(LONGEST, opened).await;
    let shown = match opened {
        Ok(Ok(Opened::Found(shown))) => shown,
        Ok(Ok(Opened::Nothing)) if may_be_none => return None,
        _ => format!("GPUs of this machine by {tried}"),
    };
    Some(Reader { asks, shown })
}

impl Reader {
    /// Requests a reading. If the thread is still busy with an earlier request, the reading has to wait for
    /// it.
    pub(in crate::telemetry) fn ask(&self) -> impl Future<Output = Result<Said, Gap>> + Send + 'static {
        let (tell, said) = oneshot::channel();
        let is_asked = self.asks.send(tell).is_ok();
        async move {
            let gone = || Gap { kind: "failed", why: "the thread that reads GPUs has ended".to_owned() };
            if !is_asked {
                return Err(gone());
            }
            let late = |_| Gap { kind: "timeout", why: format!("no reading within {}", Nanos::from(LONGEST)) };
            timeout(LONGEST, said).await.map_err(late)?.map_err(|_| gone())?
        }
    }
}

/// Runs the thread until the handle is dropped.
fn serve(wanted: Wanted, opened: oneshot::Sender<Opened>, asked: Receiver<oneshot::Sender<Result<Said, Gap>>>) {
    let mut found = Chosen::find(&wanted);
    let said = match &found {
        Ok(chosen) => Opened::Found(chosen.shown()),
        Err(Gap { kind: "no_gpu", .. }) => Opened::Nothing,
        Err(_) => Opened::Found("GPUs of this machine".to_owned()),
    };
    // The caller may have stopped waiting, so a failed send is ignored.
    let _ = opened.send(said);
    while let Ok(tell) = asked.recv() {
        // Skip requests that timed out while an earlier call was hanging.
        if tell.is_closed() {
            continue;
        }
        let said = match &mut found {
            Ok(chosen) => chosen.read(),
            Err(gap) => Err(gap.clone()),
        };
        let _ = tell.send(said);
    }
}

/// The GPUs that are read.
struct Chosen {
    source: Box<dyn Source>,
    devices: Vec<Device>,
    is_own: Option<IsOwn>,
    /// When processes were last queried; `None` before the first query.
    asked: Option<Instant>,
}

impl Chosen {
    fn find(wanted: &Wanted) -> Result<Chosen, Gap> {
        let (mut source, all) = find(&wanted.tools)?;
        let is_amd = source.tool().is_amd();
        let of_server = || -> Vec<String> {
            let Some(is_own) = &wanted.is_own else { return Vec::new() };
            let processes = source.processes(&all).unwrap_or_default();
            processes.into_iter().filter(|process| is_own(process.pid)).map(|process| process.uuid).collect()
        };
        let devices = choose(&wanted.which, &all, (is_amd, of_server));
        // If GPUs exist but cannot be selected, this must be reported, so the gap is not `no_gpu`.
        let devices = devices.map_err(|why| Gap { kind: "no_device", why })?;
        Ok(Chosen { source, devices, is_own: wanted.is_own.clone(), asked: None })
    }

    fn shown(&self) -> String {
        let devices: Vec<String> = self.devices.iter().map(Device::shown).collect();
        format!("GPUs of this machine by {}: {}", self.tool().name(), devices.join(", "))
    }

    fn tool(&self) -> Tool {
        self.source.tool()
    }

    fn read(&mut self) -> Result<Said, Gap> {
        let reading = together(&self.source.read(&self.devices)?);
        Ok(Said { reading, processes: self.processes() })
    }

    fn processes(&mut self) -> Processes {
        let Some(is_own) = self.is_own.clone() else {
            let why = "sweepline did not start the server, so it does not know which processes are the server's";
            return Some(Err(why.to_owned()));
        };
        let is_recent = self.asked.is_some_and(|asked| asked.elapsed() < PROCESSES_EVERY);
        if is_recent && self.source.asks_dearly() {
            return None;
        }
        self.asked = Some(Instant::now());
        let found = self.source.processes(&self.devices);
        let known = |pid: u32| Found { pid, name: program(pid), is_own: is_own(pid) };
        Some(found.map(|found| found.into_iter().map(|process| known(process.pid)).collect()))
    }
}

/// Returns the program name of a process without its arguments, which may contain secrets.
fn program(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    crate::units::text::plain(name.trim())
}
