//! Options that several commands have.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::cli::failure::Failure;
use crate::cli::shared;
use crate::report::progress::{Manner, Screen, Style, Talk};
use crate::store::{Store, StoreError, Writer};
use crate::units::Nanos;

/// Where results lie.
#[derive(Debug, Clone, Args)]
pub(crate) struct Folder {
    /// Folder of results, or s3://…, gs://…, az://…, file:///… for results that are shared
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub results: PathBuf,
}

impl Folder {
    /// Opens it for reading. Of shared results nothing is asked yet.
    pub(crate) fn store(&self) -> Result<Store, Failure> {
        shared::address(&self.results).map_or_else(|| Ok(Store::open(&self.results)), shared::open)
    }

    /// The same, and learns which runs were committed elsewhere.
    pub(crate) fn whole_store(&self) -> Result<Store, Failure> {
        let store = self.store()?;
        store.refresh()?;
        Ok(store)
    }

    /// Opens it for writing, creating it where it is missing.
    pub(crate) fn writer(&self) -> Result<Writer, Failure> {
        writer(self.store()?)
    }

    /// Refuses shared results, for what only a folder of one's own can do.
    pub(crate) fn must_be_own(&self, what: &str) -> Result<(), Failure> {
        match shared::address(&self.results) {
            Some(url) => Err(Failure::Usage(format!(
                "{what}: {url} is shared, and this is for a results folder of one's own alone"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses a folder that is not there: nothing can be said of its runs.
    pub(crate) fn must_exist(&self) -> Result<(), Failure> {
        if shared::address(&self.results).is_some() {
            return Ok(());
        }
        match self.results.try_exists() {
            Ok(false) => {
                let folder = self.results.display();
                Err(Failure::Usage(format!("there is no results folder {folder}; --results DIR names another")))
            }
            // What may not be looked at is told when it is read.
            Ok(true) | Err(_) => Ok(()),
        }
    }

    /// It as one types it, with a blank before it; nothing where it is the default.
    pub(super) fn typed(&self) -> String {
        crate::store::typed_results(&self.results)
    }
}

/// Takes results for writing. Two processes of one machine cannot have one copy of shared results.
pub(crate) fn writer(store: Store) -> Result<Writer, Failure> {
    let is_shared = store.remote().is_some();
    store.writer().map_err(|error| match error {
        StoreError::Locked { .. } if is_shared => Failure::Store(StoreError::Remote {
            text: format!("{error}; SWEEPLINE_CACHE=DIR gives a worker on this machine a copy of its own"),
            passes: false,
        }),
        error => Failure::Store(error),
    })
}

/// How much is said on stderr.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Loudness {
    /// Say more: probes, ids, reasons
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Say nothing on stderr but errors; data still goes to stdout
    #[arg(short, long)]
    pub quiet: bool,
}

/// How a sweep under way is shown.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Shown {
    /// How progress is shown on stderr [default: bar on a terminal, else plain]
    #[arg(long, value_enum, value_name = "HOW")]
    progress: Option<Style>,
    /// Time between two reports of how things stand, in lines and JSON [default: 60s in lines, 1s in JSON]
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

    /// A screen for lines alone.
    pub(super) fn screen(self) -> Screen {
        Screen::new(Manner { talk: self.talk(), style: Style::used(None), every: None })
    }
}

impl Shown {
    /// Refuses what needs a terminal where there is none.
    pub(super) fn check(self) -> Result<(), Failure> {
        match self.progress {
            Some(Style::Full) if Style::used(self.progress) != Style::Full => {
                let why = "--progress full needs a terminal on stderr; leave it out, or write plain or json";
                Err(Failure::Usage(why.to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// A screen so loud.
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
