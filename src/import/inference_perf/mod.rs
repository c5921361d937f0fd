//! Converts `config.yml` of inference-perf (kubernetes-sigs). Each load stage becomes a cell. Source:
//! github.com/kubernetes-sigs/inference-perf (`inference_perf/config/`, `docs/`, 7de5ef2e, August 2026).

mod content;
mod load;
mod server;

use super::draft::{Draft, Entries, Field};
use super::error::ImportError;
use super::importer::{Context, FileReader, Importer, Input};
use super::job::Job;
use super::options::Fate::{Lost, Needless};
use super::tables;
use super::text::{list, scalar};
use super::tree::{At, Known};

/// The importer for configurations of inference-perf.
pub(super) const IMPORTER: Importer = Importer {
    name: "inference-perf",
    title: "inference-perf",
    takes: "inference-perf configurations (YAML)",
    file: Some(FileReader { is, known: KNOWN, read }),
    command: None,
};

const STORED: &str = "every run is stored, one row per request; `show` and `export` list every latency at p50 to p99.9";
const BROKEN: &str = "an unreachable or rate-limiting server ends the attempt, and a run with failures is suspect or \
                      invalid by `validity: { errors }`";

/// Settings that do not affect results or have no counterpart.
const KNOWN: &[Known] = &[
    ("report", Needless(STORED)),
    ("storage.local_storage", Needless("`sweepline run --results DIR` sets the results folder")),
    (
        "storage.google_cloud_storage",
        Needless("results are files in a folder (`--results DIR`): any tool can copy them"),
    ),
    (
        "storage.simple_storage_service",
        Needless("results are files in a folder (`--results DIR`): any tool can copy them"),
    ),
    ("circuit_breakers", Needless(BROKEN)),
    ("load.circuit_breakers", Needless(BROKEN)),
    ("load.num_workers", Needless("`engine: { threads: N, workers: N }` of a sweep configures the client")),
    ("load.worker_max_concurrency", Needless("every request is sent at its scheduled time")),
    ("load.worker_max_tcp_connections", Needless("each request in flight has its own connection")),
    ("metrics.prometheus.google_managed", Needless("the server's own metrics page is read, not a database")),
    ("metrics.prometheus.filters", Needless("the server's own metrics page is read; no database is queried")),
    ("tokenizer.trust_remote_code", Needless("tokenizer code is never run")),
    ("tokenizer.token", Needless("nothing is downloaded")),
    ("server.cert_path", Lost("client certificates are not supported")),
    ("server.key_path", Lost("client certificates are not supported")),
    (
        "api.session_id_header_key",
        Lost("each request has its own `x-request-id`; no header identifies its conversation"),
    ),
    ("api.session_token_header_key", Lost("response headers are not sent back")),
    ("data.multimodal", Lost("requests carry text only")),
    ("data.shared_prefix.multimodal", Lost("requests carry text only")),
    ("data.visionarena", Lost("requests carry text only")),
];

/// Whether a file is an inference-perf configuration.
fn is(input: &Input) -> bool {
    let Some(tree) = &input.tree else { return false };
    let parts = ["api", "data", "server", "metrics", "report", "storage"];
    let load = tree.peek("load").filter(|load| load.is_table());
    load.is_some_and(|load| {
        load.peek("type").is_some() || load.peek("stages").is_some() || load.peek("sweep").is_some()
    }) && parts.iter().filter(|key| tree.peek(key).is_some()).count() >= 2
}

fn read(input: &Input, context: &Context) -> Result<Draft, ImportError> {
    let root = input.root(context)?;
    let around = context.around();
    let endpoint = server::endpoint(input.name, root, &around, context.notes.secrets)?;
    let model = server::model(input.name, root, &around)?;
    let body = server::body(root, &endpoint.1, context.notes);
    let load = load::load(input.name, root)?;
    let scenario = content::scenario(input.name, root, &around.folder, &load, body)?;
    let once = once(root);
    let jobs: Vec<Job> = load
        .stages
        .iter()
        .map(|stage| Job {
            load: stage.load.clone(),
            lasts: stage.lasts.clone(),
            fields: load.fields.clone(),
            once: once.clone(),
            line: stage.line,
            ..Job::new(endpoint.clone(), model.clone(), scenario.clone())
        })
        .collect();
    let mut draft = tables::draft(jobs, context.name.clone(), context.notes);
    adapters(root, &mut draft);
    Ok(draft)
}

