//! Converts `vllm bench sweep serve` and its parameter files. A parameter file is a list of objects or an
//! object of named objects, whose keys are options (docs.vllm.ai/en/latest/benchmarking/sweeps).

use indexmap::IndexMap;
use serde_json::Value;

use super::arguments::{self, Arguments};
use super::bench::{self, is_option};
use super::draft::{Draft, Field};
use super::error::ImportError;
use super::importer::{Context, FileReader, Importer, Input};
use super::job::{Around, Searched};
use super::json::json;
use super::notes::Notes;
use super::options::{Arity, FOLDER, Fate, Known};
use super::secrets::Secrets;
use super::serve::flag_name;
pub(super) use super::settings::Record;
use super::settings::{self, said_of};
use super::shell::{self, Command};
use super::tables;
use super::text::{cell_text, name_of, scalar};
use super::tree::Item;
use super::write;
use Arity::{Flag, Many, One};
use Fate::{Needless, Read};

/// Maximum number of combinations, which is far more than any real parameter file contains.
const MOST_RECORDS: usize = 10_000;
/// The default number of levels that `serve_workload` explores. It is also the maximum: with more
/// levels, the rates, which double, would leave the range of a plan.
const LEVELS: u32 = 10;
const MOST_LEVELS: u32 = 16;
/// The default number of prompts of `vllm bench serve`.
const PROMPTS: u32 = 1000;
/// The default number of runs of each combination in `vllm bench sweep`.
const RUNS: u32 = 3;

const OWN_SEARCH: Fate = Needless("sweepline's search has its own method and bound");

/// The options of `vllm bench sweep serve`, `serve_workload` and `serve_sla`.
const OPTIONS: [Known; 22] = [
    ("serve-cmd", One, Read),
    ("bench-cmd", One, Read),
    ("serve-params", One, Read),
    ("bench-params", One, Read),
    ("link-vars", One, Read),
    ("num-runs", One, Read),
    ("sla-params", One, Read),
    ("sla-variable", One, Read),
    ("sla-iters", One, OWN_SEARCH),
    ("sla-inf-value", One, OWN_SEARCH),
    ("workload-var", One, Read),
    ("workload-iters", One, Read),
    ("after-bench-cmd", One, Read),
    ("experiment-name", One, Read),
    ("output-dir", One, FOLDER),
    ("warmup-num-prompts", One, Needless("load rises in `fill` and settles in `stabilize` before the measurement")),
    ("server-ready-timeout", One, Read),
    ("show-stdout", Flag, Needless("`sweepline run -v` prints more")),
    ("continue-on-error", Flag, Needless("a failed run does not stop the others, unless `--fail-fast` is set")),
    ("dry-run", Flag, Needless("`sweepline preview` shows the planned runs")),
    ("resume", Many, Needless("`sweepline run` continues where it stopped")),
    ("no-resume", Flag, Needless("`sweepline run --force` measures again")),
];

/// The importer for parameter files of `vllm bench sweep`.
pub(super) const IMPORTER: Importer = Importer {
    name: "vllm-sweep-params",
    title: "vllm bench sweep parameters",
    takes: "parameter files of `vllm bench sweep`",
    file: Some(FileReader { is, known: &[], read }),
    command: None,
};

/// Whether a file is a list of objects or an object of objects.
fn is(input: &Input) -> bool {
    let is_json = input.text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']);
    let children = input.tree.as_ref().map(Item::children).unwrap_or_default();
    is_json && !children.is_empty() && children.iter().all(|child| child.is_table())
}

