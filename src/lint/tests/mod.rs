//! Tests of the rules on small plans, and of their pages.

mod overview;
mod page;
mod rules;

use std::path::Path;

use page::LintPage;

use super::*;
use crate::analysis::metric;
use crate::metrics;
use crate::plan::model::compare::MetricName;
use crate::plan::{Format, parse};

/// Defaults for the keys that a small plan omits. Together, they form a plan without any lint.
const REST: [(&str, &str); 6] = [
    ("sweepline", "sweepline: 1"),
    ("name", "name: example"),
    ("endpoints", "endpoints: { mock: { engine: mock } }"),
    ("models", "models: { llama: { id: llama, precision: bf16, tokenizer: server } }"),
    ("phases", "phases: { measure: 400s }"),
    ("sweeps", "sweeps: { load: { matrix: { scenario: [B1, B2], qps: [5, 10] } } }"),
];

/// Returns a plan that consists of the given keys and the defaults.
fn plan(text: &str) -> Loaded {
    let given = |key: &str| text.lines().any(|line| line.starts_with(&format!("{key}:")));
    let rest: String = REST.iter().filter(|(key, _)| !given(key)).map(|(_, line)| format!("{line}\n")).collect();
    let text = format!("{rest}{text}");
    parse(Path::new("plan.yaml"), &text, Format::Yaml).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// Returns the lints of a plan on a host without a calibration.
fn lints(text: &str) -> Vec<Lint> {
    lint(&plan(text), None)
}

/// Returns the codes of these lints.
fn codes(lints: &[Lint]) -> Vec<&'static str> {
    lints.iter().map(|lint| lint.code.name()).collect()
}

/// Returns the only lint of a code; `None` if it is not reported.
fn one(text: &str, code: &str) -> Option<Lint> {
    let mut found: Vec<Lint> = lints(text).into_iter().filter(|lint| lint.code.name() == code).collect();
    assert!(found.len() < 2, "{found:#?}");
    found.pop()
}

#[test]
fn every_code_has_its_rule() {
    for (rule, code) in RULES.iter().zip(LintCode::ALL) {
        assert_eq!(rule.code, code);
        assert_eq!(rule::of(code).name, rule.name);
        assert_eq!(serde_json::to_value(code).unwrap(), code.name());
    }
    let mut names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), RULES.len());
}

#[test]
fn the_overview_is_current() {
    let (file, page) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/LINT.md"), overview::overview());
    if std::env::var_os("SWEEPLINE_BLESS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        stored == page,
        "docs/LINT.md does not match the rules and docs/codes: run this test with SWEEPLINE_BLESS=1"
    );
}

#[test]
fn every_page_has_its_parts_in_lines_that_fit() {
    for rule in &RULES {
        let text = page::text_of(rule);
        assert_eq!(page::words(&text), LintPage::of(rule).words(rule), "{}", rule.code);
        let prose = text.split("```").step_by(2).flat_map(str::lines);
        let long: Vec<&str> = prose.filter(|line| line.chars().count() > 120).collect();
        assert!(long.is_empty(), "{}: {long:#?}", rule.code);
    }
}

#[test]
fn a_comparison_takes_the_columns_of_exports() {
    let others = ["mean", "sd", "low", "high", "max", "n", "failures", "above", "below", "streams", "effective"];
    for column in metric::columns(metric::Scope::Plan).iter().map(|column| column.name.as_str()) {
        let part = |other: &str| column.split('_').any(|word| word == other) || column.ends_with("_tail_ratio");
        let is_other =
            !["jitter_ratio", "error_share"].iter().any(|key| column.starts_with(key)) && others.into_iter().any(part);
        let read = column.parse::<MetricName>();
        assert_eq!(read.is_ok(), !is_other, "{column}: {read:?}");
        if let Ok(name) = read {
            assert_eq!(
                column,
                format!("{name}{}", metrics::find(name.key).map_or("", |metric| metric.unit.suffix())),
                "each column has the unit of its metric"
            );
        }
    }
}

#[test]
fn a_plan_may_be_silent() {
    assert_eq!(codes(&lints("")), Vec::<&str>::new(), "{:#?}", lints(""));
}

#[test]
fn examples_are_what_they_say() {
    for rule in &RULES {
        let page = LintPage::of(rule);
        let wrong = match rule.code {
            // This lint requires a calibration.
            LintCode::BeyondCalibration => lint(&plan(&page.wrong), Some(&Calibrated::default())),
            _ => lints(&page.wrong),
        };
        assert!(codes(&wrong).contains(&rule.code.name()), "{}: {wrong:#?}", rule.code);
        let right = lints(&page.right);
        assert!(!codes(&right).contains(&rule.code.name()), "{}: {right:#?}", rule.code);
    }
}
