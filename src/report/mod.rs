//! What people read while and after a sweep runs.

mod format;
pub mod run;
pub mod table;

pub use run::{Detail, run};
pub use table::{Line, results};
