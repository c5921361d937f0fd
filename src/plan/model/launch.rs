//! How a sweep launches the server of an endpoint.
//!
//! Texts may contain `{{ … }}` expressions over names that each cell defines: `model`, `server`, `endpoint`
//! and `port` (`plan/template/cell.rs`). The settings with which a server is started are part of a run's
//! identity: the base name of its program, its arguments and `env`. Settings that depend on the host are not:
//! `folder`, `host_env`, the port and `stop`.

use std::fmt;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

use crate::plan::model::table::Table;
use crate::plan::model::text_or_secret::TextOrSecret;
use crate::plan::text::secret::SecretRef;
use crate::plan::text::tree::Step;
use crate::units::Nanos;

/// How the server of an endpoint is started and stopped.
#[derive(Debug, Clone, PartialEq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// The program and its arguments, one element each, without a shell. The element "{{ server.args }}"
    /// becomes the flags of the cell: `max_num_seqs: 64` → `--max-num-seqs 64`.
    #[schemars(length(min = 1))]
    #[schemars(example = serde_json::json!(["vllm", "serve", "{{ model.id }}", "--port", "{{ port }}", "{{ server.args }}"]))]
    pub command: Vec<String>,
    /// The port that the server listens on: a number, or `auto` for a free one. Default: the port of
    /// `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"auto")]
    pub port: Option<Port>,
    /// The working directory of the command, relative to the plan's folder. Default: the plan's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "../deploy")]
    pub folder: Option<String>,
    /// Environment variables that affect the server's speed. They are part of a run's identity; a secret is
    /// represented by its reference.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(with = "IndexMap<String, TextOrSecret>")]
    #[schemars(example = serde_json::json!({ "VLLM_USE_V1": "1", "HF_TOKEN": { "secret": "env:HF_TOKEN" } }))]
    pub env: Table<TextOrSecret>,
    /// Environment variables specific to this host, like devices and paths: not part of a run's
    /// identity.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(with = "IndexMap<String, TextOrSecret>")]
    #[schemars(example = serde_json::json!({ "CUDA_VISIBLE_DEVICES": "0,1" }))]
    pub host_env: Table<TextOrSecret>,
    /// How the server is stopped. Default: TERM to its process group, KILL after 30s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
}

impl Launch {
    /// Default time that a launched server may take to become ready, including the time to load the model.
    pub const READY_WITHIN: Nanos = Nanos::from_secs(15 * 60);

    /// How long the server has to exit before it is killed.
    pub fn stop_within(&self) -> Nanos {
        self.stop.as_ref().and_then(|stop| stop.within).unwrap_or(Stop::WITHIN)
    }

    /// Every text that may contain a template, each with its path from `launch`.
    pub fn texts(&self) -> Vec<(Vec<Step>, &str)> {
        let stop = self.stop.as_ref().and_then(|stop| stop.command.as_deref()).unwrap_or_default();
        let of_command =
            self.command.iter().enumerate().map(|(index, text)| (vec!["command".into(), index.into()], text));
        let of_stop =
            stop.iter().enumerate().map(|(index, text)| (vec!["stop".into(), "command".into(), index.into()], text));
        let tables = [("env", &self.env), ("host_env", &self.host_env)];
        let variables = tables.into_iter().flat_map(|(field, table)| {
            let texts = table.iter().filter_map(|(name, value)| Some((name.as_str(), value.text()?)));
            texts.map(move |(name, text)| (vec![Step::from(field), Step::from(name)], text))
        });
        of_command.chain(of_stop).map(|(path, text)| (path, text.as_str())).chain(variables).collect()
    }

    /// The references to the secrets that are passed to the server.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretRef> {
        self.env.values().chain(self.host_env.values()).filter_map(TextOrSecret::secret)
    }
}

/// How a launched server is stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// A command that stops the server, for servers that run elsewhere (docker, ssh, kubectl). The rest
    /// of the process group gets TERM afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = serde_json::json!(["docker", "stop", "bench"]))]
    pub command: Option<Vec<String>>,
    /// How long the server has to exit before its process group is killed. Default 30s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "30s"), example = "60s")]
    pub within: Option<Nanos>,
}

impl Stop {
    /// Default time that a server has to exit.
    pub const WITHIN: Nanos = Nanos::from_secs(30);
}

/// The port of a launched server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// A port that is free when the server is started.
    Auto,
    /// This port.
    Fixed(u16),
}

const PORT_WANTED: &str = "a port from 1 to 65535, or auto";

impl Serialize for Port {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Port::Auto => serializer.serialize_str("auto"),
            Port::Fixed(port) => serializer.serialize_u16(*port),
        }
    }
}

impl<'de> Deserialize<'de> for Port {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = Port;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(PORT_WANTED)
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Port, E> {
                let port = u16::try_from(value).ok().filter(|port| *port > 0);
                port.map(Port::Fixed).ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(value), &self))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Port, E> {
                match text {
                    "auto" => Ok(Port::Auto),
                    other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                }
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for Port {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Port".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string", "enum": ["auto"] }, { "type": "integer", "minimum": 1, "maximum": 65535 }] })
    }
}
