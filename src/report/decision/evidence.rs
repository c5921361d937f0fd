//! What a record is made of. All of it was computed before.

use super::standing::{Standing, standing};
use crate::analysis::Verdict;
use crate::analysis::comparison::Comparison;
use crate::analysis::curve::Curve;
use crate::plan::{Plan, Slo};
use crate::report::Trail;
use crate::report::capacity::Configuration;
use crate::report::curves::{differ, title};
use crate::store::RunRecord;

/// What a record is made of.
pub(crate) struct Evidence<'a> {
    /// The plan.
    pub(crate) plan: &'a Plan,
    /// Its file, as it was named.
    pub(crate) file: String,
    /// SHA-256 of that file.
    pub(crate) sha256: String,
    /// The values that the call set in it, by their paths; never what they were set to.
    pub(crate) set: Vec<String>,
    /// How runs were chosen; empty where all of the plan were.
    pub(crate) chosen: String,
    /// The runs with results, in the plan's order.
    pub(crate) runs: Vec<MeasuredRun<'a>>,
    /// The states of those without: `not measured`, `given up` or `unreadable`.
    pub(crate) without: Vec<&'static str>,
    /// Loads and what they bring.
    pub(crate) curves: &'a [Curve<'a>],
    /// What each curve says of its endpoint as an instance; empty where the plan has no objective.
    pub(crate) configurations: &'a [Configuration<'a>],
    /// How searches, ladders and the like came to stand where they do.
    pub(crate) trails: &'a [Trail],
    /// What the plan declares to be compared, answered.
    pub(crate) comparison: Option<&'a Comparison>,
    /// Endpoints whose results are of several servers, a sentence each.
    pub(crate) mixed: Vec<String>,
    /// What the methodology lint says of the plan, a sentence each.
    pub(crate) lints: Vec<String>,
}

/// One run with a result.
pub(crate) struct MeasuredRun<'a> {
    /// The plan's sweep.
    pub(crate) sweep: &'a str,
    /// What was committed.
    pub(crate) record: &'a RunRecord,
    /// What it is worth.
    pub(crate) verdict: &'a Verdict,
}

impl Evidence<'_> {
    /// What a curve is called among all of them.
    pub(crate) fn name(&self, at: usize) -> String {
        let (models, sweeps) = differ(self.curves.iter().map(|curve| &curve.series));
        title(&self.curves[at].series, models, sweeps)
    }

    /// The objective; none where the plan has none.
    pub(super) fn objective(&self) -> Option<&Slo> {
        self.plan.slo.as_ref().filter(|slo| !Slo::is_empty(slo))
    }

    /// What is known of each curve; of the accepted one at its load, where one was named.
    pub(crate) fn standings(&self, accepted: usize, load: Option<f64>) -> Vec<Standing> {
        let of = |at: usize| standing(&self.curves[at], self.configurations.get(at), load.filter(|_| at == accepted));
        (0..self.curves.len()).map(of).collect()
    }
}
