//! The tasks that perform requests on one thread. A task performs one request after another, because
//! creating a task for each request would cost more than most of the other work for the request.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use tokio::sync::mpsc::UnboundedSender;

use super::client::{Client, Ended, Order, Performed};
use super::feed::Ticket;
use super::lingering::HeldOpen;
use super::tally::Entry;

/// The progress of a request, as it is reported to the executor.
pub(crate) enum Completed {
    /// The request has ended.
    Ended(Ended, Ticket),
    /// The row of a request that has ended earlier, whose stream the server held open.
    Late(Entry),
}

/// One request to perform, with its ticket and the sender for its result.
pub(crate) type Handed = (Order, Ticket, UnboundedSender<Completed>);

/// The tasks of one thread. There are as many tasks as have ever been busy at once.
pub(crate) struct Workers {
    client: Client,
    idle: RefCell<Vec<Rc<Worker>>>,
}

/// A task's next request, and the waker of the task while it waits for a request.
#[derive(Default)]
struct Worker {
    handed: RefCell<Option<Handed>>,
    waker: Cell<Option<Waker>>,
}

impl Workers {
    /// Creates the set of tasks, which is empty at first.
    pub(crate) fn new(client: Client) -> Rc<Workers> {
        Rc::new(Workers { client, idle: RefCell::default() })
    }

    /// Passes a request to an idle task, or to a new one if none is idle. Must be called within the
    /// runtime.
    pub(crate) fn perform(self: &Rc<Self>, handed: Handed) {
        let idle = self.idle.borrow_mut().pop();
        let worker = idle.unwrap_or_else(|| {
            let worker = Rc::new(Worker::default());
            tokio::task::spawn_local(Rc::clone(self).work(Rc::clone(&worker)));
            worker
        });
        *worker.handed.borrow_mut() = Some(handed);
        if let Some(waker) = worker.waker.take() {
            waker.wake();
        }
    }

    async fn work(self: Rc<Self>, worker: Rc<Worker>) {
        loop {
            let (order, ticket, ended) = worker.next().await;
            let Performed { ended: request, held } = self.client.perform(order).await;
            self.idle.borrow_mut().push(Rc::clone(&worker));
            if let Some(held) = held {
                tokio::task::spawn_local(Rc::clone(&self).read_on(held, ended.clone()));
            }
            // The receiver is gone if the run was stopped.
            let _ = ended.send(Completed::Ended(request, ticket));
        }
    }

    async fn read_on(self: Rc<Self>, held: HeldOpen, rows: UnboundedSender<Completed>) {
        let entry = self.client.read_on(held).await;
        let _ = rows.send(Completed::Late(entry));
    }
}

impl Worker {
    /// Waits for the task's next request.
    async fn next(&self) -> Handed {
        poll_fn(|cx| match self.handed.borrow_mut().take() {
            Some(handed) => Poll::Ready(handed),
            None => {
                self.waker.set(Some(cx.waker().clone()));
                Poll::Pending
            }
        })
        .await
    }
}
