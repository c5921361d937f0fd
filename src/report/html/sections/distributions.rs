//! The section on the empirical distributions of latencies over the requests of runs, on an axis that gives
//! more space to the slowest requests.

use strum::IntoEnumIterator;

use super::super::chart::{Axis, Point, Series, Stroke, lines};
use super::super::error::PageError;
use super::super::naming::{load_of, short};
use super::super::sources::{Chosen, MeasuredRun, RepeatSpread, Sources, Spread};
use super::super::view::{Block, Caption, Cell, Figure, Found, Link, Missing, Section, Table};
use super::groups::{Group, groups};
use super::over_load::sizes_of;
use crate::analysis::ecdf::Ecdf;
use crate::analysis::metric::{self, Get};
use crate::analysis::{Estimate, Summary, quantile};
use crate::metrics;
use crate::report::format::{digits, value};
use crate::units::text::counted;

const TITLE: &str = "Distributions";

/// Maximum number of values per line that are shown on hover.
const MOST_MARKS: usize = 16;

/// Approximate number of markers along a thick line, the last of which is at its end.
const MARKERS: usize = 5;

/// The latencies, each with the keys of the metrics that may represent it.
const SHOWN: [&[&str]; 3] = [&["ttft", "ttft_from_schedule"], &["tpot"], &["e2e", "e2e_from_schedule"]];

/// Builds the section, or states why it is missing.
pub(crate) fn distributions(sources: &Sources) -> Result<Found, PageError> {
    if sources.spreads.iter().all(|spread| spread.together.steps.is_empty()) {
        let why = "no counted run has a completed request with a latency";
        return Ok(Err(Missing { title: TITLE, why: why.to_owned() }));
    }
    let judged = sources.spreads.iter().any(|spread| spread.chosen != Chosen::Heaviest);
    let of = match judged {
        true => {
            "For each configuration, the highest load that meets the objective, the first that misses it, and \
            the heaviest."
        }
        false => "For each configuration, the heaviest load that has runs.",
    };
    let text = format!(
        "{of} Each step up is a request; the vertical axis stretches the slowest ones: p99 and p99.9 are as far \
        apart as p90 and p99."
    );
    let how = "Values are plotted at rank ÷ (n + 1), and failed requests lie above all of them, so a line that \
               ends early belongs to a load with failures. Intervals are not drawn: those of percentiles are in \
               the numbers, run by run.";
    let mut blocks =
        vec![Block::Text { text }, Block::Folded { title: "How it is drawn".to_owned(), items: vec![how.to_owned()] }];
    if sources.spreads_left > 0 {
        let left = counted(sources.spreads_left, "more run");
        blocks.push(Block::Text {
            text: format!(
                "Distributions of {left} are not drawn: `sweepline export --rows requests` has every \
                request."
            ),
        });
    }
    for (number, group) in groups(sources.curves).into_iter().enumerate() {
        for chosen in Chosen::iter() {
            let mut figures = Vec::new();
            for keys in SHOWN {
                let is_meant = |spread: &&Spread| {
                    group.members.contains(&spread.curve)
                        && keys.contains(&spread.metric)
                        && spread.chosen == chosen
                        && !spread.together.steps.is_empty()
                };
                let spreads: Vec<&Spread> = sources.spreads.iter().filter(is_meant).collect();
                let one = One { sources, group: &group, spreads: &spreads, chosen };
                figures.extend(one.figure(number)?);
            }
            if !figures.is_empty() {
                blocks.push(Block::Heading { text: format!("{}, {}", group.title, at(chosen)) });
                blocks.push(Block::Figures { figures });
            }
        }
    }
    Ok(Ok(Section { id: "distributions", title: TITLE, blocks }))
}

/// Describes at which loads the distributions of a figure were measured.
fn at(chosen: Chosen) -> &'static str {
    match chosen {
        Chosen::Holds => "at the highest load that meets the objective",
        Chosen::Misses => "at the first load that misses the objective",
        Chosen::Heaviest => "at the heaviest load",
    }
}

/// The distributions of one latency in a group of curves, at one kind of load.
struct One<'s, 'a> {
    sources: &'s Sources<'a>,
    group: &'s Group,
    spreads: &'s [&'s Spread],
    chosen: Chosen,
}

