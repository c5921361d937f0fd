//! Values with a short form in plans: one field of a table instead of the table (`fill: 30s` is
//! `fill: { for: 30s }`), or one value instead of a list. `read` expands the short form, so that later
//! code need not handle it; `schema` offers both forms.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// A table that may be written as the value of one of its fields.
pub(crate) struct Shorthand {
    /// The name of the table's type in serde and schemars.
    pub table: &'static str,
    /// The field that can stand for the table.
    pub field: &'static str,
    /// The expected value, for error messages.
    pub expected: &'static str,
    /// Whether the value of the field must be a number; otherwise, it may be a string or a number.
    pub is_number: bool,
    /// Whether the number may have decimals.
    pub has_decimals: bool,
    /// Whether a list of values may also stand for the table.
    pub takes_list: bool,
}

/// All shorthands.
pub(crate) const SHORTHANDS: [Shorthand; 10] = [
    Shorthand {
        table: "Fill",
        field: "for",
        expected: "a duration like 30s, or { for: 30s } or { per_second: 1 }",
        is_number: false,
        has_decimals: false,
        takes_list: false,
    },
    Shorthand {
        table: "Measure",
        field: "for",
        expected: "a duration like 120s, or { for: 120s, min_requests: 1000, at_most: 10m }",
        is_number: false,
        has_decimals: false,
        takes_list: false,
    },
    Shorthand {
        table: "Drain",
        field: "for",
        expected: "a duration like 30s, or { for: 30s, mode: stop }",
        is_number: false,
        has_decimals: false,
        takes_list: false,
    },
    Shorthand {
        table: "ProfileFile",
        field: "file",
        expected: "the path of a profile, or { file: …, speed: … }",
        is_number: false,
        has_decimals: false,
        takes_list: false,
    },
    Shorthand {
        table: "Lengths",
        field: "preset",
        expected: "the name of a preset like chat, or { prompt: …, output: … }",
        is_number: false,
        has_decimals: false,
        takes_list: false,
    },
    Shorthand {
        table: "Distribution",
        field: "constant",
        expected: "a number of tokens, or a distribution like { uniform: { min: 100, max: 1000 } }",
        is_number: true,
        has_decimals: false,
        takes_list: false,
    },
    Shorthand {
        table: "Http",
        field: "version",
        expected: "a version of HTTP, 1.1 or 2, or { version: 2, streams: 64 }",
        is_number: true,
        has_decimals: true,
        takes_list: false,
    },
    Shorthand {
        table: "Telemetry",
        field: "prometheus",
        expected: "`on`, the address of a page of metrics or a list of them, or { prometheus: […], every: 1s }",
        is_number: false,
        has_decimals: false,
        takes_list: true,
    },
    Shorthand {
        table: "Workers",
        field: "count",
        expected: "a number of processes, or { count: 2, start: [ssh client-1 sweepline, ssh client-2 sweepline] }",
        is_number: true,
        has_decimals: false,
        takes_list: false,
    },
    Shorthand {
        table: "LocalGpus",
        field: "source",
        expected: "auto, off, nvml, nvidia-smi, amd-smi or rocm-smi, or { source: nvml, devices: [0, 1] }",
        is_number: false,
        has_decimals: false,
        takes_list: false,
    },
];

impl Shorthand {
    /// The shorthand of a table; `None` if the table has none.
    pub(crate) fn of(table: &str) -> Option<&'static Shorthand> {
        SHORTHANDS.iter().find(|shorthand| shorthand.table == table)
    }

    /// Whether a field of this name can stand for its table anywhere.
    pub(crate) fn is_field(field: &str) -> bool {
        SHORTHANDS.iter().any(|shorthand| shorthand.field == field)
    }
}

/// A list, or a single value that stands for a list with one element.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        OneOrMany(Vec::new())
    }
}

/// The expected value of [`OneOrMany`], for error messages.
pub(crate) const VALUE_OR_VALUES: &str = "a value or a list of values";

impl<T> OneOrMany<T> {
    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                one(MapAccessDeserializer::new(map))
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
