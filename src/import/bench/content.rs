//! Converts the content of a command's requests to a scenario.
//!
//! A data set is sent if the plan can name its file. Otherwise it is replaced by generated texts, whose
//! lengths come from its options or, for ShareGPT, from the mean lengths in the vLLM paper (Kwon et al.
//! 2023, arXiv:2309.06180, figure 11: 161.31 and 337.99 tokens).

use std::path::Path;

use super::sampling;

use super::length_ratio::Ratio;
use crate::import::arguments::Arguments;
use crate::import::draft::Field;
use crate::import::files::{fits, named};
use crate::import::job::Around;
use crate::import::program::Tool;
use crate::import::request;
use crate::import::said::Said;
use crate::import::text::scalar;
use crate::plan::model::extra::of_engine;
use crate::plan::model::sampling::{PARAMETERS, named as parameter};
use crate::units::Decimal;

/// Minimum length of a prompt in a scenario, in tokens. The prompt's nonce has to fit into it.
const SHORTEST: u32 = 16;
/// Number of tokens in a block of a trace.
const BLOCK: u32 = 512;
/// Maximum length of a prompt or response in a scenario, in tokens.
const LONGEST: u32 = 4_000_000;

/// The lengths of prompts and responses, in tokens, and a hint for the scenario's name.
struct Lengths {
    name: String,
    /// The length of the prefix that requests share.
    prefix: Option<Said<u32>>,
    prompt: Said<u32>,
    output: Said<u32>,
    /// How far the lengths vary.
    ratio: Option<Ratio>,
    /// The number of shared texts, if there are several.
    groups: Option<Said<u32>>,
    /// `data` or `lengths`, if a file sets the content or its lengths.
    file: Option<Field>,
    /// Whether the command sets the length of responses.
    asks: bool,
}

impl Lengths {
    /// Creates one length for all prompts and one length for all responses.
    fn new(name: impl Into<String>, prompt: Said<u32>, output: Said<u32>) -> Lengths {
        Lengths { name: name.into(), prefix: None, prompt, output, ratio: None, groups: None, file: None, asks: true }
    }
}

/// Returns the scenario of a command: a hint for its name, and its fields. `endpoint` contains the fields of
/// the command's endpoint.
pub(super) fn scenario(tool: Tool, arguments: &Arguments, around: &Around, endpoint: &[Field]) -> (String, Vec<Field>) {
    let of_endpoint = |key: &str| endpoint.iter().find(|field| field.key == key).map(|field| field.value.as_str());
    let is_chat = of_endpoint("api") == Some("chat");
    let default = if tool == Tool::Script { "sharegpt" } else { "random" };
    let said = arguments.text("dataset-name");
    let dataset =
        said.unwrap_or_else(|| Said::default(default.to_owned(), format!("default --dataset-name {default}")));
    let lengths = lengths(&dataset, arguments, &around.folder, is_chat);
    let mut fields = Vec::new();
    match (lengths.prefix.filter(|prefix| prefix.value > 0), lengths.groups) {
        (Some(prefix), Some(groups)) => {
            fields.push(Field::new("base", "B1", format!("{}: prefixes, the rest differs", dataset.origin)));
            let value = format!("{{ tokens: {}, groups: {} }}", prefix.value.min(LONGEST), groups.value);
            fields.push(Field::new("prefix", value, format!("{}, {}", prefix.origin, groups.origin)));
        }
        (Some(prefix), None) => {
            fields.push(Field::new("base", "C", format!("{}: one shared prefix, the rest differs", dataset.origin)));
            fields.push(length("system_tokens", prefix, 1, arguments));
        }
        (None, _) => fields.push(Field::new("base", "B1", format!("{}: prompts that differ", dataset.origin))),
    }
    let engine = of_endpoint("engine").and_then(of_engine);
    let body = request::body(&sampling::fields(arguments), engine, arguments.secrets(), arguments.noted());
    let from_extra = |key: &str| body.field(key);
    match (lengths.file, lengths.ratio) {
        (Some(file), _) => {
            let of_texts = file.key == "data";
            let is_trace = file.key == "trace";
            fields.push(file);
            if is_trace {
                arguments.flag("disable-shuffle");
            }
            if of_texts {
                let why =
                    "text shared by the recorded prompts stays shared, as in vLLM; nothing is shared with other runs";
                fields.push(Field::new("nonce", "run", why));
            }
            let output = from_extra("output_tokens");
            let asked = || lengths.asks.then(|| length("output_tokens", lengths.output, 1, arguments));
            fields.extend(output.or_else(asked).filter(|_| of_texts));
        }
        (None, Some(ratio)) => {
            let fixed = from_extra("output_tokens");
            fields.push(ratio.lengths((&lengths.prompt, SHORTEST), (&lengths.output, fixed.as_ref())));
        }
        (None, None) => {
            fields.push(length("prompt_tokens", lengths.prompt, SHORTEST, arguments));
            let output = from_extra("output_tokens");
            fields.push(output.unwrap_or_else(|| length("output_tokens", lengths.output, 1, arguments)));
        }
    }
    fields.push(from_extra("ignore_eos").unwrap_or_else(|| ignore_eos(tool, &dataset, arguments)));
    fields.push(from_extra("temperature").unwrap_or_else(|| temperature(tool, arguments)));
    for parameter in PARAMETERS.iter().filter(|parameter| parameter.name != "temperature") {
        let (key, (low, high)) = (parameter.name, parameter.hundredths);
        let given = arguments
            .number::<Decimal>(&key.replace('_', "-"), "a number")
            .and_then(|said| within(said, key, low, high, arguments));
        fields.extend(from_extra(key).or(given));
    }
    fields.extend(["stop", "stream"].into_iter().filter_map(from_extra));
    fields.extend(body.extra);
    let name = around.name.clone().unwrap_or(lengths.name);
    (name, fields)
}

