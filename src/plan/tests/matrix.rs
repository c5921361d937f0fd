//! Tests of ranges, filters and the written forms of a matrix.

use proptest::prelude::*;

use super::*;
use crate::plan::model::matrix::range::{By, Range};
use crate::units::Decimal;

/// Returns a plan with one sweep, which has this matrix in addition to its endpoint and model.
fn with(axes: &str) -> Loaded {
    good(
        &format!(
            "sweepline: 1\nname: a\nendpoints: {{ e: {{ engine: mock }} }}\nmodels: {{ m: {{ id: m }} }}\n\
             sweeps: {{ s: {{ matrix: {{ {axes} }} }} }}\n"
        ),
        Format::Yaml,
    )
}

fn values(axes: &str, field: &str) -> Vec<String> {
    with(axes).plan.sweeps["s"].values(field).iter().map(ToString::to_string).collect()
}

#[test]
fn ranges_are_exact_and_end_where_they_say() {
    for (range, expected) in [
        ("{ from: 1, to: 256, times: 2 }", "1 2 4 8 16 32 64 128 256"),
        ("{ from: 5, to: 50, step: 5 }", "5 10 15 20 25 30 35 40 45 50"),
        ("{ from: 1, to: 100, times: 4 }", "1 4 16 64"),
        ("{ from: 0.1, to: 0.7, step: 0.1 }", "0.1 0.2 0.3 0.4 0.5 0.6 0.7"),
        ("{ from: 1, to: 4, times: 1.5 }", "1 1.5 2.25 3.375"),
        ("{ from: 7, to: 7, step: 100 }", "7"),
        ("[0.5, { from: 1, to: 3, step: 1 }, 10]", "0.5 1 2 3 10"),
        ("{ value: [3, 2] }", "3 2"),
    ] {
        assert_eq!(values(&format!("qps: {range}"), "qps").join(" "), expected, "{range}");
    }
}

#[test]
fn several_axes_go_together() {
    let zip = with(
        "batch_size: 1, shape: { zip: { prompt_tokens: [256, { from: 1000, to: 2000, step: 1000 }], max_tokens: [3, 2, 1] } }",
    );
    let pairs = with(
        "batch_size: 1, shape: [{ prompt_tokens: 256, output_tokens: 3 }, { prompt_tokens: 1000, output_tokens: 2 }, { prompt_tokens: 2000, output_tokens: 1 }]",
    );
    let ids = |loaded: &Loaded| loaded.plan.sweeps["s"].values("output_tokens");
    assert_eq!(ids(&zip), ids(&pairs));
    assert_eq!(
        zip.plan.sweeps["s"].fields(),
        ["endpoint", "model", "scenario", "batch_size", "prompt_tokens", "output_tokens"]
    );
}

#[test]
fn a_value_is_found_where_it_is_written() {
    let loaded = with(
        "batch_size:\n    { value: [1, 8],\n    when: { endpoint: e } }, shape: { zip: { prompt_tokens:\n    [16, 32], max_tokens: [3,\n    2] } }, qps: [1, { from: 2,\n    to: 4, step: 1 }]",
    );
    let line = |path: &str| loaded.place(&steps(&format!("sweeps/s/matrix/{path}"))).map(|place| place.line);
    let first = line("batch_size/0/value/1");
    assert_eq!(first, Some(6));
    assert_eq!(line("shape/zip/prompt_tokens/0"), Some(8));
    assert_eq!(line("shape/zip/output_tokens/1"), Some(9), "under its alias");
    assert_eq!(line("qps/1"), Some(9));
}

fn decimal() -> impl Strategy<Value = Decimal> {
    (1i64..5_000, 0u8..4).prop_map(|(mantissa, scale)| Decimal::new(mantissa, scale))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Value k of a range of steps is `from + k × step`, computed in whole numbers; the last value is
    /// the highest one that does not exceed the end.
    #[test]
    fn a_range_of_steps_is_its_sum(from in decimal(), way in decimal(), step in decimal()) {
        let to = from.checked_add(way).unwrap();
        let units = |decimal: Decimal| i128::from(decimal.parts().0) * 10i128.pow(6 - u32::from(decimal.parts().1));
        let expected: Vec<i128> = (0..).map(|k| units(from) + k * units(step)).take_while(|at| *at <= units(to)).take(10_001).collect();
        match Range::new(from, to, By::Step(step)) {
            Ok(range) => prop_assert_eq!(range.values().map(units).collect::<Vec<_>>(), expected),
            Err(_) => prop_assert!(expected.len() > 10_000),
        }
    }

    #[test]
    fn a_range_of_factors_is_its_power(from in 1i64..50, way in 0i64..100_000, times in 2i64..9) {
        let to = from + way;
        let whole = |value: i64| Decimal::new(value, 0);
        let range = Range::new(whole(from), whole(to), By::Times(whole(times))).unwrap();
        let expected: Vec<Decimal> = std::iter::successors(Some(from), |at| Some(at * times)).take_while(|at| *at <= to).map(whole).collect();
        prop_assert_eq!(range.len(), expected.len());
        prop_assert_eq!(range.values().collect::<Vec<_>>(), expected);
    }
}
