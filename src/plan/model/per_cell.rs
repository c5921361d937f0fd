//! Values that may differ by cell, written literally or as an expression over `server`.

use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::value::{F64Deserializer, I64Deserializer, U64Deserializer};
use serde::de::{self, Deserialize, Deserializer, Visitor};

use crate::units::Decimal;

/// A value of a plan, or the expression that yields it once the cell is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PerCell<T> {
    /// The value is the same in every cell.
    Same(T),
    /// An expression like `{{ server.tensor_parallel_size }}`.
    Expression(String),
}

impl<T> PerCell<T> {
    /// The expression, if the value differs by cell.
    pub fn expression(&self) -> Option<&str> {
        match self {
            PerCell::Same(_) => None,
            PerCell::Expression(text) => Some(text),
        }
    }
}

impl<T: Copy> PerCell<T> {
    /// The value, if it is the same in every cell.
    pub fn same(&self) -> Option<T> {
        match self {
            PerCell::Same(value) => Some(*value),
            PerCell::Expression(_) => None,
        }
    }
}

/// A type of number whose values plans write in digits.
pub trait Written: for<'de> Deserialize<'de> {
    /// The expected value, for error messages.
    const EXPECTED: &'static str;
}

impl Written for u32 {
    // Serde's wording for a `u32`, by which the remedy is selected.
    const EXPECTED: &'static str = "u32";
}

impl Written for Decimal {
    const EXPECTED: &'static str = "a number";
}

struct NumberOrExpression<T>(PhantomData<T>);

impl<T: Written> Visitor<'_> for NumberOrExpression<T> {
    type Value = PerCell<T>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<PerCell<T>, E> {
        T::deserialize(U64Deserializer::new(value)).map(PerCell::Same)
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<PerCell<T>, E> {
        T::deserialize(I64Deserializer::new(value)).map(PerCell::Same)
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<PerCell<T>, E> {
        T::deserialize(F64Deserializer::new(value)).map(PerCell::Same)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<PerCell<T>, E> {
        match text.contains("{{") {
            true => Ok(PerCell::Expression(text.to_owned())),
            false => Err(E::invalid_type(de::Unexpected::Str(text), &self)),
        }
    }
}

impl<'de, T: Written> Deserialize<'de> for PerCell<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrExpression(PhantomData))
    }
}

/// Uses the schema of the plain value, because `schema` allows an expression in place of any value.
impl<T: JsonSchema> JsonSchema for PerCell<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}
