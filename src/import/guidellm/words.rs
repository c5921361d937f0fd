//! Converts the words of a command to the tree of a configuration file: `backend`, `profile`, `constraints`,
//! `data`, …

use serde_json::{Map, Value, json};

use super::legacy;
use super::options::{OPTIONS, SHORT};
use super::pairs;
use crate::import::arguments::{Arguments, long_forms};
use crate::import::error::ImportError;
use crate::import::importer::{Asked, Context};
use crate::import::tree::{self, Item};

/// guidellm's built-in scenarios (`benchmark/scenarios/`).
const BUILT_IN: [(&str, &str); 2] = [
    (
        "chat",
        "{\"spec\": {\"profile\": {\"kind\": \"sweep\"}, \"data\": [{\"kind\": \"synthetic_text\", \
         \"prompt_tokens\": 512, \"prompt_tokens_stdev\": 128, \"prompt_tokens_min\": 1, \"prompt_tokens_max\": \
         1024, \"output_tokens\": 256, \"output_tokens_stdev\": 64, \"output_tokens_min\": 1, \
         \"output_tokens_max\": 1024}]}}",
    ),
    (
        "rag",
        "{\"spec\": {\"profile\": {\"kind\": \"sweep\"}, \"data\": [{\"kind\": \"synthetic_text\", \
         \"prompt_tokens\": 4096, \"prompt_tokens_stdev\": 512, \"prompt_tokens_min\": 2048, \"prompt_tokens_max\": \
         6144, \"output_tokens\": 512, \"output_tokens_stdev\": 128, \"output_tokens_min\": 1, \
         \"output_tokens_max\": 1024}]}}",
    ),
];

/// Returns the tree of a command. The origin of each part is the name of its option.
pub(super) fn tree(asked: &Asked, context: &Context) -> Result<Item, ImportError> {
    let notes = context.notes;
    let words = with_variables(asked);
    let arguments = Arguments::new(&words, asked.command.line, &OPTIONS, notes);
    let mut root = config(asked, &arguments, context)?;
    let line = asked.command.line;
    let table = |name: &str, kind: &str| -> Option<Item> {
        let said = arguments.text(name)?;
        let value = match pairs::read(&said.value, notes.secrets) {
            Some(value) => value,
            // A word that is not a table is the value of the key `kind`.
            None if !said.value.contains(['=', '{']) => json!({ kind: said.value }),
            None => {
                notes.wrong(&said.origin, "expected `name=value,…` or JSON", line);
                return None;
            }
        };
        Some(Item::of_json(&value, format!("--{name}")).lined(line))
    };
    for (name, key) in [
        ("backend", "backend"),
        ("profile", "profile"),
        ("data-loader", "data_loader"),
        ("data-column-mapper", "data_column_mapper"),
        ("data-finalizer", "data_finalizer"),
        ("tokenizer", "tokenizer"),
        ("seed", "seed"),
    ] {
        if let Some(item) = table(name, "kind") {
            root.lay(key, item);
        }
    }
    for (name, key) in [("constraint", "constraints"), ("data", "data"), ("data-preprocessor", "data_preprocessors")] {
        let Some(said) = arguments.many(name) else { continue };
        let one = |text: &String| match (pairs::read(text, notes.secrets), name) {
            (Some(value), _) => value,
            (None, "data") => legacy::data(text),
            (None, _) => {
                if text.contains(['=', '{']) {
                    notes.wrong(&format!("--{name} {text}"), "expected `name=value,…` or JSON", line);
                }
                json!({ "kind": text })
            }
        };
        let items: Vec<Value> = said.value.iter().map(one).collect();
        root.lay(key, Item::of_json(&Value::Array(items), format!("--{name}")).lined(line));
    }
    if let Some(said) = arguments.many("override") {
        root.lay("benchmarks", Item::of_json(&benchmarks(&said.value), "--override".to_owned()).lined(line));
    }
    if let Some(said) = arguments.many("label") {
        let mut labels = Map::new();
        for pair in &said.value {
            match pair.split_once('=') {
                Some((key, value)) => drop(labels.insert(key.to_owned(), value.into())),
                None => arguments.missing(&format!("--label {pair}"), "expected KEY=VALUE; fix it and import again"),
            }
        }
        root.lay("labels", Item::of_json(&Value::Object(labels), "--label".to_owned()).lined(line));
    }
    legacy::options(&arguments, &mut root);
    arguments.list_unused();
    Ok(root)
}

/// Returns the words of the command, with `--override KEY VALUES` joined into one word, followed by the
/// options from environment variables.
fn with_variables(asked: &Asked) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut given = long_forms(asked.words, &SHORT).into_iter().peekable();
    while let Some(word) = given.next() {
        if word == "--override" {
            let key = given.next().unwrap_or_default();
            let values = given.next_if(|word| !word.starts_with("--")).unwrap_or_default();
            words.push(format!("--override={key}={values}"));
        } else {
            words.push(word);
        }
    }
    for (name, value) in &asked.command.env {
        let Some(name) = name.strip_prefix("GUIDELLM_").filter(|name| !name.starts_with('_')) else { continue };
        let option = format!("--{}", name.to_ascii_lowercase().replace('_', "-"));
        let is_known = OPTIONS.iter().any(|(known, ..)| option[2..] == **known);
        if is_known && !words.iter().any(|word| word == &option || word.starts_with(&format!("{option}="))) {
            words.extend([option, value.clone()]);
        }
    }
    words
}

/// Reads the file of `--config` or `--scenario`.
fn config(asked: &Asked, arguments: &Arguments, context: &Context) -> Result<Item, ImportError> {
    let said = match (arguments.needed(&asked.place, "config")?, arguments.needed(&asked.place, "scenario")?) {
        (Some(said), _) | (None, Some(said)) => said,
        (None, None) => return Ok(Item::table(Vec::new())),
    };
    let text = match BUILT_IN.iter().find(|(name, _)| *name == said.value) {
        Some((_, text)) => (*text).to_owned(),
        None => (context.wishes.read)(&said.value).map_err(|reason| ImportError::File {
            place: format!("{}: {}", asked.place, said.origin.split(' ').next().unwrap_or_default()),
            path: said.value.clone(),
            reason,
        })?,
    };
    let wrong = |what: &str| {
        let remedy = "use a guidellm scenario file, or one of its built-in scenarios: chat, rag";
        ImportError::shape(&asked.place, format!("{} is {what}", said.origin), remedy)
    };
    match tree::parse(&said.value, &text)? {
        Some(root) if root.is_table() => {
            arguments.needless(&said.origin, "its settings are read as part of the command");
            context.notes.secrets.add_json(&root.json());
            Ok(legacy::modern(root))
        }
        _ => Err(wrong("not a configuration")),
    }
}

/// Converts the values of `--override` to `benchmarks` as in a file: a list with the settings of each
/// benchmark.
fn benchmarks(overrides: &[String]) -> Value {
    let mut all: Vec<Map<String, Value>> = Vec::new();
    for text in overrides {
        let (key, values) = text.split_once('=').unwrap_or((text, ""));
        for (at, value) in values.split(',').filter(|value| !value.trim().is_empty()).take(1000).enumerate() {
            if all.len() <= at {
                all.push(Map::new());
            }
            all[at].insert(key.to_owned(), pairs::one(value.trim()));
        }
    }
    Value::Array(all.into_iter().map(Value::Object).collect())
}
