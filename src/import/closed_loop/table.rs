//! Objects whose keys are looked up under several names, and what of them nobody read.

use std::cell::RefCell;

use serde_json::{Map, Value};

/// One item of a list or table: its place in words, its name where it has one, and what it is.
pub(super) struct Item {
    pub at: String,
    pub name: Option<String>,
    pub value: Value,
}

/// An object, and which of its keys were read.
pub(super) struct Table<'a> {
    object: Option<&'a Map<String, Value>>,
    used: RefCell<Vec<&'a str>>,
}

impl<'a> Table<'a> {
    /// An object; any other value has no keys.
    pub(super) fn of(value: &'a Value) -> Table<'a> {
        Table { object: value.as_object(), used: RefCell::default() }
    }

    /// Whether it has no keys.
    pub(super) fn is_empty(&self) -> bool {
        self.object.is_none_or(Map::is_empty)
    }

    /// What `take` makes of the first of these keys that it takes.
    fn first<T>(&self, keys: &[&str], take: impl Fn(&Value) -> Option<T>) -> Option<(&'a str, T)> {
        let entry = |key: &&str| {
            let (key, value) = self.object?.get_key_value(*key)?;
            Some((key.as_str(), take(value)?))
        };
        let found = keys.iter().find_map(entry)?;
        self.used.borrow_mut().push(found.0);
        Some(found)
    }

    /// A text under the first of these keys that has one.
    pub(super) fn text(&self, keys: &[&str]) -> Option<String> {
        self.first(keys, |value| value.as_str().map(str::to_owned)).map(|(_, text)| text)
    }

    /// A whole number, and the key that has it.
    pub(super) fn whole(&self, keys: &[&str]) -> Option<(&'a str, u64)> {
        self.first(keys, |value| value.as_u64().or_else(|| value.as_str()?.parse().ok()))
    }

    /// The number of a port.
    pub(super) fn port(&self) -> Option<u64> {
        self.whole(&["port"]).map(|(_, port)| port)
    }

    /// What nobody read.
    pub(super) fn unused(&self) -> Vec<(&'a str, &'a Value)> {
        let used = self.used.borrow();
        let entries = self.object.into_iter().flatten().map(|(key, value)| (key.as_str(), value));
        entries.filter(|(key, _)| !used.contains(key)).collect()
    }
}

/// Keys that only one entry has, and no table of entries by name.
const KEYS_OF_ONE: [&str; 10] =
    ["url", "base_url", "host", "port", "engine", "id", "model_id", "base", "prompt_tokens", "input_tokens"];

/// Whether an object is one entry, and not a table of entries by name.
pub(super) fn is_one(object: &Map<String, Value>) -> bool {
    object.keys().any(|key| KEYS_OF_ONE.contains(&key.as_str()))
}
