//! Converts the content of a `sglang.bench_serving` command's requests to a scenario.
//!
//! Lengths of random prompts are drawn uniformly between ⌊ratio × length⌋, at least 1, and the length itself
//! (`compute_random_lens` of `benchmark/datasets/common.py`). A ratio of 1 gives a single length.

use std::path::Path;

use crate::import::arguments::Arguments;
use crate::import::draft::Field;
use crate::import::files::{fits, named};
use crate::import::said::Said;
use crate::import::spread::{Spread, lengths};
use crate::import::text::scalar;

/// The mean lengths of ShareGPT's prompts and responses in the vLLM paper (arXiv:2309.06180, figure 11), in
/// tokens.
const SHAREGPT: (u32, u32) = (161, 338);

/// The content of a command's requests.
pub(super) struct Content {
    /// A hint for the scenario's name.
    pub(super) name: String,
    /// The fields of the scenario.
    pub(super) fields: Vec<Field>,
    /// The number of requests, if the data set determines it.
    pub(super) prompts: Option<Said<u32>>,
    /// Whether texts are rendered with the model's chat template.
    pub(super) is_templated: bool,
    /// Whether a trace sets the times of requests.
    pub(super) is_trace: bool,
}

impl Content {
    fn new(name: impl Into<String>, fields: Vec<Field>) -> Content {
        Content { name: name.into(), fields, prompts: None, is_templated: false, is_trace: false }
    }
}

/// Reads the content. If no plan can send it, lists the content and returns `None`. `output` is the output
/// length that the body requests.
pub(super) fn content(arguments: &Arguments, folder: &Path, output: Option<Said<u32>>) -> Option<Content> {
    let said = arguments.text("dataset-name");
    let dataset = said.unwrap_or_else(|| Said::default("sharegpt".to_owned(), "default --dataset-name sharegpt"));
    match dataset.value.as_str() {
        "random" | "random-ids" => Some(random(&dataset, arguments, output)),
        "image" => {
            arguments.missing(&dataset.origin, "the plan sends text of the same lengths, without images");
            Some(random(&dataset, arguments, output))
        }
        "generated-shared-prefix" => Some(shared_prefix(&dataset, arguments, output)),
        "sharegpt" => Some(sharegpt(&dataset, arguments, folder, output)),
        "custom" | "openai" => file(&dataset, arguments, folder, output),
        "mooncake" => trace(&dataset, arguments, folder),
        _ => {
            let why = "this command is skipped: the data set has images or its own format; `data: { file: FILE }` \
                       of a scenario sends one in the plan's folder";
            arguments.missing(&dataset.origin, why);
            None
        }
    }
}

fn or(arguments: &Arguments, option: &str, default: u32) -> Said<u32> {
    arguments.whole(option).unwrap_or_else(|| Said::default(default, format!("default --{option} {default}")))
}

/// Returns the range of lengths: the shortest length as a share of the longest.
fn ratio(arguments: &Arguments, option: &str, default: f64) -> Said<f64> {
    let given = arguments.number::<f64>(option, "a number from 0 to 1");
    match given {
        Some(said) if (0.0..=1.0).contains(&said.value) => said,
        other => {
            if let Some(said) = other {
                arguments
                    .missing(&said.origin, &format!("expected a number from 0 to 1: the default {default} is used"));
            }
            Said::default(default, format!("default --{option} {default}"))
        }
    }
}

fn spread(length: &Said<u32>, ratio: &Said<f64>) -> Said<Spread> {
    let least = ((f64::from(length.value) * ratio.value) as u32).max(1);
    let value = if least >= length.value { Spread::One(length.value) } else { Spread::Even(least, length.value) };
    Said { value, origin: format!("{}, {}", length.origin, ratio.origin) }
}

/// Returns the fields for these lengths; values out of range are listed.
fn of_lengths(prompt: Said<Spread>, output: Option<Said<Spread>>, arguments: &Arguments) -> Vec<Field> {
    let (fields, told) = lengths(prompt, output);
    told.iter().for_each(|(what, why)| arguments.needless(what, why));
    fields
}

fn random(dataset: &Said<String>, arguments: &Arguments, output: Option<Said<u32>>) -> Content {
    let (input, given) = (or(arguments, "random-input-len", 1024), or(arguments, "random-output-len", 1024));
    let ratio = ratio(arguments, "random-range-ratio", 0.0);
    if let Some(said) = arguments.text("dataset-path") {
        arguments.needless(
            &said.origin,
            "the tool takes random prompts from its texts; the plan takes them from sweepline's own prose",
        );
    }
    if arguments.flag("apply-chat-template").is_some() {
        arguments.needless("--apply-chat-template", "the tool also sends random prompts without it");
    }
    let name = format!("random-{}-{}", input.value, given.value);
    let answers = output.map_or_else(|| spread(&given, &ratio), |said| said.map(Spread::One));
    let mut fields = vec![Field::new("base", "B1", format!("{}: prompts that differ", dataset.origin))];
    fields.extend(of_lengths(spread(&input, &ratio), Some(answers), arguments));
    Content::new(name, fields)
}

