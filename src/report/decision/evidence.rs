//! The inputs of a record, all computed beforehand.

use super::standing::{Standing, standing};
use crate::analysis::Verdict;
use crate::analysis::comparison::Comparison;
use crate::analysis::curve::Curve;
use crate::plan::{Plan, Slo};
use crate::report::Trail;
use crate::report::capacity::Configuration;
use crate::report::curves::{differ, title};
use crate::store::RunRecord;

/// The inputs of a record.
pub(crate) struct Evidence<'a> {
    /// The plan.
    pub(crate) plan: &'a Plan,
    /// Its file name, as given.
    pub(crate) file: String,
    /// SHA-256 of that file.
    pub(crate) sha256: String,
    /// Paths of the values that the call set in the plan; never the values themselves.
    pub(crate) set: Vec<String>,
    /// How runs were selected; empty if all runs of the plan were.
    pub(crate) chosen: String,
    /// The runs with results, in the plan's order.
    pub(crate) runs: Vec<MeasuredRun<'a>>,
    /// The states of the runs without results: `not measured`, `given up` or `unreadable`.
    pub(crate) without: Vec<&'static str>,
    /// Loads with their results.
    pub(crate) curves: &'a [Curve<'a>],
    /// The capacity of one instance, as shown by each curve; empty if the plan has no objective.
    pub(crate) configurations: &'a [Configuration<'a>],
    /// The paths of searches, ladders and similar.
    pub(crate) trails: &'a [Trail],
    /// The comparison that the plan declares, with its results.
    pub(crate) comparison: Option<&'a Comparison>,
    /// Endpoints whose results come from several servers, one sentence each.
    pub(crate) mixed: Vec<String>,
    /// Findings of the methodology lint about the plan, one sentence each.
    pub(crate) lints: Vec<String>,
}

/// One run with a result.
pub(crate) struct MeasuredRun<'a> {
    /// The plan's sweep.
    pub(crate) sweep: &'a str,
    /// Its committed record.
    pub(crate) record: &'a RunRecord,
    /// Its verdict.
    pub(crate) verdict: &'a Verdict,
}

impl Evidence<'_> {
    /// The name of a curve that distinguishes it from the others.
    pub(crate) fn name(&self, at: usize) -> String {
        let (models, sweeps) = differ(self.curves.iter().map(|curve| &curve.series));
        title(&self.curves[at].series, models, sweeps)
    }

    /// The plan's objective, if it has one.
    pub(super) fn objective(&self) -> Option<&Slo> {
        self.plan.slo.as_ref().filter(|slo| !Slo::is_empty(slo))
    }

    /// The standing of each curve; for the accepted curve, its standing at the accepted load if the
    /// decision named one.
    pub(crate) fn standings(&self, accepted: usize, load: Option<f64>) -> Vec<Standing> {
        let of = |at: usize| standing(&self.curves[at], self.configurations.get(at), load.filter(|_| at == accepted));
        (0..self.curves.len()).map(of).collect()
    }
}
