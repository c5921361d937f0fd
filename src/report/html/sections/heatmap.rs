//! The section with heat maps of latencies and of throughput, for each configuration with at least two
//! scenarios and two loads. A heat map has one row per scenario and one column per load.

use super::super::chart::{Heat, HeatCell, HeatRow, MOST_COLUMNS, STEPS, Sign, heat};
use super::super::error::PageError;
use super::super::naming::{arm, axis_title, load_of};
use super::super::sources::Sources;
use super::super::view::{Block, Caption, Cell, Figure, Found, Link, Missing, Section, Table};
use super::over_load::{failures, objective, requests, sizes};
use crate::analysis::curve::{self, Curve, Ordinate, Rung};
use crate::analysis::quantile;
use crate::analysis::slo::Answer;
use crate::metrics::Metric;
use crate::plan::{Plan, Slo};
use crate::report::format::{digits, plain};
use crate::report::spread;
use crate::units::text::counted;

const TITLE: &str = "Scenarios over loads";

/// Maximum number of heat maps on a page; `MOST_CELLS` is the maximum number of cells in all of them. With
/// these limits, a page with a thousand runs stays below five megabytes.
const MOST_FIGURES: usize = 24;
const MOST_CELLS: usize = 300;

/// Maximum number of rows of a heat map; further rows are in the next heat map.
const MOST_ROWS: usize = 12;

/// Minimum ratio of the highest to the lowest value for logarithmic colour steps. Below this ratio, the
/// colour scale is linear and starts at 0, so that almost equal values look alike.
const WIDE: f64 = 8.0;

/// Builds the section, or states why it is missing.
pub(crate) fn heatmap(sources: &Sources) -> Result<Found, PageError> {
    let text = "A cell is a scenario at a load, with its number in it; the darker (in the dark theme the \
                brighter), the higher. A cell with a frame and a cross misses the plan's objective, one with a \
                question mark is undecided, and an empty one has no number: it was not measured, or its runs do \
                not count.";
    let mut blocks = vec![Block::Text { text: text.to_owned() }];
    let (mut drawn, mut cells, mut left) = (0, 0, 0);
    for (number, configuration) in configurations(sources.curves).into_iter().enumerate() {
        let mut figures = Vec::new();
        for reading in shown(sources.plan, &configuration) {
            let parts = configuration.parts();
            for (part, loads, rows) in &parts {
                let name = if parts.len() > 1 { format!(", part {part} of {}", parts.len()) } else { String::new() };
                let one = One { configuration: &configuration, reading, loads, rows, part: name };
                let own = loads.len() * rows.len();
                if drawn >= MOST_FIGURES || cells + own > MOST_CELLS {
                    left += 1;
                    continue;
                }
                cells += own;
                drawn += 1;
                figures.extend(one.figure(&format!("heat-{}-{}-{part}", number + 1, reading.name))?);
            }
        }
        if !figures.is_empty() {
            blocks.push(Block::Heading { text: configuration.heading() });
            blocks.push(Block::Figures { figures });
        }
    }
    if drawn + left == 0 {
        let why = "this needs a configuration with two scenarios that were measured at two loads or more";
        return Ok(Err(Missing { title: TITLE, why: why.to_owned() }));
    }
    if left > 0 {
        let left = counted(left, "more heat map");
        blocks.push(Block::Text {
            text: format!("{left} would make the page too large: `sweepline export --rows curves` has every number."),
        });
    }
    Ok(Ok(Section { id: "heatmaps", title: TITLE, blocks }))
}

/// The curves of one configuration: they have the same endpoint, model, cap and kind of load.
struct Configuration<'s, 'a> {
    name: String,
    axis: curve::Axis,
    /// The curve of each row, with the row's name.
    rows: Vec<(String, &'s Curve<'a>)>,
    /// The loads of all curves, ascending.
    loads: Vec<f64>,
}

/// A part of a configuration, with its number, loads and rows.
type Part<'c, 's, 'a> = (usize, &'c [f64], &'c [(String, &'s Curve<'a>)]);

