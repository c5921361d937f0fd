//! One endpoint of the closed-loop configuration.

use super::json_reader::JsonReader;
use super::table::{Item, Table};
use crate::import::address::{address, base};
use crate::import::clean;
use crate::import::draft::Field;
use crate::import::error::ImportError;
use crate::import::text::{is_no_key, name_of, one_line, secret, text_value};
use crate::units::text::is_variable;
use serde_json::Value;

/// Engines by common endpoint names, each with its default port.
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

/// Returns the engine named in a text.
fn engine(text: &str) -> Option<(&'static str, &'static str, u16)> {
    let text = text.to_ascii_lowercase();
    let names = |known: &str| text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == known);
    ENGINES.iter().find(|(known, ..)| names(known) || (known.contains('.') && text.contains(known))).copied()
}

impl JsonReader<'_> {
    /// Returns an endpoint: a hint for its name, and its fields.
    pub(super) fn endpoint(&mut self, item: &Item) -> Result<(String, Vec<Field>), ImportError> {
        let object = &Table::of(&item.value);
        let written = match &item.value {
            Value::String(text) => Some(text.clone()),
            Value::Object(_) => object.text(&["url", "base_url", "endpoint", "api_base", "address", "uri"]),
            _ => {
                let remedy = "write \"http://HOST:PORT/v1\"";
                return Err(self.wrong(&item.at, "an endpoint is a URL, a name or an object", remedy));
            }
        };
        let name = item.name.clone().or_else(|| object.text(&["name", "id", "label"]));
        let host = object.text(&["host", "hostname"]).map(|host| match object.port() {
            Some(port) => format!("{host}:{port}"),
            None => host,
        });
        let said = object.text(&["engine", "backend", "type", "framework", "server"]);
        let engine = said.as_deref().or(name.as_deref()).or(written.as_deref()).and_then(engine);
        let url = self.endpoint_url(item, written.or(host), name.as_deref(), engine.map(|(_, _, port)| port))?;
        let mut fields = vec![Field::new("url", text_value(&url.0), item.at.clone())];
        fields.push(match (engine, &said) {
            (Some((_, engine, _)), Some(_)) => Field::new("engine", engine, format!("{}, its engine", item.at)),
            (Some((_, engine, _)), None) => {
                Field::new("engine", engine, "from its name; it determines whether ignore_eos is sent")
            }
            (None, None) => Field::new("engine", "openai", "not set: any server; ignore_eos is not sent"),
            (None, Some(said)) => {
                self.list_missing(
                    format!("{}: engine {}", item.at, one_line(said)),
                    "unknown here: the plan uses openai",
                );
                Field::new("engine", "openai", format!("{}, unknown here; ignore_eos is not sent", item.at))
            }
        });
        let api = object.text(&["api", "api_type"]).filter(|api| ["chat", "completions"].contains(&api.as_str()));
        fields.push(match (api, url.1) {
            (Some(api), _) => Field::new("api", api, format!("{}.api", item.at)),
            (None, Some(api)) => Field::new("api", api, "from its URL"),
            (None, None) => Field::new("api", "chat", "not set; default of sweepline"),
        });
        let hint = name.unwrap_or_else(|| engine.map_or("server", |(_, engine, _)| engine).to_owned());
        fields.extend(self.api_key(item, object, &hint));
        self.rest_of(item, object);
        Ok((name_of(&hint, "server"), fields))
    }

    /// Returns the URL of an endpoint, and the API if the URL contains it. An endpoint with only a name uses
    /// the default port of its engine.
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
                format!("only a name, no URL: the plan uses {url}; fix it"),
            );
            return Ok((url, None));
        };
        let read = address(&text).map_err(|reason| {
            let shown = one_line(&self.secrets.hide(&text));
            self.wrong(&item.at, &format!("`{shown}` is not a server's URL: {reason}"), "write http://HOST:PORT/v1")
        })?;
        if read.had_secret {
            self.list_missing(format!("{}: {}", item.at, clean::CREDENTIALS), clean::WHY_CREDENTIALS);
        }
        Ok(base(&read.url))
    }

    /// Returns a reference instead of a key.
    fn api_key(&mut self, item: &Item, object: &Table, name: &str) -> Option<Field> {
        let reference = |variable: &str, origin: String| Field::new("api_key", secret(variable), origin);
        if let Some(variable) = object.text(&["api_key_env", "key_env"]).filter(|variable| is_variable(variable)) {
            return Some(reference(&variable, format!("{}.api_key_env", item.at)));
        }
        let key = object.text(&["api_key", "apikey", "key", "token"])?;
        let bare = key.strip_prefix("env:").or_else(|| key.strip_prefix('$')).map(|name| name.trim_matches(['{', '}']));
        if let Some(variable) = bare.filter(|variable| is_variable(variable)) {
            return Some(reference(variable, format!("{}.api_key", item.at)));
        }
        if is_no_key(&key) {
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
        Some(reference(&variable, format!("{}.api_key: put the key into the variable {variable}", item.at)))
    }
}
