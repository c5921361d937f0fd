//! The seed of the nonces of one attempt: random bits, written as 32 hex digits.

use std::fmt;
use std::io;
use std::str::FromStr;

use rand::TryRng;
use rand::rngs::SysRng;
use serde::{Deserialize, Deserializer};
use serde_with::SerializeDisplay;

use super::text::hex;
use super::{Forms, UnitError};

/// Size of a nonce seed, in bytes.
const BYTES: usize = 16;

/// 128 random bits from which all nonces of an attempt at a run are derived. No two attempts share these
/// bits, wherever their results are stored. With these bits, the requests of an attempt can be
/// reproduced byte for byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, SerializeDisplay)]
pub struct NonceSeed(pub [u8; BYTES]);

impl NonceSeed {
    /// Returns new random bits from the operating system.
    pub fn random() -> io::Result<NonceSeed> {
        let mut bits = [0; BYTES];
        SysRng.try_fill_bytes(&mut bits).map_err(io::Error::other)?;
        Ok(NonceSeed(bits))
    }
}

impl fmt::Display for NonceSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for NonceSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NonceSeed({self})")
    }
}

impl FromStr for NonceSeed {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = || UnitError(format!("`{text}` is not a nonce seed: write {} hex digits", BYTES * 2));
        let is_hex = text.len() == BYTES * 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        bits.map(|bits| NonceSeed(bits.to_be_bytes())).ok_or_else(wrong)
    }
}

impl<'de> Deserialize<'de> for NonceSeed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("32 hex digits").parsed().read(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_is_written() {
        let seed = NonceSeed::random().unwrap();
        assert_eq!(seed.to_string().parse(), Ok(seed));
        let json = serde_json::to_string(&seed).unwrap();
        assert_eq!(json, format!("\"{seed}\""));
        assert_eq!(serde_json::from_str::<NonceSeed>(&json).unwrap(), seed);
        for wrong in ["", "12", &format!("+{}", "1".repeat(31)), &"g".repeat(32), &"1".repeat(33)] {
            assert!(wrong.parse::<NonceSeed>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_two_are_alike() {
        let drawn: std::collections::HashSet<_> = (0..1000).map(|_| NonceSeed::random().unwrap()).collect();
        assert_eq!(drawn.len(), 1000);
    }
}
