//! A chart of lines: values with intervals over a load, or a spread.

use super::axis::Axis;
use super::drawing::{Drawing, Drawn, Mark, inside};
use super::palette;
use super::plane::{Entry, HEIGHT, Plane, WIDTH, ground, height, left_of, legend};

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// What the legend calls it; none where another line of its colour says it.
    pub(crate) name: Option<String>,
    /// Its place among the series: colour and marker.
    pub(crate) slot: usize,
    /// Its points, in order. Between a known one and an unknown one there is no line.
    pub(crate) points: Vec<Point>,
    /// Whether each point has its marker; a spread has one at its end alone.
    pub(crate) marked: bool,
}

/// One point.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    /// Along the axis.
    pub(crate) x: f64,
    /// Its value; none where it is not known: then nothing is drawn.
    pub(crate) y: Option<f64>,
    /// Its interval.
    pub(crate) ends: Option<[f64; 2]>,
    /// What it says on hover.
    pub(crate) text: String,
}

/// A limit that is drawn across.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    /// Where.
    pub(crate) at: f64,
    /// What it is.
    pub(crate) name: String,
    /// Whether it is one of the objective; else it is a mark on the scale of the metric.
    pub(crate) is_objective: bool,
}

/// Draws lines.
pub(crate) fn lines((x, y): (&Axis, &Axis), series: &[Series], limits: &[Limit]) -> Drawn<Drawing> {
    let mut svg = String::new();
    let mut marks = Vec::new();
    let entries = |one: &'_ Series| one.name.clone().map(|name| (one.slot, name));
    let named: Vec<(usize, String)> = series.iter().filter_map(entries).collect();
    let full = height(HEIGHT, named.len());
    {
        let area = ground(&mut svg, full);
        let (upper, _) = area.split_vertically(HEIGHT);
        let plane = Plane::new(&upper, (x, y), left_of(y))?;
        for limit in limits.iter().filter(|limit| y.holds(limit.at)) {
            plane.limit_at_height(limit.at, &limit.name, limit.is_objective)?;
        }
        for one in series {
            draw(&plane, one, &mut marks)?;
        }
        let entries: Vec<Entry> = named.iter().map(|(slot, name)| Entry { slot: *slot, name }).collect();
        legend(&area, HEIGHT, &entries)?;
        area.present()?;
    }
    Ok(Drawing { width: WIDTH, height: full, inside: inside(&svg), marks })
}

fn draw(plane: &Plane, series: &Series, marks: &mut Vec<Mark>) -> Drawn<()> {
    let colour = palette::series(series.slot);
    let places: Vec<Option<(i32, i32)>> = series.points.iter().map(|point| plane.at(point.x, point.y?)).collect();
    for known in places.split(Option::is_none) {
        let known: Vec<(i32, i32)> = known.iter().flatten().copied().collect();
        if known.len() > 1 {
            plane.line(known, colour, 4)?;
        }
    }
    let last = places.iter().rposition(Option::is_some);
    for (at, (point, place)) in series.points.iter().zip(&places).enumerate() {
        let Some(place) = *place else { continue };
        if let Some([low, high]) = point.ends {
            // What ends off the plane is cut at its border, and has no bar there.
            let end = |value: f64| match plane.at(point.x, value) {
                Some((x, y)) => vec![(x - 9, y), (x + 9, y), (x, y)],
                None => vec![plane.border(place, value)],
            };
            let up = end(high).into_iter().rev();
            plane.line(end(low).into_iter().chain(up).collect(), colour, 3)?;
        }
        if series.marked || Some(at) == last {
            plane.marker(series.slot, place, colour)?;
        }
        if !point.text.is_empty() {
            marks.push(Mark { x: place.0, y: place.1, text: point.text.clone() });
        }
    }
    Ok(())
}
