//! Converts command lines of llmperf's `token_benchmark_ray.py` (github.com/ray-project/llmperf, f1d6bed4 of
//! December 2024) to jobs.

mod options;

use super::arguments::Arguments;
use super::body::Body;
use super::draft::Field;
use super::endpoint::{self, Path};
use super::error::ImportError;
use super::files;
use super::importer::{Asked, CommandReader, Context, Importer};
use super::job::{Around, Job, Lasts, Load};
use super::launch;
use super::loads::bounded;
use super::program::module;
use super::said::Said;
use super::spread::{Spread, lengths};
use super::text::{name_of, text_value};
use crate::plan::Api;

/// The importer for llmperf.
pub(super) const IMPORTER: Importer = Importer {
    name: "llmperf",
    title: "llmperf",
    takes: "command lines of llmperf's `token_benchmark_ray.py`",
    file: None,
    command: Some(CommandReader { arguments, read: jobs }),
};

fn arguments(words: &[String]) -> Option<&[String]> {
    module(words, &["token_benchmark_ray.py"])
}

/// The length of llmperf's shortest prompt, which is its instruction, in tokens
/// (`token_benchmark_ray.py`).
const INSTRUCTION: u32 = 41;

/// An API that llmperf calls, and where its address and its key come from.
struct Provider {
    api: Api,
    /// The environment variable with the server's address.
    base: &'static str,
    /// The address without that variable; `None` if the variable is required.
    default_url: Option<&'static str>,
    path: Path,
    /// The environment variable with the key.
    key: &'static str,
    /// How the models of this provider begin with LiteLLM. A prefix that ends with a slash is not part of the id.
    models: &'static [&'static str],
}

const OPENAI: Provider = Provider {
    api: Api::Chat,
    base: "OPENAI_API_BASE",
    default_url: None,
    path: Path::IsBase,
    key: "OPENAI_API_KEY",
    models: &["openai/", "hosted_vllm/", "gpt-"],
};

/// llmperf calls Anthropic through LiteLLM, which appends `/v1/messages` to the address.
const ANTHROPIC: Provider = Provider {
    api: Api::Messages,
    base: "ANTHROPIC_API_BASE",
    default_url: Some("https://api.anthropic.com"),
    path: Path::AddsV1,
    key: "ANTHROPIC_API_KEY",
    models: &["anthropic/", "claude-"],
};

/// The names of all options, without their dashes.
#[cfg(test)]
pub(super) fn option_names() -> Vec<&'static str> {
    options::OPTIONS.iter().map(|(name, ..)| *name).collect()
}

/// Returns the job of a command. There is no job if a plan cannot use the command's API.
fn jobs(asked: &Asked, context: &Context) -> Result<Vec<Job>, ImportError> {
    let Asked { place, command, around, .. } = asked;
    let notes = context.notes;
    let arguments = Arguments::new(asked.words, command.line, &options::OPTIONS, notes);
    let api =
        arguments.text("llm-api").unwrap_or_else(|| Said::default("openai".to_owned(), "default --llm-api openai"));
    let Some(provider) = provider(&api.value, &arguments) else {
        let why = "this command is skipped: the provider has neither OpenAI's nor Anthropic's API; pass the address of \
                   one that has OpenAI's to `import --url` and write --llm-api openai";
        arguments.missing(&api.origin, why);
        return Ok(Vec::new());
    };
    let mut endpoint = at(asked, &arguments, provider, &api)?;
    let mut model = model(place, &arguments, provider, around)?;
    launch::add(&mut endpoint, &model.1[0].value, around, arguments.noted());
    model.1.extend(files::tokenizer_of("tokenizer", &arguments, &around.folder, "openai"));
    let mut body = Body::default();
    body.add_text(arguments.text("additional-sampling-params"), notes, command.line);
    body.keep_fields_of(provider.api, notes, command.line);
    body.add_default("temperature", serde_json::Value::Null, "not set: llmperf leaves it to the server");
    let output = match body.output_tokens() {
        Some(said) => said.map(Spread::One),
        None => spread(&arguments, "mean-output-tokens", 150, "stddev-output-tokens", 80),
    };
    let prompt = with_instruction(spread(&arguments, "mean-input-tokens", 550, "stddev-input-tokens", 150), &arguments);
    let name = format!("sonnets-{}-{}", mean(&prompt.value), mean(&output.value));
    let (fields, told) = lengths(prompt, Some(output));
    told.iter().for_each(|(what, why)| arguments.needless(what, why));
    let mut scenario = vec![Field::new("base", "B1", "prompts that differ: lines of sonnets in llmperf, prose here")];
    scenario.extend(fields);
    body.add_default("ignore_eos", false.into(), "llmperf's prompt requests the length; the model ends the response");
    scenario.extend(body.fields("openai", notes, command.line));
    let in_flight = or(&arguments, "num-concurrent-requests", 10);
    let load = Load { batch_size: Some(bounded(in_flight, &arguments)), ..Load::default() };
    let (seconds, count) = (or(&arguments, "timeout", 90), or(&arguments, "max-num-completed-requests", 10));
    let metadata = arguments.text("metadata").filter(|said| !said.value.is_empty());
    let text = |said: Said<String>| Field::new("notes", text_value(&said.value), "--metadata");
    let job = Job {
        load,
        lasts: Lasts::First(seconds.map(f64::from), count),
        once: metadata.map(|said| ("notes", text(said))).into_iter().chain(around.once.clone()).collect(),
        line: command.line,
        ..Job::new(("llmperf".to_owned(), endpoint), model, (name, scenario))
    };
    arguments.list_unused();
    Ok(vec![job])
}

