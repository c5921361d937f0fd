//! Renders the diagnosis: what was found, the decoding speed compared with the limit of the memory bandwidth,
//! and the table of symptoms.

use comfy_table::Cell;

use crate::analysis::diagnosis::{Diagnosis, Evidence, Finding, Predicted, memory_busy};
use crate::rows::RunLabels;

use super::format::{self, digits, plain};
use super::grid::{self, right};
use super::saturated::SaturatedLoad;
use super::table::load;
use crate::units::text::counted;

/// The runs of a plan, compared with the limit that the memory bandwidth sets for decoding.
pub struct Bound<'a> {
    /// Runs whose limit could be computed.
    pub(crate) predicted: &'a [Predicted<'a>],
    /// The reasons why the limit of other runs could not be computed, each listed once.
    pub(crate) unpredicted: &'a [String],
}

/// Maximum number of saturated loads that are listed.
const MOST_SATURATED: usize = 8;

/// Renders the whole diagnosis, at most 100 columns wide. It begins with what was found. Symptoms that were
/// found come first, and checks that were not possible come last.
pub(crate) fn diagnosis(
    bound: &Bound,
    saturated: &[SaturatedLoad],
    diagnoses: &[Diagnosis],
    not_measured: &str,
) -> String {
    let mut out = found(saturated, diagnoses);
    out.push_str("\ndecoding compared with the limit of memory bandwidth\n");
    if !bound.predicted.is_empty() {
        out.push_str(&format!("\n{}\n", table(bound.predicted)));
        let text = "limit: bytes per second over the bytes that one step reads: all weights, and with `shape` \
                    the KV cache of all streams. measured: 1 / p50 TPOT.";
        out.push_str(&format::fill(" ", 2, text));
        if bound.predicted.iter().filter_map(Predicted::ratio).any(|ratio| ratio > 1.0) {
            let text = "above 100 %: the declared hardware or model is not what runs there, or a step generates \
                several tokens (speculative decoding).";
            out.push_str(&format::fill(" ", 2, text));
        }
    }
    for reason in bound.unpredicted {
        out.push_str(&format::fill("  not computed: ", 4, reason));
    }
    out.push_str("\nsymptoms\n");
    let rank = |one: &&Diagnosis| match one.finding {
        Finding::Seen(_) => 0,
        Finding::NotSeen(_) => 1,
        Finding::NotChecked(_) => 2,
    };
    let mut ordered: Vec<&Diagnosis> = diagnoses.iter().collect();
    ordered.sort_by_key(rank);
    for diagnosis in ordered {
        out.push_str(&symptom(diagnosis));
    }
    out.push_str(&format::fill("\nnot measured: ", 2, not_measured));
    out
}

/// Lists the saturated loads and the symptoms that were found.
fn found(saturated: &[SaturatedLoad], diagnoses: &[Diagnosis]) -> String {
    let mut out = String::new();
    for SaturatedLoad { text, .. } in saturated.iter().take(MOST_SATURATED) {
        out.push_str(&format::fill("saturated: ", 2, &plain(text)));
    }
    if saturated.len() > MOST_SATURATED {
        out.push_str(&format!("saturated: {} more loads\n", saturated.len() - MOST_SATURATED));
    }
    let count = |is: fn(&Finding) -> bool| diagnoses.iter().filter(|one| is(&one.finding)).count();
    let of = counted(diagnoses.len(), "symptom");
    let unchecked = match count(|finding| matches!(finding, Finding::NotChecked(_))) {
        0 => String::new(),
        count => format!(" ({count} could not be checked)"),
    };
    let seen = diagnoses.iter().filter(|one| matches!(one.finding, Finding::Seen(_)));
    let seen: Vec<&str> = seen.map(|one| one.symptom.title).collect();
    let text = match seen.len() {
        0 => format!("none of {of}{unchecked}"),
        count => format!("{count} of {of}{unchecked}: {}", seen.join("; ")),
    };
    out.push_str(&format::fill("found: ", 2, &text));
    out
}

fn table(predicted: &[Predicted]) -> String {
    let number = |value: Option<f64>| right(value.map_or("n/a".to_owned(), digits));
    let mut table = grid::table();
    let is_scraped = predicted.iter().any(|one| memory_busy(&one.run).is_some());
    let heads = [
        Cell::new("endpoint"),
        Cell::new("scenario"),
        Cell::new("load"),
        Cell::new("run"),
        right("in flight"),
        right("measured\ntok/s"),
        right("weights\nallow"),
        right("and KV\nallow"),
        right("measured ÷\nallowed"),
    ];
    table.set_header(heads.into_iter().chain(is_scraped.then(|| right("memory\nbusy"))));
    let has_models = predicted.iter().any(|one| one.run.labels.model != predicted[0].run.labels.model);
    for one in predicted {
        let labels = one.run.labels;
        let percent =
            |share: Option<f64>| right(share.map_or("n/a".to_owned(), |share| format!("{:.0} %", share * 100.0)));
        let cells = [
            Cell::new(plain(&labels.endpoint)),
            Cell::new(plain(&what(labels, has_models))),
            Cell::new(load(labels)),
            Cell::new(labels.run_id.get(..8).unwrap_or(&labels.run_id)),
            number(one.run.metrics.flow.achieved_concurrency),
            number(one.measured()),
            number(Some(one.prediction.by_weights)),
            number(one.prediction.with_kv),
            percent(one.ratio()),
        ];
        table.add_row(cells.into_iter().chain(is_scraped.then(|| percent(memory_busy(&one.run)))));
    }
    grid::text(table, 1, &[0, 1])
}

/// Returns the name of a run's workload: the model (if the runs have several), the scenario and the values on
/// further axes.
fn what(labels: &RunLabels, has_models: bool) -> String {
    let model = if has_models { format!("{} · ", labels.model) } else { String::new() };
    let axes = labels.axes.iter().map(|(axis, value)| format!(" {axis}={value}"));
    format!("{model}{}{}", labels.scenario, axes.collect::<String>())
}

fn symptom(diagnosis: &Diagnosis) -> String {
    let Diagnosis { symptom, finding } = diagnosis;
    match finding {
        Finding::Seen(evidence) => {
            let mut out = format!("\n  seen: {}\n", symptom.title);
            for Evidence { text, .. } in evidence {
                out.push_str(&format::fill("    where: ", 6, &plain(text)));
            }
            out.push_str(&format::fill("    likely: ", 6, symptom.regime));
            out.push_str(&format::fill("    confirm with: ", 6, symptom.confirm));
            out.push_str(&format::fill("    refuted by: ", 6, symptom.refute));
            out.push_str(&format::fill("    try first: ", 6, symptom.response));
            out
        }
        Finding::NotSeen(why) => format!("\n  not seen: {}\n{}", symptom.title, format::fill("   ", 4, why)),
        Finding::NotChecked(why) => format!("\n  not checked: {}\n{}", symptom.title, format::fill("   ", 4, why)),
    }
}
