//! Reads any type with a serde derive from a tree. The derives remain the single source for fields, defaults
//! and the schema. This file adds the place and the kind of each error, as data instead of text.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::plan::model::shorthand::Shorthand;
use crate::plan::read::wanted::Wanted;
use crate::plan::text::tree::{Entry, Node, Step, Value};

/// The problem with the node at a path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Mistake {
    /// The key at the path is not an expected key.
    UnknownKey(&'static [&'static str]),
    /// The table at the path lacks a field.
    MissingField(&'static str),
    /// The value does not have the expected type.
    WrongType(Wanted),
    /// The text is not one of the allowed texts.
    UnknownChoice(&'static [&'static str]),
    /// A key has no value.
    NoValue,
    /// Any other problem, as a message; usually from the type that was being read.
    Other(String),
}

/// An error and its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReadError {
    /// The path of the deepest node that was being read, from the inside out.
    reversed: Vec<Step>,
    /// The problem.
    pub mistake: Mistake,
}

impl ReadError {
    /// The path of the deepest node that was being read.
    pub(crate) fn path(&self) -> Vec<Step> {
        self.reversed.iter().rev().cloned().collect()
    }

    fn inside(mut self, step: Step) -> ReadError {
        self.reversed.push(step);
        self
    }
}

impl From<Mistake> for ReadError {
    fn from(mistake: Mistake) -> Self {
        ReadError { reversed: Vec::new(), mistake }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.mistake)
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Mistake::Other(message.to_string()).into()
    }
    fn invalid_type(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Mistake::WrongType(Wanted::from_words(&expected.to_string())).into()
    }
    fn invalid_value(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Mistake::WrongType(Wanted::from_words(&expected.to_string())).into()
    }
    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Self {
        Mistake::UnknownKey(expected).into()
    }
    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Mistake::UnknownChoice(expected).into()
    }
    fn missing_field(field: &'static str) -> Self {
        Mistake::MissingField(field).into()
    }
}

/// Reads a `T` from a tree.
pub(crate) fn read<T: de::DeserializeOwned>(node: &Node) -> Result<T, ReadError> {
    T::deserialize(Reader(node))
}

#[derive(Clone, Copy)]
struct Reader<'t>(&'t Node);

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.0.value {
            Value::Null => Err(Mistake::NoValue.into()),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(value) => match (u64::try_from(*value), i64::try_from(*value)) {
                (Ok(value), _) => visitor.visit_u64(value),
                (_, Ok(value)) => visitor.visit_i64(value),
                _ => visitor.visit_f64(*value as f64),
            },
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_str(text),
            Value::List(items) => visitor.visit_seq(Elements { items, next: 0 }),
            Value::Map(entries) => visitor.visit_map(Entries { entries, next: 0 }),
        }
    }

    /// Rejects a list. A derive would accept it for a struct and read the elements as the fields in order,
    /// which no plan intends. A value that stands for a table is read as the table's only field.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let Some(shorthand) = Shorthand::of(name) else {
            return match &self.0.value {
                Value::List(_) => Err(de::Error::invalid_type(de::Unexpected::Seq, &visitor)),
                _ => self.deserialize_any(visitor),
            };
        };
        match &self.0.value {
            Value::Map(_) | Value::Null => self.deserialize_any(visitor),
            Value::Text(_) if !shorthand.is_number => {
                visitor.visit_map(Only { field: Some(shorthand.field), node: self.0 })
            }
            Value::List(_) if shorthand.takes_list => {
                visitor.visit_map(Only { field: Some(shorthand.field), node: self.0 })
            }
            Value::Int(0..) => visitor.visit_map(Only { field: Some(shorthand.field), node: self.0 }),
            Value::Float(_) if shorthand.has_decimals => {
                visitor.visit_map(Only { field: Some(shorthand.field), node: self.0 })
            }
            _ => Err(Mistake::WrongType(Wanted::Other(shorthand.expected.to_owned())).into()),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match &self.0.value {
            Value::Text(text) => visitor.visit_enum(Choice { key: text, value: None, variants }),
            Value::Null => Err(Mistake::NoValue.into()),
            // A choice that has a value: `{ cost_per_million: 3 }`.
            Value::Map(entries) => match &entries[..] {
                [entry] if variants.contains(&entry.key.as_str()) => {
                    visitor.visit_enum(Choice { key: &entry.key, value: Some(&entry.node), variants })
                }
                _ => Err(Mistake::UnknownChoice(variants).into()),
            },
            _ => Err(Mistake::UnknownChoice(variants).into()),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

/// A table that is written as the value of one of its fields. It provides this field as its only entry. An
/// error in the field is placed at the value.
struct Only<'t> {
    field: Option<&'static str>,
    node: &'t Node,
}

impl<'de> de::MapAccess<'de> for Only<'_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let key = self.field.take().map(IntoDeserializer::<ReadError>::into_deserializer);
        key.map(|key| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, ReadError> {
        seed.deserialize(Reader(self.node))
    }
}

/// A choice. It is written as its name, or as a table whose only key is its name, with the choice's value.
struct Choice<'t> {
    key: &'t str,
    value: Option<&'t Node>,
    variants: &'static [&'static str],
}

impl<'de> de::EnumAccess<'de> for Choice<'_> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ReadError> {
        let key: StrDeserializer<'_, ReadError> = self.key.into_deserializer();
        Ok((seed.deserialize(key)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Choice<'_> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        match self.value {
            None => Ok(()),
            Some(_) => Err(Mistake::UnknownChoice(self.variants).into()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        let Choice { key, value, .. } = self;
        let Some(value) = value else {
            return Err(Mistake::Other(format!("`{key}` needs a value: write {{ {key}: … }}")).into());
        };
        seed.deserialize(Reader(value)).map_err(|error| error.inside(Step::Key(key.to_owned())))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, ReadError> {
        Err(Mistake::UnknownChoice(self.variants).into())
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, ReadError> {
        Err(Mistake::UnknownChoice(self.variants).into())
    }
}

struct Elements<'t> {
    items: &'t [Node],
    next: usize,
}

impl<'de> de::SeqAccess<'de> for Elements<'_> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        let Some(node) = self.items.get(self.next) else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        seed.deserialize(Reader(node)).map(Some).map_err(|error| error.inside(Step::Index(index)))
    }
}

struct Entries<'t> {
    entries: &'t [Entry],
    next: usize,
}

impl Entries<'_> {
    fn step(&self) -> Step {
        Step::Key(self.entries[self.next].key.clone())
    }
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let Some(entry) = self.entries.get(self.next) else { return Ok(None) };
        let key: StrDeserializer<'_, ReadError> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|error| {
            // If keys are a set of choices (p50, p99), an invalid choice is an unknown key.
            let mistake = match error.mistake {
                Mistake::UnknownChoice(expected) => Mistake::UnknownKey(expected),
                other => other,
            };
            ReadError::from(mistake).inside(self.step())
        })
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, ReadError> {
        let step = self.step();
        let node = &self.entries[self.next].node;
        self.next += 1;
        seed.deserialize(Reader(node)).map_err(|error| error.inside(step))
    }
}
