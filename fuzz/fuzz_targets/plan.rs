//! libFuzzer's entry point to the plan reader: any bytes, as YAML and as TOML.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../src/exercise.rs"]
mod exercise;

fuzz_target!(|bytes: &[u8]| exercise::exercise(&String::from_utf8_lossy(bytes)));
