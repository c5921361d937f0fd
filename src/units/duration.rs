//! Durations, and time per token.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use serde_with::SerializeDisplay;

use super::{Decimal, Forms, UnitError};

/// A duration, or a time in nanoseconds since a run's start. It is written with a unit (`120s`,
/// `1m30s`, `2.5ms`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay)]
pub struct Nanos(pub u64);

/// The units of a duration, largest first, in nanoseconds.
const UNITS: [(&str, u64); 7] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];

impl Nanos {
    /// The zero duration.
    pub const ZERO: Nanos = Nanos(0);

    /// Converts whole seconds to a duration.
    pub const fn from_secs(seconds: u64) -> Nanos {
        Nanos(seconds * 1_000_000_000)
    }

    /// Converts whole milliseconds to a duration.
    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis * 1_000_000)
    }

    /// Returns the duration in seconds as a float, for arithmetic on measured values; never used for
    /// identity.
    pub fn secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the duration in milliseconds as a float, for display.
    pub fn millis(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns `self + other`, saturating at the largest value.
    pub fn saturating_add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }

    /// Returns `self - other`, saturating at zero.
    pub fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl From<Nanos> for std::time::Duration {
    fn from(value: Nanos) -> Self {
        std::time::Duration::from_nanos(value.0)
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(value: std::time::Duration) -> Self {
        Nanos(u64::try_from(value.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Suggests the correct form of a duration like `2 minutes`, `30 sec` or `10S`; `None` if the unit is not
/// recognized.
fn meant(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
    let unit = match unit.trim() {
        "h" | "hr" | "hrs" | "hour" | "hours" => "h",
        "m" | "min" | "mins" | "minute" | "minutes" => "m",
        "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => "ms",
        "us" | "usec" | "microsecond" | "microseconds" => "us",
        _ => return None,
    };
    number.parse::<f64>().ok().map(|_| format!("{number}{unit}"))
}

impl FromStr for Nanos {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = || match meant(text) {
            Some(meant) => UnitError(format!("`{text}` is not a duration: did you mean `{meant}`?")),
            None => {
                UnitError(format!("`{text}` is not a duration: write a number and a unit, like 120s, 1m30s or 250ms"))
            }
        };
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(wrong());
        }
        let mut total: u128 = 0;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let (number, tail) = rest.split_at(digits);
            let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(letters);
            if unit.is_empty() {
                return Err(UnitError(format!(
                    "`{text}` has no unit: write {text}s for seconds or {text}ms for milliseconds"
                )));
            }
            let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(wrong)?;
            let number: Decimal = number.parse().map_err(|_| wrong())?;
            total += number.scaled(*scale).ok_or_else(|| {
                UnitError(format!("`{text}` is finer than a nanosecond or longer than five centuries"))
            })? as u128;
            rest = tail;
        }
        u64::try_from(total).map(Nanos).map_err(|_| UnitError(format!("`{text}` is longer than five centuries")))
    }
}

impl Nanos {
    /// Formats the duration for a sentence. A second or more that is not a whole number of seconds is
    /// formatted in seconds (`1.4s` instead of `1400ms`); any other duration as in a plan.
    pub fn spoken(self) -> String {
        let written = self.to_string();
        if self.0 < 1_000_000_000 || !["ms", "us", "ns"].iter().any(|unit| written.ends_with(unit)) {
            return written;
        }
        let seconds = format!("{:.3}", self.secs());
        format!("{}s", seconds.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl fmt::Display for Nanos {
    /// Formats the duration in its shortest exact form with a single unit: `120s`, `1500ms`, `2m`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.pad("0s");
        }
        let (name, scale) = UNITS
            .iter()
            .filter(|(name, _)| *name != "µs")
            .find(|(_, scale)| self.0.is_multiple_of(*scale))
            .expect("1 divides every value");
        f.pad(&format!("{}{}", self.0 / scale, name))
    }
}

impl<'de> Deserialize<'de> for Nanos {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = Nanos;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with a unit, like 120s, 1m30s or 250ms")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Nanos, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Nanos, E> {
                Err(no_unit(value))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Nanos, E> {
                Err(no_unit(value))
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Nanos, E> {
                Err(no_unit(value))
            }
        }
        fn no_unit<E: de::Error>(value: impl fmt::Display) -> E {
            E::custom(format!("a duration needs a unit: write {value}s for seconds or {value}ms for milliseconds"))
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for Nanos {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A duration with a unit: h, m, s, ms, us or ns.",
            "pattern": r"^\s*([0-9]+(\.[0-9]+)?\s*(h|m|s|ms|us|µs|ns)\s*)+$",
            "patternErrorMessage": "write a duration with its unit, like 120s, 1m30s or 250ms",
            "examples": ["120s", "1m30s", "250ms"],
        })
    }
}

/// Time per token, written `0.1ms/token`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay)]
pub struct PerToken(pub Nanos);

impl FromStr for PerToken {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let time = text
            .trim()
            .strip_suffix("/token")
            .ok_or_else(|| UnitError(format!("`{text}` is not a time per token: write it like 0.1ms/token")))?;
        time.parse().map(PerToken)
    }
}

impl fmt::Display for PerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/token", self.0))
    }
}

impl<'de> Deserialize<'de> for PerToken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("a time per token, like 0.1ms/token").parsed().read(deserializer)
    }
}

impl JsonSchema for PerToken {
    fn schema_name() -> Cow<'static, str> {
        "TimePerToken".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A time per token.",
            "pattern": r"^\s*([0-9]+(\.[0-9]+)?\s*(h|m|s|ms|us|µs|ns)\s*)+/token\s*$",
            "patternErrorMessage": "write a time per token, like 0.1ms/token",
            "examples": ["0.1ms/token"],
        })
    }
}
