//! Answers while runs are still being made: a mean that is known well enough, a difference that is shown. What is promised holds over
//! the whole sequence of looks, wherever it stops (`docs/SEQUENTIAL.md`). Pure: who makes the runs is decided elsewhere.

mod bound;
mod paired;
mod until;

#[cfg(test)]
mod simulations;

pub(crate) use bound::Looks;
pub use paired::{Look, Sequence, look};
pub(crate) use paired::{looks, t_test};
pub use until::{Precision, Until, known};