impl<'s, 'a> One<'s, 'a> {
    fn figure(&self, number: usize) -> Result<Option<Figure>, PageError> {
        let Some(first) = self.spreads.first() else { return Ok(None) };
        let Some(metric) = metrics::find(first.metric) else { return Ok(None) };
        let slowest = self.spreads.iter().filter_map(|spread| spread.together.steps.last()).map(|step| step.value);
        let n = self.spreads.iter().map(|spread| spread.together.n).max().unwrap_or(1);
        let x = Axis::from_zero(format!("{}, {}", metric.title, metric.unit.symbol()), slowest.fold(0.0, f64::max));
        let y = Axis::of_tail("share of requests at or below", n);
        let kind = match self.chosen {
            Chosen::Holds => "holds-",
            Chosen::Misses => "misses-",
            Chosen::Heaviest => "",
        };
        Ok(Some(Figure {
            id: format!("spread-{kind}{}-{}", number + 1, metric.key),
            title: self.finding(metric),
            caption: self.caption(),
            metric: Some(Link { key: metric.key, title: metric.title }),
            drawing: lines((&x, &y), &self.series(), &[])?,
            table: self.table(metric),
        }))
    }

    /// Returns the place of the spread's curve in the group.
    fn slot(&self, spread: &Spread) -> usize {
        self.group.members.iter().position(|at| *at == spread.curve).unwrap_or(0)
    }

    /// Returns the name of a line: `quick, batch size 8`.
    fn name(&self, spread: &Spread) -> String {
        let curve = &self.sources.curves[spread.curve];
        format!("{}, {}", self.group.labels[self.slot(spread)], load_of(curve.axis, spread.load))
    }

    fn name_of_run(&self, spread: &Spread, run: &RepeatSpread) -> String {
        let repeat = if spread.repeats.len() > 1 { format!(", repeat {}", run.repeat) } else { String::new() };
        format!("{}{repeat}", self.name(spread))
    }

    /// Returns the lines: for each load, each repeat as a thin line, and the requests of all repeats together
    /// as a thick line.
    fn series(&self) -> Vec<Series> {
        let of = |spread: &&Spread| {
            let slot = self.slot(spread);
            let has_several = spread.repeats.len() > 1;
            let (name, count) = (self.name(spread), spread.repeats.len());
            let entry = match has_several {
                true => format!("{name}: {count} repeats together; thin: each"),
                false => name.clone(),
            };
            let thin = spread.repeats.iter().filter(|_| has_several).map(|run| {
                let points = points(&run.ecdf, "", 0);
                Series { name: None, slot, points, stroke: Stroke::Thin }
            });
            let points = points(&spread.together, &name, MOST_MARKS);
            thin.chain([Series { name: Some(entry), slot, points, stroke: Stroke::Marked(MARKERS) }])
                .collect::<Vec<_>>()
        };
        self.spreads.iter().flat_map(of).collect()
    }

    /// Returns the finding for the title: the median and the slowest request of up to two distributions; for
    /// more, the range of the slowest requests.
    fn finding(&self, metric: &metrics::Metric) -> String {
        let slowest = |spread: &Spread| spread.together.steps.last().map(|step| step.value);
        let one = |spread: &&Spread| {
            let of_run =
                |run: &RepeatSpread| self.summary(run, metric)?.percentile(crate::plan::Percentile::P50).value();
            let known: Option<Vec<_>> = spread.repeats.iter().map(of_run).collect();
            let half = known.and_then(|halves| {
                let least = halves.iter().min_by(|a, b| a.or_infinity().total_cmp(&b.or_infinity()))?;
                let most = halves.iter().max_by(|a, b| a.or_infinity().total_cmp(&b.or_infinity()))?;
                let (least, most) = (value(*least), value(*most));
                Some(if least == most { least } else { format!("{least} to {most}") })
            });
            let half = half.unwrap_or_else(|| "n/a".to_owned());
            let slowest = slowest(spread).map_or_else(|| "n/a".to_owned(), digits);
            format!("{} p50 {half}, slowest {slowest} ms", self.name(spread))
        };
        if self.spreads.len() <= 2 {
            return format!("{}: {}", metric.title, self.spreads.iter().map(one).collect::<Vec<_>>().join("; "));
        }
        let ends = || self.spreads.iter().filter_map(|spread| slowest(spread));
        let (least, most) = (ends().fold(f64::INFINITY, f64::min), ends().fold(0.0, f64::max));
        format!(
            "{}: the slowest requests of {} configurations took {} to {} ms",
            metric.title,
            self.spreads.len(),
            digits(least),
            digits(most)
        )
    }

