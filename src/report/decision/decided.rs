//! A decision in the form in which the record stores it, so that a later call can read it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::standing::Outcome;
use crate::analysis::curve::{Axis, Curve};

/// A decision to accept a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decided {
    /// The accepted configuration.
    pub(crate) configuration: Chosen,
    /// The name of the configuration at the time of the decision.
    pub(crate) name: String,
    /// The outcome of the configuration at the time of the decision.
    pub(crate) outcome: Outcome,
    /// The reason as stated by the person who decided.
    pub(crate) because: String,
    /// Who decided; `None` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    /// The day of the decision, in UTC.
    pub(crate) on: String,
}

/// The accepted configuration, identified by the attributes that its runs have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Chosen {
    sweep: String,
    endpoint: String,
    model: String,
    scenario: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cap: Option<u32>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    axes: BTreeMap<String, String>,
    /// The load axis: `qps` or `batch_size`.
    axis: String,
    /// The load, if the decision named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) load: Option<f64>,
}

impl Chosen {
    /// Returns the attributes that identify the configuration of a curve; `load` is the load that the
    /// decision named, if any.
    pub(crate) fn of(curve: &Curve, load: Option<f64>) -> Chosen {
        let series = &curve.series;
        Chosen {
            sweep: series.sweep.clone(),
            endpoint: series.endpoint.clone(),
            model: series.model.clone(),
            scenario: series.scenario.clone(),
            cap: series.cap,
            axes: series.axes.clone(),
            axis: curve.axis.name().to_owned(),
            load,
        }
    }

    /// Whether a curve belongs to this configuration and contains its load.
    pub(crate) fn is(&self, curve: &Curve) -> bool {
        let has_load = self.load.is_none_or(|load| curve.rung(load).is_some());
        has_load && Chosen::of(curve, self.load) == *self
    }

    /// Describes the load that the decision named: `at qps 40`; `None` if it named none.
    pub(crate) fn load_words(&self) -> Option<String> {
        let axis = if self.axis == Axis::Qps.name() { "qps" } else { "batch size" };
        self.load.map(|load| format!("at {axis} {load}"))
    }
}
