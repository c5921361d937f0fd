//! Decisions while runs are still in progress: whether a mean is known precisely enough, and whether
//! a difference is shown. The guarantees hold over the whole sequence of looks, wherever it stops
//! (`docs/SEQUENTIAL.md`). The code is pure; other modules execute the runs.

mod bound;
mod paired;
mod until;

#[cfg(test)]
mod simulations;

pub(crate) use bound::Looks;
pub use paired::{Look, Sequence, look};
pub(crate) use paired::{looks, t_test};
pub use until::{Precision, Until, known};
