//! `sweepline probe PLAN`: are the servers ready?

use std::path::{Path, PathBuf};

use clap::Args;

use crate::server;
use crate::sweep::{question, target};

use super::workspace::Workspace;
use super::{Exit, Failure, Folder, output};

/// The arguments of `probe`.
#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// The plan, YAML or TOML
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    folder: Folder,
}

/// Asks every server of the plan for its models and for one short generation.
pub fn run(args: ProbeArgs) -> Result<Exit, Failure> {
    let workspace = Workspace::open(&args.plan, &args.folder)?;
    Ok(if ask_all(&workspace, &args.plan)? { Exit::Done } else { Exit::Runs })
}

/// Asks every endpoint that the plan's runs use. Says whether all are ready.
pub fn ask_all(workspace: &Workspace, path: &Path) -> Result<bool, Failure> {
    let mut ready = true;
    for (name, endpoint) in &workspace.plan().endpoints {
        let Some(run) = workspace.expansion.runs.iter().find(|run| run.spec.endpoint.name == *name) else {
            output::print(&format!("{name}: no run uses it"))?;
            continue;
        };
        let Some(url) = &endpoint.url else {
            output::print(&format!("{name}: embedded, started when its runs need it"))?;
            continue;
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        let found = target(endpoint, url, folder)
            .map_err(|error| error.to_string())
            .and_then(|target| server::probe(&question(url, &target, &run.spec)).map_err(|error| error.to_string()));
        match found {
            Ok(found) => {
                let models = if found.models.is_empty() { "none".to_owned() } else { found.models.join(", ") };
                let server = found.server.unwrap_or_else(|| "unnamed".to_owned());
                output::print(&format!("{name}: ready; server {server}; lists {models}"))?;
            }
            Err(reason) => {
                ready = false;
                output::print(&format!("{name}: not ready: {reason}"))?;
            }
        }
    }
    Ok(ready)
}
