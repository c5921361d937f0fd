//! Converts command lines of `genai-bench benchmark` to jobs: every traffic scenario at every number of
//! requests in flight, or of texts per request.

mod options;
mod scenario;

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
use super::program::after;
use super::said::Said;
use super::spread::{LONGEST, SHORTEST, Spread, lengths};
use super::text::{cell_text, name_of, scalar, text_value};
use scenario::{Traffic, traffic};

/// The importer for genai-bench.
pub(super) const IMPORTER: Importer = Importer {
    name: "genai-bench",
    title: "genai-bench",
    takes: "command lines of `genai-bench benchmark`",
    file: None,
    command: Some(CommandReader { arguments, read: jobs }),
};

/// The tool's default numbers of requests in flight, and of texts per request.
const CONCURRENCIES: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const BATCHES: [u32; 7] = [1, 2, 4, 8, 24, 48, 96];
/// The tool's default traffic scenarios.
const CHAT: [&str; 5] = ["N(480,240)/(300,150)", "D(100,100)", "D(100,1000)", "D(2000,200)", "D(7800,200)"];
const EMBEDDING: [&str; 5] = ["E(64)", "E(128)", "E(256)", "E(512)", "E(1024)"];
const RANKING: [&str; 7] =
    ["R(64,100)", "R(128,100)", "R(256,100)", "R(512,100)", "R(1024,100)", "R(2096,100)", "R(4096,100)"];
/// Maximum number of values of an option.
const MOST: usize = 1000;

fn arguments(words: &[String]) -> Option<&[String]> {
    after(words, "genai-bench", &["benchmark"])
}

/// The names of all options, without their dashes.
#[cfg(test)]
pub(super) fn option_names() -> Vec<&'static str> {
    options::OPTIONS.iter().map(|(name, ..)| *name).collect()
}

/// The task: text generation, embedding or ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Chat,
    Embed,
    Rank,
}

/// Returns the jobs of a command.
fn jobs(asked: &Asked, context: &Context) -> Result<Vec<Job>, ImportError> {
    let Asked { command, around, place, .. } = asked;
    let notes = context.notes;
    let arguments = Arguments::new(asked.words, command.line, &options::OPTIONS, notes);
    let Some(task) = task(place, &arguments)? else { return Ok(Vec::new()) };
    let backend = arguments.needed(place, "api-backend")?;
    let backend = backend.unwrap_or_else(|| Said::default("openai".to_owned(), "no --api-backend"));
    if !["openai", "vllm", "sglang", "together"].contains(&backend.value.as_str()) {
        let why = "this command is skipped: the provider has no OpenAI API";
        arguments.missing(&backend.origin, why);
        return Ok(Vec::new());
    }
    let engine = engine(&backend, &arguments);
    let mut endpoint = at(asked, &arguments, &engine, task, &backend)?;
    let mut model = model(place, &arguments, around)?;
    let noted = arguments.noted();
    launch::add(&mut endpoint, &model.1[0].value, around, noted);
    model.1.extend(files::tokenizer_of("model-tokenizer", &arguments, &around.folder, &engine.value));
    let body = body(&arguments, task, &backend, asked, context);
    let scenarios = scenarios(task, &arguments, asked, &body)?;
    let (seconds, count) = (minutes(&arguments), arguments.whole("max-requests-per-run"));
    let lasts = match (seconds, count) {
        (Some(seconds), Some(count)) => Lasts::First(seconds, count),
        (Some(seconds), None) => Lasts::Seconds(seconds),
        (None, Some(count)) => Lasts::Requests(count),
        (None, None) => Lasts::Unsaid,
    };
    let mut jobs = Vec::new();
    let fill = fill(&arguments);
    let load = |said: Said<u32>| Load { batch_size: Some(bounded(said, &arguments)), ..Load::default() };
    let sizes = match task {
        Task::Chat => numbers(&arguments, "num-concurrency", &CONCURRENCIES),
        Task::Embed | Task::Rank => numbers(&arguments, "batch-size", &BATCHES),
    };
    for (name, fields) in scenarios {
        for size in &sizes {
            let (name, mut fields) = (name.clone(), fields.clone());
            let (name, load) = match task {
                Task::Chat => (name, load(size.clone())),
                Task::Embed | Task::Rank => {
                    let key = if task == Task::Embed { "inputs" } else { "documents" };
                    fields.push(Field::new(key, size.value.to_string(), &size.origin));
                    let one = Said::default(1, "one request in flight, regardless of --num-concurrency");
                    (format!("{name}-{}", size.value), load(one))
                }
            };
            let job = Job::new((engine.value.clone(), endpoint.clone()), model.clone(), (name, fields));
            let (lasts, phases, once) = (lasts.clone(), fill.clone(), around.once.clone());
            jobs.push(Job { load, lasts, phases, once, line: command.line, ..job });
        }
    }
    arguments.list_unused();
    Ok(jobs)
}

