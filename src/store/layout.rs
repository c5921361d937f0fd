//! Where things lie in the results folder.

use std::path::{Path, PathBuf};

use crate::units::text::quoted;

/// What a new results folder holds as `.gitignore`: results are not source.
pub(crate) const GITIGNORE: &str = "*\n!.gitignore\n";

/// The commit of a run: the file that readers believe.
pub const RUN_JSON: &str = "run.json";

/// What is known of an attempt while it is one.
pub(crate) const ATTEMPT_JSON: &str = "attempt.json";

/// The rows of an attempt as they come.
pub(crate) const JOURNAL: &str = "journal.arrow";

/// The highest number of an attempt. Folders with higher ones were not made by us.
pub(crate) const MOST_ATTEMPTS: u32 = 999_999_999;

/// The first 16 hex digits of a RunId, which name its folder.
pub fn short(id: &str) -> &str {
    id.get(..16).unwrap_or(id)
}

/// A results folder as one types it behind a command, with a blank before it; nothing where it is the default.
pub fn typed_results(dir: &Path) -> String {
    match dir.to_str() {
        Some("results") => String::new(),
        _ => format!(" --results {}", quoted(&dir.to_string_lossy())),
    }
}

/// The paths of one results folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout of the results folder `root`.
    pub fn new(root: impl Into<PathBuf>) -> Layout {
        Layout { root: root.into() }
    }

    /// The results folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Committed runs, one folder each.
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// Attempts that are under way, failed or interrupted.
    pub fn attempts(&self) -> PathBuf {
        self.root.join("attempts")
    }

    /// Committed runs that later ones replaced.
    pub fn superseded(&self) -> PathBuf {
        self.root.join("superseded")
    }

    /// What was committed: a small entry for each run.
    pub fn inventory(&self) -> PathBuf {
        self.root.join("inventory")
    }

    /// The entry of the run `id`, full or short.
    pub fn entry(&self, id: &str) -> PathBuf {
        self.inventory().join(format!("{}.json", short(id)))
    }

    /// What was measured of the generator itself.
    pub fn calibrations(&self) -> PathBuf {
        self.root.join("calibrations")
    }

    /// Output of launched servers, and what is written down of those that run.
    pub fn servers(&self) -> PathBuf {
        self.root.join("servers")
    }

    /// The file whose lock a writer holds.
    pub fn lock(&self) -> PathBuf {
        self.root.join(".lock")
    }

    /// The files whose locks writers of parts hold.
    pub fn part_locks(&self) -> PathBuf {
        self.root.join(".parts")
    }

    /// What was submitted to clusters: scripts, logs, and a record of each.
    pub fn submissions(&self) -> PathBuf {
        self.root.join("submit")
    }

    /// What a running sweep says of itself; there only while it runs.
    pub fn live(&self) -> PathBuf {
        self.root.join("live.json")
    }

    /// The committed run `id`, full or short.
    pub fn run(&self, id: &str) -> PathBuf {
        self.runs().join(short(id))
    }

    /// Attempt `number` at the run `id`, full or short.
    pub fn attempt(&self, id: &str, number: u32) -> PathBuf {
        self.attempts().join(numbered(id, number))
    }

    /// The replaced attempt `number` at the run `id`, full or short.
    pub(crate) fn superseded_run(&self, id: &str, number: u32) -> PathBuf {
        self.superseded().join(numbered(id, number))
    }
}

fn numbered(id: &str, number: u32) -> String {
    format!("{}.{number}", short(id))
}

/// Whether a name is that of a run's folder: the first 16 hex digits of its id.
pub(crate) fn is_short_id(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The short id and the number in a folder's name `<id>.<n>`; none for any other name, nor for a number that no attempt
/// gets.
pub(crate) fn split_numbered(name: &str) -> Option<(&str, u32)> {
    let (id, digits) = name.split_once('.')?;
    let number: u32 = digits.parse().ok()?;
    (number <= MOST_ATTEMPTS && number.to_string() == digits).then_some((id, number))
}
