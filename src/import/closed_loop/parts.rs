//! Endpoints, models and scenarios in the shapes that people give them: one text, a list, objects, or a table by name.

use std::cell::RefCell;

use serde_json::{Map, Value};

use super::{MOST, Reading};
use crate::import::Wishes;
use crate::import::address::{address, base};
use crate::import::draft::{Draft, Field};
use crate::import::error::ImportError;
use crate::import::text::{name_of, one_line, scalar};
use crate::plan::scenario::built_in;

/// Engines by the names that people give their endpoints, each with its usual port.
const ENGINES: [(&str, &str, u16); 9] = [
    ("vllm", "vllm", 8000),
    ("sglang", "sglang", 30000),
    ("nim", "nim", 8000),
    ("tgi", "tgi", 8080),
    ("llamacpp", "llamacpp", 8080),
    ("llama.cpp", "llamacpp", 8080),
    ("openai", "openai", 8000),
    ("trtllm", "openai", 8000),
    ("ollama", "openai", 11434),
];

/// The scenarios of a configuration.
pub(super) struct Scenarios {
    /// Their names in the plan.
    pub names: Vec<String>,
    /// Where they came from.
    pub origin: String,
    /// Whether one says how long answers are.
    pub has_output: bool,
}

/// One item of a list or table: its place in words, its name where it has one, and what it is.
struct Item {
    at: String,
    name: Option<String>,
    value: Value,
}

/// What the three tables are read with.
pub(super) trait Parts {
    /// Reads `endpoints` into the plan; gives their names.
    fn endpoints(&mut self, draft: &mut Draft, wishes: &Wishes) -> Result<Vec<String>, ImportError>;
    /// Reads `models`.
    fn models(&mut self, draft: &mut Draft, wishes: &Wishes) -> Result<Vec<String>, ImportError>;
    /// Reads `scenarios`.
    fn scenarios(&mut self, draft: &mut Draft) -> Result<Scenarios, ImportError>;
}

impl Parts for Reading<'_> {
    fn endpoints(&mut self, draft: &mut Draft, wishes: &Wishes) -> Result<Vec<String>, ImportError> {
        let mut items = self.items(&["endpoints", "endpoint"])?;
        if items.is_empty() {
            let Some(url) = &wishes.url else {
                let remedy = "add \"endpoints\": [\"http://HOST:PORT/v1\"], or give import --url URL";
                return Err(self.wrong("endpoints", "there are none", remedy));
            };
            items.push(Item { at: "import --url".to_owned(), name: None, value: Value::String(url.clone()) });
        }
        let mut names = Vec::new();
        for item in items {
            let (hint, fields) = self.endpoint(&item)?;
            names.push(draft.endpoints.add(&hint, Vec::new(), fields));
        }
        names.dedup();
        Ok(names)
    }

    fn models(&mut self, draft: &mut Draft, wishes: &Wishes) -> Result<Vec<String>, ImportError> {
        let mut items = self.items(&["models", "model"])?;
        if items.is_empty() {
            let Some(model) = &wishes.model else {
                let remedy = "add \"models\": [\"ID\"], or give import --model ID";
                return Err(self.wrong("models", "there are none", remedy));
            };
            items.push(Item { at: "import --model".to_owned(), name: None, value: Value::String(model.clone()) });
        }
        let mut names = Vec::new();
        for item in items {
            let (hint, fields) = self.model(&item)?;
            names.push(draft.models.add(&hint, Vec::new(), fields));
        }
        names.dedup();
        Ok(names)
    }

    fn scenarios(&mut self, draft: &mut Draft) -> Result<Scenarios, ImportError> {
        let items = self.items(&["scenarios", "scenario"])?;
        if items.is_empty() {
            let origin = "none given: short prompts that differ".to_owned();
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
                // A built-in as it is needs no entry.
                [base] if built_in(&base.value).is_some() && base.value == hint => hint,
                _ => {
                    let hint = if built_in(&hint).is_some() { format!("own-{hint}") } else { hint };
                    draft.scenarios.add(&hint, Vec::new(), fields)
                }
            };
            if !scenarios.names.contains(&name) {
                scenarios.names.push(name);
            }
        }
        Ok(scenarios)
    }
}

