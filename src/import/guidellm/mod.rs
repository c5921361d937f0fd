//! Converts command lines of `guidellm run` and `guidellm benchmark`, and scenario files, to jobs.

mod backend;
mod data;
mod legacy;
mod load;
mod options;
mod pairs;
mod window;
mod words;

use super::draft::{Draft, Field};
use super::error::ImportError;
use super::files;
use super::importer::{Asked, CommandReader, Context, FileReader, Importer, Input};
use super::job::{Around, Job};
use super::launch;
use super::program::after;
use super::shell::{self, Command};
use super::tables;
use super::text::text_value;
use super::tree::{At, Item};

/// The importer for guidellm.
pub(super) const IMPORTER: Importer = Importer {
    name: "guidellm",
    title: "guidellm",
    takes: "command lines of `guidellm run` and `guidellm benchmark`, and guidellm's scenario files",
    file: Some(FileReader { is, known: &[], read }),
    command: Some(CommandReader { arguments, read: jobs }),
};

/// The names of all options, without their dashes.
#[cfg(test)]
pub(super) fn option_names() -> Vec<&'static str> {
    options::OPTIONS.iter().map(|(name, ..)| *name).collect()
}

fn arguments(words: &[String]) -> Option<&[String]> {
    let rest = after(words, "guidellm", &["benchmark", "run"])?;
    match rest.first().map(String::as_str) {
        Some("run") => rest.get(1..),
        // This subcommand shows earlier results, so it is not a benchmark.
        Some("from-file") => None,
        _ => Some(rest),
    }
}

/// Whether a file is a scenario of guidellm: it has a table `spec` with guidellm's settings, or a profile and
/// other settings at the top level.
fn is(input: &Input) -> bool {
    let Some(root) = &input.tree else { return false };
    let spec = root.peek("spec").filter(|spec| spec.is_table());
    let has = |item: &Item, keys: &[&str]| keys.iter().any(|key| item.peek(key).is_some());
    match spec {
        // Kubernetes manifests also have a `spec`.
        Some(spec) => !has(root, &["apiVersion", "kind"]) && has(spec, &["profile", "data", "backend", "constraints"]),
        None => {
            has(root, &["rate_type", "rate-type", "profile"])
                && has(root, &["data", "rate", "target", "max_seconds", "max-seconds", "max_requests", "max-requests"])
                && !has(root, &["load", "endpoints", "server", "scenarios"])
        }
    }
}

/// Returns the plan of a scenario file.
fn read(input: &Input, context: &Context) -> Result<Draft, ImportError> {
    let Some(tree) = &input.tree else { return Err(ImportError::unknown(input.name, "no table".to_owned())) };
    // The converted tree is read in place of the original tree, which is marked as read. Fields have the same
    // names and lines in both trees.
    let root = legacy::modern(tree.clone());
    tree.take();
    let command = shell::command(&context.wishes.command, context.notes.secrets);
    let around = context.around();
    let jobs = of_tree(&root, input.name, &command, &around, context)?;
    if jobs.is_empty() {
        let why = super::write::reasons(&context.notes.listed.borrow());
        return Err(ImportError::nothing(input.name, super::text::one_line(&why)));
    }
    Ok(tables::draft(jobs, context.name.clone(), context.notes))
}

/// Returns the jobs of a command.
fn jobs(asked: &Asked, context: &Context) -> Result<Vec<Job>, ImportError> {
    let root = words::tree(asked, context)?;
    of_tree(&root, &asked.place, asked.command, asked.around, context)
}

/// Returns the jobs of a tree of settings.
fn of_tree(
    root: &Item,
    place: &str,
    command: &Command,
    around: &Around,
    context: &Context,
) -> Result<Vec<Job>, ImportError> {
    let notes = context.notes;
    root.enter(notes);
    let at = root.at(notes);
    let made = measured(at, place, command, around, context);
    match &made {
        // The command is skipped and the reason is listed, so its other settings have no effect.
        Ok(jobs) if jobs.is_empty() => at.skip_rest(),
        _ => root.list_rest(&[], notes),
    }
    made
}

