//! A chart of lanes, which shows activities over time. Bars of each kind of activity have a different height
//! or shape, so that colour is never the only difference.

use plotters::prelude::{Color, PathElement, Rectangle, ShapeStyle, Text};
use plotters::style::RGBColor;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
use super::drawing::{Drawing, Drawn, Mark, inside};
use super::marker::Area;
use super::palette::{AXIS, GROUND, INK, LIMIT, series};
use super::plane::{Plane, WIDTH, ground, label, text};

/// The look of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Filled, as high as the lane.
    Whole,
    /// Filled, two thirds as high as the lane.
    Lower,
    /// Hollow, as high as the lane.
    Hollow,
    /// A low bar at the bottom of the lane.
    Foot,
    /// A low hollow bar at the bottom of the lane.
    HollowFoot,
    /// A thin bar in the middle of the lane.
    Thin,
}

/// A bar in a lane.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    /// The lane, from the top.
    pub(crate) lane: usize,
    /// The start of the bar, as a position on the axis.
    pub(crate) from: f64,
    /// The end of the bar, as a position on the axis.
    pub(crate) to: f64,
    /// The look of the bar.
    pub(crate) look: Look,
    /// The text that is shown on hover.
    pub(crate) text: String,
}

/// Height of a lane, which consists of its name and its bars.
const LANE: u32 = 104;

/// Height of the axis below the lanes.
const BELOW: u32 = 112;

/// Height of a line of the legend.
const LINE: u32 = 42;

/// Maximum number of characters of a lane's name.
const LONGEST_NAME: usize = 54;

impl Look {
    fn colour(self) -> RGBColor {
        match self {
            Look::Whole => series(0),
            Look::Lower => series(1),
            Look::Hollow | Look::Foot => LIMIT,
            Look::HollowFoot => series(5),
            Look::Thin => series(2),
        }
    }

    /// The lower and upper edge of a bar, as shares of the height of the lane's bars.
    fn reach(self) -> [f64; 2] {
        match self {
            Look::Whole | Look::Hollow => [0.0, 1.0],
            Look::Lower => [0.0, 0.66],
            Look::Foot | Look::HollowFoot => [0.0, 0.33],
            Look::Thin => [0.42, 0.58],
        }
    }

    /// Draws a bar between two corners.
    fn draw(self, area: &Area, (left, top): (i32, i32), (right, bottom): (i32, i32)) -> Drawn<()> {
        let corners = [(left, top), (right.max(left + 2), bottom)];
        match self {
            Look::Hollow | Look::HollowFoot => {
                area.draw(&Rectangle::new(corners, GROUND.filled()))?;
                let (left, right) = (corners[0].0 + 1, corners[1].0 - 1);
                let outline = vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
                area.draw(&PathElement::new(outline, ShapeStyle::from(self.colour()).stroke_width(4)))
            }
            _ => area.draw(&Rectangle::new(corners, self.colour().filled())),
        }
    }
}

/// Draws lanes from top to bottom. `breaks` contains the positions at which time was omitted, and `legend`
/// explains what each look of a bar means.
pub(crate) fn lanes(
    x: &Axis,
    names: &[String],
    bars: &[Bar],
    breaks: &[f64],
    legend: &[(Look, &str)],
) -> Drawn<Drawing> {
    let mut svg = String::new();
    let mut marks = Vec::new();
    let count = u32::try_from(names.len()).unwrap_or(0);
    let plane_height = count * LANE + BELOW + 18;
    let full = plane_height + u32::try_from(legend.len()).unwrap_or(0) * LINE + 12;
    let y = Axis {
        title: String::new(),
        scale: super::axis::Scale::Plain,
        ends: [0.0, f64::from(count)],
        ticks: Vec::new(),
    };
    {
        let area = ground(&mut svg, full);
        let (upper, _) = area.split_vertically(plane_height);
        let plane = Plane::new(&upper, (x, &y), 70)?;
        let top_of = |lane: usize| names.len() as f64 - lane as f64;
        for at in breaks {
            let (Some(top), Some(foot)) = (plane.at(*at, f64::from(count)), plane.at(*at, 0.0)) else { continue };
            for aside in [-6, 6] {
                plane.line(vec![(top.0 + aside, top.1), (foot.0 + aside, foot.1)], AXIS, 2)?;
            }
        }
        for (lane, name) in names.iter().enumerate() {
            let Some(left) = plane.at(x.ends[0], top_of(lane) - 0.2) else { continue };
            label(&area, (left.0 + 8, left.1), name, LONGEST_NAME)?;
        }
        for bar in bars {
            let height = |share: f64| top_of(bar.lane) - 0.92 + share * 0.5;
            let [foot, head] = bar.look.reach();
            let from = plane.at(bar.from, height(head));
            let (Some(from), Some(to)) = (from, plane.at(bar.to, height(foot))) else { continue };
            bar.look.draw(&area, from, to)?;
            if !bar.text.is_empty() {
                marks.push(Mark { x: (from.0 + to.0) / 2, y: (from.1 + to.1) / 2, text: bar.text.clone() });
            }
        }
        for (line, (look, name)) in legend.iter().enumerate() {
            let foot = (plane_height + LINE * u32::try_from(line).unwrap_or(0) + LINE - 6) as i32;
            let [low, high] = look.reach().map(|share| foot - (share * 30.0) as i32);
            look.draw(&area, (24, high), (72, low))?;
            let style = text(&INK).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new((*name).to_owned(), (88, foot - 14), style))?;
        }
        area.present()?;
    }
    Ok(Drawing { width: WIDTH, height: full, inside: inside(&svg), marks })
}
