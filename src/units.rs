//! The words that cross modules: durations, exact decimals, seeds, shares. No bare number passes from one
//! module to another where one of these says what it means.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A duration, or an instant as nanoseconds since a run's start. Written with a unit (`120s`, `1m30s`, `2.5ms`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// The units a duration may carry, largest first, in nanoseconds.
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

    /// Whole seconds as a duration.
    pub const fn from_secs(seconds: u64) -> Nanos {
        Nanos(seconds * 1_000_000_000)
    }

    /// Whole milliseconds as a duration.
    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis * 1_000_000)
    }

    /// Seconds as a float, for arithmetic on measured values; never for identity.
    pub fn secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Milliseconds as a float, for display.
    pub fn millis(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// `self + other`, stopping at the largest value.
    pub fn saturating_add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }

    /// `self - other`, stopping at zero.
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

/// Why a text is not a unit value; the message names the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(pub String);

impl FromStr for Nanos {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong =
            || UnitError(format!("`{text}` is not a duration: write a number and a unit, like 120s, 1m30s or 250ms"));
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

impl fmt::Display for Nanos {
    /// The shortest exact form with one unit: `120s`, `1500ms`, `2m`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.pad("0s");
        }
        let (name, scale) = UNITS
            .iter()
            .filter(|(name, _)| *name != "µs")
            .find(|(_, scale)| self.0.is_multiple_of(*scale))
            .expect("1 divides all");
        f.pad(&format!("{}{}", self.0 / scale, name))
    }
}

impl Serialize for Nanos {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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
            "pattern": r"^\s*([0-9]+(\.[0-9]+)?(h|m|s|ms|us|µs|ns))+\s*$",
            "examples": ["120s", "1m30s", "250ms"],
        })
    }
}

/// Time for each token, written `0.1ms/token`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

impl Serialize for PerToken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PerToken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor("a time per token, like 0.1ms/token", PhantomData))
    }
}

impl JsonSchema for PerToken {
    fn schema_name() -> Cow<'static, str> {
        "TimePerToken".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A time for each token.",
            "pattern": r"^\s*([0-9]+(\.[0-9]+)?(h|m|s|ms|us|µs|ns))+/token\s*$",
            "examples": ["0.1ms/token"],
        })
    }
}

/// Reads a unit value from text; the first field says what is expected.
struct TextVisitor<T>(&'static str, PhantomData<T>);

impl<T: FromStr<Err = UnitError>> Visitor<'_> for TextVisitor<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// An exact decimal number: `mantissa × 10^-scale`, normalised (no trailing zero). Identity never sees a float.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Decimal {
    mantissa: i64,
    scale: u8,
}

impl Decimal {
    /// `mantissa × 10^-scale`, normalised.
    pub const fn new(mut mantissa: i64, mut scale: u8) -> Decimal {
        while scale > 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        Decimal { mantissa, scale }
    }

    /// The nearest float, for arithmetic on measured values.
    pub fn to_f64(self) -> f64 {
        self.to_string().parse().expect("a decimal is a float")
    }

    /// `(mantissa, scale)`: the number is `mantissa × 10^-scale`. For exact arithmetic.
    pub const fn parts(self) -> (i64, u8) {
        (self.mantissa, self.scale)
    }

    /// Whether the number is above zero.
    pub fn is_positive(self) -> bool {
        self.mantissa > 0
    }

    /// `self × factor` where that is a whole, non-negative number that fits.
    fn scaled(self, factor: u64) -> Option<u64> {
        let product = i128::from(self.mantissa).checked_mul(i128::from(factor))?;
        let divisor = 10i128.checked_pow(u32::from(self.scale))?;
        (product % divisor == 0).then(|| u64::try_from(product / divisor).ok()).flatten()
    }

    /// `self / 100`: the share that a percentage means.
    fn percent(self) -> Decimal {
        Decimal::new(self.mantissa, self.scale + 2)
    }
}

impl From<u32> for Decimal {
    fn from(value: u32) -> Self {
        Decimal::new(i64::from(value), 0)
    }
}

impl FromStr for Decimal {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = || UnitError(format!("`{text}` is not a decimal number of at most 18 digits"));
        let text = text.trim();
        let (body, exponent) = match text.split_once(['e', 'E']) {
            Some((body, exponent)) => (body, exponent.parse::<i32>().map_err(|_| wrong())?),
            None => (text, 0),
        };
        let (whole, fraction) = body.split_once('.').unwrap_or((body, ""));
        let digits_only = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        let unsigned = whole.strip_prefix(['-', '+']).unwrap_or(whole);
        if (unsigned.is_empty() && fraction.is_empty()) || !digits_only(unsigned) || !digits_only(fraction) {
            return Err(wrong());
        }
        let fraction = fraction.trim_end_matches('0');
        let mut mantissa: i64 = format!("{whole}{fraction}").parse().map_err(|_| wrong())?;
        let mut scale = fraction.len() as i32 - exponent;
        while scale < 0 {
            mantissa = mantissa.checked_mul(10).ok_or_else(wrong)?;
            scale += 1;
        }
        let scale = u8::try_from(scale).ok().filter(|scale| *scale <= 30).ok_or_else(wrong)?;
        Ok(Decimal::new(mantissa, scale))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scale == 0 {
            return f.pad(&self.mantissa.to_string());
        }
        let scale = usize::from(self.scale);
        let digits = format!("{:0width$}", self.mantissa.unsigned_abs(), width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let sign = if self.mantissa < 0 { "-" } else { "" };
        f.pad(&format!("{sign}{whole}.{fraction}"))
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let scale = self.scale.max(other.scale);
        let widen =
            |d: &Decimal| i128::from(d.mantissa).saturating_mul(10i128.saturating_pow(u32::from(scale - d.scale)));
        widen(self).cmp(&widen(other))
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.scale == 0 { serializer.serialize_i64(self.mantissa) } else { serializer.serialize_f64(self.to_f64()) }
    }
}

