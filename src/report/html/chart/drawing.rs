//! A drawn chart: the content of an SVG, and the places that show a value on hover.

use std::io;

use plotters::drawing::DrawingAreaErrorKind;
use serde::Serialize;

/// The result of drawing, or the error of the chart library.
pub(crate) type Drawn<T> = Result<T, DrawingAreaErrorKind<io::Error>>;

/// A drawn chart.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Drawing {
    /// Width in the coordinates of the chart.
    pub(super) width: u32,
    /// Height in the coordinates of the chart.
    pub(super) height: u32,
    /// The SVG elements of the chart. The library has escaped their texts.
    pub(super) inside: String,
    /// The places that show a value on hover.
    pub(super) marks: Vec<Mark>,
}

impl Drawing {
    /// Height in the coordinates of the chart.
    pub(crate) fn height(&self) -> u32 {
        self.height
    }
}

/// A place in a chart that shows its value on hover.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Mark {
    /// Distance from the left edge, in the coordinates of the chart.
    pub(super) x: i32,
    /// Distance from the top edge, in the coordinates of the chart.
    pub(super) y: i32,
    /// The text that is shown on hover.
    pub(super) text: String,
}

/// Redundant attributes that are removed from every element. They are SVG defaults, or are set once on the
/// enclosing element ([`FAMILY`]). Removing them cannot change a text, because the library escapes quotation
/// marks in texts.
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
