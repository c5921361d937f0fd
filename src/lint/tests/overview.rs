//! `docs/LINT.md`, made from the table of rules and their pages.

use std::fmt::Write;

use crate::lint::rule::{RULES, Rule};
use crate::lint::show::name;

use super::page::{LintPage, one_line};

/// `docs/LINT.md`: every rule with its reason, its source and how it is left out.
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

`sweepline check PLAN` reads a plan that is right as such once more and asks whether its results will mean what they seem to
mean. A **warning** is a result that would say less than it seems to; a **note** is worth knowing before the results are read.
Neither changes the exit code, unless `--strict` is given and a warning is left (2). `sweepline explain CODE` shows a rule with
a wrong and a right plan.

Lints come the most important first, by what they put in doubt: the **verdict** (do a run's numbers, or the answer on the objective, stand?),
the **comparison** (is a difference due to what is compared?), the **tail** (what is known of it, and of other loads and lengths?), the
**disclosure** (can others tell what was measured?). Facts that are not disclosed (M011 to M013) are one line of the text: ``not disclosed: gpu,
version, tensor_parallel of endpoint `vllm` ``; `--format json` has each with what to type.

A rule that does not hold for a plan is left out there, with the reason for those who read it:

    allow: [{ code: M004, because: the service sends one length }]

in the plan for all of it, or in a sweep for that sweep. Rules about endpoints and models can only be left out in the plan.

Endpoints with `engine: mock` have nothing to disclose and are no servers of their own: M008, M011 to M017
and M023 are silent about them. What a rule needs to know of a server's speed (closed loops, and M024) is an assumption, and its message says so: 20 ms per
output token. Rules look at the values of the axes, not at the cells, so `exclude` does not silence them; M008 looks at what the
axes allow on each side, without `exclude` and `add`.

<!-- The table is made from src/lint/rule.rs and docs/codes: SWEEPLINE_BLESS=1 cargo test --lib lint writes it. -->

| rule | threatens | weight | said when | why it matters | source | opt-out |
|---|---|---|---|---|---|---|
";

/// How a rule is left out.
fn opt_out(code: crate::plan::LintCode) -> String {
    match code {
        crate::plan::LintCode::IdleAllow => "remove the entry".to_owned(),
        code => format!("`allow: [{{ code: {code}, because: … }}]`"),
    }
}

/// Cells of a table have no line breaks and no bars.
fn cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}
