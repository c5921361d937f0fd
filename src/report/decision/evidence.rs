//! The inputs of a decision's record, all of which are computed beforehand.

use super::standing::{Standing, standing};
use crate::analysis::Verdict;
use crate::analysis::comparison::Comparison;
use crate::analysis::curve::Curve;
use crate::plan::{Plan, Slo};
use crate::report::Trail;
use crate::report::configuration::Configuration;
use crate::report::curves::{differ, title};
use crate::store::RunRecord;

/// The inputs of a decision's record.
pub(crate) struct Evidence<'a> {
    /// The plan.
    pub(crate) plan: &'a Plan,
    /// The file name of the plan, as given on the command line.
    pub(crate) file: String,
    /// SHA-256 of the plan's file.
    pub(crate) sha256: String,
    /// Paths of the plan's fields that were set with `--set`. Their values are never included.
    pub(crate) set: Vec<String>,
    /// How runs were selected; empty if all runs of the plan were selected.
    pub(crate) chosen: String,
    /// The runs with results, in the plan's order.
    pub(crate) runs: Vec<MeasuredRun<'a>>,
    /// The states of the runs without results: `not measured`, `given up` or `unreadable`.
    pub(crate) without: Vec<&'static str>,
    /// The curves: loads with their results.
    pub(crate) curves: &'a [Curve<'a>],
    /// The capacity of one instance, as shown by each curve; empty if the plan has no objective.
    pub(crate) configurations: &'a [Configuration<'a>],
    /// The loads and settings that searches, ladders and similar sweeps tried, in order.
    pub(crate) trails: &'a [Trail],
    /// The results of the comparison that the plan declares; `None` if it declares none.
    pub(crate) comparison: Option<&'a Comparison>,
    /// Endpoints whose results come from several servers, one sentence each.
    pub(crate) mixed: Vec<String>,
    /// Findings of the methodology lint about the plan, one sentence each.
    pub(crate) lints: Vec<String>,
}

/// A run with a result.
pub(crate) struct MeasuredRun<'a> {
    /// Name of the sweep in the plan.
    pub(crate) sweep: &'a str,
    /// The committed record of the run.
    pub(crate) record: &'a RunRecord,
    /// The verdict of the run.
    pub(crate) verdict: &'a Verdict,
}

impl Evidence<'_> {
    /// Returns the name of the curve at index `at`, which distinguishes the curve from the others.
    pub(crate) fn name(&self, at: usize) -> String {
        let (models, sweeps) = differ(self.curves.iter().map(|curve| &curve.series));
        title(&self.curves[at].series, models, sweeps)
    }

    /// The plan's objective, if it has one.
    pub(super) fn objective(&self) -> Option<&Slo> {
        self.plan.slo.as_ref().filter(|slo| !Slo::is_empty(slo))
    }

    /// Returns the standing of each curve; for the accepted curve, the standing at the accepted load if the
    /// decision named one.
    pub(crate) fn standings(&self, accepted: usize, load: Option<f64>) -> Vec<Standing> {
        let of = |at: usize| standing(&self.curves[at], self.configurations.get(at), load.filter(|_| at == accepted));
        (0..self.curves.len()).map(of).collect()
    }
}
