//! Determines which sweeps have cells for a comparison of the plan.

use crate::plan::model::compare::Compare;
use crate::plan::model::plan::Plan;
use crate::plan::model::sweep::Sweep;

impl Compare {
    /// Whether a sweep has cells for this comparison: the baseline and at least one other value on the
    /// axis.
    pub(crate) fn applies_to(&self, sweep: &Sweep) -> bool {
        let values = sweep.values(&self.by);
        values.len() > 1 && values.contains(&self.baseline)
    }
}

impl Plan {
    /// The comparison of a sweep: its own, or else the plan's, if the sweep has cells for it. If a
    /// search or a series that ends early chooses the loads, each arm has its own loads, so there is no
    /// comparison.
    pub fn compared<'p>(&'p self, sweep: &'p Sweep) -> Option<&'p Compare> {
        if sweep.chooses_runs() {
            return None;
        }
        sweep.compare.as_ref().or(self.compare.as_ref()).filter(|compare| compare.applies_to(sweep))
    }

    /// The maximum number of rounds of a sweep whose comparison may end early; `None` if all rounds run.
    pub fn most_rounds(&self, sweep: &Sweep) -> Option<u32> {
        self.compared(sweep).filter(|compare| compare.sequential).map(|_| sweep.repeats.at_most)
    }
}
