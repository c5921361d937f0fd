//! Sampling parameters: the numbers that a request carries in addition to its text, each described once.
//!
//! Axes, ranges, request bodies, a run's identity, provenance, the lint's comparison of sides and import
//! are based on this table. To add a parameter, add its entry here and its field in `scenario.rs`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::plan::model::parameter_value::ParameterValue;
use crate::units::Decimal;

/// A sampling parameter.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// The name in plans, in the bodies of requests and in the canonical form of a run.
    pub name: &'static str,
    /// The minimum and maximum value, in hundredths.
    pub hundredths: (i64, i64),
    /// The description for users.
    pub meaning: &'static str,
    /// The value sent by default, in hundredths; `None` to send nothing.
    default_hundredths: Option<i64>,
    /// Example values for editors, in hundredths.
    pub(crate) examples: [i64; 2],
}

const fn parameter(
    name: &'static str,
    hundredths: (i64, i64),
    meaning: &'static str,
    default_hundredths: Option<i64>,
    examples: [i64; 2],
) -> Parameter {
    Parameter { name, hundredths, meaning, default_hundredths, examples }
}

/// Number of sampling parameters.
pub(crate) const COUNT: usize = 4;

/// All parameters, in the order in which they are sent.
pub const PARAMETERS: [Parameter; COUNT] = [
    parameter("temperature", (0, 200), "Sampling temperature; with `omit` it is not sent.", Some(0), [0, 70]),
    parameter("top_p", (1, 100), "Nucleus sampling; with `omit` it is not sent.", None, [95, 100]),
    parameter("presence_penalty", (-200, 200), "Presence penalty; with `omit` it is not sent.", None, [0, 50]),
    parameter("frequency_penalty", (-200, 200), "Frequency penalty; with `omit` it is not sent.", None, [0, 50]),
];

/// The parameter of this name; `None` if there is no such parameter.
pub fn named(name: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.name == name)
}

/// The parameters that requests carry, each with its value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sampling([Option<Decimal>; COUNT]);

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling(PARAMETERS.map(|parameter| parameter.default_hundredths.map(|value| Decimal::new(value, 2))))
    }
}

impl Sampling {
    /// Creates an empty set of parameters.
    pub fn nothing() -> Sampling {
        Sampling([None; COUNT])
    }

    /// The defaults, overridden by `values`.
    #[cfg(test)]
    pub fn of<const N: usize>(values: [(&str, Decimal); N]) -> Sampling {
        let mut sampling = Sampling::default();
        for (name, value) in values {
            sampling.0[PARAMETERS.iter().position(|parameter| parameter.name == name).unwrap()] = Some(value);
        }
        sampling
    }

    /// The value to send for a parameter; `None` if it is not sent.
    pub fn get(&self, name: &str) -> Option<Decimal> {
        let at = PARAMETERS.iter().position(|parameter| parameter.name == name)?;
        self.0[at]
    }

    /// The values to send, by name, in the order of the table.
    pub fn sent(&self) -> impl Iterator<Item = (&'static str, Decimal)> {
        PARAMETERS.iter().zip(&self.0).filter_map(|(parameter, value)| Some((parameter.name, (*value)?)))
    }

    /// Applies the values that are set; other parameters keep their values.
    pub fn apply(&mut self, said: [Option<ParameterValue>; COUNT]) {
        for (value, said) in self.0.iter_mut().zip(said) {
            match said {
                None => {}
                Some(ParameterValue::Number(number)) => *value = Some(number),
                Some(ParameterValue::Omit) => *value = None,
            }
        }
    }

    /// The parameters as a plan would write them: every parameter that is sent by default or that has a
    /// value.
    pub fn said(&self) -> [Option<ParameterValue>; COUNT] {
        let mut said = [None; COUNT];
        for (at, parameter) in PARAMETERS.iter().enumerate() {
            said[at] = match self.0[at] {
                Some(value) => Some(ParameterValue::Number(value)),
                None => parameter.default_hundredths.map(|_| ParameterValue::Omit),
            };
        }
        said
    }
}

impl Serialize for Sampling {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.sent() {
            map.serialize_entry(name, &value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Sampling {
    /// Reads the parameters from a table that may also contain other fields.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Sampling;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("sampling parameters")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sampling, A::Error> {
                let mut values = [None; COUNT];
                while let Some(name) = map.next_key::<String>()? {
                    match PARAMETERS.iter().position(|parameter| parameter.name == name) {
                        Some(at) => values[at] = map.next_value::<Option<Decimal>>()?,
                        None => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(Sampling(values))
            }
        }
        deserializer.deserialize_map(V)
    }
}
