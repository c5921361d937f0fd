//! Graph → results: scheduler, resume, events.

pub mod calibrate;
pub mod event;
mod learn;
mod live;
pub mod nearest;
pub mod perform;
pub mod resume;
mod scheduler;
mod settle;
mod tokenizers;

pub use live::{ResolveError, target};
pub use perform::question;
pub use scheduler::{Summary, Sweep, SweepError, run};
