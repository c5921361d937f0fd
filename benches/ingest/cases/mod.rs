//! The measurements.

pub mod memory;
pub mod open;
mod plan;
mod run;
pub mod steps;
pub mod streams;
pub mod ttft;

use crate::args::{Args, Part};
use crate::report::Report;

/// Measures one part.
pub fn run(part: Part, args: &Args, report: &mut Report) {
    match part {
        Part::Streams => streams::coalesced(args, report),
        Part::PerEvent => streams::per_event(args, report),
        Part::Http2 => streams::http2(args, report),
        Part::OneToken => streams::one_token(args, report),
        Part::Open => open::open(args, report),
        Part::Ttft => ttft::ttft(args, report),
        Part::Memory => memory::memory(args, report),
        Part::Steps => steps::steps(args, report),
    }
}
