//! Who performs the requests of a run: the executor's own thread, or several I/O threads, each with a runtime and
//! connections of its own. There is one schedule and one writer either way; a slot stays with its thread.

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
use super::links::Links;
use super::observe::Membership;
use super::threads;
use super::workers::{Completed, Handed, Workers};

/// A runtime for measured requests, for the calling thread.
pub(crate) fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
}

/// What performs requests.
pub(crate) enum Hands {
    /// The executor's own thread.
    Here(Rc<Workers>),
    /// Threads beside it.
    Threads(Threads),
}

impl Hands {
    /// Starts performing `order`; its end is told to `ended`.
    pub(crate) fn perform(&self, order: Order, ticket: Ticket, ended: &UnboundedSender<Completed>) {
        match self {
            Hands::Here(workers) => workers.perform((order, ticket, ended.clone())),
            Hands::Threads(threads) => threads.perform(order, ticket, ended),
        }
    }
}

/// I/O threads at work.
pub(crate) struct Threads {
    threads: Vec<Thread>,
    /// The thread that hands requests to them.
    _executor: Membership,
}

/// One of them.
pub(crate) struct Thread {
    orders: Option<UnboundedSender<Handed>>,
    handle: Option<JoinHandle<()>>,
}

/// Hands whose connections are open, before the run's clock starts.
pub(crate) enum Opened {
    /// The executor's own thread.
    Here(Links),
    /// Threads beside it, each waiting for the run to begin.
    Threads(Vec<(Thread, oneshot::Sender<Arc<Common>>)>),
}

impl Opened {
    /// Opens what `spec` wants to find open, spread over as many threads as it asks for.
    pub(crate) async fn open(spec: &Arc<RunSpec>, connector: Connector) -> io::Result<Opened> {
        let (threads, ahead) = (spec.engine.threads, demand::ahead(spec));
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

    /// The run begins.
    pub(crate) fn begin(self, common: &Arc<Common>) -> Hands {
        match self {
            Opened::Here(mut links) => {
                links.begin(common.clock);
                canary::attend(&common.observer, common.clock, "io");
                Hands::Here(Workers::new(Client { common: Arc::clone(common), links }))
            }
            Opened::Threads(threads) => {
                let executor = common.observer.enlist("executor");
                let begun = |(thread, begin): (Thread, oneshot::Sender<Arc<Common>>)| {
                    // A thread that has ended meanwhile shows in its requests.
                    let _ = begin.send(Arc::clone(common));
                    thread
                };
                Hands::Threads(Threads { threads: threads.into_iter().map(begun).collect(), _executor: executor })
            }
        }
    }
}

impl Threads {
    fn perform(&self, order: Order, ticket: Ticket, ended: &UnboundedSender<Completed>) {
        let number = order.start.slot.map_or(order.start.request, u64::from);
        let thread = &self.threads[(number % self.threads.len() as u64) as usize];
        if let Some(orders) = &thread.orders {
            // A thread takes orders for as long as this sender lives.
            let _ = orders.send((order, ticket, ended.clone()));
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(handle) = self.handle.take() {
            // A thread that panicked has nothing left to tell.
            let _ = handle.join();
        }
    }
}

/// One I/O thread: opens its connections, waits for the run to begin, then performs what it is handed until nobody can
/// hand it anything.
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
        // Nobody listens any longer when the run was stopped.
        Err(error) => return drop(ready.send(Err(error))),
    };
    runtime.block_on(async move {
        let mut links = Links::new(spec, connector);
        links.open_ahead(ahead).await;
        let _ = ready.send(Ok(()));
        let Ok(common) = begun.await else { return };
        links.begin(common.clock);
        canary::attend(&common.observer, common.clock, std::thread::current().name().unwrap_or("io"));
        let workers = Workers::new(Client { common, links });
        while let Some(handed) = orders.recv().await {
            workers.perform(handed);
        }
    });
}
