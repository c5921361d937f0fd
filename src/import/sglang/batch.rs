//! Converts command lines of `sglang.bench_one_batch_server` (`sglang.benchmark.one_batch_server`). The tool
//! sends batches of requests with fixed lengths, one batch after the other, to a running server, or to a
//! server that it starts with all options other than its own.

use crate::import::arguments::Arguments;
use crate::import::bench::facts;
use crate::import::body::Body;
use crate::import::draft::Field;
use crate::import::endpoint::{self, Path};
use crate::import::error::ImportError;
use crate::import::importer::{Asked, Context};
use crate::import::job::{Around, Job, Lasts, Load};
use crate::import::loads::bounded;
use crate::import::notes::Notes;
use crate::import::options::Arity::{Flag, Many, One};
use crate::import::options::Fate::{Lost, Needless, Read};
use crate::import::options::{Fate, Known, find};
use crate::import::said::Said;
use crate::import::shell::Command;
use crate::import::spread::{Spread, lengths};
use crate::import::text::{name_of, text_value};
use crate::import::{launch, serve};

const PROFILER: Fate =
    Lost("the server's profiler is not started; a hook of the endpoint can start it: `hooks: { before_run: … }`");
const REPORT: Fate = Needless("every run is stored; `show`, `report` and `export` present it");
const ADAPTERS: Fate = Lost("a scenario uses one adapter: `extra: { lora_path: NAME }`");
const OTHERS: Fate = Lost(
    "prompts of a batch have one length and share nothing: `data`, `prefix` or `lengths` of a scenario can \
        change that",
);
/// Maximum number of batch sizes of a command, which is more than any real command has.
const MOST: usize = 1000;

/// The options of the benchmark itself; all other options belong to the server.
const OPTIONS: [Known; 38] = [
    ("run-name", One, Read),
    ("batch-size", Many, Read),
    ("input-len", Many, Read),
    ("output-len", Many, Read),
    ("temperature", One, Read),
    ("disable-ignore-eos", Flag, Read),
    ("return-logprob", Flag, Lost("`extra: { logprobs: 5 }` of the scenario requests them over the OpenAI API")),
    ("client-stream-interval", One, Needless("every event of a stream is timestamped on arrival")),
    ("input-len-step-percentage", One, OTHERS),
    ("base-url", One, Read),
    ("local-tokenizer-path", One, Needless("`tokenizer: FOLDER` of the model counts tokens")),
    ("skip-warmup", Flag, Needless("load rises in `fill` and settles in `stabilize` before the measurement")),
    ("show-report", Flag, REPORT),
    ("profile", Flag, PROFILER),
    ("profile-activities", Many, PROFILER),
    ("profile-start-step", One, PROFILER),
    ("profile-steps", One, PROFILER),
    ("profile-by-stage", Flag, PROFILER),
    ("profile-prefix", One, PROFILER),
    ("profile-output-dir", One, PROFILER),
    ("dataset-path", One, OTHERS),
    ("dataset-name", One, OTHERS),
    ("fixed-prompt-file", One, OTHERS),
    ("apply-chat-template", Flag, OTHERS),
    ("gsp-num-groups", One, OTHERS),
    ("gsp-system-prompt-len", One, OTHERS),
    ("gsp-question-len", One, OTHERS),
    ("gsp-output-len", One, OTHERS),
    ("parallel-batch", Flag, Needless("requests are sent individually")),
    ("result-filename", One, REPORT),
    ("pydantic-result-filename", One, REPORT),
    ("no-append-to-github-summary", Flag, REPORT),
    ("seed", One, Read),
    ("cache-hit-rate", One, Lost("`prefix: { share: 0.4, … }` of the scenario sets how much prompts share")),
    ("backend", One, Read),
    ("lora-name", Many, ADAPTERS),
    (
        "server-args-for-metrics",
        Many,
        Needless("`server: { flags: … }` of the endpoint records the flags that it was started with"),
    ),
    ("enable-multi-batch", Flag, Needless("requests beyond the server's capacity wait in its queue")),
];

