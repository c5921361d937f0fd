//! The file of a decision record. It has generated blocks between markers, and prose around them, which is
//! kept byte for byte. A block that was edited by hand is detected by the digest of the generated text in
//! its marker, and is not overwritten.

use std::ops::Range;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::cli::failure::Failure;
use crate::report::decision::{Decided, PARTS};
use crate::units::regular_file;
use crate::units::text::hex;

/// Maximum size of a record and of a plan, in bytes.
const MOST_BYTES: u64 = 64 << 20;
/// Start of a marker line.
const MARK: &str = "<!-- sweepline:";

/// Returns the bytes of a file.
pub(super) fn bytes_of(path: &Path) -> Result<Vec<u8>, Failure> {
    regular_file::read(path, MOST_BYTES).map_err(|error| {
        let remedy = regular_file::remedy(&error);
        Failure::Usage(format!("cannot read {}: {error}; {remedy}", path.display()))
    })
}

/// A record that was read from a file.
pub(super) struct Record {
    text: String,
    blocks: Vec<Block>,
    /// The byte range of the line that stores the decisions.
    state: Range<usize>,
    /// The decisions, the current one last.
    pub(super) decisions: Vec<Decided>,
}

/// A part of a record.
struct Block {
    /// The index of the part in [`PARTS`].
    part: usize,
    /// The byte range of the part, including its markers.
    whole: Range<usize>,
    /// The byte range of the text between the markers.
    inside: Range<usize>,
    /// The line number of the first marker, counted from 1.
    line: usize,
    /// The digest in the marker; `None` if the marker has none.
    digest: Option<String>,
    /// The line ending of the part.
    ending: &'static str,
}

/// A difference between a record and its updated version.
pub(super) struct Stale {
    /// The line number in the record, counted from 1.
    pub(super) line: usize,
    /// The line as it is in the record; empty if the record lacks it.
    pub(super) written: String,
    /// The line as it would be in the updated record; empty if it would be removed.
    pub(super) now: String,
}

