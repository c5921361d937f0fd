//! Renders why the measurements stopped, as far as the results show the reason.

use super::evidence::Evidence;
use super::markdown::{code, inert, list, sentence};
use crate::report::curves::highest;
use crate::units::text::counted;

pub(super) fn text(evidence: &Evidence, accepted: usize) -> String {
    let (with, without) = (evidence.runs.len(), evidence.without.len());
    let runs = match without {
        0 => format!("All {} of the plan have a result.", counted(with, "run")),
        _ => format!("{with} of {} of the plan have a result.", counted(with + without, "run")),
    };
    let mut items = vec![runs];
    let chose = evidence.trails.iter().filter(|trail| trail.state != "pending");
    items.extend(chose.map(|trail| format!("{}: {}", code(&trail.title()), sentence(&inert(&trail.standing)))));
    let curve = &evidence.curves[accepted];
    let axis = curve.axis.name().replace('_', " ");
    // A search is among the paths above.
    if let Some(found) = highest(curve, &axis).filter(|_| curve.search.is_none()) {
        let name = code(&evidence.name(accepted));
        items.push(format!("{name}: {}", sentence(&inert(&found))));
    }
    if let Some(load) = curve.rejected_from() {
        items.push(format!("Loads of {axis} {load} and above were given up: the server does not sustain them."));
    }
    let budget = evidence.comparison.map(|comparison| {
        let refused = comparison.families.iter().flat_map(|family| &family.cells).flat_map(|cell| &cell.tests);
        let needed = refused.filter_map(|test| test.repeats_needed).max();
        needed.map(|needed| {
            format!(
                "To show a difference of {} % in every metric compared, {needed} repeats would be needed.",
                comparison.see * 100.0
            )
        })
    });
    items.extend(budget.flatten());
    format!("## Why we stopped\n\n{}", list(&items))
}
