//! The part of the scheduler that claims runs if results are shared, and leaves runs to other workers.

use petgraph::graph::NodeIndex;

use super::{Scheduler, SweepError};
use crate::store::Standing;

impl Scheduler<'_, '_> {
    /// Claims the next run and its server for this process. Returns true if another worker has claimed one
    /// of them or has committed the run; the run's node then ends. If the run was committed, a search
    /// continues from its result.
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
