//! Reads the values of the configuration by key, and lists its unknown parts.

use serde_json::{Map, Value};

use crate::import::draft::{Field, Listed};
use crate::import::error::ImportError;
use crate::import::secrets::Secrets;
use crate::import::text;

/// Maximum number of values in a list, which is far more than any real configuration contains.
pub(super) const MOST: usize = 10_000;

/// Reads the values of the configuration, and lists the settings that the plan does not contain.
pub(super) struct JsonReader<'a> {
    /// The name of the file in messages.
    pub(super) file: &'a str,
    /// The configuration.
    pub(super) object: &'a Map<String, Value>,
    /// The secrets that must not be shown.
    pub(super) secrets: &'a Secrets,
    /// The settings that are not in the plan.
    pub(super) listed: Vec<Listed>,
}

/// The numbers in a list, and the key of the list.
pub(super) struct Numbers {
    /// The key of the list.
    pub(super) key: String,
    /// The numbers, as written.
    pub(super) values: Vec<String>,
}

impl Numbers {
    /// Returns an axis with these numbers.
    pub(super) fn field(self, axis: &str) -> Field {
        Field::new(axis, format!("[{}]", self.values.join(", ")), self.key)
    }
}

impl JsonReader<'_> {
    /// Returns an error about the value of a key.
    pub(super) fn wrong(&self, at: &str, what: &str, remedy: &str) -> ImportError {
        ImportError::shape(format!("{}: {at}", self.file), what, remedy)
    }

    /// Lists a setting that has no counterpart in a plan.
    pub(super) fn list_missing(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.listed.push(Listed::missing(what, why, 0));
    }

    /// Returns the first of these keys that exists, with its value; the other existing keys are listed.
    pub(super) fn first(&mut self, keys: &[&str]) -> Option<(String, Value)> {
        let mut found = keys.iter().filter_map(|key| Some((*key, self.object.get(*key)?)));
        let first = found.next().map(|(key, value)| (key.to_owned(), value.clone()));
        let others: Vec<String> = found.map(|(key, _)| key.to_owned()).collect();
        for other in others {
            self.list_missing(other, format!("`{}` sets the same value, and is used", keys[0]));
        }
        first
    }

    /// Returns whole numbers from a single number, a list, or a text in which they are separated by
    /// commas.
    pub(super) fn numbers(&mut self, keys: &[&str], least: u64, most: u64) -> Result<Option<Numbers>, ImportError> {
        let Some((key, value)) = self.first(keys) else { return Ok(None) };
        let values = match value {
            Value::Array(values) => values,
            Value::String(text) => text.split(',').map(|part| Value::String(part.trim().to_owned())).collect(),
            one => vec![one],
        };
        let wanted = format!("whole numbers from {least} to {most}");
        if values.is_empty() || values.len() > MOST {
            return Err(self.wrong(&key, "this list is empty or far too long", &format!("write {wanted}")));
        }
        let mut numbers: Vec<String> = Vec::new();
        for (at, value) in values.iter().enumerate() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let number = text.parse::<u64>().ok().filter(|number| (least..=most).contains(number));
            let Some(number) = number else {
                let shown = text::one_line(&self.secrets.hide(&text));
                return Err(self.wrong(
                    &format!("{key}[{at}]"),
                    &format!("`{shown}` is not one of {wanted}"),
                    "fix it",
                ));
            };
            let number = number.to_string();
            if numbers.contains(&number) {
                self.list_missing(
                    format!("{key}[{at}] = {number}"),
                    "it is listed twice; `repeats` runs a cell several times",
                );
            } else {
                numbers.push(number);
            }
        }
        Ok(Some(Numbers { key, values: numbers }))
    }

    /// Returns an axis with the values under a key, which must all satisfy `fits`.
    pub(super) fn values(
        &mut self,
        key: &str,
        fits: impl Fn(&Value) -> bool,
        wanted: &str,
    ) -> Result<Option<Field>, ImportError> {
        let Some(value) = self.object.get(key) else { return Ok(None) };
        let mut values = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        values.dedup();
        if values.is_empty() || values.len() > MOST || !values.iter().all(fits) {
            return Err(self.wrong(key, &format!("expected {wanted}, or a list of them"), "fix it, or remove it"));
        }
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        Ok(Some(Field::new(key, format!("[{}]", values.join(", ")), key)))
    }
}
