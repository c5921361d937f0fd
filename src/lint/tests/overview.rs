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

`sweepline check PLAN` also reviews the methodology of a valid plan and reports where its results
would be less conclusive than they seem. A **warning** marks a result that would be weaker than it
seems. A **note** contains information that you should have before you read the results. Neither
changes the exit code, except that with `--strict` a warning leads to exit code 2.
`sweepline explain CODE` describes a rule and shows a wrong and a right plan.

Lints are sorted by what they threaten, starting with the most important:

- the **verdict**: are a run's numbers, or the verdict on the objective, correct?
- the **comparison**: is a difference due to the compared variable?
- the **tail**: is enough known about the tail of the latencies, and about other loads and lengths?
- the **disclosure**: can others tell what was measured?

In the text output, facts that are not disclosed (M011 to M013) share one line:
``not disclosed: gpu, version, tensor_parallel of endpoint `vllm` ``. `--format json` lists each of
them with the text to add to the plan.

If a rule does not apply to a plan, opt out of the rule and give your readers the reason:

    allow: [{ code: M004, because: the service sends one length }]

At the top level of the plan, `allow` covers the whole plan; in a sweep, it covers only that sweep.
For rules about endpoints and models, the opt-out must be at the top level.

Endpoints with `engine: mock` have nothing to disclose and are not independent servers, so M008,
M011 to M017 and M023 do not apply to them. If a rule needs the speed of a server (for closed loops,
and for M024), it assumes 20 ms per output token and states this in its message. Rules inspect the
values of the axes, not the cells (M034 counts the starts of the cells), so `exclude` does not
silence them. M008 compares the values that the axes allow on each side and ignores `exclude` and
`add`.

<!-- The table is generated from src/lint/rule.rs and docs/codes: SWEEPLINE_BLESS=1 cargo test --lib lint writes it. -->

| rule | threatens | weight | reported when | why it matters | source | opt-out |
|---|---|---|---|---|---|---|
";

/// Returns the text for the opt-out column: what to write in a plan to silence the rule.
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
