//! The reasons and labels of a verdict, such as `client_late`, read from the table in docs/METRICS.md. The
//! table is the only description of them; `tests/it/explain.rs` checks that it has every reason.

const METRICS: &str = include_str!("../../docs/METRICS.md");

/// A reason or a label of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerdictReason {
    /// The name, like `client_late`.
    pub name: &'static str,
    /// When a run gets this reason or label, in Markdown.
    when: &'static str,
    /// The verdict to which the reason or label leads, in Markdown.
    effect: &'static str,
}

/// Returns every reason and label, in the order of the table.
pub fn all() -> impl Iterator<Item = VerdictReason> {
    let section = METRICS.split("\n## The verdict of a run\n").nth(1).unwrap_or_default();
    let table = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    table.filter_map(row)
}

/// Parses a row of the table; `None` for the table's header.
fn row(line: &'static str) -> Option<VerdictReason> {
    let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
    let (when, effect) = rest.strip_suffix(" |")?.rsplit_once(" | ")?;
    Some(VerdictReason { name, when, effect })
}

impl VerdictReason {
    /// Returns when a run gets this reason or label, as plain text.
    pub fn when(&self) -> String {
        without_links(self.when)
    }

    /// Returns the verdict to which the reason or label leads, as plain text.
    pub fn effect(&self) -> String {
        without_links(self.effect)
    }
}

/// Replaces the links of a line of Markdown with their texts. Links in parentheses that lead to another part
/// of the same page are removed, with the parentheses.
fn without_links(markdown: &str) -> String {
    let mut plain = String::new();
    let mut rest = markdown;
    while let Some((before, label, target, after)) = link(rest) {
        match (before.strip_suffix(" ("), after.strip_prefix(')')) {
            (Some(before), Some(after)) if target.starts_with('#') => {
                plain.push_str(before);
                rest = after;
            }
            _ => {
                plain.push_str(before);
                plain.push_str(label);
                rest = after;
            }
        }
    }
    plain + rest
}

/// Returns the first link of a text: what comes before it, its text, its target, and what follows.
fn link(text: &str) -> Option<(&str, &str, &str, &str)> {
    let (head, tail) = text.split_once("](")?;
    let (before, label) = head.rsplit_once('[')?;
    let (target, after) = tail.split_once(')')?;
    Some((before, label, target, after))
}
