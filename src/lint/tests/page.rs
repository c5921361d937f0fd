//! The pages of the rules, `docs/codes/M….md`: written by hand in one structure, which is parsed for
//! `docs/LINT.md` and by the tests of the examples.

use std::path::Path;

use crate::lint::rule::Rule;
use crate::lint::show::name;
use crate::plan::LintCode;

/// The parts of a rule's page, with their line breaks.
pub(super) struct LintPage {
    /// The problem, in a few words.
    title: String,
    /// The condition under which the rule reports, with its thresholds.
    pub(super) when: String,
    /// Why the problem matters.
    pub(super) reason: String,
    /// The source: a paper, a tool's documentation, a section of METRICS.
    pub(super) source: String,
    /// A plan, or the relevant part of one, for which the rule reports.
    pub(super) wrong: String,
    /// The corrected version of `wrong`.
    pub(super) right: String,
    /// Codes of related problems.
    related: String,
}

/// Reads the page of a rule from `docs/codes`.
pub(super) fn text_of(rule: &Rule) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/codes/{}.md", rule.code));
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

impl LintPage {
    /// Parses a rule's page.
    pub(super) fn of(rule: &Rule) -> LintPage {
        let text = text_of(rule);
        let between = |begin: &str, end: &str| {
            let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("{}: no {begin:?}", rule.code));
            let (part, _) = rest.split_once(end).unwrap_or_else(|| panic!("{}: no {end:?}", rule.code));
            part.to_owned()
        };
        LintPage {
            title: between(": ", "\n"),
            when: between("Reported when:", "\n\n## Why it matters\n\n").trim_start().to_owned(),
            reason: between("\n## Why it matters\n\n", "\n\nSource: "),
            source: between("\n\nSource: ", "\n\n"),
            wrong: between("\n## Wrong\n\n```yaml\n", "```\n"),
            right: between("\n## Right\n\n```yaml\n", "```\n"),
            related: between("\n\nRelated: ", "\n"),
        }
    }

    /// Assembles the whole page from these parts, each block in one line.
    pub(super) fn words(&self, rule: &Rule) -> Vec<String> {
        let LintPage { title, when, reason, source, wrong, right, related } = self;
        let Rule { code, severity, .. } = rule;
        let how = match code {
            LintCode::IdleAllow => "No opt-out: remove the entry.".to_owned(),
            code => format!("To opt out: `allow: [{{ code: {code}, because: … }}]`."),
        };
        let opening = format!("A {} of the methodology lint. Reported when: {when}", name(*severity));
        let page = format!(
            "# {code}: {title}\n\n{opening}\n\n## Why it matters\n\n{reason}\n\nSource: {source}\n\n{how}\n\n\
             ## Wrong\n\n```yaml\n{wrong}```\n\n## Right\n\n```yaml\n{right}```\n\nRelated: {related}\n"
        );
        words(&page)
    }
}

/// Splits a text into blocks, each in one line.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split("\n\n").map(one_line).collect()
}

/// Joins the lines of a text.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
