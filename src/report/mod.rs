//! What people read while and after a sweep runs.

pub mod calibration;
mod capacity;
pub mod comparison;
mod curves;
mod diagnosis;
mod effects;
mod estimate;
pub mod format;
mod fronts;
mod generator;
pub mod grid;
pub mod progress;
mod repeats;
mod rows;
mod run;
mod spark;
mod table;

pub use capacity::{Answer as CapacityAnswer, Configuration, capacity, cheapest, failed};
pub use curves::{bracket, curves, differ, left_out, title};
pub use diagnosis::{Bound, diagnosis};
pub use fronts::fronts;
pub use repeats::repeats;
pub use run::{Detail, run};
pub use table::{Line, results};
