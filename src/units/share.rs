//! Shares of a whole, in percent.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::Deserializer;
use serde_with::SerializeDisplay;

use super::{Decimal, Forms, UnitError};

/// A share of a whole between 0 and 1, written as a percentage (`1%`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay)]
pub struct Share(pub Decimal);

impl Share {
    /// The description of the expected form in errors.
    pub const EXPECTED: &str = "a share in percent, like 1%";

    /// Returns `percent` percent as a share.
    pub const fn percent(percent: i64) -> Share {
        Share(Decimal::new(percent, 2))
    }

    /// Returns the share as a float between 0 and 1.
    pub fn to_f64(self) -> f64 {
        self.0.to_f64()
    }
}

impl FromStr for Share {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let number = text.trim().strip_suffix('%').ok_or_else(|| UnitError(unsigned(text)))?;
        let share = number.parse::<Decimal>()?.percent();
        if share < Decimal::default() || share > Decimal::new(1, 0) {
            return Err(UnitError(format!("`{text}` is outside 0% to 100%: write a share between them")));
        }
        Ok(Share(share))
    }
}

/// Returns the error for a text that does not end with a percent sign.
fn unsigned(text: &str) -> String {
    match text.trim().parse::<Decimal>() {
        Ok(number) if number >= Decimal::new(1, 0) => {
            format!("`{text}` is not a share: write {number}%, with the percent sign")
        }
        _ => format!("`{text}` is not a share: write it in percent, like 1% or 0.5%"),
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mantissa, scale) = self.0.parts();
        let percent = if scale >= 2 {
            Decimal::new(mantissa, scale - 2)
        } else {
            Decimal::new(mantissa * 10i64.pow(2 - u32::from(scale)), 0)
        };
        f.pad(&format!("{percent}%"))
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting(Share::EXPECTED).parsed().read(deserializer)
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
            "pattern": r"^\s*(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?)\s*%\s*$",
            "patternErrorMessage": "write a share from 0% to 100%, like 1% or 0.5%",
            "examples": ["1%", "0.5%"],
        })
    }
}
