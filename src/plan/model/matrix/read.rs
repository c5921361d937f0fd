//! Reads and writes axes and filters. Their visitors are written by hand, because serde's derive for
//! untagged enums loses the location of an error and the expected types.

use std::fmt;
use std::marker::PhantomData;
use std::sync::LazyLock;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

use crate::plan::model::axis::{AXES, server_flag};
use crate::plan::model::matrix::range::{By, Range};
use crate::plan::model::matrix::{Axis, Condition, Filter, Item, List, Pick, What, Zip};
use crate::plan::model::scalar::Scalar;
use crate::plan::model::shorthand::OneOrMany;
use crate::plan::model::table::Table;
use crate::plan::model::take::{Figure, SweepMetric, Take, Use};
use crate::plan::text::alias::ALIASES;
use crate::units::{Decimal, Forms};

/// Every key that a table in an axis may have: the keywords, then the axes under all their names.
static KEYS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let words = ["value", "from", "to", "times", "step", "take", "over", "use", "when", "zip"];
    words
        .into_iter()
        .chain(AXES.iter().map(|(name, ..)| *name))
        .chain(ALIASES.iter().map(|(alias, _)| *alias))
        .collect()
});

/// A key of a table in an axis: one of `KEYS`, or the flag of a server.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key of an axis")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Key, E> {
                let is_known = KEYS.contains(&text) || server_flag(text).is_some();
                is_known.then(|| Key(text.to_owned())).ok_or_else(|| E::unknown_field(text, &KEYS))
            }
        }
        deserializer.deserialize_identifier(V)
    }
}

/// The start of a range, or the sweep that a value is taken from.
enum From {
    Number(Decimal),
    Sweep(String),
}

impl<'de> Deserialize<'de> for From {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("a number, or the name of a sweep")
            .number(From::Number)
            .text(|text| Ok(From::Sweep(text.to_owned())))
            .read(deserializer)
    }
}

/// A table in an axis, before its kind is known.
#[derive(Default)]
struct Raw {
    zip: Option<Table<List>>,
    value: Option<Vec<Scalar>>,
    from: Option<From>,
    to: Option<Decimal>,
    times: Option<Decimal>,
    step: Option<Decimal>,
    take: Option<SweepMetric>,
    over: Option<OneOrMany<String>>,
    uses: Option<Use>,
    fields: Table<Scalar>,
    when: Option<Condition>,
}

impl Raw {
    fn read<'de, A: MapAccess<'de>>(mut map: A) -> Result<Raw, A::Error> {
        let mut raw = Raw::default();
        while let Some(Key(key)) = map.next_key()? {
            match key.as_str() {
                "zip" => raw.zip = Some(map.next_value()?),
                "value" => raw.value = Some(map.next_value::<OneOrMany<Scalar>>()?.0),
                "from" => raw.from = Some(map.next_value()?),
                "to" => raw.to = Some(map.next_value()?),
                "times" => raw.times = Some(map.next_value()?),
                "step" => raw.step = Some(map.next_value()?),
                "take" => raw.take = Some(map.next_value()?),
                "over" => raw.over = Some(map.next_value()?),
                "use" => raw.uses = Some(map.next_value()?),
                "when" => raw.when = Some(map.next_value()?),
                _ => drop(raw.fields.insert(key, map.next_value()?)),
            }
        }
        Ok(raw)
    }

