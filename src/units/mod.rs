//! Types shared by all modules: durations, exact decimals, seeds, shares. Modules do not pass bare numbers
//! where one of these types expresses the meaning.

mod address;
pub mod clock;
mod currency;
mod decimal;
mod duration;
mod forms;
mod nonce_seed;
mod patience;
mod proxy;
pub mod secrecy;
mod share;
#[cfg(test)]
mod tests;
pub mod text;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use address::{Address, AddressError, host_in};
pub use currency::Currency;
pub use decimal::{Decimal, with_point};
pub use duration::{Nanos, PerToken};
pub use forms::{Forms, Misfit};
pub use nonce_seed::NonceSeed;
pub use patience::patience;
pub use proxy::Proxy;
pub use share::Share;

/// Why a text is not a value of a unit; the message includes the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(pub String);

/// Whether a field has its default value, so that it can be omitted.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The seed of every pseudo-random stream. Streams are ChaCha8 (rand_chacha), so they do not change between
/// releases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Seed(pub u64);
