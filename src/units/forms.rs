//! Values that may be written in several ways: a word, a number, a table. One visitor handles all
//! such types. For a form that a type does not accept, the error states what is expected.

use std::fmt;
use std::str::FromStr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, IntoDeserializer, MapAccess, Unexpected, Visitor};

use super::{Decimal, UnitError};

type ReadText<T> = fn(&str) -> Result<T, Misfit>;

/// The accepted forms of a `T`, each with its reader; a table is read as `L`.
pub struct Forms<T, L = IgnoredAny> {
    expected: &'static str,
    truth: Option<fn(bool) -> T>,
    number: Option<fn(Decimal) -> T>,
    text: Option<ReadText<T>>,
    table: Option<fn(L) -> Result<T, String>>,
}

/// Why a text is rejected.
pub enum Misfit {
    /// The text does not have an expected form.
    Unexpected,
    /// The text is rejected; contains the reason.
    Because(String),
}

impl From<String> for Misfit {
    fn from(why: String) -> Misfit {
        Misfit::Because(why)
    }
}

impl From<UnitError> for Misfit {
    fn from(UnitError(why): UnitError) -> Misfit {
        Misfit::Because(why)
    }
}

impl<T> Forms<T> {
    /// Creates a reader that accepts no form yet; `expected` describes the accepted forms in errors.
    pub fn expecting(expected: &'static str) -> Forms<T> {
        Forms { expected, truth: None, number: None, text: None, table: None }
    }

    /// Accepts `true` or `false`.
    pub fn truth(self, read: fn(bool) -> T) -> Forms<T> {
        Forms { truth: Some(read), ..self }
    }

    /// Accepts a number.
    pub fn number(self, read: fn(Decimal) -> T) -> Forms<T> {
        Forms { number: Some(read), ..self }
    }

    /// Accepts a text.
    pub fn text(self, read: ReadText<T>) -> Forms<T> {
        Forms { text: Some(read), ..self }
    }

    /// Accepts a text, and parses it with the type's `FromStr`.
    pub fn parsed(self) -> Forms<T>
    where
        T: FromStr<Err: Into<Misfit>>,
    {
        self.text(|text| text.parse().map_err(Into::into))
    }

    /// Accepts a table.
    pub fn table<L>(self, read: fn(L) -> Result<T, String>) -> Forms<T, L> {
        let Forms { expected, truth, number, text, table: _ } = self;
        Forms { expected, truth, number, text, table: Some(read) }
    }
}

impl<T, L> Forms<T, L> {
    /// Reads the value, in any of the accepted forms.
    pub fn read<'de, D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error>
    where
        L: Deserialize<'de>,
    {
        deserializer.deserialize_any(self)
    }

    fn decimal<'de, E: de::Error>(self, value: impl IntoDeserializer<'de, E>, found: Unexpected) -> Result<T, E>
    where
        L: Deserialize<'de>,
    {
        let read = self.number.ok_or_else(|| E::invalid_type(found, &self))?;
        Decimal::deserialize(value.into_deserializer()).map(read)
    }
}

impl<'de, T, L: Deserialize<'de>> Visitor<'de> for Forms<T, L> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<T, E> {
        let read = self.truth.ok_or_else(|| E::invalid_type(Unexpected::Bool(value), &self))?;
        Ok(read(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        self.decimal(value, Unexpected::Unsigned(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        self.decimal(value, Unexpected::Signed(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        self.decimal(value, Unexpected::Float(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        let read = self.text.ok_or_else(|| E::invalid_type(Unexpected::Str(text), &self))?;
        read(text).map_err(|misfit| match misfit {
            Misfit::Unexpected => E::invalid_value(Unexpected::Str(text), &self),
            Misfit::Because(why) => E::custom(why),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        let read = self.table.ok_or_else(|| de::Error::invalid_type(Unexpected::Map, &self))?;
        read(L::deserialize(MapAccessDeserializer::new(map))?).map_err(de::Error::custom)
    }
}
