//! Reads endpoints, models and scenarios in all accepted forms: one text, a list, objects, or a table keyed
//! by name.

use serde_json::Value;

use super::json_reader::{JsonReader, MOST};
use super::table::{Item, Table, is_one};
use crate::import::draft::{Draft, Entries, Field};
use crate::import::error::ImportError;
use crate::import::input::Wishes;
use crate::import::text::{name_of, one_line, text_value};
use crate::plan::model::content::built_in;

/// The result of reading an entry: a hint for its name, and its fields.
type Read = Result<(String, Vec<Field>), ImportError>;

/// The scenarios of a configuration.
pub(super) struct Scenarios {
    /// The names of the scenarios in the plan.
    pub names: Vec<String>,
    /// The origin of the scenarios.
    pub origin: String,
    /// Whether any of the scenarios sets the length of responses.
    pub(crate) has_output: bool,
}

impl JsonReader<'_> {
    /// Adds the endpoints of the configuration to the plan, and returns their names.
    pub(super) fn endpoints(&mut self, draft: &mut Draft, wishes: &Wishes) -> Result<Vec<String>, ImportError> {
        let remedy = "add \"endpoints\": [\"http://HOST:PORT/v1\"], or pass --url URL to import";
        let items = self.items_or(&["endpoints", "endpoint"], ("--url", &wishes.url), remedy)?;
        self.entries(&items, JsonReader::endpoint, &mut draft.endpoints)
    }

    /// Adds the models of the configuration to the plan, and returns their names.
    pub(super) fn models(&mut self, draft: &mut Draft, wishes: &Wishes) -> Result<Vec<String>, ImportError> {
        let remedy = "add \"models\": [\"ID\"], or pass --model ID to import";
        let items = self.items_or(&["models", "model"], ("--model", &wishes.model), remedy)?;
        self.entries(&items, JsonReader::model, &mut draft.models)
    }

    /// Returns the items under these keys, or the item from an option of `import`.
    fn items_or(
        &mut self,
        keys: &[&str],
        (option, given): (&str, &Option<String>),
        remedy: &str,
    ) -> Result<Vec<Item>, ImportError> {
        let items = self.items(keys)?;
        match given {
            _ if !items.is_empty() => Ok(items),
            None => Err(self.wrong(keys[0], "there are none", remedy)),
            Some(given) => {
                Ok(vec![Item { at: format!("import {option}"), name: None, value: Value::String(given.clone()) }])
            }
        }
    }

    fn entries(
        &mut self,
        items: &[Item],
        read: fn(&mut Self, &Item) -> Read,
        entries: &mut Entries,
    ) -> Result<Vec<String>, ImportError> {
        let mut names = Vec::new();
        for item in items {
            let (hint, fields) = read(self, item)?;
            names.push(entries.add(&hint, fields));
        }
        names.dedup();
        Ok(names)
    }

    /// Adds the scenarios of the configuration to the plan, and returns their names.
    pub(super) fn scenarios(&mut self, draft: &mut Draft) -> Result<Scenarios, ImportError> {
        let items = self.items(&["scenarios", "scenario"])?;
        if items.is_empty() {
            let origin = "none specified: short prompts that differ".to_owned();
            return Ok(Scenarios { names: vec!["B1".to_owned()], origin, has_output: false });
        }
        let mut scenarios = Scenarios { names: Vec::new(), origin: "scenarios".to_owned(), has_output: false };
        let tokens = self.object.get("max_tokens").and_then(Value::as_u64);
        let own: Vec<bool> = items.iter().map(|item| has_output(&item.value)).collect();
        scenarios.has_output = own.iter().any(|own| *own);
        for (item, own) in items.iter().zip(own) {
            let (hint, mut fields) = self.scenario(item)?;
            if scenarios.has_output
                && !own
                && let Some(tokens) = tokens
            {
                fields.push(Field::new("output_tokens", tokens.clamp(1, 4_000_000).to_string(), "max_tokens"));
            }
            let name = match fields.as_slice() {
                // A built-in scenario that is not changed needs no entry.
                [base] if built_in(&base.value).is_some() && base.value == hint => hint,
                _ => {
                    let hint = if built_in(&hint).is_some() { format!("own-{hint}") } else { hint };
                    draft.scenarios.add(&hint, fields)
                }
            };
            if !scenarios.names.contains(&name) {
                scenarios.names.push(name);
            }
        }
        Ok(scenarios)
    }
}

/// Alternative names for the length of a shared prefix.
const SYSTEM: [&str; 5] =
    ["system_tokens", "prefix_tokens", "prefix_len", "system_prompt_tokens", "shared_prefix_tokens"];
/// Alternative names for the length of a prompt.
const PROMPT: [&str; 6] = ["prompt_tokens", "input_tokens", "input_len", "input_length", "prompt_len", "isl"];
/// Alternative names for the length of a response.
const OUTPUT: [&str; 6] = ["output_tokens", "max_tokens", "output_len", "output_length", "osl", "max_output_tokens"];

/// Returns the name of the built-in scenario that a text names, ignoring case; `None` if there is no such
/// scenario.
fn upper(text: &str) -> Option<String> {
    built_in(&text.to_ascii_uppercase()).map(|_| text.to_ascii_uppercase())
}

fn has_output(value: &Value) -> bool {
    value.as_object().is_some_and(|object| OUTPUT.iter().any(|key| object.contains_key(*key)))
}

