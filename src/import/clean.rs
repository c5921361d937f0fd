//! Removes secrets from the plan that is being created. A value that contains a secret is omitted and
//! listed; it is never replaced with `***`, because a run would send that. Readers recognize most secrets
//! themselves, and this module catches the rest.

use serde_json::Value;

use super::draft::{Draft, Entry, Field};
use super::error::ImportError;
use super::job::Job;
use super::notes::Notes;
use super::secrets::WHY;
use super::text::{name_of, scalar};
use crate::plan::Format;
use crate::plan::foreign::{self, Placed, Value as Written};

/// The parts of an address that are omitted because they may be secret.
pub(super) const CREDENTIALS: &str = "user name, password or query of the address";
pub(super) const WHY_CREDENTIALS: &str = "a plan holds no secrets: add api_key: { secret: env:NAME }";
/// Why an axis of server flags is left out.
const WHY_NO_SETTINGS: &str =
    "the command that starts the server contains a possible secret, so the plan does not start it";
/// Fields without which an entry is invalid.
const NEEDED: [&str; 5] = ["url", "id", "base", "engine", "api"];

/// Adds the note that an address contained a user name, a password or a query.
pub(super) fn credentials(notes: &Notes, line: usize) {
    notes.missing(CREDENTIALS, WHY_CREDENTIALS, line);
}

/// Removes secrets from the names in a job.
pub(super) fn job(job: &mut Job, notes: &Notes) {
    let holds = |text: &str| notes.secrets.are_in(text);
    if job.label.take_if(|label| holds(label)).is_some() {
        notes.missing("--label ***", WHY, job.line);
    }
    if job.apart.take_if(|said| holds(&said.value)).is_some() {
        notes.missing("the name of a sweep", WHY, job.line);
    }
    for (hint, otherwise) in
        [(&mut job.endpoint.0, "server"), (&mut job.model.0, "model"), (&mut job.scenario.0, "scenario")]
    {
        if holds(hint) {
            *hint = otherwise.to_owned();
        }
    }
}

/// Removes secrets from the values of a plan and lists them; fails if an entry requires a value that contains
/// a secret.
pub(super) fn draft(draft: &mut Draft, file: &str, notes: &Notes) -> Result<(), ImportError> {
    names(draft, notes);
    let launched = launches(&draft.endpoints.all);
    let Draft { head, endpoints, models, scenarios, sections, sweeps, .. } = draft;
    let entries = [endpoints, models, scenarios].into_iter().flat_map(|table| &mut table.all);
    let all = std::iter::once(head)
        .chain(entries.map(|entry| &mut entry.fields))
        .chain(sections.iter_mut().map(|section| &mut section.fields))
        .chain(sweeps.iter_mut().flat_map(|sweep| [&mut sweep.matrix, &mut sweep.fields]));
    for fields in all {
        let mut kept = Vec::with_capacity(fields.len());
        for field in std::mem::take(fields) {
            kept.extend(cleaned(field, file, notes)?);
        }
        *fields = kept;
    }
    if launches(&draft.endpoints.all) < launched {
        without_settings(draft, notes);
    }
    Ok(())
}

/// Returns the number of endpoints that the plan launches.
fn launches(endpoints: &[Entry]) -> usize {
    endpoints.iter().flat_map(|endpoint| &endpoint.fields).filter(|field| field.key == "launch").count()
}

/// Removes the axes that set flags of servers, which the plan no longer launches.
fn without_settings(draft: &mut Draft, notes: &Notes) {
    for sweep in &mut draft.sweeps {
        for axis in sweep.matrix.extract_if(.., |field| field.key == "server") {
            notes.missing(&axis.origin, WHY_NO_SETTINGS, 0);
        }
    }
}

