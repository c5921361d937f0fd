//! The table of a plan's results, cached next to the results, so that a run with nothing to do does not
//! have to read every row again.
//!
//! The cached table is used only while none of its inputs has changed: the plan, this program, the width
//! of the screen, and the size and modification time of every file of the runs. `make` and git detect
//! changed files in the same way. The cache is derived data, so deleting it loses nothing.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::analysis::ANALYSIS;
use crate::cli::shown_rows::Shown;
use crate::expand::PlannedRun;
use crate::plan::Plan;
use crate::report::screen_columns;
use crate::rows::Table;
use crate::server::own_program;
use crate::store::{RUN_JSON, Store};
use crate::units::regular_file;
use crate::units::text::hex;

/// Maximum size of a cached table, in bytes.
const MOST_BYTES: u64 = 256 << 20;

/// A table as it was printed, with the facts that the notes of `run` need.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Remembered {
    /// The SHA-256 of the table's inputs.
    key: String,
    /// The version of the analysis that computed the table.
    analysis: u32,
    /// The text of the table.
    pub text: String,
    /// Facts about the runs in the table.
    pub shown: Shown,
}

/// The file of a cached table, and the key that it must have.
pub(super) struct Memory {
    file: PathBuf,
    key: String,
}

impl Memory {
    /// Determines the file and the key for the table of `runs`, in this order, with or without color.
    /// `None` if an input of the key cannot be read.
    pub(super) fn of(store: &Store, plan: &Plan, runs: &[&PlannedRun], colour: bool) -> Option<Memory> {
        let mut hasher = Sha256::new();
        let mut put = |part: &str| {
            hasher.update(part.len().to_le_bytes());
            hasher.update(part);
        };
        put(env!("CARGO_PKG_VERSION"));
        put(&ANALYSIS.to_string());
        put(&stamp(&own_program().ok()?)?);
        put(&serde_json::to_string(plan).ok()?);
        put(if colour { "colour" } else { "plain" });
        put(&screen_columns().to_string());
        let files: Vec<&str> = Table::ALL.iter().map(|table| table.file()).chain([RUN_JSON]).collect();
        for run in runs {
            let dir = store.layout().run(&run.id.short());
            put(&run.id.to_string());
            for file in &files {
                put(&stamp(&dir.join(file))?);
            }
        }
        let name = hex(&Sha256::digest(&plan.name)[..8]);
        let file = store.layout().derived().join(format!("table-{name}.json"));
        Some(Memory { file, key: hex(&hasher.finalize()) })
    }

    /// Returns the cached table, if its key matches and the file is undamaged.
    pub(crate) fn recall(&self) -> Option<Remembered> {
        let text = regular_file::read_text(&self.file, MOST_BYTES).ok()?;
        let (digest, body) = text.split_once('\n')?;
        let is_whole = digest == hex(&Sha256::digest(body));
        let remembered: Remembered = is_whole.then(|| serde_json::from_str(body).ok())??;
        (remembered.key == self.key).then_some(remembered)
    }

    /// Caches a table. Best effort: without write permission, only the speed-up is lost.
    pub(super) fn keep(&self, text: &str, shown: &Shown) {
        let remembered =
            Remembered { key: self.key.clone(), analysis: ANALYSIS, text: text.to_owned(), shown: shown.clone() };
        let Ok(body) = serde_json::to_string(&remembered) else { return };
        let (Some(folder), Some(name)) = (self.file.parent(), self.file.file_name()) else { return };
        let beside = folder.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
        let made = fs::create_dir(folder);
        if made.is_err_and(|error| error.kind() != ErrorKind::AlreadyExists) {
            return;
        }
        let written = fs::write(&beside, format!("{}\n{body}", hex(&Sha256::digest(&body))));
        if written.and_then(|()| fs::rename(&beside, &self.file)).is_err() {
            let _ = fs::remove_file(&beside);
        }
    }
}

/// Returns size and modification time of a file, or the fact that it does not exist; `None` if the system
/// does not report them.
pub(super) fn stamp(path: &Path) -> Option<String> {
    match fs::metadata(path) {
        Ok(metadata) => Some(format!("{} {}.{}", metadata.len(), metadata.mtime(), metadata.mtime_nsec())),
        Err(error) if error.kind() == ErrorKind::NotFound => Some("absent".to_owned()),
        Err(_) => None,
    }
}
