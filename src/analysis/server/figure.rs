//! One figure of a server.

use crate::telemetry::canonical::Unit;

/// One figure of a server over the window of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerFigure {
    /// The name of the figure in tables, without unit: `requests_running_mean`.
    pub name: String,
    /// The unit of the figure.
    pub unit: Unit,
    /// The meaning of the figure.
    pub doc: String,
    /// The value, or why it is missing.
    pub value: Result<f64, String>,
}

impl ServerFigure {
    pub(super) fn new(
        name: impl Into<String>,
        unit: Unit,
        doc: impl Into<String>,
        value: Result<f64, String>,
    ) -> ServerFigure {
        ServerFigure { name: name.into(), unit, doc: doc.into(), value }
    }
}