/// Reads plan-wide settings.
fn once(root: At) -> Vec<(&'static str, Field)> {
    let mut once = Vec::new();
    let shared = root.path(&["data", "shared_prefix", "seed"]);
    let base = root.path(&["load", "base_seed"]);
    let seed = base.or(shared).and_then(|at| at.number::<u64>("a whole number"));
    if base.is_some()
        && let Some(shared) = shared
    {
        shared.needless("`load.base_seed` sets the plan's seed");
    }
    once.extend(seed.map(|said| ("seed", Field::new("seed", said.value.to_string(), said.origin))));
    let interval = root.path(&["load", "interval"]).and_then(At::seconds).filter(|said| said.value > 0.0);
    once.extend(
        interval.map(|said| ("between", Field::new("cooldown", super::text::seconds(said.value), said.origin))),
    );
    let timeout = root.path(&["load", "request_timeout"]).and_then(At::seconds).filter(|said| said.value > 0.0);
    once.extend(timeout.map(|said| ("timeouts", Field::new("request", super::text::seconds(said.value), said.origin))));
    once.extend(server::goodput(root).into_iter().map(|field| ("goodput", field)));
    once
}

/// Converts LoRA adapters that share the traffic: each scenario becomes a mix with one class per adapter.
fn adapters(root: At, draft: &mut Draft) {
    let Some(split) = root.path(&["load", "lora_traffic_split"]) else { return };
    let mut shares: Vec<(String, String, String)> = Vec::new();
    for one in split.list() {
        let (name, share) = (one.get("name").and_then(At::text), one.get("split").and_then(At::decimal));
        let name = name.filter(|name| !name.value.trim().is_empty());
        if let (Some(name), Some(share)) = (name, share.filter(|share| share.value.is_positive())) {
            shares.push((name.value, share.value.to_string(), format!("{}, {}", name.origin, share.origin)));
        } else {
            one.missing("an adapter needs a name and a share above 0");
        }
    }
    if shares.len() < 2 {
        return split.needless("one adapter is not a mix: `model: ID` of the scenario selects it");
    }
    let old = std::mem::take(&mut draft.scenarios);
    let mut made = Entries::default();
    let one_for_all = |field: &Field| ["stream", "ignore_eos"].contains(&field.key.as_str());
    for entry in old.all {
        let mut parts = Vec::new();
        let mut classes = Vec::new();
        for (adapter, share, origin) in &shares {
            let mut fields: Vec<Field> = entry.fields.iter().filter(|field| !one_for_all(field)).cloned().collect();
            fields.push(Field::new("model", super::text::text_value(adapter), origin));
            let hint = format!("{}-{}", entry.name, super::text::name_of(adapter, "adapter"));
            classes.push((hint, fields));
            parts.push(share);
        }
        let names: Vec<String> = classes.into_iter().map(|(hint, fields)| made.add(&hint, fields)).collect();
        let mix =
            names.iter().zip(parts).map(|(name, share)| format!("{{ scenario: {}, share: {share} }}", scalar(name)));
        let origin = shares.iter().map(|(_, _, origin)| origin.as_str()).collect::<Vec<_>>().join("; ");
        let mut fields = vec![Field::new("mix", format!("[{}]", mix.collect::<Vec<_>>().join(", ")), origin)];
        fields.extend(entry.fields.iter().filter(|field| one_for_all(field)).cloned());
        let name = made.add(&entry.name, fields);
        if name != entry.name {
            rename(draft, &entry.name, &name);
        }
    }
    draft.scenarios = made;
}

/// Renames a scenario on the axes.
fn rename(draft: &mut Draft, old: &str, new: &str) {
    let (old, new) = (list(&[old.to_owned()]), list(&[new.to_owned()]));
    let axes = draft.sweeps.iter_mut().flat_map(|sweep| &mut sweep.matrix);
    axes.filter(|axis| axis.key == "scenario" && axis.value == old).for_each(|axis| axis.value.clone_from(&new));
}
