//! Tests that there is one word for one thing: words that CONTRIBUTING.md retired do not occur in
//! any text for users.

use std::path::{Path, PathBuf};

/// Retired words; their replacements are in CONTRIBUTING.md, "Words".
const RETIRED: [&str; 16] = [
    "mend",
    "mended",
    "nobody",
    "somebody",
    "whoever",
    "anew",
    "leave out",
    "leaves out",
    "left out",
    "held against",
    "typed again",
    "goes on for",
    "who reads",
    "asked for",
    "under way",
    "mistake",
];

/// Files whose texts are data, such as prompts that runs send and words of other tools.
const DATA: [&str; 2] = ["src/workload/prose.rs", "src/workload/vocabulary.rs"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files below a folder that have this extension.
pub fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|other| other == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the retired word in a text, if there is one, as a whole word, in upper or lower case. Names in
/// code (`left_out`) and placeholders (`{mistake}`) do not count as words of the text.
fn retired(text: &str) -> Option<&'static str> {
    let text = text.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest)).collect::<String>();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let plain: String = text.to_lowercase().chars().map(|c| if is_word(c) { c } else { ' ' }).collect();
    let words = format!(" {} ", plain.split_whitespace().collect::<Vec<_>>().join(" "));
    RETIRED.into_iter().find(|word| words.contains(&format!(" {word} ")))
}

/// Documentation of command-line arguments and of fields with a schema. The `/// …` lines in these folders
/// are shown to users by `--help` and occur in `schemas/`.
const SHOWN: [&str; 2] = ["src/cli/", "src/plan/model/"];

/// Returns the doc comments in Rust source, line by line, each with its line number.
fn doc_lines(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = source.lines().enumerate();
    lines.filter_map(|(at, line)| Some((at + 1, line.trim_start().strip_prefix("/// ")?)))
}

/// Returns the string literals in Rust source, each with the line in which it begins; comments and
/// tests are skipped.
pub fn literals(source: &str) -> Vec<(usize, String)> {
    let end = source.find("#[cfg(test)]\nmod tests {").unwrap_or(source.len());
    let text: Vec<char> = source[..end].chars().collect();
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(&['/', '/']) {
            at += rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
        } else if rest[0] == 'r' && (rest.starts_with(&['r', '"']) || rest.starts_with(&['r', '#'])) {
            let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
            if rest.get(1 + hashes) != Some(&'"') {
                at += 1;
                continue;
            }
            let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let body = &rest[2 + hashes..];
            let length = (0..body.len()).find(|at| body[*at..].starts_with(&close)).unwrap_or(body.len());
            found.push((line, body[..length].iter().collect()));
            line += body[..length].iter().filter(|c| **c == '\n').count();
            at += 2 + hashes + length + close.len();
        } else if rest[0] == '"' {
            let mut length = 1;
            while length < rest.len() && rest[length] != '"' {
                length += if rest[length] == '\\' { 2 } else { 1 };
            }
            let body: String = rest[1..length.min(rest.len())].iter().collect();
            line += body.matches('\n').count();
            found.push((line, body));
            at += length + 1;
        } else if rest[0] == '\'' && rest.get(2) == Some(&'\'') {
            at += 3;
        } else if rest.starts_with(&['\'', '\\', '"', '\'']) {
            at += 4;
        } else {
            line += usize::from(rest[0] == '\n');
            at += 1;
        }
    }
    found
}

#[test]
fn retired_words_stand_in_no_text_that_users_read() {
    let mut found = Vec::new();
    let mut seen = 0;
    let name = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    for path in files("src", "rs") {
        let name = name(&path);
        let is_test = name.contains("tests") || name.ends_with("simulations.rs") || DATA.contains(&name.as_str());
        if is_test {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        for (line, text) in literals(&source) {
            seen += usize::from(text.contains(' '));
            found.extend(retired(&text).map(|word| format!("{name}:{line}: `{word}`: {text}")));
        }
        if SHOWN.iter().any(|folder| name.starts_with(folder)) {
            let words = |(line, text)| retired(text).map(|word| format!("{name}:{line}: `{word}`: {text}"));
            found.extend(doc_lines(&source).filter_map(words));
        }
    }
    assert!(seen > 5_000, "only {seen} texts found in src");
    // Pages are checked as a whole, with their code blocks, and so are templates, because their
    // comments are copied into plans.
    let pages = files("docs", "md").into_iter().chain(files("plans", "yaml"));
    let templates: Vec<PathBuf> = files("src", "jinja").into_iter().chain(files("src", "html")).collect();
    assert!(!templates.is_empty(), "no template found in src");
    let pages = pages.chain(templates).chain(files("docs/live", "json"));
    let pages = pages.chain(["README.md", "CHANGELOG.md"].map(|name| root().join(name)));
    for path in pages {
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            found.extend(retired(line).map(|word| format!("{}:{}: `{word}`: {line}", name(&path), number + 1)));
        }
    }
    assert!(found.is_empty(), "{} texts with a retired word:\n{}", found.len(), found.join("\n"));
}