/// A line of a record: a marker, or any other line.
enum Line<'t> {
    Begin(&'t str, Option<&'t str>),
    End(&'t str),
    State(&'t str),
    Unknown,
    Other,
}

impl Record {
    /// Whether a file contains a marker of a record, intact or damaged.
    pub(super) fn is_one(path: &Path) -> bool {
        let has_marker = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).lines().any(|line| line.starts_with(MARK));
        regular_file::read(path, MOST_BYTES).is_ok_and(has_marker)
    }

    /// Reads a record. Damaged markers are an error, with the line and the remedy.
    pub(super) fn read(path: &Path) -> Result<Record, Failure> {
        let bytes = bytes_of(path)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Failure::Usage(format!("{} is not UTF-8 text: save it as UTF-8", path.display())))?;
        Record::parse(text)
            .map_err(|(line, what)| Failure::Usage(format!("{}:{line}: {what}; nothing was written", path.display())))
    }

    fn parse(text: String) -> Result<Record, (usize, String)> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut state: Option<(Range<usize>, Vec<Decided>)> = None;
        let mut open: Option<Block> = None;
        let (mut at, mut number) = (0, 0);
        for line in text.split_inclusive('\n') {
            let span = at..at + line.len();
            at = span.end;
            number += 1;
            match Line::of(line) {
                Line::Other => {}
                Line::Unknown => return Err((number, format!("this marker cannot be read; {RESTORE}"))),
                Line::Begin(name, _) | Line::End(name) if !PARTS.contains(&name) => {
                    let known = PARTS.join(", ");
                    return Err((number, format!("unknown part `{name}`; the parts are {known}: delete this line")));
                }
                Line::Begin(name, digest) => {
                    if let Some(open) = &open {
                        let (other, line) = (PARTS[open.part], open.line);
                        let what = format!(
                            "the part `{other}`, begun in line {line}, has no end: write {} before this line",
                            end(other)
                        );
                        return Err((number, what));
                    }
                    if let Some(first) = blocks.iter().find(|block| PARTS[block.part] == name) {
                        let what = format!(
                            "the part `{name}` appears a second time, after line {}: delete one of them",
                            first.line
                        );
                        return Err((number, what));
                    }
                    open = Some(Block {
                        part: PARTS.iter().position(|part| *part == name).unwrap_or_default(),
                        whole: span.clone(),
                        inside: span.end..span.end,
                        line: number,
                        digest: digest.map(str::to_owned),
                        ending: if line.ends_with("\r\n") { "\r\n" } else { "\n" },
                    });
                }
                Line::End(name) => match open.take() {
                    Some(mut block) if PARTS[block.part] == name => {
                        block.inside.end = span.start;
                        block.whole.end = span.end;
                        blocks.push(block);
                    }
                    Some(block) => {
                        let wanted = end(PARTS[block.part]);
                        return Err((
                            number,
                            format!("{wanted} expected here, for the part begun in line {}", block.line),
                        ));
                    }
                    None => {
                        let what = format!(
                            "the part `{name}` ends here but was not begun: write {} where it begins",
                            begin(name)
                        );
                        return Err((number, what));
                    }
                },
                Line::State(json) => {
                    let read = serde_json::from_str::<Vec<Decided>>(json);
                    let decisions =
                        read.map_err(|_| (number, format!("the decisions stored here cannot be read; {RESTORE}")))?;
                    if state.is_some() || decisions.is_empty() {
                        return Err((
                            number,
                            format!("the decisions are stored here twice, or are missing; {RESTORE}"),
                        ));
                    }
                    state = Some((span, decisions));
                }
            }
        }
        if let Some(block) = open {
            let name = PARTS[block.part];
            return Err((block.line, format!("the part `{name}` has no end: write {} after it", end(name))));
        }
        if let Some(name) = PARTS.iter().find(|name| !blocks.iter().any(|block| PARTS[block.part] == **name)) {
            let what = format!(
                "the part `{name}` is missing: write the lines {} and {} where it belongs",
                begin(name),
                end(name)
            );
            return Err((number.max(1), what));
        }
        let Some((state, decisions)) = state else {
            return Err((
                number.max(1),
                format!("the line that stores the decisions ({MARK}state …) is missing; {RESTORE}"),
            ));
        };
        Ok(Record { text, blocks, state, decisions })
    }

    /// Fails if text between markers was edited, so that it is not overwritten.
    pub(super) fn is_untouched(&self, path: &Path) -> Result<(), Failure> {
        let touched = self.blocks.iter().find(|block| {
            let inside = &self.text[block.inside.clone()];
            !inside.trim().is_empty() && block.digest.as_deref() != Some(digest(inside).as_str())
        });
        let Some(block) = touched else { return Ok(()) };
        let (path, line, name) = (path.display(), block.line, PARTS[block.part]);
        Err(Failure::Usage(format!(
            "{path}:{line}: the part `{name}` was edited by hand and would be overwritten: move your text out of it \
             and delete all lines between its markers, so that it is generated again; nothing was written"
        )))
    }

    /// Returns the text of the record with `parts`, which are in the order of [`PARTS`], and
    /// `decisions`.
    pub(super) fn with(&self, parts: &[String; 7], decisions: &[Decided]) -> Result<String, Failure> {
        let mut pieces: Vec<(Range<usize>, String)> = Vec::new();
        for block in &self.blocks {
            pieces.push((block.whole.clone(), whole(block.part, &parts[block.part]).replace('\n', block.ending)));
        }
        let ending = if self.text[self.state.clone()].ends_with("\r\n") { "\r\n" } else { "\n" };
        pieces.push((self.state.clone(), state(decisions)?.replace('\n', ending)));
        pieces.sort_by_key(|(span, _)| span.start);
        let (mut out, mut at) = (String::new(), 0);
        for (span, piece) in pieces {
            out.push_str(&self.text[at..span.start]);
            out.push_str(&piece);
            at = span.end;
        }
        out.push_str(&self.text[at..]);
        Ok(out)
    }

    /// Returns, for each part of the record that differs from `parts`, the first line that differs.
    pub(super) fn stale(&self, parts: &[String; 7]) -> Vec<Stale> {
        let mut all = Vec::new();
        for block in &self.blocks {
            let inside = self.text[block.inside.clone()].replace("\r\n", "\n");
            let now = body(&parts[block.part]);
            let (mut written, mut now) = (inside.lines(), now.lines());
            for line in block.line + 1.. {
                let (one, other) = (written.next(), now.next());
                if one.is_none() && other.is_none() {
                    break;
                }
                if one != other {
                    let [written, now] = [one, other].map(|line| line.unwrap_or_default().to_owned());
                    all.push(Stale { line, written, now });
                    break;
                }
            }
        }
        all.sort_by_key(|stale| stale.line);
        all
    }
}

