//! An experiment, that is, a profile that is measured once per treatment with the treatment's
//! values.

use serde_json::Value;

use super::overrides::lay;
use super::profile::{Made, of_tree, rendered};
use super::setup::endpoints;
use super::together::together;
use crate::import::draft::{Draft, Entry, Field};
use crate::import::error::ImportError;
use crate::import::importer::{Context, Input};
use crate::import::job::Job;
use crate::import::tables;
use crate::import::text::{name_of, one_line, text_value};
use crate::import::tree::{At, Item};

/// Harnesses whose profiles can be read.
const HARNESSES: [&str; 5] = ["vllm-benchmark", "inferencemax", "guidellm", "inference-perf", "aiperf"];
/// Maximum number of treatments in a plan.
const MOST: usize = 1_000;
/// Folders of an experiment's profiles, relative to the experiment's own folder.
const FOLDERS: [&str; 4] = ["../workload/profiles", "../profiles", "workload/profiles", "../../workload/profiles"];

/// One treatment: its name and the values that it sets on top of the profile.
struct Treatment {
    name: String,
    values: Vec<(String, Value)>,
}

/// Whether a file is an experiment.
pub(super) fn is(tree: &Item) -> bool {
    let is_list = |item: Option<&Item>| item.is_some_and(Item::is_list);
    let of_run = tree.peek("run").is_some_and(|run| run.has(&["factors", "treatments"]));
    is_list(tree.peek("treatments")) || of_run
}

/// Returns the plan of an experiment.
pub(super) fn draft(input: &Input, context: &Context) -> Result<Draft, ImportError> {
    let root = input.root(context)?;
    let treatments = treatments(root, input.name)?;
    let (name, text) = profile(root, context)?;
    let mut jobs: Vec<Job> = Vec::new();
    let mut drafts: Vec<(String, Draft)> = Vec::new();
    for treatment in &treatments {
        let mut values = rendered(&name, &text, context)?.json();
        for (path, value) in &treatment.values {
            if !lay(&mut values, path, value) {
                let what =
                    format!("treatment {}: unknown path `{}` in {name}", one_line(&treatment.name), one_line(path));
                return Err(ImportError::shape(input.name, what, "fix the path, or name another profile"));
            }
        }
        match of_tree(&name, &text, Item::of_json(&values, String::new()), context)? {
            Made::Jobs(made) => jobs.extend(made),
            Made::Draft(made) => drafts.push((treatment.name.clone(), *made)),
        }
    }
    if !jobs.is_empty() {
        let named = |treatment: &Treatment| format!("{} ({} values)", treatment.name, treatment.values.len());
        let names: Vec<String> = treatments.iter().map(named).collect();
        let what = format!("the names of its treatments: {}", names.join(", "));
        context.notes.needless(&one_line(&what), "a cell is identified by its values", root.line());
    }
    let title = title(root, context);
    let mut draft = match drafts.is_empty() {
        true => tables::draft(jobs, title.clone(), context.notes),
        false => together(drafts, context.notes),
    };
    draft.head.retain(|field| field.key != "name");
    draft.head.insert(0, title);
    rest(root, &mut draft, context);
    Ok(draft)
}

/// Returns the treatments of an experiment.
fn treatments(root: At, file: &str) -> Result<Vec<Treatment>, ImportError> {
    let all = match root.get("treatments") {
        Some(list) => {
            list.list().into_iter().enumerate().map(|(number, at)| named(at, number)).collect::<Option<Vec<_>>>()
        }
        None => crossed(root),
    };
    match all {
        Some(all) if (1..=MOST).contains(&all.len()) => Ok(all),
        _ => {
            let what = format!("`treatments` must be a list of 1 to {MOST} tables");
            Err(root.wrong(file, &what, "write treatments: [{ name: NAME, PATH: VALUE }]"))
        }
    }
}

/// Reads a treatment in the form of a table.
fn named(at: At, number: usize) -> Option<Treatment> {
    if !at.is_table() {
        return None;
    }
    let name = at.get("name").and_then(At::text).map_or_else(|| format!("treatment-{number}"), |said| said.value);
    let values = at.entries().into_iter().filter(|(key, _)| *key != "name");
    Some(Treatment { name, values: values.map(|(key, at)| (key.to_owned(), at.json())).collect() })
}

/// Reads the older form: `factors`, and treatments as texts with comma-separated values.
fn crossed(root: At) -> Option<Vec<Treatment>> {
    let run = root.get("run")?;
    let factors: Vec<String> =
        run.get("factors")?.list().into_iter().filter_map(At::text).map(|said| said.value).collect();
    if let Some(levels) = run.get("levels") {
        levels.needless("the treatments define which levels go together");
    }
    let treatment = |at: At| {
        let said = at.text()?;
        let values: Vec<&str> = said.value.split(',').map(str::trim).collect();
        (values.len() == factors.len()).then(|| Treatment {
            name: said.value.replace(',', "-"),
            values: factors.iter().cloned().zip(values.into_iter().map(scalar)).collect(),
        })
    };
    run.get("treatments")?.list().into_iter().map(treatment).collect()
}

/// Returns a number if the text parses as one, otherwise a text.
fn scalar(text: &str) -> Value {
    serde_json::from_str::<serde_json::Number>(text).map_or_else(|_| text.into(), Value::Number)
}

