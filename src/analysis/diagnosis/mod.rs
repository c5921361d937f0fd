//! Symptoms of a server in the figures of its runs, and what they usually mean.
//!
//! Each symptom is one small function that says where it is seen, quoting the runs, or that it is not there, or what is missing
//! to look for it. A regime is the likely one: the figures are a client's, so each names what would confirm it.
//! What figures show only within their intervals is not seen, and said to be "not shown".

mod evidence;
mod named;
mod queued;
mod shown;
mod symptoms;
#[cfg(test)]
mod tests;

pub use evidence::{Diagnosis, Evidence, Evident, Finding, Predicted, Twins};
pub use shown::NOT_SHOWN;
pub use symptoms::NOT_MEASURED;

/// Looks for every symptom.
pub fn diagnose(evident: &Evident) -> Vec<Diagnosis> {
    symptoms::ALL.iter().map(|(symptom, look)| Diagnosis { symptom: *symptom, finding: look(evident) }).collect()
}
