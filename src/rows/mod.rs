//! What is stored: request rows, samples, facts, and their Parquet form. The waist: the engine writes, analysis reads.

mod request;
mod run;

pub use request::*;
pub use run::*;
