//! Merges the plans of several treatments into one plan.

use std::collections::HashMap;

use crate::import::draft::{Draft, Entries, Field, unused};
use crate::import::notes::Notes;
use crate::import::text::{list, name_of};

/// Merges plans, each of which is given with the name of its treatment.
pub(super) fn together(all: Vec<(String, Draft)>, notes: &Notes) -> Draft {
    let mut made = Draft::default();
    let mut names = HashMap::new();
    for (treatment, draft) in all {
        let renamed = [
            ("endpoint", moved(&mut made.endpoints, draft.endpoints)),
            ("model", moved(&mut made.models, draft.models)),
            ("scenario", moved(&mut made.scenarios, draft.scenarios)),
        ];
        for field in draft.head {
            if made.head.iter().all(|known| known.key != field.key) {
                made.head.push(field);
            }
        }
        for section in draft.sections {
            match made.sections.iter().find(|known| known.key == section.key) {
                None => made.sections.push(section),
                Some(known) if known.fields == section.fields => {}
                Some(_) => {
                    let why = format!("a plan has one `{}`, here that of the first treatment", section.key);
                    notes.missing(&format!("{} of {treatment}", section.key), &why, 0);
                }
            }
        }
        let is_only = draft.sweeps.len() == 1;
        for mut sweep in draft.sweeps {
            for (key, renamed) in &renamed {
                sweep.matrix.iter_mut().filter(|axis| axis.key == *key).for_each(|axis| rename(axis, renamed));
            }
            let name = if is_only { treatment.clone() } else { format!("{treatment}-{}", sweep.name) };
            sweep.name = unused(&mut names, &name_of(&name, "treatment"));
            made.sweeps.push(sweep);
        }
        notes.listed.borrow_mut().extend(draft.listed);
    }
    made
}

/// Moves entries into another table; returns the new name for each old name, both as written in the plan.
fn moved(there: &mut Entries, here: Entries) -> HashMap<String, String> {
    let written = |name: &str| list(&[name.to_owned()]).trim_matches(['[', ']']).to_owned();
    let moved = here.all.into_iter().map(|entry| {
        let name = there.add(&entry.name, entry.fields);
        (written(&entry.name), written(&name))
    });
    moved.collect()
}

fn rename(axis: &mut Field, renamed: &HashMap<String, String>) {
    let names = axis.value.trim_matches(['[', ']']).split(", ");
    let names: Vec<&str> = names.map(|name| renamed.get(name).map_or(name, String::as_str)).collect();
    axis.value = format!("[{}]", names.join(", "));
}
