//! What a command sends → a scenario.
//!
//! Data sets are not sent by this version. What stands in for one has the lengths that its options say, or, for ShareGPT, the
//! mean lengths that the vLLM paper gives for it (Kwon et al. 2023, arXiv:2309.06180, figure 11: 161.31 and 337.99 tokens).

use super::varied::Ratio;
use super::{Arguments, Around, Said, Tool};
use crate::import::draft::Field;
use crate::units::Decimal;

/// The shortest prompt that a scenario takes: its nonce has to fit.
const SHORTEST: u32 = 16;
/// The longest length that a scenario takes.
const LONGEST: u32 = 4_000_000;

/// Lengths in tokens, and a name.
struct Lengths {
    name: String,
    /// The prefix that requests share.
    prefix: Option<Said<u32>>,
    prompt: Said<u32>,
    output: Said<u32>,
    /// How far they vary.
    ratio: Option<Ratio>,
}

/// The scenario of a command: a hint for its name, and its fields.
pub(super) fn scenario(tool: Tool, arguments: &Arguments, around: &Around) -> (String, Vec<Field>) {
    let default = if tool == Tool::Script { "sharegpt" } else { "random" };
    let said = arguments.text("dataset-name");
    let dataset =
        said.unwrap_or_else(|| Said::default(default.to_owned(), format!("default --dataset-name {default}")));
    let lengths = lengths(&dataset, arguments);
    let mut fields = Vec::new();
    match lengths.prefix.filter(|prefix| prefix.value > 0) {
        Some(prefix) => {
            fields.push(Field::new("base", "C", format!("{}: one shared prefix, the rest differs", dataset.origin)));
            fields.push(length("system_tokens", prefix, 1, arguments));
        }
        None => fields.push(Field::new("base", "B1", format!("{}: prompts that differ", dataset.origin))),
    }
    let extra = extra_body(arguments);
    let from_extra = |key: &str| extra.iter().rfind(|field| field.key == key).cloned();
    match lengths.ratio {
        Some(ratio) => {
            let fixed = from_extra("output_tokens");
            fields.push(ratio.lengths((&lengths.prompt, SHORTEST), (&lengths.output, fixed.as_ref())));
        }
        None => {
            fields.push(length("prompt_tokens", lengths.prompt, SHORTEST, arguments));
            let output = from_extra("output_tokens");
            fields.push(output.unwrap_or_else(|| length("output_tokens", lengths.output, 1, arguments)));
        }
    }
    fields.push(from_extra("ignore_eos").unwrap_or_else(|| ignore_eos(tool, &dataset, arguments)));
    fields.push(from_extra("temperature").unwrap_or_else(|| temperature(tool, arguments)));
    for (option, key, low, high) in [
        ("top-p", "top_p", 1, 100),
        ("presence-penalty", "presence_penalty", -200, 200),
        ("frequency-penalty", "frequency_penalty", -200, 200),
    ] {
        let given =
            arguments.number::<Decimal>(option, "a number").and_then(|said| within(said, key, low, high, arguments));
        fields.extend(from_extra(key).or(given));
    }
    let name = around.name.clone().unwrap_or(lengths.name);
    (name, fields)
}

/// A length in the range that a scenario takes.
fn length(key: &str, said: Said<u32>, least: u32, arguments: &Arguments) -> Field {
    let value = said.value.clamp(least, LONGEST);
    if value != said.value {
        arguments.missing(&said.origin, &format!("{key} is from {least} to {LONGEST}: the plan asks for {value}"));
    }
    Field::new(key, value.to_string(), said.origin)
}

/// A number in the range that a scenario takes, given in hundredths.
fn within(said: Said<Decimal>, key: &str, low: i64, high: i64, arguments: &Arguments) -> Option<Field> {
    let (low, high) = (Decimal::new(low, 2), Decimal::new(high, 2));
    if (low..=high).contains(&said.value) {
        return Some(Field::new(key, said.value.to_string(), said.origin));
    }
    arguments.missing(&said.origin, &format!("{key} is from {low} to {high} here, and is left out"));
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
        None => {
            arguments.missing(
                "no --temperature",
                "vllm bench serve then leaves it to the server; a scenario always sends one, here 0",
            );
            Field::new("temperature", "0", "not given")
        }
    }
}