/// Renames entries whose names contain a secret.
fn names(draft: &mut Draft, notes: &Notes) {
    let holds = |text: &str| notes.secrets.hide_known(text) != text;
    let tables = [&mut draft.endpoints, &mut draft.models, &mut draft.scenarios];
    for (number, entry) in tables.into_iter().flat_map(|table| &mut table.all).enumerate() {
        if !holds(&entry.name) {
            continue;
        }
        let (old, new) = (scalar(&entry.name), format!("unnamed-{number}"));
        for field in draft.sweeps.iter_mut().flat_map(|sweep| &mut sweep.matrix) {
            field.value = field.value.replace(&old, &new);
        }
        entry.name = new;
    }
    for (number, sweep) in draft.sweeps.iter_mut().enumerate().filter(|(_, sweep)| holds(&sweep.name)) {
        notes.missing(&sweep.origin, WHY, 0);
        (sweep.name, sweep.origin) = (format!("sweep-{number}"), String::new());
    }
}

/// Returns a field without secrets, or `None` if nothing of it remains.
fn cleaned(field: Field, file: &str, notes: &Notes) -> Result<Option<Field>, ImportError> {
    let Some(value) = value_of(&field.value) else { return Ok(Some(field)) };
    if !notes.secrets.are_in_value("", &value) {
        return Ok(Some(field));
    }
    match (field.key.as_str(), &value) {
        ("name", _) => Ok(Some(Field::new("name", name_of("", "imported"), ""))),
        // The notes of a plan are never sent.
        ("notes", Value::String(text)) => {
            notes.differs("notes", "possible secrets in them are shown as `***`", 0);
            Ok(Some(Field { value: scalar(&notes.secrets.hide(text)), ..field }))
        }
        (key, _) if NEEDED.contains(&key) => {
            let option = field.origin.split(' ').next().unwrap_or_default();
            let what = format!("`{key}` of {option} contains a user name, a password or a key");
            Err(ImportError::shape(file, what, "remove the secret there and import again"))
        }
        (_, Value::Object(entries)) => {
            let (bad, good): (Vec<_>, Vec<_>) = entries
                .iter()
                .partition(|(key, value)| notes.secrets.are_in_value(key, value) || notes.secrets.are_in(key));
            for (key, _) in &bad {
                let part = field.origin.split(", ").find(|part| part.ends_with(key.as_str()));
                lost(part.unwrap_or(&field.origin), notes);
            }
            let entry = |(key, value): (&String, &Value)| {
                super::request::flow_as_it_is(value).map(|value| format!("{}: {value}", scalar(key)))
            };
            let left: Vec<String> = good.into_iter().filter_map(entry).collect();
            Ok((!left.is_empty()).then(|| Field { value: format!("{{ {} }}", left.join(", ")), ..field }))
        }
        _ => {
            lost(&field.origin, notes);
            Ok(None)
        }
    }
}

/// Lists an omitted value, identified by the words that specify it.
fn lost(origin: &str, notes: &Notes) {
    let (what, line) = origin.rsplit_once(", line ").unwrap_or((origin, "0"));
    match line.parse() {
        Ok(line) if line > 0 => notes.missing(what, WHY, line),
        _ => notes.missing_somewhere(origin, WHY),
    }
}

/// Parses a value of a plan, which is written in YAML's flow style.
fn value_of(yaml: &str) -> Option<Value> {
    let tree = foreign::tree(&format!("v: {yaml}"), Format::Yaml, 1_000_000).ok()?;
    match tree.value {
        Written::Table(entries) => entries.first().map(|(_, placed)| json(placed)),
        _ => None,
    }
}

fn json(placed: &Placed) -> Value {
    match &placed.value {
        Written::Null => Value::Null,
        Written::Bool(value) => (*value).into(),
        Written::Number(digits) => serde_json::from_str(digits).unwrap_or_else(|_| digits.as_str().into()),
        Written::Text(text) => text.as_str().into(),
        Written::List(items) => items.iter().map(json).collect(),
        Written::Table(entries) => Value::Object(entries.iter().map(|(key, one)| (key.clone(), json(one))).collect()),
    }
}
