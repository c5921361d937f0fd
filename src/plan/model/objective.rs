//! How results are judged: thresholds of the verdict, service level objective, goodput.

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use crate::plan::model::field_schema::above_zero;
use crate::units::{Decimal, Nanos, Share};

/// Thresholds of the verdict, by reason. Fields that are not set keep the defaults in docs/METRICS.md.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Validity {
    /// Share of requests sent late. Default: suspect above 1%, invalid above 10%.
    #[schemars(example = serde_json::json!({ "suspect": "1%", "invalid": "10%" }))]
    pub client_late: Limits,
    /// Share of failed requests. Default: suspect above 1%, invalid above 10%.
    pub errors: Limits,
    /// Share of requests whose output length differs from the requested one. Default: suspect above 1%.
    pub output_length: Limits,
    /// Share of prompt tokens from the prefix cache beyond the reuse that the scenario declares.
    /// Default: suspect above 2%, invalid above 10%.
    pub warm_cache: Limits,
    /// Deviation of the server's count of prompt tokens from sweepline's, beyond the tokens that the chat
    /// template adds to each prompt. Default: suspect above 5%.
    pub prompt_length: Limits,
    /// How much the output rate changed within the window, and by how many percentage points the share of
    /// failures changed; for TTFT, TPOT and E2E, twice this threshold applies. A warm-up that extends into
    /// the window counts too (`warming_up`). Default: suspect above 5%.
    pub unsteady: Limits,
    /// Share of the window in which no stream received data, in pauses that are too long to be explained by
    /// the other gaps of the run. Default: suspect above 1%.
    pub paused: Limits,
}

/// Default thresholds, in percent: above the first, a run is suspect; above the second, it is invalid.
pub type Defaults = (i64, Option<i64>);

impl Validity {
    /// Defaults of `client_late`.
    pub const CLIENT_LATE: Defaults = (1, Some(10));
    /// Defaults of `errors`.
    pub const ERRORS: Defaults = (1, Some(10));
    /// Defaults of `output_length`.
    pub const OUTPUT_LENGTH: Defaults = (1, None);
    /// Defaults of `warm_cache`.
    pub const WARM_CACHE: Defaults = (2, Some(10));
    /// Defaults of `prompt_length`.
    pub const PROMPT_LENGTH: Defaults = (5, None);
    /// Defaults of `unsteady`.
    pub const UNSTEADY: Defaults = (5, None);
    /// Defaults of `paused`.
    pub const PAUSED: Defaults = (1, None);

    /// The effective thresholds, with defaults for thresholds that the plan does not set.
    pub fn explicit(&self) -> Validity {
        Validity {
            client_late: self.client_late.or(Validity::CLIENT_LATE),
            errors: self.errors.or(Validity::ERRORS),
            output_length: self.output_length.or(Validity::OUTPUT_LENGTH),
            warm_cache: self.warm_cache.or(Validity::WARM_CACHE),
            prompt_length: self.prompt_length.or(Validity::PROMPT_LENGTH),
            unsteady: self.unsteady.or(Validity::UNSTEADY),
            paused: self.paused.or(Validity::PAUSED),
        }
    }
}

impl Limits {
    /// These limits, with `defaults` for limits that are not set.
    pub fn or(self, (suspect, invalid): Defaults) -> Limits {
        Limits {
            suspect: self.suspect.or(Some(Share::percent(suspect))),
            invalid: self.invalid.or(invalid.map(Share::percent)),
        }
    }
}

/// The two thresholds for one reason of the verdict.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The run is suspect above this share.
    #[schemars(example = "1%")]
    pub suspect: Option<Share>,
    /// The run is invalid above this share.
    #[schemars(example = "10%")]
    pub invalid: Option<Share>,
}

/// Limits on percentiles of a run's latencies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Slo {
    /// Time to first token, by percentile: { p99: 500ms }.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(schema_with = "crate::plan::model::objective::by_percentile")]
    pub ttft: IndexMap<Percentile, Nanos>,
    /// Inter-token latency, by percentile.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(schema_with = "crate::plan::model::objective::by_percentile")]
    pub itl: IndexMap<Percentile, Nanos>,
    /// Time per output token, by percentile.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(schema_with = "crate::plan::model::objective::by_percentile")]
    pub tpot: IndexMap<Percentile, Nanos>,
    /// End-to-end latency, by percentile.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(schema_with = "crate::plan::model::objective::by_percentile")]
    pub e2e: IndexMap<Percentile, Nanos>,
    /// Maximum cost of a million output tokens, in the currency of `price_per_hour`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    #[schemars(example = 2.5)]
    pub cost_per_million: Option<Decimal>,
}

impl Slo {
    /// Whether the objective sets no limit at all.
    pub fn is_empty(&self) -> bool {
        let Slo { ttft, itl, tpot, e2e, cost_per_million } = self;
        [ttft, itl, tpot, e2e].iter().all(|limits| limits.is_empty()) && cost_per_million.is_none()
    }
}

/// A percentile that is reported.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
pub enum Percentile {
    /// The median.
    #[serde(rename = "p50")]
    P50,
    /// The 75th percentile.
    #[serde(rename = "p75")]
    P75,
    /// The 90th percentile.
    #[serde(rename = "p90")]
    P90,
    /// The 95th percentile.
    #[serde(rename = "p95")]
    P95,
    /// The 99th percentile.
    #[serde(rename = "p99")]
    P99,
    /// The 99.9th percentile.
    #[serde(rename = "p99.9")]
    #[strum(serialize = "p99.9")]
    P999,
}

/// Limits that a single request must meet.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Goodput {
    /// Time to first token.
    #[serde(default)]
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub ttft: Option<Nanos>,
    /// Time per output token.
    #[serde(default)]
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub tpot: Option<Nanos>,
    /// End-to-end latency.
    #[serde(default)]
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub e2e: Option<Nanos>,
}

impl Percentile {
    /// All percentiles, in documentation order.
    pub const ALL: [Percentile; 6] =
        [Percentile::P50, Percentile::P75, Percentile::P90, Percentile::P95, Percentile::P99, Percentile::P999];

    /// The meaning of a limit on this percentile, for editors.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Percentile::P50 => "Maximum of the median.",
            Percentile::P75 => "Maximum for three of four requests.",
            Percentile::P90 => "Maximum for 90 % of the requests.",
            Percentile::P95 => "Maximum for 95 % of the requests.",
            Percentile::P99 => "Maximum for 99 % of the requests.",
            Percentile::P999 => "Maximum for 99.9 % of the requests.",
        }
    }

    /// The name in plans and rows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The schema of the limits on one latency, by percentile.
pub(super) fn by_percentile(generator: &mut SchemaGenerator) -> Schema {
    let limit = above_zero(generator).to_value();
    let limits = Percentile::ALL.map(|percentile| {
        let mut limit = limit.clone();
        limit["description"] = percentile.meaning().into();
        limit["examples"] = json!(["500ms"]);
        (percentile.name().to_owned(), limit)
    });
    json_schema!({
        "type": "object",
        "additionalProperties": false,
        "properties": Map::from_iter(limits),
        "examples": [{ "p99": "500ms" }],
    })
}
