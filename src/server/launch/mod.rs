//! Servers that sweepline starts.
//!
//! Each server runs below a supervisor, a process of sweepline's own program that holds the read end of a
//! pipe from the sweep. When the sweep closes the pipe, or ends (even by `kill -9`), the supervisor runs the
//! plan's `stop` command and ends the server's process group with TERM and then KILL. It also ends processes
//! that left the group; it can find them because it is their subreaper. If the supervisor itself is killed, a
//! lease in the results folder identifies the processes that remain, and the next sweep ends them before it
//! does anything else (`lease`).

mod command;
mod launched;
mod lease;
mod log;
mod order;
mod processes;
mod supervisor;

pub use launched::{EarlyEnd, LaunchError, Launched, SUPERVISE, ServerWatch, find_program, free_port, port_taken};
pub use lease::{LeftServer, left_servers};
pub use order::LaunchOrder;
pub use supervisor::supervise;
