//! Lints as text: under what they are about, a line each with place and remedy.

use std::fmt::Write;

use super::Lint;
use super::finding::Scope;
use crate::plan::Severity;

/// The lints of one plan for a person to read, without a newline at the end; empty where there are none.
pub fn text(lints: &[Lint], colour: bool) -> String {
    let mut text = String::new();
    let mut last: Option<&[Scope]> = None;
    for lint in lints {
        if last != Some(&lint.scopes) {
            let _ = writeln!(text, "{}", heading(&lint.scopes));
            last = Some(&lint.scopes);
        }
        let place = lint.place.as_ref().map_or_else(String::new, |place| format!(" {place}:"));
        let (begin, end) = if colour { (bold(lint.severity), "\x1b[0m") } else { ("", "") };
        let severity = name(lint.severity);
        let _ = writeln!(text, "  {begin}{severity}[{}]{end}{place} {}", lint.code, lint.message);
        let _ = writeln!(text, "    help: {}", lint.remedy);
    }
    text.truncate(text.trim_end().len());
    text
}

/// "endpoints `a` and `b`", "sweep `a`", "plan".
fn heading(scopes: &[Scope]) -> String {
    let names: Vec<String> =
        scopes.iter().filter_map(|scope| scope.words().1).map(|name| format!("`{name}`")).collect();
    let kind = scopes[0].words().0;
    match names.split_last() {
        None => kind.to_owned(),
        Some((only, [])) => format!("{kind} {only}"),
        Some((last, rest)) => format!("{kind}s {} and {last}", rest.join(", ")),
    }
}

/// `2 warnings and 1 note`; none where there are no lints.
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

/// The word in front of a lint.
pub(super) fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// Its colour, in bold, as terminals write it and the errors have it.
fn bold(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "\x1b[1m\x1b[91m",
        Severity::Warning => "\x1b[1m\x1b[33m",
        Severity::Note => "\x1b[1m\x1b[92m",
    }
}
