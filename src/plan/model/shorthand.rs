//! Values that a plan may write short (`fill: 30s`) or whole (`fill: { for: 30s, per_second: 2 }`). Each becomes its one
//! long form here, so that nothing behind this file has cases for the short one.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::plan::model::field_schema::AboveZero;
use crate::units::{Decimal, Nanos};

/// A type that is also written as one text.
trait Short: Sized {
    /// The long form, read from a table.
    type Long: for<'de> Deserialize<'de> + Into<Self> + JsonSchema;
    /// What the schema says of the text.
    type Text: JsonSchema;
    /// What the text means, for the message of an error.
    const EXPECTING: &'static str;
    /// The long form of a text.
    fn from_text(text: &str) -> Result<Self, String>;
}

struct ShortVisitor<T>(PhantomData<T>);

impl<'de, T: Short> Visitor<'de> for ShortVisitor<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTING)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text).map_err(E::custom)
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        T::from_text(&value.to_string()).map_err(E::custom)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::Long::deserialize(MapAccessDeserializer::new(map)).map(Into::into)
    }
}

fn either(short: Schema, long: Schema) -> Schema {
    json_schema!({ "anyOf": [short, long] })
}

/// Fill: how the load rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Fill {
    /// Length of the phase; absent where `per_second` decides it (closed loops: slots / rate).
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub duration: Option<Nanos>,
    /// Closed loops: how many slots join per second; absent: evenly over the phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_second: Option<Decimal>,
}

/// Fill, whole.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Fill", extend("minProperties" = 1))]
struct FillLong {
    /// Length of the phase.
    #[serde(rename = "for", default)]
    #[schemars(example = &"30s")]
    duration: Option<Nanos>,
    /// Closed loops: how many slots join per second.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    #[schemars(example = 2)]
    per_second: Option<Decimal>,
}

impl From<FillLong> for Fill {
    fn from(long: FillLong) -> Self {
        Fill { duration: long.duration, per_second: long.per_second }
    }
}

impl Short for Fill {
    type Long = FillLong;
    type Text = Nanos;
    const EXPECTING: &'static str = "a duration like 30s, or { for: 30s } or { per_second: 1 }";
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
            .map(|duration| Fill { duration: Some(duration), per_second: None })
            .map_err(|e: crate::units::UnitError| e.0)
    }
}

/// Measure: the window that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Measure {
    /// Length of the window.
    #[serde(rename = "for")]
    pub duration: Nanos,
    /// The window is prolonged until this many requests were scheduled in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_requests: Option<u64>,
    /// The longest a prolonged window may get. Default: five times its length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Nanos>,
}

/// Measure, whole.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Measure")]
struct MeasureLong {
    /// Length of the window.
    #[serde(rename = "for")]
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    duration: Nanos,
    /// The window is prolonged until this many requests were scheduled in it.
    #[serde(default)]
    #[schemars(range(min = 1))]
    #[schemars(example = 1000)]
    min_requests: Option<u64>,
    /// The longest a prolonged window may get. Default: five times its length.
    #[serde(default)]
    #[schemars(example = &"10m")]
    at_most: Option<Nanos>,
}

impl From<MeasureLong> for Measure {
    fn from(long: MeasureLong) -> Self {
        Measure { duration: long.duration, min_requests: long.min_requests, at_most: long.at_most }
    }
}

impl Short for Measure {
    type Long = MeasureLong;
    type Text = AboveZero;
    const EXPECTING: &'static str = "a duration like 120s, or { for: 120s, min_requests: 1000, at_most: 10m }";
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
            .map(|duration| Measure { duration, min_requests: None, at_most: None })
            .map_err(|e: crate::units::UnitError| e.0)
    }
}

/// Drain: what happens to measured requests that are still under way when the window ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Drain {
    /// The longest this phase may last.
    #[serde(rename = "for")]
    pub duration: Nanos,
    /// Whether load is kept up meanwhile.
    pub mode: DrainMode,
}

/// Whether load is kept up in drain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DrainMode {
    /// Load goes on until every measured request has ended.
    #[default]
    Keep,
    /// What is in flight is cut at once.
    Stop,
}

/// Drain, whole.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Drain")]
struct DrainLong {
    /// The longest this phase may last.
    #[serde(rename = "for")]
    #[schemars(example = &"30s")]
    duration: Nanos,
    /// Whether load is kept up meanwhile.
    #[serde(default)]
    mode: DrainMode,
}

impl From<DrainLong> for Drain {
    fn from(long: DrainLong) -> Self {
        Drain { duration: long.duration, mode: long.mode }
    }
}

impl Short for Drain {
    type Long = DrainLong;
    type Text = Nanos;
    const EXPECTING: &'static str = "a duration like 30s, or { for: 30s, mode: stop }";
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map(|duration| Drain { duration, mode: DrainMode::Keep }).map_err(|e: crate::units::UnitError| e.0)
    }
}

macro_rules! short_serde {
    ($($type:ident: $long:ident),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(ShortVisitor::<$type>(PhantomData))
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                concat!(stringify!($type), "OrDuration").into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                either(generator.subschema_for::<<$type as Short>::Text>(), generator.subschema_for::<$long>())
            }
        }
    )*};
}
short_serde!(Fill: FillLong, Measure: MeasureLong, Drain: DrainLong);

/// A list, or one value that stands for a list of one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        OneOrMany(Vec::new())
    }
}

/// What [`OneOrMany`] says that it expects.
pub(crate) const VALUE_OR_VALUES: &str = "a value or a list of values";

impl<T> OneOrMany<T> {
    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Serialize> Serialize for OneOrMany<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for V<T> {
            type Value = OneOrMany<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(VALUE_OR_VALUES)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(OneOrMany)
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
                one(de::value::BoolDeserializer::new(value))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
                one(de::value::I64Deserializer::new(value))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
                one(de::value::U64Deserializer::new(value))
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
                one(de::value::F64Deserializer::new(value))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                one(de::value::StrDeserializer::new(text))
            }
        }
        fn one<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<OneOrMany<T>, D::Error> {
            T::deserialize(deserializer).map(|value| OneOrMany(vec![value]))
        }
        deserializer.deserialize_any(V(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMany_{}", T::schema_name()).into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}
