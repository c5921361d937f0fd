//! Tests unusual plans, made from existing ones by mutations that are always the same. The
//! fuzz target in `fuzz/` checks the same properties for far more texts, guided by coverage. Without the
//! fuzz target, `SWEEPLINE_FUZZ_SECONDS=600 cargo test --test it fuzz_smoke` runs for that long on stable
//! Rust.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[path = "../../fuzz/src/exercise.rs"]
mod exercise;

/// Number of texts that a plain `cargo test` tries, and that the measured suite tries.
const ROUNDS: [usize; 2] = [150, 1_500];

/// Characters with a meaning in YAML or TOML.
const SIGNS: &[u8] = b"[]{}:,&*!|>'\"#%@-= \n\t.0";

/// Returns every plan of the repository, valid and invalid.
fn seeds() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = |folder: &str| fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = ["plans", "tests/broken", "src/plan/tests"].into_iter().flat_map(files).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "yaml" || ending == "toml"));
    paths.sort();
    assert!(paths.len() > 60);
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Returns the words of `fuzz/plan.dict`.
fn words() -> Vec<Vec<u8>> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/plan.dict")).unwrap();
    let word = |line: &str| {
        let line = line.trim().strip_prefix('"')?.strip_suffix('"')?;
        let line = line.replace("\\x0a", "\n").replace("\\x09", "\t").replace("\\x0d", "\r").replace("\\x22", "\"");
        Some(line.into_bytes())
    };
    text.lines().filter_map(word).collect()
}

/// Returns a text with one to eight changes.
fn mutated(rng: &mut ChaCha8Rng, seeds: &[Vec<u8>], words: &[Vec<u8>]) -> Vec<u8> {
    let mut text = seeds[rng.random_range(0..seeds.len())].clone();
    for _ in 0..rng.random_range(1..=8) {
        let at = rng.random_range(0..=text.len());
        let end = (at + rng.random_range(0..40usize)).min(text.len());
        match rng.random_range(0..8) {
            0 => drop(text.drain(at..end)),
            1 => drop(text.splice(at..end, words[rng.random_range(0..words.len())].iter().copied())),
            2 => drop(text.splice(at..at, words[rng.random_range(0..words.len())].iter().copied())),
            3 => drop(text.splice(at..at, text[at..end].to_vec())),
            4 => drop(text.splice(at..at, [SIGNS[rng.random_range(0..SIGNS.len())]])),
            5 => {
                let other = &seeds[rng.random_range(0..seeds.len())];
                let from = rng.random_range(0..=other.len());
                let to = (from + 200).min(other.len());
                drop(text.splice(at..at, other[from..to].iter().copied()));
            }
            6 => {
                if let Some(byte) = text.get_mut(at) {
                    *byte ^= 1 << rng.random_range(0..8);
                }
            }
            // A line is moved or duplicated.
            _ => {
                let start = text[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |before| before + 1);
                let stop = text[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |after| at + after + 1);
                let line: Vec<u8> =
                    if rng.random() { text[start..stop].to_vec() } else { text.drain(start..stop).collect() };
                let to = rng.random_range(0..=text.len());
                drop(text.splice(to..to, line));
            }
        }
    }
    text
}

#[test]
fn no_mutation_of_a_plan_breaks_the_reader() {
    let (seeds, words) = (seeds(), words());
    let seconds = std::env::var("SWEEPLINE_FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    // A long run should find something new each time.
    let fresh = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let seed = if until.is_some() { fresh() } else { 1 };
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let most = ROUNDS[usize::from(lab::is_whole())];
    let mut rounds = 0usize;
    while until.map_or(rounds < most, |until| Instant::now() < until) {
        let bytes = mutated(&mut rng, &seeds, &words);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let broken = catch_unwind(AssertUnwindSafe(|| exercise::exercise(&text))).is_err();
        assert!(!broken, "round {rounds} of seed {seed}:\n{text}");
        rounds += 1;
    }
    println!("{rounds} texts from seed {seed}");
}
