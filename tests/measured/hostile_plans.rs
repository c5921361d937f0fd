//! Tests that `check` needs little time and memory for any plan of one megabyte, valid or not, and for plans
//! that are just small enough to be read completely. The built program checks each text, and its CPU time
//! and peak memory come from the kernel.

use std::time::Duration;

use lab::hostile::{self, Limits, MEGABYTE, bounded, bounded_and_read};

/// The limit of time is far above that of a release build on an idle machine (2 s), because this is neither.
const LIMITS: Limits = Limits { time: Duration::from_secs(300), memory: 500_000_000 };

/// A text of this size has few enough values to be read completely.
const READ: usize = MEGABYTE / 32;

/// In proportion, the limit of time is that of a megabyte, but for the time that any text takes.
const LIMITS_OF_READ: Limits = Limits { time: Duration::from_secs(30), memory: 130_000_000 };

fn aliases_that_unfold() {
    bounded(&hostile::aliases_that_unfold(MEGABYTE), &LIMITS, &[]);
    bounded(&hostile::aliases_that_unfold(READ), &LIMITS_OF_READ, &["--format", "json"]);
}

fn texts_that_nest() {
    bounded(&hostile::texts_that_nest(MEGABYTE), &LIMITS, &[]);
    bounded(&hostile::texts_that_nest(READ), &LIMITS_OF_READ, &["--format", "json"]);
}

fn texts_that_are_long() {
    bounded(&hostile::texts_that_are_long(MEGABYTE), &LIMITS, &[]);
    bounded(&hostile::texts_that_are_long(READ), &LIMITS_OF_READ, &["--format", "json"]);
}

fn texts_with_many_names() {
    bounded(&hostile::texts_with_many_names(MEGABYTE), &LIMITS, &[]);
    bounded(&hostile::texts_with_many_names(READ), &LIMITS_OF_READ, &["--format", "json"]);
}

fn texts_with_many_mistakes() {
    bounded(&hostile::texts_with_many_mistakes(MEGABYTE), &LIMITS, &[]);
    bounded(&hostile::texts_with_many_mistakes(READ), &LIMITS_OF_READ, &["--format", "json"]);
}

fn templates_that_grow() {
    bounded_and_read(&hostile::templates_that_grow(MEGABYTE), &LIMITS);
    bounded(&hostile::templates_that_grow(READ), &LIMITS_OF_READ, &["--format", "json"]);
}

fn templates_that_are_long() {
    bounded_and_read(&hostile::templates_that_are_long(MEGABYTE), &LIMITS);
    bounded(&hostile::templates_that_are_long(READ), &LIMITS_OF_READ, &["--format", "json"]);
}

fn zips_and_ranges() {
    bounded_and_read(&hostile::zips_and_ranges(MEGABYTE), &LIMITS);
    bounded(&hostile::zips_and_ranges(READ), &LIMITS_OF_READ, &["--format", "json"]);
}

fn rules_times_values() {
    bounded_and_read(&hostile::rules_times_values(MEGABYTE), &LIMITS);
    bounded(&hostile::rules_times_values(READ), &LIMITS_OF_READ, &["--format", "json"]);
}

lab::measured_tests![
    aliases_that_unfold,
    texts_that_nest,
    texts_that_are_long,
    texts_with_many_names,
    texts_with_many_mistakes,
    templates_that_grow,
    templates_that_are_long,
    zips_and_ranges,
    rules_times_values,
];
