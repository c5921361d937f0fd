//! Checks messages that README.md and docs/ quote but no test reproduces. Their words must occur in the
//! program's texts in src.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use super::words::{files, literals};
use lab::pages::pages;

/// Names in the plans whose outputs are quoted.
const NAMES: [&str; 8] =
    ["serving", "candidate", "short", "demo", "openai", "default_model", "release-gate", "sustained"];

/// The program's texts. Many messages are composed of several texts, such as `faster` and `{word}
/// by {figure}`.
struct Texts {
    /// All texts, with words separated by single spaces.
    all: String,
    /// Pairs of adjacent words in a text.
    pairs: BTreeSet<(String, String)>,
    /// The words at the beginning and at the end of a piece of text.
    first: BTreeSet<String>,
    last: BTreeSet<String>,
}

/// Returns the words of a text, without punctuation between them.
fn words(text: &str) -> Vec<String> {
    let plain = text.replace([';', ':', ',', '(', ')', '[', ']', '`', '"'], " ");
    plain.split_whitespace().map(str::to_owned).collect()
}

fn texts() -> &'static Texts {
    static TEXTS: OnceLock<Texts> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let read = |path: &std::path::PathBuf| std::fs::read_to_string(path).unwrap();
        let sources = files("src", "rs").into_iter().filter(|path| !path.to_str().unwrap().contains("tests"));
        let of_sources = sources.flat_map(|path| literals(&read(&path))).map(|(_, text)| text);
        let templates: Vec<String> = files("src", "jinja").iter().chain(&files("src", "html")).map(read).collect();
        let mut texts =
            Texts { all: String::new(), pairs: BTreeSet::new(), first: BTreeSet::new(), last: BTreeSet::new() };
        of_sources.chain(templates).for_each(|text| texts.add(&text));
        texts
    })
}

impl Texts {
    /// Adds a text as written in the source.
    fn add(&mut self, source: &str) {
        let lines: Vec<&str> = source.split("\\\n").collect();
        let joined: String =
            lines.iter().enumerate().map(|(at, line)| if at == 0 { *line } else { line.trim_start() }).collect();
        let text = joined.replace("\\n", " ").replace("\\\"", "\"");
        let pieces: Vec<&str> = text.split(['{', '}']).step_by(2).collect();
        self.all += &format!("{}\n", pieces.join("#").split_whitespace().collect::<Vec<_>>().join(" "));
        for piece in pieces.iter().map(|piece| words(piece)) {
            let (Some(first), Some(last)) = (piece.first(), piece.last()) else { continue };
            self.first.insert(first.clone());
            self.last.insert(last.clone());
            self.pairs.extend(piece.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())));
        }
    }

    fn has(&self, first: &str, second: &str) -> bool {
        let is_pair = self.pairs.contains(&(first.to_owned(), second.to_owned()));
        is_pair || self.last.contains(first) && self.first.contains(second)
    }
}

/// Whether a word is variable, such as a figure, a name, or code.
fn is_open(word: &&str) -> bool {
    let is_code = word.starts_with(['`', '$', '-']) || word.contains(['=', '/', '_', '…']);
    is_code || word.contains(|c: char| c.is_ascii_digit()) || NAMES.contains(word)
}

/// Returns the sequences of words in a line between variable words and punctuation.
fn fragments(line: &str) -> Vec<Vec<&str>> {
    let cells = line.split("  ").flat_map(|cell| cell.split(" · "));
    let parts = cells.flat_map(|cell| cell.split([';', ':', ',', '(', ')', '[', ']']));
    let words = parts.map(|part| part.split_whitespace().collect::<Vec<_>>());
    words.flat_map(|words| words.split(is_open).map(<[&str]>::to_vec).collect::<Vec<_>>()).collect()
}

/// Returns the pairs of words in a quoted line that the program never prints.
pub fn strange(line: &str) -> Vec<String> {
    let texts = texts();
    let unknown = fragments(line).into_iter().filter(|words| !texts.all.contains(&words.join(" ")));
    let pairs = unknown.flat_map(|words| words.windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>());
    pairs
        .filter(|(first, second)| !texts.has(first, second))
        .map(|(first, second)| format!("{first} {second}"))
        .collect()
}

/// Returns the messages quoted in a page's prose, as code or in italics.
fn quoted(text: &str) -> Vec<String> {
    let without_fences: String = text.split("```").step_by(2).collect();
    let prose = without_fences.lines().filter(|line| !line.starts_with("    ")).collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for paragraph in prose.split("\n\n") {
        let one_line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ").replace("**", "").replace("``", "");
        let code = one_line.split('`').skip(1).step_by(2).map(str::to_owned);
        let without_code: String = one_line.split('`').step_by(2).collect();
        found.extend(code);
        found.extend(without_code.split('*').skip(1).step_by(2).map(str::to_owned));
    }
    found.retain(|text| is_message(text));
    found
}

/// Whether a quoted text is a sentence rather than a command, a part of a plan or an expression.
fn is_message(text: &str) -> bool {
    let is_command =
        ["sweepline ", "cargo ", "vllm ", "docker ", "unshare "].iter().any(|begin| text.starts_with(begin));
    let is_code = text.contains(['{', '}', '[', ']', '<', '=', '*', '|', '"']) || text.contains(" -");
    // Titles begin with a capital letter.
    let is_title = text.starts_with(char::is_uppercase);
    text.split(' ').count() > 3 && !is_command && !is_code && !is_title
}

#[test]
fn messages_in_the_running_text_are_the_programs() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for (page, text) in pages() {
        for message in quoted(&text) {
            seen += 1;
            wrong.extend(
                strange(&message).into_iter().map(|pair| format!("{page}: `{message}`: `{pair}` is not printed")),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 20, "only {seen} messages found");
}

#[test]
fn a_message_that_was_reworded_is_found() {
    assert_eq!(strange("objective undecided: a window of 68 s would suffice"), [""; 0]);
    assert_eq!(strange("objective undecided: a window of 68 s would do"), ["would do"]);
}
