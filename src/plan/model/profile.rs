//! How the rate of an open loop changes over a run, as written in a sweep's `arrivals:`.
//!
//! Rates are either requests per second or shares of `qps`, never both in one profile. A profile in
//! requests per second defines the rate itself and excludes `qps`. A profile in shares scales with the
//! `qps` axis.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::plan::model::scalar::Scalar;
use crate::units::{Decimal, Forms, Nanos, Share, UnitError, is_default};

/// How the rate of an open loop changes over a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Profile {
    /// The shape of the profile.
    pub shape: RateShape,
    /// Whether the profile restarts when it has ended, which bursts always do. Otherwise, it stays at its
    /// last rate.
    pub repeats: bool,
}

/// The shape of a rate profile, from the start of the measure window.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RateShape {
    /// One linear change.
    Ramp(Ramp),
    /// Constant rates, one after the other.
    Steps(Vec<Step>),
    /// Alternating bursts and pauses, with a mean rate of `qps`.
    Bursts(Bursts),
    /// Linear interpolation between points.
    Curve(Vec<Point>),
}

/// One linear change of the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    /// The rate at the start of the window, and before that in fill and stabilize.
    #[schemars(example = 1)]
    pub from: Rate,
    /// The rate at the end of the ramp, and after it.
    #[schemars(example = 20)]
    pub to: Rate,
    /// Duration of the ramp.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero", example = &"5m")]
    pub over: Nanos,
}

/// A constant rate for some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The rate in this step.
    #[schemars(example = 2)]
    pub qps: Rate,
    /// Duration of the step.
    #[serde(rename = "for")]
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero", example = &"30s")]
    pub duration: Nanos,
}

/// Alternating bursts and pauses. `qps` is their overall mean, so that bursts offer as much load as a
/// steady rate at the same `qps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// Duration of a burst.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero", example = &"10s")]
    pub on: Nanos,
    /// Duration of the pause after a burst.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero", example = &"20s")]
    pub off: Nanos,
    /// The rate in pauses as a share of `qps`. Default 0%.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "0%"), example = &"10%")]
    pub low: Share,
}

impl Bursts {
    /// Rate of a burst as a multiple of `qps`, chosen so that the mean rate, including pauses, equals
    /// `qps`.
    pub fn high(&self) -> f64 {
        let (on, off) = (self.on.secs(), self.off.secs());
        (on + off * (1.0 - self.low.to_f64())) / on
    }
}

/// The rate at a point in time, which is counted from the start of the window: [60s, 5].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Point(pub Nanos, pub Rate);

/// A visitor that reads a point from a list of two values. Errors are reported for the point as a whole,
/// because if the time is missing, the rate would be read as a time.
struct PointVisitor;

impl<'de> Visitor<'de> for PointVisitor {
    type Value = Point;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a point of a curve, like [60s, 5]")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Point, A::Error> {
        let length =
            || de::Error::custom("a point of a curve is a time and the rate at that time: write it like [60s, 5]");
        let instant: Scalar = seq.next_element()?.ok_or_else(length)?;
        let rate: Scalar = seq.next_element()?.ok_or_else(length)?;
        if seq.next_element::<Scalar>()?.is_some() {
            return Err(length());
        }
        let instant: Result<Nanos, UnitError> = instant.to_string().parse();
        let rate = match rate {
            Scalar::Number(rate) => Ok(Rate::PerSecond(rate)),
            other => share_of_qps(&other.to_string()).map_err(de::Error::custom),
        };
        Ok(Point(instant.map_err(|error| de::Error::custom(error.0))?, rate?))
    }
}

impl<'de> Deserialize<'de> for Point {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Point, D::Error> {
        deserializer.deserialize_any(PointVisitor)
    }
}

impl JsonSchema for Point {
    fn schema_name() -> Cow<'static, str> {
        "PointOfCurve".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "description": "A time in the window, and the rate at that time.",
            "prefixItems": [generator.subschema_for::<Nanos>(), generator.subschema_for::<Rate>()],
            "items": false,
            "minItems": 2,
            "maxItems": 2,
            "examples": [["60s", 5]],
        })
    }
}

/// A rate of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Rate {
    /// Requests per second.
    PerSecond(Decimal),
    /// A share of `qps`; more than 100% is allowed.
    OfQps(Share),
}

/// The maximum rate in requests per second, which is the same as for `qps`.
pub(crate) const MOST_PER_SECOND: u32 = 1_000_000;
/// The maximum share, as a multiple of `qps`.
const MOST_SHARE: u32 = 100;

impl Rate {
    /// The number of the rate: requests per second, or a factor of `qps`.
    fn number(self) -> Decimal {
        match self {
            Rate::PerSecond(rate) => rate,
            Rate::OfQps(Share(share)) => share,
        }
    }

    /// The required range, if the rate is outside it.
    pub(crate) fn out_of_range(self) -> Option<&'static str> {
        let (most, wanted) = match self {
            Rate::PerSecond(_) => (MOST_PER_SECOND, "a number of requests per second from 0 to 1000000"),
            Rate::OfQps(_) => (MOST_SHARE, "a share of `qps` from 0% to 10000%"),
        };
        (!(Decimal::default()..=Decimal::from(most)).contains(&self.number())).then_some(wanted)
    }

    /// Whether the rate sends any load.
    pub(crate) fn is_positive(self) -> bool {
        self.number().is_positive()
    }

    /// The rate in requests per second, given `qps`.
    pub fn at(self, qps: f64) -> f64 {
        match self {
            Rate::PerSecond(rate) => rate.to_f64(),
            Rate::OfQps(share) => share.to_f64() * qps,
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate::PerSecond(rate) => fmt::Display::fmt(rate, f),
            Rate::OfQps(share) => fmt::Display::fmt(share, f),
        }
    }
}

