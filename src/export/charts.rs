//! Curves as native charts of a workbook: throughput, TTFT and TPOT against load. The charts refer
//! to the cells of a sheet of numbers, so editing a number changes its chart.

use std::collections::HashSet;

use rust_xlsxwriter::{
    Chart, ChartEmptyCells, ChartErrorBars, ChartErrorBarsType, ChartFont, ChartLegendPosition, ChartLine,
    ChartLineDashType, ChartMarker, ChartMarkerType, ChartRange, ChartSeries, ChartType, Format, Worksheet, XlsxError,
};

use crate::analysis::curve::{Axis, Curve, Ordinate, Rung, together};
use crate::analysis::quantile;
use crate::plan::Slo;

use super::xlsx_text::cut;

/// Name of the sheet with the charts.
pub(super) const CHARTS: &str = "charts";

/// Name of the sheet with the numbers of the charts.
pub(super) const NUMBERS: &str = "chart_data";

/// The figures that are drawn for each group of curves. Each list results in one chart, which shows the first
/// figure of the list that has values.
const DRAWN: [&[&str]; 5] = [
    &["output_throughput", "request_throughput"],
    &["ttft_p50"],
    &["ttft_p99", "ttft_p95"],
    &["tpot_p50"],
    &["tpot_p99"],
];

/// Maximum number of curves in a chart.
const MOST_CURVES: usize = 6;

/// Maximum number of charts in a workbook. The sheet `curves` contains the numbers of the omitted charts.
const MOST_CHARTS: usize = 60;

/// Maximum number of characters in a title; Excel accepts 255.
const LONGEST_TITLE: usize = 200;

/// Number of charts per row.
const ACROSS: u16 = 5;

/// Width and height of a chart in pixels; `CELLS` is the number of columns and rows that it covers, including
/// a gap.
const SIZE: [u32; 2] = [560, 340];
const CELLS: (u16, u32) = (9, 18);

/// Columns of the sheet of numbers.
const COLUMNS: [&str; 9] = [
    "figure",
    "curve",
    "load in",
    "load",
    "value",
    "low (95 %, or lower of 2 repeats)",
    "high (95 %, or higher of 2 repeats)",
    "minus",
    "plus",
];
const CURVE: u16 = 1;
const LOAD: u16 = 3;
const VALUE: u16 = 4;
const MINUS: u16 = 7;
const PLUS: u16 = 8;

/// Charts with their numbers, before they are written to a workbook.
#[derive(Debug, Default)]
pub(crate) struct Charts {
    rows: Vec<Row>,
    charts: Vec<One>,
    /// Number of charts that are omitted because of the limit.
    pub(crate) left_out: usize,
}

/// A row of the sheet of numbers.
#[derive(Debug)]
struct Row {
    figure: String,
    curve: String,
    axis: &'static str,
    load: f64,
    value: Option<f64>,
    ends: Option<[f64; 2]>,
}

/// A chart.
#[derive(Debug)]
struct One {
    /// The group of curves to which the chart belongs. The charts of each group begin on a new row.
    group: usize,
    title: String,
    x: &'static str,
    y: String,
    series: Vec<Series>,
}

/// One curve of a chart: its first and last row in the sheet of numbers.
#[derive(Debug)]
struct Series {
    rows: [u32; 2],
    has_ends: bool,
    /// Whether this is the line of the objective.
    is_limit: bool,
}

