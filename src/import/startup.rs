//! Converts `vllm bench startup` and `vllm bench sweep startup` to a sweep that measures starts of the
//! server.

use super::arguments::Arguments;
use super::bench;
use super::draft::Field;
use super::error::ImportError;
use super::importer::Context;
use super::job::{Around, Job, Setting};
use super::launch;
use super::options::Arity::{Flag, Many, One};
use super::options::Fate::{Lost, Needless, Read};
use super::options::{FOLDER, Known};
use super::params::{Record, combinations_of};
use super::said::Said;
use super::serve::serve;
use super::settings;
use super::shell::Command;
use super::text::{name_of, text_value};

/// The default number of warm starts in `vllm bench startup`.
const WARM: u32 = 3;

const COLD: super::options::Fate = Lost(
    "each start finds the caches of the earlier ones; for cold starts point VLLM_CACHE_ROOT at an empty folder, in \
     `host_env` of `launch`",
);

/// The options of `vllm bench startup` itself; all other options belong to the server.
const OWN: [Known; 4] = [
    ("num-iters-warm", One, Read),
    ("num-iters-cold", One, COLD),
    (
        "num-iters-warmup",
        One,
        Needless(
            "these starts come before the first one that counts: ignore the first repeat, or run the plan once before",
        ),
    ),
    ("output-json", One, FOLDER),
];

/// The options of `vllm bench sweep startup`.
const OPTIONS: [Known; 11] = [
    ("startup-cmd", One, Read),
    ("serve-params", One, Read),
    ("startup-params", One, Read),
    ("num-runs", One, Read),
    ("strict-params", Flag, Needless("settings that a plan cannot express are listed; `import --strict` then fails")),
    ("output-dir", One, FOLDER),
    ("experiment-name", One, Read),
    ("show-stdout", Flag, Needless("`sweepline run -v` prints more")),
    ("dry-run", Flag, Needless("`sweepline preview` shows the planned runs")),
    ("resume", Many, Needless("`sweepline run` continues where it stopped")),
    ("no-resume", Flag, Needless("`sweepline run --force` measures again")),
];

/// Reads `vllm bench startup`.
pub(super) fn job(command: &Command, words: &[String], context: &Context) -> Result<Vec<Job>, ImportError> {
    jobs(command, words, (&[], None), context)
}

/// Reads `vllm bench sweep startup`; also returns the name of the experiment.
pub(super) fn sweep(
    command: &Command,
    words: &[String],
    context: &Context,
) -> Result<(Vec<Job>, Option<String>), ImportError> {
    let arguments = Arguments::new(words, command.line, &OPTIONS, context.notes);
    let place = context.place(command);
    let said = arguments.text("startup-cmd");
    let startup = said.map_or_else(|| "vllm bench startup".to_owned(), |said| said.value);
    let startup = shlex::split(&startup)
        .ok_or_else(|| ImportError::shape(&place, "the quotes of --startup-cmd are not closed", "close them"))?;
    let own = startup.iter().position(|word| word == "startup").map_or(startup.len(), |at| at + 1);
    let mut records = Vec::new();
    let mut origins = Vec::new();
    for option in ["serve-params", "startup-params"] {
        if let Some(file) = arguments.text(option) {
            let more = combinations_of(&place, option, &file.value, context)?;
            records = crossed(records, more);
            origins.push(file.origin);
        }
    }
    let runs = arguments.whole("num-runs");
    let name = arguments.text("experiment-name").map(|said| said.value);
    arguments.list_unused();
    let jobs = jobs(command, &startup[own..], (&records, Some(origins.join(", "))), context)?;
    let repeated = |job: Job| Job { repeats: job.repeats.map(|field| times(field, runs.as_ref())), ..job };
    Ok((jobs.into_iter().map(repeated).collect(), name))
}

/// Multiplies the repeats, which are the starts of one command, by the number of runs of the command.
fn times(field: Field, runs: Option<&Said<u32>>) -> Field {
    let Some(runs) = runs.filter(|runs| runs.value > 1) else { return field };
    let count = field.value.parse::<u32>().unwrap_or(WARM).saturating_mul(runs.value).clamp(1, 1000);
    Field::new("repeats", count.to_string(), format!("{}, {}", field.origin, runs.origin))
}

