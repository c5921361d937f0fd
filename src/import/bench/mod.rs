//! Command lines of `vllm bench serve` and `benchmark_serving.py` → what each of them measures.

mod arguments;
mod content;
mod files;
mod load;
mod options;
mod sampling;
mod server;
mod tables;
mod varied;

use std::path::PathBuf;

use serde_json::Value;

use super::draft::{Field, Listed};
use super::error::ImportError;
use super::secrets::Secrets;
use super::shell::{Command, shown};
use arguments::Said;
use load::Load;

pub(super) use arguments::Arguments;
pub(super) use options::{Arity, FOLDER, Fate, Known};
pub(super) use server::facts;
pub(super) use tables::draft;

/// Which of the two wrote the command; they differ in defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    /// `vllm bench serve`.
    Bench,
    /// `benchmark_serving.py`.
    Script,
}

impl Tool {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Bench => "vllm bench serve",
            Tool::Script => "benchmark_serving.py",
        }
    }
}

/// What a command does.
#[derive(Debug, PartialEq)]
pub(super) enum Program<'a> {
    /// It measures; the words are its arguments.
    Measure(Tool, &'a [String]),
    /// It starts `vllm bench sweep …`: the kind of sweep, and its arguments.
    Sweep(&'a str, &'a [String]),
    /// It starts a server; the words are its arguments.
    Serve(&'a [String]),
    /// Anything else.
    Other,
}

/// Finds the program in a command; what stands before it (`nohup`, `uv run`, `taskset …`) decides no number here.
pub(super) fn program(words: &[String]) -> Program<'_> {
    let file = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    if words.first().is_some_and(|word| ["echo", "printf", "pkill", "pip", "alias"].contains(&file(word).as_str())) {
        return Program::Other;
    }
    for (at, word) in words.iter().enumerate() {
        let rest = |count: usize| words.get(at + count..).unwrap_or_default();
        let next = |count: usize| words.get(at + count).map(String::as_str);
        if file(word) == "benchmark_serving.py" || word.ends_with("vllm.benchmarks.serve") {
            return Program::Measure(Tool::Script, rest(1));
        }
        let is_vllm = file(word) == "vllm" || word.starts_with("vllm.entrypoints.cli");
        match (is_vllm, next(1), next(2)) {
            (true, Some("bench"), Some("serve")) => return Program::Measure(Tool::Bench, rest(3)),
            (true, Some("bench"), Some("sweep")) => {
                return Program::Sweep(next(3).unwrap_or_default(), rest(4));
            }
            (true, Some("serve"), _) => return Program::Serve(rest(2)),
            _ if file(word) == "vllm-bench" => return Program::Measure(Tool::Bench, rest(1)),
            _ => {}
        }
    }
    Program::Other
}

/// What one command measures.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// The endpoint: a hint for its name, and its fields.
    pub endpoint: (String, Vec<Field>),
    /// The model: a hint for its name, and its fields.
    pub model: (String, Vec<Field>),
    /// The scenario: a hint for its name, and its fields.
    pub scenario: (String, Vec<Field>),
    /// The load.
    pub load: Load,
    /// How many requests it sends.
    pub prompts: Said<u32>,
    /// What the sweep is called.
    pub label: Option<String>,
    /// How often it runs, where that was said.
    pub repeats: Option<Field>,
    /// `seed`, `goodput`, `slo` and `notes`: what the plan says once.
    pub once: Vec<(&'static str, Field)>,
    /// Where the command begins.
    pub line: usize,
}

/// What a script said before the command.
#[derive(Debug, Default, Clone)]
pub(super) struct Around {
    /// Facts of the server that the script started, as a field of an endpoint.
    pub facts: Option<Field>,
    /// The model that the server was started with.
    pub model: Option<(String, String)>,
    /// Where it is, in place of the command's default.
    pub url: Option<(String, String)>,
    /// What to call the scenario.
    pub name: Option<String>,
    /// What a parameter file puts in place of the command's options.
    pub instead: Vec<(String, Value)>,
    /// How often each command runs.
    pub repeats: Option<Field>,
    /// What the plan says once besides.
    pub once: Vec<(&'static str, Field)>,
    /// The folder that the plan will lie in.
    pub folder: PathBuf,
}

/// The names of all options, without their dashes.
#[cfg(test)]
pub(super) fn option_names() -> Vec<&'static str> {
    options::OPTIONS.iter().map(|(name, ..)| *name).collect()
}

