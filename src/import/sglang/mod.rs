//! Converts command lines of `sglang.bench_serving` to measurements.

mod batch;
mod content;
mod label;
mod load;
mod options;

use super::arguments::Arguments;
use super::bench::{key, ready};
use super::body::Body;
use super::draft::Field;
use super::endpoint::{self, Path};
use super::error::ImportError;
use super::files;
use super::importer::{Asked, CommandReader, Context, Importer};
use super::job::{Around, Job, Lasts, Load};
use super::launch;
use super::notes::Notes;
use super::program::module;
use super::said::Said;
use super::text::{name_of, text_value};

/// The importer for SGLang's benchmarks.
pub(super) const IMPORTER: Importer = Importer {
    name: "sglang-bench",
    title: "SGLang",
    takes: "command lines of `sglang.bench_serving` and `sglang.bench_one_batch_server`",
    file: None,
    command: Some(CommandReader { arguments, read: jobs }),
};

const SERVING: [&str; 3] = ["sglang.bench_serving", "sglang.benchmark.serving", "bench_serving.py"];
const BATCHES: [&str; 3] =
    ["sglang.bench_one_batch_server", "sglang.benchmark.one_batch_server", "bench_one_batch_server.py"];
/// SGLang's benchmarks that run without a server.
const OFFLINE: [&str; 9] = [
    "sglang.bench_one_batch",
    "sglang.bench_latency",
    "sglang.bench_offline_throughput",
    "sglang.benchmark.one_batch",
    "sglang.benchmark.offline_throughput",
    "bench_one_batch.py",
    "bench_latency.py",
    "bench_offline_throughput.py",
    "sglang.benchmark.latency",
];

fn arguments(words: &[String]) -> Option<&[String]> {
    module(words, &SERVING).or_else(|| module(words, &BATCHES)).or_else(|| module(words, &OFFLINE))
}

/// Returns the jobs of a command of any of SGLang's benchmarks.
fn jobs(asked: &Asked, context: &Context) -> Result<Vec<Job>, ImportError> {
    let words = &asked.command.words;
    match (module(words, &SERVING), module(words, &BATCHES)) {
        (Some(_), _) => serving(asked, context),
        (None, Some(_)) => batch::jobs(asked, context),
        (None, None) => Ok(refused(asked, context)),
    }
}

/// Lists a command that runs the engine in its own process.
fn refused(asked: &Asked, context: &Context) -> Vec<Job> {
    let program = asked.command.words.iter().find(|word| word.contains("bench")).map_or("sglang", String::as_str);
    let why = "this command is skipped: it runs the engine in its own process, without a server; \
               `sglang.bench_serving` without a rate sends the load over HTTP, and `launch` of the endpoint starts the \
               server";
    context.notes.missing(program, why, asked.command.line);
    Vec::new()
}

/// The names of all options, without their dashes.
#[cfg(test)]
pub(super) fn option_names() -> Vec<&'static str> {
    options::OPTIONS.iter().map(|(name, ..)| *name).collect()
}

/// A backend: engine and API of the plan, and the tool's default port.
struct Backend {
    engine: &'static str,
    api: &'static str,
    port: &'static str,
}

/// Returns the backend that `--backend` names; `None` if its API is not supported.
fn backend(name: &str) -> Option<Backend> {
    let (engine, api, port) = match name {
        "sglang" | "sglang-native" | "sglang-oai" => ("sglang", "completions", "30000"),
        "sglang-oai-chat" => ("sglang", "chat", "30000"),
        "sglang-embedding" => ("sglang", "embeddings", "30000"),
        "vllm" => ("vllm", "completions", "8000"),
        // The tool's own table of ports contains neither this backend nor `lmdeploy-chat`.
        "vllm-chat" => ("vllm", "chat", "30000"),
        "vllm-embedding" => ("vllm", "embeddings", "8000"),
        "lmdeploy" => ("openai", "completions", "23333"),
        "lmdeploy-chat" => ("openai", "chat", "30000"),
        _ => return None,
    };
    Some(Backend { engine, api, port })
}

/// Returns the job of a command. There is no job if the command contains nothing that can be measured here.
fn serving(asked: &Asked, context: &Context) -> Result<Vec<Job>, ImportError> {
    let Asked { place, command, around, .. } = asked;
    let notes = context.notes;
    let arguments = Arguments::new(asked.words, command.line, &options::OPTIONS, notes);
    let said =
        arguments.text("backend").unwrap_or_else(|| Said::default("sglang".to_owned(), "default --backend sglang"));
    let Some(known) = backend(&said.value) else {
        let why = "this command is skipped: it uses neither OpenAI's API nor SGLang's";
        arguments.missing(&said.origin, why);
        return Ok(Vec::new());
    };
    let mut body = body(&arguments, notes, command.line);
    let is_embedding = known.api == "embeddings";
    let Some(content) = content::content(&arguments, &around.folder, body.output_tokens()) else {
        return Ok(Vec::new());
    };
    let api = if content.is_templated && known.api == "completions" {
        Field::new("api", "chat", "--apply-chat-template: the server puts texts into the template")
    } else {
        Field::new("api", known.api, &said.origin)
    };
    if ["sglang", "sglang-native"].contains(&said.value.as_str()) {
        let why = "it uses /generate of the server; the plan uses the same server's OpenAI API";
        arguments.differs(&said.origin, why);
    }
    let mut endpoint = at(asked, &arguments, &known, &said)?;
    endpoint.push(api);
    endpoint.extend(key(&arguments, command));
    endpoint.extend(flush(&arguments, &known));
    endpoint.extend(ready(&arguments));
    let mut model = model(place, &arguments, around)?;
    launch::add(&mut endpoint, &model.1[0].value, around, arguments.noted());
    model.1.extend(files::tokenizer_of("tokenizer", &arguments, &around.folder, known.engine));
    let mut fields = content.fields;
    if is_embedding {
        fields.retain(|field| !["output_tokens", "turns"].contains(&field.key.as_str()));
    } else {
        fields.extend(adapter(&arguments, &mut body, &said.value));
        fields.extend(body.fields(known.engine, notes, command.line));
    }
    let prompts = content.prompts.unwrap_or_else(|| load::prompts(&arguments));
    let load = match content.is_trace {
        true => Load { is_own: true, batch_size: load::cap(place, &arguments)?, ..Load::default() },
        false => load::load(place, &arguments, &prompts)?,
    };
    let lasts = if content.is_trace { Lasts::Unsaid } else { Lasts::Requests(prompts) };
    let seed = arguments.number::<u64>("seed", "a whole number of at most 64 bits");
    let seed = seed.map(|seed| ("seed", Field::new("seed", seed.value.to_string(), seed.origin)));
    let job = Job {
        load,
        lasts,
        label: label::label(&arguments, "tag"),
        once: seed.into_iter().chain(around.once.clone()).collect(),
        line: command.line,
        ..Job::new((known.engine.to_owned(), endpoint), model, (content.name, fields))
    };
    arguments.list_unused();
    Ok(vec![job])
}

