//! What people read while and after a sweep runs.

pub mod calibration;
mod capacity;
pub mod comparison;
mod curves;
pub(crate) mod decision;
mod diagnosis;
mod effects;
mod estimate;
mod few;
pub mod format;
mod fronts;
mod generator;
pub mod grid;
pub(crate) mod html;
mod live;
mod not_held;
pub(crate) mod progress;
mod repeats;
mod rows;
mod run;
mod spark;
mod table;

pub(crate) use capacity::{Answer as CapacityAnswer, Configuration};
pub use capacity::{capacity, cheapest, failed};
pub(crate) use curves::bracket;
pub use curves::{curves, differ, left_out, title};
pub use diagnosis::Bound;
pub(crate) use diagnosis::diagnosis;
pub(crate) use few::few_once;
pub use fronts::fronts;
pub(crate) use not_held::why_not_held;
pub use repeats::repeats;
pub(crate) use run::Detail;
pub use run::run;
pub use table::{Line, results};
