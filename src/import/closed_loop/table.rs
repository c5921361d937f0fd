//! Reads objects whose keys have alternative names, and records which keys have been read.

use std::cell::RefCell;

use serde_json::{Map, Value};

/// One item of a list or table: a description of its place, its name if it has one, and its value.
pub(super) struct Item {
    pub at: String,
    pub name: Option<String>,
    pub value: Value,
}

/// An object, and the keys that have been read.
pub(super) struct Table<'a> {
    object: Option<&'a Map<String, Value>>,
    used: RefCell<Vec<&'a str>>,
}

impl<'a> Table<'a> {
    /// Wraps an object; any other value has no keys.
    pub(super) fn of(value: &'a Value) -> Table<'a> {
        Table { object: value.as_object(), used: RefCell::default() }
    }

    /// Whether the object has no keys.
    pub(super) fn is_empty(&self) -> bool {
        self.object.is_none_or(Map::is_empty)
    }

    /// Returns the first of these keys whose value `take` can convert, with the converted value.
    fn first<T>(&self, keys: &[&str], take: impl Fn(&Value) -> Option<T>) -> Option<(&'a str, T)> {
        let entry = |key: &&str| {
            let (key, value) = self.object?.get_key_value(*key)?;
            Some((key.as_str(), take(value)?))
        };
        let found = keys.iter().find_map(entry)?;
        self.used.borrow_mut().push(found.0);
        Some(found)
    }

    /// Returns the text under the first of these keys that has a text.
    pub(super) fn text(&self, keys: &[&str]) -> Option<String> {
        self.first(keys, |value| value.as_str().map(str::to_owned)).map(|(_, text)| text)
    }

    /// Returns the first whole number under these keys, with its key.
    pub(super) fn whole(&self, keys: &[&str]) -> Option<(&'a str, u64)> {
        self.first(keys, |value| value.as_u64().or_else(|| value.as_str()?.parse().ok()))
    }

    /// Returns the number under the key `port`.
    pub(super) fn port(&self) -> Option<u64> {
        self.whole(&["port"]).map(|(_, port)| port)
    }

    /// Returns the unread keys.
    pub(super) fn unused(&self) -> Vec<(&'a str, &'a Value)> {
        let used = self.used.borrow();
        let entries = self.object.into_iter().flatten().map(|(key, value)| (key.as_str(), value));
        entries.filter(|(key, _)| !used.contains(key)).collect()
    }
}

/// Keys that occur only in a single entry, not in a table of entries keyed by name.
const KEYS_OF_ONE: [&str; 10] =
    ["url", "base_url", "host", "port", "engine", "id", "model_id", "base", "prompt_tokens", "input_tokens"];

/// Whether an object is one entry rather than a table of entries keyed by name.
pub(super) fn is_one(object: &Map<String, Value>) -> bool {
    object.keys().any(|key| KEYS_OF_ONE.contains(&key.as_str()))
}
