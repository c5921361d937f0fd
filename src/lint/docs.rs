//! The pages of the rules for `explain`, made from their table: `docs/codes/M….md`. Tests hold the files to them; `SWEEPLINE_BLESS=1` writes
//! them.

use super::rule::Rule;
use super::show::name;

/// The longest line of a page, in characters.
const WIDTH: usize = 120;

/// The page of one rule for `explain`.
pub fn page(rule: &Rule) -> String {
    let Rule { code, words, severity, .. } = rule;
    let opening = format!("A {} of the methodology lint. Said when: {}", name(*severity), words.when);
    let source = format!("Source: {}", words.source);
    let how = match code {
        crate::plan::LintCode::IdleAllow => "It is not left out: remove the entry.".to_owned(),
        code => format!("Left out where it does not hold: `allow: [{{ code: {code}, because: … }}]`."),
    };
    format!(
        "# {code}: {}\n\n{}\n\n## Why it matters\n\n{}\n\n{}\n\n{how}\n\n## Wrong\n\n```yaml\n{}```\n\n## Right\n\n```yaml\n{}```\n\nRelated: {}\n",
        words.title,
        wrapped(&opening),
        wrapped(words.reason),
        wrapped(&source),
        words.wrong,
        words.right,
        words.related,
    )
}

/// A paragraph in lines of at most [`WIDTH`] characters.
fn wrapped(text: &str) -> String {
    let (mut page, mut length) = (String::new(), 0);
    for word in text.split_whitespace() {
        let size = word.chars().count();
        if length > 0 && length + 1 + size > WIDTH {
            page.push('\n');
            length = 0;
        } else if length > 0 {
            page.push(' ');
            length += 1;
        }
        page.push_str(word);
        length += size;
    }
    page
}
