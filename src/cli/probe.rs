//! `sweepline probe PLAN`: are the servers ready?

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::json;

use crate::expand::{Expansion, expand};
use crate::plan::{self, Endpoint, Plan};
use crate::report::format::plain;
use crate::server::{self, Found};
use crate::sweep::{question, target};

use super::{Exit, Failure, TextOrJson, output};

/// The arguments of `probe`.
#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// The plan, YAML or TOML
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
}

/// What came of asking one endpoint.
#[derive(Debug, Serialize)]
pub struct Asked {
    endpoint: String,
    state: Readiness,
    /// Its `Server` header.
    server: Option<String>,
    /// The models it lists.
    models: Vec<String>,
    /// Why it is not ready.
    reason: Option<String>,
}

/// Whether an endpoint can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Readiness {
    /// It answers and generates.
    Ready,
    /// It does not.
    Unready,
    /// sweepline starts it when its runs need it.
    Embedded,
    /// No run uses it.
    Unused,
}

/// Asks every server of the plan for its models and for one short generation.
pub fn run(args: ProbeArgs) -> Result<Exit, Failure> {
    let plan = plan::load(&args.plan)?.plan;
    let asked = ask_all(&plan, &expand(&plan)?, &args.plan);
    match args.format {
        TextOrJson::Text => print(&asked)?,
        TextOrJson::Json => output::json(&json!({ "endpoints": asked }))?,
    }
    Ok(if are_ready(&asked) { Exit::Done } else { Exit::Runs })
}

/// Whether none of them is missing.
pub fn are_ready(asked: &[Asked]) -> bool {
    asked.iter().all(|asked| asked.state != Readiness::Unready)
}

/// One line for each endpoint.
pub fn print(asked: &[Asked]) -> Result<(), Failure> {
    for Asked { endpoint, state, server, models, reason } in asked {
        let said = match state {
            Readiness::Ready => {
                let models = if models.is_empty() { "no models".to_owned() } else { models.join(", ") };
                format!("ready; server {}; lists {models}", server.as_deref().unwrap_or("unnamed"))
            }
            Readiness::Unready => format!("not ready: {}", reason.as_deref().unwrap_or_default()),
            Readiness::Embedded => "embedded: sweepline starts it when its runs need it".to_owned(),
            Readiness::Unused => "no run uses it".to_owned(),
        };
        output::print(&format!("{endpoint}: {}", plain(&said)))?;
    }
    Ok(())
}

/// Asks every endpoint that the plan's runs use.
pub fn ask_all(plan: &Plan, expansion: &Expansion, path: &Path) -> Vec<Asked> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let ask = |(name, endpoint): (&String, &Endpoint)| {
        let run = expansion.runs.iter().find(|run| run.spec.endpoint.name == *name);
        let found = match (run, &endpoint.url) {
            (None, _) => Err((Readiness::Unused, None)),
            (_, None) => Err((Readiness::Embedded, None)),
            (Some(run), Some(url)) => target(endpoint, url, folder)
                .map_err(|error| error.to_string())
                .and_then(|target| server::probe(&question(url, &target, &run.spec)).map_err(|error| error.to_string()))
                .map_err(|reason| (Readiness::Unready, Some(reason))),
        };
        let (state, found, reason) = match found {
            Ok(found) => (Readiness::Ready, found, None),
            Err((state, reason)) => (state, Found::default(), reason),
        };
        Asked { endpoint: name.clone(), state, server: found.server, models: found.models, reason }
    };
    plan.endpoints.iter().map(ask).collect()
}