/// Reads a parameter file alone, or with its command.
fn read(input: &Input, context: &Context) -> Result<Draft, ImportError> {
    let Context { wishes, notes, .. } = context;
    let is_talk = |one: &Item| ["conversations", "messages"].iter().any(|key| one.peek(key).is_some());
    if input.tree.as_ref().is_some_and(|tree| tree.children().into_iter().any(is_talk)) {
        let what = "it is a data set of conversations and contains no benchmark";
        let remedy =
            "import the command that sends it, with --dataset-path, or name it in a plan: data: { file: FILE }";
        return Err(ImportError::shape(&wishes.name, what, remedy));
    }
    let records = records(&wishes.name, input.text, notes.secrets)?;
    let mut command = shell::command(&wishes.command, notes.secrets);
    if command.words.is_empty() {
        command.words = ["vllm", "bench", "serve"].map(str::to_owned).to_vec();
    }
    // The values in the file are counted as the corresponding options.
    notes.forget();
    input.tree.iter().for_each(Item::take);
    let each = match are_of_server(&records) {
        true => servers(&notes.secrets.hide(&wishes.name), &records, notes),
        false => over(&context.around(), records),
    };
    let jobs = bench::each(&command, &command.words, each, context)?;
    if jobs.is_empty() {
        let why = write::reasons(&notes.listed.borrow());
        let why = if why.is_empty() { "it contains no combination".to_owned() } else { why };
        return Err(ImportError::nothing(&wishes.name, why));
    }
    Ok(tables::draft(jobs, context.name.clone(), notes))
}

/// A function that returns the text of a file that the input names, or the reason why it cannot be read.
pub(super) type Reader<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// The result of reading one `vllm bench sweep`: the command that measures, and the context of each
/// combination.
pub(super) struct Combinations {
    /// The words of the bench command, with the name of the program.
    pub command: Vec<String>,
    /// The context of each combination.
    pub each: Vec<Around>,
    /// The name of the experiment.
    pub name: Option<String>,
}

/// Parses a parameter file's text.
pub(super) fn records(file: &str, text: &str, secrets: &Secrets) -> Result<Vec<Record>, ImportError> {
    let value = json(file, text)?;
    secrets.add_json(&value);
    let wrong = |at: String| {
        let what = "a parameter file is a list of objects, or an object of named objects";
        ImportError::shape(format!("{file}: {at}"), what, "write it like [{ \"random_input_len\": 128 }]")
    };
    let record = |name: Option<String>, at: String, value: Value| match value {
        Value::Object(mut values) => {
            let own = values.shift_remove("_benchmark_name").and_then(|name| name.as_str().map(str::to_owned));
            Ok(Record { name: own.or(name), values })
        }
        _ => Err(wrong(at)),
    };
    let records: Vec<Record> = match value {
        Value::Array(all) => {
            all.into_iter().enumerate().map(|(number, value)| record(None, format!("[{number}]"), value)).collect()
        }
        Value::Object(all) => all.into_iter().map(|(name, value)| record(Some(name.clone()), name, value)).collect(),
        _ => Err(wrong("at its beginning".to_owned())),
    }?;
    if records.len() > MOST_RECORDS {
        let remedy = "split the file";
        return Err(ImportError::TooMany { place: file.to_owned(), what: "combinations", most: MOST_RECORDS, remedy });
    }
    Ok(records)
}

/// Whether the keys of a parameter file belong to a server and not to a benchmark.
pub(super) fn are_of_server(records: &[Record]) -> bool {
    let mut keys = records.iter().flat_map(|record| record.values.keys()).peekable();
    keys.peek().is_some() && !keys.any(|key| is_option(&key.replace('_', "-")))
}

/// Reads a `vllm bench sweep` command.
pub(super) fn sweep(
    file: &str,
    kind: &str,
    command: &Command,
    words: &[String],
    read: Reader,
    notes: &Notes,
) -> Result<Option<Combinations>, ImportError> {
    if !["serve", "serve_sla", "serve_workload"].contains(&kind) {
        let what = format!("vllm bench sweep {kind}");
        notes.missing(&what, "this command is skipped: it does not measure serving", command.line);
        return Ok(None);
    }
    let words = long_forms(words);
    let arguments = Arguments::new(&words, command.line, &OPTIONS, notes);
    let mut made = combinations(file, command, &arguments, read)?;
    if let Some(search) = searched(kind, &arguments) {
        made.each.iter_mut().for_each(|around| search_in(around, &search, &arguments));
    }
    if kind == "serve_workload" {
        let prompts = prompts_of(&made.command);
        made.each = ladder(made.each, prompts, &arguments);
    }
    arguments.list_unused();
    Ok(Some(made))
}

