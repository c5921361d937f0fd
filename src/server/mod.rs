//! The server under test: the embedded mock's process, a probe of any server, whether it
//! is idle, its own count of tokens, and the machine we ask from.

mod check;
mod describe;
mod embedded;
mod hook;
mod host;
mod idle;
pub mod launch;
mod probe;
mod ready;
mod tokenize;

pub use check::{Presence, check};
pub use describe::{Description, describe};
pub use embedded::Embedded;
pub use hook::{HookEnd, HookLimits, HookStopped, run_command, send_request};
pub use host::client_environment;
pub use idle::{Busy, Gauge};
pub use probe::{Found, PROMPT, ProbeError, Question, probe};
pub use ready::Unready;
pub use tokenize::{Counter, Message};