/// Limits a length to the range that a scenario allows.
fn length(key: &str, said: Said<u32>, least: u32, arguments: &Arguments) -> Field {
    let value = said.value.clamp(least, LONGEST);
    if value != said.value {
        arguments.differs(&said.origin, &format!("{key} must be from {least} to {LONGEST}: the plan requests {value}"));
    }
    Field::new(key, value.to_string(), said.origin)
}

/// Returns a field if its value is in the range that a scenario allows, and lists it otherwise. The bounds
/// `low` and `high` are given in hundredths.
fn within(said: Said<Decimal>, key: &str, low: i64, high: i64, arguments: &Arguments) -> Option<Field> {
    let (low, high) = (Decimal::new(low, 2), Decimal::new(high, 2));
    if (low..=high).contains(&said.value) {
        return Some(Field::new(key, said.value.to_string(), said.origin));
    }
    arguments.missing(&said.origin, &format!("{key} must be from {low} to {high} here: skipped"));
    None
}

fn ignore_eos(tool: Tool, dataset: &Said<String>, arguments: &Arguments) -> Field {
    match arguments.flag("ignore-eos") {
        Some(said) => Field::new("ignore_eos", "true", said.origin),
        None if tool == Tool::Bench && ["random", "random-mm"].contains(&dataset.value.as_str()) => {
            Field::new("ignore_eos", "true", "vllm bench serve sets it for random prompts")
        }
        None => Field::new("ignore_eos", "false", format!("no --ignore-eos; default of {}", tool.name())),
    }
}

fn temperature(tool: Tool, arguments: &Arguments) -> Field {
    let given = arguments.number::<Decimal>("temperature", "a number");
    match given.and_then(|said| within(said, "temperature", 0, 200, arguments)) {
        Some(field) => field,
        None if tool == Tool::Script => Field::new("temperature", "0", "benchmark_serving.py sends 0"),
        None => Field::new("temperature", "omit", "not given: vllm bench serve leaves it to the server"),
    }
}

