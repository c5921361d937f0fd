//! Draws a chart on a grid of characters: points with their intervals against the load, a limit, and axes
//! with numbers. The vertical axis starts at 0. Points are not joined, because nothing was measured between
//! loads.

use crate::report::format::width;

/// Number of rows of the plot area.
const ROWS: usize = 13;

/// Minimum ratio of the heaviest to the lightest load at which the load axis is logarithmic.
const LOG_FROM: f64 = 10.0;

/// A limit is drawn only if it is at most this many times the highest value. A higher limit would squeeze all
/// points to the bottom of the chart.
const LIMIT_WITHIN: f64 = 3.0;

/// An interval that ends above this many times the highest value is truncated at the upper edge.
const ENDS_WITHIN: f64 = 3.0;

/// The characters of a chart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glyphs {
    /// One marker for each curve.
    pub(super) markers: [char; 6],
    /// The marker of a place where several curves have a point.
    pub(super) several: char,
    pub(super) interval: char,
    pub(super) limit: char,
    vertical: char,
    horizontal: char,
    corner: char,
    tick: char,
}

impl Glyphs {
    /// The characters for terminals with Unicode.
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

    /// The characters for terminals without Unicode.
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

/// The content of a chart, before it is drawn.
pub(super) struct Chart<'a> {
    /// The points of each curve, at most six.
    pub(super) curves: &'a [Vec<Point>],
    /// Loads that get a tick on the axis, with or without a point.
    pub(super) loads: &'a [f64],
    /// The limit that the objective sets, if any.
    pub(super) limit: Option<f64>,
    /// The label of the load axis.
    pub(super) axis: &'a str,
}

/// A drawn chart.
pub(super) struct Drawn {
    /// The lines of the chart.
    pub(super) lines: Vec<String>,
    /// Whether the limit lies above the chart.
    pub(super) is_limit_above: bool,
    /// Whether an interval is truncated at the upper edge.
    pub(super) is_cut: bool,
    /// Whether several curves have a point at the same place.
    pub(super) has_several: bool,
}

impl Chart<'_> {
    /// Draws the chart, at most `columns` characters wide; `None` if there is no point.
    pub(super) fn draw(&self, columns: usize, glyphs: &Glyphs) -> Option<Drawn> {
        let points = || self.curves.iter().flatten();
        let most = points().map(|point| point.value).reduce(f64::max)?;
        let ends = points().filter_map(|point| point.ends).map(|[_, high]| high).fold(most, f64::max);
        let near = self.limit.filter(|limit| *limit <= most * LIMIT_WITHIN);
        let reach = ends.min(most * ENDS_WITHIN).max(near.map_or(0.0, |limit| limit * 1.05));
        let Steps { size, count } = Steps::to(reach);
        let top = size * count as f64;
        // Each label is on the row of its value.
        let label = |step: usize| (step * (ROWS - 1) / count, tick(size, step));
        let labels: Vec<(usize, String)> = (0..=count).map(label).collect();
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

/// The ticks of the vertical axis: steps of equal size from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Steps {
    size: f64,
    count: usize,
}

impl Steps {
    /// Chooses steps of 1, 2, 2.5 or 5 times a power of ten that fall on rows, reach the value `reach` and
    /// exceed it as little as possible.
    fn to(reach: f64) -> Steps {
        if !(reach.is_finite() && reach > 0.0) {
            return Steps { size: 0.25, count: 4 };
        }
        let power = 10f64.powf(reach.log10().floor());
        let sizes = [0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 2.5, 5.0].map(|times| times * power);
        // Of two choices that reach equally far, the one with fewer steps is chosen.
        let all = sizes.into_iter().flat_map(|size| [6, 4, 3].map(|count| Steps { size, count }));
        // The tolerance accepts steps that fail to reach the value only because of floating-point errors.
        let reaching = all.filter(|steps| steps.top() >= reach * (1.0 - 1e-9));
        reaching
            .min_by(|a, b| a.top().total_cmp(&b.top()).then(a.count.cmp(&b.count)))
            .unwrap_or(Steps { size: power, count: 6 })
    }

    fn top(self) -> f64 {
        self.size * self.count as f64
    }
}

/// Formats the number at a step, with as many decimals as the step size needs.
fn tick(size: f64, step: usize) -> String {
    let value = size * step as f64;
    if value == 0.0 {
        return "0".to_owned();
    }
    if value >= 1e9 || size < 1e-4 {
        return format!("{value:e}");
    }
    let decimals = (0..=6).find(|decimals| {
        let scaled = size * 10f64.powi(*decimals);
        (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1.0)
    });
    format!("{value:.*}", decimals.unwrap_or(6) as usize)
}

/// The horizontal positions of loads.
struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
    /// Number of columns between the first and the last load.
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

    /// Returns the column of a load for the first curve; each further curve is one column to the right.
    fn column(&self, load: f64) -> usize {
        let place = match (self.high > self.low, self.is_log) {
            (false, _) => 0.5,
            (true, true) => (load / self.low).ln() / (self.high / self.low).ln(),
            (true, false) => (load - self.low) / (self.high - self.low),
        };
        self.before + (place * self.span as f64).round() as usize
    }

    /// Returns the lines of the load axis: the axis, its numbers and its label.
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