    fn caption(&self) -> Caption {
        let runs = || self.spreads.iter().flat_map(|spread| &spread.repeats);
        let failures: u64 = runs().map(|run| run.ecdf.failures).sum();
        let mut said = vec![sizes_of(runs().map(|run| run.ecdf.n))];
        match failures {
            0 => {}
            1 => said.push("1 request failed and lies above every value.".to_owned()),
            failures => said.push(format!("{failures} requests failed and lie above every value.")),
        }
        let mut details = Vec::new();
        if self.spreads.iter().any(|spread| spread.repeats.len() > 1) {
            details.push("Thick: the repeats of a load together. Thin, in the same colour: each repeat.".to_owned());
        }
        Caption { shown: said, details }
    }

    fn run(&self, run: &RepeatSpread) -> Option<&'s MeasuredRun<'a>> {
        self.sources.runs.iter().find(|other| other.labels.run_id == run.run)
    }

    fn summary(&self, run: &RepeatSpread, metric: &metrics::Metric) -> Option<&'s Summary> {
        match metric::get(metric) {
            Get::Summary(get) => self.run(run).map(|run| get(run.metrics)),
            Get::Scalar(_) | Get::Count(_) | Get::Plan(_) => None,
        }
    }

    /// Returns a table of the percentiles of each run with their intervals, as in exports.
    fn table(&self, metric: &metrics::Metric) -> Table {
        let columns = [
            "run",
            "id",
            "requests#",
            "failed#",
            "percentile",
            &format!("{}{}#", metric.key, metric.unit.suffix()),
            "low#",
            "high#",
        ];
        let mut table = Table::new(format!("Percentiles of {}, 95 % intervals within the run", metric.title), &columns);
        let runs = self.spreads.iter().flat_map(|spread| spread.repeats.iter().map(move |run| (spread, run)));
        for (spread, run) in runs {
            let Some(summary) = self.summary(run, metric) else { continue };
            for percentile in quantile::ALL {
                let estimate = summary.percentile(percentile);
                let interval = estimate.interval();
                let end = |of: fn(&crate::analysis::Interval) -> Option<crate::analysis::Value>| {
                    Cell::number(interval.as_ref().and_then(of).and_then(|value| value.exact()))
                };
                table.rows.push(vec![
                    Cell::text(&self.name_of_run(spread, run)),
                    Cell::text(&short(&run.run)),
                    Cell::count(summary.n),
                    Cell::count(summary.failures),
                    Cell::text(quantile::name(percentile)),
                    known(estimate),
                    end(|interval| interval.low),
                    end(|interval| interval.high),
                ]);
            }
        }
        table
    }
}

/// Converts the steps of a distribution to a line, with values on hover at up to `most_marks` steps.
fn points(ecdf: &Ecdf, name: &str, most_marks: usize) -> Vec<Point> {
    let place = |rank: u64| rank as f64 / (ecdf.n as f64 + 1.0);
    let every = ecdf.steps.len().div_ceil(most_marks.max(1)).max(1);
    let (mut points, mut before) = (Vec::new(), 0.0);
    // The share stays the same until the next value: the line goes right at the previous share, and then up.
    for (number, step) in ecdf.steps.iter().enumerate() {
        let share = place(step.rank);
        points.push(Point { x: step.value, y: Some(before), ends: None, text: String::new() });
        let is_marked = most_marks > 0 && (ecdf.steps.len() - 1 - number).is_multiple_of(every);
        let of = || format!("{name}: {} of {} requests within {} ms", step.rank, ecdf.n, digits(step.value));
        let text = if is_marked { of() } else { String::new() };
        points.push(Point { x: step.value, y: Some(share), ends: None, text });
        before = share;
    }
    points
}

/// Returns a cell with a percentile, or with the reason why there is none.
fn known(estimate: Estimate) -> Cell {
    match (estimate.exact(), estimate.value()) {
        (Some(exact), _) => Cell::marked(exact, estimate.few_samples()),
        (None, Some(among_failures)) => Cell::text(&value(among_failures)),
        (None, None) => Cell::text(&estimate.to_string()),
    }
}
