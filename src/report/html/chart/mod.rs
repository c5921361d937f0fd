//! Charts as SVG. plotters does the layout and the drawing. Values on hover, themes, and a name for
//! screen readers are added around it.

mod axis;
mod drawing;
mod forest;
mod heat;
mod lanes;
mod lines;
mod marker;
mod palette;
mod plane;
mod scatter;
mod stack;
mod strips;

pub(super) use axis::Axis;
pub(super) use drawing::Drawing;
pub(super) use forest::{Row, forest};
pub(super) use heat::{Heat, HeatCell, HeatRow, MOST_COLUMNS, STEPS, Sign, heat};
pub(super) use lanes::{Bar, Look, lanes};
pub(super) use lines::{Limit, Point, Series, Stroke, lines};
pub(super) use scatter::{Spot, scatter};
pub(super) use stack::{Fill, Stack, Stripe, stack};
pub(super) use strips::{PhaseEnds, Strip, Values, WIDTH as WIDE_STRIPS, strips};

/// Number of series that a chart distinguishes by colour and marker.
pub(super) const MOST_SERIES: usize = palette::SERIES.len();
