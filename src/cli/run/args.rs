//! The arguments of `run`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;

use super::super::changes::Changes;
use super::super::counting::Explain;
use super::super::freeze::Frozen;
use super::super::redo::Again;
use super::super::selection::Selection;
use super::metrics;
use crate::cli::colour::Colour;
use crate::cli::options::{Folder, Loudness, Shown};
use crate::cli::trust::NoExec;
use crate::report::format::plain;
use crate::report::progress::Screen;

/// The arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The plan, YAML or TOML
    #[arg(value_name = "PLAN")]
    pub(super) plan: PathBuf,
    #[command(flatten)]
    pub(super) changes: Changes,
    #[command(flatten)]
    pub(super) frozen: Frozen,
    #[command(flatten)]
    pub(super) selection: Selection,
    /// Run only this part of the plan; other processes may run the other parts and write to the same
    /// results folder. The jobs of `submit` use this option
    #[arg(long, value_name = "NAME")]
    pub(super) part: Option<String>,
    #[command(flatten)]
    pub(super) again: Again,
    /// Maximum number of concurrent runs; runs on one resource never overlap
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) jobs: u16,
    /// Number of processes that together send the load of each run, overriding the plan's `engine.workers`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) workers: Option<u32>,
    /// Stop at the first run that fails
    #[arg(long)]
    pub(super) fail_fast: bool,
    /// Exit with 4 if a cell misses the plan's `slo` or the plan's `compare` shows a regression, and with
    /// 2 if one of these verdicts is undecided
    #[arg(long)]
    pub(super) gate: bool,
    /// Also write the findings, decisions based on them and the gate's verdict as Markdown, for a pull request
    #[arg(long, value_name = "FILE")]
    pub(super) markdown: Option<PathBuf>,
    /// Serve Prometheus metrics of the running sweep at this address, under /metrics; PORT alone uses
    /// 127.0.0.1, and port 0 picks a free port
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = metrics::address)]
    pub(super) metrics_addr: Option<SocketAddr>,
    /// Append events to this file, as lines of JSON (`sweepline schema events`)
    #[arg(long, value_name = "FILE")]
    pub(super) events: Option<PathBuf>,
    /// Only show what would be done, like `preview`
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) no_exec: NoExec,
    #[command(flatten)]
    pub(super) explain: Explain,
    #[command(flatten)]
    pub(super) folder: Folder,
    #[command(flatten)]
    pub(super) loudness: Loudness,
    #[command(flatten)]
    pub(super) shown: Shown,
    #[command(flatten)]
    pub colour: Colour,
}

impl RunArgs {
    /// Returns the display of progress.
    pub(super) fn screen(&self) -> Screen {
        self.shown.screen(self.loudness)
    }

    /// Returns the plan's folder, to which the paths of secrets may be relative.
    pub(super) fn plan_folder(&self) -> &Path {
        self.plan.parent().unwrap_or(Path::new(""))
    }

    /// Prints `lines`, each prefixed with the time.
    pub(super) fn tell(&self, lines: &[String]) {
        lines.iter().for_each(|line| self.screen().with_times().line(&plain(line)));
    }
}
