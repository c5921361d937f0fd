//! What is asked of any text: it is read in both formats, whatever is wrong with it is shown in every form, and a plan
//! that is right is expanded if that gives few cells. Shared by the fuzz target and by `tests/it/fuzz_smoke.rs`.

use std::path::Path;

use sweepline::expand::expand;
use sweepline::plan::{Format, ResolvedPlan, parse};

/// More runs than this are left to the tests of the expansion: a fuzzer wants many texts, not large ones.
const MOST_RUNS: usize = 2_000;

/// Reads `text` as a YAML plan and as a TOML plan. Panics where the program would break a promise.
pub fn exercise(text: &str) {
    for (format, name) in [(Format::Yaml, "plan.yaml"), (Format::Toml, "plan.toml")] {
        match parse(Path::new(name), text, format) {
            Ok(loaded) => expands(&loaded.plan),
            Err(errors) => {
                assert!(!errors.diagnostics.is_empty(), "refused without a reason");
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
        // What only the expansion can see is an error of its own; what must not happen is a panic.
        let _ = expand(plan);
    }
}
