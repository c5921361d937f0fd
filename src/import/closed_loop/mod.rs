//! The closed-loop JSON configuration: `endpoints`, `models`, `scenarios`, `batch_sizes`, `measure_seconds`,
//! `stabilize_seconds`, `max_tokens`, `output_dir`. Shapes are taken as they come; what is not understood is listed.

mod endpoint;
mod parts;
mod table;

use serde_json::{Map, Value};

use super::draft::{Draft, Field, Listed, Section, Sweep};
use super::error::ImportError;
use super::secrets::Secrets;
use super::text::{scalar, seconds, text_value};
use super::{Wishes, text};
use parts::Parts;

/// Keys that make a JSON object this configuration.
pub(super) const KEYS: [&str; 8] = [
    "endpoints",
    "models",
    "scenarios",
    "batch_sizes",
    "measure_seconds",
    "stabilize_seconds",
    "max_tokens",
    "output_dir",
];

/// Other keys that are read, or other names of those above.
const MORE: [&str; 16] = [
    "endpoint",
    "model",
    "scenario",
    "batch_size",
    "concurrency",
    "concurrencies",
    "fill_seconds",
    "drain_seconds",
    "timeout_seconds",
    "temperature",
    "stream",
    "seed",
    "repeats",
    "name",
    "description",
    "notes",
];

/// More values than a list of such a configuration has.
const MOST: usize = 10_000;

/// One value of the configuration, with its place in words.
pub(super) struct Reading<'a> {
    file: &'a str,
    object: &'a Map<String, Value>,
    secrets: &'a Secrets,
    listed: Vec<Listed>,
}

/// The plan of a configuration.
pub(super) fn draft(
    file: &str,
    object: &Map<String, Value>,
    name: Field,
    wishes: &Wishes,
    secrets: &Secrets,
) -> Result<Draft, ImportError> {
    secrets.add_json(&Value::Object(object.clone()));
    let mut reading = Reading { file, object, secrets, listed: Vec::new() };
    let mut draft = Draft { head: reading.head(name)?, ..Draft::default() };
    let endpoints = reading.endpoints(&mut draft, wishes)?;
    let models = reading.models(&mut draft, wishes)?;
    let scenarios = reading.scenarios(&mut draft)?;
    let mut matrix = vec![
        Field::new("endpoint", list(&endpoints), ""),
        Field::new("model", list(&models), ""),
        Field::new("scenario", list(&scenarios.names), scenarios.origin),
    ];
    matrix.extend(reading.axes(scenarios.has_output)?);
    let repeats = reading.numbers(&["repeats"], 1, 1000)?;
    let fields =
        repeats.map(|repeats| Field::new("repeats", repeats.values[0].clone(), "repeats")).into_iter().collect();
    draft.sweeps.push(Sweep { name: "batches".to_owned(), origin: String::new(), matrix, fields });
    reading.times(&mut draft)?;
    reading.rest();
    draft.listed = reading.listed;
    Ok(draft)
}

fn list(names: &[String]) -> String {
    format!("[{}]", names.iter().map(|name| scalar(name)).collect::<Vec<_>>().join(", "))
}

/// Numbers of a list, and the key that had them.
struct Numbers {
    key: String,
    values: Vec<String>,
}

impl Numbers {
    fn field(self, axis: &str) -> Field {
        Field::new(axis, format!("[{}]", self.values.join(", ")), self.key)
    }
}

