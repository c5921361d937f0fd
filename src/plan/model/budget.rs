//! The budget for all runs of a plan together.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::units::{Decimal, Forms, Nanos};

/// The budget for all runs of a plan together, including existing runs. To stay within it, sweeps marked
/// `optional` are skipped, the last declared one first; all other sweeps always run.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Total time of the runs, one after another, as `preview` estimates it.
    #[schemars(example = &"2h")]
    pub time: Option<Nanos>,
    /// Prompt and output tokens, as `preview` estimates them: 20M is 20 million.
    #[schemars(example = &"20M")]
    pub tokens: Option<TokenCount>,
    /// Money at the declared prices, in the plan's currency.
    #[schemars(extend("exclusiveMinimum" = 0), example = 50)]
    pub money: Option<Decimal>,
}

/// A number of tokens: 500000, 500k or 0.5M.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct TokenCount(pub u64);

/// Number suffixes and their factors.
const ENDS: [(char, f64); 3] = [('k', 1e3), ('M', 1e6), ('G', 1e9)];

impl FromStr for TokenCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let end = ENDS.iter().find(|(end, _)| text.ends_with(*end));
        let number: Option<Decimal> =
            text.trim_end_matches(|c| Some(c) == end.map(|(end, _)| *end)).trim_end().parse().ok();
        let count = number.map(|number| number.to_f64() * end.map_or(1.0, |(_, times)| *times));
        let count = count.filter(|count| (0.0..1e18).contains(count));
        count
            .map(|count| TokenCount(count.round() as u64))
            .ok_or_else(|| format!("`{text}` is not a number of tokens: write one like 500k or 20M"))
    }
}

impl fmt::Display for TokenCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl<'de> Deserialize<'de> for TokenCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Negative numbers become 0, which the check of the plan then reports.
        let forms = Forms::expecting("a number of tokens, like 500000, 500k or 20M");
        forms.number(|number: Decimal| TokenCount(number.to_f64().max(0.0).round() as u64)).parsed().read(deserializer)
    }
}

impl JsonSchema for TokenCount {
    fn schema_name() -> Cow<'static, str> {
        "TokenCount".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?[kMG]?$" },
        ] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_counted_in_thousands_and_millions() {
        let read = |text: &str| text.parse::<TokenCount>().map(|count| count.0).ok();
        assert_eq!(
            ["20M", "500k", "0.5M", "1 G", "42"].map(read),
            [Some(20_000_000), Some(500_000), Some(500_000), Some(1_000_000_000), Some(42)]
        );
        assert_eq!(["", "M", "20m", "many"].map(read), [None; 4]);
    }
}