/// Returns the text of a new record, with placeholders for prose between its parts.
pub(super) fn new(title: &str, parts: &[String; 7], decisions: &[Decided]) -> Result<String, Failure> {
    let [decision, contract, configurations, outcome, not_known, stopped, history] =
        std::array::from_fn(|part| whole(part, &parts[part]));
    Ok(format!(
        "# Decision: {title}\n\n{decision}\n## Consequences\n\n{CONSEQUENCES}\n\n{contract}\n{configurations}\n{outcome}\n{OUTCOME}\n\n\
         {not_known}\n{stopped}\n{STOPPED}\n\n{history}\n{}",
        state(decisions)?
    ))
}

const CONSEQUENCES: &str = "_Write here what follows, who is informed, and when this is reviewed. `sweepline decide` \
                            keeps text outside its markers and regenerates text between them._";
const OUTCOME: &str = "_Does the hypothesis hold? Were there surprises? Write it here._";
const STOPPED: &str = "_Write here why measuring stopped: time, money, a limit that is far away._";
const RESTORE: &str =
    "restore the line from version control, or write a new record under another name (-o) and move your prose there";

fn begin(name: &str) -> String {
    format!("`{MARK}begin {name} -->`")
}

fn end(name: &str) -> String {
    format!("`{MARK}end {name} -->`")
}

/// Returns a part between its markers.
fn whole(part: usize, text: &str) -> String {
    let (name, body) = (PARTS[part], body(text));
    format!("{MARK}begin {name} sha256={} -->\n{body}{MARK}end {name} -->\n", digest(&body))
}

/// Returns the text between markers, with blank lines around it for Markdown.
fn body(text: &str) -> String {
    format!("\n{}\n\n", text.trim_end())
}

/// Returns the beginning of the SHA-256 of a text, independent of line endings.
fn digest(text: &str) -> String {
    hex(&Sha256::digest(text.replace("\r\n", "\n").as_bytes())[..8])
}

/// Returns the line that stores the decisions, as JSON without any text that would end the HTML comment.
fn state(decisions: &[Decided]) -> Result<String, Failure> {
    let json = serde_json::to_string(decisions).map_err(|error| Failure::Unexpected(error.into()))?;
    Ok(format!("{MARK}state {} -->\n", json.replace('<', "\\u003c").replace('>', "\\u003e")))
}

impl Line<'_> {
    fn of(line: &str) -> Line<'_> {
        let line = line.trim_end();
        let Some(inside) = line.strip_prefix(MARK) else { return Line::Other };
        let Some(inside) = inside.strip_suffix("-->") else { return Line::Unknown };
        let (verb, rest) = inside.trim().split_once(' ').unwrap_or((inside.trim(), ""));
        let mut words = rest.split(' ').filter(|word| !word.is_empty());
        match (verb, words.next(), words.next(), words.next()) {
            ("state", ..) => Line::State(rest.trim()),
            ("begin", Some(name), None, None) => Line::Begin(name, None),
            ("begin", Some(name), Some(word), None) => match word.strip_prefix("sha256=") {
                Some(digest) => Line::Begin(name, Some(digest)),
                None => Line::Unknown,
            },
            ("end", Some(name), None, None) => Line::End(name),
            _ => Line::Unknown,
        }
    }
}
