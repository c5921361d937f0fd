//! How the arrivals of an open loop are spaced, and how their rate changes over the run: `arrivals:` of
//! a sweep.
//!
//! A word (`poisson`, `gamma cv 2`) names only the process, and may be a value of an axis. A table
//! specifies more details.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::plan::model::process::{Gamma, GammaLong, Process, words_schema};
use crate::plan::model::profile::{Bursts, Point, Profile, Ramp, RateShape, Step};
use crate::units::{Decimal, Forms};

/// How the arrivals of an open loop are spaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Arrivals {
    /// How gaps are drawn.
    pub process: Process,
    /// How the rate changes; `None` if it stays at `qps`.
    pub profile: Option<Arc<Profile>>,
}

impl Arrivals {
    /// A one-line label for tables: `poisson`, `gamma cv 2`, `bursts 10s on, 20s off`.
    pub fn label(&self) -> String {
        match (&self.profile, self.process) {
            (None, process) => process.to_string(),
            (Some(profile), Process::Poisson) => profile.label(),
            (Some(profile), process) => format!("{}, {process}", profile.label()),
        }
    }

    /// The highest rate of a profile that is written in requests per second and therefore defines the
    /// rate itself.
    pub fn own_rate(&self) -> Option<Decimal> {
        self.profile.as_ref()?.own_rate()
    }
}

impl From<Process> for Arrivals {
    fn from(process: Process) -> Arrivals {
        Arrivals { process, profile: None }
    }
}

/// How arrivals are spaced, as a table: `gamma`, or one profile.
#[serde_with::skip_serializing_none]
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Arrivals", transform = one_of_them)]
struct Long {
    /// Gaps drawn from a gamma distribution, at the rate of `qps`.
    #[serde(default)]
    #[schemars(with = "Option<GammaLong>", example = serde_json::json!({ "cv": 2 }))]
    gamma: Option<Gamma>,
    /// One linear change of the rate, from the start of the measure window.
    #[schemars(example = serde_json::json!({ "from": 1, "to": 20, "over": "5m" }))]
    ramp: Option<Ramp>,
    /// Stepwise changes of the rate, from the start of the measure window.
    #[schemars(length(min = 1, max = 1000), example = serde_json::json!([{ "qps": 2, "for": "30s" }, { "qps": 8, "for": "30s" }]))]
    steps: Option<Vec<Step>>,
    /// Alternating bursts and pauses, with `qps` as the mean rate.
    #[schemars(example = serde_json::json!({ "on": "10s", "off": "20s" }))]
    bursts: Option<Bursts>,
    /// The rate at points in time of the measure window, with linear interpolation between them.
    #[schemars(length(min = 2, max = 10000), example = serde_json::json!([["0s", 1], ["60s", 5]]))]
    curve: Option<Vec<Point>>,
    /// How arrivals are drawn within a profile. Default: poisson.
    #[schemars(extend("default" = "poisson"))]
    process: Option<Process>,
    /// Restart a profile when it has ended; otherwise its last rate stays. Bursts always repeat.
    #[schemars(extend("default" = false))]
    repeat: Option<bool>,
}

/// The fields of which exactly one must be present.
const KINDS: [&str; 5] = ["gamma", "ramp", "steps", "bursts", "curve"];

/// Adds the rules enforced by [`Long`] to the schema: exactly one of the kinds, and the fields that
/// belong to it.
fn one_of_them(schema: &mut Schema) {
    let alone = KINDS.map(|kind| match kind {
        "gamma" => serde_json::json!({ "required": [kind], "maxProperties": 1 }),
        "bursts" => serde_json::json!({ "required": [kind], "not": { "required": ["repeat"] } }),
        _ => serde_json::json!({ "required": [kind] }),
    });
    schema.insert("oneOf".to_owned(), alone.to_vec().into());
}

impl Long {
    fn kinds(&self) -> Vec<&'static str> {
        let Long { gamma, ramp, steps, bursts, curve, process: _, repeat: _ } = self;
        let given = [gamma.is_some(), ramp.is_some(), steps.is_some(), bursts.is_some(), curve.is_some()];
        KINDS.into_iter().zip(given).filter(|(_, given)| *given).map(|(kind, _)| kind).collect()
    }

    fn arrivals(self) -> Result<Arrivals, String> {
        match self.kinds()[..] {
            [] => {
                return Err("`arrivals` is empty: write poisson, constant or a table with one of gamma, ramp, \
                            steps, bursts and curve"
                    .to_owned());
            }
            [first, second, ..] => {
                return Err(format!("`arrivals` has both `{first}` and `{second}`: keep one of them"));
            }
            _ => {}
        }
        let repeats = self.repeat == Some(true);
        let shape = match self {
            Long { gamma: Some(_), process: Some(_), .. } => {
                return Err("`gamma` is a process itself: remove `process`".to_owned());
            }
            Long { gamma: Some(_), repeat: Some(_), .. } => {
                return Err("`gamma` has no end, so it cannot repeat: remove `repeat`".to_owned());
            }
            Long { bursts: Some(_), repeat: Some(_), .. } => {
                return Err("bursts always repeat: remove `repeat`".to_owned());
            }
            Long { gamma: Some(gamma), .. } => return Ok(Process::Gamma(gamma).into()),
            Long { ramp: Some(ramp), .. } => RateShape::Ramp(ramp),
            Long { steps: Some(steps), .. } => RateShape::Steps(steps),
            Long { bursts: Some(bursts), .. } => RateShape::Bursts(bursts),
            Long { curve, .. } => RateShape::Curve(curve.unwrap_or_default()),
        };
        let profile = Some(Arc::new(Profile { shape, repeats }));
        Ok(Arrivals { process: self.process.unwrap_or_default(), profile })
    }

    fn of(arrivals: &Arrivals) -> Long {
        let mut long = Long::default();
        let Some(profile) = &arrivals.profile else {
            if let Process::Gamma(gamma) = arrivals.process {
                long.gamma = Some(gamma);
            }
            return long;
        };
        match profile.shape.clone() {
            RateShape::Ramp(ramp) => long.ramp = Some(ramp),
            RateShape::Steps(steps) => long.steps = Some(steps),
            RateShape::Bursts(bursts) => long.bursts = Some(bursts),
            RateShape::Curve(points) => long.curve = Some(points),
        }
        long.process = (arrivals.process != Process::default()).then_some(arrivals.process);
        long.repeat = profile.repeats.then_some(true);
        long
    }
}

impl<'de> Deserialize<'de> for Arrivals {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("poisson, constant, or a table like { gamma: { cv: 2 } } or { bursts: { on: 10s, off: 20s } }")
            .text(|text| Ok(text.parse::<Process>()?.into()))
            .table(Long::arrivals)
            .read(deserializer)
    }
}

impl Serialize for Arrivals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (&self.profile, self.process) {
            (None, word @ (Process::Poisson | Process::Constant)) => serializer.serialize_str(word.name()),
            _ => Long::of(self).serialize(serializer),
        }
    }
}

impl JsonSchema for Arrivals {
    fn schema_name() -> Cow<'static, str> {
        "ArrivalsOrWord".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [words_schema(), generator.subschema_for::<Long>()] })
    }
}
