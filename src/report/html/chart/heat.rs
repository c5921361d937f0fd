//! A heat map with a cell for each row and column. Each cell shows its number, and the colour only repeats
//! the number. An empty cell was not measured.

use plotters::prelude::{Color, IntoDrawingArea, PathElement, Rectangle, SVGBackend, ShapeStyle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{RGBColor, TextStyle};

use super::drawing::{Drawing, Drawn, Mark, inside};
use super::marker::Area;
use super::palette::{AXIS, GRID, HEAT, INK, LIMIT};
use super::plane::{WIDTH, text, text_of};

/// Maximum number of columns for which a number fits into each cell.
pub(crate) const MOST_COLUMNS: usize = 10;

/// Number of colour steps of a heat map.
pub(crate) const STEPS: usize = HEAT.len();

/// A heat map.
#[derive(Debug, Clone)]
pub(crate) struct Heat {
    /// Labels of the columns, from the left.
    pub(crate) columns: Vec<String>,
    /// Title of the columns, with the unit.
    pub(crate) axis: String,
    /// The rows, from the top.
    pub(crate) rows: Vec<HeatRow>,
    /// Labels at both ends of the scale.
    pub(crate) ends: [String; 2],
}

/// A row of a heat map.
#[derive(Debug, Clone)]
pub(crate) struct HeatRow {
    /// The name of the row.
    pub(crate) name: String,
    /// The cells of the row; `None` for cells that were not measured.
    pub(crate) cells: Vec<Option<HeatCell>>,
}

/// A cell of a heat map.
#[derive(Debug, Clone)]
pub(crate) struct HeatCell {
    /// The number of the cell as text, and its colour step; `None` for an empty cell.
    pub(crate) value: Option<(String, usize)>,
    /// The sign for the cell's result under the objective; `None` if the objective is met, or if there is no
    /// objective.
    pub(crate) sign: Option<Sign>,
    /// The text that is shown on hover.
    pub(crate) text: String,
}

/// A sign for the result under the objective, so that the result is not shown by colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// A missed objective: a frame and a cross.
    Missed,
    /// An undecided objective: a question mark.
    Undecided,
}

/// Height of a row's name.
const NAME: i32 = 44;

/// Height of a cell.
const CELL: i32 = 76;

/// Distance between two cells.
const GAP: i32 = 6;

/// Distance from the border of the drawing.
const SIDE: i32 = 12;

/// Heights of the parts below the rows: the columns' names, their title, and the colour scale.
const BELOW: [i32; 3] = [40, 44, 64];

/// Maximum number of characters of a row's name.
const LONGEST_NAME: usize = 56;

/// A rectangle, given by two corners.
type Corners = [(i32, i32); 2];

/// Draws a heat map.
pub(crate) fn heat(map: &Heat) -> Drawn<Drawing> {
    let rows = i32::try_from(map.rows.len()).unwrap_or(0);
    let bottom = rows * (NAME + CELL + GAP);
    let full = u32::try_from(bottom + BELOW.iter().sum::<i32>()).unwrap_or(WIDTH);
    let mut svg = String::new();
    let mut marks = Vec::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, full)).into_drawing_area();
        for (row, top) in map.rows.iter().zip((0..).map(|row| row * (NAME + CELL + GAP))) {
            let name = crate::report::format::cut(&row.name, LONGEST_NAME);
            area.draw(&Text::new(name, (SIDE, top + NAME / 2), at(text(&INK), HPos::Left)))?;
            for (column, cell) in row.cells.iter().enumerate() {
                let [left, right] = map.column(column);
                let corners = [(left, top + NAME), (right, top + NAME + CELL)];
                draw(&area, corners, cell.as_ref())?;
                let place = ((left + right) / 2, top + NAME + CELL / 2);
                marks.extend(cell.as_ref().map(|cell| Mark { x: place.0, y: place.1, text: cell.text.clone() }));
            }
        }
        for (column, name) in map.columns.iter().enumerate() {
            let [left, right] = map.column(column);
            let place = ((left + right) / 2, bottom + BELOW[0] / 2);
            area.draw(&Text::new(name.clone(), place, at(text(&INK), HPos::Center)))?;
        }
        let middle = i32::try_from(WIDTH).unwrap_or(0) / 2;
        let place = (middle, bottom + BELOW[0] + BELOW[1] / 2);
        area.draw(&Text::new(map.axis.clone(), place, at(text(&INK), HPos::Center)))?;
        scale(&area, bottom + BELOW[0] + BELOW[1] + BELOW[2] / 2, &map.ends)?;
        area.present()?;
    }
    Ok(Drawing { width: WIDTH, height: full, inside: inside(&svg), marks })
}

impl Heat {
    /// Returns the left and right edges of a column.
    fn column(&self, column: usize) -> [i32; 2] {
        let count = i32::try_from(self.columns.len().max(1)).unwrap_or(1);
        let column = i32::try_from(column).unwrap_or(0);
        let width = i32::try_from(WIDTH).unwrap_or(0) - 2 * SIDE;
        let at = |column: i32| SIDE + width * column / count;
        [at(column), at(column + 1) - GAP]
    }
}

