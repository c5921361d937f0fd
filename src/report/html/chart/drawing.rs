//! What a chart comes to: the inside of an SVG, and where values show on hover.

use std::io;

use plotters::drawing::DrawingAreaErrorKind;
use serde::Serialize;

/// Why a chart could not be drawn: the library's own words.
pub(crate) type Drawn<T> = Result<T, DrawingAreaErrorKind<io::Error>>;

/// A chart.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Drawing {
    /// Width of its coordinates.
    pub(super) width: u32,
    /// Height of its coordinates.
    pub(super) height: u32,
    /// Its elements. Texts in it were escaped by the library.
    pub(super) inside: String,
    /// Values that show on hover.
    pub(super) marks: Vec<Mark>,
}

/// A place of a chart that says its value.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Mark {
    /// From the left.
    pub(super) x: i32,
    /// From the top.
    pub(super) y: i32,
    /// What it says.
    pub(super) text: String,
}

/// The elements of an SVG document, without the element around them, and without what every element says and all of them mean anyway. No
/// text has a quotation mark: the library escapes it.
pub(super) fn inside(document: &str) -> String {
    let start = document.find('>').map_or(0, |at| at + 1);
    let end = document.rfind("</svg>").unwrap_or(document.len());
    document[start..end.max(start)].trim().replace(" opacity=\"1\"", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_around_the_elements_is_taken_off() {
        assert_eq!(inside("<svg width=\"1\">\n<line opacity=\"1\" x1=\"2\"/>\n</svg>\n"), "<line x1=\"2\"/>");
        assert_eq!(inside(""), "");
    }
}
