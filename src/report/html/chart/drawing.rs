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

impl Drawing {
    /// Height of its coordinates.
    pub(crate) fn height(&self) -> u32 {
        self.height
    }
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

/// What every element says and all of them mean anyway, or the element around them says once ([`FAMILY`]). No text has a quotation mark:
/// the library escapes it.
const IDLE: [&str; 3] = [" opacity=\"1\"", " stroke=\"none\" stroke-width=\"1\"", FAMILY];

/// The family of all texts, which the templates give the element around a drawing.
const FAMILY: &str = " font-family=\"sans-serif\"";

/// The elements of an SVG document, without the element around them, and without what is idle.
pub(super) fn inside(document: &str) -> String {
    let start = document.find('>').map_or(0, |at| at + 1);
    let end = document.rfind("</svg>").unwrap_or(document.len());
    let elements = document[start..end.max(start)].trim().to_owned();
    IDLE.into_iter().fold(elements, |text, idle| text.replace(idle, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_around_the_elements_is_taken_off() {
        assert_eq!(inside("<svg width=\"1\">\n<line opacity=\"1\" x1=\"2\"/>\n</svg>\n"), "<line x1=\"2\"/>");
        assert_eq!(inside(""), "");
        for template in [include_str!("../templates/blocks.html"), include_str!("../templates/figure.xml")] {
            assert_eq!(
                template.matches(FAMILY).count(),
                template.matches("<svg").count(),
                "each drawing names it once"
            );
        }
    }
}
