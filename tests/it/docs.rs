//! Tests the documentation: each command in it exists with its options, and each link has a target.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lab::Lab;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the pages that users read.
fn pages() -> Vec<(PathBuf, String)> {
    let mut files: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md"].map(|name| root().join(name)).to_vec();
    for folder in ["docs", "docs/codes"] {
        let entries = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        files.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// Returns the words of a shell line up to another command, a redirection or a comment; `None` if it
/// does not contain a sweepline command.
fn command(line: &str) -> Option<Vec<String>> {
    let mut line = line.trim();
    let is_variable = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    // A prompt, or variables that are set for the command.
    while let Some((_, rest)) = line.split_once(' ').filter(|(word, _)| word.ends_with('$') || is_variable(word)) {
        line = rest;
    }
    let called = ["sweepline ", "cargo run --release -- ", "target/release/sweepline "];
    let rest = called.iter().find_map(|called| line.strip_prefix(called))?;
    let words = shell_words(rest);
    let ends =
        |word: &String| matches!(word.as_str(), "|" | "&&" | ";" | ">" | "2>" | "\\" | "--") || word.starts_with('#');
    Some(words.into_iter().take_while(|word| !ends(word)).collect())
}

/// Splits a text at spaces; quotes keep spaces.
fn shell_words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in text.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, c) if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            (None, ';') => {
                words.push(std::mem::take(&mut word));
                words.push(";".to_owned());
            }
            _ => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the lines of a page that are code: indented by four, or between fences.
fn code(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") {
            lines.push((number + 1, line));
        }
    }
    lines
}

#[test]
fn every_command_that_the_docs_show_exists_with_its_options() {
    let lab = Lab::new();
    let commands = lab.ok(&["--help"]).stdout;
    let known: BTreeSet<&str> = commands
        .lines()
        .skip_while(|line| *line != "Commands:")
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(known.len() > 15, "{known:?}");
    let mut help: BTreeMap<Vec<String>, String> = BTreeMap::new();
    let (mut seen, mut wrong) = (0, Vec::new());
    for (path, text) in pages() {
        let lines = code(&text);
        for (number, words) in lines.into_iter().filter_map(|(number, line)| Some((number, command(line)?))) {
            let at = format!("{}:{number}", path.strip_prefix(root()).unwrap().display());
            let Some(name) = words.first().filter(|name| known.contains(name.as_str())) else {
                wrong.push(format!("{at}: unknown command in `{}`", words.join(" ")));
                continue;
            };
            let mut called = vec![name.clone()];
            // `dataset` has subcommands.
            if name == "dataset" {
                called.extend(words.get(1).cloned());
            }
            let help = help.entry(called.clone()).or_insert_with(|| {
                let args: Vec<&str> = called.iter().map(String::as_str).chain(["--help"]).collect();
                lab.ok(&args).stdout
            });
            seen += 1;
            for word in words.iter().filter(|word| word.starts_with("--") && word.len() > 2) {
                let option = word.split('=').next().unwrap();
                let is_known = help.split(|c: char| !(c.is_alphanumeric() || c == '-')).any(|word| word == option);
                if !is_known {
                    wrong.push(format!("{at}: `{}` has no {option}", called.join(" ")));
                }
            }
        }
    }
    assert!(seen > 60, "only {seen} commands found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns GitHub's anchor of a heading: lower case, without punctuation, with dashes for spaces.
fn anchor(heading: &str) -> String {
    let plain = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = plain.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the anchors of a page's headings, outside of code.
fn anchors(text: &str) -> BTreeSet<String> {
    let code: BTreeSet<usize> = code(text).into_iter().map(|(number, _)| number).collect();
    let lines = text.lines().enumerate().filter(|(number, _)| !code.contains(&(number + 1)));
    lines.filter(|(_, line)| line.starts_with('#')).map(|(_, line)| anchor(line)).collect()
}

#[test]
fn every_link_of_the_docs_leads_somewhere() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for (path, text) in pages() {
        let code: BTreeSet<usize> = code(&text).into_iter().map(|(number, _)| number).collect();
        for (number, line) in text.lines().enumerate().filter(|(number, _)| !code.contains(&(number + 1))) {
            for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                if link.contains("://") || link.starts_with("mailto:") || link.contains(' ') || link.contains('`') {
                    continue;
                }
                seen += 1;
                let (file, place) = link.split_once('#').map_or((link, None), |(file, place)| (file, Some(place)));
                let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
                let at = format!("{}:{}: {link}", path.strip_prefix(root()).unwrap().display(), number + 1);
                match (target.exists(), place) {
                    (false, _) => wrong.push(format!("{at}: no such file")),
                    (true, Some(place)) if target.extension().is_some_and(|extension| extension == "md") => {
                        let text = std::fs::read_to_string(&target).unwrap();
                        if !anchors(&text).contains(place) {
                            wrong.push(format!("{at}: no such heading"));
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(seen > 100, "only {seen} links found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_page_of_guarantees_names_code_and_tests_that_exist() {
    let page = std::fs::read_to_string(root().join("docs/RELIABILITY.md")).unwrap();
    let quoted: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let sources: Vec<&&str> = quoted.iter().filter(|text| text.starts_with("src/")).collect();
    let tests = quoted.iter().filter_map(|text| text.strip_suffix("::"));
    let tests: Vec<&str> = tests.filter(|name| !name.contains(' ')).collect();
    assert!(sources.len() > 20 && tests.len() > 20, "{sources:?} {tests:?}");
    for path in sources {
        assert!(root().join(path).exists(), "{path} does not exist");
    }
    let modules = std::fs::read_to_string(root().join("tests/it/main.rs")).unwrap();
    for name in tests {
        assert!(modules.contains(&format!("mod {name};")), "there are no tests {name}::");
    }
}
