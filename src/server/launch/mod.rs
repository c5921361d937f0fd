//! Servers that sweepline starts.
//!
//! Each runs below a supervisor, a process of sweepline's own program that holds the read end of a pipe
//! from the sweep: when the sweep stops it, or is gone (even by `kill -9`), the supervisor runs the plan's
//! `stop`, ends the process group by TERM and then KILL, and ends the processes that left the group, whose
//! subreaper it is. If the supervisor itself is killed, a lease in the results folder records the rest of
//! the work, and the next sweep does it first (`lease`).

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
