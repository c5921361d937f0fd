//! What the queue of an open loop says of a run.

use crate::rows::{Facts, Measured};

use super::flight::Flight;
use super::saturation;
use super::series::PARTS;
use super::worth::Turns;

/// What a run's queue says: the same for every part of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queue {
    /// How often it was seen to fill and to drain.
    pub turns: Turns,
    /// Whether the server kept up; none of a closed loop, and where the window has no length.
    pub saturation: Option<saturation::Evidence>,
}

impl Queue {
    /// Of all requests of a run, of every phase and part. In a closed loop what is in flight says nothing.
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
