//! The verdicts of a plan's runs, kept next to the results. A table of many runs needs no other figures, so
//! `run` does not have to read the rows of all runs again after each new run.
//!
//! ```text
//! derived/verdicts-<plan>.log      one line for each run that was judged:
//!     <key> <state> <pressure> <check>
//! ```
//!
//! The key is a digest of everything that a verdict depends on: the program, the plan's thresholds and
//! objective, the digest of `run.json`, and the size and modification time of each row file. A line that
//! does not match its checksum, for example because the process was killed while it wrote the line, is
//! ignored. The file is derived: deleting it loses nothing.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::summary_cache::stamp;
use crate::analysis::ANALYSIS;
use crate::analysis::calibration::Pressure;
use crate::analysis::verdict::State;
use crate::plan::Plan;
use crate::rows::Table;
use crate::server::own_program;
use crate::store::{RunRecord, Store};
use crate::units::text::hex;

/// Maximum number of lines with unneeded verdicts that are kept in the file.
const MOST_UNUSED: usize = 10_000;
/// Length of the checksum of a line, in bytes.
const CHECK: usize = 4;

/// The key of a verdict.
pub(super) type Key = [u8; 16];

/// The facts about a run that a table of many runs uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judged {
    /// The verdict of the run.
    pub(super) state: State,
    /// The load that the run put on the generator; `None` if its rows do not record it.
    pub(super) pressure: Option<Pressure>,
}

/// The cached verdicts of a plan's runs.
pub(super) struct Judgements<'a> {
    store: &'a Store,
    file: PathBuf,
    /// The digest of everything that all verdicts depend on; `None` if the program file cannot be read.
    rules: Option<[u8; 32]>,
    known: HashMap<Key, Judged>,
    used: HashSet<Key>,
    /// Number of lines in the file.
    lines: usize,
    /// The open file; `None` until the first line is written.
    out: Option<File>,
}