/// Returns the task; `None` if it is not a text task.
fn task(place: &str, arguments: &Arguments) -> Result<Option<Task>, ImportError> {
    let said = arguments.needed(place, "task")?;
    let said = said.unwrap_or_else(|| Said::default("text-to-text".to_owned(), "no --task"));
    Ok(match said.value.to_ascii_lowercase().as_str() {
        "text-to-text" => Some(Task::Chat),
        "text-to-embeddings" => Some(Task::Embed),
        "text-to-rerank" => Some(Task::Rank),
        _ => {
            let why = "this command is skipped: sweepline measures text, embeddings and rankings, not images or speech";
            arguments.missing(&said.origin, why);
            None
        }
    })
}

/// Returns the engine from `--server-engine`, or else from the backend's name.
fn engine(backend: &Said<String>, arguments: &Arguments) -> Said<String> {
    let of_backend = match backend.value.as_str() {
        known @ ("vllm" | "sglang") => Said { value: known.to_owned(), origin: backend.origin.clone() },
        _ => {
            let origin = format!("{}: the server's engine is not given; write it here", backend.origin);
            Said { value: "openai".to_owned(), origin }
        }
    };
    let Some(said) = arguments.text("server-engine") else { return of_backend };
    let known = match said.value.as_str() {
        "vLLM" => "vllm",
        "SGLang" => "sglang",
        "TGI" => "tgi",
        "LlamaCPP" => "llamacpp",
        _ => {
            arguments
                .missing(&said.origin, "`engine` of the endpoint supports vllm, sglang, tgi, llamacpp, nim and openai");
            return of_backend;
        }
    };
    Said { value: known.to_owned(), origin: said.origin }
}

/// Returns the fields of the endpoint: the address, the engine, the API, the key, and facts about the server.
fn at(
    asked: &Asked,
    arguments: &Arguments,
    engine: &Said<String>,
    task: Task,
    backend: &Said<String>,
) -> Result<Vec<Field>, ImportError> {
    let Asked { place, command, around, .. } = asked;
    let named = arguments.needed_unless(around.is_given_url(), place, "api-base")?;
    let said = match endpoint::base(named, around, arguments.notes, command.line) {
        Some(said) => said,
        None if backend.value == "together" => {
            Said::default("https://api.together.xyz/v1".to_owned(), "Together's address")
        }
        None => {
            let remedy = "add --api-base http://HOST:PORT to it, or pass it: sweepline import --url http://HOST:PORT";
            return Err(ImportError::shape(place, "the command has no --api-base", remedy));
        }
    };
    let notes = arguments.notes;
    let url = endpoint::url(place, said, Path::AddsV1, "write --api-base http://HOST:PORT", notes, command.line)?;
    let api = match task {
        Task::Chat => "chat",
        Task::Embed => "embeddings",
        Task::Rank => "rerank",
    };
    let of_task = arguments.text("task").map_or_else(|| "no --task".to_owned(), |said| said.origin);
    let mut fields = vec![url, Field::new("engine", &engine.value, &engine.origin), Field::new("api", api, of_task)];
    let (own, general) = (arguments.text("model-api-key"), arguments.text("api-key"));
    if let (Some(_), Some(general)) = (&own, &general) {
        arguments.needless(&general.origin, "--model-api-key takes precedence");
    }
    fields.extend(endpoint::api_key(own.or(general), &["OPENAI_API_KEY", "MODEL_API_KEY"], command, notes));
    fields.extend(hardware(arguments));
    if let Some(said) = arguments.text("server-version") {
        fields.push(Field::new("server", format!("{{ version: {} }}", quoted(&said.value)), said.origin));
    }
    Ok(fields)
}