    /// The kinds of elements in the table, of which only one may be present.
    fn kinds(&self) -> Vec<&'static str> {
        let range = self.from.is_some() || [self.to, self.times, self.step].iter().any(Option::is_some);
        let is_taken = self.is_taken();
        [
            (self.zip.is_some(), "`zip`"),
            (self.value.is_some() && self.figure().is_none(), "`value`"),
            (range && !is_taken, "a range"),
            (is_taken, "a value taken from another sweep"),
            (!self.fields.is_empty(), "axes by name"),
        ]
        .into_iter()
        .filter_map(|(is, kind)| is.then_some(kind))
        .collect()
    }

    /// The figure of an earlier sweep that the table takes, if it names one.
    fn figure(&self) -> Option<Figure> {
        match self.value.as_deref() {
            Some([Scalar::Text(word)]) if self.is_taken() && word == Figure::Shown.name() => Some(Figure::Shown),
            _ => None,
        }
    }

    /// Whether the table takes its value from an earlier sweep.
    fn is_taken(&self) -> bool {
        self.take.is_some() || self.over.is_some() || self.uses.is_some() || matches!(self.from, Some(From::Sweep(_)))
    }

    fn axis(self) -> Result<Axis, String> {
        match (self.kinds().len(), self) {
            (1, Raw { zip: Some(lists), when, .. }) => Ok(Axis::Zip(Zip { lists, when })),
            (_, raw) => raw.item().map(|item| Axis::Values(vec![item])),
        }
    }

    fn item(mut self) -> Result<Item, String> {
        let when = self.when.take();
        if let [first, second, ..] = self.kinds()[..] {
            return Err(format!("a table on an axis holds {first} and {second}: write them as two values of a list"));
        }
        let what = match self {
            Raw { zip: Some(_), .. } => {
                return Err("`zip` cannot be an element of a list: make it the whole axis".to_owned());
            }
            raw if raw.is_taken() => What::Taken(taken(raw)?),
            Raw { value: Some(values), .. } => What::Values(values),
            Raw { fields, .. } if !fields.is_empty() => What::Fields(fields),
            Raw { from: None, to: None, times: None, step: None, .. } => {
                return Err("this table contains no value: write { value: 8, when: { endpoint: NAME } }".to_owned());
            }
            Raw { from, to, times, step, .. } => {
                let from = from.and_then(|from| if let From::Number(from) = from { Some(from) } else { None });
                What::Range(range(from, to, times, step)?)
            }
        };
        Ok(Item { what, when })
    }
}

/// Converts a table to a value that is taken from another sweep.
fn taken(raw: Raw) -> Result<Take, String> {
    let value = raw.figure();
    let Raw { from, to, times, step, take, over, uses, .. } = raw;
    let example = "{ from: limit, take: max_qps_under_slo, times: 0.8 }";
    let from = match (from, take) {
        (Some(From::Sweep(from)), Some(_)) => from,
        (Some(From::Sweep(from)), None) => {
            return Err(format!("`from` names sweep `{from}`, but `take` is missing: write {example}"));
        }
        (Some(From::Number(from)), _) => {
            return Err(format!("`from` is the number {from}, but must be the name of a sweep: write {example}"));
        }
        (None, _) => return Err(format!("the sweep that the value is taken from is missing: write {example}")),
    };
    if to.is_some() || step.is_some() {
        let word = if to.is_some() { "to" } else { "step" };
        return Err(format!("`{word}` belongs to a range, but this is a value of sweep `{from}`: write {example}"));
    }
    let Some(take) = take else { return Err(format!("the value to take from `{from}` is missing: write {example}")) };
    let (over, times) = (over.unwrap_or_default(), times.unwrap_or(Decimal::from(1)));
    Ok(Take { from, take, value, over, uses, times })
}

fn range(
    from: Option<Decimal>,
    to: Option<Decimal>,
    times: Option<Decimal>,
    step: Option<Decimal>,
) -> Result<Range, String> {
    let (Some(from), Some(to)) = (from, to) else {
        let missing = if from.is_none() { "from" } else { "to" };
        return Err(format!("this range has no `{missing}`: write both ends, like {EXAMPLES}"));
    };
    match (times, step) {
        (Some(times), None) => Range::new(from, to, By::Times(times)),
        (None, Some(step)) => Range::new(from, to, By::Step(step)),
        (Some(_), Some(_)) => Err("this range has both `times` and `step`: keep one of the two".to_owned()),
        (None, None) => Err(format!("this range has neither `times` nor `step`: write {EXAMPLES}")),
    }
}

const EXAMPLES: &str = "{ from: 1, to: 256, times: 2 } or { from: 5, to: 50, step: 5 }";

/// A visitor that reads one element or a list of elements into a `T`.
struct OneOrList<T>(PhantomData<T>);

/// A list of elements, or a single element that stands for a list.
trait Listed: Sized {
    /// The expected value, for error messages.
    const EXPECTING: &'static str;
    /// The type of an element, alone or in a list.
    type One: for<'de> Deserialize<'de>;
    /// Converts a list of elements.
    fn list(items: Vec<Self::One>) -> Self;
    /// Reads a single table.
    fn table<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Self::One::deserialize(MapAccessDeserializer::new(map)).map(|one| Self::list(vec![one]))
    }
}

impl<'de, T: Listed> Visitor<'de> for OneOrList<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTING)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<T, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq)).map(T::list)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::table(map)
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<T, E> {
        alone(de::value::BoolDeserializer::new(value))
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        alone(de::value::I64Deserializer::new(value))
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        alone(de::value::U64Deserializer::new(value))
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        alone(de::value::F64Deserializer::new(value))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        alone(de::value::StrDeserializer::new(text))
    }
}