/// Returns the provider that the command calls; `None` if a plan cannot use its API. With LiteLLM, the model's name
/// starts with the provider.
fn provider(api: &str, arguments: &Arguments) -> Option<&'static Provider> {
    match api {
        "openai" => Some(&OPENAI),
        "anthropic" => Some(&ANTHROPIC),
        "litellm" => {
            let model = arguments.text("model").map(|said| said.value).unwrap_or_default();
            let is_of = |provider: &&Provider| provider.models.iter().any(|begin| model.starts_with(begin));
            [&OPENAI, &ANTHROPIC].into_iter().find(is_of)
        }
        _ => None,
    }
}

fn at(
    asked: &Asked,
    arguments: &Arguments,
    provider: &Provider,
    api: &Said<String>,
) -> Result<Vec<Field>, ImportError> {
    let Asked { place, command, around, .. } = asked;
    let Provider { base, default_url, path, key, .. } = *provider;
    let said = endpoint::variable(command, base, arguments.notes).filter(|said| !said.value.trim().is_empty());
    let default = default_url.map(|url| Said::default(url.to_owned(), format!("{base} is not set")));
    let said = said.or_else(|| default.filter(|_| around.url.is_none()));
    let Some(said) = endpoint::base(said, around, arguments.notes, command.line) else {
        let what = format!("the command has no address: the source does not set {base}");
        let remedy = "export it before the command, or pass it: sweepline import --url http://HOST:PORT/v1 …";
        return Err(ImportError::shape(place, what, remedy));
    };
    let remedy = format!("write {base}=http://HOST:PORT/v1");
    let url = endpoint::url(place, said, path, &remedy, arguments.notes, command.line)?;
    let origin = format!("{}: the server's engine is not given; write it here", api.origin);
    let mut fields =
        vec![url, Field::new("engine", "openai", origin), Field::new("api", provider.api.name(), &api.origin)];
    fields.extend(endpoint::api_key(None, &[key], command, arguments.notes));
    Ok(fields)
}

fn model(
    place: &str,
    arguments: &Arguments,
    provider: &Provider,
    around: &Around,
) -> Result<(String, Vec<Field>), ImportError> {
    let named =
        arguments.needed_unless(around.is_given_model(), place, "model")?.filter(|said| !said.value.trim().is_empty());
    let Some(said) = endpoint::model_id(named, around, arguments.notes, arguments.line) else {
        let remedy = "add --model ID to it, or pass it: sweepline import --model ID …";
        return Err(ImportError::shape(place, "the command names no model", remedy));
    };
    // LiteLLM's provider prefix is unknown to the server.
    let mut prefixes = provider.models.iter().filter(|begin| begin.ends_with('/'));
    let known = prefixes.find_map(|begin| said.value.strip_prefix(begin));
    let id = known.filter(|id| !id.is_empty()).unwrap_or(&said.value);
    let last = id.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    Ok((name_of(last, "model"), vec![Field::new("id", text_value(id), said.origin)]))
}

fn or(arguments: &Arguments, option: &str, default: u32) -> Said<u32> {
    let given = arguments.whole(option).filter(|said| said.value > 0);
    given.unwrap_or_else(|| Said::default(default, format!("default --{option} {default}")))
}

/// Returns lengths as the tool draws them: from a normal distribution, in which lengths of zero or
/// less are drawn again.
fn spread(arguments: &Arguments, mean: &str, of_mean: u32, sd: &str, of_sd: u32) -> Said<Spread> {
    let mean = or(arguments, mean, of_mean);
    let sd = arguments.whole(sd).unwrap_or_else(|| Said::default(of_sd, format!("default --{sd} {of_sd}")));
    Said { value: Spread::around(mean.value, sd.value, 1), origin: format!("{}, {}", mean.origin, sd.origin) }
}

/// Returns prompt lengths. Lengths shorter than llmperf's instruction are drawn again.
fn with_instruction(said: Said<Spread>, arguments: &Arguments) -> Said<Spread> {
    let Spread::Normal { mean, sd, max, .. } = said.value else { return said };
    let around = mean.max(INSTRUCTION);
    if around != mean {
        let why = format!(
            "llmperf redraws until a prompt fits its instruction, {INSTRUCTION} tokens, so the mean is {INSTRUCTION} \
             here"
        );
        arguments.differs(said.origin.split(',').next().unwrap_or_default(), &why);
    }
    let max = max.max(around.saturating_add(sd.saturating_mul(5)));
    said.map(|_| Spread::Normal {
        mean: around,
        sd,
        min: INSTRUCTION.max(mean.saturating_sub(sd.saturating_mul(5))),
        max,
    })
}

fn mean(spread: &Spread) -> u32 {
    match spread {
        Spread::One(mean) | Spread::Normal { mean, .. } | Spread::Even(_, mean) => *mean,
    }
}