/// Quotes a version, because versions are compared as text.
fn quoted(text: &str) -> String {
    let plain = scalar(&cell_text(text));
    if plain.starts_with('"') { plain } else { format!("\"{plain}\"") }
}

fn hardware(arguments: &Arguments) -> Option<Field> {
    let (gpu, count) =
        (arguments.text("server-gpu-type"), arguments.whole("server-gpu-count").filter(|said| said.value > 0));
    let parts: Vec<String> = gpu
        .iter()
        .map(|said| format!("gpu: {}", scalar(&cell_text(&said.value))))
        .chain(count.iter().map(|said| format!("gpus: {}", said.value)))
        .collect();
    let origins: Vec<String> = gpu.map(|said| said.origin).into_iter().chain(count.map(|said| said.origin)).collect();
    (!parts.is_empty()).then(|| Field::new("hardware", format!("{{ {} }}", parts.join(", ")), origins.join(", ")))
}

/// Returns the model.
fn model(place: &str, arguments: &Arguments, around: &Around) -> Result<(String, Vec<Field>), ImportError> {
    let named = arguments
        .needed_unless(around.is_given_model(), place, "api-model-name")?
        .filter(|said| !said.value.trim().is_empty());
    let Some(id) = endpoint::model_id(named, around, arguments.notes, arguments.line) else {
        let remedy = "add --api-model-name ID to it, or pass it: sweepline import --model ID …";
        return Err(ImportError::shape(place, "the command names no model", remedy));
    };
    let last = id.value.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    Ok((name_of(last, "model"), vec![Field::new("id", text_value(&id.value), id.origin)]))
}

/// Returns the request fields other than the text. For embeddings and rankings, these are only the additional
/// fields that the command sets.
fn body(arguments: &Arguments, task: Task, backend: &Said<String>, asked: &Asked, context: &Context) -> Body {
    let mut body = Body::default();
    body.add_text(arguments.text("additional-request-params"), context.notes, asked.command.line);
    if task != Task::Chat {
        return body;
    }
    if let Some((_, origin)) = body.take("system_message") {
        let why = "a literal system message has no counterpart; `base: C, system_tokens: N` sends one of N tokens";
        arguments.missing(&origin, why);
    }
    body.add_default("temperature", 0.into(), "genai-bench sends 0");
    match ["vllm", "sglang"].contains(&backend.value.as_str()) {
        true => body.add_default(
            "ignore_eos",
            true.into(),
            "genai-bench requests full-length responses if the length is given",
        ),
        false => {
            if let Some((_, origin)) = body.take("ignore_eos") {
                arguments.needless(&origin, "genai-bench does not send it to this backend");
            }
            body.add("ignore_eos", false.into(), "genai-bench does not send ignore_eos to this backend");
        }
    }
    body
}

/// Returns the scenarios: for each, a hint for its name, and its fields.
fn scenarios(
    task: Task,
    arguments: &Arguments,
    asked: &Asked,
    body: &Body,
) -> Result<Vec<(String, Vec<Field>)>, ImportError> {
    let given = arguments.many("traffic-scenario").map(|said| said.value).unwrap_or_default();
    let has_data = arguments.is_given("dataset-path") || arguments.is_given("dataset-config");
    let default: &[&str] = match task {
        _ if has_data => &["dataset"],
        Task::Chat => &CHAT,
        Task::Embed => &EMBEDDING,
        Task::Rank => &RANKING,
    };
    let said: Vec<Said<String>> = match given.is_empty() {
        false => given.iter().map(|text| Said::default(text.clone(), format!("--traffic-scenario {text}"))).collect(),
        true if has_data => vec![Said::default("dataset".to_owned(), "no --traffic-scenario with a data set")],
        true => default.iter().map(|text| Said::default((*text).to_owned(), format!("default {text}"))).collect(),
    };
    let mut all = Vec::new();
    for said in said.iter().take(MOST) {
        all.extend(one(task, said, arguments, asked, body)?);
    }
    Ok(all)
}

