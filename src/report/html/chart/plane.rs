//! The plane of a chart, which plotters draws: axes and grid, with the legend below.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::{
    Cartesian2d, ChartBuilder, ChartContext, Color, IntoDrawingArea, IntoFont, PathElement, Rectangle, SVGBackend,
    ShapeStyle, Text, TextStyle,
};
use plotters::style::RGBColor;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
use super::drawing::Drawn;
use super::marker::{self, Area};
use super::palette::{AXIS, GRID, GROUND, INK, LIMIT};

/// Width of a chart in its coordinates; a page shows it at about half this size.
pub(super) const WIDTH: u32 = 880;

/// Height of the part of a chart that contains the plane and its axes.
pub(super) const HEIGHT: u32 = 540;

/// Height of a line of the legend.
const LINE: u32 = 44;

/// The divisor that plotters applies to a font size before it writes the size to the SVG.
const TO_SVG: f64 = 1.24;

/// Font size of texts, in the coordinates of the chart.
const TEXT: f64 = 29.0;

/// Maximum number of characters of a name in a legend.
const LONGEST_NAME: usize = 52;

/// An axis in the form that plotters expects: its ends and the positions of its ticks.
struct Places {
    ends: [f64; 2],
    ticks: Vec<f64>,
}

impl Places {
    fn of(axis: &Axis) -> Places {
        Places { ends: axis.ends, ticks: axis.ticks.iter().map(|(place, _)| *place).collect() }
    }
}

impl Ranged for Places {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let [from, to] = self.ends;
        let share = if to > from { (value - from) / (to - from) } else { 0.5 };
        limit.0 + (f64::from(limit.1 - limit.0) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.ends[0]..self.ends[1]
    }
}

/// The plane of a chart, on which series are drawn.
pub(super) struct Plane<'a, 'b> {
    chart: ChartContext<'a, SVGBackend<'b>, Cartesian2d<Places, Places>>,
    x: &'a Axis,
    y: &'a Axis,
    area: &'a Area<'b>,
}

/// One entry of a legend.
pub(super) struct Entry<'a> {
    /// The sign of the entry.
    pub(super) sign: Sign,
    /// The name of the entry.
    pub(super) name: &'a str,
}

/// The sign of an entry of a legend.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sign {
    /// The colour and the marker of a series.
    Series(usize),
    /// The dashed line of an objective.
    Limit,
}

/// Margin to the right of a plane, in the coordinates of the chart.
const RIGHT: u32 = 26;

/// Returns the margin to the left of a plane, for the title and the tick labels of the vertical axis. It
/// depends on the longest label.
pub(super) fn left_of(y: &Axis) -> u32 {
    const DIGIT: u32 = 17;
    const TITLE: u32 = 62;
    let longest = y.ticks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
    (TITLE + DIGIT * u32::try_from(longest).unwrap_or(0)).max(124)
}

/// Creates the drawing area of a chart of this height.
pub(super) fn ground(svg: &mut String, height: u32) -> Area<'_> {
    SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area()
}

/// Returns the height of a chart whose plane has the height `plane` and whose legend has this many entries.
pub(super) fn height(plane: u32, entries: usize) -> u32 {
    let lines = u32::try_from(entries).unwrap_or(0);
    plane + if lines > 0 { lines * LINE + 12 } else { 0 }
}

