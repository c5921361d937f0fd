//! Symptoms of a server in the figures of its runs, and what they usually mean.
//!
//! Each symptom is one small function that says where it is seen, quoting the runs, or that it is not there, or what is missing
//! to look for it. A regime is the likely one, so each names what would confirm it and what would refute it. Figures are the
//! client's, and where a server was scraped its own. What figures show only within their intervals is not seen, and said to be "not shown".

mod evidence;
mod look;
mod memory;
mod named;
mod queued;
mod scraped;
#[cfg(test)]
mod scraped_tests;
mod shown;
mod symptoms;
mod table;
#[cfg(test)]
mod tests;
mod unmeasured;

pub use evidence::{Diagnosis, Evidence, Evident, Finding, Predicted, Twins};
pub use memory::busy as memory_busy;
pub use shown::NOT_SHOWN;
pub use unmeasured::not_measured;

/// Looks for every symptom.
pub fn diagnose(evident: &Evident) -> Vec<Diagnosis> {
    table::ALL.iter().map(|(symptom, look)| Diagnosis { symptom: *symptom, finding: look(evident) }).collect()
}
