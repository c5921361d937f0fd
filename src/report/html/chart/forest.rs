//! A forest plot, which shows a value with its interval in each row, and a vertical reference line at "no
//! change" or at a bound.

use super::axis::Axis;
use super::drawing::{Drawing, Drawn, Mark, inside};
use super::marker::square;
use super::palette::series;
use super::plane::{Plane, WIDTH, ground, label};

/// A row of a forest plot.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The name of the row.
    pub(crate) name: String,
    /// The change, or another value such as a price.
    pub(crate) value: f64,
    /// The ends of the value's interval.
    pub(crate) ends: [f64; 2],
    /// Whether the square is filled. It is filled if a difference was shown, if the row is the cheapest, or
    /// if every error is below the bound, depending on the figure.
    pub(crate) shown: bool,
    /// The text that is shown on hover.
    pub(crate) text: String,
}

/// Height of a row, which consists of its name and, below it, its interval.
const ROW: u32 = 74;

/// Height of the axis below the rows.
const BELOW: u32 = 112;

/// Maximum number of characters of a row's name.
const LONGEST_NAME: usize = 58;

/// Draws rows from top to bottom. `none` is the value of the vertical reference line: no change, or a bound.
pub(crate) fn forest(x: &Axis, rows: &[Row], none: Option<f64>) -> Drawn<Drawing> {
    let mut svg = String::new();
    let mut marks = Vec::new();
    let count = u32::try_from(rows.len()).unwrap_or(0);
    let full = count * ROW + BELOW + 18;
    let y = Axis {
        title: String::new(),
        scale: super::axis::Scale::Plain,
        ends: [0.0, f64::from(count)],
        ticks: Vec::new(),
    };
    {
        let area = ground(&mut svg, full);
        let plane = Plane::new(&area, (x, &y), 12)?;
        if let Some(none) = none {
            plane.limit_down(none)?;
        }
        for (at, row) in rows.iter().enumerate() {
            let top = rows.len() as f64 - at as f64;
            let Some(place) = plane.at(row.value, top - 0.7) else { continue };
            let end = |value: f64| {
                let inside = value.clamp(unplace(x, x.ends[0]), unplace(x, x.ends[1]));
                plane.at(inside, top - 0.7).unwrap_or(place)
            };
            let [low, high] = row.ends.map(end);
            plane.line(vec![low, high], series(0), 4)?;
            for end in [low, high] {
                plane.line(vec![(end.0, end.1 - 9), (end.0, end.1 + 9)], series(0), 4)?;
            }
            square(&area, place, series(0), row.shown)?;
            let left = plane.at(unplace(x, x.ends[0]), top - 0.28).unwrap_or(place);
            label(&area, (left.0 + 8, left.1), &row.name, LONGEST_NAME)?;
            marks.push(Mark { x: place.0, y: place.1, text: row.text.clone() });
        }
        area.present()?;
    }
    Ok(Drawing { width: WIDTH, height: full, inside: inside(&svg), marks })
}

/// Returns the value at a position, moved slightly towards the middle so that it lies on the axis.
fn unplace(axis: &Axis, place: f64) -> f64 {
    let middle = (axis.ends[0] + axis.ends[1]) / 2.0;
    let place = middle + (place - middle) * (1.0 - 1e-9);
    if axis.scale == super::axis::Scale::Log { place.exp() } else { place }
}
