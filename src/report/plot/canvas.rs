//! A chart on a grid of characters: points with their intervals over a load, a limit, axes from 0 with their numbers. Nothing joins the
//! points: between loads nothing was measured.

use crate::report::format::{digits, width};

/// Rows of the field.
const ROWS: usize = 13;

/// Loads are spaced by their logarithms where the heaviest is so many times the lightest.
const LOG_FROM: f64 = 10.0;

/// A limit is drawn where it lies at most so many times above the highest value: else it would flatten what is there.
const LIMIT_WITHIN: f64 = 3.0;

/// An interval that ends so many times above the highest value is cut.
const ENDS_WITHIN: f64 = 3.0;

/// The characters that a chart is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glyphs {
    /// One for each curve.
    pub(super) markers: [char; 6],
    /// Where several curves have a point in one place.
    pub(super) several: char,
    pub(super) interval: char,
    pub(super) limit: char,
    vertical: char,
    horizontal: char,
    corner: char,
    tick: char,
}

impl Glyphs {
    /// For terminals that show Unicode.
    pub(super) const UNICODE: Glyphs = Glyphs {
        markers: ['●', '○', '▲', '△', '■', '□'],
        several: '✱',
        interval: '│',
        limit: '┄',
        vertical: '│',
        horizontal: '─',
        corner: '└',
        tick: '┴',
    };

    /// For those that do not.
    pub(super) const ASCII: Glyphs = Glyphs {
        markers: ['o', 'x', '+', '#', '@', '%'],
        several: '*',
        interval: ':',
        limit: '-',
        vertical: '|',
        horizontal: '-',
        corner: '+',
        tick: '+',
    };
}

/// A point: its load, its value, and the ends of its interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) load: f64,
    pub(super) value: f64,
    pub(super) ends: Option<[f64; 2]>,
}

/// What is drawn.
pub(super) struct Chart<'a> {
    /// The points of each curve, at most six.
    pub(super) curves: &'a [Vec<Point>],
    /// Loads that have a place on the axis, with or without a point.
    pub(super) loads: &'a [f64],
    /// The objective's limit.
    pub(super) limit: Option<f64>,
    /// What the loads are.
    pub(super) axis: &'a str,
}

/// A chart, drawn.
pub(super) struct Drawn {
    /// Its lines.
    pub(super) lines: Vec<String>,
    /// Whether the limit lies above it.
    pub(super) is_limit_above: bool,
    /// Whether an interval is cut at its upper edge.
    pub(super) is_cut: bool,
    /// Whether several curves have a point in one place.
    pub(super) has_several: bool,
}

impl Chart<'_> {
    /// The lines of the chart, at most `columns` wide; none without a point.
    pub(super) fn draw(&self, columns: usize, glyphs: &Glyphs) -> Option<Drawn> {
        let points = || self.curves.iter().flatten();
        let most = points().map(|point| point.value).reduce(f64::max)?;
        let ends = points().filter_map(|point| point.ends).map(|[_, high]| high).fold(most, f64::max);
        let near = self.limit.filter(|limit| *limit <= most * LIMIT_WITHIN);
        let reach = ends.min(most * ENDS_WITHIN).max(near.map_or(0.0, |limit| limit * 1.05));
        let top = if reach > 0.0 { round_up(reach) } else { 1.0 };
        let labels: Vec<(usize, String)> = (0..=4)
            .map(|quarter| (quarter * (ROWS - 1) / 4, quarter))
            .map(|(row, quarter)| {
                // The number stands beside the row that it is the value of.
                let value = top * row as f64 / (ROWS - 1) as f64;
                (row, if quarter == 0 { "0".to_owned() } else { digits(value) })
            })
            .collect();
        let margin = labels.iter().map(|(_, label)| width(label)).max().unwrap_or(1);
        let field = columns.saturating_sub(margin + 2).max(self.curves.len() + 1);
        let mut canvas = Canvas { cells: vec![vec![' '; field]; ROWS], glyphs, top };
        if let Some(limit) = near {
            canvas.limit(limit);
        }
        let scale = Scale::of(self.loads, field, self.curves.len());
        for is_marker in [false, true] {
            for (slot, curve) in self.curves.iter().enumerate() {
                for point in curve {
                    let column = scale.column(point.load) + slot;
                    if is_marker { canvas.marker(point, column, slot) } else { canvas.interval(point, column) }
                }
            }
        }
        let mut lines = canvas.lines(&labels, margin);
        lines.extend(scale.axis(self.loads, (margin, field), self.axis, glyphs));
        Some(Drawn {
            has_several: canvas.cells.iter().flatten().any(|cell| *cell == glyphs.several),
            lines,
            is_limit_above: self.limit.is_some() && near.is_none(),
            is_cut: ends > top,
        })
    }
}