fn share_of_qps(text: &str) -> Result<Rate, String> {
    let percent = text.trim().strip_suffix('%').and_then(|number| number.parse::<Decimal>().ok());
    let share = percent.map(|percent| {
        let (mantissa, scale) = percent.parts();
        Rate::OfQps(Share(Decimal::new(mantissa, scale + 2)))
    });
    share.ok_or_else(|| {
        let what = format!("`{text}` is not a rate of a profile");
        format!("{what}: write requests per second, like 5, or a share of `qps`, like 50%")
    })
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("requests per second, like 5, or a share of `qps`, like 50%")
            .number(Rate::PerSecond)
            .text(|text| Ok(share_of_qps(text)?))
            .read(deserializer)
    }
}

impl JsonSchema for Rate {
    fn schema_name() -> Cow<'static, str> {
        "RateOfProfile".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["number", "string"],
            "description": "Requests per second, or a share of qps in percent.",
            "minimum": 0,
            "maximum": MOST_PER_SECOND,
            "pattern": r"^\s*(10000(\.0+)?|[0-9]{1,4}(\.[0-9]+)?)\s*%\s*$",
            "patternErrorMessage": "write requests per second, like 5, or a share of qps, like 50%",
            "examples": [5, "50%"],
        })
    }
}

impl Profile {
    /// The rates of the profile in written order; empty for bursts.
    pub(crate) fn rates(&self) -> Vec<Rate> {
        match &self.shape {
            RateShape::Ramp(Ramp { from, to, .. }) => vec![*from, *to],
            RateShape::Steps(steps) => steps.iter().map(|step| step.qps).collect(),
            RateShape::Bursts(_) => Vec::new(),
            RateShape::Curve(points) => points.iter().map(|point| point.1).collect(),
        }
    }

    /// The highest rate of the profile; `None` if its rates are not in requests per second.
    pub fn own_rate(&self) -> Option<Decimal> {
        let own = |rate: &Rate| match rate {
            Rate::PerSecond(rate) => Some(*rate),
            Rate::OfQps(_) => None,
        };
        self.rates().iter().filter_map(own).max()
    }

    /// Time until the profile ends or restarts.
    pub fn length(&self) -> Nanos {
        match &self.shape {
            RateShape::Ramp(ramp) => ramp.over,
            RateShape::Steps(steps) => steps.iter().fold(Nanos::ZERO, |sum, step| sum.saturating_add(step.duration)),
            RateShape::Bursts(bursts) => bursts.on.saturating_add(bursts.off),
            RateShape::Curve(points) => points.last().map_or(Nanos::ZERO, |point| point.0),
        }
    }

    /// Whether the profile restarts when it has ended.
    pub fn goes_on(&self) -> bool {
        self.repeats || matches!(self.shape, RateShape::Bursts(_))
    }

    /// A one-line label for tables: `ramp 1 to 20 over 5m`.
    pub fn label(&self) -> String {
        let again = if self.repeats { ", repeating" } else { "" };
        let (rates, length) = (self.rates(), self.length());
        let ends = rates.iter().min_by_key(|rate| rate.number()).zip(rates.iter().max_by_key(|rate| rate.number()));
        let (low, high) = ends.unwrap_or((&NOTHING, &NOTHING));
        match &self.shape {
            RateShape::Ramp(Ramp { from, to, .. }) => format!("ramp {from} to {to} over {length}{again}"),
            RateShape::Steps(steps) => format!("{} steps, {low} to {high}, over {length}{again}", steps.len()),
            RateShape::Bursts(Bursts { on, off, low }) if is_default(low) => format!("bursts {on} on, {off} off"),
            RateShape::Bursts(Bursts { on, off, low }) => format!("bursts {on} on, {off} off at {low}"),
            RateShape::Curve(points) => {
                format!("curve of {} points, {low} to {high}, over {length}{again}", points.len())
            }
        }
    }
}

const NOTHING: Rate = Rate::OfQps(Share(Decimal::new(0, 0)));

impl fmt::Display for Profile {
    /// Formats the full content of the profile, which `why` prints and from which a run's id is computed. A
    /// different text for the same profile would change the id of every run with a profile.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shape {
            RateShape::Ramp(Ramp { from, to, over }) => write!(f, "ramp from {from} to {to} over {over}")?,
            RateShape::Steps(steps) => {
                f.write_str("steps")?;
                steps.iter().try_for_each(|Step { qps, duration }| write!(f, " {qps} for {duration}"))?;
            }
            RateShape::Bursts(Bursts { on, off, low }) => write!(f, "bursts on {on} off {off} low {low}")?,
            RateShape::Curve(points) => {
                f.write_str("curve")?;
                points.iter().try_for_each(|Point(at, rate)| write!(f, " {at} {rate}"))?;
            }
        }
        f.write_str(if self.repeats { " repeat" } else { "" })
    }
}