/// Returns the lengths of a data set. If the plan does not send the data set itself, the notes list it.
fn lengths(dataset: &Said<String>, arguments: &Arguments, folder: &Path, is_chat: bool) -> Lengths {
    match dataset.value.as_str() {
        "random" => random(arguments),
        "random-mm" => {
            arguments.missing(&dataset.origin, "the plan sends text of the same lengths, without images");
            random(arguments)
        }
        "random-rerank" => {
            let why = "vLLM counts query and document together; the plan's documents have that length, and the query \
                has `query_tokens`";
            arguments.differs(&dataset.origin, why);
            random(arguments)
        }
        "sonnet" => {
            let input = or(arguments, "sonnet-input-len", 550);
            let prefix = or(arguments, "sonnet-prefix-len", 200);
            let origin = format!("{} without {}", input.origin, prefix.origin);
            let prompt = Said { value: input.value.saturating_sub(prefix.value), origin };
            let output = or(arguments, "sonnet-output-len", 150);
            if let Some(path) = arguments.text("dataset-path") {
                arguments
                    .needless(&path.origin, "the poem is only the source text of prompts, like sweepline's own prose");
            }
            let why = "vLLM cuts its prompts from a poem; the plan uses its own prose, with these lengths and one \
                shared prefix";
            arguments.differs(&dataset.origin, why);
            Lengths { prefix: Some(prefix), ..Lengths::new("sonnet", prompt, output) }
        }
        "prefix_repetition" => {
            let prefix = or(arguments, "prefix-repetition-prefix-len", 256);
            let count = or(arguments, "prefix-repetition-num-prefixes", 10);
            let prompt = or(arguments, "prefix-repetition-suffix-len", 256);
            let output =
                arguments.whole("output-len").unwrap_or_else(|| or(arguments, "prefix-repetition-output-len", 128));
            if count.value == 0 {
                arguments
                    .missing(&count.origin, "vllm bench serve fails with an error; the plan has one shared prefix");
            }
            let groups = Some(count).filter(|count| count.value > 1);
            Lengths { prefix: Some(prefix), groups, ..Lengths::new("prefixes", prompt, output) }
        }
        other => of_file(other, dataset, arguments, (folder, is_chat)),
    }
}

/// Returns the lengths of a data set that is read from a file.
fn of_file(other: &str, dataset: &Said<String>, arguments: &Arguments, (folder, is_chat): (&Path, bool)) -> Lengths {
    let (prompt, output, option) = match other {
        "sharegpt" => (161, 338, Some("sharegpt-output-len")),
        "custom" | "custom_mm" => (161, 256, Some("custom-output-len")),
        "hf" => (161, 256, Some("hf-output-len")),
        "spec_bench" => (161, 256, Some("spec-bench-output-len")),
        "speed_bench" => (161, 4096, Some("speed-bench-output-len")),
        _ => (161, 338, None),
    };
    let origin = "placeholder: mean of ShareGPT in the vLLM paper (arXiv:2309.06180)";
    let said = |option: &str| arguments.number::<i64>(option, "a whole number");
    let said = said("output-len").or_else(|| option.and_then(said));
    // In vLLM's own format (`custom`), -1 means that each record specifies its length.
    let of_records = other == "custom" && said.as_ref().is_some_and(|said| said.value == -1);
    let given = said.filter(|said| said.value > 0).map(|said| said.map(|n| u32::try_from(n).unwrap_or(u32::MAX)));
    // For ShareGPT, the lengths of the recorded responses are used; for other data sets the tool
    // requests its default.
    let asks = given.is_some() || (other != "sharegpt" && !of_records);
    let fixed = given.as_ref().map(|given| given.value);
    let output = given.unwrap_or_else(|| {
        let why = match output {
            338 => origin,
            _ if of_records => "placeholder: the tool's default; with -1 each record specifies it",
            _ => "the tool's default",
        };
        Said::default(output, why)
    });
    let prompt = Said::default(prompt, origin);
    let name = crate::import::text::name_of(other, "dataset");
    let template = (other == "custom").then(|| arguments.flag("skip-chat-template"));
    match file(other, arguments, folder, (asks, fixed)) {
        Ok(mut file) => {
            match template {
                Some(Some(flag)) => file.origin = format!("{}, {}: texts as they are", file.origin, flag.origin),
                Some(None) => untemplated(dataset, arguments, is_chat),
                None => {}
            }
            if other == "sharegpt" {
                let why = match fixed {
                    Some(_) => {
                        "vLLM uses the model's tokenizer to decide which prompts it keeps; the filter counts four \
                         characters as a token"
                    }
                    None => {
                        "vLLM uses the model's tokenizer to decide which records it keeps, and drops those of more \
                         than 2048 tokens of prompt and response together; the filter counts four characters as a \
                         token, and bounds prompt and response separately"
                    }
                };
                arguments.differs(&dataset.origin, why);
            }
            Lengths { file: Some(file), asks, ..Lengths::new(name, prompt, output) }
        }
        Err(why) => {
            if let Some(Some(flag)) = template {
                arguments.needless(&flag.origin, "the plan sends its own prompts unchanged");
            }
            stand_in(dataset, arguments, (&prompt, &output), &why);
            Lengths::new(name, prompt, output)
        }
    }
}