/// Returns the number of prompts that a bench command requests; `None` if it does not set this number.
fn prompts_of(words: &[String]) -> Option<u32> {
    let is_option = |word: &str| ["--num-prompts", "--num_prompts"].contains(&word);
    let value = |at: usize| match words[at].split_once('=') {
        Some((option, value)) if is_option(option) => Some(value),
        None if is_option(&words[at]) => words.get(at + 1).map(String::as_str),
        _ => None,
    };
    (0..words.len()).rev().find_map(value)?.parse().ok()
}

/// Returns the number of requests in flight at each level. As in the tool, this number grows by a constant
/// factor from 1 to the number of all prompts.
fn in_flight(prompts: u32, levels: u32) -> Vec<u32> {
    let share = |level: u32| f64::from(level) / f64::from(levels - 1);
    let size = |level: u32| f64::from(prompts.max(1)).powf(share(level)).round() as u32;
    let mut all: Vec<u32> = (0..levels).map(size).collect();
    all.dedup();
    all
}

/// Adds the levels of `serve_workload` to each combination. In the tool, the levels lie between the
/// throughput of one request at a time and the throughput of all requests at once, both of which must be
/// measured first. In the plan, requests in flight rise to the number of all prompts, and rates double until
/// the server no longer keeps up.
fn ladder(each: Vec<Around>, prompts: Option<u32>, arguments: &Arguments) -> Vec<Around> {
    let said = arguments.text("workload-var");
    let var = said.as_ref().map_or("request_rate", |said| said.value.as_str());
    let (option, is_open) = match var {
        "max_concurrency" => ("max_concurrency", false),
        "request_rate" => ("request_rate", true),
        _ => {
            let origin = said.map(|said| said.origin).unwrap_or_default();
            arguments.missing(&origin, "the load is either request_rate or max_concurrency: request_rate is used");
            ("request_rate", true)
        }
    };
    let levels = arguments.whole("workload-iters").map(|said| said.value).unwrap_or(LEVELS).clamp(2, MOST_LEVELS);
    let why = "vLLM spreads the levels between the throughput of one request at a time and that of all requests at \
               once; here \
               requests in flight rise from 1 to all prompts by a constant factor per level, and rates double until \
               the server no longer keeps up (`stop: saturated`)";
    arguments.differs("serve_workload", why);
    let stop = Field::new("stop", "saturated", "serve_workload: up to the throughput of all requests at once");
    let mut all = Vec::new();
    for around in each {
        if around.instead.iter().any(|(key, _)| key.replace('-', "_") == option) {
            arguments.missing(&format!("serve_workload with {option}"), "--bench-params set the load that is explored");
            continue;
        }
        let own = around.instead.iter().find(|(key, _)| key.replace('-', "_") == "num_prompts");
        let own = own.and_then(|(_, value)| value.as_u64()).and_then(|count| u32::try_from(count).ok());
        let loads = match is_open {
            true => (0..levels).map(|level| 1_u32 << level).collect(),
            false => in_flight(own.or(prompts).unwrap_or(PROMPTS), levels),
        };
        for load in loads {
            let mut one = around.clone();
            one.instead.push((option.to_owned(), Value::from(load)));
            one.fields.extend(is_open.then(|| stop.clone()));
            all.push(one);
        }
    }
    all
}