/// Other names of a length of answers.
const OUTPUT: [&str; 6] = ["output_tokens", "max_tokens", "output_len", "output_length", "osl", "max_output_tokens"];

fn has_output(value: &Value) -> bool {
    value.as_object().is_some_and(|object| OUTPUT.iter().any(|key| object.contains_key(*key)))
}

impl Reading<'_> {
    /// The items under the first of these keys: of one text, a list, or a table by name.
    fn items(&mut self, keys: &[&str]) -> Result<Vec<Item>, ImportError> {
        let Some((key, value)) = self.first(keys) else { return Ok(Vec::new()) };
        let items: Vec<Item> = match value {
            Value::Array(values) => {
                let item = |(number, value)| Item { at: format!("{key}[{number}]"), name: None, value };
                values.into_iter().enumerate().map(item).collect()
            }
            // One object, or a table of them by name.
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
                remedy: "take out what is not measured",
            });
        }
        Ok(items)
    }

    fn not_understood(&mut self, at: &str, key: &str, value: &Value) {
        let shown = one_line(&self.secrets.shown(key, &value.to_string()));
        self.list_missing(format!("{at}.{key} = {shown}"), "not understood");
    }

    fn endpoint(&mut self, item: &Item) -> Result<(String, Vec<Field>), ImportError> {
        let object = &Table::of(&item.value);
        let written = match &item.value {
            Value::String(text) => Some(text.clone()),
            Value::Object(_) => object.text(&["url", "base_url", "endpoint", "api_base", "address", "uri"]),
            _ => {
                return Err(self.wrong(
                    &item.at,
                    "an endpoint is a URL, a name or an object",
                    "write \"http://HOST:PORT/v1\"",
                ));
            }
        };
        let name = item.name.clone().or_else(|| object.text(&["name", "id", "label"]));
        let host = object.text(&["host", "hostname"]).map(|host| match object.port() {
            Some(port) => format!("{host}:{port}"),
            None => host,
        });
        let said = object.text(&["engine", "backend", "type", "framework", "server"]);
        let known = |text: &str| ENGINES.iter().find(|(known, ..)| text.to_ascii_lowercase().contains(known)).copied();
        let engine = said.as_deref().or(name.as_deref()).or(written.as_deref()).and_then(known);
        let url = self.endpoint_url(item, written.or(host), name.as_deref(), engine.map(|(_, _, port)| port))?;
        let mut fields = vec![Field::new("url", scalar(&url.0), item.at.clone())];
        let origin = if said.is_some() {
            format!("{}, its engine", item.at)
        } else {
            "by its name; it decides whether ignore_eos is sent".to_owned()
        };
        match engine {
            Some((_, engine, _)) => fields.push(Field::new("engine", engine, origin)),
            None => fields.push(Field::new(
                "engine",
                "openai",
                "not said: any OpenAI-compatible server; ignore_eos is not sent",
            )),
        }
        let api = object.text(&["api", "api_type"]).filter(|api| ["chat", "completions"].contains(&api.as_str()));
        fields.push(match (api, url.1) {
            (Some(api), _) => Field::new("api", api, format!("{}.api", item.at)),
            (None, Some(api)) => Field::new("api", api, "by its URL"),
            (None, None) => Field::new("api", "chat", "not said; default of sweepline"),
        });
        let hint = name.unwrap_or_else(|| engine.map_or("server", |(_, engine, _)| engine).to_owned());
        fields.extend(self.api_key(item, object, &hint));
        self.rest_of(item, object);
        Ok((name_of(&hint, "server"), fields))
    }

    /// The URL of an endpoint, and the API where the URL says it. One that has only a name is looked for where its engine
    /// usually listens.
    fn endpoint_url(
        &mut self,
        item: &Item,
        written: Option<String>,
        name: Option<&str>,
        port: Option<u16>,
    ) -> Result<(String, Option<&'static str>), ImportError> {
        let text = written.filter(|text| text.contains("://") || text.contains(':') || text.contains('.'));
        let Some(text) = text else {
            let name = item.value.as_str().or(name).unwrap_or("server").to_owned();
            let url = match port {
                Some(port) => format!("http://127.0.0.1:{port}/v1"),
                None => format!("http://{}:8000/v1", name_of(&name, "127.0.0.1")),
            };
            self.list_missing(
                format!("{} = {}", item.at, one_line(&name)),
                format!("only a name, no URL: the plan asks {url}; correct it"),
            );
            return Ok((url, None));
        };
        let read = address(&text).map_err(|reason| {
            let shown = one_line(&self.secrets.hide(&text));
            self.wrong(&item.at, &format!("`{shown}` is no URL of a server: {reason}"), "write http://HOST:PORT/v1")
        })?;
        if read.had_secret {
            self.list_missing(
                format!("{}: user name, password or key in the URL", item.at),
                "the plan holds no secret: add api_key: { secret: env:NAME }",
            );
        }
        Ok(base(&read.url))
    }

    /// A reference in place of a key.
    fn api_key(&mut self, item: &Item, object: &Table, name: &str) -> Option<Field> {
        let reference = |variable: &str, origin: String| {
            Field::new("api_key", format!("{{ secret: {} }}", scalar(&format!("env:{variable}"))), origin)
        };
        let is_variable = |text: &str| {
            !text.is_empty()
                && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !text.starts_with(|c: char| c.is_ascii_digit())
        };
        if let Some(variable) = object.text(&["api_key_env", "key_env"]).filter(|variable| is_variable(variable)) {
            return Some(reference(&variable, format!("{}.api_key_env", item.at)));
        }
        let key = object.text(&["api_key", "apikey", "key", "token"])?;
        let bare = key.strip_prefix("env:").or_else(|| key.strip_prefix('$')).map(|name| name.trim_matches(['{', '}']));
        if let Some(variable) = bare.filter(|variable| is_variable(variable)) {
            return Some(reference(variable, format!("{}.api_key", item.at)));
        }
        if ["", "empty", "none", "dummy"].contains(&key.to_ascii_lowercase().as_str()) {
            return None;
        }
        self.secrets.add(&key);
        let stem: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
        let stem = if stem.starts_with(|c: char| c.is_ascii_digit()) || stem.is_empty() {
            format!("SERVER_{stem}")
        } else {
            stem
        };
        let variable = format!("{stem}_API_KEY");
        Some(reference(&variable, format!("{}.api_key: put that key into the variable {variable}", item.at)))
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
                "a model is an id, or an object with one",
                "write \"meta-llama/Llama-3.1-8B-Instruct\"",
            ));
        };
        let mut fields = vec![Field::new("id", scalar(&id), item.at.clone())];
        if let Some(precision) = object.text(&["precision", "dtype", "quantization"]) {
            fields.push(Field::new("precision", scalar(&precision), format!("{}.precision", item.at)));
        }
        self.rest_of(item, object);
        let last = id.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
        Ok((name_of(&name.unwrap_or(last), "model"), fields))
    }

    fn scenario(&mut self, item: &Item) -> Result<(String, Vec<Field>), ImportError> {
        let upper = |text: &str| built_in(&text.to_ascii_uppercase()).map(|_| text.to_ascii_uppercase());
        let object = &Table::of(&item.value);
        let text = match &item.value {
            Value::String(text) => Some(text.clone()),
            Value::Object(_) => object.text(&["base", "type", "kind", "scenario", "category"]),
            _ => {
                return Err(self.wrong(
                    &item.at,
                    "a scenario is a name or an object",
                    "write \"B1\", or { \"input_tokens\": 50 }",
                ));
            }
        };
        let name = item.name.clone().or_else(|| object.text(&["name", "id", "label"])).or_else(|| text.clone());
        let name = name.unwrap_or_else(|| "scenario".to_owned());
        let known = text.as_deref().and_then(upper).or_else(|| upper(&name));
        let system = object.whole(&[
            "system_tokens",
            "prefix_tokens",
            "prefix_len",
            "system_prompt_tokens",
            "shared_prefix_tokens",
        ]);
        let turns = object.whole(&["turns", "num_turns"]).filter(|turns| turns.1 > 1);
        let origin = match &known {
            Some(_) => item.at.clone(),
            None if object.is_empty() => {
                let what = format!("{} = {}", item.at, one_line(&name));
                self.list_missing(
                    what,
                    "no scenario that is known here: the plan sends B1, short prompts that differ, under its name",
                );
                "not known".to_owned()
            }
            None => "by what it says of lengths".to_owned(),
        };
        let base = known.unwrap_or_else(|| {
            if turns.is_some() {
                "D"
            } else if system.is_some() {
                "C"
            } else {
                "B1"
            }
            .to_owned()
        });
        let mut fields = vec![Field::new("base", base, origin)];
        let prompt = object.whole(&["prompt_tokens", "input_tokens", "input_len", "input_length", "prompt_len", "isl"]);
        for (key, said, least, most) in [
            ("system_tokens", system, 0, 4_000_000),
            ("prompt_tokens", prompt, 16, 4_000_000),
            ("output_tokens", object.whole(&OUTPUT), 1, 4_000_000),
            ("turns", turns, 1, 10_000),
        ] {
            let Some((said, value)) = said else { continue };
            let fits = value.clamp(least, most);
            if fits != value {
                self.list_missing(
                    format!("{}.{said} = {value}", item.at),
                    format!("{key} is from {least} to {most}: the plan has {fits}"),
                );
            }
            fields.push(Field::new(key, fits.to_string(), format!("{}.{said}", item.at)));
        }
        self.rest_of(item, object);
        let name = upper(&name).unwrap_or_else(|| name_of(&name, "scenario"));
        Ok((name, fields))
    }

    fn rest_of(&mut self, item: &Item, object: &Table) {
        for (key, value) in object.unused() {
            self.not_understood(&item.at, key, value);
        }
    }
}

