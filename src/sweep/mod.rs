//! Executes a plan's graph and produces results: decides which runs are needed (`resume`), schedules them
//! (`scheduler`), performs them (`perform`), and reports progress (`event`).

pub mod calibrate;
pub mod choose;
pub mod endings;
pub(crate) mod environment;
pub mod event;
mod first_look;
pub mod found;
mod gpus;
mod history;
mod hooks;
mod launching;
mod learn;
mod live;
pub mod nearest;
pub(crate) mod on_disk;
pub mod perform;
pub(crate) mod preflight;
mod ready;
pub(crate) mod resume;
mod scheduler;
mod secrets;
mod sending;
mod settle;
mod shared_load;
mod telemetry;
mod tokenizers;
mod tokens;
pub mod worker;

pub(crate) use launching::secret_behind;
pub use live::target;
pub(crate) use perform::secrets_of;
pub use perform::{ask, question};
pub(crate) use ready::Waiting;
pub(crate) use scheduler::{Choices, EndsOf, OverBudget, SweepError};
pub use scheduler::{Summary, Sweep, run};
pub(crate) use telemetry::pages_of;
