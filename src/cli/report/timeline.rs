//! The times at which runs were executed, from `run.json` files and attempts, grouped by the resource that
//! the runs occupy.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use crate::cli::results::Readings;
use crate::cli::workspace::Workspace;
use crate::expand::PlannedRun;
use crate::report::html::{Span, SpanKind};
use crate::store::{How, PastTry, RunRecord, short};
use crate::sweep::event::planned_name;

/// Returns every time span that runs of the plan took, ordered by start; `picked` marks the selected runs.
pub(super) fn spans(workspace: &Workspace, picked: &[bool], readings: &Readings) -> Vec<Span> {
    let chosen = workspace.expansion.runs.iter().zip(picked).filter(|(_, is)| **is).map(|(run, _)| run);
    let mut runs: HashMap<String, &PlannedRun> = HashMap::new();
    for run in chosen {
        runs.entry(run.id.short()).or_insert(run);
    }
    let resources = &workspace.expansion.resources;
    let lane = |run: &PlannedRun| resources.get(&run.spec.endpoint.name).cloned().unwrap_or_default();
    let mut spans: Vec<Span> = Vec::new();
    // A server that several runs shared was started only once.
    let mut starts: Vec<(String, String)> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for result in &readings.runs {
        let RunRecord { id, started, ended, environment, .. } = &result.record;
        let Some(run) = runs.get(short(id)).filter(|_| !seen.contains(&id.as_str())) else { continue };
        seen.push(id);
        let of = |kind, name, from, to| Span {
            lane: lane(run),
            endpoint: run.spec.endpoint.name.clone(),
            kind,
            name,
            from,
            to,
        };
        let kind = SpanKind::Run(result.answered.verdict.state.name());
        spans.push(of(kind, planned_name(run), started.0, ended.0));
        let Some(start) = &environment.server_start else { continue };
        let key = (lane(run), start.at.clone());
        let Ok(from) = start.at.parse::<Timestamp>() else { continue };
        if !starts.contains(&key) {
            starts.push(key);
            let to = from + SignedDuration::from_nanos(i64::try_from(start.ready_ns).unwrap_or(i64::MAX));
            spans.push(of(SpanKind::ServerStart, run.spec.endpoint.name.clone(), from, to));
        }
    }
    let past = readings.left_out.take(workspace.store.past_tries(&|id| runs.contains_key(id))).unwrap_or_default();
    for one in past {
        let run = runs[&one.id];
        spans.extend(past_span(&one, run, lane(run)));
    }
    spans.sort_by_key(|span| (span.from, span.to));
    spans
}

/// Returns an attempt as a time span; `None` if its end is unknown.
fn past_span(one: &PastTry, run: &PlannedRun, lane: String) -> Option<Span> {
    let (kind, to) = match (&one.how, one.ended) {
        (Some(How::UnderWay(_)), _) => (SpanKind::UnderWay, Timestamp::now()),
        (Some(How::Interrupted), Some(ended)) => (SpanKind::Interrupted, ended.0),
        (Some(How::Failed(_)), Some(ended)) => (SpanKind::Failed, ended.0),
        (Some(How::Spoiled(_)), Some(ended)) => (SpanKind::Spoiled, ended.0),
        (None, Some(ended)) => (SpanKind::Replaced, ended.0),
        (_, None) => return None,
    };
    let name = format!("{}, attempt {}", planned_name(run), one.number);
    let endpoint = run.spec.endpoint.name.clone();
    Some(Span { lane, endpoint, kind, name, from: one.started.0, to: to.max(one.started.0) })
}
