//! The classes of a mix: the requests of each class are measured as if they were a separate run.

use crate::rows::{Facts, Only, Replay};

use super::gaps::{Events, Gaps};
use super::goodput::{GoodputMetrics, Thresholds, goodput_of_part};
use super::measure::{RunMetrics, measure_part};
use super::queue::Queue;

/// One class of a mix.
#[derive(Debug, Clone, PartialEq)]
pub struct OfClass {
    /// The name of the class, which is the name of its scenario.
    pub class: String,
    /// The metrics of the class. Each is defined as for the whole run, but covers only the requests
    /// of the class. Metrics that depend on the batch size are absent, because the number of slots
    /// that a class occupies changes constantly.
    pub metrics: RunMetrics,
    /// The goodput of the class's requests under the thresholds; `None` if there are no thresholds.
    pub goodput: Option<GoodputMetrics>,
}

/// Measures each class of a run that `names` lists, with `thresholds` for single requests.
pub fn classes<R: Replay + ?Sized>(
    run: &R,
    facts: &Facts,
    thresholds: &Thresholds,
    names: impl IntoIterator<Item = String>,
) -> Result<Vec<OfClass>, R::Error> {
    let facts = Facts { batch_size: None, ..facts.clone() };
    // The queue covers the whole run, because classes wait for each other.
    let queue = Queue::of(run.rows(), &facts);
    let measured = names.into_iter().map(|class| {
        let place = run.class(&class);
        let own = Only::new(run, |row| place.is_some() && row.class() == place);
        let events = Events::of(&own, &facts, &[])?;
        let gaps = Gaps::of_part(&own, &facts, &events, queue.turns)?;
        let metrics = measure_part(own.rows(), (&events, &gaps), &facts, queue);
        let goodput = goodput_of_part(own.rows(), &facts, thresholds, queue.turns);
        Ok(OfClass { class, metrics, goodput })
    });
    measured.collect()
}
