//! Merges scenarios into one scenario and two axes if the scenarios differ only in their lengths and cover
//! every combination of prompt length and output length.

use super::draft::{Entries, Entry, Field};

/// Minimum number of combinations that are merged. For fewer combinations, axes would not make the plan
/// shorter.
const FEWEST: usize = 4;

/// One scenario that replaces several.
pub(super) struct Crossed {
    /// A hint for the scenario's name.
    pub name: String,
    /// The fields of the scenario, without the lengths.
    pub fields: Vec<Field>,
    /// The axes `prompt_tokens` and `output_tokens`.
    pub axes: Vec<Field>,
}

/// The distinct prompt lengths or the distinct output lengths, and the words that specify them.
#[derive(Default)]
struct Side {
    values: Vec<String>,
    origins: Vec<String>,
}

impl Side {
    fn add(&mut self, field: &Field) {
        if !self.values.contains(&field.value) {
            self.values.push(field.value.clone());
            self.origins.push(field.origin.clone());
        }
    }

    fn axis(&self, key: &str, together: fn(&[String]) -> String) -> Field {
        Field::new(key, format!("[{}]", self.values.join(", ")), together(&self.origins))
    }
}

fn is_length(field: &Field) -> bool {
    ["prompt_tokens", "output_tokens"].contains(&field.key.as_str()) && field.value.parse::<u32>().is_ok()
}

/// Returns the scenario and the axes that replace these entries; `None` unless the entries consist of all
/// combinations of their lengths. `together` joins the words that specify the values of an axis.
pub(super) fn crossed(all: &Entries, names: &[String], together: fn(&[String]) -> String) -> Option<Crossed> {
    let find = |name: &String| all.all.iter().find(|entry| entry.name == *name);
    let entries: Vec<&Entry> = names.iter().map(find).collect::<Option<_>>()?;
    let rest =
        |entry: &Entry| -> Vec<Field> { entry.fields.iter().filter(|field| !is_length(field)).cloned().collect() };
    let pairs = |fields: &[Field]| -> Vec<(String, String)> {
        fields.iter().map(|field| (field.key.clone(), field.value.clone())).collect()
    };
    let first = *entries.first()?;
    let fields = rest(first);
    let (mut prompts, mut outputs) = (Side::default(), Side::default());
    for entry in &entries {
        let side = |key: &str| entry.fields.iter().find(|field| field.key == key && is_length(field));
        let (prompt, output) = (side("prompt_tokens")?, side("output_tokens")?);
        if pairs(&rest(entry)) != pairs(&fields) {
            return None;
        }
        prompts.add(prompt);
        outputs.add(output);
    }
    // All entries are distinct, so if their number equals the number of combinations, every combination
    // occurs.
    let is_all = prompts.values.len() * outputs.values.len() == entries.len();
    if !is_all || entries.len() < FEWEST || prompts.values.len() < 2 || outputs.values.len() < 2 {
        return None;
    }
    let end = format!("-{}-{}", prompts.values[0], outputs.values[0]);
    let name = first.name.strip_suffix(&end).filter(|name| !name.is_empty()).unwrap_or("lengths").to_owned();
    let axes = vec![prompts.axis("prompt_tokens", together), outputs.axis("output_tokens", together)];
    Some(Crossed { name, fields, axes })
}
