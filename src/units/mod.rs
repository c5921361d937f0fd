//! The words that cross modules: durations, exact decimals, seeds, shares. No bare number passes from one
//! module to another where one of these says what it means.

pub mod clock;
mod decimal;
mod duration;
mod nonce_seed;
mod patience;
pub mod secrecy;
mod share;
#[cfg(test)]
mod tests;
pub mod text;

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::de::{self, Visitor};
use serde::{Deserialize, Serialize};

pub use decimal::Decimal;
pub use duration::{Nanos, PerToken};
pub use nonce_seed::NonceSeed;
pub use patience::patience;
pub use share::Share;

/// Why a text is not a unit value; the message names the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(pub String);

/// Reads a unit value from text; the first field says what is expected.
struct TextVisitor<T>(&'static str, PhantomData<T>);

impl<T: FromStr<Err = UnitError>> Visitor<'_> for TextVisitor<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// What every pseudo-random stream starts from. Streams are ChaCha8 (rand_chacha), so they do not change between releases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Seed(pub u64);
