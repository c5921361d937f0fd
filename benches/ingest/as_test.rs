//! `cargo test --bench ingest` runs this benchmark as one test of the ratios to the bare reader, so that a lost
//! optimization is detected. The measured suite contains it.

use crate::args::{Args, Part};

/// The name of the test.
const NAME: &str = "ratios";

/// The factor by which the ratio of the best rounds may exceed the limits. Builds without optimization stay
/// within it: on a busy machine, 1.7, 1.8 and 0.76 were observed for limits of 1.25, 1.25 and 0.7, and 16, 20
/// and 0.26 with every event parsed in full.
const FACTOR: f64 = 2.5;

/// Options of Rust's test programs that take an argument.
const WITH_WORD: [&str; 7] = ["--skip", "--test-threads", "--format", "--color", "--logfile", "--shuffle-seed", "-Z"];

/// Returns what to measure for the command line of a test program; `None` if this test is not requested.
pub fn read(words: &[String]) -> Option<Args> {
    let mut names = Vec::new();
    let mut skipped = false;
    let mut words_left = words.iter();
    while let Some(word) = words_left.next() {
        if WITH_WORD.contains(&word.as_str()) {
            let value = words_left.next();
            skipped |= word == "--skip" && value.is_some_and(|name| NAME.contains(name.as_str()));
        } else if !word.starts_with('-') {
            names.push(word.as_str());
        }
    }
    let has = |flag: &str| words.iter().any(|word| word == flag);
    if has("--list") {
        println!("{NAME}: test");
    }
    let named = names.is_empty() || names.iter().any(|name| NAME.contains(name));
    let asked = named && !skipped && !has("--list") && !has("--ignored");
    let parts = vec![Part::Streams, Part::PerEvent, Part::OneToken];
    asked.then_some(Args { parts, rounds: 3, quick: true, check: Some(FACTOR) })
}
