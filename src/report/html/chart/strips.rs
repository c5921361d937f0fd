//! Draws a run over time as strips on a shared time axis, in a few hundred bytes. Drawings must be small,
//! because a page may contain up to a thousand of them; with plotters, each would take ten times as many
//! bytes. Only rectangles, paths and our own texts are drawn here, so nothing needs to be escaped.

use std::fmt::Write;

/// Width of the strips, in coordinates of the drawing.
pub(crate) const WIDTH: u32 = 600;

/// Height of the band of phases.
const BAND: i32 = 10;

/// Height of a strip.
const STRIP: i32 = 70;

/// Distance between strips, which leaves space for the title of a strip.
const BETWEEN: i32 = 26;

/// A strip, which shows one quantity over time.
pub(crate) struct Strip<'a> {
    /// The name of the quantity, its unit and the upper end of its scale. None of these may come from
    /// untrusted text, because the title is not escaped.
    pub(crate) title: String,
    /// The values: one line, or a band between the minimum and the maximum of each part of the time.
    pub(crate) values: Values<'a>,
}

/// The values for each part of the time; all parts are equally long.
pub(crate) enum Values<'a> {
    /// One value for each part of the time.
    Line(&'a [f64]),
    /// Minimum and maximum of each part; parts without values are not drawn.
    Band(&'a [Option<[f64; 2]>]),
}

impl Values<'_> {
    /// Returns the largest value.
    pub(crate) fn most(&self) -> f64 {
        match self {
            Values::Line(values) => values.iter().copied().fold(0.0, f64::max),
            Values::Band(values) => values.iter().flatten().map(|[_, most]| *most).fold(0.0, f64::max),
        }
    }
}

/// The ends of phases, as shares of the run's length.
pub(crate) struct PhaseEnds {
    /// The ends of fill, of stabilize and of measure.
    pub(crate) ends: [f64; 3],
}

/// Returns the strips as the content of an SVG, and its height.
pub(crate) fn strips(phases: &PhaseEnds, strips: &[Strip], failed: &[u64]) -> (String, u32) {
    let mut svg = String::new();
    let place = |share: f64| (share.clamp(0.0, 1.0) * f64::from(WIDTH)).round() as i32;
    let [_, stabilize, measure] = phases.ends.map(place);
    let full = BAND + strips.len() as i32 * (STRIP + BETWEEN);
    // The window is drawn behind everything else.
    let width = (measure - stabilize).max(1);
    let _ = write!(svg, "<rect class=\"w\" x=\"{stabilize}\" y=\"0\" width=\"{width}\" height=\"{full}\"/>");
    band(&mut svg, phases.ends.map(place));
    for (at, strip) in strips.iter().enumerate() {
        let foot = BAND + (at as i32 + 1) * (STRIP + BETWEEN);
        let most = strip.values.most();
        let _ = write!(svg, "<text x=\"0\" y=\"{}\">{}</text>", foot - STRIP - 7, strip.title);
        let _ = write!(svg, "<path class=\"z\" d=\"M0 {foot}H{WIDTH}\"/>");
        if most > 0.0 {
            let class = if at % 2 == 0 { "a" } else { "b" };
            let _ = write!(svg, "<path class=\"{class}\" d=\"{}\"/>", path(&strip.values, most, foot));
        }
    }
    // Failures are marked at the top of the last strip, which shows response times, because failed requests
    // have no response time.
    let head = full - STRIP;
    let marks: String = failed
        .iter()
        .enumerate()
        .filter(|(_, failed)| **failed > 0)
        .map(|(at, _)| format!("M{} {}v9", column(at, failed.len()), head))
        .collect();
    if !marks.is_empty() {
        let _ = write!(svg, "<path class=\"f\" d=\"{marks}\"/>");
    }
    (svg, full as u32 + 2)
}

/// Draws the phases: fill and stabilize are light, measure is dark, and drain is light.
fn band(svg: &mut String, [fill, stabilize, measure]: [i32; 3]) {
    let width = WIDTH as i32;
    for (class, from, to) in [("p", 0, fill), ("q", fill, stabilize), ("m", stabilize, measure), ("p", measure, width)]
    {
        if to > from {
            let _ =
                write!(svg, "<rect class=\"{class}\" x=\"{from}\" y=\"0\" width=\"{}\" height=\"{BAND}\"/>", to - from);
        }
    }
}

/// Returns the horizontal position of the middle of part `at` of `of` parts.
fn column(at: usize, of: usize) -> i32 {
    ((at as f64 + 0.5) / of.max(1) as f64 * f64::from(WIDTH)).round() as i32
}

/// Returns a path through the parts from left to right; a band connects the minimum and the maximum of each
/// part. The path has relative steps, because they take a third less space than absolute positions.
fn path(values: &Values, most: f64, foot: i32) -> String {
    let y = |value: f64| foot - (value / most * f64::from(STRIP)).round() as i32;
    let (mut path, mut pen) = (String::new(), None);
    let mut to = |pen: &mut Option<(i32, i32)>, x: i32, y: i32| {
        let _ = match *pen {
            None => write!(path, "M{x} {y}"),
            Some((at, height)) if height == y => write!(path, "h{}", x - at),
            Some((at, height)) if at == x => write!(path, "v{}", y - height),
            // A minus sign also separates two numbers, so no blank is needed.
            Some((at, height)) if y < height => write!(path, "l{}{}", x - at, y - height),
            Some((at, height)) => write!(path, "l{} {}", x - at, y - height),
        };
        *pen = Some((x, y));
    };
    match values {
        Values::Line(values) => {
            for (at, value) in values.iter().enumerate() {
                to(&mut pen, column(at, values.len()), y(*value));
            }
        }
        Values::Band(values) => {
            for (at, ends) in values.iter().enumerate() {
                let Some([least, most]) = ends else {
                    pen = None;
                    continue;
                };
                let x = column(at, values.len());
                to(&mut pen, x, y(*least));
                // If the minimum and the maximum are equal, the line has no length but appears as a dot,
                // because lines have round ends.
                to(&mut pen, x, y(*most));
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_reach_the_head_and_nothing_is_drawn_where_nothing_is() {
        let band = [Some([1.0, 4.0]), None, Some([2.0, 2.0])];
        assert_eq!(path(&Values::Band(&band), 4.0, 100), "M100 82v-52M500 65h0");
        let line = Values::Line(&[0.0, 5.0]);
        assert_eq!((line.most(), path(&line, 5.0, 100)), (5.0, "M150 100l300-70".to_owned()));
        let one = Strip { title: "t".to_owned(), values: Values::Band(&band) };
        let (svg, height) = strips(&PhaseEnds { ends: [0.1, 0.2, 0.9] }, &[one], &[0, 3]);
        assert!(svg.contains("class=\"f\" d=\"M450 36v9\"") && height == 108, "{height} {svg}");
        assert!(svg.contains("class=\"m\" x=\"120\"") && svg.len() < 900, "{}", svg.len());
        let none = Strip { title: "t".to_owned(), values: Values::Band(&[None, None]) };
        assert!(!strips(&PhaseEnds { ends: [0.0, 0.0, 1.0] }, &[none], &[]).0.contains("class=\"a\""));
    }
}
