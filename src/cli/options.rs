//! Options shared by several commands.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::cli::failure::Failure;
use crate::cli::shared;
use crate::report::progress::{Manner, Screen, Style, Talk};
use crate::store::{Part, Store, StoreError, Writer};
use crate::units::Nanos;

/// The results folder.
#[derive(Debug, Clone, Args)]
pub(crate) struct Folder {
    /// Results folder
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub results: PathBuf,
}

impl Folder {
    /// Opens the results folder for reading. Does not send a request to shared results yet.
    pub(crate) fn store(&self) -> Result<Store, Failure> {
        shared::address(&self.results).map_or_else(|| Ok(Store::open(&self.results)), shared::open)
    }

    /// Opens the results folder for reading, and fetches the runs that were committed elsewhere.
    pub(crate) fn whole_store(&self) -> Result<Store, Failure> {
        let store = self.store()?;
        store.refresh()?;
        Ok(store)
    }

    /// Opens the results folder for writing, creating it if it is missing.
    pub(crate) fn writer(&self) -> Result<Writer, Failure> {
        writer(self.store()?, None)
    }

    /// Rejects shared results. Called by commands that require an ordinary results folder.
    pub(crate) fn must_be_own(&self, what: &str) -> Result<(), Failure> {
        match shared::address(&self.results) {
            Some(url) => Err(Failure::Usage(format!(
                "{what}: the results at {url} are shared, but this command requires an ordinary results folder"
            ))),
            None => Ok(()),
        }
    }

    /// Rejects a missing folder, because it has no runs to show.
    pub(crate) fn must_exist(&self) -> Result<(), Failure> {
        if shared::address(&self.results).is_some() {
            return Ok(());
        }
        match self.results.try_exists() {
            Ok(false) => {
                let folder = self.results.display();
                Err(Failure::Usage(format!("there is no results folder {folder}; name another with --results DIR")))
            }
            // Permission errors are reported when the folder is read.
            Ok(true) | Err(_) => Ok(()),
        }
    }

    /// Returns the flag as written on a command line, with a leading blank; empty for the default.
    pub(super) fn typed(&self) -> String {
        crate::store::typed_results(&self.results)
    }
}

/// Opens results for writing: all of them, or the runs of one part. Two processes on one machine cannot
/// share one copy of shared results.
pub(crate) fn writer(store: Store, part: Option<Part>) -> Result<Writer, Failure> {
    let is_shared = store.remote().is_some();
    let writer = match part {
        None => store.writer(),
        Some(part) => store.part_writer(part),
    };
    writer.map_err(|error| match error {
        StoreError::Locked { .. } if is_shared => Failure::Store(StoreError::Remote {
            text: format!("{error}; set SWEEPLINE_CACHE=DIR to give a worker on this machine its own copy"),
            passes: false,
        }),
        error => Failure::Store(error),
    })
}

/// Whether the reasons why limits are undecided are printed.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Why {
    /// Also print why limits are undecided: how many independent requests the runs are worth, and how many are
    /// needed
    #[arg(short, long = "verbose")]
    verbose: bool,
}

impl Why {
    /// Rejects the flag for JSON, which always contains the reasons.
    pub(super) fn asked(self, is_text: bool) -> Result<bool, Failure> {
        match self.verbose && !is_text {
            true => Err(Failure::Usage("--verbose works with text output only: remove --format json".to_owned())),
            false => Ok(self.verbose),
        }
    }
}

/// How much is printed on stderr.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Loudness {
    /// Print more detail: probe results, run ids, and why each run is needed
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Print only errors on stderr; data still goes to stdout
    #[arg(short, long)]
    pub quiet: bool,
}

/// How the progress of a sweep is shown.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Shown {
    /// How progress is shown on stderr [default: bar on a terminal, else plain]
    #[arg(long, value_enum, value_name = "HOW")]
    progress: Option<Style>,
    /// Time between two reports of plain or JSON progress [default: 60s for plain, 1s for json]
    #[arg(long, value_name = "TIME")]
    progress_every: Option<Nanos>,
}

impl Loudness {
    fn talk(self) -> Talk {
        match (self.quiet, self.verbose) {
            (true, _) => Talk::Quiet,
            (_, true) => Talk::Verbose,
            _ => Talk::Normal,
        }
    }

    /// Returns a screen that shows only lines.
    pub(super) fn screen(self) -> Screen {
        Screen::new(Manner { talk: self.talk(), style: Style::used(None), every: None })
    }
}

impl Shown {
    /// Rejects a style that needs a terminal if there is none.
    pub(super) fn check(self) -> Result<(), Failure> {
        match self.progress {
            Some(Style::Full) if Style::used(self.progress) != Style::Full => {
                let why = "--progress full needs a terminal on stderr: remove it, or use plain or json";
                Err(Failure::Usage(why.to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Returns a screen with this verbosity.
    pub(super) fn screen(self, loudness: Loudness) -> Screen {
        let every = self.progress_every.map(|every| Duration::from_nanos(every.0));
        Screen::new(Manner { talk: loudness.talk(), style: Style::used(self.progress), every })
    }
}

/// Text for people, or JSON for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextOrJson {
    /// For people.
    Text,
    /// For programs.
    Json,
}