/// Returns the name and the text of the profile, from the experiment or `-- llmdbenchmark … --harness NAME
/// --workload FILE`.
fn profile(root: At, context: &Context) -> Result<(String, String), ImportError> {
    let (file, words) = (&context.wishes.name, &context.wishes.command);
    let typed = |long: &str, short: &str| {
        let at = words.iter().position(|word| word == long || word == short)?;
        words.get(at + 1).cloned()
    };
    let said = |key: &str| root.path(&["experiment", key]).and_then(At::text).map(|said| said.value);
    let (own_harness, own_profile) = (said("harness"), said("profile"));
    let (harness, profile) = (typed("--harness", "-l").or(own_harness), typed("--workload", "-w").or(own_profile));
    let Some(profile) = profile else {
        let what = "it names no workload profile";
        let remedy = "name it: sweepline import FILE --model ID -- llmdbenchmark run --harness vllm-benchmark \
                      --workload random_concurrent.yaml";
        return Err(ImportError::shape(file, what, remedy));
    };
    let harness = harness.unwrap_or_default();
    if !harness.is_empty() && !HARNESSES.contains(&harness.as_str()) {
        let what = format!("unsupported harness {}", one_line(&harness));
        return Err(ImportError::shape(file, what, format!("use one of {}", HARNESSES.join(", "))));
    }
    if let Some(at) = root.path(&["experiment", "harness"]) {
        at.needless("the profile's contents identify its tool");
    }
    let is_plain = |part: &str| !part.contains("..") && !part.starts_with('/') && !part.contains('\\');
    if !is_plain(&profile) || !is_plain(&harness) || profile.is_empty() {
        return Err(ImportError::shape(file, "the profile's name leads outside the folder", "write a file name"));
    }
    let names = [format!("{profile}.in"), profile.clone()];
    let folders =
        FOLDERS.iter().map(|folder| format!("{folder}/{harness}/")).chain([format!("{harness}/"), String::new()]);
    let paths: Vec<String> = folders
        .flat_map(|folder| names.iter().map(move |name| format!("{folder}{name}")).collect::<Vec<_>>())
        .collect();
    let found = paths.iter().find_map(|path| Some((path.clone(), (context.wishes.read)(path).ok()?)));
    found.ok_or_else(|| {
        let what = format!(
            "the profile {} of {} is neither next to it nor under workload/profiles",
            one_line(&profile),
            one_line(&harness)
        );
        ImportError::shape(file, what, "put the profile next to the experiment")
    })
}

/// Returns the plan's name, which is the experiment's.
fn title(root: At, context: &Context) -> Field {
    match root.path(&["experiment", "name"]).and_then(At::text) {
        Some(said) => Field::new("name", text_value(&name_of(&said.value, "experiment")), said.origin),
        None => context.name.clone(),
    }
}

/// Reads an experiment's settings other than its treatments.
fn rest(root: At, draft: &mut Draft, context: &Context) {
    if let Some(said) = root.path(&["experiment", "description"]).and_then(At::text) {
        draft.head.retain(|field| field.key != "notes");
        draft.head.push(Field::new("notes", text_value(one_line(&said.value).as_str()), said.origin));
    }
    if let Some(url) = root.path(&["experiment", "datasetUrl"]) {
        url.missing("nothing is downloaded: get the file and name it in a scenario: `data: { file: … }`");
    }
    if let Some(design) = root.get("design") {
        design.needless("the treatments define it: llm-d-benchmark does not read it either");
    }
    if let Some(setup) = root.get("setup") {
        endpoints(setup, draft, context);
    }
    let flag = |key: &str| root.get(key).and_then(At::flag);
    if let Some(said) = flag("reset_caches") {
        reset(said.value, said.origin, root, draft);
    }
    if let Some(at) = root.get("treatment_max_attempts")
        && let Some(said) = at.whole()
    {
        let runs = said.value.saturating_sub(1).min(100);
        let field = Field::new(
            "retries",
            format!("{{ runs: {runs} }}"),
            format!("{}: including the first attempt", said.origin),
        );
        draft.endpoints.all.iter_mut().for_each(|endpoint| endpoint.fields.push(field.clone()));
    }
    if let (Some(at), Some(said)) = (root.get("treatment_stop_on_error"), flag("treatment_stop_on_error")) {
        match said.value {
            true => at.missing("an abandoned run does not stop the others, and `run` exits with 6"),
            false => at.needless("the others continue here too"),
        }
    }
    if let Some(at) = root.get("validate_failures") {
        at.needless("each run reports its failed requests; too many make it invalid");
    }
}

/// Returns the cache resets before each run.
fn reset(is_on: bool, origin: String, root: At, draft: &mut Draft) {
    let Some(at) = root.get("reset_caches") else { return };
    if !is_on {
        return at.needless("same here");
    }
    let is_known = |endpoint: &Entry| {
        endpoint.fields.iter().any(|field| field.key == "engine" && ["vllm", "sglang"].contains(&field.value.as_str()))
    };
    if !draft.endpoints.all.iter().all(is_known) {
        return at.missing("unknown how to reset this engine's cache: write a hook `before_run`");
    }
    let field = Field::new("reset", "prefix_cache", format!("{origin}; the server needs VLLM_SERVER_DEV_MODE=1"));
    for endpoint in &mut draft.endpoints.all {
        endpoint.fields.retain(|known| known.key != "reset");
        endpoint.fields.push(field.clone());
    }
}
