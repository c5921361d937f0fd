//! Converts the closed-loop JSON configuration: `endpoints`, `models`, `scenarios`, `batch_sizes`,
//! `measure_seconds`, `stabilize_seconds`, `max_tokens`, `output_dir`. Values are accepted in several forms;
//! unknown parts are listed.

mod endpoint;
mod json_reader;
mod named_entries;
mod table;

use serde_json::{Map, Value};

use super::draft::{Draft, Field, Listed, Section, Sweep};
use super::error::ImportError;
use super::importer::{Context, FileReader, Importer, Input};
use super::input::Wishes;
use super::json::json;
use super::secrets::Secrets;
use super::text::{self, list, seconds, text_value};
use super::tree::Item;
use json_reader::JsonReader;

/// Keys that identify a JSON object as this configuration.
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

/// Other keys that are read, or that are alternative names of the keys above.
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

/// The importer for the closed-loop configuration.
pub(super) const IMPORTER: Importer = Importer {
    name: "closed-loop",
    title: "closed-loop configuration",
    takes: "the closed-loop JSON configuration (`endpoints`, `models`, …)",
    file: Some(FileReader { is, known: &[], read }),
    command: None,
};

fn is(input: &Input) -> bool {
    let is_json = input.text.trim_start_matches('\u{feff}').trim_start().starts_with('{');
    is_json && input.tree.as_ref().is_some_and(|tree| KEYS.iter().any(|key| tree.peek(key).is_some()))
}

fn read(input: &Input, context: &Context) -> Result<Draft, ImportError> {
    let Context { wishes, notes, .. } = context;
    let Value::Object(object) = json(&wishes.name, input.text)? else {
        return Err(ImportError::unknown(&wishes.name, "JSON, but not an object"));
    };
    // This format lists its unread keys itself, so the whole tree is marked as read.
    input.tree.iter().for_each(Item::take);
    let mut draft = draft(&wishes.name, &object, context.name.clone(), wishes, notes.secrets)?;
    notes.extend(std::mem::take(&mut draft.listed));
    Ok(draft)
}

/// Returns the plan of a configuration.
fn draft(
    file: &str,
    object: &Map<String, Value>,
    name: Field,
    wishes: &Wishes,
    secrets: &Secrets,
) -> Result<Draft, ImportError> {
    secrets.add_json(&Value::Object(object.clone()));
    let mut reading = JsonReader { file, object, secrets, listed: Vec::new() };
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

impl JsonReader<'_> {
    /// Reads the axes whose values are not names.
    fn axes(&mut self, scenarios_have_output: bool) -> Result<Vec<Field>, ImportError> {
        let mut axes = Vec::new();
        let tokens = self.numbers(&["max_tokens"], 1, 4_000_000)?;
        match tokens {
            // Scenarios that do not set their own length already contain `max_tokens`.
            Some(tokens) if scenarios_have_output && tokens.values.len() == 1 => {}
            Some(tokens) if scenarios_have_output => {
                self.list_missing(
                    format!("max_tokens = [{}]", tokens.values.join(", ")),
                    "scenarios set their own lengths",
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
                return Err(self.wrong("seed", "expected a whole number of 0 or more", "fix it, or remove it"));
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
                    draft.sections.push(Section { key: "timeouts", fields, ..Section::default() });
                }
                Some(number) => fields.push(Field::new(phase, seconds(number), key)),
                None => return Err(self.wrong(key, "expected a number of seconds", "write one, like 60")),
            }
        }
        let note = "Load rises (fill), settles (stabilize), is measured, and is kept up while the measured requests \
                    end (drain); requests may span the boundaries of phases.";
        draft.sections.insert(0, Section { key: "phases", notes: vec![note.to_owned()], fields, ..Section::default() });
        Ok(())
    }

    /// Lists the unread keys.
    fn rest(&mut self) {
        for (key, value) in self.object {
            let known = KEYS.iter().chain(&MORE).copied();
            let shown = text::one_line(&self.secrets.shown(key, &value.to_string()));
            match key.as_str() {
                "output_dir" => {
                    let folder = value.as_str().unwrap_or("DIR");
                    let why = format!("run `sweepline run PLAN --results {folder}`");
                    self.listed.push(Listed::needless(format!("output_dir = {shown}"), why, 0));
                }
                key if known.clone().any(|known| known == key) => {}
                key => {
                    let folded = key.to_lowercase().replace('-', "_");
                    let near = known.min_by_key(|known| strsim::damerau_levenshtein(known, &folded));
                    let near = near.filter(|near| strsim::damerau_levenshtein(near, &folded) <= 1 + folded.len() / 4);
                    let why = near.map_or("unknown".to_owned(), |near| format!("unknown; did you mean `{near}`?"));
                    self.list_missing(format!("{key} = {shown}"), why);
                }
            }
        }
    }
}
