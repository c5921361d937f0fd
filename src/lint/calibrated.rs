//! What the last calibration of this host showed, as the rules need it.

use crate::analysis::calibration::Pressure;
use crate::expand::LoadEngine;

/// A load that a calibration of this host has measured and that held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Held {
    /// How hard it was.
    pub pressure: Pressure,
    /// How the generator was built.
    pub engine: LoadEngine,
    /// Whether each request opened a connection.
    pub(crate) opens_connections: bool,
}

/// What the last calibration that applies to this host showed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calibrated {
    /// Every load that held. A calibration without any says that nothing is known to hold.
    pub held: Vec<Held>,
}