impl JsonReader<'_> {
    /// Returns the items under the first of these keys: from one text, a list, or a table keyed by name.
    fn items(&mut self, keys: &[&str]) -> Result<Vec<Item>, ImportError> {
        let Some((key, value)) = self.first(keys) else { return Ok(Vec::new()) };
        let items: Vec<Item> = match value {
            Value::Array(values) => {
                let item = |(number, value)| Item { at: format!("{key}[{number}]"), name: None, value };
                values.into_iter().enumerate().map(item).collect()
            }
            // The value is either one object, or a table of objects keyed by name.
            Value::Object(object)
                if object.values().all(|value| value.is_object() || value.is_string()) && !is_one(&object) =>
            {
                let item = |(name, value)| Item { at: format!("{key}.{name}"), name: Some(name), value };
                object.into_iter().map(item).collect()
            }
            Value::Null => Vec::new(),
            one => vec![Item { at: key.clone(), name: None, value: one }],
        };
        if items.len() > MOST {
            let place = format!("{}: {key}", self.file);
            return Err(ImportError::TooMany {
                place,
                what: "entries",
                most: MOST,
                remedy: "remove the entries that are not measured",
            });
        }
        Ok(items)
    }

    fn not_understood(&mut self, at: &str, key: &str, value: &Value) {
        let shown = one_line(&self.secrets.shown(key, &value.to_string()));
        self.list_missing(format!("{at}.{key} = {shown}"), "unknown");
    }

    fn model(&mut self, item: &Item) -> Result<(String, Vec<Field>), ImportError> {
        let object = &Table::of(&item.value);
        let name = item.name.clone().or_else(|| object.text(&["name", "label"]));
        let id = match &item.value {
            Value::String(id) => Some(id.clone()),
            _ => object.text(&["id", "model", "model_id", "hf_id", "path"]),
        };
        let Some(id) = id.or_else(|| name.clone()).filter(|id| !id.trim().is_empty()) else {
            return Err(self.wrong(
                &item.at,
                "a model is an ID, or an object with one",
                "write \"meta-llama/Llama-3.1-8B-Instruct\"",
            ));
        };
        let mut fields = vec![Field::new("id", text_value(&id), item.at.clone())];
        if let Some(precision) = object.text(&["precision", "dtype", "quantization"]) {
            fields.push(Field::new("precision", text_value(&precision), format!("{}.precision", item.at)));
        }
        self.rest_of(item, object);
        let last = id.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
        Ok((name_of(&name.unwrap_or(last), "model"), fields))
    }

    fn scenario(&mut self, item: &Item) -> Result<(String, Vec<Field>), ImportError> {
        let object = &Table::of(&item.value);
        let text = match &item.value {
            Value::String(text) => Some(text.clone()),
            Value::Object(_) => object.text(&["base", "type", "kind", "scenario", "category"]),
            _ => {
                let remedy = "write \"B1\", or { \"input_tokens\": 50 }";
                return Err(self.wrong(&item.at, "a scenario is a name or an object", remedy));
            }
        };
        let name = item.name.clone().or_else(|| object.text(&["name", "id", "label"])).or_else(|| text.clone());
        let name = name.unwrap_or_else(|| "scenario".to_owned());
        let known = text.as_deref().and_then(upper).or_else(|| upper(&name));
        if known.is_none() && object.is_empty() {
            let what = format!("{} = {}", item.at, one_line(&name));
            let why = "unknown scenario: the plan sends B1, short prompts that differ, under its name";
            self.list_missing(what, why);
        }
        let fields = self.lengths(item, object, known);
        self.rest_of(item, object);
        Ok((upper(&name).unwrap_or_else(|| name_of(&name, "scenario")), fields))
    }

    /// Returns the base and the lengths of a scenario. If the base is unknown, it is derived from the
    /// lengths.
    fn lengths(&mut self, item: &Item, object: &Table, known: Option<String>) -> Vec<Field> {
        let system = object.whole(&SYSTEM);
        let mut turns = object.whole(&["turns", "num_turns"]);
        if let Some((said, value)) = turns
            && known.as_deref().map_or(value <= 1, |base| base != "D")
        {
            if value > 1 {
                self.list_missing(format!("{}.{said} = {value}", item.at), "only conversations (D) have turns");
            }
            turns = None;
        }
        let by_lengths = match (turns, system) {
            (Some(_), _) => "D",
            (None, Some(_)) => "C",
            (None, None) => "B1",
        };
        let origin = if known.is_some() { item.at.clone() } else { "from its lengths".to_owned() };
        let mut fields = vec![Field::new("base", known.unwrap_or_else(|| by_lengths.to_owned()), origin)];
        for (key, said, least, most) in [
            ("system_tokens", system, 0, 4_000_000),
            ("prompt_tokens", object.whole(&PROMPT), 16, 4_000_000),
            ("output_tokens", object.whole(&OUTPUT), 1, 4_000_000),
            ("turns", turns, 1, 10_000),
        ] {
            let Some((said, value)) = said else { continue };
            let fits = value.clamp(least, most);
            if fits != value {
                let why = format!("{key} must be from {least} to {most}: the plan uses {fits}");
                self.list_missing(format!("{}.{said} = {value}", item.at), why);
            }
            fields.push(Field::new(key, fits.to_string(), format!("{}.{said}", item.at)));
        }
        fields
    }

    pub(super) fn rest_of(&mut self, item: &Item, object: &Table) {
        for (key, value) in object.unused() {
            self.not_understood(&item.at, key, value);
        }
    }
}
