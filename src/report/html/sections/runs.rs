//! The section that lists every run of the plan with its state and the reasons for it; no run is hidden.

use super::super::naming::{content, load, short};
use super::super::sources::Sources;
use super::super::view::{Block, Cell, Found, Missing, Section, Table, tone};
use super::percentiles::percentile;
use crate::plan::Percentile;
use crate::report::format::cut;

const TITLE: &str = "Runs";

/// Maximum number of characters of the reason for a run's state.
const LONGEST: usize = 220;

/// Returns the keys of the metrics that the tables of this section show.
pub(crate) fn metrics(sources: &Sources) -> Vec<&'static str> {
    let has_starts = sources.runs.iter().any(|run| run.metrics.start.is_some());
    let of_starts: &[&str] = if has_starts { &["start_ready", "start_first_answer"] } else { &[] };
    [&["requests", "failed", "ttft", "tpot", "output_throughput"], of_starts].concat()
}

/// Builds the section, or states why it is missing.
pub(crate) fn runs(sources: &Sources) -> Found {
    if sources.runs.is_empty() && sources.without.is_empty() {
        return Err(Missing { title: TITLE, why: "the plan has no run".to_owned() });
    }
    let columns = [
        "sweep",
        "run",
        "endpoint",
        "model",
        "scenario",
        "load",
        "repeat#",
        "state",
        "reasons",
        "requests#",
        "failed#",
        "ttft_p50_ms#",
        "ttft_p99_ms#",
        "tpot_p50_ms#",
        "output_throughput_tokens_per_s#",
    ];
    let mut table = Table::new("Every run of the plan", &columns);
    for run in &sources.runs {
        let (labels, verdict, metrics) = (run.labels, run.verdict, run.metrics);
        let state = verdict.state.name();
        let reasons =
            verdict.reasons.iter().chain(&verdict.labels).map(|reason| format!("{}: {}", reason.name, reason.text));
        let failures = metrics.failures.0.iter().map(|one| {
            let said = crate::report::format::said(one.message.as_deref(), one.count > 1);
            format!("{} {}{said}", one.count, one.outcome)
        });
        let reasons = reasons.chain(failures).collect::<Vec<_>>().join("; ");
        table.rows.push(vec![
            Cell::text(run.sweep),
            Cell::text(&short(&labels.run_id)),
            Cell::text(&labels.endpoint),
            Cell::text(&labels.model),
            Cell::text(&content(labels)),
            Cell::text(&load(labels)),
            Cell::count(labels.repeat.into()),
            Cell::toned(state, tone(state)),
            Cell::text(&cut(&reasons, LONGEST)),
            Cell::count(metrics.counts.requests),
            Cell::count(metrics.counts.failed),
            percentile(&metrics.ttft, Percentile::P50),
            percentile(&metrics.ttft, Percentile::P99),
            percentile(&metrics.tpot, Percentile::P50),
            Cell::number(metrics.flow.output_throughput),
        ]);
    }
    for run in &sources.without {
        let labels = &run.labels;
        let none = || Cell::number(None);
        table.rows.push(vec![
            Cell::text(&run.sweep),
            Cell::text(&short(&labels.run_id)),
            Cell::text(&labels.endpoint),
            Cell::text(&labels.model),
            Cell::text(&content(labels)),
            Cell::text(&load(labels)),
            Cell::count(labels.repeat.into()),
            Cell::toned(run.state, tone(run.state)),
            Cell::text(&cut(&run.reason, LONGEST)),
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
        ]);
    }
    let mut blocks = vec![Block::Table { table }];
    blocks.extend(starts(sources).map(|table| Block::Table { table }));
    let (given_up, missing) = sources.without.iter().partition::<Vec<_>, _>(|run| run.state == "given up");
    if !missing.is_empty() {
        blocks.push(Block::Text { text: format!("Run `{}` for the missing runs.", sources.run_again) });
    }
    if !given_up.is_empty() {
        let text = format!("Run `{} --redo given-up` to retry the runs that were given up.", sources.run_again);
        blocks.push(Block::Text { text });
    }
    Ok(Section { id: "runs", title: TITLE, blocks })
}

/// Returns a table of the startup times of launched servers; `None` if no run measures them.
fn starts(sources: &Sources) -> Option<Table> {
    let columns =
        ["sweep", "run", "endpoint", "model", "axes", "repeat#", "start_ready_ms#", "start_first_answer_ms#", "state"];
    let mut table = Table::new("Server starts", &columns);
    for run in &sources.runs {
        let (Some([ready, answered]), labels) = (run.metrics.start, run.labels) else { continue };
        let state = run.verdict.state.name();
        table.rows.push(vec![
            Cell::text(run.sweep),
            Cell::text(&short(&labels.run_id)),
            Cell::text(&labels.endpoint),
            Cell::text(&labels.model),
            Cell::text(&content(labels)),
            Cell::count(labels.repeat.into()),
            Cell::number(Some(ready)),
            Cell::number(Some(answered)),
            Cell::toned(state, tone(state)),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}
