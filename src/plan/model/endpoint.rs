//! A server under test: its address, the software that runs there, and its declared facts.

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::plan::model::access::{Access, Tls};
use crate::plan::model::engine::Engine;
use crate::plan::model::error_policy::ErrorPolicy;
use crate::plan::model::extra::json::Json;
use crate::plan::model::hardware::Hardware;
use crate::plan::model::hooks::{Hooks, Reset};
use crate::plan::model::http::Http;
use crate::plan::model::launch::{Launch, Port};
use crate::plan::model::mock_figures::MockFigures;
use crate::plan::model::ready::Ready;
use crate::plan::model::resources::Resources;
use crate::plan::model::retries::Retries;
use crate::plan::model::scalar::Fact;
use crate::plan::model::table::Table;
use crate::plan::model::telemetry::Telemetry;
use crate::plan::model::text_or_secret::TextOrSecret;
use crate::plan::text::secret::SecretRef;
use crate::protocol::Api;
use crate::units::Nanos;

/// A server under test: a `url`, one that sweepline launches (`launch`), or the embedded mock (`engine: mock`).
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = crate::plan::model::endpoint::one_server)]
pub struct Endpoint {
    /// Base address of the OpenAI-compatible API, like http://127.0.0.1:8000/v1. With `launch`, the address
    /// at which the server will listen; default: http://127.0.0.1 with the port of `launch`. Absent for the
    /// embedded mock.
    #[serde(default)]
    #[schemars(schema_with = "crate::plan::model::field_schema::url")]
    pub url: Option<String>,
    /// The inference engine at this address. It determines which extensions are sent, such as ignore_eos.
    #[serde(default)]
    pub engine: Engine,
    /// The API to call.
    #[serde(default)]
    pub api: Api,
    /// The API key, as a reference: { secret: env:VLLM_API_KEY }, { secret: file:key.txt }, or a command that prints a
    /// token. Never the key itself.
    #[schemars(example = serde_json::json!({ "secret": "env:VLLM_API_KEY" }))]
    pub api_key: Option<SecretRef>,
    /// The hardware the server runs on.
    pub hardware: Option<Hardware>,
    /// Facts about the running server that affect its speed. The well-known facts are `version`,
    /// `tensor_parallel`, `pipeline_parallel`, `attention_backend`, `scheduler` and `flags`; others are
    /// allowed too. Every fact is part of a run's identity.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(schema_with = "crate::plan::model::disclosure::server_schema")]
    pub server: Table<Fact>,
    /// How the server is started for the runs that need it, and stopped after them. A `server` axis of a
    /// matrix starts it with several settings.
    #[schemars(example = serde_json::json!({ "command": ["vllm", "serve", "{{ model.id }}", "--port", "{{ port }}", "{{ server.args }}"], "port": "auto" }))]
    pub launch: Option<Launch>,
    /// State of the server to reset before every run: `prefix_cache` by the engine's own request,
    /// `restart` by stopping and launching the server again. Part of a run's identity.
    #[schemars(example = &"prefix_cache")]
    pub reset: Option<Reset>,
    /// Requests to send and commands to run before and after runs and cells, outside the measured time.
    #[serde(default, skip_serializing_if = "Hooks::is_empty")]
    #[schemars(example = serde_json::json!({ "before_run": { "request": "POST /reset_prefix_cache" }, "after_cell": { "command": ["./collect.sh", "{{ model.id }}"] } }))]
    pub hooks: Hooks,
    /// When the server is ready, and how long a sweep waits for it. Does not affect measurements, so
    /// existing results stay valid.
    #[schemars(example = serde_json::json!({ "path": "/health", "within": "15m" }))]
    pub ready: Option<Ready>,
    /// A resource that the endpoint shares with others: runs on one resource never overlap. Default: its
    /// server, which endpoints with the same scheme, host and port share; an embedded mock shares
    /// nothing.
    #[schemars(example = "node-a")]
    pub resource: Option<String>,
    /// The embedded mock's behavior; only with `engine: mock` and without `url`.
    pub mock: Option<MockFigures>,
    /// Set to true to accept any TLS certificate of this endpoint. Explain why in `notes`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub insecure_tls: bool,
    /// The name of the server, as sent to it (SNI and `Host`) and as its certificate must state it, while
    /// `url` contains the IP address of a gateway. It may have a port, which is only sent. Not part of a run's
    /// identity.
    #[schemars(example = "gateway.example")]
    pub host: Option<String>,
    /// The certificates to trust instead of the system's, and the client's own certificate. Not part of a
    /// run's identity.
    #[schemars(example = serde_json::json!({ "ca": "certs/ca.pem", "certificate": "certs/client.pem", "key": "certs/client.key" }))]
    pub tls: Option<Tls>,
    /// The HTTP proxy through which the server is reached; the proxies of the environment are ignored. An
    /// address with a password must be a reference: { secret: env:NAME }. Not part of a run's identity.
    #[schemars(example = "http://proxy.example:3128")]
    pub proxy: Option<TextOrSecret>,
    /// The path of the Unix socket on which the server listens, absolute or relative to the plan's folder.
    /// `url` then states only the scheme, the `Host` header and the path of the API. Not part of a run's
    /// identity.
    #[schemars(example = "/run/vllm.sock")]
    pub socket: Option<String>,
    /// HTTP version of measured requests: 1.1, or 2 with an optional limit on requests per connection.
    /// Default 1.1.
    #[schemars(extend("default" = 1.1), example = serde_json::json!({ "version": 2, "streams": 64 }))]
    pub http: Option<Http>,
    /// Whether the client runs on the same host or in the same rack as the server. The network times that the
    /// probe measures are checked against this. Not part of a run's identity.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub near: bool,
    /// Metrics of the server and its hardware to scrape during runs: pages in the Prometheus text
    /// format. `on` is /metrics of the endpoint's own server. Not part of a run's identity. Default:
    /// nothing.
    #[schemars(example = serde_json::json!({ "prometheus": ["on", "http://127.0.0.1:9400/metrics"], "every": "1s" }))]
    pub telemetry: Option<Telemetry>,
    /// Resources of the cluster job that measures the runs of this endpoint; only `submit` uses them. Not part of
    /// a run's identity.
    #[schemars(example = serde_json::json!({ "gpus": 8, "memory": "200GB", "time": "4h", "partition": "h100" }))]
    pub resources: Option<Resources>,
    /// How often a run that the environment spoiled is retried before it is given up. Default { runs: 3 }.
    #[schemars(example = serde_json::json!({ "runs": 10 }))]
    pub retries: Option<Retries>,
    /// How to treat a server that is unavailable or rejects load with 429: `environment` ends the
    /// attempt and commits none of it, `measured` counts every error as a measurement. Default:
    /// environment. Not part of a run's identity.
    #[schemars(extend("default" = "environment"), example = &"measured")]
    pub errors: Option<ErrorPolicy>,
    /// Headers that all requests to this endpoint carry, by name: a string, or { secret: env:NAME }. A
    /// scenario's headers override them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(with = "IndexMap<String, TextOrSecret>")]
    #[schemars(example = serde_json::json!({ "X-Tenant": "bench", "X-Gateway-Key": { "secret": "env:GATEWAY_KEY" } }))]
    pub headers: Table<TextOrSecret>,
    /// Fields that every request to this endpoint carries in its body, sent unchanged: for fields that
    /// this server accepts and sweepline does not know. A scenario's `extra` overrides them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(with = "crate::plan::model::extra::schema::Fields", example = serde_json::json!({ "route": "pool-a" }))]
    pub extra: Table<Json>,
}

