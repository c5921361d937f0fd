//! Dispatches the requests of a run to workers: the executor's own thread, or several I/O threads, each
//! with its own runtime and connections. In both cases there is one schedule and one writer, and all
//! requests of a slot use the same thread.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::expand::{Load, RunSpec};

use super::canary;
use super::client::{Client, Common, Order};
use super::connector::Connector;
use super::demand;
use super::feed::Ticket;
use super::lingering::Lingerers;
use super::links::Links;
use super::observe::Membership;
use super::share::Share;
#[cfg(debug_assertions)]
use super::simulated::{SimulatedRun, SimulatedServer};
use super::threads;
use super::workers::{Completed, Handed, Workers};

/// Creates a runtime that performs measured requests on the calling thread.
pub(crate) fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
}

/// The threads that perform a run's requests.
pub(crate) enum Hands {
    /// The executor's own thread.
    Here(Rc<Workers>),
    /// Separate threads.
    Threads(Threads),
    /// A server inside this process, in virtual time.
    #[cfg(debug_assertions)]
    Simulated(SimulatedServer),
}

impl Hands {
    /// Starts to perform `order`. The finished request is sent to `ended`, with its `ticket`.
    pub(crate) fn perform(&self, order: Order, ticket: Ticket, ended: &UnboundedSender<Completed>) {
        match self {
            Hands::Here(workers) => workers.perform((order, ticket, ended.clone())),
            Hands::Threads(threads) => threads.perform(order, ticket, ended),
            #[cfg(debug_assertions)]
            Hands::Simulated(server) => server.perform(order, ticket, ended),
        }
    }

    /// The simulated server that performs the requests; `None` if they are sent.
    #[cfg(debug_assertions)]
    pub(super) fn simulated(&self) -> Option<&SimulatedServer> {
        match self {
            Hands::Simulated(server) => Some(server),
            _ => None,
        }
    }
}

/// Running I/O threads.
pub(crate) struct Threads {
    threads: Vec<Thread>,
    share: Share,
    /// The registration of the executor's thread, which dispatches requests to the I/O threads.
    _executor: Membership,
}

/// One I/O thread.
pub(crate) struct Thread {
    orders: Option<UnboundedSender<Handed>>,
    handle: Option<JoinHandle<()>>,
}

/// Workers whose connections are open; the run's clock has not started.
pub(crate) enum Opened {
    /// The executor's own thread.
    Here(Links),
    /// Separate threads, each waiting for the run to begin.
    Threads(Vec<(Thread, oneshot::Sender<Arc<Common>>)>),
    /// A server inside this process, in virtual time.
    #[cfg(debug_assertions)]
    Simulated(SimulatedRun),
}

impl Opened {
    /// Opens the connections that this share of `spec` needs at its start, spread over the share's threads.
    pub(crate) async fn open(spec: &Arc<RunSpec>, share: Share, connector: Connector) -> io::Result<Opened> {
        let ahead = demand::share(demand::ahead(spec), share.index(), share.count());
        let threads = spec.engine.threads;
        if threads <= 1 {
            let links = Links::new(spec, connector);
            links.open_ahead(ahead).await;
            return Ok(Opened::Here(links));
        }
        let mut starting = Vec::new();
        for number in 0..threads {
            let (orders, taken) = unbounded_channel();
            let (begin, begun) = oneshot::channel();
            let (ready, is_ready) = oneshot::channel();
            let (spec, connector) = (Arc::clone(spec), connector.clone());
            let share = demand::share(ahead, number, threads);
            let work = move || work(&spec, connector, share, ready, begun, taken);
            let handle = std::thread::Builder::new().name(format!("io-{}", number + 1)).spawn(work)?;
            starting.push((Thread { orders: Some(orders), handle: Some(handle) }, begin, is_ready));
        }
        let mut opened = Vec::new();
        for (thread, begin, is_ready) in starting {
            is_ready.await.unwrap_or_else(|_| Err(io::Error::other("an I/O thread has ended early")))?;
            opened.push((thread, begin));
        }
        Ok(Opened::Threads(opened))
    }

    /// Starts this share of the run.
    pub(crate) fn begin(self, common: &Arc<Common>, share: Share) -> Hands {
        match self {
            #[cfg(debug_assertions)]
            Opened::Simulated(run) => Hands::Simulated(SimulatedServer::new(Arc::clone(common), run)),
            Opened::Here(mut links) => {
                links.begin(common.clock);
                canary::attend(&common.observer, common.clock, "io");
                Hands::Here(Workers::new(Client { common: Arc::clone(common), links, lingerers: Lingerers::default() }))
            }
            Opened::Threads(threads) => {
                let executor = common.observer.enlist("executor");
                let begun = |(thread, begin): (Thread, oneshot::Sender<Arc<Common>>)| {
                    // If a thread has ended in the meantime, its requests will fail.
                    let _ = begin.send(Arc::clone(common));
                    thread
                };
                let threads = threads.into_iter().map(begun).collect();
                Hands::Threads(Threads { threads, share, _executor: executor })
            }
        }
    }
}

impl Threads {
    fn perform(&self, order: Order, ticket: Ticket, ended: &UnboundedSender<Completed>) {
        let number = order.start.slot.map_or(order.start.request, u64::from);
        // The division is needed because the request numbers of a share may, for example, all be even.
        // Without it, the threads would get unequal loads.
        let number = number / u64::from(self.share.count());
        let thread = &self.threads[(number % self.threads.len() as u64) as usize];
        if let Some(orders) = &thread.orders {
            // The result is ignored because a thread accepts orders as long as this sender exists.
            let _ = orders.send((order, ticket, ended.clone()));
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(handle) = self.handle.take() {
            // A thread that panicked has nothing left to report.
            let _ = handle.join();
        }
    }
}

/// Runs one I/O thread: opens its connections, waits for the run to begin, then performs the dispatched
/// requests until no sender is left.
fn work(
    spec: &RunSpec,
    connector: Connector,
    ahead: u32,
    ready: oneshot::Sender<io::Result<()>>,
    begun: oneshot::Receiver<Arc<Common>>,
    mut orders: UnboundedReceiver<Handed>,
) {
    if matches!(spec.load, Load::Open { .. }) {
        threads::ask_for_short_slices();
    }
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        // The receiver is gone if the run was stopped.
        Err(error) => return drop(ready.send(Err(error))),
    };
    runtime.block_on(async move {
        let mut links = Links::new(spec, connector);
        links.open_ahead(ahead).await;
        let _ = ready.send(Ok(()));
        let Ok(common) = begun.await else { return };
        links.begin(common.clock);
        canary::attend(&common.observer, common.clock, std::thread::current().name().unwrap_or("io"));
        let workers = Workers::new(Client { common, links, lingerers: Lingerers::default() });
        while let Some(handed) = orders.recv().await {
            workers.perform(handed);
        }
    });
}
