//! Properties of a run that follow from the queue of an open loop.

use crate::rows::{Facts, Measured};

use super::flight::Flight;
use super::saturation;
use super::series::PARTS;
use super::worth::Turns;

/// The queue of a run, which is the same for every part of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queue {
    /// How often it was observed to fill and to drain.
    pub turns: Turns,
    /// Whether the server kept up; `None` for a closed loop, and if the window has no length.
    pub saturation: Option<saturation::Evidence>,
}

impl Queue {
    /// Computes it from all requests of a run, of every phase and part. In a closed loop, the requests
    /// in flight provide no evidence.
    pub fn of(rows: &[Measured], facts: &Facts) -> Queue {
        if !facts.open_loop {
            return Queue { turns: Turns::CLOSED, saturation: None };
        }
        let flight = Flight::of(rows, facts);
        let unserved = flight.unserved(rows);
        let served = unserved.as_ref().unwrap_or(&flight);
        let saturation = match facts.window_qps {
            Some(_) => saturation::Evidence::under_profile(served),
            None => saturation::Evidence::of(served),
        };
        Queue { turns: Turns::of(&flight.averages(PARTS)), saturation }
    }
}
