//! Tests that `check` needs little time and memory for hostile plans, valid or not. The built program checks
//! each text, and its CPU time and peak memory come from the kernel. The texts are small; those of a megabyte
//! are in the measured suite.

use std::time::Duration;

use lab::hostile::{self, Limits, MEGABYTE, bounded};

/// The size of the texts. Twice as much text may take twice as long, but not a thousand times.
pub(super) const SIZE: usize = MEGABYTE / 128;

/// The program itself takes half of this memory, and a fraction of a second in a debug build. What unfolds
/// exponentially takes far more.
pub(super) const LIMITS: Limits = Limits { time: Duration::from_secs(30), memory: 130_000_000 };

#[test]
fn aliases_that_unfold() {
    bounded(&hostile::aliases_that_unfold(SIZE), &LIMITS, &[]);
}

#[test]
fn texts_that_nest() {
    bounded(&hostile::texts_that_nest(SIZE), &LIMITS, &[]);
}

#[test]
fn texts_that_are_long() {
    bounded(&hostile::texts_that_are_long(SIZE), &LIMITS, &[]);
}

#[test]
fn texts_with_many_names() {
    bounded(&hostile::texts_with_many_names(SIZE), &LIMITS, &[]);
}

#[test]
fn texts_with_many_mistakes() {
    bounded(&hostile::texts_with_many_mistakes(SIZE), &LIMITS, &[]);
}
