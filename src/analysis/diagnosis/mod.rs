//! Symptoms of server problems in the figures of runs, and their usual meaning.
//!
//! One small function per symptom reports where the symptom is present and in which runs, that it is absent,
//! or that data needed to check it is missing. The stated cause is only the likely one, so every symptom
//! names evidence that would confirm or refute it. The figures come from the client, and from the server if
//! it was scraped. Differences within the intervals of the figures do not count as observed; they are
//! reported as "not shown".

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
