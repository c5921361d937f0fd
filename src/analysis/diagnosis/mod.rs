//! Symptoms of a server in the figures of its runs, and their usual meaning.
//!
//! Each symptom is one small function that reports where it is present, citing the runs, or that it is
//! absent, or what is missing to check it. Each cause is only the likely one, so every symptom names
//! what would confirm it and what would refute it. Figures are the client's, and the server's own if it
//! was scraped. Differences within the intervals of the figures do not count as seen; they are reported
//! as "not shown".

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