fn draw(area: &Area, corners: Corners, cell: Option<&HeatCell>) -> Drawn<()> {
    let outline = |colour: RGBColor| ShapeStyle::from(colour).stroke_width(2);
    let [(left, top), (right, bottom)] = corners;
    match cell.and_then(|cell| cell.value.as_ref()) {
        None => area.draw(&Rectangle::new(corners, outline(GRID)))?,
        Some((number, step)) => {
            area.draw(&Rectangle::new(corners, HEAT[(*step).min(STEPS - 1)].filled()))?;
            area.draw(&Rectangle::new(corners, outline(AXIS)))?;
            let size =
                if (right - left) / 18 >= i32::try_from(number.chars().count()).unwrap_or(0) { 29.0 } else { 24.0 };
            let place = ((left + right) / 2, (top + bottom) / 2 + 6);
            area.draw(&Text::new(number.clone(), place, at(text_of(size, &INK), HPos::Center)))?;
        }
    }
    match cell.and_then(|cell| cell.sign) {
        None => Ok(()),
        Some(Sign::Undecided) => area.draw(&Text::new("?", (right - 18, top + 20), at(text(&INK), HPos::Center))),
        Some(Sign::Missed) => {
            // A path is used because the library writes rectangles without the width of their lines.
            let (near, far) = ((left + 4, top + 4), (right - 4, bottom - 4));
            let stroke = |points: Vec<(i32, i32)>| PathElement::new(points, ShapeStyle::from(LIMIT).stroke_width(5));
            area.draw(&stroke(vec![near, (far.0, near.1), far, (near.0, far.1), near, (far.0, near.1)]))?;
            let (x, y) = (right - 20, top + 20);
            area.draw(&stroke(vec![(x - 9, y - 9), (x + 9, y + 9)]))?;
            area.draw(&stroke(vec![(x - 9, y + 9), (x + 9, y - 9)]))
        }
    }
}

/// Draws the colour steps, with the labels at both ends.
fn scale(area: &Area, y: i32, ends: &[String; 2]) -> Drawn<()> {
    const STEP: i32 = 52;
    let steps = i32::try_from(STEPS).unwrap_or(0);
    let left = (i32::try_from(WIDTH).unwrap_or(0) - steps * STEP) / 2;
    for (step, colour) in (0..).zip(HEAT) {
        let corners = [(left + step * STEP, y - 15), (left + (step + 1) * STEP - 4, y + 15)];
        area.draw(&Rectangle::new(corners, colour.filled()))?;
        area.draw(&Rectangle::new(corners, ShapeStyle::from(AXIS).stroke_width(2)))?;
    }
    area.draw(&Text::new(ends[0].clone(), (left - 12, y), at(text(&INK), HPos::Right)))?;
    area.draw(&Text::new(ends[1].clone(), (left + steps * STEP + 8, y), at(text(&INK), HPos::Left)))
}

fn at(style: TextStyle<'static>, side: HPos) -> TextStyle<'static> {
    style.pos(Pos::new(side, VPos::Center))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(number: &str, step: usize, sign: Option<Sign>) -> Option<HeatCell> {
        Some(HeatCell { value: Some((number.to_owned(), step)), sign, text: format!("it contains {number}") })
    }

    #[test]
    fn a_cell_that_was_not_measured_is_empty() {
        let map = Heat {
            columns: vec!["1".into(), "2".into()],
            axis: "batch size".into(),
            rows: vec![HeatRow { name: "a<b".into(), cells: vec![cell("12.5", 0, None), None] }],
            ends: ["12.5".into(), "12.5 ms".into()],
        };
        let drawn = heat(&map).unwrap();
        let filled = |colour: &str| drawn.inside.matches(&format!("fill=\"{colour}\"")).count();
        // The lowest colour fills one cell and one step of the scale; the other colours appear only in the
        // scale.
        assert_eq!([filled("#E8F1F8"), filled("#C9DFF0"), filled("#5A9ACB")], [2, 1, 1], "{}", drawn.inside);
        assert_eq!(drawn.marks.len(), 1);
        assert!(drawn.inside.contains("a&lt;b") && drawn.inside.matches("12.5").count() == 3, "{}", drawn.inside);
        assert!(!drawn.inside.contains("#B42318"));
    }

    #[test]
    fn an_objective_that_is_missed_is_marked_by_shapes() {
        let map = |sign| Heat {
            columns: vec!["1".into()],
            axis: String::new(),
            rows: vec![HeatRow { name: String::new(), cells: vec![cell("1", 4, sign)] }],
            ends: [String::new(), String::new()],
        };
        let plain = heat(&map(None)).unwrap().inside;
        let missed = heat(&map(Some(Sign::Missed))).unwrap().inside;
        assert_eq!(missed.matches("#B42318").count(), 3, "a frame and two strokes");
        assert!(heat(&map(Some(Sign::Undecided))).unwrap().inside.contains("?\n") && !plain.contains("?\n"));
    }
}