/// Returns the style of texts.
pub(super) fn text(colour: &'static RGBColor) -> TextStyle<'static> {
    text_of(TEXT, colour)
}

/// Returns the style of texts in another size.
pub(super) fn text_of(size: f64, colour: &'static RGBColor) -> TextStyle<'static> {
    TextStyle::from(("sans-serif", size * TO_SVG).into_font()).color(colour)
}

impl<'a, 'b> Plane<'a, 'b> {
    /// Draws axes and grid on the upper part of `area`, with a left margin of `left` for the labels of `y`.
    pub(super) fn new(area: &'a Area<'b>, axes: (&'a Axis, &'a Axis), left: u32) -> Drawn<Plane<'a, 'b>> {
        Plane::beside(area, axes, left, &[])
    }

    /// Like [`Plane::new`], with space on the right for `words`, which label marks on the scale of `y`.
    pub(super) fn beside(
        area: &'a Area<'b>,
        (x, y): (&'a Axis, &'a Axis),
        left: u32,
        words: &[&str],
    ) -> Drawn<Plane<'a, 'b>> {
        let longest = words.iter().map(|word| word.chars().count()).max().unwrap_or(0);
        let right = RIGHT + (longest as f64 * CHARACTER) as u32;
        let mut chart = ChartBuilder::on(area)
            .margin_top(18)
            .margin_right(right)
            .margin_left(6)
            .x_label_area_size(94)
            .y_label_area_size(left)
            .build_cartesian_2d(Places::of(x), Places::of(y))?;
        chart
            .configure_mesh()
            .light_line_style(GRID.mix(0.0))
            .bold_line_style(ShapeStyle::from(GRID).stroke_width(2))
            .axis_style(ShapeStyle::from(AXIS).stroke_width(2))
            .label_style(text(&INK))
            .axis_desc_style(text(&INK))
            .x_desc(&x.title)
            .y_desc(&y.title)
            .x_label_formatter(&|place| x.tick(*place))
            .y_label_formatter(&|place| y.tick(*place))
            .draw()?;
        Ok(Plane { chart, x, y, area })
    }

    /// Returns the position of a pair of values, in the coordinates of the drawing; `None` if it is outside
    /// the plane.
    pub(super) fn at(&self, x: f64, y: f64) -> Option<(i32, i32)> {
        let is_there = self.x.holds(x) && self.y.holds(y);
        is_there.then(|| self.chart.backend_coord(&(self.x.scale.place(x), self.y.scale.place(y))))
    }

    /// Returns the point on the border of the plane that is directly above or below a position, in the
    /// direction of the value `towards`, which lies outside the plane.
    pub(super) fn border(&self, (x, y): (i32, i32), towards: f64) -> (i32, i32) {
        let place = self.y.scale.place(towards);
        let end = if place > self.y.ends[1] { self.y.ends[1] } else { self.y.ends[0] };
        let (_, border) = self.chart.backend_coord(&(self.x.ends[0], end));
        if place.is_nan() { (x, y) } else { (x, border) }
    }

    /// Draws a line through positions.
    pub(super) fn line(&self, points: Vec<(i32, i32)>, colour: RGBColor, width: u32) -> Drawn<()> {
        self.area.draw(&PathElement::new(points, ShapeStyle::from(colour).stroke_width(width)))
    }

    /// Draws the marker of a series.
    pub(super) fn marker(&self, slot: usize, at: (i32, i32), colour: RGBColor) -> Drawn<()> {
        marker::draw(self.area, slot, at, colour)
    }

    /// Draws a dashed horizontal line at a value of `y`. Without `word`, the line is the objective, which the
    /// legend names. With `word`, the line is a mark on the scale, and `word` is drawn outside the plane,
    /// where no point can cover it.
    pub(super) fn limit_at_height(&self, y: f64, word: Option<&str>) -> Drawn<()> {
        let (from, to) = (self.x.ends[0], self.x.ends[1]);
        let place = self.y.scale.place(y);
        let (left, right) = (self.chart.backend_coord(&(from, place)), self.chart.backend_coord(&(to, place)));
        let Some(word) = word else { return self.dashes(left, right, LIMIT) };
        self.dashes(left, right, AXIS)?;
        let style = text(&INK).pos(Pos::new(HPos::Left, VPos::Center));
        self.area.draw(&Text::new(word.to_owned(), (right.0 + 10, right.1), style))
    }

    /// Draws a dashed vertical line at a value of `x`.
    pub(super) fn limit_down(&self, x: f64) -> Drawn<()> {
        let place = self.x.scale.place(x);
        let (from, to) = (self.y.ends[0], self.y.ends[1]);
        self.dashes(self.chart.backend_coord(&(place, from)), self.chart.backend_coord(&(place, to)), LIMIT)
    }

    fn dashes(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Drawn<()> {
        dashes(self.area, from, to, colour)
    }
}

/// Draws a dashed line.
fn dashes(area: &Area, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Drawn<()> {
    const DASH: f64 = 14.0;
    let length = f64::from((to.0 - from.0).abs().max((to.1 - from.1).abs()));
    let at = |way: f64| {
        let share = if length > 0.0 { (way / length).min(1.0) } else { 0.0 };
        let between = |a: i32, b: i32| a + (f64::from(b - a) * share).round() as i32;
        (between(from.0, to.0), between(from.1, to.1))
    };
    let dashes = (length / (2.0 * DASH)).ceil() as u32;
    for dash in 0..dashes {
        let start = f64::from(dash) * 2.0 * DASH;
        area.draw(&PathElement::new(vec![at(start), at(start + DASH)], ShapeStyle::from(colour).stroke_width(3)))?;
    }
    Ok(())
}

/// Draws a legend below the plane.
pub(super) fn legend(area: &Area, top: u32, entries: &[Entry]) -> Drawn<()> {
    for (line, entry) in entries.iter().enumerate() {
        let y = (top + LINE * u32::try_from(line).unwrap_or(0) + LINE / 2) as i32;
        match entry.sign {
            Sign::Limit => dashes(area, (24, y), (72, y), LIMIT)?,
            Sign::Series(slot) => {
                let colour = super::palette::series(slot);
                area.draw(&PathElement::new(vec![(24, y), (72, y)], ShapeStyle::from(colour).stroke_width(4)))?;
                marker::draw(area, slot, (48, y), colour)?;
            }
        }
        label(area, (88, y), entry.name, LONGEST_NAME)?;
    }
    Ok(())
}

/// Approximate width of a character, in the coordinates of the chart.
const CHARACTER: f64 = 0.58 * TEXT;

/// Draws an untrusted text next to a point. The text is truncated to `most` characters and has a background
/// that hides lines behind it.
pub(super) fn label(area: &Area, at: (i32, i32), name: &str, most: usize) -> Drawn<()> {
    let name = crate::report::format::cut(name, most);
    let width = (crate::report::format::width(&name) as f64 * CHARACTER) as i32;
    let half = (TEXT * 0.6) as i32;
    area.draw(&Rectangle::new([(at.0 - 4, at.1 - half), (at.0 + width, at.1 + half)], GROUND.filled()))?;
    let style = text(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(name, at, style))
}