/// Returns the load that `serve_sla` searches for; `None` for other commands.
fn searched(kind: &str, arguments: &Arguments) -> Option<Searched> {
    let said = arguments.text("sla-variable");
    if kind != "serve_sla" {
        return None;
    }
    let origin =
        said.as_ref().map_or_else(|| "default --sla-variable request_rate".to_owned(), |said| said.origin.clone());
    let searched = |axis| Searched { axis, range: RANGE.0.to_owned(), origin: format!("{origin}: {}", RANGE.1) };
    match said.as_ref().map_or("request_rate", |said| said.value.as_str()) {
        "request_rate" => Some(searched("qps")),
        "max_concurrency" => Some(searched("batch_size")),
        _ => {
            arguments.missing(&origin, "only request_rate and max_concurrency are searched");
            None
        }
    }
}

/// The range of a search, and the reason for it.
const RANGE: (&str, &str) =
    ("from: 1, to: 1000, within: 5%", "vLLM searches up to 65536; raise `to` if the result lies above it");

/// Returns the words that request a search, without the explanation.
fn said_by(search: &Searched) -> &str {
    search.origin.split(": ").next().unwrap_or_default()
}

/// Replaces the load of one combination with a search. The command gets a placeholder as its load.
fn search_in(around: &mut Around, search: &Searched, arguments: &Arguments) {
    if !around.once.iter().any(|(section, _)| *section == "slo") {
        arguments.missing(said_by(search), "a search needs an objective that `slo` supports");
        return;
    }
    let option = if search.axis == "qps" { "request_rate" } else { "max_concurrency" };
    if around.instead.iter().any(|(key, _)| key.replace('-', "_") == option) {
        arguments.missing(said_by(search), "--bench-params set the load that is searched");
        return;
    }
    around.instead.push((option.to_owned(), Value::String("1".to_owned())));
    around.search = Some(search.clone());
}

/// Returns words with the short options `-o` and `-e` replaced by their long forms.
pub(super) fn long_forms(words: &[String]) -> Vec<String> {
    arguments::long_forms(words, &[("-o", "--output-dir"), ("-e", "--experiment-name")])
}

/// Returns the combinations of the file that an option names.
pub(super) fn combinations_of(
    place: &str,
    option: &str,
    path: &str,
    context: &Context,
) -> Result<Vec<Record>, ImportError> {
    let text = (context.wishes.read)(path).map_err(|reason| ImportError::File {
        place: format!("{place}: --{option}"),
        path: path.to_owned(),
        reason,
    })?;
    records(path, &text, context.notes.secrets)
}

