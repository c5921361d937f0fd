//! Errors in creating a page. They indicate a bug, because no measured result can cause them.

use plotters::drawing::DrawingAreaErrorKind;

/// The reason why a page could not be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// The chart library could not draw a chart.
    #[error("a chart of the report cannot be drawn: {0}")]
    Chart(#[from] DrawingAreaErrorKind<std::io::Error>),
    /// A template does not match its data.
    #[error("the report's template cannot be filled: {0:#}")]
    Template(#[from] minijinja::Error),
    /// A picture could not be created.
    #[error("a chart could not be converted to an image: {0}")]
    Picture(String),
}
