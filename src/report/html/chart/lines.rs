//! A line chart, which plots values with intervals against the load, or shows a distribution.

use super::axis::Axis;
use super::drawing::{Drawing, Drawn, Mark, inside};
use super::palette;
use super::plane::{Entry, HEIGHT, Plane, Sign, WIDTH, ground, height, left_of, legend};

/// A line of a chart, with its points.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// The name in the legend; `None` if the legend already names another line of the same colour.
    pub(crate) name: Option<String>,
    /// The index of the series, which determines its colour and marker.
    pub(crate) slot: usize,
    /// The points of the line, in order. The line has a gap at each point without a value.
    pub(crate) points: Vec<Point>,
    /// The style of the line.
    pub(crate) stroke: Stroke,
}

/// The style of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stroke {
    /// With a marker at each point.
    Points,
    /// Thick, with about this many markers, the last of which is at the end of the line.
    Marked(usize),
    /// Thin and without markers, for a part of the data that the thick line of the same colour summarizes.
    Thin,
}

/// A point of a line.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    /// Position along the axis.
    pub(crate) x: f64,
    /// The value; `None` if it is unknown, in which case no point is drawn.
    pub(crate) y: Option<f64>,
    /// The ends of the value's interval, if known.
    pub(crate) ends: Option<[f64; 2]>,
    /// The text that is shown on hover.
    pub(crate) text: String,
}

/// A limit, drawn across the chart.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    /// The value of the limit.
    pub(crate) at: f64,
    /// The name of the limit.
    pub(crate) name: String,
    /// Whether the limit belongs to the objective; if not, it is a reference mark on the scale of the metric.
    pub(crate) is_objective: bool,
}

impl Limit {
    /// The label next to a reference mark; `None` for an objective, which the legend names instead.
    fn word(&self) -> Option<&str> {
        (!self.is_objective).then_some(self.name.as_str())
    }
}

/// Draws a line chart.
pub(crate) fn lines((x, y): (&Axis, &Axis), series: &[Series], limits: &[Limit]) -> Drawn<Drawing> {
    let mut svg = String::new();
    let mut marks = Vec::new();
    let limits: Vec<&Limit> = limits.iter().filter(|limit| y.holds(limit.at)).collect();
    let named =
        series.iter().filter_map(|one| Some(Entry { sign: Sign::Series(one.slot), name: one.name.as_deref()? }));
    let objectives = limits.iter().filter(|limit| limit.is_objective);
    let entries: Vec<Entry> =
        named.chain(objectives.map(|limit| Entry { sign: Sign::Limit, name: &limit.name })).collect();
    let words: Vec<&str> = limits.iter().filter_map(|limit| limit.word()).collect();
    let full = height(HEIGHT, entries.len());
    {
        let area = ground(&mut svg, full);
        let (upper, _) = area.split_vertically(HEIGHT);
        let plane = Plane::beside(&upper, (x, y), left_of(y), &words)?;
        for limit in &limits {
            plane.limit_at_height(limit.at, limit.word())?;
        }
        for one in series {
            draw(&plane, one, &mut marks)?;
        }
        legend(&area, HEIGHT, &entries)?;
        area.present()?;
    }
    Ok(Drawing { width: WIDTH, height: full, inside: inside(&svg), marks })
}

/// Removes points that lie on a horizontal or vertical line between their neighbours, as most points of a
/// distribution do.
fn without_idle(points: impl Iterator<Item = (i32, i32)>) -> Vec<(i32, i32)> {
    let mut kept: Vec<(i32, i32)> = Vec::new();
    for point in points {
        if let [.., a, b] = kept[..] {
            let is_level = a.1 == b.1 && b.1 == point.1 && (a.0..=point.0).contains(&b.0);
            let is_upright = a.0 == b.0 && b.0 == point.0 && (point.1..=a.1).contains(&b.1);
            if is_level || is_upright {
                kept.pop();
            }
        }
        if kept.last() != Some(&point) {
            kept.push(point);
        }
    }
    kept
}

fn draw(plane: &Plane, series: &Series, marks: &mut Vec<Mark>) -> Drawn<()> {
    let colour = palette::series(series.slot);
    let width = match series.stroke {
        Stroke::Points => 4,
        Stroke::Marked(_) => 5,
        Stroke::Thin => 2,
    };
    let places: Vec<Option<(i32, i32)>> = series.points.iter().map(|point| plane.at(point.x, point.y?)).collect();
    for known in places.split(Option::is_none) {
        let known = without_idle(known.iter().flatten().copied());
        if known.len() > 1 {
            plane.line(known, colour, width)?;
        }
    }
    let last = places.iter().rposition(Option::is_some).unwrap_or(0);
    let has_marker = |at: usize| match series.stroke {
        Stroke::Points => true,
        // Markers are spaced by number of points instead of distance, because a distribution has many points
        // where the axis is compressed.
        Stroke::Marked(count) => at <= last && (last - at).is_multiple_of((last / count.max(1)).max(1)),
        Stroke::Thin => false,
    };
    for (at, (point, place)) in series.points.iter().zip(&places).enumerate() {
        let Some(place) = *place else { continue };
        if let Some([low, high]) = point.ends {
            // An interval that ends outside the plane is truncated at the border, without an end bar.
            let end = |value: f64| match plane.at(point.x, value) {
                Some((x, y)) => vec![(x - 9, y), (x + 9, y), (x, y)],
                None => vec![plane.border(place, value)],
            };
            let up = end(high).into_iter().rev();
            plane.line(end(low).into_iter().chain(up).collect(), colour, 3)?;
        }
        if has_marker(at) {
            plane.marker(series.slot, place, colour)?;
        }
        if !point.text.is_empty() {
            marks.push(Mark { x: place.0, y: place.1, text: point.text.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_needs_its_corners_alone() {
        let points = [(0, 9), (4, 9), (4, 8), (4, 7), (4, 7), (6, 7), (8, 7), (8, 9)];
        assert_eq!(without_idle(points.into_iter()), [(0, 9), (4, 9), (4, 7), (8, 7), (8, 9)]);
        // A line that reverses its direction keeps its turning point.
        assert_eq!(without_idle([(0, 0), (5, 0), (2, 0)].into_iter()), [(0, 0), (5, 0), (2, 0)]);
        assert_eq!(without_idle([(3, 3), (3, 3)].into_iter()), [(3, 3)]);
    }

    #[test]
    fn repeats_are_thin_and_their_load_is_thick_with_markers() {
        let axis = Axis::from_zero("", 10.0);
        let points = || -> Vec<Point> {
            let at = |n: u32| Point { x: f64::from(n), y: Some(f64::from(n)), ends: None, text: String::new() };
            (1..=9).map(at).collect()
        };
        let thin = Series { name: None, slot: 0, points: points(), stroke: Stroke::Thin };
        let thick = Series { name: Some("both".into()), slot: 0, points: points(), stroke: Stroke::Marked(4) };
        let drawn = lines((&axis, &axis), &[thin.clone(), thin], &[]).expect("a chart").inside;
        assert_eq!((drawn.matches("<circle").count(), drawn.matches("stroke-width=\"5\"").count()), (0, 0), "{drawn}");
        let drawn = lines((&axis, &axis), &[thick], &[]).expect("a chart").inside;
        // Five markers, at every second point back from the last, and one in the legend.
        assert_eq!((drawn.matches("<circle").count(), drawn.matches("stroke-width=\"5\"").count()), (6, 1), "{drawn}");
    }
}
