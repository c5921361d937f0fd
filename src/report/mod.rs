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
pub(crate) mod html;
mod live;
pub(crate) mod live_state;
pub(crate) mod progress;
pub(crate) mod publish;
mod repeats;
mod rows;
mod run;
mod spark;
mod table;

pub(crate) use capacity::{Answer as CapacityAnswer, Configuration};
pub use capacity::{capacity, cheapest, failed};
pub(crate) use curves::{bracket, window_to_keep_up};
pub use curves::{curves, differ, left_out, title};
pub use diagnosis::Bound;
pub(crate) use diagnosis::diagnosis;
pub use fronts::fronts;
pub use repeats::repeats;
pub(crate) use run::Detail;
pub use run::run;
pub use table::{Line, results};
