//! Renders the outcome next to the hypothesis: the tests of `compare`, unchanged.

use super::evidence::Evidence;
use super::markdown::{code, inert, list, prose, sentence, table};
use crate::analysis::comparison::{Comparison, Family, Test};
use crate::report::comparison::{changed, conclusion, left_out, named, verdict};
use crate::report::effects;
use crate::report::estimate::{chance, titled};

/// Maximum number of tests that the record lists.
const MOST: usize = 80;

pub(super) fn text(evidence: &Evidence) -> String {
    let mut out = "## Hypothesis against outcome\n\n".to_owned();
    match evidence.comparison {
        None => out.push_str("The plan declares no comparison (`compare`), so no difference was tested.\n"),
        Some(comparison) => out.push_str(&tests(comparison)),
    }
    let states =
        evidence.plan.hypothesis.is_some() || evidence.plan.sweeps.values().any(|sweep| sweep.hypothesis.is_some());
    if states {
        out.push_str("\nWhether the hypothesis holds is for you to judge: write it below.\n");
    }
    out
}

fn tests(comparison: &Comparison) -> String {
    let answers: Vec<String> = comparison.answers.iter().map(|answer| prose(answer)).collect();
    let counts = sentence(&capital(&inert(&conclusion(comparison))));
    let mut out = if answers.is_empty() { String::new() } else { format!("{}\n", list(&answers)) };
    out.push_str(&format!("{counts}\n"));
    let mut left = MOST;
    for family in &comparison.families {
        out.push_str(&format!("\nBy {}, against {}:\n\n", inert(&family.by), code(&family.baseline)));
        out.push_str(&of_family(family, &mut left));
        for note in &family.notes {
            out.push_str(&format!("\n{}\n", sentence(&prose(note))));
        }
        let excluded = family.cells.iter().flat_map(left_out).collect::<std::collections::BTreeSet<_>>();
        for line in excluded {
            out.push_str(&format!("\nExcluded: {}\n", sentence(&inert(&line))));
        }
    }
    let all: usize = comparison.families.iter().flat_map(|family| &family.cells).map(|cell| cell.tests.len()).sum();
    if all > MOST {
        out.push_str(&format!("\n{} more tests: `sweepline compare` prints all of them.\n", all - MOST));
    }
    out
}

fn of_family(family: &Family, left: &mut usize) -> String {
    let headings = ["sweep and load", "arm", "metric", "change, 95 %", "p, adjusted#", "verdict"];
    let mut rows = Vec::new();
    for cell in &family.cells {
        for test in cell.tests.iter().take(*left) {
            let change = |test: &Test| test.change.as_ref().map_or("n/a".to_owned(), changed);
            let place =
                if cell.name.is_empty() { cell.sweep.clone() } else { format!("{}: {}", cell.sweep, cell.name) };
            rows.push(vec![
                code(&place),
                code(&cell.arm),
                named(test),
                inert(&change(test)),
                inert(&chance(test.p_adjusted)),
                inert(&verdict(test)),
            ]);
        }
        *left = left.saturating_sub(cell.tests.len());
    }
    rows.extend(family.pooled.iter().map(|one| {
        vec![
            "all cells".to_owned(),
            code(&one.arm),
            titled(&one.metric, one.unit),
            inert(&effects::changed(one)),
            inert(&chance(one.p_adjusted)),
            inert(&effects::on_average(one)),
        ]
    }));
    if rows.is_empty() { "Nothing could be tested.\n".to_owned() } else { table(&headings, &rows) }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
