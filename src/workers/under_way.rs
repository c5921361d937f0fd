//! The coordinator's state of a run in progress. Merges the rows, time series and counters of all workers
//! into those of one run.

use crate::engine::{EngineError, Progress, SampleSink, Sink, SinkError, TextSink, TurnedAway};
use crate::expand::RunSpec;
use crate::plan::ErrorPolicy;
use crate::rows::{Facts, Phase, Record, Sample};

use super::child::Event;
use super::cover::Cover;
use super::message::{Counters, FromWorker, Told};

/// The destinations of a run's rows, time series and texts.
pub(super) type Sinks = (Box<dyn Sink>, Box<dyn SampleSink>, Option<Box<dyn TextSink>>);

/// A run in progress: the results that have arrived so far, and where they are written.
pub(super) struct UnderWay {
    sink: Box<dyn Sink>,
    samples: Box<dyn SampleSink>,
    texts: Option<Box<dyn TextSink>>,
    /// The requests whose rows have arrived.
    pub(super) cover: Cover,
    turned_away: Option<TurnedAway>,
    workers: Vec<State>,
    /// Whether the end of the run has been announced.
    is_ending: bool,
}

/// The state of one worker.
#[derive(Default)]
struct State {
    counters: Counters,
    started_late_ns: Option<u64>,
    has_measured: bool,
    facts: Option<Box<Facts>>,
}

impl UnderWay {
    /// Creates the state for a run of `spec` at `url` with `workers` workers.
    pub(super) fn new(spec: &RunSpec, url: String, (sink, samples, texts): Sinks, workers: usize) -> UnderWay {
        UnderWay {
            sink,
            samples,
            texts,
            cover: Cover::new(workers),
            turned_away: (spec.errors == ErrorPolicy::Environment).then(|| TurnedAway::new(url)),
            workers: (0..workers).map(|_| State::default()).collect(),
            is_ending: false,
        }
    }

    /// Handles an event of worker number `index`. Returns the event if it is not handled here; otherwise
    /// `None`.
    pub(super) fn take(
        &mut self,
        index: usize,
        event: Event,
        progress: &Progress,
    ) -> Result<Option<Event>, EngineError> {
        match event {
            Event::Records(records) => self.records(index, &records, progress)?,
            Event::Told(FromWorker::Progress(counters), _) => {
                self.workers[index].counters = counters;
                self.show(progress);
            }
            Event::Told(FromWorker::Samples(samples), _) => {
                let source = format!("worker {}", index + 1);
                let named = |sample: Sample| Sample { source: source.clone(), ..sample };
                let samples: Vec<Sample> = samples.into_iter().map(named).collect();
                self.samples.append(&samples).map_err(EngineError::Sink)?;
            }
            Event::Told(FromWorker::Texts(texts), _) => {
                self.texts.as_mut().map_or(Ok(()), |sink| sink.append(&texts)).map_err(EngineError::Sink)?;
            }
            Event::Told(FromWorker::Stage(Told::Began(late)), _) => self.workers[index].started_late_ns = Some(late),
            Event::Told(FromWorker::Stage(Told::Measured), _) => self.workers[index].has_measured = true,
            Event::Told(FromWorker::Done(facts), _) => self.workers[index].facts = Some(facts),
            other => return Ok(Some(other)),
        }
        Ok(None)
    }

    fn records(&mut self, index: usize, records: &[Record], progress: &Progress) -> Result<(), EngineError> {
        for Record { row, .. } in records {
            self.cover.take(index, row).map_err(not_covered)?;
            progress.ended.add(1);
            progress.failed.add(u64::from(!row.outcome.is_ok()));
            progress.recent.take(row);
        }
        self.sink.append(records).map_err(EngineError::Sink)?;
        let Some(turned_away) = &mut self.turned_away else { return Ok(()) };
        match records.iter().find_map(|record| turned_away.ended(&record.row)) {
            Some(spoiled) => Err(EngineError::Spoiled(spoiled)),
            None => Ok(()),
        }
    }

    /// Updates the run's live counters from the counters of all workers.
    fn show(&self, progress: &Progress) {
        let counters = || self.workers.iter().map(|worker| worker.counters);
        let sum = |of: fn(&Counters) -> u64| counters().map(|counters| of(&counters)).sum();
        if let Some(latest) = counters().max_by_key(|counters| counters.elapsed_ns) {
            let phase = Phase::ALL.get(usize::from(latest.phase)).copied().unwrap_or_default();
            progress.at(phase, latest.elapsed_ns);
            progress.measures((latest.window_ns[0], latest.window_ns[1]));
        }
        progress.in_flight.set(sum(|counters| counters.in_flight));
        progress.in_window.set(sum(|counters| counters.in_window));
        progress.token_events.set(sum(|counters| counters.token_events));
        progress.signs.set(sum(|counters| counters.signs));
    }

    /// Whether to announce the end of the run now. Returns true once, when all requests in the measure
    /// window have ended.
    pub(super) fn takes_end(&mut self) -> bool {
        let all = self.workers.iter().all(|worker| worker.has_measured);
        all && !std::mem::replace(&mut self.is_ending, all)
    }

    /// Whether worker number `index` has sent all its results.
    pub(super) fn has_ended(&self, index: usize) -> bool {
        self.workers[index].facts.is_some()
    }

    /// Whether all workers have sent all their results.
    pub(super) fn is_done(&self) -> bool {
        (0..self.workers.len()).all(|index| self.has_ended(index))
    }

    /// Returns the facts of each worker, and how late the worker started, in nanoseconds.
    pub(super) fn facts(&mut self) -> Vec<(Facts, u64)> {
        let facts =
            |worker: &mut State| (*worker.facts.take().unwrap_or_default(), worker.started_late_ns.unwrap_or(0));
        self.workers.iter_mut().map(facts).collect()
    }

    /// Closes the destinations of rows, time series and texts. Returns the numbers of samples and texts.
    pub(super) fn close(self) -> Result<(u64, Option<u64>), SinkError> {
        self.sink.finish()?;
        Ok((self.samples.finish()?, self.texts.map(TextSink::finish).transpose()?))
    }
}

/// Returns the error for a run whose rows do not match its schedule and must not be committed.
pub(super) fn not_covered(what: String) -> EngineError {
    EngineError::Workers(format!("the rows of the workers do not match the schedule of the run: {what}"))
}