/// The next number with two digits.
fn round_up(value: f64) -> f64 {
    let step = 10f64.powf(value.log10().floor() - 1.0);
    // What is a whole number of steps but for floating point stays.
    (value / step - 1e-9).ceil() * step
}

/// Where loads stand.
struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
    /// Columns between the first and the last load.
    span: usize,
    before: usize,
    slots: usize,
}

impl Scale {
    fn of(loads: &[f64], field: usize, slots: usize) -> Scale {
        let low = loads.iter().copied().fold(f64::INFINITY, f64::min);
        let high = loads.iter().copied().fold(0.0, f64::max);
        let is_log = low > 0.0 && high / low >= LOG_FROM;
        let before = field / 20 + 1;
        let span = field.saturating_sub(2 * before + slots);
        Scale { low, high, is_log, span, before, slots }
    }

    /// The column of a load, of the first of the curves.
    fn column(&self, load: f64) -> usize {
        let place = match (self.high > self.low, self.is_log) {
            (false, _) => 0.5,
            (true, true) => (load / self.low).ln() / (self.high / self.low).ln(),
            (true, false) => (load - self.low) / (self.high - self.low),
        };
        self.before + (place * self.span as f64).round() as usize
    }

    /// The axis with its numbers and what they are.
    fn axis(&self, loads: &[f64], (margin, field): (usize, usize), title: &str, glyphs: &Glyphs) -> Vec<String> {
        let mut rule = vec![glyphs.horizontal; field];
        let mut numbers = String::new();
        let mut loads = loads.to_vec();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        for load in loads {
            let middle = self.column(load) + self.slots.saturating_sub(1) / 2;
            if let Some(cell) = rule.get_mut(middle) {
                *cell = glyphs.tick;
            }
            let label = load.to_string();
            let start = middle.saturating_sub(label.len() / 2).min(field.saturating_sub(label.len()));
            let is_free = numbers.is_empty() || start > numbers.len();
            if is_free && start + label.len() <= field {
                numbers = format!("{numbers:<start$}{label}");
            }
        }
        let rule: String = rule.into_iter().collect();
        let blank = " ".repeat(margin + 1);
        let scale = if self.is_log { ", logarithmic" } else { "" };
        vec![
            format!("{} {}{rule}", " ".repeat(margin), glyphs.corner),
            format!("{blank} {numbers}"),
            format!("{blank} {title}{scale}"),
        ]
    }
}

/// The field under way; its first row is the upper edge.
struct Canvas<'g> {
    cells: Vec<Vec<char>>,
    glyphs: &'g Glyphs,
    top: f64,
}

impl Canvas<'_> {
    /// The row of a value, from the bottom; the topmost of what lies above.
    fn row(&self, value: f64) -> usize {
        let place = (value / self.top).clamp(0.0, 1.0);
        (place * (ROWS - 1) as f64).round() as usize
    }

    fn cell(&mut self, row: usize, column: usize) -> Option<&mut char> {
        self.cells.get_mut(ROWS - 1 - row)?.get_mut(column)
    }

    fn limit(&mut self, limit: f64) {
        let (row, glyph) = (self.row(limit), self.glyphs.limit);
        self.cells[ROWS - 1 - row].fill(glyph);
    }

    fn interval(&mut self, point: &Point, column: usize) {
        let Some([low, high]) = point.ends else { return };
        let glyph = self.glyphs.interval;
        for row in self.row(low)..=self.row(high) {
            if let Some(cell) = self.cell(row, column) {
                *cell = glyph;
            }
        }
    }

    fn marker(&mut self, point: &Point, column: usize, slot: usize) {
        let row = self.row(point.value);
        let (marker, several) = (self.glyphs.markers[slot % self.glyphs.markers.len()], self.glyphs.several);
        let is_marker = |cell: char| self.glyphs.markers.contains(&cell) || cell == several;
        let is_taken = self.cells.get(ROWS - 1 - row).and_then(|row| row.get(column)).copied().is_some_and(is_marker);
        if let Some(cell) = self.cell(row, column) {
            *cell = if is_taken { several } else { marker };
        }
    }

    fn lines(&self, labels: &[(usize, String)], margin: usize) -> Vec<String> {
        let line = |(at, cells): (usize, &Vec<char>)| {
            let row = ROWS - 1 - at;
            let label = labels.iter().find(|(labelled, _)| *labelled == row).map_or("", |(_, label)| label.as_str());
            let cells: String = cells.iter().collect();
            format!("{label:>margin$} {}{}", self.glyphs.vertical, cells.trim_end())
        };
        self.cells.iter().enumerate().map(line).collect()
    }
}