fn alone<'de, T: Listed, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::One::deserialize(deserializer).map(|one| T::list(vec![one]))
}

impl Listed for Axis {
    const EXPECTING: &'static str = "a value, a list of values, a range or a zip";
    type One = Item;
    fn list(items: Vec<Item>) -> Axis {
        Axis::Values(items)
    }
    fn table<'de, A: MapAccess<'de>>(map: A) -> Result<Axis, A::Error> {
        Raw::read(map)?.axis().map_err(de::Error::custom)
    }
}

impl Listed for List {
    const EXPECTING: &'static str = "a value, a list of values or a range";
    type One = Item;
    fn list(items: Vec<Item>) -> List {
        List(items)
    }
}

impl Listed for Filter {
    const EXPECTING: &'static str = "a value, a list of values or { from: 8, to: 64 }";
    type One = Pick;
    fn list(picks: Vec<Pick>) -> Filter {
        Filter(picks)
    }
}

macro_rules! read_listed {
    ($($type:ty),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(OneOrList(PhantomData))
            }
        }
    )*};
}
read_listed!(Axis, List, Filter);

/// A visitor that reads a scalar or a table into a `T`.
struct ScalarOr<T>(PhantomData<T>);

/// A value written as a scalar or as a table.
trait Either: Sized {
    /// The expected value, for error messages.
    const EXPECTING: &'static str;
    /// Converts a scalar.
    fn scalar(value: Scalar) -> Self;
    /// Converts a table.
    fn table<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;
}

impl<'de, T: Either> Visitor<'de> for ScalarOr<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTING)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::table(map)
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<T, E> {
        Ok(T::scalar(Scalar::Bool(value)))
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        Scalar::deserialize(de::value::I64Deserializer::new(value)).map(T::scalar)
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        Scalar::deserialize(de::value::U64Deserializer::new(value)).map(T::scalar)
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        Scalar::deserialize(de::value::F64Deserializer::new(value)).map(T::scalar)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        Ok(T::scalar(Scalar::Text(text.to_owned())))
    }
}

impl Either for Item {
    const EXPECTING: &'static str = "a number, a string, true or false, a range, or a table of axes";
    fn scalar(value: Scalar) -> Item {
        Item { what: What::Values(vec![value]), when: None }
    }
    fn table<'de, A: MapAccess<'de>>(map: A) -> Result<Item, A::Error> {
        Raw::read(map)?.item().map_err(de::Error::custom)
    }
}

impl Either for Pick {
    const EXPECTING: &'static str = "a number, a string, true or false, or bounds like { from: 8, to: 64 }";
    fn scalar(value: Scalar) -> Pick {
        Pick::One(value)
    }
    fn table<'de, A: MapAccess<'de>>(map: A) -> Result<Pick, A::Error> {
        let Bounds { from, to } = Bounds::deserialize(MapAccessDeserializer::new(map))?;
        match (from, to) {
            (None, None) => Err(de::Error::custom("these bounds are empty: write { from: 8 }, { to: 64 } or both")),
            (Some(from), Some(to)) if from > to => {
                Err(de::Error::custom(format!("no value from {from} to {to}: write the smaller number as `from`")))
            }
            (from, to) => Ok(Pick::Within { from, to }),
        }
    }
}

/// Bounds as they are written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    from: Option<Decimal>,
    to: Option<Decimal>,
}

macro_rules! read_either {
    ($($type:ty),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(ScalarOr(PhantomData))
            }
        }
    )*};
}
read_either!(Item, Pick);

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Table<'a, T> {
            #[serde(flatten)]
            what: T,
            #[serde(skip_serializing_if = "Option::is_none")]
            when: &'a Option<Condition>,
        }
        #[derive(Serialize)]
        struct Value<'a> {
            value: &'a [Scalar],
        }
        let when = &self.when;
        match &self.what {
            What::Values(values) => match (&values[..], when) {
                ([one], None) => one.serialize(serializer),
                (value, _) => Table { what: Value { value }, when }.serialize(serializer),
            },
            What::Range(range) => Table { what: range, when }.serialize(serializer),
            What::Taken(take) => Table { what: take, when }.serialize(serializer),
            What::Fields(fields) => Table { what: fields, when }.serialize(serializer),
        }
    }
}
