//! Resolves the configuration that `--accept` selects.

use crate::analysis::curve::Curve;
use crate::cli::failure::Failure;
use crate::cli::selection::matching_runs;
use crate::expand::PlannedRun;
use crate::plan::Plan;
use crate::report::decision::{Chosen, Evidence};
use crate::units::text::quoted;

/// Maximum number of candidates that an error lists.
const MOST: usize = 20;

/// Returns the index of the one curve that contains all runs selected by an expression, and the accepted
/// configuration. The configuration includes a load if the expression selects only one of the curve's
/// loads.
pub(super) fn chosen(
    text: &str,
    (plan, runs): (&Plan, &[PlannedRun]),
    evidence: &Evidence,
) -> Result<(usize, Chosen), Failure> {
    let holds = matching_runs(text, plan, runs).map_err(|failure| match failure {
        Failure::Usage(why) => Failure::Usage(format!("--accept {why}")),
        other => other,
    })?;
    let selected: Vec<(&str, String)> =
        runs.iter().zip(holds).filter(|(_, holds)| *holds).map(|(run, _)| (&*run.sweep, run.id.to_string())).collect();
    let loads = |curve: &Curve| -> Vec<f64> {
        let is_selected = |sweep: &str, id: &str| selected.iter().any(|(own, run)| *own == sweep && run == id);
        let rungs = curve.rungs.iter().filter(|rung| {
            let excluded = rung.excluded.iter().map(|one| &one.run);
            let mut measured = rung.runs.iter().chain(&rung.left_out).chain(excluded);
            measured.any(|run| is_selected(run.sweep, &run.labels.run_id))
                || rung.given_up.iter().any(|run| is_selected(run.sweep, &run.labels.run_id))
        });
        rungs.map(|rung| rung.load).collect()
    };
    let found = evidence.curves.iter().enumerate().map(|(at, curve)| (at, loads(curve)));
    let found: Vec<(usize, Vec<f64>)> = found.filter(|(_, loads)| !loads.is_empty()).collect();
    match &found[..] {
        [] => {
            let text = format!(
                "--accept \"{text}\": the selected runs have no result; {}",
                listed(evidence, 0..evidence.curves.len())
            );
            Err(Failure::Usage(text))
        }
        [(at, loads)] => {
            let curve = &evidence.curves[*at];
            let load = match loads[..] {
                _ if loads.len() == curve.rungs.len() => None,
                [load] => Some(load),
                _ => {
                    let (selected, all, name) = (loads.len(), curve.rungs.len(), evidence.name(*at));
                    let axis = curve.axis.name();
                    let text = format!(
                        "--accept \"{text}\" selects {selected} of {all} loads of {name}: select one load ({axis} == \
                         {}), or all loads, to accept the configuration up to the highest load that holds",
                        loads[0]
                    );
                    return Err(Failure::Usage(text));
                }
            };
            Ok((*at, Chosen::of(curve, load)))
        }
        several => {
            let count = several.len();
            let list = listed(evidence, several.iter().map(|(at, _)| *at));
            Err(Failure::Usage(format!(
                "--accept \"{text}\" selects {count} configurations, but only one can be accepted; {list}"
            )))
        }
    }
}

/// Returns the index of the curve whose configuration an earlier call accepted.
pub(super) fn again(chosen: &Chosen, name: &str, evidence: &Evidence) -> Result<usize, Failure> {
    evidence.curves.iter().position(|curve| chosen.is(curve)).ok_or_else(|| {
        let list = listed(evidence, 0..evidence.curves.len());
        Failure::Usage(format!("the record accepts {name}, but this plan has no result for it; {list}"))
    })
}

/// Returns configurations as `--accept` expressions, one per line.
fn listed(evidence: &Evidence, which: impl ExactSizeIterator<Item = usize>) -> String {
    let more = which.len().saturating_sub(MOST);
    let line = |at: usize| format!("\n  --accept {}", typed(&expression(&evidence.curves[at], evidence.curves)));
    let lines: String = which.take(MOST).map(line).collect();
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    format!("candidates:{lines}{more}")
}

/// Formats an expression for the command line: in double quotes, with shell characters escaped.
fn typed(expression: &str) -> String {
    match expression.contains(['"', '$', '`', '\\', '!']) {
        true => quoted(expression),
        false => format!("\"{expression}\""),
    }
}

/// Returns an expression that selects one curve. It uses only the names in which the curve differs from other
/// curves.
fn expression(curve: &Curve, all: &[Curve]) -> String {
    let own = names(curve);
    let differs = |(name, value): &&(String, String)| {
        all.iter().any(|other| names(other).iter().find(|(own, _)| own == name).is_none_or(|(_, other)| other != value))
    };
    let mut parts: Vec<String> = own.iter().filter(differs).map(|(name, value)| format!("{name} == {value}")).collect();
    if parts.is_empty() {
        parts.extend(own.first().map(|(name, value)| format!("{name} == {value}")));
    }
    parts.join(" and ")
}

/// Returns the names and values of a curve that can be used in an expression.
fn names(curve: &Curve) -> Vec<(String, String)> {
    let series = &curve.series;
    let text = |text: &str| match text.contains('\'') {
        true => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        false => format!("'{}'", text.replace('\\', "\\\\")),
    };
    let axis = |value: &str| match value.parse::<f64>() {
        Ok(_) => value.to_owned(),
        Err(_) if ["true", "false"].contains(&value) => value.to_owned(),
        Err(_) => text(value),
    };
    let mut names = vec![
        ("endpoint".to_owned(), text(&series.endpoint)),
        ("model".to_owned(), text(&series.model)),
        ("scenario".to_owned(), text(&series.scenario)),
        ("sweep".to_owned(), text(&series.sweep)),
    ];
    names.extend(series.cap.map(|cap| ("batch_size".to_owned(), cap.to_string())));
    names.extend(series.axes.iter().map(|(name, value)| (name.clone(), axis(value))));
    names
}
