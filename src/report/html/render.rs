//! Renders data as HTML. Every text is escaped here and nowhere else, because templates whose names end in
//! `.html` or `.xml` escape their values. Only three things are inserted without escaping: the style and the
//! script of this folder, and the drawings of the chart library, which escapes its own texts.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, HtmlEscape, UndefinedBehavior, Value, context};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::sections::RunPart;
use super::view::{Figure, Page};
use crate::report::format::width;
use crate::units::text::is_unseen;

const TEMPLATES: [(&str, &str); 6] = [
    ("page.html", include_str!("templates/page.html")),
    ("blocks.html", include_str!("templates/blocks.html")),
    ("run.html", include_str!("templates/run.html")),
    ("live.html", include_str!("templates/live.html")),
    ("waiting.html", include_str!("templates/waiting.html")),
    ("figure.xml", include_str!("templates/figure.xml")),
];

const STYLE: &str = include_str!("templates/style.css");
const SCRIPT: &str = include_str!("templates/script.js");
const WATCH: &str = include_str!("templates/watch.js");

/// Renders the page as a file. The browser runs only our script, because the script's nonce is a digest of
/// the whole page, and no text on the page can contain this digest.
pub(super) fn render(page: &Page) -> Result<String, minijinja::Error> {
    page_with(page, None)
}

/// Renders the page for serving, with `place` as the placeholder for the current state. The page polls the
/// state once per second.
pub(super) fn watched(page: &Page, place: &str) -> Result<String, minijinja::Error> {
    page_with(page, Some(place))
}

fn page_with(page: &Page, place: Option<&str>) -> Result<String, minijinja::Error> {
    let page = Value::from(Serde(page));
    let nonce = digest(&page.to_string());
    let context = context! { page, nonce, place, style => STYLE, script => SCRIPT, watch => WATCH };
    Ok(seen(&templates()?.get_template("page.html")?.render(context)?))
}

/// Renders the page that is served before there is a report.
pub(super) fn waiting(title: &str, sentence: &str, place: &str) -> Result<String, minijinja::Error> {
    let nonce = digest(&format!("{title}{sentence}"));
    let context = context! { title, sentence, place, nonce, style => STYLE, watch => WATCH };
    Ok(seen(&templates()?.get_template("waiting.html")?.render(context)?))
}

/// Renders the current state, as a part of a page.
pub(super) fn live(now: Value) -> Result<String, minijinja::Error> {
    Ok(seen(&templates()?.get_template("live.html")?.render(context! { now })?))
}

/// Renders the parts for single runs separately, so that the size of each is known.
pub(super) fn parts(runs: &[RunPart]) -> Result<Vec<String>, minijinja::Error> {
    let environment = templates()?;
    let template = environment.get_template("run.html")?;
    runs.iter().map(|run| Ok(seen(template.render(context! { run => Value::from(Serde(run)) })?.trim()))).collect()
}

/// Renders a figure of the page as a separate file, in the colours of the light page.
pub(super) fn figure(figure: &Figure, made: &str) -> Result<String, minijinja::Error> {
    let head = Head::of(&figure.title);
    let height = (figure.drawing.height() + head.height).next_multiple_of(2);
    let head = Value::from(Serde(&head));
    let figure = Value::from(Serde(figure));
    let svg = templates()?.get_template("figure.xml")?.render(context! { figure, head, height, made })?;
    Ok(seen(&svg))
}

/// The title above a standalone figure, split into lines that fit.
#[derive(Debug, Serialize)]
struct Head {
    /// Lines of the title.
    lines: Vec<String>,
    /// Font size, in coordinates of the drawing.
    size: u32,
    /// Left edge of its lines.
    left: u32,
    /// Distance between lines.
    line: u32,
    /// Total height.
    height: u32,
}

impl Head {
    fn of(title: &str) -> Head {
        /// Number of characters that fit on a line of a drawing.
        const WIDE: usize = 52;
        const LINE: u32 = 40;
        let lines: Vec<String> = lines(title, WIDE);
        let height = LINE * u32::try_from(lines.len()).unwrap_or(0) + 18;
        Head { lines, size: 31, left: 12, line: LINE, height }
    }
}

/// Splits a text into lines of at most this many characters, breaking longer words.
fn lines(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let mut rest = word;
        loop {
            let line = lines.last_mut().expect("there is a line");
            let used = width(line) + usize::from(!line.is_empty());
            if used + width(rest) <= most {
                line.push_str(if line.is_empty() { "" } else { " " });
                line.push_str(rest);
                break;
            }
            if line.is_empty() {
                let (at, _) = rest.char_indices().nth(most).unwrap_or((rest.len(), ' '));
                line.push_str(&rest[..at]);
                rest = &rest[at..];
                if rest.is_empty() {
                    break;
                }
            }
            lines.push(String::new());
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// The final safeguard for all texts, which removes invisible characters and characters that change the text
/// direction.
fn seen(text: &str) -> String {
    text.chars().map(|c| if is_unseen(c) && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// Renders a sentence as HTML: text between two backticks becomes code, and everything else is escaped as
/// usual.
fn prose(text: &str) -> Value {
    let parts: Vec<&str> = text.split('`').collect();
    // An unmatched backtick is kept as is.
    let paired = (parts.len() - 1) / 2 * 2;
    let mut out = String::with_capacity(text.len());
    for (at, part) in parts.iter().enumerate() {
        let escaped = HtmlEscape(part);
        match at {
            _ if at > paired => out.push_str(&format!("`{escaped}")),
            _ if at % 2 == 1 => out.push_str(&format!("<code>{escaped}</code>")),
            _ => out.push_str(&escaped.to_string()),
        }
    }
    Value::from_safe_string(out)
}

fn templates() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_filter("prose", prose);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    Ok(environment)
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_are_code_and_hide_nothing() {
        let of = |text: &str| prose(text).to_string();
        assert_eq!(of("`a<b>` shows <i>"), "<code>a&lt;b&gt;</code> shows &lt;i&gt;");
        assert_eq!(of("one ` alone <b>"), "one ` alone &lt;b&gt;");
        assert_eq!(of("`a` and ` <b>"), "<code>a</code> and ` &lt;b&gt;");
        assert_eq!(of("none"), "none");
    }

    #[test]
    fn titles_stand_in_lines_that_fit() {
        assert_eq!(lines("one two three", 7), ["one two", "three"]);
        assert_eq!(lines("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(lines("  ", 4), [""; 0]);
        assert_eq!(Head::of("short").height, 58);
    }
}