/// An object, and which of its keys were read.
struct Table<'a> {
    object: Option<&'a Map<String, Value>>,
    used: RefCell<Vec<&'a str>>,
}

impl<'a> Table<'a> {
    fn of(value: &'a Value) -> Table<'a> {
        Table { object: value.as_object(), used: RefCell::default() }
    }

    fn is_empty(&self) -> bool {
        self.object.is_none_or(Map::is_empty)
    }

    /// What `take` makes of the first of these keys that it takes.
    fn first<T>(&self, keys: &[&str], take: impl Fn(&Value) -> Option<T>) -> Option<(&'a str, T)> {
        let entry = |key: &&str| {
            let (key, value) = self.object?.get_key_value(*key)?;
            Some((key.as_str(), take(value)?))
        };
        let found = keys.iter().find_map(entry)?;
        self.used.borrow_mut().push(found.0);
        Some(found)
    }

    fn text(&self, keys: &[&str]) -> Option<String> {
        self.first(keys, |value| value.as_str().map(str::to_owned)).map(|(_, text)| text)
    }

    fn whole(&self, keys: &[&str]) -> Option<(&'a str, u64)> {
        self.first(keys, |value| value.as_u64().or_else(|| value.as_str()?.parse().ok()))
    }

    fn port(&self) -> Option<u64> {
        self.whole(&["port"]).map(|(_, port)| port)
    }

    fn unused(&self) -> Vec<(&'a str, &'a Value)> {
        let used = self.used.borrow();
        let entries = self.object.into_iter().flatten().map(|(key, value)| (key.as_str(), value));
        entries.filter(|(key, _)| !used.contains(key)).collect()
    }
}

/// Keys that only one entry has, and no table of entries by name.
const KEYS_OF_ONE: [&str; 10] =
    ["url", "base_url", "host", "port", "engine", "id", "model_id", "base", "prompt_tokens", "input_tokens"];

/// Whether an object is one entry, and not a table of entries by name.
fn is_one(object: &Map<String, Value>) -> bool {
    object.keys().any(|key| KEYS_OF_ONE.contains(&key.as_str()))
}
