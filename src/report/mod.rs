//! What people read while and after a sweep runs.

mod answer;
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
mod plot;
pub(crate) mod progress;
mod repeats;
mod rows;
mod run;
mod screen;
mod spark;
mod table;

pub(crate) use answer::answers;
pub(crate) use capacity::{Answer as CapacityAnswer, Configuration, objective};
pub use capacity::{capacity, cheapest, failed};
pub(crate) use curves::{bracket, window_to_keep_up};
pub use curves::{curves, differ, left_out, title};
pub use diagnosis::Bound;
pub(crate) use diagnosis::diagnosis;
pub use fronts::fronts;
pub(crate) use plot::{is_unicode, plots};
pub use repeats::repeats;
pub(crate) use run::Detail;
pub use run::run;
pub(crate) use screen::{columns as screen_columns, is_limited as has_screen, look as look_at_the_screen};
pub use table::{Line, results};
