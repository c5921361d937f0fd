//! Lints as text, grouped by threat. Each lint is one line with its place, followed by a line with the remedy.

use std::fmt::Write;

use indexmap::IndexMap;

use super::Lint;
use super::finding::Scope;
use super::threat::Threat;
use crate::plan::Severity;

/// Formats the lints of one plan for readers, grouped by threat, without a final newline. The text is
/// empty if there are no lints. All undisclosed facts are combined into one line, regardless of their
/// subjects.
pub fn text(lints: &[Lint], colour: bool) -> String {
    let mut text = String::new();
    let mut last: Option<Threat> = None;
    let (undisclosed, others): (Vec<&Lint>, Vec<&Lint>) = lints.iter().partition(|lint| !lint.undisclosed.is_empty());
    let folded =
        [Severity::Warning, Severity::Note].into_iter().filter_map(|severity| folded(&undisclosed, severity, colour));
    let mut folded: Option<String> = Some(folded.collect()).filter(|text: &String| !text.is_empty());
    for lint in others {
        if last != Some(lint.threatens) {
            let _ = writeln!(text, "{}", lint.threatens.heading());
            last = Some(lint.threatens);
            if lint.threatens == Threat::Disclosure {
                text.push_str(&folded.take().unwrap_or_default());
            }
        }
        let place = lint.place.as_ref().map_or_else(String::new, |place| format!(" {place}:"));
        let (begin, end) = marks(lint.severity, colour);
        let (severity, about) = (name(lint.severity), about(&lint.scopes));
        let _ = writeln!(text, "  {begin}{severity}[{}]{end}{place} {about}: {}", lint.code, lint.message);
        let _ = writeln!(text, "    help: {}", lint.remedy);
    }
    if let Some(folded) = folded {
        let _ = write!(text, "{}\n{folded}", Threat::Disclosure.heading());
    }
    text.truncate(text.trim_end().len());
    text
}

/// Formats, in one line, all facts that are not disclosed (a warning) or are disclosed as unknown (a
/// note); `None` if there are none.
fn folded(undisclosed: &[&Lint], severity: Severity, colour: bool) -> Option<String> {
    let lints = || undisclosed.iter().filter(|lint| lint.severity == severity);
    let mut facts: IndexMap<&[Scope], Vec<&str>> = IndexMap::new();
    for lint in lints() {
        facts.entry(&lint.scopes).or_default().extend(lint.undisclosed.iter().map(String::as_str));
    }
    let mut codes: Vec<&str> = lints().map(|lint| lint.code.name()).collect();
    codes.sort_unstable();
    codes.dedup();
    let first = codes.first()?;
    let facts = facts.iter().map(|(scopes, facts)| format!("{} of {}", facts.join(", "), about(scopes)));
    let facts = facts.collect::<Vec<_>>().join("; ");
    let (begin, end) = marks(severity, colour);
    let (what, remedy) = match severity {
        Severity::Note => {
            ("unknown", "find out these values before you compare results, because unknown values may differ")
        }
        _ => ("not disclosed", "write the actual values, or `unknown`; `--format json` lists each with an example"),
    };
    let (severity, all) = (name(severity), codes.join(", "));
    Some(format!(
        "  {begin}{severity}[{all}]{end} {what}: {facts}\n    help: {remedy}; `sweepline explain {first}` explains \
         why\n"
    ))
}

/// Returns the escape sequences before and after text in the color of a severity.
fn marks(severity: Severity, colour: bool) -> (&'static str, &'static str) {
    if colour { (bold(severity), "\x1b[0m") } else { ("", "") }
}

/// Formats subjects of one kind, as in "endpoints `a` and `b`", "sweep `a`" or "plan".
fn about(scopes: &[Scope]) -> String {
    let names: Vec<String> =
        scopes.iter().filter_map(|scope| scope.words().1).map(|name| format!("`{name}`")).collect();
    let kind = scopes[0].words().0;
    match names.split_last() {
        None => kind.to_owned(),
        Some((only, [])) => format!("{kind} {only}"),
        Some((last, rest)) => format!("{kind}s {} and {last}", rest.join(", ")),
    }
}

/// Counts the lints by severity, as in `2 warnings and 1 note`; `None` if there are no lints.
pub fn counts(lints: &[Lint]) -> Option<String> {
    let of = |severity| lints.iter().filter(|lint| lint.severity == severity).count();
    let part = |severity: Severity| match of(severity) {
        0 => None,
        1 => Some(format!("1 {}", name(severity))),
        many => Some(format!("{many} {}s", name(severity))),
    };
    let parts: Vec<String> = [Severity::Warning, Severity::Note].into_iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

/// The name of a severity, which precedes every lint in the text.
pub(super) fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// The ANSI escape sequence for bold text in the color of a severity. Errors in plans use the same
/// colors.
fn bold(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "\x1b[1m\x1b[91m",
        Severity::Warning => "\x1b[1m\x1b[33m",
        Severity::Note => "\x1b[1m\x1b[92m",
    }
}
