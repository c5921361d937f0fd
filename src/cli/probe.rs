//! `sweepline probe PLAN` checks whether the servers are ready.

use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::changes::Changes;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::TextOrJson;
use crate::cli::{ignored_proxies, output, stderr};
use crate::expand::{Expansion, expand};
use crate::plan::{Endpoint, Plan};
use crate::report::format::plain;
use crate::rows::Fingerprint;
use crate::server::{Found, SelfDescription, Unready, Way};
use crate::sweep::preflight::unmet;
use crate::sweep::{ask, secrets_of};

/// Maximum number of models listed per server in text output; JSON lists all.
const FEW_MODELS: usize = 20;

/// The arguments of `probe`.
#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// The plan, YAML or TOML
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    changes: Changes,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
}

/// The state of the servers of a plan.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Document<'a> {
    /// Every endpoint, in the plan's order.
    endpoints: &'a [ProbedEndpoint],
}

/// The outcome for one endpoint.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProbedEndpoint {
    /// The name of the endpoint.
    pub endpoint: String,
    /// Whether the endpoint can be measured.
    state: Readiness,
    /// Host and port that were queried; null if the endpoint is not ready, or was not queried.
    pub host: Option<String>,
    /// The `Server` header; null if the server sent none, or was not queried.
    pub server: Option<String>,
    /// The models that the server lists.
    pub models: Vec<String>,
    /// The HTTP status with which the server refused to list its models, although it generates; null if it
    /// did not refuse.
    refused_list: Option<u16>,
    /// The server's self-description; null if the server is not ready, or was not queried.
    pub fingerprint: Option<Fingerprint>,
    /// A suggested engine for the plan, if the server appears to use a different one; null
    /// otherwise.
    pub hint: Option<String>,
    /// Why the endpoint is not ready; null if it is ready, or was not queried.
    pub reason: Option<String>,
    /// The network path to the server, as far as it was measured.
    way: Way,
    /// Why the server is not near, if the plan sets `near: true` and the measurements contradict it; null
    /// otherwise.
    not_near: Option<String>,
    /// The server's whole self-description; `fingerprint` is derived from it for the plan's model.
    #[serde(skip)]
    pub(crate) said: SelfDescription,
    /// Whether waiting is useless, because the endpoint will not become ready without a change.
    #[serde(skip)]
    is_final: bool,
}

impl ProbedEndpoint {
    /// Whether the server responds and generates.
    pub(crate) fn is_ready(&self) -> bool {
        self.state == Readiness::Ready
    }

    /// Returns false only if the server has to be ready but is not. Servers that sweepline starts itself, and
    /// unused endpoints, count as measurable.
    pub(crate) fn can_be_measured(&self) -> bool {
        self.state != Readiness::Unready
    }
}

/// Whether an endpoint can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Readiness {
    /// The server responds and generates.
    Ready,
    /// The server does not respond or does not generate.
    Unready,
    /// sweepline starts the server when its runs need it.
    Embedded,
    /// sweepline launches the server, with the settings of the plan, when its runs need it.
    Launched,
    /// No run uses the endpoint.
    Unused,
}

/// Queries every server of the plan for its models and for one short generation.
pub(super) fn run(args: ProbeArgs) -> Result<Exit, Failure> {
    let plan = args.changes.load(&args.plan)?.plan;
    if let Some(note) = ignored_proxies::note(&plan) {
        stderr::complain(&note);
    }
    let asked = ask_all(&plan, &expand(&plan)?, &args.plan);
    match args.format {
        TextOrJson::Text => output::print(&text(&asked))?,
        TextOrJson::Json => output::json(&Document { endpoints: asked.as_slice() })?,
    }
    Ok(exit(&asked))
}

/// Returns the exit status of a command that needs the servers. A plan that must be edited takes precedence
/// over a server that is unavailable.
pub(super) fn exit(asked: &[ProbedEndpoint]) -> Exit {
    if asked.iter().any(|asked| asked.is_final) {
        Exit::Usage
    } else if are_ready(asked) {
        Exit::Done
    } else {
        Exit::Missing
    }
}

