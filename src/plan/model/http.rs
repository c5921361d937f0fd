//! The HTTP version of measured requests.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use crate::units::Decimal;

/// The HTTP version of measured requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// The version: 1.1, or 2. HTTP/2 is used from the start if the address begins with http:// (prior
    /// knowledge), and negotiated by ALPN if it begins with https://; a server without HTTP/2 is an
    /// error before any measurement.
    #[schemars(example = 2)]
    pub version: HttpVersion,
    /// HTTP/2: maximum in-flight requests per connection. If a server allows fewer, its limit applies.
    /// Default 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000), extend("default" = 100), example = 64)]
    pub streams: Option<u32>,
}

impl Http {
    /// Default for in-flight requests per HTTP/2 connection: the minimum that servers should allow
    /// according to RFC 9113, and the limit of most servers.
    pub const STREAMS: u32 = 100;
    /// The maximum number of streams per connection that a plan may request.
    pub const MOST_STREAMS: u32 = 100_000;
}

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1.
    One,
    /// HTTP/2.
    Two,
}

impl HttpVersion {
    const ALL: [HttpVersion; 2] = [HttpVersion::One, HttpVersion::Two];

    /// The number as written in plans.
    fn number(self) -> Decimal {
        match self {
            HttpVersion::One => Decimal::new(11, 1),
            HttpVersion::Two => Decimal::from(2),
        }
    }
}

impl Serialize for HttpVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.number().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for HttpVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Decimal::deserialize(deserializer)?;
        let known = HttpVersion::ALL.into_iter().find(|version| version.number() == number);
        known.ok_or_else(|| de::Error::custom(format!("HTTP/{number} cannot be measured; write 1.1 or 2")))
    }
}

impl JsonSchema for HttpVersion {
    fn schema_name() -> Cow<'static, str> {
        "HttpVersion".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "enum": [1.1, 2] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        let read = |text: &str| serde_json::from_str::<HttpVersion>(text).map_err(|error| error.to_string());
        assert_eq!(
            (read("2"), read("2.0"), read("1.1")),
            (Ok(HttpVersion::Two), Ok(HttpVersion::Two), Ok(HttpVersion::One))
        );
        assert_eq!(read("3").unwrap_err(), "HTTP/3 cannot be measured; write 1.1 or 2");
        assert_eq!(serde_json::to_string(&HttpVersion::ALL).unwrap(), "[1.1,2]");
    }
}