/// Returns the measurements of a command: a job for each pair of lengths and each batch size.
pub(super) fn jobs(asked: &Asked, context: &Context) -> Result<Vec<Job>, ImportError> {
    let Asked { place, command, around, .. } = asked;
    let notes = context.notes;
    let (own, of_server) = parted(asked.words);
    let arguments = Arguments::new(&own, command.line, &OPTIONS, notes);
    let backend =
        arguments.text("backend").unwrap_or_else(|| Said::default("sglang".to_owned(), "default --backend sglang"));
    let engine = if backend.value == "vllm" { "vllm" } else { "sglang" };
    let around = server(&arguments, &of_server, command, around, notes);
    let id = around.model.clone().filter(|(id, _)| id != "None");
    let Some((id, origin)) = id else {
        let what = "the command names no model";
        return Err(ImportError::shape(
            place,
            what,
            "add --model ID to it, or pass it to import: sweepline import --model ID …",
        ));
    };
    let named =
        arguments.needed_unless(around.is_given_url(), place, "base-url")?.filter(|said| !said.value.is_empty());
    let said = endpoint::base(named, &around, notes, command.line)
        .unwrap_or_else(|| Said::default("http://127.0.0.1:30000".to_owned(), "default port of SGLang"));
    let url = endpoint::url(place, said, Path::AddsV1, "write --base-url http://HOST:PORT", notes, command.line)?;
    let mut endpoint = vec![url, Field::new("engine", engine, &backend.origin)];
    endpoint.push(Field::new(
        "api",
        "completions",
        "it uses /generate; the plan uses the OpenAI API of the same server",
    ));
    endpoint.extend(endpoint::api_key(None, &["OPENAI_API_KEY"], command, notes));
    let last = id.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let model = (name_of(last, "model"), vec![Field::new("id", text_value(&id), origin)]);
    launch::add(&mut endpoint, &model.1[0].value, &around, arguments.noted());
    let body = body(&arguments).fields(engine, notes, command.line);
    let numbers = |name: &str, default: u32| numbers(&arguments, name, default);
    let (sizes, inputs, outputs) = (numbers("batch-size", 1), numbers("input-len", 1024), numbers("output-len", 16));
    let why = "the tool sends a batch and waits until all of it has ended; here that number of requests is kept in \
               flight, and a slot is refilled as soon as its response ends";
    arguments.differs(&sizes.first().map_or_else(String::new, |said| said.origin.clone()), why);
    let label = super::label::label(&arguments, "run-name");
    let seed = arguments.number::<u64>("seed", "a whole number of at most 64 bits");
    let once: Vec<_> = seed
        .map(|seed| ("seed", Field::new("seed", seed.value.to_string(), seed.origin)))
        .into_iter()
        .chain(around.once.clone())
        .collect();
    let mut jobs = Vec::new();
    for (input, output) in inputs.iter().flat_map(|input| outputs.iter().map(move |output| (input, output))) {
        let (fields, told) = lengths(input.clone().map(Spread::One), Some(output.clone().map(Spread::One)));
        told.iter().for_each(|(what, why)| arguments.missing(what, why));
        let mut all = vec![Field::new("base", "B1", "prompts that differ")];
        all.extend(fields.into_iter().chain(body.clone()));
        for size in sizes.iter().take(MOST) {
            let batch_size = Some(bounded(size.clone(), &arguments));
            let load = Load { batch_size, ..Load::default() };
            let scenario = (format!("batch-{}-{}", input.value, output.value), all.clone());
            let lasts = Lasts::Requests(size.clone());
            let (label, once) = (label.clone(), once.clone());
            let job = Job::new((engine.to_owned(), endpoint.clone()), model.clone(), scenario);
            jobs.push(Job { load, lasts, label, once, line: command.line, ..job });
        }
    }
    arguments.list_unused();
    Ok(jobs)
}

/// Separates the words of the benchmark from the words for the server that the benchmark starts.
fn parted(words: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut own, mut of_server): (Vec<String>, Vec<String>) = Default::default();
    let mut is_own = false;
    for word in words {
        if let Some(option) = word.strip_prefix("--") {
            let name = option.split('=').next().unwrap_or_default().replace('_', "-");
            is_own = find(&OPTIONS, &name).is_some();
        } else if word.starts_with('-') && word.parse::<f64>().is_err() {
            is_own = false;
        }
        if is_own { own.push(word.clone()) } else { of_server.push(word.clone()) }
    }
    (own, of_server)
}

/// Returns the context with the server: a running server, or a server that is started with the remaining
/// words.
fn server(arguments: &Arguments, words: &[String], command: &Command, around: &Around, notes: &Notes) -> Around {
    let found = facts(words, "the options of the server".to_owned(), notes.secrets);
    let runs = arguments.text("base-url").is_some_and(|said| !said.value.is_empty()) || around.serve.is_some();
    let model = around.model.clone().or(found.model);
    if runs || around.url.is_some() {
        let url = around.url.clone().or(found.url);
        let of_server = words.iter().filter(|word| word.starts_with("--")).cloned().collect::<Vec<_>>().join(" ");
        if !of_server.is_empty() {
            notes.needless(&of_server, "the server is already running: its options are not used", command.line);
        }
        return Around { model, url, ..around.clone() };
    }
    let start: Vec<String> = ["python3", "-m", "sglang.launch_server"].map(str::to_owned).to_vec();
    let started = Command { words: [start, words.to_vec()].concat(), ..command.clone() };
    let by = "the server's options of sglang.bench_one_batch_server";
    let serve = Some(serve::serve(&started, &[], by, notes));
    Around { model, url: found.url, serve, ..around.clone() }
}

fn body(arguments: &Arguments) -> Body {
    let mut body = Body::default();
    match arguments.flag("disable-ignore-eos") {
        Some(said) => body.add("ignore_eos", false.into(), said.origin),
        None => body.add("ignore_eos", true.into(), "sglang.bench_one_batch_server requests full-length responses"),
    }
    match arguments.number::<serde_json::Number>("temperature", "a number") {
        Some(said) => body.add("temperature", said.value.into(), said.origin),
        None => body.add("temperature", 0.into(), "sglang.bench_one_batch_server sends 0"),
    }
    body
}

/// Returns each value of an option, or its default.
fn numbers(arguments: &Arguments, name: &str, default: u32) -> Vec<Said<u32>> {
    let Some(said) = arguments.many(name) else {
        return vec![Said::default(default, format!("default --{name} {default}"))];
    };
    let mut all = Vec::new();
    for value in &said.value {
        match value.trim().parse::<u32>() {
            Ok(number) if number > 0 => all.push(Said { value: number, origin: format!("--{name} {number}") }),
            _ => {
                let why = "this is not a whole number above 0";
                arguments.notes.wrong(&format!("--{name} {value}"), why, arguments.line);
            }
        }
    }
    all
}
