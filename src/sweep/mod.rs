//! Graph → results: scheduler, resume, events.

pub mod calibrate;
pub mod event;
mod first_look;
mod learn;
mod live;
pub mod nearest;
pub mod perform;
mod ready;
pub mod resume;
mod scheduler;
mod settle;
mod tokenizers;

pub use live::{ResolveError, target};
pub use perform::{ask, question, secrets_of};
pub use ready::Waiting;
pub use scheduler::{Summary, Sweep, SweepError, run};