/// Returns one traffic scenario; `None` if no plan can send it.
fn one(
    task: Task,
    said: &Said<String>,
    arguments: &Arguments,
    asked: &Asked,
    body: &Body,
) -> Result<Option<(String, Vec<Field>)>, ImportError> {
    let read = match traffic(&said.value) {
        Ok(read) => read,
        Err(why) if why.starts_with("requests") => {
            arguments.missing(&said.origin, &why);
            return Ok(None);
        }
        Err(why) => {
            let what = format!("{}: {}", said.origin, why.split(':').next().unwrap_or_default());
            let remedy = why.split_once(": ").map_or("fix it there", |(_, remedy)| remedy);
            return Err(ImportError::shape(&asked.place, what, remedy));
        }
    };
    let named = name_of(&said.value.replace("/(", "-").replace([')', ' '], "").replace(['(', ','], "-"), "traffic");
    let engine = |fields: &mut Vec<Field>| {
        let known = fields.iter().map(|field| field.key.clone()).collect::<Vec<_>>();
        let more = body.clone().fields(&engine_of(arguments), arguments.notes, asked.command.line);
        fields.extend(more.into_iter().filter(|field| !known.contains(&field.key)));
    };
    let fields = match (read, task) {
        (Traffic::Text(prompt, output), Task::Chat) => {
            let mut fields = prompts(said, prompt, output, arguments, body);
            engine(&mut fields);
            fields
        }
        (Traffic::Embed(tokens), Task::Embed) => {
            let mut fields = vec![Field::new("base", "B1", "texts that differ")];
            fields.push(length("prompt_tokens", tokens, &said.origin, arguments));
            engine(&mut fields);
            fields
        }
        (Traffic::Rank(document, query), Task::Rank) => {
            let mut fields = vec![Field::new("base", "B1", "texts that differ")];
            fields.push(length("prompt_tokens", document, &said.origin, arguments));
            fields.push(length("query_tokens", query, &said.origin, arguments));
            engine(&mut fields);
            fields
        }
        (Traffic::Dataset, Task::Chat) => match dataset(said, arguments, asked, body) {
            Some(mut fields) => {
                engine(&mut fields);
                fields
            }
            None => return Ok(None),
        },
        _ => {
            arguments.missing(&said.origin, "it does not apply to this task: the tool ends with an error");
            return Ok(None);
        }
    };
    Ok(Some((named, fields)))
}

/// Returns the engine for which request fields are checked.
fn engine_of(arguments: &Arguments) -> String {
    let backend = arguments.text("api-backend").unwrap_or_else(|| Said::default("openai".to_owned(), ""));
    engine(&backend, arguments).value
}

/// Limits a length to the bounds of a scenario.
fn length(key: &str, tokens: u32, origin: &str, arguments: &Arguments) -> Field {
    let value = tokens.clamp(SHORTEST, LONGEST);
    if value != tokens {
        arguments.missing(origin, &format!("{key} must be from {SHORTEST} to {LONGEST}: the plan uses {value}"));
    }
    Field::new(key, value.to_string(), origin)
}

/// Returns the fields for the base, the shared prefix, and the lengths of prompts and outputs.
fn prompts(said: &Said<String>, prompt: Spread, output: Spread, arguments: &Arguments, body: &Body) -> Vec<Field> {
    let shared = shared(prompt, arguments);
    let mut fields = Vec::new();
    let prompt = match &shared {
        Some(shared) => {
            fields.push(Field::new("base", "B1", format!("{}: one shared text, the rest differs", said.origin)));
            fields.push(Field::new("prefix", format!("{{ tokens: {} }}", shared.value), &shared.origin));
            Said { value: prompt.less(shared.value), origin: format!("{} without {}", said.origin, shared.origin) }
        }
        None => {
            fields.push(Field::new("base", "B1", format!("{}: prompts that differ", said.origin)));
            Said { value: prompt, origin: said.origin.clone() }
        }
    };
    let asked = body.clone().output_tokens();
    let output =
        asked.map_or_else(|| Said { value: output, origin: said.origin.clone() }, |said| said.map(Spread::One));
    let (of_lengths, told) = lengths(prompt, Some(output));
    // A single length that is out of range has no counterpart in a plan. A distribution only loses its
    // shortest lengths.
    let is_one = of_lengths.len() > 1;
    told.iter().for_each(|(what, why)| match is_one {
        true => arguments.missing(what, why),
        false => arguments.needless(what, why),
    });
    fields.extend(of_lengths);
    fields
}

