//! Chooses entries of a master file, which has hundreds of them for dozens of machines. All entries are
//! chosen if one machine runs all of them; otherwise, those that `--entry` names are chosen.

use std::fmt::Write as _;

use super::entry::Entry;
use crate::import::error::ImportError;
use crate::import::importer::Context;
use crate::import::text::one_line;
use crate::import::tree::At;

/// Maximum number of machines listed in a message.
const MOST_MACHINES: usize = 40;
/// Maximum number of entries listed per machine.
const MOST_ENTRIES: usize = 12;

/// The chosen entries.
pub(super) struct Chosen<'a> {
    /// The entries, in the order of the file.
    pub(super) entries: Vec<Entry<'a>>,
}

impl<'a> Chosen<'a> {
    /// Chooses the entries.
    pub(super) fn of(root: At<'a>, context: &Context) -> Result<Chosen<'a>, ImportError> {
        let (file, asked) = (&context.wishes.name, &context.wishes.entries);
        let mut all: Vec<Entry> = root.entries().into_iter().map(|(key, at)| Entry::of(key, at)).collect();
        for pattern in asked {
            named(&all, pattern, file)?;
        }
        let is_chosen = |entry: &Entry| asked.is_empty() || asked.iter().any(|pattern| fits(pattern, entry.key));
        let others: Vec<Entry> = all.extract_if(.., |entry| !is_chosen(entry)).collect();
        let mut entries = Vec::new();
        for entry in all {
            match entry.refused() {
                None => entries.push(entry),
                Some(why) if asked.iter().any(|pattern| pattern == entry.key) => {
                    return Err(entry.at.wrong(
                        file,
                        &format!("this entry cannot be imported: {why}"),
                        "choose another with --entry",
                    ));
                }
                Some(why) => entry.at.refused(&why),
            }
        }
        if entries.is_empty() {
            let why = context.notes.listed.borrow().first().map(|one| format!("{}: {}", one.what, one.why));
            let what = format!(
                "a plan can start none of the entries; {}",
                why.unwrap_or_else(|| "there are no entries".to_owned())
            );
            return Err(ImportError::shape(file, one_line(&what), "choose others with --entry"));
        }
        if asked.is_empty() && machines(&entries).len() > 1 {
            return Err(ask(&entries, file));
        }
        if !others.is_empty() {
            others.iter().for_each(|entry| entry.at.skip());
            let why = "not chosen by --entry";
            context.notes.needless(&format!("{} other entries", others.len()), why, 0);
        }
        Ok(Chosen { entries })
    }
}

/// Finds the entries that match a pattern.
fn named(all: &[Entry], pattern: &str, file: &str) -> Result<(), ImportError> {
    if all.iter().any(|entry| fits(pattern, entry.key)) {
        return Ok(());
    }
    let shown = one_line(pattern);
    let near = all.iter().map(|entry| entry.key).min_by_key(|key| strsim::damerau_levenshtein(key, pattern));
    let near = near
        .filter(|_| !pattern.contains(['*', '?']))
        .map_or_else(String::new, |near| format!("; the nearest is {}", one_line(near)));
    let what = format!("no entry matches `--entry {shown}`{near}");
    Err(ImportError::shape(file, what, "write an entry's name; `*` matches any part of it"))
}

/// Whether a name matches a pattern in which `*` stands for any text and `?` for any character.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // Marks the prefixes of the name that match the pattern so far.
    let mut fits: Vec<bool> = (0..=name.len()).map(|at| at == 0).collect();
    for wanted in pattern {
        let mut next = vec![false; name.len() + 1];
        next[0] = wanted == '*' && fits[0];
        for at in 1..=name.len() {
            next[at] = match wanted {
                '*' => fits[at] || next[at - 1],
                '?' => fits[at - 1],
                wanted => fits[at - 1] && wanted == name[at - 1],
            };
        }
        fits = next;
    }
    fits.last().copied().unwrap_or(false)
}

/// Returns the machines of the entries, each with its entries.
fn machines<'e>(entries: &'e [Entry]) -> Vec<(String, Vec<&'e Entry<'e>>)> {
    let mut machines: Vec<(String, Vec<&Entry>)> = Vec::new();
    for entry in entries {
        let gpu = entry.gpu();
        match machines.iter_mut().find(|(known, _)| *known == gpu) {
            Some((_, there)) => there.push(entry),
            None => machines.push((gpu, vec![entry])),
        }
    }
    machines
}

/// Returns the error that requests a choice and lists the options.
fn ask(entries: &[Entry], file: &str) -> ImportError {
    let machines = machines(entries);
    let mut what = format!("a plan can start {} entries, for {} kinds of machine:", entries.len(), machines.len());
    for (gpu, entries) in machines.iter().take(MOST_MACHINES) {
        let names: Vec<String> = entries
            .iter()
            .take(MOST_ENTRIES)
            .map(|entry| format!("{} ({})", one_line(entry.key), entry.cells()))
            .collect();
        let more = if entries.len() > MOST_ENTRIES {
            format!(", and {} more", entries.len() - MOST_ENTRIES)
        } else {
            String::new()
        };
        let _ = write!(what, "\n  {gpu}: {}{more}", names.join(", "));
    }
    if machines.len() > MOST_MACHINES {
        let _ = write!(what, "\n  and {} more", machines.len() - MOST_MACHINES);
    }
    let example = entries.first().map_or("NAME", |entry| entry.key);
    ImportError::shape(
        file,
        format!("{what}\n(in brackets: cells)"),
        format!("choose with --entry {}; repeat it, or use `*`: --entry '*-h200-*'", one_line(example)),
    )
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (pattern, name, does) in [
            ("a-*-h200-*", "a-fp8-h200-vllm", true),
            ("*", "", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("abc", "abcd", false),
            ("*h200", "x-h200-y", false),
        ] {
            assert_eq!(fits(pattern, name), does, "{pattern} {name}");
        }
    }
}