/// Returns the configurations with at least two rows and two loads.
fn configurations<'s, 'a>(curves: &'s [Curve<'a>]) -> Vec<Configuration<'s, 'a>> {
    let mut all: Vec<Vec<&Curve>> = Vec::new();
    for curve in curves.iter().filter(|curve| curve.rungs.iter().any(|rung| !rung.runs.is_empty())) {
        let is_one = |group: &&mut Vec<&Curve>| {
            let (a, b) = (&group[0].series, &curve.series);
            group[0].axis == curve.axis && (&a.endpoint, &a.model, a.cap) == (&b.endpoint, &b.model, b.cap)
        };
        match all.iter_mut().find(is_one) {
            Some(group) => group.push(curve),
            None => all.push(vec![curve]),
        }
    }
    let has_models = curves.iter().any(|curve| curve.series.model != curves[0].series.model);
    let of = |group: Vec<&'s Curve<'a>>| {
        let first = group[0];
        let mut loads: Vec<f64> = group.iter().flat_map(|curve| curve.rungs.iter().map(|rung| rung.load)).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        let model = if has_models { format!(" · {}", plain(&first.series.model)) } else { String::new() };
        let row = |curve: &&'s Curve<'a>| {
            let several = group.iter().filter(|other| sends(other) == sends(curve)).count() > 1;
            let sweep = if several { format!("{}: ", plain(&curve.series.sweep)) } else { String::new() };
            (format!("{sweep}{}", sends(curve)), *curve)
        };
        Configuration {
            name: format!("{}{model}", arm(first)),
            axis: first.axis,
            rows: group.iter().map(row).collect(),
            loads,
        }
    };
    all.into_iter().map(of).filter(|one| one.rows.len() >= 2 && one.loads.len() >= 2).collect()
}

/// Describes the workload of a curve: its scenario and its values on further axes.
fn sends(curve: &Curve) -> String {
    let axes = curve.series.axes.iter().map(|(axis, value)| format!(" · {}={}", plain(axis), plain(value)));
    format!("{}{}", plain(&curve.series.scenario), axes.collect::<String>())
}

impl<'s, 'a> Configuration<'s, 'a> {
    /// Returns the heading of a configuration: `quick over batch size`.
    fn heading(&self) -> String {
        match self.axis {
            curve::Axis::Qps => format!("{} over the offered rate", self.name),
            curve::Axis::BatchSize => format!("{} over batch size", self.name),
        }
    }

    fn rungs(&self) -> impl Iterator<Item = &'s Rung<'a>> {
        self.rows.iter().flat_map(|(_, curve)| &curve.rungs)
    }

    /// Splits the configuration into parts with as many rows and columns as fit into one figure.
    fn parts(&self) -> Vec<Part<'_, 's, 'a>> {
        let rows = self.rows.chunks(MOST_ROWS);
        let all = rows.flat_map(|rows| self.loads.chunks(MOST_COLUMNS).map(move |loads| (loads, rows)));
        all.enumerate().map(|(number, (loads, rows))| (number + 1, loads, rows)).collect()
    }
}

/// Returns the figures that are shown for a configuration: the figures that the objective limits, or without
/// an objective a high percentile of TTFT (of E2E if there is no TTFT), and then throughput.
fn shown(plan: &Plan, configuration: &Configuration) -> Vec<&'static Ordinate> {
    let known = |reading: &&Ordinate| configuration.rungs().any(|rung| rung.figure(reading).is_some());
    let limited = plan.slo.as_ref().map(limited).unwrap_or_default();
    let limited: Vec<&Ordinate> = limited.iter().filter_map(|name| Ordinate::named(name)).filter(known).collect();
    let first = |names: &[&str]| names.iter().filter_map(|name| Ordinate::named(name)).find(known);
    let tail = || first(&["ttft_p99", "ttft_p95", "ttft_p50", "e2e_p99", "e2e_p95", "e2e_p50"]);
    let latencies = if limited.is_empty() { tail().into_iter().collect() } else { limited };
    latencies.into_iter().chain(first(&["output_throughput", "request_throughput"])).collect()
}

/// Returns the names of the figures that an objective limits.
fn limited(slo: &Slo) -> Vec<String> {
    let Slo { ttft, itl, tpot, e2e, cost_per_million } = slo;
    let latencies = [("ttft", ttft), ("itl", itl), ("tpot", tpot), ("e2e", e2e)];
    let of = latencies.into_iter().flat_map(|(key, limits)| {
        limits.keys().map(move |percentile| format!("{key}_{}", quantile::name(*percentile)))
    });
    of.chain(cost_per_million.map(|_| "cost_per_million_output_tokens".to_owned())).collect()
}

/// A heat map of one figure for a part of a configuration.
struct One<'c, 's, 'a> {
    configuration: &'c Configuration<'s, 'a>,
    reading: &'static Ordinate,
    loads: &'c [f64],
    rows: &'c [(String, &'s Curve<'a>)],
    part: String,
}

/// A value with its row and its load.
struct Place<'c> {
    row: &'c str,
    load: f64,
    value: f64,
}

