//! One page for each code that `check` prints, errors (E…) and lints (M…) alike: its meaning, the reason, and
//! a wrong and a right example. The pages are `docs/codes/CODE.md`; this module contains the only list of
//! them. `tests/it/explain.rs` checks that every code has a page and that the examples on each page behave as
//! described. `reasons` has the reasons of a verdict.

pub mod reasons;

use reasons::VerdictReason;

/// The page of one code.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// The code, like E012.
    pub code: &'static str,
    /// The page, in Markdown.
    pub markdown: &'static str,
}

macro_rules! pages {
    ($($code:literal),* $(,)?) => {
        /// Every page, in the order in which they are listed.
        pub const PAGES: &[Page] =
            &[$(Page { code: $code, markdown: include_str!(concat!("../../docs/codes/", $code, ".md")) }),*];
    };
}

pages![
    "E001", "E002", "E003", "E004", "E005", "E006", "E007", "E008", "E009", "E010", "E011", "E012", "E013", "E014",
    "E015", "E016", "E017", "E018", "E019", "E020", "E021", "E022", "E023", "E024", "E025", "E026", "E027", "E028",
    "E029", "E030", "E031", "E032", "E033", "E034", "E035", "E036", "E040", "E041", "E042", "M001", "M002", "M003",
    "M004", "M005", "M006", "M007", "M008", "M009", "M010", "M011", "M012", "M013", "M014", "M015", "M016", "M017",
    "M018", "M019", "M020", "M021", "M022", "M023", "M024", "M025", "M026", "M027", "M028", "M029", "M030", "M031",
    "M032", "M033", "M034", "M035",
];

/// The page with the rules by which numbers are computed. It does not describe a code; `--explain` prints
/// the same rules.
pub(crate) const COUNTING: Page = Page { code: "counting", markdown: include_str!("../../docs/COUNTING.md") };

/// The result of a lookup.
#[derive(Debug)]
pub enum Answer {
    /// The page.
    Found(&'static Page),
    /// The reason or label of a verdict.
    Reason(VerdictReason),
    /// There is no exact match. Contains the pages that may have been meant; empty if no page is similar.
    Perhaps(Vec<&'static Page>),
}

/// Returns the page of a code in any common spelling (`E012`, `e12`, `error[E012]`), the reason of a verdict
/// with this name, or the pages that match a word.
pub fn find(asked: &str) -> Answer {
    let asked = asked.trim();
    if asked.eq_ignore_ascii_case(COUNTING.code) {
        return Answer::Found(&COUNTING);
    }
    if let Some(reason) = reasons::all().find(|reason| asked.eq_ignore_ascii_case(reason.name)) {
        return Answer::Reason(reason);
    }
    let code = whole_code(asked);
    if let Some(page) = PAGES.iter().find(|page| page.code == code) {
        return Answer::Found(page);
    }
    if asked.is_empty() {
        return Answer::Perhaps(Vec::new());
    }
    let digits = code.get(1..).unwrap_or("none");
    let is_code = code.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let near = |page: &&Page| match is_code {
        // A similar code has the same digits with another letter, one wrong digit, or two swapped digits.
        true => &page.code[1..] == digits || strsim::damerau_levenshtein(page.code, &code) <= 1,
        false => page.title().to_lowercase().contains(&asked.to_lowercase()),
    };
    let titled: Vec<&Page> = PAGES.iter().filter(near).collect();
    match titled.is_empty() && !is_code {
        true => Answer::Perhaps(PAGES.iter().filter(|page| page.tells_of(asked)).collect()),
        false => Answer::Perhaps(titled),
    }
}

/// Normalizes `e12` and `error[E12]` to `E012`; converts anything else to uppercase.
fn whole_code(asked: &str) -> String {
    let inner = asked.split_once('[').map_or(asked, |(_, inner)| inner.trim_end_matches(']')).to_ascii_uppercase();
    match inner.strip_prefix(|letter: char| letter.is_ascii_uppercase()) {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{}{digits:0>3}", &inner[..1])
        }
        _ => inner,
    }
}

impl Page {
    /// Returns the meaning of the code, in a few words.
    pub fn title(&self) -> &'static str {
        let first = self.markdown.lines().next().unwrap_or_default();
        first.split_once(": ").map_or(first, |(_, title)| title)
    }

    /// Whether the prose of the page contains all requested words; a requested word may be only the
    /// beginning of a word on the page.
    fn tells_of(&self, asked: &str) -> bool {
        let lower = |text: &str| text.to_lowercase();
        let prose = self.markdown.split("```").step_by(2);
        let words: Vec<String> =
            prose.flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_')).map(lower).collect();
        let has = |asked: &str| words.iter().any(|word| word.starts_with(asked));
        // Words of one or two letters would match on every page.
        let mut asked = asked.split_whitespace().map(lower).peekable();
        asked.peek().is_some() && asked.all(|word| word.chars().count() > 2 && has(&word))
    }

    /// Formats the page for a terminal, with indented examples and headings without markers.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut in_example = false;
        let mut after_heading = false;
        for line in self.markdown.lines() {
            // The blank line after a heading is skipped.
            let skipped = after_heading && line.is_empty();
            after_heading = false;
            if let Some(language) = line.strip_prefix("```") {
                in_example = !in_example;
                if let (true, Some((_, file))) = (in_example, language.split_once(' ')) {
                    text.push_str(&format!("    # {file}\n"));
                }
            } else if in_example {
                text.push_str(&format!("    {line}\n"));
            } else if let Some(heading) = line.strip_prefix("## ") {
                text.push_str(&format!("{heading}:\n"));
                after_heading = true;
            } else if !skipped {
                text.push_str(&format!("{}\n", line.trim_start_matches("# ")));
            }
        }
        text
    }
}

/// Lists every code with its title, one per line.
pub fn list() -> String {
    PAGES.iter().chain([&COUNTING]).map(|page| format!("{}  {}\n", page.code, page.title())).collect()
}
