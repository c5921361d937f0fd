//! Converts a sweep's events to spans: one span for the command, below it one span for each attempt at a
//! run, and below that one span for each phase.

use super::super::phases::Phases;
use super::settings::Parent;
use super::span::{Attribute, Span, SpanEvent, SpanId, TraceId, Value, span_id, trace_id};
use super::told::Told;
use crate::expand::Load;
use crate::report::format::plain;
use crate::report::progress::events::Headline;
use crate::sweep::event::{Event, RunView};
use crate::units::NonceSeed;

/// The attribute for the requested model, as named in OpenTelemetry's semantic conventions for generative AI.
/// The conventions define latencies and token counts only as metrics or for single requests, so sweepline
/// uses its own names for the attributes of a run's numbers.
const MODEL: &str = "gen_ai.request.model";
/// The attribute for the type of an error, as named in OpenTelemetry's general semantic conventions.
const ERROR_TYPE: &str = "error.type";

/// The spans of a command's sweep.
pub(super) struct Tree {
    trace: TraceId,
    seed: SpanId,
    made: u64,
    sweep: Span,
    open: Vec<OpenRun>,
    phases: Phases,
    done: Vec<Span>,
}

/// An active run.
struct OpenRun {
    number: usize,
    span: Span,
    phase: Option<Span>,
}

impl Tree {
    /// Creates the tree for a plan's sweep, which begins now, below the parent span from the environment.
    ///
    /// # Errors
    /// If the system cannot provide random bits.
    pub(super) fn new(plan: &str, parent: Option<Parent>, at_ns: u64) -> std::io::Result<Tree> {
        let trace = parent.map_or_else(trace_id, |(trace, _)| Ok(trace))?;
        let bits = NonceSeed::random()?.0;
        let seed = std::array::from_fn(|at| bits[at]);
        let attributes = vec![("sweepline.plan".to_owned(), Value::text(plan))];
        let sweep = Span { attributes, ..empty(trace, span_id(seed, 0), "sweep", at_ns) };
        let sweep = Span { parent: parent.map(|(_, span)| span), ..sweep };
        Ok(Tree { trace, seed, made: 0, sweep, open: Vec::new(), phases: Phases::default(), done: Vec::new() })
    }

    /// Updates the spans with an event.
    pub(super) fn take(&mut self, told: Told) {
        let Told { event, at_ns, headline } = told;
        self.look(at_ns);
        self.phases.take(&event);
        match &event {
            Event::Started { run, .. } => {
                let id = self.sweep.id;
                let span = self.span("run", id, at_ns, of_run(run));
                self.open.push(OpenRun { number: run.number, span, phase: None });
            }
            Event::Committed { run } => {
                self.end(run, at_ns, None, headline.as_ref().map(of_result).unwrap_or_default());
            }
            Event::Failed { run, reason } => self.end(run, at_ns, Some(("failed", reason)), Vec::new()),
            Event::Again { run, reason, .. } => self.end(run, at_ns, Some(("spoiled", reason)), Vec::new()),
            Event::GivenUp { run, cause, reason, .. } => {
                self.end(run, at_ns, Some((&cause.to_string(), reason)), Vec::new());
            }
            Event::Skipped { run, reason } => {
                self.end(run, at_ns, Some(("skipped", reason)), Vec::new());
            }
            Event::Chosen { pool, standing, .. } => self.note(at_ns, "decided", &format!("{pool}: {standing}")),
            Event::Pruned { cell, why, .. } => self.note(at_ns, "decided", &format!("{cell}: {why}")),
            Event::Stopping => self.note(at_ns, "stopping", "a stop was requested"),
            _ => {}
        }
    }

    /// Starts a span for each phase that has begun since the last poll, and ends the span of the previous
    /// phase.
    pub(super) fn look(&mut self, at_ns: u64) {
        for (run, phase) in self.phases.began() {
            let Some(at) = self.open.iter().position(|open| open.number == run.number) else { continue };
            let (id, name): (SpanId, &'static str) = (self.open[at].span.id, phase.into());
            let span = self.span(name, id, at_ns, Vec::new());
            let before = self.open[at].phase.replace(span);
            self.done.extend(before.map(|before| Span { end_ns: at_ns, ..before }));
        }
    }

    /// Ends all spans; the spans of active runs are marked as abandoned.
    pub(super) fn close(&mut self, at_ns: u64) {
        self.look(at_ns);
        for open in std::mem::take(&mut self.open) {
            self.finish(open, at_ns, Some(("abandoned", "the command ended")));
        }
        self.done.push(Span { end_ns: at_ns, ..self.sweep.clone() });
    }

    /// Returns the spans that have ended since the last call.
    pub(super) fn over(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.done)
    }