/// Adds the note that vLLM applies the model's chat template to the prompts of a `custom` data set.
fn untemplated(dataset: &Said<String>, arguments: &Arguments, is_chat: bool) {
    let why = if is_chat {
        "without --skip-chat-template vLLM puts each prompt into the model's chat template before sending it, and the \
         server does so again; the plan leaves the template to the server"
    } else {
        "without --skip-chat-template vLLM puts each prompt into the model's chat template before sending it; the \
         plan sends the prompt unchanged, and with `api: chat` of the endpoint the server applies the template"
    };
    arguments.differs(&dataset.origin, why);
}

/// Returns the field of a scenario that reads the data set's file; the error gives the reason why there is no
/// such field. `asks` states whether the command sets the length of responses; `fixed` is this length if it
/// is the same for all responses.
fn file(name: &str, arguments: &Arguments, folder: &Path, (asks, fixed): (bool, Option<u32>)) -> Result<Field, String> {
    let path = arguments.text("dataset-path").or_else(|| arguments.text("dataset"));
    let Said { value, origin } = path.ok_or("the command names no file")?;
    let (key, more, how) = match name {
        "sharegpt" => {
            // The tool's sampling keeps a record if its prompt has 4 to 1024 tokens, its response
            // has at least 4 tokens (unless all responses have the same length), and both together
            // have at most 2048 tokens. The filter bounds prompts and responses separately, each by
            // the maximum that these rules allow.
            let (prompt, output) = match fixed {
                None => (1024, ", output_tokens: { min: 4, max: 2044 }"),
                Some(fixed) => (2048_u32.saturating_sub(fixed).min(1024), ""),
            };
            if prompt < 4 {
                return Err(
                    "no prompt remains: vLLM drops records of more than 2048 tokens with their response".to_owned()
                );
            }
            let more = format!(
                ", as: sharegpt, on_bad: skip, filter: {{ prompt_tokens: {{ min: 4, max: {prompt} }}{output} }}"
            );
            ("data", more, ": vLLM's bounds, in tokens of four characters")
        }
        "custom" => ("data", ", on_bad: skip".to_owned(), ""),
        // The only text column that a filter supports is the language, so the column with the model is mapped
        // to it.
        "burstgpt" => (
            "lengths",
            ", as: columns, map: { input_tokens: Request tokens, output_tokens: Response tokens, language: Model }, \
             on_bad: skip, filter: { languages: [GPT-4], output_tokens: { min: 1 } }"
                .to_owned(),
            ": its lengths, in sweepline's prose; only requests of GPT-4 with a response, as in vLLM (the filter reads \
             Model as `language`)",
        ),
        "hf" => return Err(to_fetch(&value, arguments)),
        "timed_trace" => {
            ("trace", format!(", as: mooncake{}", speed(arguments)), ": its arrivals, lengths and sharing")
        }
        _ => return Err("its format is unknown here".to_owned()),
    };
    let file = scalar(&named(folder, &value)?);
    let field = |order: &str| match key {
        "lengths" => format!("{{ data: {{ file: {file}{more} }} }}"),
        _ => format!("{{ file: {file}{more}{order} }}"),
    };
    let asked = if asks && key == "data" { ", output_tokens: 1" } else { "" };
    fits(folder, "", &format!(", {key}: {}{asked}", field("")))?;
    let is_sorted = key == "data" && arguments.flag("disable-shuffle").is_some();
    Ok(Field::new(key, field(if is_sorted { ", order: file" } else { "" }), format!("{origin}{how}")))
}

