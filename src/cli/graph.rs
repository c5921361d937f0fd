//! `sweepline graph PLAN`: what waits for what.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::changes::Changes;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::expand::expand;
use crate::graph::{build, render};

/// The arguments of `graph`.
#[derive(Debug, Args)]
pub struct GraphArgs {
    /// The plan
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    changes: Changes,
    /// Graphviz, Mermaid or JSON
    #[arg(long, value_enum, default_value = "dot")]
    format: Picture,
}

/// How the graph is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Picture {
    /// Graphviz.
    Dot,
    /// Mermaid.
    Mermaid,
    /// Nodes and edges.
    Json,
}

/// Draws all runs of the plan, done or not.
pub(super) fn run(args: GraphArgs) -> Result<Exit, Failure> {
    let loaded = args.changes.load(&args.plan)?;
    let expansion = expand(&loaded.plan)?;
    let graph = build(&expansion, &|_| true).map_err(|error| Failure::Usage(error.to_string()))?;
    let drawing = render::drawing(&graph, &expansion);
    match args.format {
        Picture::Dot => output::print(&render::dot(&drawing))?,
        Picture::Mermaid => output::print(&render::mermaid(&drawing))?,
        Picture::Json => output::json(&render::json(&drawing))?,
    }
    Ok(Exit::Done)
}
