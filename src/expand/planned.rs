//! A run of a plan.

use std::sync::Arc;

use crate::plan::Scalar;
use crate::plan::model::axis::server_flag;

use super::cell::Cell;
use super::identity::RunId;
use super::spec::RunSpec;

/// A run of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRun {
    /// Name of the sweep.
    pub sweep: Arc<str>,
    /// The cell: a value for each axis, in declared order.
    pub cell: Cell,
    /// The number of the repeat, from 0.
    pub repeat: u32,
    /// The run with every default explicit.
    pub spec: Arc<RunSpec>,
    /// Its identity.
    pub id: RunId,
}

impl PlannedRun {
    /// The server flags that axes set, by name.
    pub fn server_settings(&self) -> impl Iterator<Item = (&str, &Scalar)> {
        self.cell.iter().filter_map(|(axis, value)| Some((server_flag(axis)?, value)))
    }

    /// The load settings that come from the sweep's arrivals rather than the cell: the highest rate of
    /// a profile that has its own rates, and the arrivals if they are more than one word.
    pub fn of_arrivals(&self) -> Vec<(&'static str, Scalar)> {
        let rate = self.spec.load.qps().map(|qps| ("qps", Scalar::Number(qps)));
        let label = self.spec.labels.axes.iter().find(|(axis, _)| *axis == "arrivals");
        let label = label.map(|(_, label)| ("arrivals", Scalar::Text(label.to_owned())));
        rate.into_iter().chain(label).filter(|(axis, _)| self.cell.get(axis).is_none()).collect()
    }
}