impl<'c, 's, 'a> One<'c, 's, 'a> {
    fn metric(&self) -> &'static Metric {
        self.reading.metric(self.configuration.axis == curve::Axis::Qps)
    }

    /// Returns the title of the figure: `TTFT p99`.
    fn title(&self) -> String {
        let percentile = self.reading.percentile.map(|percentile| format!(" {}", quantile::name(percentile)));
        format!("{}{}", self.metric().title, percentile.unwrap_or_default())
    }

    /// Returns the measured loads, row by row.
    fn rungs(&self) -> impl Iterator<Item = (&'c str, &'s Rung<'a>)> {
        let of = |(name, curve): &'c (String, &'s Curve<'a>)| {
            curve.rungs.iter().filter(|rung| self.loads.contains(&rung.load)).map(move |rung| (name.as_str(), rung))
        };
        self.rows.iter().flat_map(of)
    }

    fn values(&self) -> impl Iterator<Item = Place<'c>> {
        self.rungs().filter_map(|(row, rung)| {
            let value = rung.figure(self.reading)?.value;
            value.is_finite().then_some(Place { row, load: rung.load, value })
        })
    }

    fn figure(&self, id: &str) -> Result<Option<Figure>, PageError> {
        let least = self.values().min_by(|a, b| a.value.total_cmp(&b.value));
        let most = self.values().max_by(|a, b| a.value.total_cmp(&b.value));
        let (Some(least), Some(most)) = (least, most) else { return Ok(None) };
        let metric = self.metric();
        let unit = metric.unit.symbol();
        let steps = Steps { least: least.value, most: most.value };
        let space = if unit.is_empty() { "" } else { " " };
        let at =
            |found: &Place| format!("{}{space}{unit} ({}, {})", digits(found.value), found.row, self.load(found.load));
        let title =
            format!("{} of {}{}: {} to {}", self.title(), self.configuration.name, self.part, at(&least), at(&most));
        let from = if steps.are_wide() { digits(steps.from()) } else { "0".to_owned() };
        let ends = [from, format!("{} {unit}", digits(most.value))];
        let map = Heat {
            columns: self.loads.iter().map(f64::to_string).collect(),
            axis: axis_title(self.configuration.axis).to_owned(),
            rows: self.rows.iter().map(|(name, curve)| self.row(name, curve, &steps)).collect(),
            ends: ends.map(|end| end.trim_end().to_owned()),
        };
        Ok(Some(Figure {
            id: id.to_owned(),
            title,
            caption: self.caption(&steps),
            metric: Some(Link { key: metric.key, title: metric.title }),
            drawing: heat(&map)?,
            table: self.table(),
        }))
    }

    fn load(&self, load: f64) -> String {
        load_of(self.configuration.axis, load)
    }

    fn row(&self, name: &str, curve: &Curve, steps: &Steps) -> HeatRow {
        let cell = |load: &f64| {
            let rung = curve.rung(*load)?;
            let figure = rung.figure(self.reading).filter(|figure| figure.value.is_finite());
            let unit = self.metric().unit.symbol();
            let said = match figure {
                Some(figure) => {
                    let spread = spread::in_sentence(&figure).map(|spread| format!(", {spread}"));
                    format!("{} {unit}{}", digits(figure.value), spread.unwrap_or_default())
                }
                None => "n/a".to_owned(),
            };
            let (sign, says) = match (rung.answer(), rung.seen().met) {
                (Some(Answer::Misses), _) => (Some(Sign::Missed), "; the objective is missed"),
                (Some(Answer::Undecided), Some(true)) => {
                    (Some(Sign::Undecided), "; the objective was observed to hold, not proven")
                }
                (Some(Answer::Undecided), Some(false)) => {
                    (Some(Sign::Undecided), "; the objective was observed to be missed, not proven")
                }
                (Some(Answer::Undecided), None) => (Some(Sign::Undecided), "; the objective is undecided"),
                (Some(Answer::Holds), _) => (None, "; the objective holds"),
                (None, _) => (None, ""),
            };
            let number = |figure: curve::Figure| {
                let few = if figure.few_samples { "*" } else { "" };
                (format!("{}{few}", short(figure.value)), steps.of(figure.value))
            };
            let text = format!("{name}, {}: {said}{says}", self.load(*load));
            Some(HeatCell { value: figure.map(number), sign, text })
        };
        HeatRow { name: name.to_owned(), cells: self.loads.iter().map(cell).collect() }
    }

    fn caption(&self, steps: &Steps) -> Caption {
        let with_runs = || self.rungs().filter(|(_, rung)| !rung.runs.is_empty());
        let mut said = vec![sizes(with_runs().map(|(_, rung)| rung))];
        let by = if steps.are_wide() { "equal ratios" } else { "equal differences from 0" };
        let mut details = vec![format!(
            "{STEPS} steps of {by}; 95 % intervals (for two repeats, both values) are shown on hover and in the \
             numbers."
        )];
        let (cells, known) = (self.loads.len() * self.rows.len(), self.values().count());
        if known < cells {
            said.push(format!("{} of {cells} cells have no number and are empty.", cells - known));
        }
        let few = self.rungs().filter_map(|(_, rung)| rung.figure(self.reading)).any(|figure| figure.few_samples);
        if few {
            details.push("* from few samples: the true value may lie well away from it.".to_owned());
        }
        let failed: u64 = self.rungs().map(|(_, rung)| rung.failed_requests().0).sum();
        if failed > 0 {
            said.push(failures(failed));
        }
        let missed = self.rungs().filter(|(_, rung)| rung.answer() == Some(Answer::Misses)).count();
        if missed > 0 {
            said.push(format!("Framed and crossed: the whole objective is missed, in {}.", counted(missed, "cell")));
        }
        Caption { shown: said, details }
    }

    fn table(&self) -> Table {
        let key = format!("{}{}", self.reading.name, self.metric().unit.suffix());
        let columns = [
            "configuration",
            "scenario",
            &format!("{}#", self.configuration.axis.name()),
            "runs#",
            "requests#",
            &format!("{key}#"),
            "low#",
            "high#",
            "objective",
        ];
        let caption = format!(
            "{}, 95 % intervals (for two repeats, both values); {}{}",
            self.title(),
            self.configuration.name,
            self.part
        );
        let mut table = Table::new(caption, &columns);
        for (row, rung) in self.rungs() {
            let figure = rung.figure(self.reading);
            let ends = figure.and_then(|found| found.span());
            let value = match figure {
                Some(found) => Cell::marked(found.value, found.few_samples),
                None => Cell::text(&rung.too_few(self.reading).map_or("n/a".to_owned(), |n| format!("n/a (n={n})"))),
            };
            table.rows.push(vec![
                Cell::text(&self.configuration.name),
                Cell::text(row),
                Cell::exact(rung.load),
                Cell::count(rung.runs.len() as u64),
                Cell::count(requests(rung)),
                value,
                Cell::number(ends.map(|[low, _]| low)),
                Cell::number(ends.map(|[_, high]| high)),
                objective(rung),
            ]);
        }
        table
    }
}

