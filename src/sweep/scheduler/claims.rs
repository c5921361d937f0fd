//! The part of the scheduler that leaves runs to other workers, if results are shared.

use petgraph::graph::NodeIndex;

use super::{Scheduler, SweepError};
use crate::store::Standing;

impl Scheduler<'_, '_> {
    /// Takes the next run, with its server. If another worker has either, or has committed the run, the run's
    /// node ends. A search then continues from the result, or waits for it.
    pub(super) fn is_someone_elses(&mut self, node: NodeIndex, at: usize) -> Result<bool, SweepError> {
        let run = &self.sweep.expansion.runs[at];
        let server = self.sweep.plan.endpoints[&run.spec.endpoint.name].shared_server();
        let is_settled = match self.sweep.writer.claim(&run.id.to_string(), server.as_deref())? {
            Standing::Open => return Ok(false),
            Standing::Committed => {
                let count =
                    if self.sweep.replaces[at].is_some() { &mut self.summary.kept } else { &mut self.summary.shared };
                *count += 1;
                true
            }
            Standing::Taken => {
                self.summary.elsewhere.push(run.id);
                false
            }
        };
        self.over.insert(run.id, is_settled);
        self.was_measured(node, at, is_settled);
        if is_settled {
            self.end_early(at);
        }
        Ok(true)
    }
}
