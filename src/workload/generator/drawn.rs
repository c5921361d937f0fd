//! Assigns a record of a data set to item k: a pure function of the run's key and k. All records are
//! used before any is repeated.

use std::cell::RefCell;
use std::sync::Arc;

use crate::dataset::sample;
use crate::plan::{Corpus, DataOrder, DataSource, Dialogue};
use crate::units::Seed;

/// Number of cached orders: conversations of several passes may be in progress at once.
const ORDERS: usize = 4;

/// The records of a data set in the order in which a run sends them.
#[derive(Clone)]
pub(super) struct Drawn {
    source: Arc<DataSource>,
    order: DataOrder,
    seed: Seed,
    /// The number of requested tokens, if the scenario specifies them.
    pub(super) output_tokens: Option<u32>,
    /// The orders of the most recently used passes, by pass.
    orders: RefCell<Vec<(u64, Arc<[u32]>)>>,
}

impl Drawn {
    pub(super) fn new(Corpus { order, output_tokens, source }: &Corpus, key: &[u8; 32]) -> Drawn {
        let seed = Seed(u64::from_le_bytes(std::array::from_fn(|at| key[at])));
        let (order, output_tokens, orders) = (*order, *output_tokens, RefCell::default());
        Drawn { source: Arc::clone(source), order, seed, output_tokens, orders }
    }

    /// Returns the record of item `item`.
    pub(super) fn record(&self, item: u64) -> &Dialogue {
        let count = self.source.dialogues.len() as u64;
        let (pass, at) = (item / count, (item % count) as usize);
        let at = match self.order {
            DataOrder::File => at,
            DataOrder::Shuffled => self.order_of(pass)[at] as usize,
        };
        &self.source.dialogues[at]
    }

    fn order_of(&self, pass: u64) -> Arc<[u32]> {
        let mut orders = self.orders.borrow_mut();
        if let Some((_, order)) = orders.iter().find(|(known, _)| *known == pass) {
            return Arc::clone(order);
        }
        let count = u32::try_from(self.source.dialogues.len()).unwrap_or(u32::MAX);
        let order: Arc<[u32]> = sample::order(count, self.seed, pass).into();
        if orders.len() == ORDERS {
            orders.remove(0);
        }
        orders.push((pass, Arc::clone(&order)));
        order
    }

    /// Returns the number of questions of item `item`.
    pub(super) fn turns(&self, item: u64) -> u32 {
        u32::try_from(self.record(item).asked.len()).unwrap_or(u32::MAX)
    }
}
