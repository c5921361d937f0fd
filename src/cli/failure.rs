//! Converts errors of every stage to text and exit codes. This module contains the only list of
//! exit codes.

use std::path::Path;

use strum::{EnumMessage, VariantArray};

use crate::cli::colour::Colour;
use crate::cli::copies::copy_of;
use crate::cli::stderr;
use crate::expand::ExpandError;
use crate::plan::PlanErrors;
use crate::store::object::ObjectError;
use crate::store::{State, Store, StoreError, typed_results};

/// The exit status of the program: its description in the manual, and its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumMessage, VariantArray)]
#[repr(u8)]
pub enum Exit {
    /// Done; no run failed, and none is invalid.
    Done = 0,
    /// An unexpected error.
    Unexpected = 1,
    /// A bad plan or usage, a server that differs from the one that the plan or its results require, too
    /// few open files or local ports for the runs, or an undecided gate.
    Usage = 2,
    /// All runs have an outcome, but some are invalid or were given up and need attention.
    Runs = 3,
    /// `--gate`: an SLO is missed, or a comparison shows a regression or more errors; `decide --check`: the
    /// record is outdated.
    Gate = 4,
    /// The results folder is locked, full or unreadable, or a result is damaged or missing.
    Store = 5,
    /// Results are missing that running the command again may provide, because an endpoint was not ready in
    /// time or a run failed.
    Missing = 6,
    /// `preview --exit-code` found runs to do.
    Work = 10,
    /// Interrupted; the same command continues where it stopped.
    Interrupted = 130,
}

impl Exit {
    /// Returns the description of the exit status in the manual.
    pub(crate) fn meaning(self) -> &'static str {
        self.get_documentation().unwrap_or_default()
    }

    /// Returns the process's exit code.
    pub fn code(self) -> u8 {
        self as u8
    }
}

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The plan has errors.
    Plan(Box<PlanErrors>),
    /// The command line has an error.
    Usage(String),
    /// An error of the results folder.
    Store(StoreError),
    /// An error of results on object storage.
    Objects(ObjectError),
    /// Any other error.
    Unexpected(anyhow::Error),
    /// An error that has already been reported.
    Said(Exit),
}

impl Failure {
    /// Prints the failure on stderr and returns its exit status.
    pub fn report(&self, colour: Colour) -> Exit {
        if !matches!(self, Failure::Said(_)) {
            stderr::complain(&self.text(colour.on(&std::io::stderr())));
        }
        self.exit()
    }

    /// Returns the message, without color; empty if it has already been reported.
    pub(crate) fn in_words(&self) -> String {
        self.text(false)
    }

    fn text(&self, in_colour: bool) -> String {
        match self {
            Failure::Said(_) => String::new(),
            Failure::Plan(errors) => errors.render(in_colour),
            Failure::Usage(text) => format!("error: {text}"),
            Failure::Store(error) => {
                format!("error: {}{}", chain(error), error.damaged_file().map(mended_by).unwrap_or_default())
            }
            Failure::Objects(error) => format!("error: {error}"),
            Failure::Unexpected(error) => format!("error: {error:#}"),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Failure::Plan(_) | Failure::Usage(_) => Exit::Usage,
            Failure::Store(
                StoreError::NotFound { .. }
                | StoreError::OnlyTried { .. }
                | StoreError::Ambiguous { .. }
                | StoreError::Deleted { .. }
                | StoreError::StillThere { .. },
            ) => Exit::Usage,
            Failure::Store(StoreError::Remote { passes: true, .. }) => Exit::Missing,
            Failure::Store(StoreError::Remote { .. }) => Exit::Usage,
            Failure::Store(_) => Exit::Store,
            Failure::Objects(error) => match error {
                ObjectError::Address { .. }
                | ObjectError::Unusable { .. }
                | ObjectError::NoBucket { .. }
                | ObjectError::Unconditional { .. } => Exit::Usage,
                ObjectError::Refused { .. } | ObjectError::Failed { .. } => Exit::Missing,
                ObjectError::Damaged { .. } | ObjectError::Folder(_) => Exit::Store,
                ObjectError::NoThread(_) => Exit::Unexpected,
            },
            Failure::Unexpected(_) => Exit::Unexpected,
            Failure::Said(exit) => *exit,
        }
    }
}

/// Returns the remedy for a damaged file, which is to measure its run again; empty if the file belongs to
/// no run. A sweep checks only `run.json` and file sizes, so other damage requires `--force`, restricted to
/// that run.
fn mended_by(file: &Path) -> String {
    let run = file.ancestors().take(2).find_map(|dir| {
        let runs = dir.parent()?;
        (runs.file_name()? == "runs").then_some((dir.file_name()?.to_str()?, runs))
    });
    let Some((id, runs)) = run else { return String::new() };
    let results = runs.parent().unwrap_or(Path::new(""));
    // A run in a local copy can be fetched again from the shared results.
    if copy_of(results).is_some() {
        return format!(": remove {}, and it is fetched again", runs.join(id).display());
    }
    let folder = typed_results(results);
    let is_hidden =
        matches!(Store::open(results).run(id), Ok(Some(listed)) if !matches!(listed.state, State::Corrupt(_)));
    let forced = if is_hidden { format!(" --force --only \"id[:16] == '{id}'\"") } else { String::new() };
    format!(
        ": `sweepline run PLAN{folder}{forced}` measures this run again, but no other intact run; `sweepline \
         verify{folder}` names every damaged file"
    )
}

/// Returns the text of an error, followed by the texts of its causes that it does not already contain.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let words = source.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = source.source();
    }
    text
}

impl From<PlanErrors> for Failure {
    fn from(errors: PlanErrors) -> Self {
        Failure::Plan(Box::new(errors))
    }
}

impl From<ExpandError> for Failure {
    fn from(error: ExpandError) -> Self {
        Failure::Usage(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Store(error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::Unexpected(error)
    }
}
