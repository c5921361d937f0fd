//! A scatter chart that plots two figures of each configuration against each other, with the Pareto front:
//! the configurations for which no other configuration is at least as good in both figures and better in one
//! of them.

use plotters::prelude::{Circle, ShapeStyle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
use super::drawing::{Drawing, Drawn, Mark, inside};
use super::palette::{self, AXIS, INK};
use super::plane::{Entry, HEIGHT, Plane, Sign, WIDTH, ground, height, left_of, legend, text};

/// A point of a scatter chart.
#[derive(Debug, Clone)]
pub(crate) struct Spot {
    /// The value on the horizontal axis.
    pub(crate) x: f64,
    /// The value on the vertical axis.
    pub(crate) y: f64,
    /// The intervals of the horizontal and of the vertical value, if known.
    pub(crate) ends: [Option<[f64; 2]>; 2],
    /// The name in the legend of a point on the front; `None` for all other points, which are drawn faint.
    pub(crate) name: Option<String>,
    /// The index of the configuration, which determines the colour and the marker of a point on the front.
    pub(crate) slot: usize,
    /// The text that is shown on hover.
    pub(crate) text: String,
}

/// Maximum number of points of a front that the legend names. Further points are drawn, and are named only on
/// hover and in the table of numbers.
pub(crate) const MOST_NAMED: usize = 10;

/// Draws a scatter chart. Points on the front are numbered and joined in order.
pub(crate) fn scatter((x, y): (&Axis, &Axis), spots: &[Spot]) -> Drawn<Drawing> {
    let mut svg = String::new();
    let mut marks = Vec::new();
    let on = || spots.iter().filter(|spot| spot.name.is_some());
    let named: Vec<String> = on().take(MOST_NAMED).zip(1..).map(|(spot, number)| entry(spot, number)).collect();
    let full = height(HEIGHT, named.len());
    {
        let area = ground(&mut svg, full);
        let (upper, _) = area.split_vertically(HEIGHT);
        let plane = Plane::new(&upper, (x, y), left_of(y))?;
        for spot in spots.iter().filter(|spot| spot.name.is_none()) {
            let Some(place) = plane.at(spot.x, spot.y) else { continue };
            upper.draw(&Circle::new(place, 7, ShapeStyle::from(AXIS).stroke_width(2)))?;
            marks.push(Mark { x: place.0, y: place.1, text: spot.text.clone() });
        }
        let places: Vec<(i32, i32)> = on().filter_map(|spot| plane.at(spot.x, spot.y)).collect();
        if places.len() > 1 {
            plane.line(places, AXIS, 3)?;
        }
        for (spot, number) in on().zip(1..) {
            let Some(place) = plane.at(spot.x, spot.y) else { continue };
            let colour = palette::series(spot.slot);
            // An end of an interval outside the plane is not drawn, but the table of numbers contains it.
            let end = |x: f64, y: f64| plane.at(x, y).unwrap_or(place);
            if let Some([low, high]) = spot.ends[0] {
                plane.line(vec![end(low, spot.y), end(high, spot.y)], colour, 3)?;
            }
            if let Some([low, high]) = spot.ends[1] {
                plane.line(vec![end(spot.x, low), end(spot.x, high)], colour, 3)?;
            }
            plane.marker(spot.slot, place, colour)?;
            if number <= MOST_NAMED {
                let style = text(&INK).pos(Pos::new(HPos::Left, VPos::Bottom));
                upper.draw(&Text::new(number.to_string(), (place.0 + 12, place.1 - 8), style))?;
            }
            marks.push(Mark { x: place.0, y: place.1, text: spot.text.clone() });
        }
        let slots: Vec<usize> = on().map(|spot| spot.slot).collect();
        let entries: Vec<Entry> =
            named.iter().zip(slots).map(|(name, slot)| Entry { sign: Sign::Series(slot), name }).collect();
        legend(&area, HEIGHT, &entries)?;
        area.present()?;
    }
    Ok(Drawing { width: WIDTH, height: full, inside: inside(&svg), marks })
}

fn entry(spot: &Spot, number: usize) -> String {
    format!("{number}: {}", spot.name.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_on_the_front_are_named_and_the_others_are_faint() {
        let spot = |x: f64, y: f64, name: Option<&str>| Spot {
            x,
            y,
            ends: [None, Some([y * 0.9, y * 1.1])],
            name: name.map(str::to_owned),
            slot: 0,
            text: format!("{x} and {y}"),
        };
        let axis = |title: &str| Axis::from_zero(title, 10.0);
        let spots = [spot(1.0, 9.0, Some("few")), spot(2.0, 3.0, None), spot(9.0, 2.0, Some("many"))];
        let drawn = scatter((&axis("a"), &axis("b")), &spots).unwrap();
        assert!(drawn.inside.contains("1: few") && drawn.inside.contains("2: many"), "{}", drawn.inside);
        assert_eq!(drawn.inside.matches("<circle").count(), 5, "two points, two entries, one off the front");
        assert_eq!(drawn.inside.matches("r=\"7\" fill=\"none\"").count(), 1, "{}", drawn.inside);
        assert_eq!(drawn.marks.len(), 3);
        assert_eq!(drawn.marks[1].text, "1 and 9");
    }
}
