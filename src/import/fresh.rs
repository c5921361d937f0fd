//! A first plan for a newcomer: what flags and the server itself said, every part explained.

use std::path::Path;

use indexmap::IndexMap;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value, context};

use super::error::ImportError;
use super::text::{name_of, one_line, scalar, text_value};
use crate::plan::{self, Api, Engine, Format as PlanFormat, Percentile};
use crate::protocol::Task;
use crate::units::{Decimal, Nanos, Share};

/// What a first plan is about.
#[derive(Debug, Clone)]
pub struct Fresh {
    /// The plan's name.
    pub name: String,
    /// The server; none for the embedded mock.
    pub server: Option<FreshServer>,
    /// The model's id.
    pub model: String,
    /// The most tokens of prompt and answer together, where the server said so.
    pub longest: Option<u64>,
    /// What is varied.
    pub load: FreshLoad,
}

/// A running server.
#[derive(Debug, Clone)]
pub struct FreshServer {
    /// Base address of its API.
    pub url: String,
    /// The engine, and why it is taken for that one.
    pub engine: (Engine, String),
    /// Which API is called.
    pub api: Api,
    /// The environment variable that holds its key.
    pub(crate) api_key_env: Option<String>,
    /// Its version, as it says.
    pub version: Option<String>,
    /// Its flags, as it says.
    pub(crate) flags: Vec<(String, String)>,
}

/// The loads of a first plan.
#[derive(Debug, Clone)]
pub enum FreshLoad {
    /// Batch sizes: closed loops.
    Closed(Vec<u32>),
    /// Requests per second: open loops.
    Open(Vec<Decimal>),
    /// A sweep of each.
    Both(Vec<u32>, Vec<Decimal>),
    /// The highest load that meets an objective.
    Search(FreshSearch),
}

/// The highest load that meets an objective, to be searched.
#[derive(Debug, Clone)]
pub struct FreshSearch {
    /// The axis: `qps` or `batch_size`.
    pub axis: &'static str,
    /// The lightest load.
    pub from: Decimal,
    /// The heaviest load.
    pub to: Decimal,
    /// The resolution.
    pub within: Share,
    /// The window of the run that confirms.
    pub confirm: Nanos,
    /// The objective: metric, percentile and limit.
    pub slo: Vec<(String, Percentile, Nanos)>,
    /// Requests of a window that can show that the objective holds.
    pub min_requests: u64,
    /// The shortest window of a run.
    pub measure: Nanos,
    /// The longest: what a light load may take for so many requests as decide it.
    pub at_most: Nanos,
}

/// The plan with its explanations; here are only the values that it is filled with.
const TEMPLATE: &str = include_str!("fresh.jinja");

/// The text of a first plan; an error means that a flag's value makes no plan.
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

/// What the template is filled with, each as it is written in YAML.
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

/// Version and flags, as facts of a server; none where it tells nothing.
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

/// What is asked for, so that prompt and answer fit the model.
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
