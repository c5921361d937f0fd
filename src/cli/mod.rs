//! The command-line program: arguments, one file per command, failures as text and exit code.
//!
//! Data goes to stdout, messages to stderr. Everything works without color and without a terminal.
//!
//! Only this file depends on all commands. Shared code is in separate files next to this one, which do not
//! depend on any command: `options`, `colour`, `failure`, `http`, `output`, `stderr`, `workspace`. A command
//! may use the document or reader of another command if both show the same thing (`results`,
//! `export/source`), but never the other command itself.

mod answers;
mod asked_by;
mod asked_server;
mod attempts;
mod budget;
mod calibrate;
mod capacity;
mod changes;
mod check;
mod chosen_runs;
mod class;
mod cluster;
mod colour;
mod compare;
mod completions;
mod connection_limits;
mod copies;
mod counting;
mod curves;
mod dataset;
mod decide;
mod diagnose;
mod diff;
mod environment;
mod estimate;
mod explain;
mod export;
mod failure;
mod freeze;
mod gate;
mod gate_page;
mod given_up;
mod graph;
mod http;
mod ignored_proxies;
mod import;
mod interrupt;
mod judgements;
mod left_out;
mod limits;
mod lints;
mod list;
mod man;
mod missing_texts;
mod mixed_servers;
pub mod mock;
mod new;
mod options;
mod output;
mod preflight;
mod preview;
mod probe;
mod redo;
mod replace;
mod report;
mod results;
mod run;
mod schema;
mod search;
mod selection;
mod shared;
mod show;
mod shown_rows;
mod stages;
mod stderr;
mod summary_cache;
mod sweep_cell;
mod trails;
mod transfer;
mod trust;
mod undivided;
mod variant;
mod verify;
mod waiting;
mod why;
mod workspace;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::cli::colour::{Colour, When};
use crate::report::look_at_the_screen;

pub(crate) use failure::{Exit, Failure};

/// Declarative, resumable sweeps of LLM-serving benchmarks
#[derive(Debug, Parser)]
#[command(name = "sweepline", version, max_term_width = 100)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Parses the command line. If it lacks `--results`, the value of `results` in the plan is used.
pub fn parse(mut typed: Vec<OsString>) -> Result<Cli, clap::Error> {
    let command = Cli::command();
    let matches = command.clone().try_get_matches_from(&typed)?;
    let (Some((name, of_command)), Some(results)) = (matches.subcommand(), shared::of_plan(&matches)) else {
        return Cli::from_arg_matches(&matches);
    };
    let is_name = |word: &OsString| word == name || of_command.subcommand_name().is_some_and(|inner| word == inner);
    let at = typed.iter().rposition(is_name).map_or(typed.len(), |at| at + 1);
    typed.splice(at..at, [OsString::from("--results"), OsString::from(results)]);
    Cli::from_arg_matches(&command.try_get_matches_from(&typed)?)
}

