//! A draft of a plan: tables whose values are already written in YAML, each with its origin, and a list of
//! the source's settings that the plan does not contain.

use std::collections::HashMap;

use super::text::name_of;

/// How a listed setting was handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The setting is lost because the plan has no counterpart.
    Missing,
    /// The setting is in the plan with a different meaning.
    Differs,
    /// The setting is not needed: sweepline does the same anyway, or does it differently.
    Needless,
}

/// A setting of the source that the plan does not contain unchanged, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The setting.
    pub what: String,
    /// Why the plan does not contain the setting unchanged, and what the plan does instead.
    pub why: String,
    /// The lines of the setting, from 1; empty if there are no lines.
    pub lines: Vec<usize>,
    /// How the setting was handled.
    pub(crate) kind: Kind,
}

impl Listed {
    /// Creates the entry for a setting that has no counterpart in a plan.
    pub(super) fn missing(what: impl Into<String>, why: impl Into<String>, line: usize) -> Listed {
        Listed { what: what.into(), why: why.into(), lines: vec![line], kind: Kind::Missing }
    }

    /// Creates the entry for a setting that needs no counterpart.
    pub(super) fn needless(what: impl Into<String>, why: impl Into<String>, line: usize) -> Listed {
        Listed { kind: Kind::Needless, ..Listed::missing(what, why, line) }
    }
}

/// One value of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    /// The key of the field.
    pub key: String,
    /// The value, in YAML's flow style.
    pub value: String,
    /// The origin of the value; empty if it is obvious.
    pub origin: String,
}

impl Field {
    /// Creates a field from a key, a value and the origin of the value.
    pub(super) fn new(key: &str, value: impl Into<String>, origin: impl Into<String>) -> Field {
        Field { key: key.to_owned(), value: value.into(), origin: origin.into() }
    }
}

/// An entry of `endpoints`, `models` or `scenarios`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// The name of the entry.
    pub name: String,
    /// The fields of the entry.
    pub fields: Vec<Field>,
}

/// A table of entries without duplicates.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// The entries, in order of appearance.
    pub all: Vec<Entry>,
    known: HashMap<String, usize>,
    names: HashMap<String, usize>,
}

impl Entries {
    /// Returns the name of the entry with this content; a new entry is named `hint`, or gets a similar name
    /// if that name is taken.
    pub(super) fn add(&mut self, hint: &str, fields: Vec<Field>) -> String {
        let number = *self.known.entry(content(&fields)).or_insert(self.all.len());
        if number == self.all.len() {
            let name = unused(&mut self.names, &name_of(hint, "unnamed"));
            self.all.push(Entry { name, fields });
        }
        self.all[number].name.clone()
    }

    /// Keeps only the entries whose names satisfy the condition.
    pub(super) fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.all.retain(|entry| is_kept(&entry.name));
        let numbered = self.all.iter().enumerate();
        self.known = numbered.map(|(number, entry)| (content(&entry.fields), number)).collect();
    }
}

/// The content that is compared to decide whether two entries are equal.
fn content(fields: &[Field]) -> String {
    fields.iter().map(|field| format!("{}: {}\n", field.key, field.value)).collect()
}

/// Returns `name`, or a similar name that is unused in a table.
pub(super) fn unused(names: &mut HashMap<String, usize>, name: &str) -> String {
    let mut free = name.to_owned();
    while names.contains_key(&free) {
        let count = names.get_mut(name).expect("the source of a taken name is recorded");
        *count += 1;
        free = format!("{name}-{count}");
    }
    names.insert(free.clone(), 1);
    free
}

/// A sweep of the plan.
#[derive(Debug, Clone)]
pub(super) struct Sweep {
    /// The name of the sweep.
    pub name: String,
    /// The origin of the name; empty if the name does not come from the source.
    pub origin: String,
    /// The axes of the sweep.
    pub matrix: Vec<Field>,
    /// The sweep's other fields, which belong next to the matrix.
    pub fields: Vec<Field>,
}

/// A table of the plan that does not contain entries, such as `phases` or `goodput`.
#[derive(Debug, Clone, Default)]
pub(super) struct Section {
    /// The key of the table.
    pub key: &'static str,
    /// The value, if it is not a table.
    pub value: Option<Field>,
    /// The comment above the table.
    pub notes: Vec<String>,
    /// The fields of the table.
    pub fields: Vec<Field>,
}

/// A draft of a plan.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// Top-level fields of the plan: `name`, `notes`, `seed`.
    pub head: Vec<Field>,
    /// The table `endpoints`.
    pub endpoints: Entries,
    /// The table `models`.
    pub models: Entries,
    /// The table `scenarios`.
    pub scenarios: Entries,
    /// The tables `phases`, `slo` and `goodput`.
    pub(crate) sections: Vec<Section>,
    /// The sweeps in `sweeps`.
    pub sweeps: Vec<Sweep>,
    /// The settings that the plan does not contain unchanged.
    pub listed: Vec<Listed>,
}

impl Draft {
    /// Returns the fields of a section, which is created if it does not exist.
    pub(super) fn section(&mut self, key: &'static str) -> &mut Vec<Field> {
        let number = self.sections.iter().position(|section| section.key == key).unwrap_or_else(|| {
            self.sections.push(Section { key, ..Section::default() });
            self.sections.len() - 1
        });
        &mut self.sections[number].fields
    }

    /// Changes every text that gives an origin, or that describes a listed setting.
    pub(crate) fn change_comments(&mut self, change: impl Fn(&str) -> String) {
        let Draft { head, endpoints, models, scenarios, sections, sweeps, listed } = self;
        for one in listed {
            (one.what, one.why) = (change(&one.what), change(&one.why));
        }
        let entries = [endpoints, models, scenarios].into_iter().flat_map(|table| &mut table.all);
        let fields = head
            .iter_mut()
            .chain(entries.flat_map(|entry| &mut entry.fields))
            .chain(sections.iter_mut().flat_map(|section| &mut section.fields))
            .chain(sweeps.iter_mut().flat_map(|sweep| sweep.matrix.iter_mut().chain(&mut sweep.fields)));
        fields.for_each(|field| field.origin = change(&field.origin));
    }
}

/// Maximum number of values of the same option that are listed individually.
const MOST_VALUES: usize = 5;

/// Merges equal entries from several lines into one.
pub(super) fn merged(listed: &[Listed]) -> Vec<Listed> {
    let mut merged: Vec<Listed> = Vec::new();
    // An option with several values counts as one entry.
    let option = |what: &'_ str| {
        what.split_once(' ').filter(|(option, _)| option.starts_with("--")).map(|(o, v)| (o.to_owned(), v.to_owned()))
    };
    let mut known: HashMap<(String, &str), (usize, Vec<String>)> = HashMap::new();
    for one in listed {
        let (key, value) = option(&one.what).unwrap_or_else(|| (one.what.clone(), String::new()));
        let lines = one.lines.iter().copied().filter(|line| *line > 0);
        let (number, values) = known.entry((key, &one.why)).or_insert_with(|| (merged.len(), vec![value.clone()]));
        match merged.get_mut(*number) {
            Some(same) => same.lines.extend(lines),
            None => merged.push(Listed { lines: lines.collect(), ..one.clone() }),
        }
        if values.len() < MOST_VALUES && !values.contains(&value) {
            let more = if values.len() + 1 == MOST_VALUES { "…" } else { &value };
            merged[*number].what.push_str(&format!(", {more}"));
            values.push(value);
        }
    }
    for one in &mut merged {
        one.lines.sort_unstable();
        one.lines.dedup();
    }
    merged
}