/// Returns each combination of a record of the first file and a record of the second file, whose values take
/// precedence.
fn crossed(first: Vec<Record>, second: Vec<Record>) -> Vec<Record> {
    if first.is_empty() {
        return second;
    }
    let both = |one: &Record, other: &Record| {
        let mut values = one.values.clone();
        values.extend(other.values.clone());
        Record { name: one.name.clone().or_else(|| other.name.clone()), values }
    };
    first.iter().flat_map(|one| second.iter().map(move |other| both(one, other))).collect()
}

fn jobs(
    command: &Command,
    words: &[String],
    (records, origin): (&[Record], Option<String>),
    context: &Context,
) -> Result<Vec<Job>, ImportError> {
    let notes = context.notes;
    let (own, engine) = split(words);
    let arguments = Arguments::new(&own, command.line, &OWN, notes);
    let warm = arguments.whole("num-iters-warm").filter(|said| said.value > 0);
    let warm = warm.unwrap_or_else(|| Said::default(WARM, format!("default --num-iters-warm {WARM}")));
    let repeats = Field::new("repeats", warm.value.min(1000).to_string(), format!("{}: starts", warm.origin));
    let mut serving: Vec<String> = ["vllm", "serve"].map(str::to_owned).to_vec();
    serving.extend(engine);
    let serving = Command { words: serving, ..command.clone() };
    for word in serving.words.iter().filter_map(|word| word.strip_prefix("--")) {
        notes.setting(&format!("--{}", word.split('=').next().unwrap_or_default()), command.line);
    }
    let all = settings::settings(records, origin.clone().unwrap_or_default(), &arguments);
    let mut around = match records.is_empty() {
        true => {
            let found =
                bench::facts(&serving.words[2..], super::serve::origin(&serving.words, command.line), notes.secrets);
            Around { serve: Some(serve(&serving, &[], "", notes)), ..found }
        }
        false => settings::server(&serving, records, &all, &arguments),
    };
    let mut all = all;
    settings::with_baseline(&mut all, &around);
    let said = if origin.is_some() { "--startup-cmd" } else { "vllm bench startup" };
    around.serve.iter_mut().for_each(|serve| serve.origin = said.to_owned());
    let named = around
        .model
        .take()
        .filter(|(model, _)| !model.trim().is_empty())
        .map(|(model, _)| (model, format!("--model of {said}")));
    around.model = context.around().model.or(named);
    arguments.list_unused();
    let Some((model, said)) = around.model.clone() else {
        let remedy = "add --model ID to it, or pass it to import: sweepline import --model ID …";
        return Err(ImportError::shape(context.place(command), "the command names no model", remedy));
    };
    let one = |setting: Option<Setting>| {
        let around = Around { setting: setting.clone(), ..around.clone() };
        let url = Field::new("url", "http://127.0.0.1:8000/v1", "the port of `vllm serve`");
        let engine = Field::new("engine", "vllm", "vllm bench startup");
        let mut endpoint = vec![url, engine, Field::new("api", "completions", "vllm bench startup")];
        launch::add(&mut endpoint, &text_value(&model), &around, notes.at(command.line));
        let last = model.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let model = (name_of(last, "model"), vec![Field::new("id", text_value(&model), &said)]);
        let fields = vec![Field::new("measure", "start", "a server is started, and nothing else is measured")];
        let job = Job::new(("vllm".to_owned(), endpoint), model, (String::new(), Vec::new()));
        Job { setting, fields, repeats: Some(repeats.clone()), line: command.line, ..job }
    };
    match all.is_empty() {
        true => Ok(vec![one(None)]),
        false => Ok(all.into_iter().map(|(_, setting)| one(Some(setting))).collect()),
    }
}

/// Separates the options of the tool from the words for the server, which begin with the model.
fn split(words: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut own, mut engine, mut model) = (Vec::new(), Vec::new(), None);
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let name = word.strip_prefix("--").map(|option| option.split('=').next().unwrap_or_default().replace('_', "-"));
        let is_own = name.as_ref().is_some_and(|name| OWN.iter().any(|(own, ..)| own == name));
        let inline = word.split_once('=').map(|(_, value)| value.to_owned());
        match name.as_deref() {
            Some("model") => model = inline.or_else(|| words.next_if(|word| !word.starts_with("--")).cloned()),
            _ if is_own => {
                own.push(word.clone());
                own.extend(words.next_if(|word| inline.is_none() && !word.starts_with("--")).cloned());
            }
            _ => engine.push(word.clone()),
        }
    }
    (own, model.into_iter().chain(engine).collect())
}
