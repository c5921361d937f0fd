//! The program: arguments, one file per command, failures as text and exit code.
//!
//! Data goes to stdout, talk to stderr. Everything works without colour and without a terminal.
//!
//! Only this file knows all commands. What several of them need lies beside them, in files of their own that know no command:
//! `options`, `colour`, `failure`, `http`, `output`, `stderr`, `workspace`. A command may use another's document or
//! reader where it shows the same thing (`readings`, `export/source`), never the command itself.

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
mod import;
mod interrupt;
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
mod show;
mod shown_rows;
mod stages;
mod stderr;
mod summary_cache;
mod sweep_cell;
mod trails;
mod verify;
mod waiting;
mod why;
mod workspace;

use clap::{CommandFactory, Parser, Subcommand};

use crate::cli::colour::{Colour, When};
use crate::report::look_at_the_screen;

pub(crate) use failure::{Exit, Failure};

/// Declarative, resumable sweeps of LLM-serving benchmarks
#[derive(Debug, Parser)]
#[command(name = "sweepline", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// The colour that the command was told to use; for commands that have no such flag, what the terminal takes.
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
    /// Show what `run` would do, and why; sends nothing
    Preview(preview::PreviewArgs),
    /// Write a first plan, every part explained, from flags and from what a server says
    New(new::NewArgs),
    /// Find the highest load that meets an objective: write the plan of a search, and run it
    Search(search::SearchArgs),
    /// Make a plan of another tool's configuration or command line
    Import(import::ImportArgs),
    /// Check plans: every mistake at its place, then the methodology lint
    Check(check::CheckArgs),
    /// Say what a code of `check` means, with examples, or how numbers are counted
    Explain(explain::ExplainArgs),
    /// Print the whole plan: every default, the origin of every value, the ids of its runs
    Freeze(freeze::FreezeArgs),
    /// Draw what waits for what
    Graph(graph::GraphArgs),
    /// Hand what is to do of a plan to Slurm or Kubernetes
    Submit(cluster::batch::SubmitArgs),
    /// Say how a submitted plan stands: its jobs and its results together
    Status(cluster::status::StatusArgs),
    /// Cancel the jobs that `submit` started for a plan
    Cancel(cluster::cancel::CancelArgs),
    /// Say why a run is done, skipped or done again
    Why(why::WhyArgs),
    /// Say which runs come, go and stay between two plans, and by which edits
    Diff(diff::DiffArgs),
    /// Show one run: every metric, the verdict and its reasons
    Show(show::ShowArgs),
    /// List the results folder
    List(list::ListArgs),
    /// Say which arm is better, by how much, and what would have been seen
    Compare(compare::CompareArgs),
    /// Write runs or requests as a table
    Export(export::ExportArgs),
    /// Write results as one HTML file: answer, figures with their numbers, disclosure
    Report(report::ReportArgs),
    /// Show what each load brings and costs, and where curves bend
    Curves(curves::CurvesArgs),
    /// Say how many instances a load takes, and what they cost
    Capacity(capacity::CapacityArgs),
    /// Record which configuration is accepted and why, with its numbers, in Markdown
    Decide(decide::DecideArgs),
    /// Compare decoding with memory bandwidth, and look for symptoms
    Diagnose(diagnose::DiagnoseArgs),
    /// Look into data sets and traces: what they hold, one form, samples, anonymous profiles
    Dataset(dataset::DatasetArgs),
    /// Ask the servers of a plan whether they are ready
    Probe(probe::ProbeArgs),
    /// Measure the generator's own error here, and up to which load it stays small
    Calibrate(calibrate::CalibrateArgs),
    /// Check every file of the results folder against its digest
    Verify(verify::VerifyArgs),
    /// Print the JSON Schema of plans and of JSON answers, or what Parquet columns mean
    Schema(schema::SchemaArgs),
    /// Print what a shell needs to complete commands and flags
    Completions(completions::CompletionsArgs),
    /// Print the manual page of the program or of a command, or write them all
    Man(man::ManArgs),
    /// An OpenAI-compatible server with a timing model and faults
    Mock(Box<mock::MockArgs>),
    /// Starts a server for a sweep and ends it with the sweep; reads what to start from a pipe
    #[command(hide = true)]
    Supervise {
        /// Start nothing; kill this process group when the pipe closes
        #[arg(long, value_name = "PID")]
        group: Option<u32>,
    },
}

/// Prints why a command line cannot be, or the help that it asks for, and gives the exit code. What was typed may have come
/// from elsewhere.
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
    // reqwest panics without a TLS provider; an error means that there is one already.
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
        Command::Schema(args) => schema::run(args),
        Command::Completions(args) => completions::run(args, Cli::command()),
        Command::Man(args) => man::run(args, Cli::command()),
        Command::Mock(args) => Ok(mock::run(*args)?),
        Command::Supervise { group } => match group.map_or_else(crate::server::launch::supervise, crate::server::watch)
        {
            Ok(()) => Ok(Exit::Done),
            Err(error) => Err(Failure::Unexpected(error.into())),
        },
    }
}