impl<'a> Judgements<'a> {
    /// Reads the verdicts of a plan.
    pub(super) fn of(store: &'a Store, plan: &Plan) -> Judgements<'a> {
        let name = hex(&Sha256::digest(&plan.name)[..8]);
        let file = store.layout().derived().join(format!("verdicts-{name}.log"));
        // Special files are not read, because that could block.
        let is_file = fs::metadata(&file).is_ok_and(|metadata| metadata.is_file());
        let text = if is_file { fs::read(&file).unwrap_or_default() } else { Vec::new() };
        let lines = || text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        Judgements {
            store,
            file,
            rules: rules(plan),
            known: lines().filter_map(of_line).collect(),
            used: HashSet::new(),
            lines: lines().count(),
            out: None,
        }
    }

    /// Returns the verdict with this key.
    pub(super) fn get(&mut self, key: Key) -> Option<Judged> {
        let known = *self.known.get(&key)?;
        self.used.insert(key);
        Some(known)
    }

    /// Caches the verdict of a run. Best effort: without write permission, only the speed-up is lost.
    pub(super) fn keep(&mut self, key: Key, judged: Judged) {
        self.used.insert(key);
        if self.known.insert(key, judged) != Some(judged) && self.append(&line(&key, judged)).is_ok() {
            self.lines += 1;
        }
    }

    /// Writes the line in one call, so that lines of several processes do not mix.
    fn append(&mut self, line: &str) -> io::Result<()> {
        if let Some(out) = &mut self.out {
            return out.write_all(line.as_bytes());
        }
        self.file.parent().map_or(Ok(()), fs::create_dir_all)?;
        if fs::symlink_metadata(&self.file).is_ok_and(|found| !found.is_file()) {
            return Err(ErrorKind::InvalidInput.into());
        }
        let mut out = OpenOptions::new().create(true).append(true).open(&self.file)?;
        // The last line of the file may be incomplete, so the first write begins with a line end.
        out.write_all(format!("\n{line}").as_bytes())?;
        self.out = Some(out);
        Ok(())
    }

    /// Removes the verdicts that were neither requested nor added in this process, if there are many of
    /// them.
    pub(super) fn tidy(self) {
        if self.lines <= 2 * self.used.len() + MOST_UNUSED {
            return;
        }
        let lines = self.used.iter().filter_map(|key| Some(line(key, *self.known.get(key)?)));
        let beside = self.file.with_extension(std::process::id().to_string());
        if fs::write(&beside, lines.collect::<String>()).and_then(|()| fs::rename(&beside, &self.file)).is_err() {
            let _ = fs::remove_file(&beside);
        }
    }

    /// Returns the key of a run: the digest of everything that its verdict depends on. `None` if any of this
    /// is unknown, for example because `run.json` has no digest.
    pub(super) fn key(&self, record: &RunRecord) -> Option<Key> {
        let dir = self.store.layout().run(&record.id);
        let mut hasher = Sha256::new();
        hasher.update(self.rules?);
        hasher.update(&record.id);
        hasher.update(record.sha256.as_ref()?);
        for table in Table::ALL {
            let stamp = stamp(&dir.join(table.file()))?;
            hasher.update(stamp.len().to_le_bytes());
            hasher.update(stamp);
        }
        hasher.finalize()[..16].try_into().ok()
    }
}

fn rules(plan: &Plan) -> Option<[u8; 32]> {
    let program = stamp(&own_program().ok()?)?;
    let rules = (env!("CARGO_PKG_VERSION"), ANALYSIS, program, &plan.validity, &plan.slo);
    Some(Sha256::digest(serde_json::to_vec(&rules).ok()?).into())
}

/// Returns the line that stores a verdict in the file.
fn line(key: &Key, judged: Judged) -> String {
    let exact = |numbers: [f64; 3]| numbers.map(|number| format!("{:016x}", number.to_bits())).join("");
    let pressure = judged.pressure.map_or("-".to_owned(), |pressure| {
        exact([pressure.in_flight, pressure.requests_per_second, pressure.events_per_second])
    });
    let text = format!("{} {} {pressure}", hex(key), judged.state.name());
    let check = check(&text);
    format!("{text} {check}\n")
}

fn check(text: &str) -> String {
    hex(&Sha256::digest(text)[..CHECK])
}

/// Parses a line; `None` if the line is malformed or does not match its checksum.
fn of_line(line: &[u8]) -> Option<(Key, Judged)> {
    let (text, found) = std::str::from_utf8(line).ok()?.rsplit_once(' ')?;
    if found != check(text) {
        return None;
    }
    let [key, state, pressure] = text.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let key = u128::from_str_radix(key, 16).ok()?.to_be_bytes();
    let state = [State::Valid, State::Suspect, State::Invalid].into_iter().find(|one| one.name() == state)?;
    let number = |at: usize| {
        let digits = pressure.get(16 * at..16 * (at + 1))?;
        u64::from_str_radix(digits, 16).ok().map(f64::from_bits)
    };
    let numbers = || {
        let [in_flight, requests_per_second, events_per_second] = [number(0)?, number(1)?, number(2)?];
        Some(Pressure { in_flight, requests_per_second, events_per_second })
    };
    let pressure = if pressure == "-" { None } else { Some(numbers()?) };
    Some((key, Judged { state, pressure }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written_or_not_at_all() {
        let pressure = Pressure { in_flight: 0.1 + 0.2, requests_per_second: 1e-300, events_per_second: f64::MAX };
        for state in [State::Valid, State::Suspect, State::Invalid] {
            for pressure in [None, Some(pressure)] {
                let (key, judged) = ([7; 16], Judged { state, pressure });
                let text = line(&key, judged);
                let text = text.strip_suffix('\n').unwrap().as_bytes();
                assert_eq!(of_line(text), Some((key, judged)));
                for at in 0..text.len() {
                    let mut changed = text.to_vec();
                    changed[at] ^= 1;
                    assert_eq!(of_line(&changed), None, "byte {at}");
                    assert_eq!(of_line(&text[..at]), None, "cut at {at}");
                }
            }
        }
    }
}