/// The lengths of a data set, and what is said of it where it is not sent.
fn lengths(dataset: &Said<String>, arguments: &Arguments) -> Lengths {
    match dataset.value.as_str() {
        "random" => random(arguments),
        "random-mm" | "random-rerank" => {
            arguments
                .missing(&dataset.origin, "the plan sends text of the same lengths, without pictures or documents");
            random(arguments)
        }
        "sonnet" => {
            let input = or(arguments, "sonnet-input-len", 550);
            let prefix = or(arguments, "sonnet-prefix-len", 200);
            let origin = format!("{} without {}", input.origin, prefix.origin);
            let prompt = Said { value: input.value.saturating_sub(prefix.value), origin };
            let output = or(arguments, "sonnet-output-len", 150);
            stand_in(dataset, arguments, &prompt, &output);
            Lengths { name: "sonnet".to_owned(), prefix: Some(prefix), prompt, output, ratio: None }
        }
        "prefix_repetition" => {
            let prefix = or(arguments, "prefix-repetition-prefix-len", 256);
            let count = or(arguments, "prefix-repetition-num-prefixes", 10);
            if count.value != 1 {
                arguments.missing(&count.origin, "all requests of the plan share one prefix");
            }
            let prompt = or(arguments, "prefix-repetition-suffix-len", 256);
            let output =
                arguments.whole("output-len").unwrap_or_else(|| or(arguments, "prefix-repetition-output-len", 128));
            Lengths { name: "prefixes".to_owned(), prefix: Some(prefix), prompt, output, ratio: None }
        }
        other => {
            let (prompt, output, option) = match other {
                "sharegpt" => (161, 338, Some("sharegpt-output-len")),
                "custom" | "custom_mm" => (161, 256, Some("custom-output-len")),
                "hf" => (161, 256, Some("hf-output-len")),
                "spec_bench" => (161, 256, Some("spec-bench-output-len")),
                "speed_bench" => (161, 4096, Some("speed-bench-output-len")),
                _ => (161, 338, None),
            };
            let origin = "stands in: mean of ShareGPT in the vLLM paper (arXiv:2309.06180)";
            let given = |option: &str| arguments.number::<i64>(option, "a whole number").filter(|said| said.value > 0);
            let given = given("output-len")
                .or_else(|| option.and_then(given))
                .map(|said| said.map(|n| u32::try_from(n).unwrap_or(u32::MAX)));
            let output = given
                .unwrap_or_else(|| Said::default(output, if output == 338 { origin } else { "the tool's default" }));
            let prompt = Said::default(prompt, origin);
            stand_in(dataset, arguments, &prompt, &output);
            Lengths { name: crate::import::text::name_of(other, "dataset"), prefix: None, prompt, output, ratio: None }
        }
    }
}

fn stand_in(dataset: &Said<String>, arguments: &Arguments, prompt: &Said<u32>, output: &Said<u32>) {
    let why = format!(
        "this version sends no data sets; the plan sends its own prompts of {} tokens and asks for {}, all of one length",
        prompt.value.max(SHORTEST),
        output.value
    );
    arguments.missing(&dataset.origin, &why);
}

/// The value of an option, or the tool's default.
fn or(arguments: &Arguments, option: &str, default: u32) -> Said<u32> {
    arguments.whole(option).unwrap_or_else(|| Said::default(default, format!("default --{option} {default}")))
}

fn random(arguments: &Arguments) -> Lengths {
    let prompt = arguments.whole("input-len").unwrap_or_else(|| or(arguments, "random-input-len", 1024));
    let output = arguments.whole("output-len").unwrap_or_else(|| or(arguments, "random-output-len", 128));
    let prefix = arguments.whole("random-prefix-len");
    let ratio = Ratio::of(arguments);
    Lengths { name: format!("random-{}-{}", prompt.value, output.value), prefix, prompt, output, ratio }
}

/// What `--extra-body` says and a scenario knows.
fn extra_body(arguments: &Arguments) -> Vec<Field> {
    let Some(said) = arguments.text("extra-body") else { return Vec::new() };
    let Ok(serde_json::Value::Object(body)) = serde_json::from_str(&said.value) else {
        arguments.missing("--extra-body", "this is not a JSON object");
        return Vec::new();
    };
    let mut fields = Vec::new();
    for (key, value) in &body {
        let origin = format!("--extra-body {key}");
        let number = || value.to_string().parse::<Decimal>().ok().filter(|_| value.is_number());
        let known = match key.as_str() {
            "max_tokens" | "max_completion_tokens" => number()
                .and_then(|number| number.to_string().parse::<u32>().ok())
                .map(|value| length("output_tokens", Said { value, origin: origin.clone() }, 1, arguments)),
            "ignore_eos" => value.as_bool().map(|value| Field::new("ignore_eos", value.to_string(), &origin)),
            "temperature" => {
                number().and_then(|value| within(Said { value, origin: origin.clone() }, key, 0, 200, arguments))
            }
            "top_p" => {
                number().and_then(|value| within(Said { value, origin: origin.clone() }, key, 1, 100, arguments))
            }
            "presence_penalty" | "frequency_penalty" => {
                number().and_then(|value| within(Said { value, origin: origin.clone() }, key, -200, 200, arguments))
            }
            _ => None,
        };
        if known.is_none() {
            let shown = arguments.secrets().shown(key, &value.to_string());
            arguments.missing(&format!("{origin} = {shown}"), "this field is not sent");
        }
        fields.extend(known);
    }
    fields
}
