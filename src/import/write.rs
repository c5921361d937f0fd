//! Converts a draft to the text of a plan, with a comment after every value.

use std::fmt::Write as _;

use super::draft::{Draft, Entry, Field, Kind, Listed, Section, Sweep, merged};
use super::text::{one_line, scalar};

/// The column at which comments begin if the values before them are short enough.
const COLUMN: usize = 40;
/// The maximum number of listed entries of one kind.
const MOST_LISTED: usize = 200;
/// The maximum number of lines named for one entry.
const MOST_LINES: usize = 8;

/// The lists and their titles.
const TITLES: [(Kind, &str); 3] = [
    (Kind::Missing, "Without a counterpart here:"),
    (Kind::Differs, "In the plan, with a different meaning:"),
    (Kind::Needless, "Not needed here, or done differently:"),
];
/// The first lines, which tell editors where to find the schema with the plan's fields.
const SCHEMA: &str = "# yaml-language-server: $schema=plan.schema.json\n# (written by `sweepline schema > \
                      plan.schema.json`; with it an editor completes and checks this plan)\n#\n";

/// Returns the plan's text. `from` describes its source.
pub(super) fn text(draft: &Draft, from: &str) -> String {
    let mut text = SCHEMA.to_owned();
    comment(
        &mut text,
        "",
        &format!("Made by `sweepline import` from {from}. The comment after each value names its source."),
    );
    let listed = merged(&draft.listed);
    for (kind, title) in TITLES {
        list(&mut text, title, listed.iter().filter(|one| one.kind == kind));
    }
    text.push('\n');
    text.push_str("sweepline: 1\n");
    fields(&mut text, "", &draft.head);
    for (key, entries) in [("endpoints", &draft.endpoints), ("models", &draft.models), ("scenarios", &draft.scenarios)]
    {
        if !entries.all.is_empty() {
            let _ = write!(text, "\n{key}:\n");
            entries.all.iter().for_each(|one| entry(&mut text, one));
        }
    }
    draft.sections.iter().for_each(|one| section(&mut text, one));
    text.push_str("\nsweeps:\n");
    draft.sweeps.iter().for_each(|one| sweep(&mut text, one));
    text
}

/// Returns a line that describes a listed entry: the setting, its place and the reason.
pub(super) fn sentence(one: &Listed) -> String {
    let lines: Vec<String> = one.lines.iter().take(MOST_LINES).map(usize::to_string).collect();
    let more = if one.lines.len() > MOST_LINES { ", …" } else { "" };
    let place = match one.lines.len() {
        0 => String::new(),
        // The text of the entry already includes its place.
        1 if names_line(&one.what) || one.lines[0] == 0 => String::new(),
        1 => format!(" (line {})", lines[0]),
        _ => format!(" (lines {}{more})", lines.join(", ")),
    };
    one_line(&format!("{}{place}: {}", one.what, one.why))
}

/// Whether a text ends with a line number: `vllm serve (line 3)`, `--data[0], line 7`.
fn names_line(what: &str) -> bool {
    let number = what.trim_end_matches(')').trim_end_matches(|c: char| c.is_ascii_digit());
    (number.ends_with("(line ") || number.ends_with(", line ")) && number.len() < what.len()
}

/// Returns why commands or tests are skipped, for the message that nothing is left to measure.
pub(super) fn reasons(listed: &[Listed]) -> String {
    let is_reason = |one: &&Listed| one.why.contains("skipped");
    let all = merged(listed);
    let mut chosen: Vec<&Listed> = all.iter().filter(is_reason).collect();
    if chosen.is_empty() {
        chosen = all.iter().filter(|one| one.kind == Kind::Missing).collect();
    }
    chosen.into_iter().map(sentence).collect::<Vec<_>>().join("; ")
}

fn list<'a>(text: &mut String, title: &str, listed: impl Iterator<Item = &'a Listed>) {
    let sentences: Vec<String> = listed.map(sentence).collect();
    if sentences.is_empty() {
        return;
    }
    text.push_str("#\n");
    comment(text, "", title);
    for sentence in sentences.iter().take(MOST_LISTED) {
        for (number, line) in wrapped(sentence, 114).into_iter().enumerate() {
            let _ = writeln!(text, "# {} {line}", if number == 0 { '-' } else { ' ' });
        }
    }
    if sentences.len() > MOST_LISTED {
        let _ = writeln!(text, "# - and {} more", sentences.len() - MOST_LISTED);
    }
}

fn comment(text: &mut String, indent: &str, words: &str) {
    for line in wrapped(&one_line(words), 116 - indent.len()) {
        let _ = writeln!(text, "{indent}# {line}");
    }
}

/// Returns lines of at most this many characters, broken between words.
fn wrapped(words: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words.split(' ') {
        let last = lines.last_mut().expect("there is a first line");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > most {
            lines.push(word.to_owned());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

fn fields(text: &mut String, indent: &str, all: &[Field]) {
    for Field { key, value, origin } in all {
        let line = format!("{indent}{}: {value}", scalar(key));
        let line = line.trim_end();
        let _ = match origin.as_str() {
            "" => writeln!(text, "{line}"),
            origin => writeln!(text, "{line:<COLUMN$}  # {}", one_line(origin)),
        };
    }
}

fn entry(text: &mut String, entry: &Entry) {
    let _ = writeln!(text, "  {}:", scalar(&entry.name));
    fields(text, "    ", &entry.fields);
}

fn section(text: &mut String, section: &Section) {
    text.push('\n');
    section.notes.iter().for_each(|note| comment(text, "", note));
    if let Some(value) = &section.value {
        return fields(text, "", std::slice::from_ref(value));
    }
    let _ = writeln!(text, "{}:", section.key);
    fields(text, "  ", &section.fields);
}

fn sweep(text: &mut String, sweep: &Sweep) {
    fields(text, "  ", &[Field::new(&sweep.name, "", &sweep.origin)]);
    text.push_str("    matrix:\n");
    fields(text, "      ", &sweep.matrix);
    fields(text, "    ", &sweep.fields);
}