/// Maps values to colour steps.
struct Steps {
    least: f64,
    most: f64,
}

impl Steps {
    fn are_wide(&self) -> bool {
        self.least > 0.0 && self.most / self.least >= WIDE
    }

    /// The value at which the colour scale starts.
    fn from(&self) -> f64 {
        if self.are_wide() { self.least } else { 0.0 }
    }

    fn of(&self, value: f64) -> usize {
        let place = |value: f64| if self.are_wide() { value.ln() } else { value };
        let (from, to) = (place(self.from()), place(self.most));
        let share = if to > from { (place(value) - from) / (to - from) } else { 0.0 };
        ((share * STEPS as f64) as usize).min(STEPS - 1)
    }
}

/// Formats a number so that it fits into a cell. The table contains the full number.
fn short(value: f64) -> String {
    match value.abs() {
        huge if huge >= 999_500_000.0 => digits(value),
        large if large >= 999_500.0 => format!("{}M", digits(value / 1e6)),
        large if large >= 99_500.0 => format!("{}k", digits(value / 1e3)),
        _ => digits(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_equal_in_differences_or_in_ratios() {
        let near = Steps { least: 11.3, most: 12.0 };
        assert_eq!([11.3, 12.0].map(|value| near.of(value)), [4, 4], "almost equal values look alike");
        let apart = Steps { least: 2.0, most: 10.0 };
        assert_eq!([2.1, 3.9, 4.1, 9.0, 10.0].map(|value| apart.of(value)), [1, 1, 2, 4, 4]);
        let far = Steps { least: 1.0, most: 100_000.0 };
        assert_eq!([1.0, 9.0, 11.0, 9_000.0, 100_000.0].map(|value| far.of(value)), [0, 0, 1, 3, 4]);
        assert_eq!(Steps { least: 3.0, most: 3.0 }.of(3.0), 4);
        assert_eq!(Steps { least: 0.0, most: 0.0 }.of(0.0), 0);
        assert_eq!(Steps { least: 0.0, most: 5.0 }.of(5.0), 4);
    }

    #[test]
    fn numbers_fit_into_cells() {
        let all = [0.0123, 9.87, 1234.5, 65_432.1, 123_456.0, 1_234_567.0].map(short);
        assert_eq!(all, ["0.012", "9.87", "1234", "65432", "123k", "1.23M"]);
        assert!(all.iter().all(|text| text.chars().count() <= 5));
    }
}
