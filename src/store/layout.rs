//! The layout of the results folder: its files and folders.

use std::path::{Path, PathBuf};

use crate::units::text::quoted;

/// The `.gitignore` that is written to a new results folder, because results are usually not kept in a
/// source repository.
pub(crate) const GITIGNORE: &str = "*\n!.gitignore\n";

/// The file that commits a run. Readers trust only this file.
pub const RUN_JSON: &str = "run.json";

/// The file that describes an attempt before its commit.
pub(crate) const ATTEMPT_JSON: &str = "attempt.json";

/// The file to which the rows of an attempt are written during the run.
pub(crate) const JOURNAL: &str = "journal.arrow";

/// The highest possible attempt number. Folders with higher numbers were not created by sweepline.
pub(crate) const MOST_ATTEMPTS: u32 = 999_999_999;

/// Returns the first 16 hex digits of a RunId, which are the name of the run's folder.
pub fn short(id: &str) -> &str {
    id.get(..16).unwrap_or(id)
}

/// Returns the command-line option for the results folder `dir`, with a leading space; empty for the
/// default folder.
pub fn typed_results(dir: &Path) -> String {
    match dir.to_str() {
        Some("results") => String::new(),
        _ => format!(" --results {}", quoted(&dir.to_string_lossy())),
    }
}

/// The paths of the files and folders in a results folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Creates the layout of the results folder `root`.
    pub fn new(root: impl Into<PathBuf>) -> Layout {
        Layout { root: root.into() }
    }

    /// Returns the results folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder of committed runs, which contains a folder for each run.
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// Returns the folder of attempts that are in progress, have failed, or were interrupted.
    pub fn attempts(&self) -> PathBuf {
        self.root.join("attempts")
    }

    /// Returns the folder of committed runs that later commits replaced.
    pub fn superseded(&self) -> PathBuf {
        self.root.join("superseded")
    }

    /// Returns the folder of the inventory, which contains a small entry for each committed run.
    pub fn inventory(&self) -> PathBuf {
        self.root.join("inventory")
    }

    /// Returns the path of the inventory entry of the run `id`, full or short.
    pub fn entry(&self, id: &str) -> PathBuf {
        self.inventory().join(format!("{}.json", short(id)))
    }

    /// Returns the folder of files that can be derived from the other files.
    pub fn derived(&self) -> PathBuf {
        self.root.join("derived")
    }

    /// Returns the path of the index of unchanged runs.
    pub(crate) fn index(&self) -> PathBuf {
        self.derived().join("runs.index")
    }

    /// Returns the folder of calibrations, which are measurements of the load generator itself.
    pub fn calibrations(&self) -> PathBuf {
        self.root.join("calibrations")
    }

    /// Returns the folder for the output and the leases of launched servers.
    pub fn servers(&self) -> PathBuf {
        self.root.join("servers")
    }

    /// Returns the path of the lock file, which a writer keeps locked.
    pub fn lock(&self) -> PathBuf {
        self.root.join(".lock")
    }

    /// Returns the folder of the lock files of parts, which their writers keep locked.
    pub fn part_locks(&self) -> PathBuf {
        self.root.join(".parts")
    }

    /// Returns the folder of submissions to clusters, with scripts, logs and a record of each
    /// submission.
    pub fn submissions(&self) -> PathBuf {
        self.root.join("submit")
    }

    /// Returns the path of the status file of a sweep, which exists only while the sweep runs.
    pub fn live(&self) -> PathBuf {
        self.root.join("live.json")
    }

    /// Returns the folder of the committed run `id`, full or short.
    pub fn run(&self, id: &str) -> PathBuf {
        self.runs().join(short(id))
    }

    /// Returns the folder of attempt `number` at the run `id`, full or short.
    pub fn attempt(&self, id: &str, number: u32) -> PathBuf {
        self.attempts().join(numbered(id, number))
    }

    /// Returns the folder of the replaced attempt `number` at the run `id`, full or short.
    pub(crate) fn superseded_run(&self, id: &str, number: u32) -> PathBuf {
        self.superseded().join(numbered(id, number))
    }
}

fn numbered(id: &str, number: u32) -> String {
    format!("{}.{number}", short(id))
}

/// Whether a name can be the name of a run's folder: 16 lower-case hex digits.
pub(crate) fn is_short_id(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the short id and the number in a folder's name `<id>.<n>`; `None` for any other name and
/// for numbers that attempts cannot have.
pub(crate) fn split_numbered(name: &str) -> Option<(&str, u32)> {
    let (id, digits) = name.split_once('.')?;
    let number: u32 = digits.parse().ok()?;
    (number <= MOST_ATTEMPTS && number.to_string() == digits).then_some((id, number))
}
