//! Why a page could not be made. Neither can happen for a reason that lies in the results.

use plotters::drawing::DrawingAreaErrorKind;

/// Why a page could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// The chart library could not draw.
    #[error("a chart of the report cannot be drawn: {0}")]
    Chart(#[from] DrawingAreaErrorKind<std::io::Error>),
    /// A template does not fit what it is given.
    #[error("the report's template cannot be filled: {0:#}")]
    Template(#[from] minijinja::Error),
    /// A picture.
    #[error("a figure could not be made into a picture: {0}")]
    Picture(String),
}
