//! Reads the code blocks of README.md and docs/, and compares a block with an output.

use super::{root, without_time};

/// A code block: between fences, or indented by four spaces.
pub struct Block {
    /// The file, for example `docs/PLAN.md`.
    pub page: String,
    /// The number of the block's first line.
    pub line: usize,
    /// The language of the fence; empty if the block is indented.
    pub language: String,
    /// The lines of the block, without their common indentation.
    pub lines: Vec<String>,
}

impl Block {
    fn new(page: &str, line: usize, language: &str, lines: &[&str]) -> Block {
        let indentation = |line: &&str| line.len() - line.trim_start().len();
        let shared = lines.iter().filter(|line| !line.trim().is_empty()).map(indentation).min().unwrap_or(0);
        let lines = lines.iter().map(|line| line.get(shared..).unwrap_or_default().to_owned()).collect();
        Block { page: page.to_owned(), line, language: language.to_owned(), lines }
    }

    /// Returns the first line that is not empty.
    pub fn first(&self) -> &str {
        self.lines.iter().map(|line| line.trim()).find(|line| !matches!(*line, "" | "…")).unwrap_or_default()
    }

    /// Whether this is the block on this page that begins with this text, ignoring omitted lines.
    pub fn is(&self, (page, begin): (&str, &str)) -> bool {
        let text = self.lines.join("\n");
        self.page == page && text.trim_start_matches(['…', '\n']).starts_with(begin)
    }

    /// Returns the place of the block and its first line.
    pub fn place(&self) -> String {
        format!("{}:{}: {}", self.page, self.line, self.first())
    }
}

/// Returns the names and texts of README.md and the pages of docs/. `explain` tests docs/codes.
pub fn pages() -> Vec<(String, String)> {
    let files = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let files = files.map(|name| format!("docs/{}", name.to_str().unwrap())).filter(|name| name.ends_with(".md"));
    let mut names: Vec<String> = files.chain(["README.md".to_owned()]).collect();
    names.sort();
    names.into_iter().map(|name| (name.clone(), std::fs::read_to_string(root().join(name)).unwrap())).collect()
}

/// Returns the blocks of all pages.
pub fn blocks() -> Vec<Block> {
    pages().iter().flat_map(|(page, text)| blocks_of(page, text)).collect()
}

/// Returns the only block of a page that begins with this text.
pub fn block(page: &str, begin: &str) -> Block {
    let mut found: Vec<Block> = blocks().into_iter().filter(|block| block.is((page, begin))).collect();
    assert_eq!(found.len(), 1, "blocks of {page} that begin with {begin:?}");
    found.remove(0)
}

fn blocks_of(page: &str, text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let begin = at;
        let rest = &lines[begin..];
        if let Some(language) = rest[0].trim_start().strip_prefix("```") {
            let length = rest[1..].iter().position(|line| line.trim_start().starts_with("```"));
            let length = length.unwrap_or_else(|| panic!("{page}:{}: the fence has no end", begin + 1));
            found.push(Block::new(page, begin + 2, language, &rest[1..=length]));
            at += length + 2;
        } else if rest[0].starts_with("    ") {
            let end = rest.iter().position(|line| !line.is_empty() && !line.starts_with("    "));
            let lines = &rest[..end.unwrap_or(rest.len())];
            let blank = lines.iter().rev().take_while(|line| line.is_empty()).count();
            found.push(Block::new(page, begin + 1, "", &lines[..lines.len() - blank]));
            at += lines.len();
        } else {
            at += 1;
        }
    }
    found
}

/// Returns a line without the parts that vary between runs: figures, verdicts, the program's path, and a
/// leading time of day.
pub fn shape(line: &str) -> String {
    let words: Vec<String> = without_verdict(without_time(line)).split_whitespace().map(shape_of_word).collect();
    // A range of equal figures is printed as one figure.
    words.join(" ").replace("# to #", "#")
}

/// Replaces a verdict with reasons by `valid`.
fn without_verdict(line: &str) -> String {
    let found = ["suspect: ", "invalid: "].iter().find_map(|verdict| line.split_once(&format!(" {verdict}")));
    match found {
        // This matches the verdict of a run, not a sentence about several runs.
        Some((before, reasons)) if !before.contains(" are") && !before.contains(" of ") => {
            let rest = reasons.split_once(" · ").map(|(_, rest)| format!(" · {rest}")).unwrap_or_default();
            format!("{before} valid{rest}")
        }
        _ => line.to_owned(),
    }
}

fn shape_of_word(word: &str) -> String {
    if word.ends_with("/sweepline") {
        return "sweepline".to_owned();
    }
    let id = word.trim_start_matches(['(', '`']).trim_start_matches("sha256=").trim_end_matches([')', ';', ',', '`']);
    if matches!(id.len(), 8 | 16) && id.chars().all(|c| c.is_ascii_hexdigit()) {
        return word.replace(id, "<id>");
    }
    let mut figures = String::new();
    for c in word.chars() {
        match c {
            '0'..='9' | '.' | '*' if figures.ends_with('#') => {}
            '0'..='9' => figures.push('#'),
            _ => figures.push(c),
        }
    }
    figures.replace("<#", "#").replace("#m#s", "#s")
}

/// Whether figures are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Figures {
    /// Figures are the same in every run.
    Exact,
    /// Figures depend on the machine.
    Vary,
}

/// Returns the lines of a block that an output does not contain. Lines may be wrapped differently, and `…`
/// matches anything. The last cell of a row may come from another row, because outcomes depend on the
/// machine.
pub fn missing<'b>(block: &'b Block, output: &str, figures: Figures) -> Vec<&'b str> {
    let same = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = |line: &str| if figures == Figures::Exact { same(line) } else { shape(line) };
    let output = format!(" {} ", output.lines().map(words).collect::<Vec<_>>().join(" "));
    let contains = |part: &str| part.is_empty() || output.contains(&format!(" {part} "));
    // Punctuation after `…` belongs to an omitted word.
    let is_there = |line: &str| {
        let mut parts = line.split('…').map(|part| part.trim_start_matches([';', ',', ':']));
        parts.all(|part| contains(&words(part)))
    };
    let is_row = |line: &str| {
        let cells = line.trim_end().rsplit_once("  ");
        figures == Figures::Vary && cells.is_some_and(|(row, last)| is_there(row) && is_there(last))
    };
    let lines = block.lines.iter().map(String::as_str).filter(|line| !line.starts_with("$ "));
    lines.filter(|line| !is_there(line) && !is_row(line)).collect()
}
