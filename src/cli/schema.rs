//! `sweepline schema`: what plans and Parquet files look like, generated from the types.

use clap::{Args, ValueEnum};

use super::{Exit, Failure, output};

/// The arguments of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// What to print
    #[arg(value_enum, default_value = "plan")]
    what: What,
}

/// What can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// The JSON Schema of plans (schemas/plan.schema.json).
    Plan,
    /// The JSON Schema of what `check --format json` prints (schemas/check.schema.json).
    Check,
    /// The meaning of the Parquet columns (schemas/columns.md).
    Columns,
}

/// Prints a schema.
pub fn run(args: SchemaArgs) -> Result<Exit, Failure> {
    match args.what {
        What::Plan => output::print(&crate::plan::schema_text())?,
        What::Check => output::print(&crate::plan::report_schema_text())?,
        What::Columns => output::print(&crate::rows::columns_markdown())?,
    }
    Ok(Exit::Done)
}
