//! What people read while and after a sweep runs.

pub mod calibration;
pub mod comparison;
pub mod format;
mod generator;
pub mod grid;
pub mod progress;
mod run;
mod table;

pub use run::{Detail, run};
pub use table::{Line, results};