/// Returns the fields that the tool sends with the text. By default, decoding is greedy, and responses have
/// the requested length.
fn body(arguments: &Arguments, notes: &Notes, line: usize) -> Body {
    let mut body = Body::default();
    body.add_text(arguments.text("extra-request-body"), notes, line);
    // SGLang's native API has the sampling parameters in a separate table.
    if let Some((serde_json::Value::Object(inner), origin)) = body.take("sampling_params") {
        inner.into_iter().for_each(|(key, value)| body.add(key, value, &origin));
    }
    match arguments.flag("disable-ignore-eos") {
        Some(said) => body.add_default("ignore_eos", false.into(), &said.origin),
        None => body.add_default("ignore_eos", true.into(), "sglang.bench_serving requests full-length responses"),
    }
    for (option, key) in [("temperature", "temperature"), ("top-p", "top_p")] {
        if let Some(said) = arguments.number::<serde_json::Number>(option, "a number") {
            body.add_default(key, said.value.into(), &said.origin);
        }
    }
    body.add_default("temperature", 0.into(), "sglang.bench_serving sends 0");
    if let Some(said) = arguments.flag("disable-stream") {
        body.add_default("stream", false.into(), &said.origin);
    }
    body
}

/// Returns the adapter as a field of the scenario, or adds it to the body for SGLang's own API.
fn adapter(arguments: &Arguments, body: &mut Body, backend: &str) -> Option<Field> {
    let said = arguments.many("lora-name")?;
    match said.value.as_slice() {
        [] => None,
        [name] if ["sglang", "sglang-native"].contains(&backend) => {
            body.add("lora_path", name.as_str().into(), said.origin);
            None
        }
        [name] => Some(Field::new("model", text_value(name), said.origin)),
        _ => {
            let why = "a scenario uses one adapter (`model: NAME`); a `mix` of such scenarios divides the requests";
            arguments.missing(&said.origin, why);
            None
        }
    }
}

/// Returns the fields `url` and `engine` of the endpoint.
fn at(
    asked: &Asked,
    arguments: &Arguments,
    known: &Backend,
    backend: &Said<String>,
) -> Result<Vec<Field>, ImportError> {
    let Asked { place, command, around, .. } = asked;
    let (host, port) = (
        arguments.needed_unless(around.is_given_url(), place, "host")?,
        arguments.needed_unless(around.is_given_url(), place, "port")?,
    );
    let parts = endpoint::of_parts(host, port, known.port);
    let named = arguments.needed_unless(around.is_given_url(), place, "base-url")?.or(parts);
    let said = endpoint::base(named, around, arguments.notes, command.line).unwrap_or_else(|| {
        let origin = format!("default host and port of {}", backend.origin);
        Said::default(endpoint::host_and_port(None, known.port), origin)
    });
    let url =
        endpoint::url(place, said, Path::AddsV1, "write --base-url http://HOST:PORT", arguments.notes, command.line)?;
    Ok(vec![url, Field::new("engine", known.engine, &backend.origin)])
}

/// Returns the field that resets the prefix cache before each run, if the command requests this and the
/// server is SGLang's.
fn flush(arguments: &Arguments, known: &Backend) -> Option<Field> {
    let said = arguments.flag("flush-cache")?;
    if known.engine == "sglang" {
        return Some(Field::new("reset", "prefix_cache", said.origin));
    }
    arguments.needless(&said.origin, "only SGLang servers support this request");
    None
}

/// Returns the requested model.
fn model(place: &str, arguments: &Arguments, around: &Around) -> Result<(String, Vec<Field>), ImportError> {
    let named = |option: &str| {
        let said = arguments.needed_unless(around.is_given_model(), place, option)?;
        Ok::<_, ImportError>(said.filter(|said| !said.value.trim().is_empty()))
    };
    let (model, served) = (named("model")?, named("served-model-name")?);
    if let (Some(_), Some(model)) = (&served, &model) {
        arguments.needless(&model.origin, "--served-model-name is the server's name for it");
    }
    let Some(id) = endpoint::model_id(served.or(model), around, arguments.notes, arguments.line) else {
        let what = "the command names no model: the tool uses the server's first one";
        let remedy = "add --model ID to it, or pass it to import: sweepline import --model ID …";
        return Err(ImportError::shape(place, what, remedy));
    };
    let last = id.value.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    Ok((name_of(last, "model"), vec![Field::new("id", text_value(&id.value), id.origin)]))
}
