//! Servers that sweepline starts.
//!
//! Each server runs below a supervisor, a process of sweepline's own program that holds the read end of a
//! pipe from the sweep. When the sweep closes the pipe, or ends (even by `kill -9`), the supervisor runs
//! the plan's `stop`, ends the process group with TERM and then KILL, and ends processes that left the
//! group, for which it is the subreaper. If the supervisor itself is killed, a lease in the results folder
//! records what remains to be ended, and the next sweep does that first (`lease`).

mod command;
mod launched;
mod lease;
mod log;
mod order;
mod processes;
mod supervisor;

pub use launched::{LaunchError, Launched, SUPERVISE, ServerWatch, find_program, free_port, port_taken};
pub use lease::{LeftServer, left_servers};
pub use order::LaunchOrder;
pub use supervisor::supervise;
