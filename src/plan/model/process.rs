//! How the gaps between arrivals of an open loop are drawn.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::plan::diagnostic::suggest;
use crate::units::{Decimal, Forms};

/// How the gaps between arrivals are drawn. For every process, the mean gap is one over the rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Process {
    /// Exponential gaps, as from independent users.
    #[default]
    Poisson,
    /// Equal gaps.
    Constant,
    /// Gaps that are recorded in a trace. Plans cannot contain this value, but runs whose scenario
    /// replays a trace use it.
    Trace,
    /// Gaps of a gamma distribution. Arrivals are more bursty (cv above 1) or less bursty (cv below 1) than
    /// those of independent users.
    Gamma(Gamma),
}

/// The names of processes that need no number.
const WORDS: [&str; 2] = ["poisson", "constant"];

impl Process {
    /// The name in a run's identity.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Coefficient of variation of the gaps: standard deviation over mean.
    pub fn cv(self) -> f64 {
        match self {
            Process::Poisson => 1.0,
            Process::Constant => 0.0,
            // The actual value is in the trace file; here, independent users are the best guess.
            Process::Trace => 1.0,
            Process::Gamma(gamma) => 1.0 / gamma.shape().sqrt(),
        }
    }
}

impl fmt::Display for Process {
    /// Formats the process on one line, as written in a plan: `poisson`, `gamma cv 2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Process::Gamma(Gamma::Cv(cv)) => f.pad(&format!("gamma cv {cv}")),
            Process::Gamma(Gamma::Burstiness(burstiness)) => f.pad(&format!("gamma burstiness {burstiness}")),
            other => f.pad(other.name()),
        }
    }
}

impl FromStr for Process {
    type Err = String;

    fn from_str(text: &str) -> Result<Process, String> {
        let wrong = || match suggest::nearest(text, WORDS) {
            Some(near) => format!("unknown arrival process `{text}`: did you mean `{near}`?"),
            None => format!("unknown arrival process `{text}`: write poisson, constant or gamma cv 2"),
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let (field, number) = match words[..] {
            ["poisson"] => return Ok(Process::Poisson),
            ["constant"] => return Ok(Process::Constant),
            ["gamma"] => {
                return Err("`gamma` needs its burstiness: write gamma cv 2, or gamma burstiness 0.25".to_owned());
            }
            ["gamma", field @ ("cv" | "burstiness"), number] => (field, number),
            _ => return Err(wrong()),
        };
        let number: Decimal = number.parse().map_err(|_| wrong())?;
        let gamma = if field == "cv" { Gamma::Cv(number) } else { Gamma::of_burstiness(number) };
        match gamma.out_of_range() {
            Some((field, wanted, remedy)) => Err(format!("`{field}` must be {wanted}, not {number}: {remedy}")),
            None => Ok(Process::Gamma(gamma)),
        }
    }
}

/// Burstiness of gamma gaps. Both parameters express the same property. `burstiness` is stored as `cv`
/// if the conversion is exact, so that equal runs have the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gamma {
    /// Coefficient of variation of the gaps: standard deviation over mean.
    Cv(Decimal),
    /// Shape of the distribution, 1 / cv²: vLLM's parameter.
    Burstiness(Decimal),
}

impl Gamma {
    /// Creates a value from vLLM's parameter, stored as `cv` if the conversion is exact.
    fn of_burstiness(burstiness: Decimal) -> Gamma {
        let cv = || {
            Gamma::Burstiness(burstiness).out_of_range().is_none().then_some(())?;
            let near = format!("{:.9}", 1.0 / burstiness.to_f64().sqrt());
            let cv: Decimal = near.parse().ok()?;
            (cv.checked_mul(cv)?.checked_mul(burstiness)? == Decimal::from(1)).then_some(cv)
        };
        cv().map_or(Gamma::Burstiness(burstiness), Gamma::Cv)
    }

