//! `docs/LINT.md`, generated from the table of rules and their pages.

use std::fmt::Write;

use crate::lint::rule::{RULES, Rule};
use crate::lint::show::name;

use super::page::{LintPage, one_line};

/// Generates `docs/LINT.md`: every rule with its reason, its source and its opt-out.
pub(super) fn overview() -> String {
    let mut page = String::from(OPENING);
    for rule in &RULES {
        let Rule { code, name: short, severity, threatens, .. } = rule;
        let LintPage { when, reason, source, .. } = LintPage::of(rule);
        let [when, reason, source] = [when, reason, source].map(|text| cell(&text));
        let _ = writeln!(
            page,
            "| {code} {short} | {} | {} | {when} | {reason} | {source} | {} |",
            threatens.name(),
            name(*severity),
            opt_out(*code)
        );
    }
    page
}

const OPENING: &str = "\
# The methodology lint

`sweepline check PLAN` inspects a valid plan once more and reports where its results would mean less
than they seem to. A **warning** marks a result that would be weaker than it seems; a **note** is
worth knowing before you read the results. Neither changes the exit code, unless `--strict` is given
and a warning remains (2). `sweepline explain CODE` shows a rule with a wrong and a right plan.

Lints are listed by what they put in doubt, the most important first: the **verdict** (do a run's
numbers, or the verdict on the objective, hold?), the **comparison** (is a difference due to the
compared variable?), the **tail** (what is known about it, and about other loads and lengths?), the
**disclosure** (can others tell what was measured?). Facts that are not disclosed (M011 to M013)
share one line of the text output: ``not disclosed: gpu, version, tensor_parallel of endpoint
`vllm` ``; `--format json` lists each with the text to write.

To opt out of a rule that does not apply to a plan, give the reason for your readers:

    allow: [{ code: M004, because: the service sends one length }]

at the top level of the plan to cover all of it, or in a sweep to cover that sweep. Rules about
endpoints and models can only be opted out of at the top level.

Endpoints with `engine: mock` have nothing to disclose and are not independent servers: M008, M011
to M017 and M023 do not apply to them. Where a rule needs the speed of a server (closed loops, and
M024), it assumes 20 ms per output token, and its message states that. Rules inspect the values of
the axes, not the cells, so `exclude` does not silence them; M008 compares the values that the axes
allow on each side, without `exclude` and `add`.

<!-- The table is generated from src/lint/rule.rs and docs/codes: SWEEPLINE_BLESS=1 cargo test --lib lint writes it. -->

| rule | threatens | weight | reported when | why it matters | source | opt-out |
|---|---|---|---|---|---|---|
";

/// Returns the opt-out of a rule.
fn opt_out(code: crate::plan::LintCode) -> String {
    match code {
        crate::plan::LintCode::IdleAllow => "remove the entry".to_owned(),
        code => format!("`allow: [{{ code: {code}, because: … }}]`"),
    }
}

/// Formats a table cell: no line breaks, and escaped bars.
fn cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}
