//! Which sweeps have cells that a plan means to compare.

use crate::plan::model::compare::Compare;
use crate::plan::model::plan::Plan;
use crate::plan::model::sweep::Sweep;

impl Compare {
    /// Whether a sweep has cells that this compares: the baseline and at least one other value on the axis.
    pub(crate) fn applies_to(&self, sweep: &Sweep) -> bool {
        let values = sweep.values(&self.by);
        values.len() > 1 && values.contains(&self.baseline)
    }
}

impl Plan {
    /// What is compared in a sweep: what it says itself, else what the plan says, where it has such cells. Of loads that a search or the
    /// end of a ladder chooses, each arm has its own: nothing is compared there.
    pub fn compared<'p>(&'p self, sweep: &'p Sweep) -> Option<&'p Compare> {
        if sweep.chooses_runs() {
            return None;
        }
        sweep.compare.as_ref().or(self.compare.as_ref()).filter(|compare| compare.applies_to(sweep))
    }

    /// Most rounds of a sweep whose comparison may stop as soon as something is shown; none where all rounds are made.
    pub fn most_rounds(&self, sweep: &Sweep) -> Option<u32> {
        self.compared(sweep).filter(|compare| compare.sequential).map(|_| sweep.repeats.at_most)
    }
}