fn combinations(
    file: &str,
    command: &Command,
    arguments: &Arguments,
    read: Reader,
) -> Result<Combinations, ImportError> {
    let place = if command.line == 0 { file.to_owned() } else { format!("{file}:{}", command.line) };
    let missing = |option: &str| {
        let what = format!("`vllm bench sweep` needs {option}");
        ImportError::shape(&place, what, format!("add {option} '…' to the command"))
    };
    let split = |option: &'static str| -> Result<Vec<String>, ImportError> {
        let said = arguments.text(option).ok_or_else(|| missing(&format!("--{option}")))?;
        shlex::split(&said.value).ok_or_else(|| missing(&format!("--{option} with its quotes closed")))
    };
    let load = |option: &'static str| -> Result<Vec<Record>, ImportError> {
        let Some(path) = arguments.text(option) else { return Ok(vec![Record::default()]) };
        let text = read(&path.value).map_err(|reason| ImportError::File {
            place: format!("{place}: --{option}"),
            path: path.value.clone(),
            reason,
        })?;
        records(&path.value, &text, arguments.secrets())
    };
    let bench = split("bench-cmd")?;
    let serve = match arguments.text("serve-cmd") {
        Some(said) => shlex::split(&said.value).ok_or_else(|| missing("--serve-cmd with its quotes closed"))?,
        None => Vec::new(),
    };
    let serve = Command { words: serve, ..command.clone() };
    let (benches, sla) = (load("bench-params")?, load("sla-params")?);
    let links = arguments.text("link-vars").map(|said| links(&said.value)).unwrap_or_default();
    let said = arguments.text("serve-params");
    let servers = match &said {
        Some(_) => load("serve-params")?,
        None => Vec::new(),
    };
    let mut settings = settings::settings(&servers, said.map(|said| said.origin).unwrap_or_default(), arguments);
    let mut around = settings::server(&serve, &servers, &settings, arguments);
    settings::with_baseline(&mut settings, &around);
    around.ready = ready(arguments);
    around.between = match arguments.text("after-bench-cmd") {
        Some(said) => {
            let words = shlex::split(&said.value).ok_or_else(|| missing("--after-bench-cmd with its quotes closed"))?;
            after_bench(&words, &said.origin, arguments)
        }
        None => emptied(&mut around),
    };
    let runs = arguments.whole("num-runs");
    let origin = runs.as_ref().map_or_else(|| format!("default --num-runs {RUNS}"), |said| said.origin.clone());
    around.repeats =
        Some(Field::new("repeats", runs.map_or(RUNS, |said| said.value).clamp(1, 1000).to_string(), origin));
    around.once = objectives(&sla, arguments);
    let name = arguments.text("experiment-name").map(|said| said.value);
    if benches.len().saturating_mul(settings.len().max(1)) > MOST_RECORDS {
        let remedy = "split the files";
        return Err(ImportError::TooMany { place, what: "combinations", most: MOST_RECORDS, remedy });
    }
    let mut each = Vec::new();
    if settings.is_empty() {
        each.extend(over(&around, benches.clone()));
    }
    for (record, setting) in &settings {
        let around = Around { setting: Some(setting.clone()), ..around.clone() };
        each.extend(over(&around, benches.iter().filter(|bench| is_linked(record, bench, &links)).cloned().collect()));
    }
    for bench in benches.iter().filter(|bench| !settings.iter().any(|(record, _)| is_linked(record, bench, &links))) {
        if !settings.is_empty() {
            arguments.missing(&said_of(bench, arguments.secrets()), "--link-vars links it to no server setting");
        }
    }
    for (record, _) in
        settings.iter().filter(|(record, _)| !benches.iter().any(|bench| is_linked(record, bench, &links)))
    {
        let what = format!("serve-params {}", said_of(record, arguments.secrets()));
        arguments.missing(&what, "--link-vars links it to no combination of --bench-params");
    }
    Ok(Combinations { command: bench, each, name })
}

/// Returns the command that runs after each benchmark, as a hook.
fn after_bench(words: &[String], origin: &str, arguments: &Arguments) -> Option<Field> {
    if arguments.secrets().are_in(&words.join(" ")) {
        let why = "it contains a secret: write a script that reads the secret from a variable into hooks: { \
            after_run: { command: […] } }";
        arguments.missing("--after-bench-cmd", why);
        return None;
    }
    let words: Vec<String> = words.iter().map(|word| scalar(&cell_text(word))).collect();
    let command = format!("{{ after_run: {{ command: [{}] }} }}", words.join(", "));
    (!words.is_empty()).then(|| Field::new("hooks", command, origin))
}

/// Returns the field that resets the prefix cache for each run; `None` unless the server is `vllm serve`.
/// Without `--after-bench-cmd`, the tool also empties the caches of `vllm serve` after each benchmark, and
/// starts the server with the variable that this requires.
fn emptied(around: &mut Around) -> Option<Field> {
    let serve = around.serve.as_mut().filter(|serve| serve.is_vllm)?;
    serve.env[0].entry("VLLM_SERVER_DEV_MODE".to_owned()).or_insert_with(|| scalar("1"));
    Some(Field::new("reset", "prefix_cache".to_owned(), "default without --after-bench-cmd"))
}

/// Returns the time limit for each start of the server.
fn ready(arguments: &Arguments) -> Option<Field> {
    let said = arguments.whole("server-ready-timeout")?;
    if said.value == 0 {
        arguments.missing(&said.origin, "a start takes time: write `ready: { within: 15m }` of the endpoint");
        return None;
    }
    // A plan allows a wait of at most one year.
    Some(Field::new("ready", format!("{{ within: {}s }}", said.value.min(31_536_000)), said.origin))
}

