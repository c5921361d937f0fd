//! The result of drawing a chart: the content of an SVG, and the places at which values are shown on
//! hover.

use std::io;

use plotters::drawing::DrawingAreaErrorKind;
use serde::Serialize;

/// A drawn chart, or the library's error.
pub(crate) type Drawn<T> = Result<T, DrawingAreaErrorKind<io::Error>>;

/// A chart.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Drawing {
    /// Width in the coordinates of the chart.
    pub(super) width: u32,
    /// Height in the coordinates of the chart.
    pub(super) height: u32,
    /// Its elements. The library has escaped their texts.
    pub(super) inside: String,
    /// The values that are shown on hover.
    pub(super) marks: Vec<Mark>,
}

impl Drawing {
    /// Height in its coordinates.
    pub(crate) fn height(&self) -> u32 {
        self.height
    }
}

/// A place of a chart that shows its value on hover.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Mark {
    /// Distance from the left.
    pub(super) x: i32,
    /// Distance from the top.
    pub(super) y: i32,
    /// The text shown.
    pub(super) text: String,
}

/// Attributes that would be redundant in every element, because they are defaults or are set once by
/// the enclosing element ([`FAMILY`]). No text contains a quotation mark, because the library
/// escapes it.
const IDLE: [&str; 3] = [" opacity=\"1\"", " stroke=\"none\" stroke-width=\"1\"", FAMILY];

/// The font family of all texts. The templates set it on the element around a drawing.
const FAMILY: &str = " font-family=\"sans-serif\"";

/// Extracts the elements of an SVG document, without the enclosing element and redundant attributes.
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