/// Whether a name is an option of `vllm bench serve`, without its dashes.
pub(super) fn is_option(name: &str) -> bool {
    options::OPTIONS.iter().any(|(option, ..)| *option == name)
}

/// What a command measures; `Ok(None)` where it measures nothing that can be measured here.
pub(super) fn job(
    file: &str,
    tool: Tool,
    command: &Command,
    words: &[String],
    around: &Around,
    secrets: &Secrets,
    listed: &mut Vec<Listed>,
) -> Result<Option<Job>, ImportError> {
    let arguments = Arguments::new(words, command.line, &options::OPTIONS, secrets);
    around.instead.iter().for_each(|(key, value)| instead(&arguments, key, value));
    let place = if command.line == 0 { file.to_owned() } else { format!("{file}:{}", command.line) };
    let made = server::endpoint(&place, tool, &arguments, command, around);
    let Some(endpoint) = made? else {
        listed.extend(arguments.only_listed());
        return Ok(None);
    };
    let mut model = server::model(&place, &arguments, around)?;
    model.1.extend(files::tokenizer(&arguments, &around.folder));
    let load = load::load(&place, tool, &arguments)?;
    let is_chat = endpoint.1.iter().any(|field| field.key == "api" && field.value == "chat");
    let mut scenario = content::scenario(tool, &arguments, around, is_chat);
    scenario.1.extend(sampling::extra(&arguments, &endpoint.1));
    let prompts = load::prompts(&arguments);
    let label = arguments.text("label").map(|label| label.value);
    let once = once(&arguments).into_iter().chain(around.once.clone()).collect();
    let line = command.line;
    let job = Job { endpoint, model, scenario, load, prompts, label, repeats: around.repeats.clone(), once, line };
    listed.extend(arguments.listed());
    Ok(Some(job))
}

/// A parameter file's value in place of an option.
fn instead(arguments: &Arguments, key: &str, value: &Value) {
    let name = key.replace('_', "-");
    match value {
        Value::Bool(true) => arguments.replace(&name, Vec::new()),
        Value::Bool(false) => arguments.unset(&name),
        Value::String(text) => arguments.replace(&name, vec![text.clone()]),
        Value::Array(values) => {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            arguments.replace(&name, values.iter().map(text).collect());
        }
        Value::Null => {}
        other => arguments.replace(&name, vec![other.to_string()]),
    }
}

/// What the plan says once for all commands.
fn once(arguments: &Arguments) -> Vec<(&'static str, Field)> {
    let mut once = Vec::new();
    if let Some(seed) = arguments.number::<u64>("seed", "a whole number of at most 64 bits") {
        once.push(("seed", Field::new("seed", seed.value.to_string(), seed.origin)));
    }
    if let Some(goodput) = arguments.many("goodput") {
        for pair in &goodput.value {
            once.extend(objective(pair, arguments).map(|field| ("goodput", field)));
        }
    }
    if let Some(notes) = arguments.many("metadata") {
        let said = notes.value.iter().map(|pair| match pair.split_once('=') {
            Some((key, value)) => format!("{key}={}", arguments.secrets().shown(key, value)),
            None => pair.clone(),
        });
        let text = said.collect::<Vec<_>>().join(" ");
        once.push(("notes", Field::new("notes", super::text::text_value(&text), "--metadata")));
    }
    once
}

/// `ttft:500` as a limit of goodput.
fn objective(pair: &str, arguments: &Arguments) -> Option<Field> {
    let (metric, limit) = pair.split_once(':').unwrap_or((pair, ""));
    let key = match metric {
        "ttft" | "tpot" => Some(metric),
        "e2el" => Some("e2e"),
        _ => None,
    };
    let millis = limit.parse::<f64>().ok().filter(|millis| millis.is_finite() && *millis > 0.0 && *millis < 1e9);
    match (key, millis) {
        (Some(key), Some(millis)) => {
            // Nanoseconds are the finest that a plan knows.
            let micros = (millis * 1000.0).round().max(1.0) as u64;
            let value =
                if micros.is_multiple_of(1000) { format!("{}ms", micros / 1000) } else { format!("{micros}us") };
            Some(Field::new(key, value, format!("--goodput {}", shown(pair))))
        }
        _ => {
            arguments
                .missing(&format!("--goodput {pair}"), "goodput takes ttft, tpot and e2el, each with milliseconds");
            None
        }
    }
}
