//! A chart of stacked bars, with one bar per row and one stripe per part. The number of a part is below its
//! stripe and in the legend, so that colour is never the only difference.

use plotters::prelude::{Color, PathElement, Rectangle, ShapeStyle, Text};
use plotters::style::RGBColor;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::{Axis, Scale};
use super::drawing::{Drawing, Drawn, Mark, inside};
use super::marker::Area;
use super::palette::{AXIS, GRID, GROUND, HEAT, INK, series};
use super::plane::{Plane, WIDTH, ground, label, text, text_of};

/// The look of a stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    /// In the colour of a series.
    Series(usize),
    /// In a colour step of a heat map, with an outline.
    Step(usize),
    /// Pale, with an outline: the time is known but not assigned to a part.
    Pale,
    /// Hollow: the time is unknown.
    Hollow,
}

/// One part of a bar.
#[derive(Debug, Clone)]
pub(crate) struct Stripe {
    /// The number of the part in the legend, from 1.
    pub(crate) number: usize,
    /// The length of the stripe, as a value on the axis; stripes of length 0 or less are not drawn.
    pub(crate) length: f64,
    /// The look of the stripe.
    pub(crate) fill: Fill,
    /// The text that is shown on hover.
    pub(crate) text: String,
}

/// A stacked bar.
#[derive(Debug, Clone)]
pub(crate) struct Stack {
    /// The label above the bar.
    pub(crate) name: String,
    /// The stripes of the bar, from the left.
    pub(crate) stripes: Vec<Stripe>,
}

/// Height of a row, which consists of its name, its bar, and the numbers of its stripes.
const ROW: u32 = 132;

/// Height of the axis below the rows.
const BELOW: u32 = 112;

/// Height of a line of the legend.
const LINE: u32 = 42;

/// Maximum number of characters of a row's name.
const LONGEST_NAME: usize = 48;

/// Minimum width at which a stripe gets its number.
const NARROW: i32 = 26;

/// Font size of the numbers below stripes.
const SMALL: f64 = 24.0;

impl Fill {
    fn colour(self) -> RGBColor {
        match self {
            Fill::Series(slot) => series(slot),
            Fill::Step(step) => HEAT[step.min(HEAT.len() - 1)],
            Fill::Pale => GRID,
            Fill::Hollow => GROUND,
        }
    }

    fn draw(self, area: &Area, (left, top): (i32, i32), (right, bottom): (i32, i32)) -> Drawn<()> {
        area.draw(&Rectangle::new([(left, top), (right, bottom)], self.colour().filled()))?;
        if matches!(self, Fill::Series(_)) {
            return Ok(());
        }
        let (left, right) = (left + 1, (right - 1).max(left + 1));
        let outline = vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        area.draw(&PathElement::new(outline, ShapeStyle::from(AXIS).stroke_width(3)))
    }
}

/// Draws bars from top to bottom. `legend` contains the number, the look and the name of each part, in the
/// order of the stripes.
pub(crate) fn stack(x: &Axis, rows: &[Stack], legend: &[(usize, Fill, String)]) -> Drawn<Drawing> {
    let mut svg = String::new();
    let mut marks = Vec::new();
    let count = u32::try_from(rows.len()).unwrap_or(0);
    let plane_height = count * ROW + BELOW + 18;
    let full = plane_height + u32::try_from(legend.len()).unwrap_or(0) * LINE + 12;
    let y = Axis { title: String::new(), scale: Scale::Plain, ends: [0.0, f64::from(count)], ticks: Vec::new() };
    {
        let area = ground(&mut svg, full);
        let (upper, _) = area.split_vertically(plane_height);
        let plane = Plane::new(&upper, (x, &y), 70)?;
        for (at, row) in rows.iter().enumerate() {
            let foot_of_row = f64::from(count) - at as f64;
            let Some(head) = plane.at(x.ends[0], foot_of_row - 0.22) else { continue };
            label(&area, (head.0 + 8, head.1), &row.name, LONGEST_NAME)?;
            let mut from = 0.0;
            for stripe in row.stripes.iter().filter(|stripe| stripe.length > 0.0) {
                let corners =
                    plane.at(from, foot_of_row - 0.42).zip(plane.at(from + stripe.length, foot_of_row - 0.74));
                from += stripe.length;
                let Some((left, right)) = corners else { continue };
                stripe.fill.draw(&area, left, (right.0.max(left.0 + 1), right.1))?;
                let middle = (left.0 + right.0) / 2;
                if right.0 - left.0 >= NARROW {
                    let style = text_of(SMALL, &INK).pos(Pos::new(HPos::Center, VPos::Center));
                    area.draw(&Text::new(stripe.number.to_string(), (middle, right.1 + 17), style))?;
                }
                marks.push(Mark { x: middle, y: (left.1 + right.1) / 2, text: stripe.text.clone() });
            }
        }
        for (line, (number, fill, name)) in legend.iter().enumerate() {
            let foot = (plane_height + LINE * u32::try_from(line).unwrap_or(0) + LINE - 6) as i32;
            fill.draw(&area, (24, foot - 30), (72, foot))?;
            let style = text(&INK).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(format!("{number} {name}"), (88, foot - 14), style))?;
        }
        area.present()?;
    }
    Ok(Drawing { width: WIDTH, height: full, inside: inside(&svg), marks })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripe(number: usize, length: f64, fill: Fill) -> Stripe {
        Stripe { number, length, fill, text: format!("part {number}") }
    }

    #[test]
    fn a_bar_is_as_long_as_its_parts() {
        let parts = vec![stripe(1, 30.0, Fill::Series(0)), stripe(2, 0.0, Fill::Pale), stripe(3, 60.0, Fill::Hollow)];
        let legend = [(1, Fill::Series(0), "a<b".to_owned()), (3, Fill::Hollow, "unknown".to_owned())];
        let drawn =
            stack(&Axis::from_zero("ms", 90.0), &[Stack { name: "qps 4".into(), stripes: parts }], &legend).unwrap();
        let texts: Vec<&str> = drawn.marks.iter().map(|mark| mark.text.as_str()).collect();
        assert_eq!(texts, ["part 1", "part 3"], "an empty part is not drawn");
        let bars = |colour: &str| {
            let of = drawn.inside.lines().filter(|line| line.starts_with("<rect") && line.contains(colour));
            let width = |line: &str| line.split("width=\"").nth(1)?.split('"').next()?.parse::<f64>().ok();
            of.filter_map(width).collect::<Vec<f64>>()
        };
        let filled = bars("#0072B2");
        let hollow = bars("#FFFFFF");
        let longest = hollow.iter().copied().fold(0.0, f64::max);
        assert!((longest / filled[0] - 2.0).abs() < 0.03, "{filled:?} {hollow:?}");
        assert!(drawn.inside.contains("1 a&lt;b") && drawn.inside.contains("3 unknown"), "{}", drawn.inside);
    }
}