impl Cli {
    /// Returns the color setting of the command, or the default for commands without a `--color` flag.
    pub fn colour(&self) -> Colour {
        match &self.command {
            Command::Run(args) => args.colour,
            Command::Check(args) => args.colour,
            Command::Show(args) => args.colour,
            _ => Colour { when: When::Auto },
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Execute the runs of a plan that have no result yet
    Run(run::RunArgs),
    /// Show what `run` would do, and why, without sending anything
    Preview(preview::PreviewArgs),
    /// Write a first, fully commented plan from flags and from what the server reports
    New(new::NewArgs),
    /// Find the highest load that meets an objective: write the plan of a search, and run it
    Search(search::SearchArgs),
    /// Make a plan from another tool's configuration or command line
    Import(import::ImportArgs),
    /// Check plans: show where each error is, then run the methodology lint
    Check(check::CheckArgs),
    /// Explain a code of `check`, a reason of a verdict, or how numbers are computed
    Explain(explain::ExplainArgs),
    /// Print the whole plan with all defaults, the origins of values and the ids of its runs
    Freeze(freeze::FreezeArgs),
    /// Draw the dependencies between runs
    Graph(graph::GraphArgs),
    /// Submit the missing runs of a plan to Slurm or Kubernetes
    Submit(cluster::batch::SubmitArgs),
    /// Show the state of a submitted plan: its jobs and its results
    Status(cluster::status::StatusArgs),
    /// Cancel the jobs that `submit` started for a plan
    Cancel(cluster::cancel::CancelArgs),
    /// Explain why a run is complete, skipped or run again
    Why(why::WhyArgs),
    /// Compare two plans: list added, removed and kept runs, and the edits that caused them
    Diff(diff::DiffArgs),
    /// Show one run: every metric, the verdict and its reasons
    Show(show::ShowArgs),
    /// List the runs in the results folder
    List(list::ListArgs),
    /// Show which arm is better, by how much, and what difference would have been detected
    Compare(compare::CompareArgs),
    /// Write runs or requests as a table
    Export(export::ExportArgs),
    /// Write an HTML report: the answer, charts with their numbers, and the methodology
    Report(report::ReportArgs),
    /// Show the figures and the cost of each load, and where the curves bend
    Curves(curves::CurvesArgs),
    /// Compute how many instances a load needs, and their cost
    Capacity(capacity::CapacityArgs),
    /// Record which configuration is accepted and why, with its numbers, in Markdown
    Decide(decide::DecideArgs),
    /// Find out why a server is slow: its symptoms and their likely causes
    Diagnose(diagnose::DiagnoseArgs),
    /// Inspect, convert and sample data sets and traces, or make anonymous profiles of them
    Dataset(dataset::DatasetArgs),
    /// Check whether the servers of a plan are ready
    Probe(probe::ProbeArgs),
    /// Measure the load generator's own error on this machine, under different loads
    Calibrate(calibrate::CalibrateArgs),
    /// Check every file of the results folder against its digest
    Verify(verify::VerifyArgs),
    /// Upload committed runs to object storage so that others can pull them
    Push(transfer::push::PushArgs),
    /// Fetch runs that others have pushed; `run` treats them as its own
    Pull(transfer::pull::PullArgs),
    /// Print the JSON Schema of plans and JSON outputs, or the meaning of Parquet columns
    Schema(schema::SchemaArgs),
    /// Print the completion script of a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual page of the program or of a command, or write all pages to a folder
    Man(man::ManArgs),
    /// Run an OpenAI-compatible mock server with a timing model and faults
    Mock(Box<mock::MockArgs>),
    /// Send part of a run's load, as instructed through a pipe
    #[command(hide = true)]
    Worker,
    /// Start a server for a sweep, with a command read from a pipe, and stop the server when the sweep
    /// ends
    #[command(hide = true)]
    Supervise {
        /// Do not start a server; only kill the process group of this process when the pipe closes
        #[arg(long)]
        own_group: bool,
    },
}

/// Prints why a command line is invalid, or the requested help, and returns the exit code. Control characters
/// in the echoed input are replaced.
pub fn refuse(error: &clap::Error) -> std::process::ExitCode {
    if !error.use_stderr() {
        error.exit();
    }
    let text = error.render();
    let in_colour = Colour { when: When::Auto }.on(&std::io::stderr());
    stderr::complain(&if in_colour { text.ansi().to_string() } else { text.to_string() });
    std::process::ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code()))
}

/// Runs a command.
pub fn run(cli: Cli) -> Result<Exit, Failure> {
    // reqwest panics without a TLS provider; an error means that one has already been set.
    let _ = rustls::crypto::ring::default_provider().install_default();
    look_at_the_screen();
    match cli.command {
        Command::Run(args) => run::run(args),
        Command::Preview(args) => preview::run(args),
        Command::New(args) => new::run(args),
        Command::Search(args) => search::run(args),
        Command::Import(args) => import::run(args),
        Command::Check(args) => check::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Freeze(args) => freeze::run(args),
        Command::Graph(args) => graph::run(args),
        Command::Submit(args) => cluster::submit::run(args),
        Command::Status(args) => cluster::status::run(args),
        Command::Cancel(args) => cluster::cancel::run(args),
        Command::Why(args) => why::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Show(args) => show::run(args),
        Command::List(args) => list::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Export(args) => export::run(args),
        Command::Report(args) => report::run(args),
        Command::Curves(args) => curves::run(args),
        Command::Capacity(args) => capacity::run(args),
        Command::Decide(args) => decide::run(args),
        Command::Diagnose(args) => diagnose::run(args),
        Command::Dataset(args) => dataset::run(args),
        Command::Probe(args) => probe::run(args),
        Command::Calibrate(args) => calibrate::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Push(args) => transfer::push::run(args),
        Command::Pull(args) => transfer::pull::run(args),
        Command::Schema(args) => schema::run(args),
        Command::Completions(args) => completions::run(args, Cli::command()),
        Command::Man(args) => man::run(args, Cli::command()),
        Command::Mock(args) => Ok(mock::run(*args)?),
        Command::Worker => match crate::sweep::worker::serve() {
            Ok(()) => Ok(Exit::Done),
            Err(error) => Err(Failure::Unexpected(error.into())),
        },
        Command::Supervise { own_group } => {
            let ended = if own_group { crate::server::watch() } else { crate::server::launch::supervise() };
            ended.map_or_else(|error| Err(Failure::Unexpected(error.into())), |()| Ok(Exit::Done))
        }
    }
}
