//! Decisions while runs are still in progress: a mean that is known well enough, a difference that is
//! shown. The guarantees hold over the whole sequence of looks, wherever it stops
//! (`docs/SEQUENTIAL.md`). Pure: the runs are made elsewhere.

mod bound;
mod paired;
mod until;

#[cfg(test)]
mod simulations;

pub(crate) use bound::Looks;
pub use paired::{Look, Sequence, look};
pub(crate) use paired::{looks, t_test};
pub use until::{Precision, Until, known};