/// A curve, and the label that distinguishes it from other curves of the chart.
type Named<'s, 'a> = (&'s Curve<'a>, &'s String);

impl Charts {
    /// Builds the charts of curves; `slo` is the plan's objective.
    pub(crate) fn of(curves: &[Curve], slo: Option<&Slo>) -> Charts {
        let mut charts = Charts::default();
        for (number, chart) in together(curves, MOST_CURVES).into_iter().enumerate() {
            let group: Vec<Named> = chart.members.iter().map(|at| &curves[*at]).zip(&chart.labels).collect();
            let drawn = DRAWN.iter().map(|names| names.to_vec());
            let limited = Ordinate::limited(slo).into_iter().map(|reading| vec![reading.name]);
            let limited = limited.filter(|names| !DRAWN.contains(&names.as_slice()));
            let mut seen = HashSet::new();
            for names in drawn.chain(limited) {
                let known = |reading: &&Ordinate| {
                    group.iter().flat_map(|(curve, _)| &curve.rungs).any(|rung| rung.figure(reading).is_some())
                };
                let Some(reading) = names.iter().filter_map(|name| Ordinate::named(name)).find(known) else { continue };
                // A figure may occur both in `DRAWN` and among the limited figures.
                if !seen.insert(reading.name) {
                    continue;
                }
                if charts.charts.len() == MOST_CHARTS {
                    charts.left_out += 1;
                } else {
                    charts.add((number, &chart.part_of()), &group, reading, slo);
                }
            }
        }
        charts
    }

    /// Whether there is nothing to draw.
    pub(crate) fn is_empty(&self) -> bool {
        self.charts.is_empty()
    }

    fn add(&mut self, (number, part): (usize, &str), group: &[Named], reading: &Ordinate, slo: Option<&Slo>) {
        let (first, _) = group[0];
        let is_open = first.axis == Axis::Qps;
        let metric = reading.metric(is_open);
        let percentile = reading.percentile.map(|percentile| format!(" {}", quantile::name(percentile)));
        let name = format!("{}{}", metric.title, percentile.unwrap_or_default());
        let served = first.series.served();
        let title = match first.series.sweep.as_str() {
            "" => format!("{name}: {served}{part}"),
            sweep => format!("{name}: {sweep}, {served}{part}"),
        };
        let y = format!("{name}, {}", metric.unit.symbol()).trim_end_matches(", ").to_owned();
        let mut series: Vec<Series> = group.iter().map(|named| self.curve(*named, reading, &y)).collect();
        let loads = || group.iter().flat_map(|(curve, _)| &curve.rungs).map(|rung| rung.load);
        let ends = loads().reduce(f64::min).zip(loads().reduce(f64::max));
        let limit = slo.and_then(|slo| reading.limit(slo)).zip(ends);
        series.extend(limit.map(|(limit, (least, most))| {
            let at = |load: f64| Row {
                figure: y.clone(),
                curve: format!("objective ≤ {limit}"),
                axis: first.axis.name(),
                load,
                value: Some(limit.millis()),
                ends: None,
            };
            let rows = self.put([at(least), at(most)]);
            Series { rows, has_ends: false, is_limit: true }
        }));
        let x = if is_open { "offered rate, requests/s" } else { "batch size, requests in flight" };
        self.charts.push(One { group: number, title, x, y, series });
    }

    fn curve(&mut self, (curve, label): Named, reading: &Ordinate, figure: &str) -> Series {
        let row = |rung: &Rung| {
            let found = rung.figure(reading).filter(|found| found.value.is_finite());
            Row {
                figure: figure.to_owned(),
                curve: label.clone(),
                axis: curve.axis.name(),
                load: rung.load,
                value: found.map(|found| found.value),
                ends: found.and_then(|found| found.span()),
            }
        };
        let rows: Vec<Row> = curve.rungs.iter().map(row).collect();
        let has_ends = rows.iter().any(|row| row.ends.is_some());
        Series { rows: self.put(rows), has_ends, is_limit: false }
    }

    /// Adds rows, and returns the numbers of the first and the last one in the sheet.
    fn put(&mut self, rows: impl IntoIterator<Item = Row>) -> [u32; 2] {
        // Row 0 contains the names of the columns.
        let first = self.rows.len() as u32 + 1;
        self.rows.extend(rows);
        [first, (self.rows.len() as u32).max(first)]
    }

    /// Fills the sheet of numbers; unknown values are empty cells.
    pub(super) fn write_numbers(&self, sheet: &mut Worksheet, header: &Format) -> Result<(), XlsxError> {
        for (column, name) in (0..).zip(COLUMNS) {
            sheet.write_string_with_format(0, column, name, header)?;
        }
        sheet.set_freeze_panes(1, 0)?;
        sheet.set_column_width(0, 26)?;
        sheet.set_column_width(CURVE, 26)?;
        for (at, row) in (1..).zip(&self.rows) {
            sheet.write_string(at, 0, &row.figure)?;
            sheet.write_string(at, CURVE, cut(&row.curve))?;
            sheet.write_string(at, 2, row.axis)?;
            sheet.write_number(at, LOAD, row.load)?;
            let Some(value) = row.value else { continue };
            sheet.write_number(at, VALUE, value)?;
            let Some([low, high]) = row.ends else { continue };
            let cells = (VALUE + 1..).zip([low, high, value - low, high - value]);
            for (column, number) in cells.filter(|(_, number)| number.is_finite()) {
                sheet.write_number(at, column, number)?;
            }
        }
        Ok(())
    }

    /// Draws the charts into their sheet.
    pub(super) fn draw(&self, sheet: &mut Worksheet) -> Result<(), XlsxError> {
        sheet.set_landscape().set_print_fit_to_pages(1, 0);
        let (mut row, mut column, mut group) = (0, 0, 0);
        for one in &self.charts {
            if column == ACROSS || one.group != group {
                (row, column) = (row + CELLS.1, 0);
            }
            group = one.group;
            sheet.insert_chart(row, column * CELLS.0, &one.chart())?;
            column += 1;
        }
        if self.left_out > 0 {
            let text = format!("{} more charts have no room: the sheet `curves` has their numbers", self.left_out);
            sheet.write_string(row + CELLS.1, 0, text)?;
        }
        Ok(())
    }
}

impl One {
    fn chart(&self) -> Chart {
        let mut chart = Chart::new(ChartType::ScatterStraightWithMarkers);
        for (slot, series) in self.series.iter().enumerate() {
            chart.push_series(&series.made(slot));
        }
        let title: String = self.title.chars().take(LONGEST_TITLE).collect();
        chart.title().set_name(title.as_str()).set_font(ChartFont::new().set_size(10));
        chart.legend().set_position(ChartLegendPosition::Bottom);
        chart.x_axis().set_name(self.x).set_min(0);
        chart.y_axis().set_name(&self.y).set_min(0);
        // No line is drawn between two loads if the value at either load is n/a.
        chart.show_empty_cells_as(ChartEmptyCells::Gaps);
        chart.set_width(SIZE[0]).set_height(SIZE[1]);
        chart.set_alt_text(format!("{}, over {}; its numbers are in the sheet {NUMBERS}", self.title, self.x));
        chart
    }
}

impl Series {
    fn made(&self, slot: usize) -> ChartSeries {
        const MARKERS: [ChartMarkerType; MOST_CURVES] = [
            ChartMarkerType::Circle,
            ChartMarkerType::Square,
            ChartMarkerType::Triangle,
            ChartMarkerType::Diamond,
            ChartMarkerType::X,
            ChartMarkerType::PlusSign,
        ];
        let [first, last] = self.rows;
        let column = |column: u16| (NUMBERS, first, column, last, column);
        let mut series = ChartSeries::new();
        series.set_name((NUMBERS, first, CURVE)).set_categories(column(LOAD)).set_values(column(VALUE));
        if self.is_limit {
            let mut line = ChartLine::new();
            line.set_width(1.5).set_color("#B00020").set_dash_type(ChartLineDashType::Dash);
            series.set_format(&mut line);
            series.set_marker(ChartMarker::new().set_none());
            return series;
        }
        series.set_marker(ChartMarker::new().set_type(MARKERS[slot % MARKERS.len()]).set_size(7));
        if self.has_ends {
            let range = |column: u16| ChartRange::new_from_range(NUMBERS, first, column, last, column);
            let ends = ChartErrorBarsType::Custom(range(PLUS), range(MINUS));
            series.set_y_error_bars(ChartErrorBars::new().set_type(ends));
        }
        series
    }
}
