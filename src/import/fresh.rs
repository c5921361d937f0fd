//! Creates a first plan for new users. The plan is filled from flags and from the server's own reports, and
//! every part of it is explained.

use std::path::Path;

use indexmap::IndexMap;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value, context};

use super::error::ImportError;
use super::text::{name_of, one_line, scalar, text_value};
use crate::plan::{self, Api, Engine, Format as PlanFormat, Percentile};
use crate::protocol::Task;
use crate::units::{Decimal, Nanos, Share};

/// The settings of a first plan.
#[derive(Debug, Clone)]
pub struct Fresh {
    /// The plan's name.
    pub name: String,
    /// The server; `None` for the embedded mock.
    pub server: Option<FreshServer>,
    /// The model's id.
    pub model: String,
    /// The maximum number of tokens of prompt and response together, if the server reported it.
    pub longest: Option<u64>,
    /// The varied load.
    pub load: FreshLoad,
}

/// A running server.
#[derive(Debug, Clone)]
pub struct FreshServer {
    /// Base address of the server's API.
    pub url: String,
    /// The engine, and how it was recognized.
    pub engine: (Engine, String),
    /// Which API is called.
    pub api: Api,
    /// The environment variable that holds the server's key.
    pub(crate) api_key_env: Option<String>,
    /// The version that the server reports.
    pub version: Option<String>,
    /// The flags that the server reports.
    pub(crate) flags: Vec<(String, String)>,
}

/// The loads of a first plan.
#[derive(Debug, Clone)]
pub enum FreshLoad {
    /// Closed loops with these batch sizes.
    Closed(Vec<u32>),
    /// Open loops with these rates in requests per second.
    Open(Vec<Decimal>),
    /// One sweep of closed loops and one sweep of open loops.
    Both(Vec<u32>, Vec<Decimal>),
    /// The highest load that meets an objective.
    Search(FreshSearch),
}

/// The search for the highest load that meets an objective.
#[derive(Debug, Clone)]
pub struct FreshSearch {
    /// The axis: `qps` or `batch_size`.
    pub axis: &'static str,
    /// The lightest load.
    pub from: Decimal,
    /// The heaviest load.
    pub to: Decimal,
    /// The resolution of the search, as a share of the load.
    pub within: Share,
    /// The window of the run that confirms the result.
    pub confirm: Nanos,
    /// The objective: metric, percentile and limit.
    pub slo: Vec<(String, Percentile, Nanos)>,
    /// The minimum number of requests in a window that can prove the objective.
    pub min_requests: u64,
    /// The shortest window of a run.
    pub measure: Nanos,
    /// The longest window of a run. A light load may need this long to send enough requests to decide whether
    /// the objective is met.
    pub at_most: Nanos,
}

/// The plan with its explanations; this module only provides the values.
const TEMPLATE: &str = include_str!("fresh.jinja");

/// Returns the text of a first plan; an error means that a flag's value makes the plan invalid.
pub fn fresh(wish: &Fresh) -> Result<String, ImportError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).keep_trailing_newline(true).build();
    environment.set_syntax(syntax.expect("the delimiters are the usual ones"));
    let text = environment.render_str(TEMPLATE, values(wish)).expect("the template has these values");
    plan::parse(Path::new("the new plan"), &text, PlanFormat::Yaml)
        .map_err(|errors| ImportError::Plan { name: "the command line".to_owned(), errors: Box::new(errors) })?;
    Ok(text)
}

/// Returns the template's values, each written in YAML.
fn values(wish: &Fresh) -> Value {
    let last = wish.model.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let (batch_size, qps) = match &wish.load {
        FreshLoad::Closed(sizes) => (list(sizes), None),
        FreshLoad::Open(rates) => (None, list(rates)),
        FreshLoad::Both(sizes, rates) => (list(sizes), list(rates)),
        FreshLoad::Search(_) => (None, None),
    };
    let search = match &wish.load {
        FreshLoad::Search(search) => Some(searched(search)),
        FreshLoad::Closed(_) | FreshLoad::Open(_) | FreshLoad::Both(..) => None,
    };
    context! {
        name => text_value(&one_line(&wish.name)),
        server => wish.server.as_ref().map(server),
        model => context! { name => scalar(&name_of(last, "model")), id => text_value(&wish.model) },
        longest => wish.longest,
        answer => answer(wish),
        batch_size,
        qps,
        search,
    }
}

fn searched(search: &FreshSearch) -> Value {
    let mut metrics: IndexMap<&str, Vec<String>> = IndexMap::new();
    for (metric, percentile, limit) in &search.slo {
        metrics.entry(metric).or_default().push(format!("{}: {limit}", <&str>::from(*percentile)));
    }
    let slo: Vec<String> =
        metrics.iter().map(|(metric, limits)| format!("{metric}: {{ {} }}", limits.join(", "))).collect();
    context! {
        axis => search.axis,
        from => search.from.to_string(),
        to => search.to.to_string(),
        within => search.within.to_string(),
        confirm => search.confirm.to_string(),
        slo => slo.join(", "),
        min_requests => search.min_requests,
        measure => search.measure.to_string(),
        at_most => search.at_most.to_string(),
    }
}

fn list<T: ToString>(values: &[T]) -> Option<String> {
    Some(values.iter().map(T::to_string).collect::<Vec<_>>().join(", "))
}

fn server(server: &FreshServer) -> Value {
    let (engine, why) = &server.engine;
    context! {
        url => text_value(&server.url),
        engine => engine.name(),
        why => one_line(why),
        api => server.api.name(),
        path => server.api.protocol().path(),
        key => server.api_key_env.as_ref().map(|name| scalar(&format!("env:{name}"))),
        facts => facts(server),
    }
}

/// Returns the server's version and flags as facts in YAML; `None` if the server reports neither.
fn facts(server: &FreshServer) -> Option<String> {
    let version = server.version.as_ref().map(|version| format!("version: {}", scalar(&one_line(version))));
    let flag = |(name, value): &(String, String)| {
        let is_plain =
            value == "true" || value == "false" || value.parse::<u32>().is_ok_and(|n| n.to_string() == *value);
        let value = if is_plain { value.clone() } else { text_value(&one_line(value)) };
        format!("{}: {value}", scalar(name))
    };
    let flags: Vec<String> = server.flags.iter().map(flag).collect();
    let flags = (!flags.is_empty()).then(|| format!("flags: {{ {} }}", flags.join(", ")));
    let facts: Vec<String> = version.into_iter().chain(flags).collect();
    (!facts.is_empty()).then(|| facts.join(", "))
}

/// Returns the template's line that sets the output length, chosen so that prompt and response fit the model.
/// For embeddings and rankings, this is the line that sets the number of texts.
fn answer(wish: &Fresh) -> String {
    let task = wish.server.as_ref().map_or(Task::Generate, |server| server.api.protocol().task());
    match (task, wish.longest, &wish.server) {
        (Task::Generate, longest, Some(_)) => {
            let tokens = longest.map_or(256, |longest| (longest / 2).clamp(1, 256));
            format!("output_tokens: {tokens}   # requested with max_tokens")
        }
        (Task::Generate, _, None) => "output_tokens: 32   # requested with max_tokens".to_owned(),
        (Task::Embed, ..) => "inputs: 1   # texts per request, each with prompt_tokens".to_owned(),
        (Task::Rank, ..) => "documents: 10   # per request, each with prompt_tokens".to_owned(),
    }
}
