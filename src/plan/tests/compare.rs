//! Tests of declarations that do not affect the runs of a plan: `compare` and `allow`.

use super::*;
use crate::units::Decimal;

/// Returns the errors of a plan that has two sweeps and ends with this text.
fn errors(end: &str) -> String {
    let text = format!(
        "sweepline: 1\nname: test\nendpoints: {{ a: {{ engine: mock }}, b: {{ engine: mock }} }}\nmodels: {{ m: {{ id: m }} }}\n\
         sweeps:\n  one: {{ matrix: {{ endpoint: [a, b], concurrency: [1, 8] }} }}\n  two: {{ matrix: {{ endpoint: a, qps: [1, 2] }} }}\n{end}\n"
    );
    parse(Path::new("plans/x.yaml"), &text, Format::Yaml).map(|_| String::new()).unwrap_or_else(|e| e.render(false))
}

#[test]
fn a_comparison_needs_its_cells() {
    for right in [
        "compare: { by: endpoint, baseline: a }",
        "compare: { by: concurrency, baseline: 8 }",
        "compare: { by: batch_size, baseline: 1, metrics: ttft_p999 }",
        "compare: { by: qps, baseline: 2, metrics: [ttft, goodput] }",
        "compare: { by: qps, baseline: 2, metrics: [ttft_p99_ms, output_throughput_tokens_per_s] }",
        "compare: { by: endpoint, baseline: a, margin: 2% }",
        "compare: { by: endpoint, baseline: a, margin: 2%, sequential: true }",
    ] {
        assert_eq!(errors(right), "", "{right}");
    }
    let wrong = [
        "compare: { by: endpiont, baseline: a }",
        "compare: { by: temperature, baseline: 0 }",
        "compare: { by: endpoint, baseline: c }",
        "compare: { by: batch_size, baseline: '8' }",
        "compare: { by: model, baseline: m }",
        "compare: { by: endpoint }",
        "compare: { by: endpoint, baseline: a, metrics: [ttft_p98, output_thruput, total_throughput, requests_p99] }",
        "compare: { by: endpoint, baseline: a, margin: 0% }",
        "compare: { by: endpoint, baseline: a, margin: 2 }",
        "  three: { matrix: { endpoint: a, qps: [1, 2] }, compare: { by: endpoint, baseline: a } }",
    ];
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(wrong.map(errors).join("\n\n")) });
}

#[test]
fn a_metric_that_is_none_is_told_from_those_that_are() {
    let told = ["p99_ttft", "TTFT_p99", "throughput", "ttft_mean_ms", "p99", "speed", "TTFT", "requests_p99"]
        .map(|name| name.parse::<crate::plan::model::compare::MetricName>().unwrap_err());
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(told.join("\n")) });
}

#[test]
fn an_opt_out_needs_a_code_and_a_reason() {
    assert_eq!(errors("allow: [{ code: M004, because: the service sends one length }]"), "");
    let wrong =
        "allow: [{ code: M04, because: x }, { code: M099, because: x }, { code: M004, because: ' ' }, { code: M004 }]";
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(errors(wrong)) });
}

#[test]
fn a_mistake_elsewhere_makes_no_second_one() {
    let text = "sweepline: 1\nname: test\nendpoints: { a: { engine: mock }, b: { engine: mock } }\nmodels: { m: { id: m } }\n\
                sweeps:\n  one: { matrix: { endpoint: [a, [b]], batch_size: 1 } }\ncompare: { by: endpoint, baseline: b }\n";
    let errors = parse(Path::new("x.yaml"), text, Format::Yaml).unwrap_err();
    assert_eq!(errors.diagnostics.len(), 1, "{errors}");
}

#[test]
fn the_axis_has_its_first_name() {
    let plan = good(YAML, Format::Yaml).plan;
    let compare = plan.sweeps["ladder"].compare.as_ref().unwrap();
    assert_eq!((compare.by.as_str(), &compare.baseline), ("temperature", &Scalar::Number(Decimal::from(0))));
    assert!(compare.applies_to(&plan.sweeps["ladder"]) && !compare.applies_to(&plan.sweeps["saturation"]));
    assert_eq!(compare.metrics.0[0].to_string(), "ttft_p99");
    assert!(plan.compare.as_ref().unwrap().applies_to(&plan.sweeps["saturation"]));
}
