//! The tasks that perform requests on one thread. A task performs one request after the other, because
//! creating a task for each request costs more than most of the other work for it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use tokio::sync::mpsc::UnboundedSender;

use super::client::{Client, Ended, Order};
use super::feed::Ticket;

/// The result of a request.
pub(crate) type Completed = (Ended, Ticket);

/// One request to perform, and the receiver of its result.
pub(crate) type Handed = (Order, Ticket, UnboundedSender<Completed>);

/// The tasks: as many as were ever busy at once.
pub(crate) struct Workers {
    client: Client,
    idle: RefCell<Vec<Rc<Worker>>>,
}

/// A task without a request.
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

    /// Lets a task perform a request. Must be called within the runtime.
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
            let told = (self.client.perform(order).await, ticket);
            self.idle.borrow_mut().push(Rc::clone(&worker));
            // The receiver is gone if the run was stopped.
            let _ = ended.send(told);
        }
    }
}

impl Worker {
    /// Returns the task's next request.
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
