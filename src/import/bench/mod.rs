//! Converts command lines of `vllm bench serve` and `benchmark_serving.py` to measurements.

mod content;
mod length_ratio;
mod load;
mod options;
mod sampling;
mod server;

use crate::plan::Api;
use crate::protocol::Task;
use serde_json::Value;

use super::arguments::Arguments;
use super::draft::Field;
use super::error::ImportError;
use super::importer::Context;
use super::job::{Around, Job, Lasts};
use super::notes::Notes;
use super::program::{Program, Tool, program};
use super::shell::{Command, shown};
use super::text::one_line;
use super::{files, launch};

pub(super) use server::{facts, key, ready};

/// The names of all options, without their dashes.
#[cfg(test)]
pub(super) fn option_names() -> Vec<&'static str> {
    options::OPTIONS.iter().map(|(name, ..)| *name).collect()
}

/// Whether a name, without its dashes, is an option of `vllm bench serve`.
pub(super) fn is_option(name: &str) -> bool {
    options::OPTIONS.iter().any(|(option, ..)| *option == name)
}

/// Returns the measurement of a command; `Ok(None)` if it contains nothing that can be measured here.
pub(super) fn job(
    file: &str,
    tool: Tool,
    command: &Command,
    words: &[String],
    around: &Around,
    notes: &Notes,
) -> Result<Option<Job>, ImportError> {
    let arguments = Arguments::new(words, command.line, &options::OPTIONS, notes);
    around.instead.iter().for_each(|(key, value)| instead(&arguments, key, value));
    let place = if command.line == 0 { file.to_owned() } else { format!("{file}:{}", command.line) };
    let made = server::endpoint(&place, tool, &arguments, command, around);
    let Some(mut endpoint) = made? else { return Ok(None) };
    let mut model = server::model(&place, &arguments, around)?;
    launch::add(&mut endpoint.1, &model.1[0].value, around, arguments.noted());
    model.1.extend(files::tokenizer(&arguments, &around.folder));
    let mut load = load::load(&place, tool, &arguments)?;
    let api = endpoint.1.iter().find(|field| field.key == "api").and_then(|field| Api::named(&field.value).ok());
    let mut scenario = content::scenario(tool, &arguments, around, &endpoint.1);
    let texts = match api.map_or(Task::Generate, |api| api.protocol().task()) {
        Task::Generate => None,
        Task::Embed => Some("inputs"),
        Task::Rank => Some("documents"),
    };
    match texts {
        Some(texts) => scenario.1 = content::without_tokens(scenario.1, texts, &arguments),
        None => arguments.text("random-batch-size").iter().for_each(|said| {
            arguments.needless(&said.origin, "one request gets one response");
        }),
    }
    let is_trace = scenario.1.iter().any(|field| field.key == "trace");
    if is_trace {
        load = load::of_trace(load, &arguments);
    }
    let prompts = load::prompts(&arguments);
    let label = arguments.text("label").map(|label| label.value);
    let once = once(&arguments).into_iter().chain(around.once.clone()).collect();
    let line = command.line;
    let (setting, repeats) = (around.setting.clone(), around.repeats.clone());
    let mut search = around.search.clone();
    if search.as_ref().is_some_and(|search| search.axis == "batch_size" && !load.qps.is_empty()) {
        arguments.missing("--sla-variable max_concurrency", "with a rate it is a cap, and a cap is not searched");
        search = None;
    }
    // If the command has a ramp, the measurement is as long as the ramp. A trace determines the end of its
    // own measurement.
    let lasts = match (load::ramp_time(&arguments), is_trace) {
        (_, true) => Lasts::Unsaid,
        (Some(time), _) => Lasts::Seconds(time),
        (None, _) => Lasts::Requests(prompts),
    };
    let fields = around.fields.clone();
    let is_listed = !around.instead.is_empty();
    let job = Job {
        setting,
        load,
        search,
        lasts,
        label,
        repeats,
        once,
        line,
        fields,
        is_listed,
        ..Job::new(endpoint, model, scenario)
    };
    arguments.list_unused();
    Ok(Some(job))
}

/// Returns the jobs of one `vllm bench` command with several combinations of parameters.
pub(super) fn each(
    command: &Command,
    words: &[String],
    each: Vec<Around>,
    context: &Context,
) -> Result<Vec<Job>, ImportError> {
    let Program::Measure(tool, words) = program(words) else {
        let program = words.first().map(|word| context.notes.secrets.hide(word)).unwrap_or_default();
        let seen = format!("`{}` is not a benchmark command", one_line(&program));
        return Err(ImportError::unknown(&context.wishes.name, seen));
    };
    let before = context.around();
    let mut jobs = Vec::new();
    for one in each {
        let (model, url) = (before.model.clone().or(one.model), before.url.clone().or(one.url));
        let one = Around { model, url, folder: before.folder.clone(), ..one };
        jobs.extend(job(&context.wishes.name, tool, command, words, &one, context.notes)?);
    }
    Ok(jobs)
}

/// Replaces the value of an option with a value from a parameter file.
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

/// Reads the settings that the plan contains once for all commands.
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
        let text = notes.value.join(" ");
        once.push(("notes", Field::new("notes", super::text::text_value(&text), "--metadata")));
    }
    once
}

/// Parses `ttft:500` as a limit for goodput.
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
            // The limit is rounded to microseconds; the finest unit of a plan is nanoseconds.
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
