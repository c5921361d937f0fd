//! Checks for any text: it is read in both formats, its errors are shown in every form, and a valid plan is
//! expanded if it has few cells. Shared by the fuzz target and by `tests/it/fuzz_smoke.rs`.

use std::path::Path;

use sweepline::expand::expand;
use sweepline::plan::{Format, ResolvedPlan, parse};

/// Larger expansions are left to the tests of the expansion: a fuzzer needs many texts, not large ones.
const MOST_RUNS: usize = 2_000;

/// Reads `text` as a YAML plan and as a TOML plan. Panics if the program would break a promise.
pub fn exercise(text: &str) {
    for (format, name) in [(Format::Yaml, "plan.yaml"), (Format::Toml, "plan.toml")] {
        match parse(Path::new(name), text, format) {
            Ok(loaded) => expands(&loaded.plan),
            Err(errors) => {
                assert!(!errors.diagnostics.is_empty(), "rejected without a reason");
                let shown = errors.render(false);
                assert!(errors.render(true).len() >= shown.len());
                assert_eq!(errors.json().len(), errors.diagnostics.len());
            }
        }
    }
}

fn expands(plan: &ResolvedPlan) {
    let runs = |sweep: &sweepline::plan::Sweep| {
        let cells = sweep.matrix.values().map(|axis| axis.len()).fold(1, usize::saturating_mul);
        cells.saturating_add(sweep.add.len()).saturating_mul(sweep.repeats.at_most as usize)
    };
    if plan.sweeps.values().map(runs).fold(0, usize::saturating_add) <= MOST_RUNS {
        // The expansion may report its own errors, but must not panic.
        let _ = expand(plan);
    }
}