fn shared_prefix(dataset: &Said<String>, arguments: &Arguments, output: Option<Said<u32>>) -> Content {
    let groups = or(arguments, "gsp-num-groups", 64);
    let each = or(arguments, "gsp-prompts-per-group", 16);
    let tokens = or(arguments, "gsp-system-prompt-len", 2048);
    let (question, given) = (or(arguments, "gsp-question-len", 128), or(arguments, "gsp-output-len", 256));
    let ratio = ratio(arguments, "gsp-range-ratio", 1.0);
    let turns = or(arguments, "gsp-num-turns", 1);
    let base = match turns.value {
        0 | 1 => Field::new("base", "B1", format!("{}: shared texts, the rest differs", dataset.origin)),
        _ => Field::new("base", "D", turns.origin.clone()),
    };
    let mut fields = vec![base];
    if turns.value > 1 {
        fields.push(Field::new("turns", turns.value.to_string(), turns.origin));
    }
    let order = order(arguments);
    let value = format!(
        "{{ tokens: {}, groups: {}{} }}",
        tokens.value.clamp(16, 4_000_000),
        groups.value.clamp(1, 1_000_000),
        order.as_ref().map_or("", |said| said.value)
    );
    let origins: Vec<String> =
        [Some(tokens.origin.clone()), Some(groups.origin.clone()), order.map(|said| said.origin)]
            .into_iter()
            .flatten()
            .collect();
    fields.push(Field::new("prefix", value, origins.join(", ")));
    if ratio.value < 1.0 {
        arguments.missing(&ratio.origin, "shared texts have one length here; questions and responses vary");
    }
    let answers = output.map_or_else(|| spread(&given, &ratio), |said| said.map(Spread::One));
    fields.extend(of_lengths(spread(&question, &ratio), Some(answers), arguments));
    let count = groups.value.saturating_mul(each.value).max(1);
    let origin = format!("{} × {}", groups.origin, each.origin);
    let name = format!("shared-prefix-{}-{}", tokens.value, question.value);
    if let Some(said) = arguments.text("num-prompts") {
        arguments.needless(&said.origin, "groups × prompts per group are sent, as in the tool");
    }
    Content { prompts: Some(Said { value: count, origin }), ..Content::new(name, fields) }
}

/// Returns the distribution of requests over the shared texts; `None` if it is even.
fn order(arguments: &Arguments) -> Option<Said<&'static str>> {
    let said = arguments.text("gsp-group-distribution")?;
    let alpha = arguments.number::<f64>("gsp-zipf-alpha", "a number above 0");
    if said.value != "zipf" {
        arguments.needless(&said.origin, "each request draws its group with equal probability");
        return None;
    }
    let exponent = alpha.as_ref().map_or(1.0, |alpha| alpha.value);
    let origin = alpha.map_or(said.origin.clone(), |alpha| format!("{}, {}", said.origin, alpha.origin));
    if (exponent - 1.0).abs() > 1e-9 {
        arguments.missing(&origin, "`order: zipf` has the exponent 1");
    }
    Some(Said { value: ", order: zipf", origin })
}

fn sharegpt(dataset: &Said<String>, arguments: &Arguments, folder: &Path, output: Option<Said<u32>>) -> Content {
    let fixed = output.or_else(|| arguments.whole("sharegpt-output-len"));
    let context = arguments.whole("sharegpt-context-len");
    let path = arguments.text("dataset-path").filter(|said| !said.value.is_empty());
    let template = arguments.flag("apply-chat-template");
    let found = match &path {
        Some(path) => sharegpt_file(path, fixed.as_ref(), context.as_ref(), folder),
        None => Err("the tool downloads it; nothing is downloaded here".to_owned()),
    };
    let mut fields = vec![Field::new("base", "B1", format!("{}: prompts that differ", dataset.origin))];
    match found {
        Ok(field) => {
            fields.push(field);
            let why =
                "text shared by the recorded prompts stays shared, as in the tool; nothing is shared with other runs";
            fields.push(Field::new("nonce", "run", why));
            fields.extend(fixed.map(|said| Field::new("output_tokens", said.value.max(1).to_string(), said.origin)));
            if let Some(context) = context {
                let why = "the tool bounds prompt and response together; the plan bounds them separately, at four \
                           characters per token";
                arguments.missing(&context.origin, why);
            }
        }
        Err(why) => {
            let answer =
                fixed.unwrap_or_else(|| Said::default(SHAREGPT.1, "placeholder: mean of ShareGPT (arXiv:2309.06180)"));
            let why = format!(
                "{why}; the plan sends its own prompts of {} tokens and requests {}, all of one length; `data: {{ \
                 file: FILE }}` in the scenario sends a data set in the plan's folder",
                SHAREGPT.0, answer.value
            );
            arguments.missing(&dataset.origin, &why);
            let prompt = Said::default(Spread::One(SHAREGPT.0), "placeholder: mean of ShareGPT (arXiv:2309.06180)");
            fields.extend(of_lengths(prompt, Some(answer.map(Spread::One)), arguments));
        }
    }
    Content { is_templated: template.is_some(), ..Content::new("sharegpt", fields) }
}