impl Reading<'_> {
    fn wrong(&self, at: &str, what: &str, remedy: &str) -> ImportError {
        ImportError::Shape { place: format!("{}: {at}", self.file), what: what.to_owned(), remedy: remedy.to_owned() }
    }

    fn list_missing(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.listed.push(Listed::missing(what, why, 0));
    }

    /// The first of these keys that is there; the others are listed.
    fn first(&mut self, keys: &[&str]) -> Option<(String, Value)> {
        let mut found = keys.iter().filter_map(|key| Some((*key, self.object.get(*key)?)));
        let first = found.next().map(|(key, value)| (key.to_owned(), value.clone()));
        let others: Vec<String> = found.map(|(key, _)| key.to_owned()).collect();
        for other in others {
            self.list_missing(other, format!("`{}` says the same, and is taken", keys[0]));
        }
        first
    }

    /// Whole numbers: one, a list, or a text of them between commas.
    fn numbers(&mut self, keys: &[&str], least: u64, most: u64) -> Result<Option<Numbers>, ImportError> {
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
                    &format!("`{shown}` is none of {wanted}"),
                    "correct it",
                ));
            };
            let number = number.to_string();
            if numbers.contains(&number) {
                self.list_missing(
                    format!("{key}[{at}] = {number}"),
                    "it is there twice; `repeats` runs a cell several times",
                );
            } else {
                numbers.push(number);
            }
        }
        Ok(Some(Numbers { key, values: numbers }))
    }

    /// An axis of values of one kind.
    fn values(&mut self, key: &str, fits: impl Fn(&Value) -> bool, wanted: &str) -> Result<Option<Field>, ImportError> {
        let Some(value) = self.object.get(key) else { return Ok(None) };
        let mut values = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        values.dedup();
        if values.is_empty() || values.len() > MOST || !values.iter().all(fits) {
            return Err(self.wrong(
                key,
                &format!("it must be {wanted}, or a list of such"),
                "correct it, or take it out",
            ));
        }
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        Ok(Some(Field::new(key, format!("[{}]", values.join(", ")), key)))
    }

    /// The axes that are no names.
    fn axes(&mut self, scenarios_have_output: bool) -> Result<Vec<Field>, ImportError> {
        let mut axes = Vec::new();
        let tokens = self.numbers(&["max_tokens"], 1, 4_000_000)?;
        match tokens {
            // Where a scenario has its own, the others were given this one.
            Some(tokens) if scenarios_have_output && tokens.values.len() == 1 => {}
            Some(tokens) if scenarios_have_output => {
                self.list_missing(
                    format!("max_tokens = [{}]", tokens.values.join(", ")),
                    "scenarios say their own lengths",
                );
            }
            tokens => axes.extend(tokens.map(|tokens| tokens.field("output_tokens"))),
        }
        let warm = |value: &Value| value.as_f64().is_some_and(|value| (0.0..=2.0).contains(&value));
        axes.extend(self.values("temperature", warm, "a number from 0 to 2")?);
        axes.extend(self.values("stream", Value::is_boolean, "true or false")?);
        let keys = ["batch_sizes", "batch_size", "concurrencies", "concurrency"];
        let Some(sizes) = self.numbers(&keys, 1, 100_000)? else {
            let remedy = "add \"batch_sizes\": [1, 2, 4, 8]";
            return Err(self.wrong("batch_sizes", "there are none, so there is no load", remedy));
        };
        axes.push(sizes.field("batch_size"));
        Ok(axes)
    }

    fn head(&mut self, name: Field) -> Result<Vec<Field>, ImportError> {
        let text = |key: &str| self.object.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let mut head =
            vec![text("name").map_or(name, |name| Field::new("name", text_value(&text::one_line(name)), "name"))];
        for key in ["description", "notes"] {
            if let Some(words) = text(key)
                && head.len() < 2
            {
                head.push(Field::new("notes", text_value(words), key));
            }
        }
        if let Some(seed) = self.object.get("seed") {
            let Some(seed) = seed.as_u64() else {
                return Err(self.wrong("seed", "it must be a whole number of 0 or more", "correct it, or take it out"));
            };
            head.push(Field::new("seed", seed.to_string(), "seed"));
        }
        Ok(head)
    }

    fn times(&mut self, draft: &mut Draft) -> Result<(), ImportError> {
        let mut fields = Vec::new();
        for (key, phase, least, default) in [
            ("fill_seconds", "fill", 0.0, Some("30s")),
            ("stabilize_seconds", "stabilize", 0.0, Some("60s")),
            ("measure_seconds", "measure", 0.001, Some("120s")),
            ("drain_seconds", "drain", 0.0, Some("30s")),
            ("timeout_seconds", "request", 0.001, None),
        ] {
            let Some(value) = self.object.get(key) else {
                fields.extend(
                    default.map(|default| Field::new(phase, default, format!("no {key}; default of sweepline"))),
                );
                continue;
            };
            let number = value.as_f64().or_else(|| value.as_str()?.trim_end_matches('s').trim().parse().ok());
            match number.filter(|number| (least..=31_536_000.0).contains(number)) {
                Some(number) if phase == "request" => {
                    let fields = vec![Field::new(phase, seconds(number), key)];
                    draft.sections.push(Section { key: "timeouts", notes: Vec::new(), fields });
                }
                Some(number) => fields.push(Field::new(phase, seconds(number), key)),
                None => return Err(self.wrong(key, "it must be a number of seconds", "write one, like 60")),
            }
        }
        let note = "Load rises (fill), settles (stabilize), is measured, and is kept up while the measured requests end (drain); \
                    it flows across every border.";
        draft.sections.insert(0, Section { key: "phases", notes: vec![note.to_owned()], fields });
        Ok(())
    }

    /// What no one read.
    fn rest(&mut self) {
        for (key, value) in self.object {
            let known = KEYS.iter().chain(&MORE).copied();
            let shown = text::one_line(&self.secrets.shown(key, &value.to_string()));
            match key.as_str() {
                "output_dir" => {
                    let folder = value.as_str().unwrap_or("DIR");
                    let why = format!("type `sweepline run PLAN --results {folder}`");
                    self.listed.push(Listed::needless(format!("output_dir = {shown}"), why, 0));
                }
                key if known.clone().any(|known| known == key) => {}
                key => {
                    let folded = key.to_lowercase().replace('-', "_");
                    let near = known.min_by_key(|known| strsim::damerau_levenshtein(known, &folded));
                    let near = near.filter(|near| strsim::damerau_levenshtein(near, &folded) <= 1 + folded.len() / 4);
                    let why =
                        near.map_or("not understood".to_owned(), |near| format!("not understood; was `{near}` meant?"));
                    self.list_missing(format!("{key} = {shown}"), why);
                }
            }
        }
    }
}