fn measured(
    at: At,
    place: &str,
    command: &Command,
    around: &Around,
    context: &Context,
) -> Result<Vec<Job>, ImportError> {
    let Some(server) = backend::read(at, place, command, around, context)? else { return Ok(Vec::new()) };
    let backend::Server { mut endpoint, mut model, body, once, api } = server;
    launch::add(&mut endpoint.1, &model.1[0].value, around, context.notes.at(command.line));
    model.1.extend(tokenizer(at, &endpoint.1, around));
    let Some(content) = data::read(at, api, body, &endpoint.1, around, context, command.line)? else {
        return Ok(Vec::new());
    };
    let loads = load::read(at, place, content.is_trace)?;
    let lasts = window::read(at, content.is_trace);
    let stop = window::stop(at, &loads);
    let fill = load::fill(at);
    let mut all = once;
    all.extend(seed(at));
    all.extend(labels(at));
    all.extend(around.once.clone());
    unneeded(at);
    let scenario = (content.name, content.fields);
    let job = |load| {
        let job = Job::new(endpoint.clone(), model.clone(), scenario.clone());
        let (fields, phases, once) = (stop.iter().cloned().collect(), fill.iter().cloned().collect(), all.clone());
        Job { load, lasts: lasts.clone(), fields, phases, once, line: command.line, ..job }
    };
    Ok(loads.into_iter().map(job).collect())
}

/// Returns the tokenizer that counts lengths.
fn tokenizer(at: At, endpoint: &[Field], around: &Around) -> Option<Field> {
    let table = at.get("tokenizer")?;
    if let Some(kind) = table.get("kind") {
        kind.needless("`tokenizer` of the model is a folder or file in Hugging Face's format, or `server`");
    }
    if let Some(more) = table.get("load_kwargs") {
        more.needless("the files of `tokenizer` determine how texts are counted");
    }
    let said = table.any(&["model", "source", "name"])?.text()?;
    let engine = endpoint.iter().find(|field| field.key == "engine").map_or("", |field| field.value.as_str());
    files::counted_by(&said, &around.folder, engine).map_err(|why| table.missing(&why)).ok()
}

/// Returns the plan's random seed; `None` if it is not set.
fn seed(at: At) -> Option<(&'static str, Field)> {
    let table = at.get("seed")?;
    if let Some(kind) = table.get("kind") {
        kind.needless("a plan's seed is a number");
    }
    let seed = if table.is_table() { table.get("value")? } else { table };
    let said = seed.number::<u64>("a whole number of at most 64 bits")?;
    Some(("seed", Field::new("seed", said.value.to_string(), said.origin)))
}

/// Converts the run's labels to notes.
fn labels(at: At) -> Option<(&'static str, Field)> {
    let table = at.get("labels")?;
    let pairs: Vec<String> =
        table.entries().iter().map(|(key, value)| format!("{key}={}", value.shown().trim_matches('"'))).collect();
    let origin = table.take().origin();
    (!pairs.is_empty()).then(|| ("notes", Field::new("notes", text_value(&pairs.join(" ")), origin)))
}

/// Lists the settings that sweepline applies anyway.
fn unneeded(at: At) {
    const FOLDER: &str = "`sweepline run --results DIR` sets the results folder, `export` the format";
    const STORED: &str = "every run is stored, one row per request";
    const TEXTS: &str = "texts are sent unchanged";
    for (key, why) in [
        ("outputs", FOLDER),
        ("output_dir", FOLDER),
        ("output_path", FOLDER),
        ("output_extras", FOLDER),
        ("metrics", STORED),
        ("sample_requests", STORED),
        ("output_sampling", STORED),
        ("prefer_response_metrics", "token counts are the server's, if it reports them"),
        ("data_preprocessors", TEXTS),
        ("data_preprocessors_kwargs", TEXTS),
        ("data_finalizer", TEXTS),
        ("data_collator", TEXTS),
        ("data_num_workers", "data sets are read when the plan is loaded"),
        ("dataloader_kwargs", "data sets are read when the plan is loaded"),
        ("metadata", "a plan has `notes` and comments for this"),
    ] {
        if let Some(there) = at.get(key) {
            there.needless(why);
        }
    }
}