    fn span(&mut self, name: &str, parent: SpanId, at_ns: u64, attributes: Vec<Attribute>) -> Span {
        self.made += 1;
        let id = span_id(self.seed, self.made);
        Span { parent: Some(parent), attributes, ..empty(self.trace, id, name, at_ns) }
    }

    fn end(&mut self, run: &RunView, at_ns: u64, error: Option<(&str, &str)>, more: Vec<Attribute>) {
        let Some(at) = self.open.iter().position(|open| open.number == run.number) else {
            // The run never began, so it has no span; the reason is recorded as an event of the sweep's span.
            if let Some((kind, why)) = error {
                let attributes = [text(ERROR_TYPE, kind), text("sweepline.reason", &plain(why))];
                let attributes = of_run(run).into_iter().chain(attributes).collect();
                self.sweep.events.push(SpanEvent { at_ns, name: "run skipped", attributes });
            }
            return;
        };
        let mut open = self.open.swap_remove(at);
        open.span.attributes.extend(more);
        self.finish(open, at_ns, error);
    }

    fn finish(&mut self, open: OpenRun, at_ns: u64, error: Option<(&str, &str)>) {
        let OpenRun { mut span, phase, .. } = open;
        self.done.extend(phase.map(|phase| Span { end_ns: at_ns, ..phase }));
        if let Some((kind, why)) = error {
            span.attributes.push(text(ERROR_TYPE, kind));
            span.error = Some(plain(why));
        }
        self.done.push(Span { end_ns: at_ns, ..span });
    }

    fn note(&mut self, at_ns: u64, name: &'static str, what: &str) {
        let attributes = vec![text("sweepline.text", &plain(what))];
        self.sweep.events.push(SpanEvent { at_ns, name, attributes });
    }
}

fn empty(trace: TraceId, id: SpanId, name: &str, at_ns: u64) -> Span {
    let name = name.to_owned();
    let (attributes, events) = (Vec::new(), Vec::new());
    Span { trace, id, parent: None, name, start_ns: at_ns, end_ns: at_ns, attributes, events, error: None }
}

fn text(key: &str, value: &str) -> Attribute {
    (key.to_owned(), Value::text(value))
}

/// Returns the attributes of a run.
fn of_run(run: &RunView) -> Vec<Attribute> {
    let group = &run.group;
    let mut attributes = vec![
        text("sweepline.run.id", &run.id.to_string()),
        text("sweepline.run.name", &plain(&run.name)),
        text("sweepline.sweep", &group.sweep),
        text("sweepline.endpoint", &group.endpoint),
        text("sweepline.scenario", &group.scenario),
        text(MODEL, &group.model),
    ];
    attributes.push(match &run.load {
        Load::Closed { batch_size } => ("sweepline.load.batch_size".to_owned(), Value::Int(i64::from(*batch_size))),
        Load::Open { qps, .. } => ("sweepline.load.qps".to_owned(), Value::text(qps.to_string())),
    });
    attributes.extend(run.axes.iter().map(|[axis, value]| text(&format!("sweepline.axis.{axis}"), value)));
    attributes
}

/// Returns the attributes of a run's result; unknown numbers are omitted.
fn of_result(headline: &Headline) -> Vec<Attribute> {
    let reasons = headline.reasons.iter().map(|reason| (*reason).to_owned()).collect();
    let counts = [("sweepline.requests", headline.requests), ("sweepline.requests.failed", headline.failed)];
    let numbers = [
        ("sweepline.ttft_p50_ms", headline.ttft_p50_ms),
        ("sweepline.ttft_p99_ms", headline.ttft_p99_ms),
        ("sweepline.tpot_p50_ms", headline.tpot_p50_ms),
        ("sweepline.output_throughput_tokens_per_s", headline.output_throughput_tokens_per_s),
    ];
    let mut attributes = vec![
        text("sweepline.verdict", headline.verdict),
        ("sweepline.verdict.reasons".to_owned(), Value::Texts(reasons)),
    ];
    attributes.extend(counts.map(|(key, count)| (key.to_owned(), Value::Int(count as i64))));
    let known = numbers.into_iter().filter_map(|(key, number)| Some((key.to_owned(), Value::Double(number?))));
    attributes.extend(known);
    attributes
}
