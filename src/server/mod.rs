//! The server under test: launching it, probing it, checking whether it is reachable and idle, requesting
//! its token counts and its description of itself, and running hooks and token commands. Also contains the
//! embedded mock's process and the description of the machine that sends the requests.

mod check;
mod command;
mod describe;
mod embedded;
mod fingerprint;
mod gpus;
mod hook;
mod host;
mod idle;
pub mod launch;
mod own_program;
mod probe;
mod ready;
#[cfg(test)]
mod recorded_tests;
mod round_trip;
mod self_description;
mod token;
mod tokenize;
mod watchdog;
mod way;

pub use check::{Presence, check, is_ready};
pub use describe::{Description, describe};
pub use embedded::Embedded;
pub use fingerprint::{look, other_version};
pub use gpus::{Gpus, gpus};
pub use hook::{HookEnd, HookLimits, HookStopped, run_command, send_request};
pub use host::client_environment;
pub use idle::{Busy, Gauge};
pub use own_program::own_program;
pub use probe::{Found, IS_IT_THERE, PROMPT, ProbeError, Question, probe};
pub use ready::Unready;
pub use round_trip::measure_way;
pub use self_description::SelfDescription;
pub use token::{TokenError, print_token};
pub use tokenize::{Counter, Message};
pub use watchdog::watch;
pub use way::Way;
