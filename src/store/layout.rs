//! Where things lie in the results folder.

use std::path::{Path, PathBuf};

/// What a new results folder holds as `.gitignore`: results are not source.
pub const GITIGNORE: &str = "*\n!.gitignore\n";

/// The commit of a run: the file that readers believe.
pub const RUN_JSON: &str = "run.json";

/// What is known of an attempt while it is one.
pub const ATTEMPT_JSON: &str = "attempt.json";

/// The rows of an attempt as they come.
pub const JOURNAL: &str = "journal.arrow";

/// The first 16 hex digits of a RunId, which name its folder.
pub fn short(id: &str) -> &str {
    id.get(..16).unwrap_or(id)
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

    /// What was measured of the generator itself.
    pub fn calibrations(&self) -> PathBuf {
        self.root.join("calibrations")
    }

    /// The file whose lock a writer holds.
    pub fn lock(&self) -> PathBuf {
        self.root.join(".lock")
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
    pub fn superseded_run(&self, id: &str, number: u32) -> PathBuf {
        self.superseded().join(numbered(id, number))
    }
}

fn numbered(id: &str, number: u32) -> String {
    format!("{}.{number}", short(id))
}

/// The short id and the number in a folder's name `<id>.<n>`; none for any other name.
pub fn split_numbered(name: &str) -> Option<(&str, u32)> {
    let (id, number) = name.split_once('.')?;
    Some((id, number.parse().ok()?))
}