    /// The value of `cv` or `burstiness`, whichever is set.
    pub(crate) fn number(self) -> Decimal {
        match self {
            Gamma::Cv(number) | Gamma::Burstiness(number) => number,
        }
    }

    /// Shape of the distribution: 1 / cv².
    pub fn shape(self) -> f64 {
        match self {
            Gamma::Cv(cv) => cv.to_f64().powi(-2),
            Gamma::Burstiness(burstiness) => burstiness.to_f64(),
        }
    }

    /// The field, the required range and the remedy, if the number is outside its range. With a cv above the
    /// range, many requests would arrive at the same time; with a cv below it, gaps would be indistinguishable
    /// from equal gaps.
    pub(crate) fn out_of_range(self) -> Option<(&'static str, &'static str, &'static str)> {
        let within =
            |value: Decimal, (low, high): (i64, i64)| (Decimal::new(low, 2)..=Decimal::new(high, 2)).contains(&value);
        match self {
            Gamma::Cv(cv) if !within(cv, (1, 1000)) => Some((
                "cv",
                "a number from 0.01 to 10",
                "write a number from 0.01 to 10; for equal gaps (cv 0), write arrivals: constant",
            )),
            Gamma::Burstiness(shape) if !within(shape, (1, 1_000_000)) => Some((
                "burstiness",
                "a number from 0.01 to 10000",
                "write a number from 0.01 to 10000; 1 is poisson; for equal gaps (inf), write arrivals: constant",
            )),
            _ => None,
        }
    }
}

/// Burstiness of gamma gaps: exactly one of the two parameters.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Gamma", extend("minProperties" = 1, "maxProperties" = 1))]
pub(crate) struct GammaLong {
    /// Coefficient of variation of the gaps: standard deviation over mean. 1 is as bursty as poisson.
    #[schemars(extend("minimum" = 0.01, "maximum" = 10), example = 2)]
    cv: Option<Decimal>,
    /// vLLM's parameter: the shape of the distribution, 1 / cv².
    #[schemars(extend("minimum" = 0.01, "maximum" = 10000), example = 0.25)]
    burstiness: Option<Decimal>,
}

impl<'de> Deserialize<'de> for Gamma {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Gamma, D::Error> {
        let message = match GammaLong::deserialize(deserializer)? {
            GammaLong { cv: Some(cv), burstiness: None } => return Ok(Gamma::Cv(cv)),
            GammaLong { cv: None, burstiness: Some(burstiness) } => return Ok(Gamma::of_burstiness(burstiness)),
            GammaLong { cv: None, burstiness: None } => "`gamma` needs its burstiness: write { gamma: { cv: 2 } }",
            _ => "`cv` and `burstiness` (1 / cv²) are the same parameter: keep one of the two",
        };
        Err(de::Error::custom(message))
    }
}

/// A process, as a table.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Process")]
struct ProcessLong {
    /// Gaps of a gamma distribution.
    #[schemars(with = "GammaLong", example = serde_json::json!({ "cv": 2 }))]
    gamma: Gamma,
}

impl<'de> Deserialize<'de> for Process {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("poisson, constant or { gamma: { cv: 2 } }")
            .parsed()
            .table(|long: ProcessLong| Ok(Process::Gamma(long.gamma)))
            .read(deserializer)
    }
}

/// The one-line forms of a process, for schemas.
pub(crate) fn words_schema() -> Schema {
    json_schema!({
        "type": "string",
        "pattern": r"^\s*(poisson|constant|gamma\s+(cv|burstiness)\s+[0-9]+(\.[0-9]+)?)\s*$",
        "patternErrorMessage": "write poisson, constant or gamma cv 2",
        "examples": ["poisson", "constant", "gamma cv 2"],
    })
}

impl JsonSchema for Process {
    fn schema_name() -> Cow<'static, str> {
        "ProcessOrWord".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [words_schema(), generator.subschema_for::<ProcessLong>()] })
    }
}
