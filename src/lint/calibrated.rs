//! The last calibration of this host, in the form that the rules need.

use crate::analysis::calibration::Pressure;
use crate::expand::LoadEngine;

/// A load that this host sustained in a calibration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Held {
    /// How heavy the load is for the generator.
    pub pressure: Pressure,
    /// The configuration of the load generator.
    pub engine: LoadEngine,
    /// Whether each request opened a new connection.
    pub(crate) opens_connections: bool,
}

/// The results of the last calibration that applies to this host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calibrated {
    /// All loads that this host sustained; empty if none is known.
    pub held: Vec<Held>,
}
