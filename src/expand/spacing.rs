//! Serializes the spacing of arrivals in stored runs, either as written in a plan or as `trace`,
//! which plans cannot contain.

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};

use crate::plan::{Arrivals, Process};

pub(super) fn serialize<S: Serializer>(arrivals: &Arrivals, serializer: S) -> Result<S::Ok, S::Error> {
    match arrivals.process {
        Process::Trace => serializer.serialize_str(Process::Trace.name()),
        _ => arrivals.serialize(serializer),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arrivals, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    match value.as_str() == Some(Process::Trace.name()) {
        true => Ok(Process::Trace.into()),
        false => Arrivals::deserialize(value).map_err(D::Error::custom),
    }
}
