//! Tests parts of the language that expand a small text into a large one: templates that double, long zips,
//! wide ranges, and the rules of a matrix multiplied by its values. Those with the most values that a plan
//! may have are in the measured suite.

use lab::hostile::{self, bounded_and_read};

use super::hostile_plans::{LIMITS, SIZE};

#[test]
fn templates_that_grow() {
    bounded_and_read(&hostile::templates_that_grow(SIZE), &LIMITS);
}

#[test]
fn templates_that_are_long() {
    bounded_and_read(&hostile::templates_that_are_long(SIZE), &LIMITS);
}

#[test]
fn zips_and_ranges() {
    bounded_and_read(&hostile::zips_and_ranges(SIZE), &LIMITS);
}

#[test]
fn rules_times_values() {
    bounded_and_read(&hostile::rules_times_values(SIZE), &LIMITS);
}