/// Returns the length of the prefix that all prompts share, in tokens; `None` if they share none.
fn shared(prompt: Spread, arguments: &Arguments) -> Option<Said<u32>> {
    let tokens = match (arguments.whole("prefix-len"), arguments.number::<f64>("prefix-ratio", "a number from 0 to 1"))
    {
        (Some(said), _) => said,
        (None, Some(ratio)) => match prompt {
            Spread::One(length) if (0.0..=1.0).contains(&ratio.value) => {
                ratio.map(|ratio| (f64::from(length) * ratio) as u32)
            }
            _ => {
                arguments.missing(&ratio.origin, "expected a share from 0 to 1 of prompts of one length (D)");
                return None;
            }
        },
        (None, None) => return None,
    };
    if (1..16).contains(&tokens.value) {
        arguments.differs(&tokens.origin, "a shared text has at least 16 tokens here");
    }
    (tokens.value > 0).then(|| tokens.map(|tokens| tokens.clamp(16, LONGEST)))
}

/// Returns the fields of a scenario that sends the texts of a file unchanged; `None` if the plan cannot read
/// the file.
fn dataset(said: &Said<String>, arguments: &Arguments, asked: &Asked, body: &Body) -> Option<Vec<Field>> {
    let path = arguments.text("dataset-path");
    let column = arguments.text("dataset-prompt-column");
    let map = column.as_ref().map_or_else(String::new, |said| format!(", map: {{ prompt: {} }}", scalar(&said.value)));
    let folder = &asked.around.folder;
    let length = body.clone().output_tokens();
    let found = path.ok_or_else(|| "the command names no text file".to_owned()).and_then(|path| {
        let value = format!("{{ file: {}{map}, on_bad: skip }}", scalar(&files::named(folder, &path.value)?));
        files::fits(folder, "", &format!(", data: {value}, output_tokens: 1"))?;
        Ok(Field::new("data", value, path.origin))
    });
    match found {
        Ok(field) => {
            let why = "text shared by the recorded prompts stays shared; nothing is shared with other runs";
            let output = length.unwrap_or_else(|| {
                arguments.missing(
                    &said.origin,
                    "the tool sends no length and accepts responses of any length: the plan requests 1024",
                );
                Said::default(1024, "set the output length")
            });
            Some(vec![
                Field::new("base", "B1", format!("{}: texts of a file", said.origin)),
                field,
                Field::new("nonce", "run", why),
                Field::new("output_tokens", output.value.to_string(), output.origin),
                Field::new("ignore_eos", "false", "no length is set: the model ends the responses"),
            ])
        }
        Err(why) => {
            let why = format!(
                "{why}: this scenario is skipped; `data: {{ file: FILE }}` of a scenario sends a file from \
                 the plan's folder"
            );
            arguments.missing(&said.origin, &why);
            None
        }
    }
}

/// Returns the maximum duration of a run, in seconds.
fn minutes(arguments: &Arguments) -> Option<Said<f64>> {
    let said = arguments.number::<u32>("max-time-per-run", "a whole number of minutes")?;
    Some(Said { value: f64::from(said.value.max(1)) * 60.0, origin: format!("{} (minutes)", said.origin) })
}

/// Returns `fill`, which sets how fast the number of requests in flight rises.
fn fill(arguments: &Arguments) -> Vec<Field> {
    let said = arguments.whole("spawn-rate").filter(|said| said.value > 0);
    said.map(|said| Field::new("fill", format!("{{ per_second: {} }}", said.value), said.origin)).into_iter().collect()
}

/// Returns the values of a repeatable option, or the tool's defaults.
fn numbers(arguments: &Arguments, name: &str, default: &[u32]) -> Vec<Said<u32>> {
    let given = arguments.many(name).map(|said| said.value).unwrap_or_default();
    if given.is_empty() {
        let one = |number: &u32| Said::default(*number, format!("default --{name} {number}"));
        return default.iter().map(one).collect();
    }
    let mut all: Vec<Said<u32>> = Vec::new();
    for value in given.iter().take(MOST) {
        match value.trim().parse::<u32>() {
            Ok(number) if number > 0 && all.iter().all(|known| known.value != number) => {
                all.push(Said { value: number, origin: format!("--{name} {number}") });
            }
            Ok(number) if number > 0 => arguments.needless(&format!("--{name} {number}"), "duplicate"),
            _ => {
                let why = "expected a whole number above 0";
                arguments.notes.wrong(&format!("--{name} {value}"), why, arguments.line);
            }
        }
    }
    all
}