fn stand_in(dataset: &Said<String>, arguments: &Arguments, (prompt, output): (&Said<u32>, &Said<u32>), reason: &str) {
    let remedy = match dataset.value.as_str() {
        "timed_trace" => {
            "`trace: { file: FILE }` in the scenario replays the arrivals and lengths of a trace in the plan's folder"
        }
        _ => "`data: { file: FILE }` in the scenario sends a data set in the plan's folder",
    };
    let why = format!(
        "{reason}; {remedy}; until then the plan sends its own prompts of {} tokens and requests {}, all of one \
         length",
        prompt.value.max(SHORTEST),
        output.value
    );
    arguments.missing(&dataset.origin, &why);
}

/// Returns a text that explains how to download the files of a Hugging Face data set.
fn to_fetch(repository: &str, arguments: &Arguments) -> String {
    let subset = arguments.text("hf-subset").map(|said| format!(" --include '*{}*'", said.value)).unwrap_or_default();
    let split = arguments
        .text("hf-split")
        .map_or_else(String::new, |said| format!(", of which vLLM takes the split {}", said.value));
    format!(
        "import downloads nothing; `hf download {repository} --repo-type dataset{subset} --local-dir data` fetches its files{split}"
    )
}

/// Returns the replay speed of a trace as a fragment of the field `trace`; empty if the speed is 1.
/// vLLM converts the trace's times to seconds by multiplying them by the value of an option;
/// Mooncake's times are in milliseconds.
fn speed(arguments: &Arguments) -> String {
    if let Some(size) = arguments.whole("timed-trace-chunk-hash-size").filter(|size| size.value != BLOCK) {
        let why = format!("a shared block of the trace has {BLOCK} tokens here");
        arguments.differs(&size.origin, &why);
    }
    let multiplier = arguments.number::<f64>("timed-trace-sec-multiplier", "a number");
    let speed = multiplier.map_or(1.0, |said| 0.001 / said.value);
    let is_speed = speed.is_finite() && (0.001..=1000.0).contains(&speed) && (speed - 1.0).abs() > 1e-6;
    if is_speed { format!(", speed: {}", (speed * 1000.0).round() / 1000.0) } else { String::new() }
}

/// Returns the value of an option, or the tool's default.
fn or(arguments: &Arguments, option: &str, default: u32) -> Said<u32> {
    arguments.whole(option).unwrap_or_else(|| Said::default(default, format!("default --{option} {default}")))
}

fn random(arguments: &Arguments) -> Lengths {
    let prompt = arguments.whole("input-len").unwrap_or_else(|| or(arguments, "random-input-len", 1024));
    let output = arguments.whole("output-len").unwrap_or_else(|| or(arguments, "random-output-len", 128));
    let prefix = arguments.whole("random-prefix-len");
    let ratio = Ratio::of(arguments);
    Lengths { prefix, ratio, ..Lengths::new(format!("random-{}-{}", prompt.value, output.value), prompt, output) }
}

/// Converts a text scenario to a scenario whose requests return vectors or scores. `texts` is the field with
/// the number of texts per request: `inputs` or `documents`.
pub(super) fn without_tokens(fields: Vec<Field>, texts: &'static str, arguments: &Arguments) -> Vec<Field> {
    let of_tokens = |key: &str| ["output_tokens", "ignore_eos", "stop"].contains(&key) || parameter(key).is_some();
    let mut fields: Vec<Field> = fields.into_iter().filter(|field| !of_tokens(&field.key)).collect();
    let count = or(arguments, "random-batch-size", 1);
    fields.push(Field::new(texts, count.value.max(1).to_string(), count.origin));
    fields
}
