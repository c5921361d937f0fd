//! Exact decimal numbers.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::UnitError;

/// An exact decimal number: `mantissa × 10^-scale`, normalized (no trailing zero after the point). The
/// identity of a run never involves floats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Decimal {
    mantissa: i64,
    scale: u8,
}

/// Maximum number of digits after the point.
const MOST_SCALE: u8 = 30;

impl Decimal {
    /// Returns `mantissa × 10^-scale`, normalized.
    pub const fn new(mut mantissa: i64, mut scale: u8) -> Decimal {
        while scale > 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        Decimal { mantissa, scale }
    }

    /// Returns the nearest float, for arithmetic on measured values.
    pub fn to_f64(self) -> f64 {
        self.to_string().parse().expect("a decimal parses as a float")
    }

    /// Returns `(mantissa, scale)` for exact arithmetic: the number is `mantissa × 10^-scale`.
    pub const fn parts(self) -> (i64, u8) {
        (self.mantissa, self.scale)
    }

    /// Whether the number is above zero.
    pub fn is_positive(self) -> bool {
        self.mantissa > 0
    }

    /// Returns `self + other`; `None` if the result cannot be represented.
    pub fn checked_add(self, other: Decimal) -> Option<Decimal> {
        let scale = self.scale.max(other.scale);
        Decimal::fitting(self.widened(scale)?.checked_add(other.widened(scale)?)?, scale)
    }

    /// Returns `self × other`; `None` if the result cannot be represented.
    pub fn checked_mul(self, other: Decimal) -> Option<Decimal> {
        let product = i128::from(self.mantissa).checked_mul(i128::from(other.mantissa))?;
        Decimal::fitting(product, self.scale.checked_add(other.scale)?)
    }

    /// Returns this number, truncated to this many significant digits, towards zero.
    pub fn cut_to_digits(self, digits: u32) -> Decimal {
        let (mut mantissa, mut scale, most) = (self.mantissa, self.scale, 10u64.saturating_pow(digits));
        let mut zeros = 0;
        while mantissa.unsigned_abs() >= most {
            mantissa /= 10;
            if scale > 0 { scale -= 1 } else { zeros += 1 }
        }
        Decimal::new(mantissa * 10i64.pow(zeros), scale)
    }

    /// Returns this number, truncated to a whole number, towards zero.
    pub fn cut_to_whole(self) -> Decimal {
        let divisor = 10i128.pow(u32::from(self.scale));
        Decimal::new((i128::from(self.mantissa) / divisor) as i64, 0)
    }

    /// Returns how many times `step`, which must be above zero, fits between `self` and `end`; `None` on
    /// overflow.
    pub(crate) fn steps_to(self, end: Decimal, step: Decimal) -> Option<u128> {
        let scale = self.scale.max(end.scale).max(step.scale);
        let way = end.widened(scale)?.checked_sub(self.widened(scale)?)?;
        u128::try_from(way.checked_div(step.widened(scale)?)?).ok()
    }

    /// Returns the mantissa of this number at a larger `scale`; `None` on overflow.
    fn widened(self, scale: u8) -> Option<i128> {
        i128::from(self.mantissa).checked_mul(10i128.checked_pow(u32::from(scale - self.scale))?)
    }

    /// Returns `mantissa × 10^-scale`, normalized; `None` if that cannot be represented.
    fn fitting(mut mantissa: i128, mut scale: u8) -> Option<Decimal> {
        while scale > 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        (scale <= MOST_SCALE).then_some(())?;
        i64::try_from(mantissa).ok().map(|mantissa| Decimal { mantissa, scale })
    }

    /// Returns `self × factor`; `None` if this is not a whole, non-negative number that fits.
    pub(super) fn scaled(self, factor: u64) -> Option<u64> {
        let product = i128::from(self.mantissa).checked_mul(i128::from(factor))?;
        let divisor = 10i128.checked_pow(u32::from(self.scale))?;
        (product % divisor == 0).then(|| u64::try_from(product / divisor).ok()).flatten()
    }

    /// Returns `self / 100`: the share, if `self` is a percentage.
    pub(super) fn percent(self) -> Decimal {
        Decimal::new(self.mantissa, self.scale + 2)
    }
}

impl From<u32> for Decimal {
    fn from(value: u32) -> Self {
        Decimal::new(i64::from(value), 0)
    }
}

/// Returns a number with a decimal comma as it is written with a point: `0.20` for `0,20`; `None` for any other text.
/// Three digits after the comma may be thousands, unless the number begins with 0.
pub fn with_point(text: &str) -> Option<String> {
    let (whole, fraction) = text.trim().split_once(',')?;
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_fraction = is_digits(fraction) && (fraction.len() != 3 || whole == "0");
    (is_digits(whole) && is_fraction).then(|| format!("{whole}.{fraction}"))
}

impl FromStr for Decimal {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = || match with_point(text) {
            Some(number) => UnitError(format!("`{text}` has a decimal comma: write {number}")),
            None => UnitError(format!("`{text}` is not a decimal number of at most 18 digits")),
        };
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
        let scale = u8::try_from(scale).ok().filter(|scale| *scale <= MOST_SCALE).ok_or_else(wrong)?;
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
        // Up to 15 digits, the shortest text that parses to this float is the text that the user wrote.
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
