//! Renders curves as character charts (`curves --plot`): throughput, TTFT and TPOT against load, with a
//! marker for each curve, intervals, and a line for the objective. Loads without a value have no point; their
//! number is stated below the chart.

mod canvas;

use canvas::{Chart, Drawn, Glyphs, Point};

use crate::analysis::curve::{Axis, Curve, Ordinate, Rung, together};
use crate::analysis::quantile;
use crate::plan::Slo;

use super::curves::{differ, lines, title};
use super::format::{fill, plain, width};
use super::{grid, screen};

/// The figures that are drawn if they have values.
const DRAWN: [&str; 4] = ["output_throughput", "ttft_p50", "ttft_p99", "tpot_p50"];

/// The figure that is drawn instead of output throughput if there are no tokens.
const WITHOUT_TOKENS: &str = "request_throughput";

/// Maximum number of curves per chart, which is the number of available markers.
const MOST_CURVES: usize = 6;

/// Renders the charts of all curves, grouped by the requests that they serve, with the conclusions of each curve below.
pub(crate) fn plots(curves: &[Curve], slo: Option<&Slo>, is_unicode: bool, why: bool) -> String {
    let glyphs = if is_unicode { Glyphs::UNICODE } else { Glyphs::ASCII };
    let (models, sweeps) = differ(curves.iter().map(|curve| &curve.series));
    let mut out = String::new();
    for chart in together(curves, MOST_CURVES) {
        let group: Vec<&Curve> = chart.members.iter().map(|at| &curves[*at]).collect();
        let first = group[0];
        let by = if first.axis == Axis::Qps { "qps" } else { "batch size" };
        let served = plain(&first.series.served());
        let head = match first.series.sweep.as_str() {
            "" => format!("{served} over {by}{}", chart.part_of()),
            sweep => format!("{}: {served} over {by}{}", plain(sweep), chart.part_of()),
        };
        out.push_str(&fill("\n", 2, &head).replacen("\n ", "\n", 1));
        let drawn: Vec<String> = readings(&group, slo)
            .into_iter()
            .filter_map(|reading| One { curves: &group, labels: &chart.labels, reading, slo, glyphs: &glyphs }.text())
            .collect();
        if drawn.is_empty() {
            out.push_str("  nothing to draw: no load has a figure\n");
        }
        out.extend(drawn);
        for curve in &group {
            out.push_str(&format!("\n{}", fill("", 2, &title(&curve.series, models, sweeps))));
            lines(curve, why).iter().for_each(|line| out.push_str(&fill(" ", 4, line)));
        }
    }
    out
}

/// Returns the figures to draw: those that at least one load of the group has.
fn readings(group: &[&Curve], slo: Option<&Slo>) -> Vec<&'static Ordinate> {
    let rungs = || group.iter().flat_map(|curve| &curve.rungs);
    let is_known = |reading: &&Ordinate| rungs().any(|rung| rung.figure(reading).is_some());
    // The figures that the objective limits are drawn in addition to the usual ones.
    let limited = Ordinate::limited(slo).into_iter().filter(|reading| !DRAWN.contains(&reading.name));
    let main = DRAWN.iter().filter_map(|name| Ordinate::named(name));
    let mut found: Vec<&Ordinate> = main.chain(limited).filter(is_known).collect();
    if found.first().is_none_or(|first| first.name != DRAWN[0]) {
        let instead = Ordinate::named(WITHOUT_TOKENS).filter(is_known);
        found.splice(0..0, instead);
    }
    found
}

/// A chart of one figure for several curves.
struct One<'s, 'c, 'a> {
    curves: &'s [&'c Curve<'a>],
    /// The label of each curve.
    labels: &'s [String],
    reading: &'static Ordinate,
    slo: Option<&'s Slo>,
    glyphs: &'s Glyphs,
}