struct DecimalVisitor;

impl Visitor<'_> for DecimalVisitor {
    type Value = Decimal;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Decimal, E> {
        i64::try_from(value).map(|v| Decimal::new(v, 0)).map_err(|_| E::custom(format!("{value} is too large")))
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Decimal, E> {
        Ok(Decimal::new(value, 0))
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Decimal, E> {
        // The shortest text that reads back as this float is what the user wrote, up to 15 digits.
        value.to_string().parse().map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DecimalVisitor)
    }
}

impl JsonSchema for Decimal {
    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number" })
    }
}

/// A share of a whole between 0 and 1, written as a percentage (`1%`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(pub Decimal);

impl Share {
    /// `percent` hundredths.
    pub const fn percent(percent: i64) -> Share {
        Share(Decimal::new(percent, 2))
    }

    /// As a float between 0 and 1.
    pub fn to_f64(self) -> f64 {
        self.0.to_f64()
    }
}

impl FromStr for Share {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let number = text
            .trim()
            .strip_suffix('%')
            .ok_or_else(|| UnitError(format!("`{text}` is not a share: write it in percent, like 1% or 0.5%")))?;
        let share = number.parse::<Decimal>()?.percent();
        if share < Decimal::default() || share > Decimal::new(1, 0) {
            return Err(UnitError(format!("`{text}` is outside 0% to 100%")));
        }
        Ok(Share(share))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decimal { mantissa, scale } = self.0;
        let percent = if scale >= 2 {
            Decimal::new(mantissa, scale - 2)
        } else {
            Decimal::new(mantissa * 10i64.pow(2 - u32::from(scale)), 0)
        };
        f.pad(&format!("{percent}%"))
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor("a share in percent, like 1%", PhantomData))
    }
}

impl JsonSchema for Share {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A share of a whole in percent.",
            "pattern": r"^\s*[0-9]+(\.[0-9]+)?%\s*$",
            "examples": ["1%", "0.5%"],
        })
    }
}

/// What every pseudo-random stream starts from. Streams are ChaCha8 (rand_chacha), so they do not change between releases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Seed(pub u64);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_need_a_unit() {
        assert_eq!("1m30s".parse(), Ok(Nanos::from_secs(90)));
        assert_eq!("2.5ms".parse(), Ok(Nanos(2_500_000)));
        assert!("120".parse::<Nanos>().unwrap_err().0.contains("120s"));
        assert!("0.1ns".parse::<Nanos>().is_err());
        assert!("5 parsecs".parse::<Nanos>().is_err());
    }

    #[test]
    fn decimals_are_exact() {
        let text = |t: &str| t.parse::<Decimal>().unwrap().to_string();
        assert_eq!(text("0.10"), "0.1");
        assert_eq!(text("1e-7"), "0.0000001");
        assert_eq!(text("-0.5"), "-0.5");
        assert_eq!(text("70.6e9"), "70600000000");
        assert!("1.2.3".parse::<Decimal>().is_err());
        assert_eq!("0.5%".parse::<Share>().unwrap().to_string(), "0.5%");
        assert_eq!(Share::percent(10).to_string(), "10%");
    }

    proptest! {
        #[test]
        fn a_duration_prints_as_it_parses(ns in 0u64..u64::MAX / 2) {
            prop_assert_eq!(Nanos(ns).to_string().parse(), Ok(Nanos(ns)));
        }

        #[test]
        fn a_decimal_prints_as_it_parses(mantissa in -1_000_000_000_000i64..1_000_000_000_000, scale in 0u8..12) {
            let decimal = Decimal::new(mantissa, scale);
            prop_assert_eq!(decimal.to_string().parse(), Ok(decimal));
        }

        #[test]
        fn decimals_order_like_numbers(a in -10_000i64..10_000, b in -10_000i64..10_000, s in 0u8..4, t in 0u8..4) {
            let (x, y) = (Decimal::new(a, s), Decimal::new(b, t));
            prop_assert_eq!(x.cmp(&y), x.to_f64().total_cmp(&(y.to_f64() + 0.0)));
        }
    }
}
