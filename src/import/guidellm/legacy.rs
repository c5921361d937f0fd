//! Converts flat options and files of guidellm up to 0.6 to the tree of 0.7.

use serde_json::{Value, json};

use super::pairs;
use crate::import::arguments::Arguments;
use crate::import::tree::Item;

/// Earlier names of request formats.
const FORMATS: [(&str, &str); 6] = [
    ("chat_completions", "/v1/chat/completions"),
    ("chat", "/v1/chat/completions"),
    ("text_completions", "/v1/completions"),
    ("completions", "/v1/completions"),
    ("embeddings", "/v1/embeddings"),
    ("responses", "/v1/responses"),
];
/// A constraint's earlier name, its kind, and the name of its value.
const CONSTRAINTS: [(&str, &str, &str); 5] = [
    ("max_seconds", "max_duration", "seconds"),
    ("max_requests", "max_requests", "count"),
    ("max_errors", "max_errors", "count"),
    ("max_error_rate", "max_error_rate", "rate"),
    ("max_global_error_rate", "max_global_error_rate", "rate"),
];
/// Options that occur as fields in files.
const READ: [&str; 27] = [
    "target",
    "model",
    "rate_type",
    "rate",
    "backend_type",
    "backend_kwargs",
    "backend_args",
    "request_format",
    "request_type",
    "processor",
    "processor_args",
    "data_args",
    "data_samples",
    "data_sampler",
    "random_seed",
    "max_seconds",
    "max_requests",
    "max_errors",
    "max_error_rate",
    "max_global_error_rate",
    "over_saturation",
    "detect_saturation",
    "warmup",
    "warmup_percent",
    "cooldown",
    "cooldown_percent",
    "rampup",
];
/// Renames a setting.
const ALSO: [&str; 2] = ["default_over_saturation", "stop_over_saturated"];

/// Converts a data source that is a path or the name of a data set.
pub(super) fn data(text: &str) -> Value {
    let text = text.trim();
    let ending = text.rsplit('/').next().unwrap_or_default().rsplit_once('.').map_or("", |(_, ending)| ending);
    let kind = match ending {
        "json" | "jsonl" => "json_file",
        "csv" => "csv_file",
        "txt" | "text" => "text_file",
        "parquet" => "parquet_file",
        _ => return json!({ "kind": "huggingface", "source": text.strip_prefix("hf:").unwrap_or(text) }),
    };
    json!({ "kind": kind, "path": text })
}

/// Converts a file to the tree of 0.7. The file has a `spec`, a `config`, or the flat fields used
/// up to 0.6.
pub(super) fn modern(root: Item) -> Item {
    let mut made = Item::table(Vec::new());
    for (key, item) in root.into_entries() {
        match key.as_str() {
            // A report contains the configuration that it was made with.
            "config" | "args" if item.is_table() => {
                modern(item).into_entries().into_iter().for_each(|(key, item)| made.lay(&key, item));
            }
            "spec" if item.is_table() => {
                item.into_entries().into_iter().for_each(|(key, item)| made.lay(&key.replace('-', "_"), item));
            }
            "metadata" if item.is_table() => {
                for (key, item) in item.into_entries() {
                    made.lay(if key == "labels" { "labels" } else { "metadata" }, item);
                }
            }
            _ => flat(&mut made, &key.replace('-', "_"), item),
        }
    }
    made
}

/// Reads a command's flat options.
pub(super) fn options(arguments: &Arguments, root: &mut Item) {
    for key in READ.iter().chain(&ALSO) {
        let name = key.replace('_', "-");
        // The fields have the new names.
        if !super::options::OPTIONS.iter().any(|(known, ..)| *known == name) {
            continue;
        }
        let Some(said) = arguments.many(&name) else { continue };
        let value = match said.value.as_slice() {
            [] => true.into(),
            [one] if matches!(*key, "backend_kwargs" | "backend_args" | "over_saturation" | "warmup" | "cooldown") => {
                pairs::read(one, arguments.secrets()).unwrap_or_else(|| pairs::one(one))
            }
            all if *key == "rate" => {
                all.iter().flat_map(|text| text.split(',')).map(|text| pairs::one(text.trim())).collect()
            }
            all => pairs::one(&all.join(" ")),
        };
        flat(root, key, Item::of_json(&value, format!("--{name}")).lined(arguments.line));
    }
}

/// Puts one flat setting into the tree.
fn flat(root: &mut Item, key: &str, item: Item) {
    let within = |table: &str, key: &str, item: Item, root: &mut Item| {
        root.lay(table, Item::table(vec![(key.to_owned(), item)]));
    };
    match key {
        "target" | "model" => within("backend", key, item, root),
        "backend" | "backend_type" if !item.is_table() => within("backend", "kind", item, root),
        "backend_kwargs" | "backend_args" => {
            let table = match item.word() {
                Some(text) => serde_json::from_str(text).map_or_else(|_| item.clone(), |value| item.instead(&value)),
                None => item,
            };
            root.lay("backend", table);
        }
        "request_format" | "request_type" => {
            let word = item.word().unwrap_or_default();
            let new = FORMATS.iter().find(|(old, _)| *old == word).map(|(_, new)| *new);
            let item = new.map_or_else(|| item.clone(), |new| item.instead(&new.into()));
            within("backend", "request_format", item, root);
        }
        "profile" | "rate_type" if !item.is_table() => within("profile", "kind", item, root),
        "warmup" | "warmup_percent" => within("profile", "warmup", item, root),
        "cooldown" | "cooldown_percent" => within("profile", "cooldown", item, root),
        "rampup" => within("profile", "rampup_duration", item, root),
        "processor" => within("tokenizer", "model", item, root),
        "processor_args" => within("tokenizer", "load_kwargs", item, root),
        "random_seed" => within("seed", "value", item, root),
        "data_samples" => within("data_loader", "samples", item, root),
        "data_sampler" => {
            let shuffles = item.word() == Some("shuffle");
            within("data_loader", "shuffle", item.instead(&shuffles.into()), root);
        }
        "data" => {
            for one in item.into_list() {
                let value = match one.word() {
                    Some(text) => pairs::read(text, &Default::default()).unwrap_or_else(|| data(text)),
                    None => one.json(),
                };
                root.push("data", one.instead(&value));
            }
        }
        "detect_saturation" | "default_over_saturation" | "stop_over_saturated" => {
            constraint(root, "over_saturation", "mode", item)
        }
        "over_saturation" => constraint(root, "over_saturation", "mode", item),
        _ => match CONSTRAINTS.iter().find(|(old, ..)| *old == key) {
            Some((_, kind, field)) => constraint(root, kind, field, item),
            None => root.lay(key, item),
        },
    }
}

fn constraint(root: &mut Item, kind: &str, field: &str, item: Item) {
    let named = item.instead(&kind.into());
    let table = item.within(vec![("kind".to_owned(), named), (field.to_owned(), item.clone())]);
    root.push("constraints", table);
}