/// Returns the field `data` for ShareGPT's file, filtered as in the tool: prompts and responses of at least
/// two tokens, within the context length.
fn sharegpt_file(
    path: &Said<String>,
    fixed: Option<&Said<u32>>,
    context: Option<&Said<u32>>,
    folder: &Path,
) -> Result<Field, String> {
    let file = scalar(&named(folder, &path.value)?);
    let most = |other: u32| {
        let room = context.map(|context| context.value.saturating_sub(other));
        room.map_or_else(String::new, |room| format!(", max: {}", room.max(2)))
    };
    let prompt = format!("prompt_tokens: {{ min: 2{} }}", most(fixed.map_or(2, |said| said.value)));
    let answers = match fixed {
        Some(_) => String::new(),
        None => format!(", output_tokens: {{ min: 2{} }}", most(2)),
    };
    let value = format!("{{ file: {file}, as: sharegpt, on_bad: skip, filter: {{ {prompt}{answers} }} }}");
    let asked = if fixed.is_some() { ", output_tokens: 1" } else { "" };
    fits(folder, "", &format!(", data: {value}{asked}"))?;
    Ok(Field::new("data", value, format!("{}: the tool's bounds, in tokens of four characters", path.origin)))
}

/// Reads a data set in a format that plans can read directly.
fn file(dataset: &Said<String>, arguments: &Arguments, folder: &Path, output: Option<Said<u32>>) -> Option<Content> {
    let fixed = output.or_else(|| arguments.whole("sharegpt-output-len"));
    let path = arguments.text("dataset-path").filter(|said| !said.value.is_empty());
    let found = path.ok_or_else(|| "the command names no file".to_owned()).and_then(|path| {
        let value = format!("{{ file: {}, on_bad: skip }}", scalar(&named(folder, &path.value)?));
        let asked = if fixed.is_some() { ", output_tokens: 1" } else { "" };
        fits(folder, "", &format!(", data: {value}{asked}"))?;
        Ok(Field::new("data", value, path.origin))
    });
    match found {
        Ok(field) => {
            let base = Field::new("base", "B1", format!("{}: prompts that differ", dataset.origin));
            let why =
                "text shared by the recorded prompts stays shared, as in the tool; nothing is shared with other runs";
            let mut fields = vec![base, field, Field::new("nonce", "run", why)];
            fields.extend(fixed.map(|said| Field::new("output_tokens", said.value.max(1).to_string(), said.origin)));
            let is_templated = arguments.flag("apply-chat-template").is_some();
            Some(Content { is_templated, ..Content::new(dataset.value.clone(), fields) })
        }
        Err(why) => {
            let why = format!(
                "this command is skipped: {why}; `data: {{ file: FILE }}` of a scenario sends a data set in the \
                 plan's folder"
            );
            arguments.missing(&dataset.origin, &why);
            None
        }
    }
}

/// Reads a trace of Mooncake, if its file exists.
fn trace(dataset: &Said<String>, arguments: &Arguments, folder: &Path) -> Option<Content> {
    let path = arguments.text("dataset-path").filter(|said| !said.value.is_empty());
    let slow = arguments.number::<f64>("mooncake-slowdown-factor", "a number above 0");
    let workload = arguments.text("mooncake-workload");
    let is_timed = arguments.flag("use-trace-timestamps").is_some();
    let found =
        path.ok_or_else(|| "the tool downloads the trace; nothing is downloaded here".to_owned()).and_then(|path| {
            let file = scalar(&named(folder, &path.value)?);
            let speed = slow.as_ref().filter(|slow| slow.value > 0.0 && slow.value != 1.0);
            let speed = speed.map_or_else(String::new, |slow| format!(", speed: {}", speed_of(slow.value)));
            let value = format!("{{ file: {file}, as: mooncake{speed} }}");
            fits(folder, "", &format!(", trace: {value}"))?;
            Ok(Field::new("trace", value, path.origin))
        });
    match found {
        Ok(field) => {
            if let Some(said) = workload {
                arguments.needless(&said.origin, "the file determines the trace");
            }
            if !is_timed {
                let why = "without --use-trace-timestamps the tool sends the requests of the trace at its own rate; \
                           the plan replays the recorded times";
                arguments.missing(&dataset.origin, why);
            }
            Some(Content { is_trace: true, ..Content::new("mooncake", vec![field]) })
        }
        Err(why) => {
            let why = format!(
                "this command is skipped: {why}; `trace: {{ file: FILE, as: mooncake }}` of a scenario replays one in \
                 the plan's folder"
            );
            arguments.missing(&dataset.origin, &why);
            None
        }
    }
}

/// Returns the replay speed of a trace that is slowed down by this factor.
fn speed_of(slow: f64) -> String {
    let speed = (1000.0 / slow).round().clamp(1.0, 1_000_000.0) / 1000.0;
    speed.to_string()
}