impl One<'_, '_, '_> {
    /// Renders the title, the chart, the legend, and the notes that are needed to read the chart; `None` if
    /// there is no point.
    fn text(&self) -> Option<String> {
        let points: Vec<Vec<Point>> = self.curves.iter().map(|curve| self.points(curve)).collect();
        let limit = self.slo.and_then(|slo| self.reading.limit(slo));
        let loads: Vec<f64> = self.rungs().map(|rung| rung.load).collect();
        let axis = match self.curves[0].axis {
            Axis::Qps => "qps: offered rate, requests/s",
            Axis::BatchSize => "batch size: requests in flight",
        };
        let chart = Chart { curves: &points, loads: &loads, limit: limit.map(|limit| limit.millis()), axis };
        let drawn = chart.draw(screen::columns(), self.glyphs)?;
        let mut out = format!("\n{}\n", self.title());
        drawn.lines.iter().for_each(|line| out.push_str(&format!("{}\n", line.trim_end())));
        out.push_str(&self.legend(limit.map(|limit| limit.to_string()), &drawn));
        self.notes(&drawn).iter().for_each(|note| out.push_str(&fill("  ", 2, note)));
        Some(out)
    }

    fn rungs(&self) -> impl Iterator<Item = &Rung<'_>> {
        self.curves.iter().flat_map(|curve| &curve.rungs)
    }

    fn points(&self, curve: &Curve) -> Vec<Point> {
        let point = |rung: &Rung| {
            let figure = rung.figure(self.reading)?;
            figure.value.is_finite().then_some(Point { load: rung.load, value: figure.value, ends: figure.span() })
        };
        curve.rungs.iter().filter_map(point).collect()
    }

    /// Returns the title: `TTFT from schedule p99, ms`.
    fn title(&self) -> String {
        let metric = self.reading.metric(self.curves[0].axis == Axis::Qps);
        let percentile = self.reading.percentile.map(|percentile| format!(" {}", quantile::name(percentile)));
        let title = format!("{}{}, {}", metric.title, percentile.unwrap_or_default(), metric.unit.symbol());
        title.trim_end_matches(", ").to_owned()
    }

    /// Returns the legend: the marker of each curve, and the other signs that were drawn.
    fn legend(&self, limit: Option<String>, drawn: &Drawn) -> String {
        let Glyphs { markers, several, interval, limit: line, .. } = self.glyphs;
        let mut items: Vec<String> =
            self.labels.iter().zip(markers).map(|(label, marker)| format!("{marker} {}", plain(label))).collect();
        let figures = || self.rungs().filter_map(|rung| rung.figure(self.reading));
        let has_ends = figures().any(|found| found.ends.is_some() && found.pair.is_none());
        items.extend(has_ends.then(|| format!("{interval} 95 % interval")));
        items.extend(figures().any(|found| found.pair.is_some()).then(|| format!("{interval} two repeats")));
        items.extend(limit.filter(|_| !drawn.is_limit_above).map(|limit| format!("{line}{line} objective ≤ {limit}")));
        items.extend(drawn.has_several.then(|| format!("{several} several curves")));
        let longest = items.iter().map(|item| width(item)).max().unwrap_or(0);
        match longest + 2 > screen::columns() {
            true => items.iter().map(|item| fill("  ", 4, item)).collect(),
            false => grid::items("  ", 2, &items),
        }
    }

    fn notes(&self, drawn: &Drawn) -> Vec<String> {
        let all = self.rungs().count();
        let figures: Vec<_> = self.rungs().map(|rung| rung.figure(self.reading)).collect();
        let absent = figures.iter().filter(|figure| figure.is_none()).count();
        let few = figures.iter().flatten().filter(|figure| figure.few_samples).count();
        let limit = self.slo.and_then(|slo| self.reading.limit(slo));
        [
            (absent > 0).then(|| format!("n/a at {absent} of {all} loads: not drawn")),
            (few > 0).then(|| format!("from few samples at {few} of {all} loads: the true value may lie well away")),
            limit.filter(|_| drawn.is_limit_above).map(|limit| format!("objective ≤ {limit}: above the chart")),
            drawn.is_cut.then(|| "an interval that ends above the chart is truncated".to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Returns whether the locale indicates a terminal with Unicode. This is assumed if no locale is set, as
/// everywhere else in the program.
pub(crate) fn is_unicode() -> bool {
    let said = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
    let said = said.map(|locale| locale.to_ascii_lowercase()).find(|locale| !locale.is_empty());
    said.is_none_or(|locale| locale.contains("utf-8") || locale.contains("utf8"))
}
