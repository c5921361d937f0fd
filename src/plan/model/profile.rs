//! How the rate of an open loop changes over a run: what a sweep's `arrivals:` says of it.
//!
//! Rates are requests per second, or shares of `qps`, never both in one profile. A profile in requests per second brings
//! its own rate, and no `qps` stands beside it; one in shares scales with the `qps` axis.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::plan::model::scalar::Scalar;
use crate::units::{Decimal, Forms, Nanos, Share, UnitError, is_default};

/// How the rate changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Profile {
    /// In which way.
    pub shape: RateShape,
    /// Whether it begins again when it has ended; bursts always do. Otherwise its last rate stays.
    pub repeats: bool,
}

/// In which way the rate changes, from the beginning of the measure window.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RateShape {
    /// Linearly, once.
    Ramp(Ramp),
    /// In steps.
    Steps(Vec<Step>),
    /// Bursts and pauses in turn; the mean is `qps`.
    Bursts(Bursts),
    /// Linearly between points.
    Curve(Vec<Point>),
}

/// The rate changes linearly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    /// The rate at the beginning of the window, and in fill and stabilize before it.
    #[schemars(example = 1)]
    pub from: Rate,
    /// The rate at the end of the ramp, and after it.
    #[schemars(example = 20)]
    pub to: Rate,
    /// How long it takes.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero", example = &"5m")]
    pub over: Nanos,
}

/// One rate for some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The rate in this step.
    #[schemars(example = 2)]
    pub qps: Rate,
    /// How long it stays.
    #[serde(rename = "for")]
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero", example = &"30s")]
    pub duration: Nanos,
}

/// Bursts and pauses in turn. `qps` is the mean of both, so that bursts of one `qps` offer as much as a steady load does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// How long a burst lasts.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero", example = &"10s")]
    pub on: Nanos,
    /// How long the pause after it lasts.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero", example = &"20s")]
    pub off: Nanos,
    /// The rate in pauses as a share of `qps`. Default 0%.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "0%"), example = &"10%")]
    pub low: Share,
}

impl Bursts {
    /// Rate of a burst, as a factor of `qps`: what the pauses leave to it.
    pub fn high(&self) -> f64 {
        let (on, off) = (self.on.secs(), self.off.secs());
        (on + off * (1.0 - self.low.to_f64())) / on
    }
}

/// The rate at an instant, counted from the beginning of the window: [60s, 5].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Point(pub Nanos, pub Rate);

/// A list of two. What is wrong in it is told of the point as a whole: without its instant the rate would be read as one.
struct PointVisitor;

impl<'de> Visitor<'de> for PointVisitor {
    type Value = Point;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a point of a curve, like [60s, 5]")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Point, A::Error> {
        let length = || de::Error::custom("a point of a curve is an instant and the rate then: write it like [60s, 5]");
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
            "description": "An instant of the window, and the rate then.",
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
    /// A share of `qps`; more than all of it is possible.
    OfQps(Share),
}

/// The largest rates: of requests per second as for `qps`, and of shares.
pub(crate) const MOST_PER_SECOND: u32 = 1_000_000;
/// A hundred times `qps`.
const MOST_SHARE: u32 = 100;

impl Rate {
    /// Its number: requests per second, or a factor of `qps`.
    fn number(self) -> Decimal {
        match self {
            Rate::PerSecond(rate) => rate,
            Rate::OfQps(Share(share)) => share,
        }
    }

    /// What it must be, where it is outside its range.
    pub(crate) fn out_of_range(self) -> Option<&'static str> {
        let (most, wanted) = match self {
            Rate::PerSecond(_) => (MOST_PER_SECOND, "a number of requests per second from 0 to 1000000"),
            Rate::OfQps(_) => (MOST_SHARE, "a share of `qps` from 0% to 10000%"),
        };
        (!(Decimal::default()..=Decimal::from(most)).contains(&self.number())).then_some(wanted)
    }

    /// Whether there is load at all.
    pub(crate) fn is_positive(self) -> bool {
        self.number().is_positive()
    }

    /// Requests per second, where `qps` is this.
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
        let what = format!("`{text}` is no rate of a profile");
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
    /// Its rates in the order in which they are written; bursts have none of their own.
    pub(crate) fn rates(&self) -> Vec<Rate> {
        match &self.shape {
            RateShape::Ramp(Ramp { from, to, .. }) => vec![*from, *to],
            RateShape::Steps(steps) => steps.iter().map(|step| step.qps).collect(),
            RateShape::Bursts(_) => Vec::new(),
            RateShape::Curve(points) => points.iter().map(|point| point.1).collect(),
        }
    }

    /// The highest of its rates, where they are requests per second.
    pub fn own_rate(&self) -> Option<Decimal> {
        let own = |rate: &Rate| match rate {
            Rate::PerSecond(rate) => Some(*rate),
            Rate::OfQps(_) => None,
        };
        self.rates().iter().filter_map(own).max()
    }

    /// How long it takes until it has ended or begins again.
    pub fn length(&self) -> Nanos {
        match &self.shape {
            RateShape::Ramp(ramp) => ramp.over,
            RateShape::Steps(steps) => steps.iter().fold(Nanos::ZERO, |sum, step| sum.saturating_add(step.duration)),
            RateShape::Bursts(bursts) => bursts.on.saturating_add(bursts.off),
            RateShape::Curve(points) => points.last().map_or(Nanos::ZERO, |point| point.0),
        }
    }

    /// Whether it begins again when it has ended.
    pub fn goes_on(&self) -> bool {
        self.repeats || matches!(self.shape, RateShape::Bursts(_))
    }

    /// In one line, as a table shows it: `ramp 1 to 20 over 5m`.
    pub fn label(&self) -> String {
        let again = if self.repeats { ", again and again" } else { "" };
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
    /// In full: what identity hashes and `why` prints. Another text for the same profile would change every id with one.
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
