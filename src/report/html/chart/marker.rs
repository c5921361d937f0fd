//! Markers: a shape for each series, so that colour is never the only difference.

use plotters::coord::Shift;
use plotters::prelude::{Circle, DrawingArea, PathElement, Polygon, SVGBackend, ShapeStyle};
use plotters::style::{Color, RGBColor};

use super::drawing::Drawn;
use super::palette::GROUND;

/// The drawing area of charts.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Distance from a marker's centre to its border.
const REACH: i32 = 9;

/// Draws the marker of a series.
pub(super) fn draw(area: &Area, slot: usize, (x, y): (i32, i32), colour: RGBColor) -> Drawn<()> {
    let at = |points: &[(i32, i32)]| points.iter().map(|(dx, dy)| (x + dx, y + dy)).collect::<Vec<_>>();
    let fill = colour.filled();
    let r = REACH;
    match slot % 6 {
        0 => area.draw(&Circle::new((x, y), r, fill)),
        1 => area.draw(&Polygon::new(at(&[(0, -r - 2), (r + 1, r - 1), (-r - 1, r - 1)]), fill)),
        2 => area.draw(&Polygon::new(at(&[(-r + 1, -r + 1), (r - 1, -r + 1), (r - 1, r - 1), (-r + 1, r - 1)]), fill)),
        3 => area.draw(&Polygon::new(at(&[(0, -r - 3), (r + 3, 0), (0, r + 3), (-r - 3, 0)]), fill)),
        4 => area.draw(&Polygon::new(at(&[(0, r + 2), (r + 1, -r + 1), (-r - 1, -r + 1)]), fill)),
        _ => {
            let stroke = ShapeStyle::from(colour).stroke_width(5);
            area.draw(&PathElement::new(at(&[(-r, -r), (r, r)]), stroke))?;
            area.draw(&PathElement::new(at(&[(-r, r), (r, -r)]), stroke))
        }
    }
}

/// A square, which is filled if a difference was shown and hollow otherwise.
pub(super) fn square(area: &Area, (x, y): (i32, i32), colour: RGBColor, filled: bool) -> Drawn<()> {
    let corners = |r: i32| vec![(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)];
    area.draw(&Polygon::new(corners(REACH), colour.filled()))?;
    if !filled {
        area.draw(&Polygon::new(corners(REACH - 4), GROUND.filled()))?;
    }
    Ok(())
}
