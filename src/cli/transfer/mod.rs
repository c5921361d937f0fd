//! `push` and `pull` copy results between a folder and object storage.

pub(super) mod document;
pub(super) mod pull;
pub(super) mod push;

use std::collections::HashSet;
use std::path::PathBuf;

use clap::Args;

use super::changes::Changes;
use super::workspace::Workspace;
use crate::cli::failure::Failure;
use crate::cli::options::{Folder, TextOrJson};
use crate::cli::output;
use crate::expand::Expansion;
use crate::store::object::ObjectError;
use crate::store::short;
use document::Document;

/// The arguments that `push` and `pull` have in common.
#[derive(Debug, Args)]
pub(crate) struct TransferArgs {
    /// Address of the shared results: s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or
    /// file:///folder. Credentials come from the environment (AWS_…, GOOGLE_…, AZURE_…)
    #[arg(value_name = "URL")]
    url: String,
    /// Transfer only the runs of this plan, including all runs that its searches may have requested
    #[arg(long, value_name = "PLAN")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    folder: Folder,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
}

impl TransferArgs {
    /// Returns the short ids of the plan's runs; `None` if there is no plan.
    fn of_plan(&self) -> Result<Option<HashSet<String>>, Failure> {
        let Some(plan) = &self.plan else { return Ok(None) };
        Ok(Some(ids(&Workspace::open(plan, &self.changes, &self.folder)?.expansion)))
    }

    fn print(&self, document: &Document) -> Result<(), Failure> {
        match self.format {
            TextOrJson::Text => output::print(&document.text()),
            TextOrJson::Json => output::json(document),
        }
    }
}

/// Returns the short ids of all possible runs of a plan.
fn ids(expansion: &Expansion) -> HashSet<String> {
    let members = expansion.pools.iter().flat_map(|pool| &pool.members).map(|member| &member.run);
    expansion.runs.iter().chain(members).map(|run| short(&run.id.to_string()).to_owned()).collect()
}

impl From<ObjectError> for Failure {
    fn from(error: ObjectError) -> Failure {
        match error {
            ObjectError::Folder(error) => Failure::Store(error),
            error => Failure::Objects(error),
        }
    }
}
