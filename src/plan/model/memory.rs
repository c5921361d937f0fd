//! An amount of memory: 200GB, 64GiB, 512MB.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{Decimal, Forms};

/// An amount of memory, in bytes. Requires a unit: B, kB, MB, GB and TB are powers of 1000; KiB, MiB,
/// GiB and TiB are powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Memory(pub u64);

/// Units with their bytes, largest first.
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

impl Memory {
    /// Mebibytes, rounded up.
    pub fn mebibytes(self) -> u64 {
        self.0.div_ceil(1 << 20)
    }
}

impl FromStr for Memory {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let unit = UNITS.iter().find(|(unit, _)| text.ends_with(unit));
        let bytes = unit.and_then(|(unit, bytes)| {
            let number: Decimal = text.strip_suffix(unit)?.trim_end().parse().ok()?;
            Some(number.to_f64() * *bytes as f64).filter(|bytes| (0.0..1e18).contains(bytes))
        });
        bytes
            .map(|bytes| Memory(bytes.round() as u64))
            .ok_or_else(|| format!("`{text}` is not an amount of memory: write one with a unit, like 200GB or 64GiB"))
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_whole = |(_, bytes): &&(&str, u64)| self.0 >= *bytes && self.0.is_multiple_of(*bytes);
        let (unit, bytes) = UNITS.iter().find(is_whole).unwrap_or(&("B", 1));
        write!(f, "{}{unit}", self.0 / bytes)
    }
}

impl Serialize for Memory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Memory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("an amount of memory with a unit, like 200GB or 64GiB").parsed().read(deserializer)
    }
}

impl JsonSchema for Memory {
    fn schema_name() -> Cow<'static, str> {
        "Memory".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^[0-9]+(\.[0-9]+)? ?(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$",
            "patternErrorMessage": "write an amount of memory with a unit, like 200GB or 64GiB",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_counted_in_powers_of_1000_or_1024() {
        let read = |text: &str| text.parse::<Memory>().map(|memory| memory.0).ok();
        let bytes = ["200GB", "64GiB", "1.5 MB", "512B"].map(read);
        assert_eq!(bytes, [Some(200_000_000_000), Some(68_719_476_736), Some(1_500_000), Some(512)]);
        assert_eq!(["", "200", "200G", "GB", "-1GB", "1EB"].map(read), [None; 6]);
        assert_eq!(Memory(200_000_000_000).mebibytes(), 190_735, "rounded up: never less than requested");
        for text in ["200GB", "64GiB", "1500kB", "0B", "3TiB"] {
            assert_eq!(text.parse::<Memory>().unwrap().to_string(), text);
        }
    }
}
