//! A currency, by its code.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_with::SerializeDisplay;

use super::{Forms, UnitError};

/// A currency code of three letters (ISO 4217): `EUR`, `USD`. It is not checked against the list of codes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, SerializeDisplay)]
pub struct Currency([u8; 3]);

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|letter| write!(f, "{}", char::from(*letter)))
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Currency({self})")
    }
}

impl FromStr for Currency {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let letters: Option<[u8; 3]> = text.as_bytes().try_into().ok();
        let letters = letters.filter(|letters| letters.iter().all(u8::is_ascii_uppercase));
        letters.map(Currency).ok_or_else(|| {
            UnitError(format!(
                "`{text}` is not a currency code: write three capital letters, like EUR or USD (ISO 4217)"
            ))
        })
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("a currency code like EUR").parsed().read(deserializer)
    }
}

impl JsonSchema for Currency {
    fn schema_name() -> Cow<'static, str> {
        "Currency".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Z]{3}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_three_capital_letters() {
        let euro: Currency = "EUR".parse().unwrap();
        assert_eq!(serde_json::to_string(&euro).unwrap(), "\"EUR\"");
        assert_eq!(serde_json::from_str::<Currency>("\"EUR\"").unwrap(), euro);
        for wrong in ["", "EU", "EURO", "eur", "€", "E R", "Ä1"] {
            assert!(wrong.parse::<Currency>().is_err(), "{wrong}");
        }
    }
}