/// Returns a context for each record: the common context with the name and the values of the record.
pub(super) fn over(around: &Around, records: Vec<Record>) -> Vec<Around> {
    let lay = |record: Record| Around {
        name: record.name.map(|name| name_of(&name, "combination")),
        instead: record.values.into_iter().collect(),
        ..around.clone()
    };
    records.into_iter().map(lay).collect()
}

/// Returns a context for each setting in a server's parameter file, which is imported without a command that
/// starts the server.
pub(super) fn servers(file: &str, records: &[Record], notes: &Notes) -> Vec<Around> {
    let arguments = Arguments::new(&[], 0, &OPTIONS, notes);
    let mut settings = settings::settings(records, file.to_owned(), &arguments);
    let command = Command::default();
    let around = settings::server(&command, records, &settings, &arguments);
    settings::with_baseline(&mut settings, &around);
    settings.into_iter().map(|(_, setting)| Around { setting: Some(setting), ..around.clone() }).collect()
}

fn links(text: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| pair.split_once('=').map(|(a, b)| (a.trim().to_owned(), b.trim().to_owned()));
    text.split(',').filter_map(pair).collect()
}

/// Whether both values of each linked pair are present and equal. Dashes and underscores are treated as
/// equal, as in the tool.
fn is_linked(server: &Record, bench: &Record, links: &[(String, String)]) -> bool {
    let value = |record: &Record, key: &str| {
        let found = record.values.iter().find(|(known, _)| flag_name(known) == flag_name(key));
        found.map(|(_, value)| value.clone())
    };
    links.iter().all(|(a, b)| value(server, a).is_some_and(|of_server| Some(of_server) == value(bench, b)))
}

/// Returns the first combination of `--sla-params` as an objective: `{ "p99_e2el_ms": "<=200" }`.
fn objectives(sla: &[Record], arguments: &Arguments) -> Vec<(&'static str, Field)> {
    let mut limits: IndexMap<&str, (Vec<String>, Vec<&str>)> = IndexMap::new();
    for record in sla.iter().skip(1) {
        arguments.missing(
            &format!("sla-params {}", said_of(record, arguments.secrets())),
            "a plan has one `slo`: that of the first combination",
        );
    }
    for (key, value) in sla.first().map(|record| &record.values).into_iter().flatten() {
        let limit =
            value.as_str().and_then(|text| text.trim().strip_prefix('<')).map(|text| text.trim_start_matches('='));
        let millis = limit.and_then(|limit| limit.trim().parse::<u32>().ok()).filter(|millis| *millis > 0);
        let metric = key.strip_suffix("_ms").and_then(|key| key.split_once('_'));
        let known = metric.and_then(|(percentile, metric)| {
            let percentile = if percentile == "median" { "p50" } else { percentile };
            let metric = if metric == "e2el" { "e2e" } else { metric };
            let fits = ["p50", "p75", "p90", "p95", "p99"].contains(&percentile)
                && ["ttft", "tpot", "itl", "e2e"].contains(&metric);
            fits.then_some((percentile, metric))
        });
        match (known, millis) {
            (Some((percentile, metric)), Some(millis)) => {
                let (values, keys) = limits.entry(metric).or_default();
                values.push(format!("{percentile}: {millis}ms"));
                keys.push(key);
            }
            _ => arguments.missing(&format!("sla-params {key} = {value}"), "not an objective that `slo` supports"),
        }
    }
    let field = |(metric, (values, keys)): (&str, (Vec<String>, Vec<&str>))| {
        ("slo", Field::new(metric, format!("{{ {} }}", values.join(", ")), format!("--sla-params {}", keys.join(", "))))
    };
    limits.into_iter().map(field).collect()
}