/// The plot area while it is drawn; its first row is the upper edge.
struct Canvas<'g> {
    cells: Vec<Vec<char>>,
    glyphs: &'g Glyphs,
    top: f64,
}

impl Canvas<'_> {
    /// Returns the row of a value, counted from the bottom; the topmost row for values above the chart.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(load: f64, value: f64, ends: Option<[f64; 2]>) -> Point {
        Point { load, value, ends }
    }

    fn drawn(curves: &[Vec<Point>], limit: Option<f64>, glyphs: &Glyphs) -> Drawn {
        let loads: Vec<f64> = curves.iter().flatten().map(|point| point.load).collect();
        let drawn = Chart { curves, loads: &loads, limit, axis: "batch size" }.draw(50, glyphs).expect("points");
        assert!(drawn.lines.iter().all(|line| width(line) <= 50), "{:#?}", drawn.lines);
        drawn
    }

    fn some() -> [Vec<Point>; 2] {
        let one = vec![at(1.0, 20.0, Some([10.0, 30.0])), at(4.0, 40.0, None), at(32.0, 80.0, Some([70.0, 90.0]))];
        let other = vec![at(1.0, 25.0, None), at(32.0, 60.0, Some([60.0, 60.0]))];
        [one, other]
    }

    #[test]
    fn points_stand_at_their_values_with_their_intervals() {
        let drawn = drawn(&some(), Some(50.0), &Glyphs::UNICODE);
        let text: Vec<&str> = drawn.lines.iter().map(|line| line.trim_end()).collect();
        insta::assert_snapshot!(text.join("\n"), @r"
        100 │
            │                                        │
            │                                        ●
         75 │                                        │
            │                                        │
            │                                         ○
         50 │┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄
            │                  ●
            │   │
         25 │   │○
            │   ●
            │   │
          0 │
            └───┴──────────────┴─────────────────────┴────
                1              4                    32
             batch size, logarithmic
        ");
        assert!(!drawn.is_limit_above && !drawn.is_cut && !drawn.has_several);
    }

    #[test]
    fn numbers_of_the_axis_are_round() {
        let ticks = |reach: f64| {
            let Steps { size, count } = Steps::to(reach);
            assert!(size * count as f64 >= reach * 0.999_999 && (ROWS - 1).is_multiple_of(count), "{reach}");
            (0..=count).map(|step| tick(size, step)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ticks(3.08), "0 1 2 3 4");
        assert_eq!(ticks(12_750.0), "0 5000 10000 15000");
        assert_eq!(ticks(90.0), "0 25 50 75 100");
        assert_eq!(ticks(0.3), "0 0.1 0.2 0.3");
        assert_eq!(ticks(0.0), "0 0.25 0.50 0.75 1.00");
    }

    #[test]
    fn ascii_has_no_other_character() {
        let drawn = drawn(&some(), Some(50.0), &Glyphs::ASCII);
        assert!(drawn.lines.iter().all(|line| line.is_ascii()), "{:#?}", drawn.lines);
    }

    #[test]
    fn what_lies_far_above_is_told_and_not_drawn() {
        let curve = [vec![at(2.0, 10.0, Some([9.0, 400.0])), at(3.0, 12.0, None)]];
        let drawn = drawn(&curve, Some(900.0), &Glyphs::UNICODE);
        assert!(drawn.is_limit_above && drawn.is_cut);
        assert!(!drawn.lines.iter().any(|line| line.contains('┄')), "{:#?}", drawn.lines);
    }

    #[test]
    fn points_in_one_place_are_told_apart_or_said() {
        let curves = [vec![at(1.0, 10.0, None)], vec![at(1.0, 10.0, None)]];
        // The loads are adjacent, but each has its own column.
        assert!(!drawn(&curves, None, &Glyphs::UNICODE).has_several);
        let close = [vec![at(1.0, 10.0, None), at(1.01, 10.0, None), at(9.0, 10.0, None)]];
        assert!(drawn(&close, None, &Glyphs::UNICODE).has_several);
    }

    #[test]
    fn nothing_is_drawn_of_nothing_and_zero_is_a_value() {
        let none: [Vec<Point>; 1] = [Vec::new()];
        assert!(
            Chart { curves: &none, loads: &[1.0], limit: Some(1.0), axis: "qps" }.draw(50, &Glyphs::ASCII).is_none()
        );
        let zero = [vec![at(1.0, 0.0, None)]];
        let drawn = drawn(&zero, None, &Glyphs::UNICODE);
        assert_eq!(drawn.lines.iter().filter(|line| line.contains('●')).count(), 1);
        assert!(drawn.lines[ROWS - 1].contains('●'), "{:#?}", drawn.lines);
    }
}