impl Endpoint {
    /// How long a sweep waits for the server: in total, or after each start of a launched server.
    pub fn ready_within(&self) -> Nanos {
        let default = if self.launch.is_some() { Launch::READY_WITHIN } else { Ready::WITHIN };
        self.ready.as_ref().and_then(|ready| ready.within).unwrap_or(default)
    }

    /// Whether the endpoint is the embedded mock.
    pub fn is_embedded(&self) -> bool {
        self.engine == Engine::Mock && self.url.is_none() && self.launch.is_none()
    }

    /// How clients reach the endpoint's server, beyond its address. The embedded mock is reached directly.
    pub fn access(&self) -> Access {
        if self.is_embedded() {
            return Access::default();
        }
        Access {
            host: self.host.clone(),
            socket: self.socket.clone(),
            proxy: self.proxy.clone(),
            tls: self.tls.clone(),
            insecure_tls: self.insecure_tls,
        }
    }

    /// Whether the server runs independently of sweepline: neither launched nor embedded.
    pub fn is_served_elsewhere(&self) -> bool {
        self.url.is_some() && self.launch.is_none()
    }

    /// The port on which a launched server listens, if the plan sets it.
    pub fn launch_port(&self) -> Option<u16> {
        match self.launch.as_ref()?.port {
            Some(Port::Fixed(port)) => Some(port),
            Some(Port::Auto) => None,
            None => reqwest::Url::parse(self.url.as_deref()?).ok()?.port_or_known_default(),
        }
    }

    /// The address of a launched server that listens on `port`; `None` if `url` is not an address.
    pub fn launched_url(&self, port: u16) -> Option<String> {
        let Some(url) = &self.url else { return Some(format!("http://127.0.0.1:{port}/v1")) };
        let mut url = reqwest::Url::parse(url).ok()?;
        url.set_port(Some(port)).ok()?;
        Some(url.to_string().trim_end_matches('/').to_owned())
    }

    /// The path that reports whether the server is ready, if there is one.
    pub fn ready_path(&self) -> Option<String> {
        self.ready.as_ref()?.path.clone()
    }

    /// How often to retry a run that the environment spoiled.
    pub fn retries(&self) -> u32 {
        self.retries.unwrap_or_default().runs
    }
}

/// Requires `url`, `launch` or the embedded mock, and allows `mock` only for the embedded mock.
pub(super) fn one_server(schema: &mut Schema) {
    let mock = json!({ "pattern": r"^mock$|\{\{" });
    let embedded = json!({ "required": ["engine"], "properties": { "engine": mock } });
    schema.insert("anyOf".to_owned(), json!([{ "required": ["url"] }, { "required": ["launch"] }, embedded]));
    schema.insert("if".to_owned(), json!({ "required": ["mock"] }));
    schema.insert("then".to_owned(), json!({ "allOf": [embedded, { "not": { "required": ["url"] } }] }));
}
