//! Metrics of a server and its hardware that are scraped during its runs. They only observe a run and
//! are not part of its identity.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::plan::model::local_gpus::LocalGpus;
use crate::plan::model::shorthand::OneOrMany;
use crate::plan::model::table::Table;
use crate::telemetry::canonical::CANONICAL;
use crate::telemetry::selector::Selector;
use crate::units::Nanos;

/// Which metrics pages are scraped during runs of an endpoint, and which metrics are kept. `on` alone is
/// the page of the endpoint's own server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// Addresses of pages in the text format of Prometheus or OpenMetrics, such as those of the server, its
    /// replicas, a DCGM exporter or a node exporter. `on` is /metrics of the endpoint's own server, which is
    /// requested with the endpoint's headers and key; other servers get neither. Default: on.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(schema_with = "crate::plan::model::telemetry::pages", extend("default" = "on"))]
    pub prometheus: OneOrMany<String>,
    /// Scrape interval of each page; a scrape that takes longer than the interval, or longer than 5s,
    /// is a gap. Default 1s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "1s"), example = "2s")]
    pub every: Option<Nanos>,
    /// The GPUs of this machine, if the server runs on it and no page reports them. Default: auto if
    /// sweepline starts the server, or if `hardware.network` states that it is on the same host; else
    /// off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"nvml")]
    pub gpus: Option<LocalGpus>,
    /// Metrics whose series are kept unchanged, in addition to the canonical ones. A name also includes the
    /// series with the suffixes `_total`, `_sum`, `_count` and `_bucket`.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(example = serde_json::json!(["vllm:iteration_tokens_total"]))]
    pub raw: OneOrMany<String>,
    /// Canonical series, each with the metric of a page that provides it: `metric` or
    /// `metric{label="value"}`, followed by a factor like ` * 0.001` if its unit differs. Replaces the
    /// built-in source of that series.
    #[serde(default, skip_serializing_if = "Table::is_empty")]
    #[schemars(schema_with = "crate::plan::model::telemetry::map")]
    #[schemars(example = serde_json::json!({ "requests_running": "my_server_active{pool=\"a\"}" }))]
    pub map: Table<String>,
}

impl Telemetry {
    /// The word that stands for the page of the endpoint's own server.
    pub const OWN: &str = "on";
    /// Default scrape interval.
    pub const EVERY: Nanos = Nanos::from_secs(1);
    /// The minimum and maximum interval.
    pub const RANGE: [Nanos; 2] = [Nanos::from_millis(100), Nanos::from_secs(600)];
    /// Maximum number of metrics pages of one endpoint.
    pub const MOST_PAGES: usize = 256;

    /// The scrape interval of each page.
    pub fn every(&self) -> Nanos {
        self.every.unwrap_or(Telemetry::EVERY)
    }

    /// The pages: `on`, or addresses.
    pub fn pages(&self) -> Vec<&str> {
        match self.prometheus.0.as_slice() {
            [] => vec![Telemetry::OWN],
            pages => pages.iter().map(String::as_str).collect(),
        }
    }

    /// The canonical series that the plan's own `map` defines. Invalid entries are skipped, because `check`
    /// reports them.
    pub fn mapped(&self) -> impl Iterator<Item = (&str, Selector)> {
        self.map.iter().filter_map(|(key, selector)| Some((key.as_str(), selector.parse().ok()?)))
    }
}

/// The schema of `prometheus`: addresses of pages, or `on`.
pub(crate) fn pages(_: &mut SchemaGenerator) -> Schema {
    let page = serde_json::json!({
        "type": "string",
        "pattern": r"^on$|^https?://[^/\s]",
        "patternErrorMessage": "write the address of a metrics page, like http://127.0.0.1:9400/metrics, or `on`",
        "examples": ["on", "http://127.0.0.1:9400/metrics"],
    });
    json_schema!({ "anyOf": [page, { "type": "array", "items": page }] })
}

/// The schema of `map`: metrics, each under the name of a canonical series.
pub(crate) fn map(_: &mut SchemaGenerator) -> Schema {
    let metric =
        |doc: &str| serde_json::json!({ "type": "string", "description": doc, "examples": ["my_metric{pool=\"a\"}"] });
    let properties: serde_json::Map<String, serde_json::Value> =
        CANONICAL.iter().map(|series| (series.key.to_owned(), metric(series.doc))).collect();
    json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
}