/// Whether every endpoint can be measured.
pub(crate) fn are_ready(asked: &[ProbedEndpoint]) -> bool {
    asked.iter().all(ProbedEndpoint::can_be_measured)
}

/// Returns one line for each endpoint.
pub(super) fn text(asked: &[ProbedEndpoint]) -> String {
    let line = |asked: &ProbedEndpoint| {
        let ProbedEndpoint {
            endpoint,
            state,
            server,
            models,
            refused_list,
            fingerprint,
            hint,
            reason,
            way,
            not_near,
            ..
        } = asked;
        let said = match state {
            Readiness::Ready => {
                let listed = Found { models: models.clone(), ..Found::default() }.listed(FEW_MODELS);
                let models = match refused_list {
                    Some(status) => &format!("no models (HTTP {status}), but generates"),
                    None if models.is_empty() => "no models",
                    None => &listed,
                };
                let is = fingerprint.as_ref().and_then(Fingerprint::in_words).map(|words| format!("; is {words}"));
                let hint = hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
                let is = is.unwrap_or_default();
                format!("ready; server {}{is}; lists {models}{hint}", server.as_deref().unwrap_or("unnamed"))
            }
            Readiness::Unready => format!("not ready: {}", reason.as_deref().unwrap_or_default()),
            Readiness::Embedded => "embedded: sweepline starts it when its runs need it".to_owned(),
            Readiness::Launched => "launched: sweepline starts it when its runs need it".to_owned(),
            Readiness::Unused => "no run uses it".to_owned(),
        };
        let way = Some(way.to_string()).filter(|way| !way.is_empty()).map(|way| format!("  {way}\n"));
        let far = not_near.as_ref().map(|far| format!("  warning: {far}\n"));
        let further: String = way.into_iter().chain(far).collect();
        format!("{endpoint}: {}\n{further}", plain(&said))
    };
    asked.iter().map(line).collect()
}

/// Queries every endpoint that the plan's runs use.
pub(crate) fn ask_all(plan: &Plan, expansion: &Expansion, path: &Path) -> Vec<ProbedEndpoint> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let asked = |(name, endpoint): (&String, &Endpoint)| {
        let run = expansion.possible().find(|run| run.spec.endpoint.name == *name);
        let runs = expansion.possible().map(|run| &run.spec);
        let secrets = secrets_of(runs.filter(|spec| spec.endpoint.name == *name));
        let lacking = unmet(plan, folder, expansion.possible().filter(|run| run.spec.endpoint.name == *name));
        let found = match (run, &endpoint.url) {
            (None, _) => Err((Readiness::Unused, None)),
            (Some(_), _) if !lacking.is_empty() => {
                let reasons: Vec<String> = lacking.into_iter().map(|unmet| unmet.reason).collect();
                Err((Readiness::Unready, Some(Unready::for_good(reasons.join("; ")))))
            }
            (Some(_), _) if endpoint.launch.is_some() => Err((Readiness::Launched, None)),
            (Some(_), _) if endpoint.url.is_none() => Err((Readiness::Embedded, None)),
            (Some(run), _) => {
                ask(endpoint, None, (&run.spec, &secrets), folder).map_err(|why| (Readiness::Unready, Some(why)))
            }
        };
        let (state, (host, found), reason) = match found {
            Ok((target, found)) => (Readiness::Ready, (Some(target.authority().to_owned()), found), None),
            Err((state, why)) => (state, (None, Found::default()), why),
        };
        let id = run.map(|run| run.spec.model.id.as_str()).unwrap_or_default();
        let fingerprint = (state == Readiness::Ready).then(|| found.said.of_model(id));
        let is_final = reason.as_ref().is_some_and(|why| why.is_final);
        let reason = reason.map(|why| why.reason);
        ProbedEndpoint {
            endpoint: name.clone(),
            state,
            host,
            server: found.server,
            models: found.models,
            refused_list: found.refused_list,
            fingerprint,
            hint: found.said.hint(endpoint.engine),
            said: found.said,
            reason,
            way: found.way,
            not_near: found.not_near,
            is_final,
        }
    };
    plan.endpoints.iter().map(asked).collect()
}
