//! The name of a run: the same measurement has the same name everywhere, and changing a field changes
//! the name. The name is the hash of the canonical form.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_with::SerializeDisplay;
use sha2::{Digest, Sha256};

use super::RunSpec;
use super::canonical::{Bytes, Value, canonical};
use crate::units::text::hex;

/// The name of a run: SHA-256 over the canonical bytes of its spec. Prints as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay)]
pub struct RunId(pub [u8; 32]);

impl RunId {
    /// The id of `spec`.
    pub fn of(spec: &RunSpec) -> RunId {
        RunId::with(&mut Bytes::default(), spec)
    }

    /// The id of `spec`, using `bytes` as a buffer.
    pub fn with(bytes: &mut Bytes, spec: &RunSpec) -> RunId {
        RunId(Sha256::digest(bytes.of(spec)).into())
    }

    /// The first 16 hex digits: the name of the run's folder.
    pub fn short(&self) -> String {
        hex(&self.0[..8])
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&hex(&self.0))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunId({})", self.short())
    }
}

/// The reason why a text is not a run id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a run id: write all 64 hex digits, in lower case")]
pub struct RunIdError(pub String);

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<Self, RunIdError> {
        let wrong = || RunIdError(text.to_owned());
        if text.len() != 64 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(wrong());
        }
        let mut id = [0; 32];
        for (byte, digits) in id.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(RunId(id))
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A field in which two specs differ, formatted as in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The canonical path, like `load.qps`.
    pub field: String,
    /// The value in the first spec; `None` if it is not set.
    pub old: Option<String>,
    /// The value in the second spec; `None` if it is not set.
    pub new: Option<String>,
}

impl fmt::Display for Difference {
    /// Formats it as `load.qps: 5 → 6`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        write!(f, "{}: {} → {}", self.field, side(&self.old), side(&self.new))
    }
}

/// The fields in which `a` and `b` differ, in canonical order; empty if they are the same run.
pub fn differences(a: &RunSpec, b: &RunSpec) -> Vec<Difference> {
    let (a, b) = (canonical(a), canonical(b));
    let only_new = b.entries().iter().filter(|(path, _)| a.get(path).is_none());
    let mut paths: Vec<&String> = a.entries().iter().chain(only_new).map(|(path, _)| path).collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| (path, a.get(path), b.get(path)))
        .filter(|(_, old, new)| old != new)
        .map(|(path, old, new)| Difference {
            field: path.clone(),
            old: old.map(Value::to_string),
            new: new.map(Value::to_string),
        })
        .collect()
}
