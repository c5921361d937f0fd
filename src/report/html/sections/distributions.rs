//! How latencies are spread over the requests of runs: empirical distributions, the slowest requests stretched.

use super::super::chart::{Axis, Point, Series, lines};
use super::super::error::PageError;
use super::super::naming::{arm, load_of, short};
use super::super::sources::{MeasuredRun, Sources, Spread};
use super::super::view::{Block, Cell, Figure, Found, Link, Missing, Section, Table};
use super::groups::{Group, groups};
use crate::analysis::metric::{self, Get};
use crate::analysis::{Estimate, Summary, quantile};
use crate::metrics;
use crate::report::format::{digits, value};
use crate::units::text::counted;

const TITLE: &str = "Distributions";

/// Most values of a line that show on hover.
const MOST_MARKS: usize = 24;

/// The latencies, each by the keys that it may have.
const SHOWN: [&[&str]; 3] = [&["ttft", "ttft_from_schedule"], &["tpot"], &["e2e", "e2e_from_schedule"]];

/// The section.
pub(crate) fn distributions(sources: &Sources) -> Result<Found, PageError> {
    if sources.spreads.iter().all(|spread| spread.ecdf.steps.is_empty()) {
        let why = "no run that counts has a completed request with a latency";
        return Ok(Err(Missing { title: TITLE, why: why.to_owned() }));
    }
    let text = "Of each configuration the heaviest load that has runs. A step up is a request; the vertical axis stretches the slowest: p99 and \
                p99.9 are as far apart as p90 and p99. Values are plotted at rank ÷ (n + 1), and failed requests lie above all of them, so a \
                line that ends early is of a run with failures.";
    let mut blocks = vec![Block::Text { text: text.to_owned() }];
    if sources.spreads_left > 0 {
        let left = counted(sources.spreads_left, "more run");
        blocks.push(Block::Text {
            text: format!("Of {left} no distribution is drawn: `sweepline export --rows requests` has every request."),
        });
    }
    for (number, group) in groups(sources.curves).into_iter().enumerate() {
        let mut figures = Vec::new();
        for keys in SHOWN {
            let is_meant = |spread: &&Spread| {
                group.members.contains(&spread.curve) && keys.contains(&spread.metric) && !spread.ecdf.steps.is_empty()
            };
            let spreads: Vec<&Spread> = sources.spreads.iter().filter(is_meant).collect();
            let one = One { sources, group: &group, spreads: &spreads };
            figures.extend(one.figure(number)?);
        }
        if !figures.is_empty() {
            blocks.push(Block::Heading { text: group.title });
            blocks.push(Block::Figures { figures });
        }
    }
    Ok(Ok(Section { id: "distributions", title: TITLE, blocks }))
}

/// One latency of one group.
struct One<'s, 'a> {
    sources: &'s Sources<'a>,
    group: &'s Group,
    spreads: &'s [&'s Spread],
}

impl<'s, 'a> One<'s, 'a> {
    fn figure(&self, number: usize) -> Result<Option<Figure>, PageError> {
        let Some(first) = self.spreads.first() else { return Ok(None) };
        let Some(metric) = metrics::find(first.metric) else { return Ok(None) };
        let slowest = self.spreads.iter().filter_map(|spread| spread.ecdf.steps.last()).map(|step| step.value);
        let n = self.spreads.iter().map(|spread| spread.ecdf.n).max().unwrap_or(1);
        let x = Axis::from_zero(format!("{}, {}", metric.title, metric.unit.symbol()), slowest.fold(0.0, f64::max));
        let y = Axis::of_tail("share of requests at or below", n);
        Ok(Some(Figure {
            id: format!("spread-{}-{}", number + 1, metric.key),
            title: self.finding(metric),
            caption: self.caption(),
            metric: Some(Link { key: metric.key, title: metric.title }),
            drawing: lines((&x, &y), &self.series(), &[])?,
            table: self.table(metric),
        }))
    }

    fn name(&self, spread: &Spread) -> String {
        let curve = &self.sources.curves[spread.curve];
        let several = self.spreads.iter().any(|other| other.curve == spread.curve && other.repeat != spread.repeat);
        let repeat = if several { format!(", repeat {}", spread.repeat) } else { String::new() };
        format!("{}, {}{repeat}", arm(curve), load_of(curve.axis, spread.load))
    }

    fn series(&self) -> Vec<Series> {
        let of = |spread: &&Spread| {
            let name = self.name(spread);
            let place = |rank: u64| rank as f64 / (spread.ecdf.n as f64 + 1.0);
            // A step lasts until the next value: to the right at the share before, then up.
            let mut points = Vec::new();
            let mut before = 0.0;
            let steps = &spread.ecdf.steps;
            let every = steps.len().div_ceil(MOST_MARKS).max(1);
            for (number, step) in steps.iter().enumerate() {
                let at = place(step.rank);
                points.push(Point { x: step.value, y: Some(before), ends: None, text: String::new() });
                let is_marked = (steps.len() - 1 - number).is_multiple_of(every);
                let of =
                    format!("{name}: {} of {} requests within {} ms", step.rank, spread.ecdf.n, digits(step.value));
                let text = if is_marked { of } else { String::new() };
                points.push(Point { x: step.value, y: Some(at), ends: None, text });
                before = at;
            }
            let slot = self.group.members.iter().position(|at| *at == spread.curve).unwrap_or(0);
            Series { name: self.entry(spread), slot, points, marked: false }
        };
        self.spreads.iter().map(of).collect()
    }

    /// What the legend calls the first repeat of a curve; none of the others.
    fn entry(&self, spread: &Spread) -> Option<String> {
        let repeats: Vec<&&Spread> = self.spreads.iter().filter(|other| other.curve == spread.curve).collect();
        let is_first = repeats.first().is_some_and(|first| first.run == spread.run);
        let curve = &self.sources.curves[spread.curve];
        let several = if repeats.len() > 1 { format!(", {} repeats", repeats.len()) } else { String::new() };
        is_first.then(|| format!("{}, {}{several}", arm(curve), load_of(curve.axis, spread.load)))
    }

    /// The median and the slowest of each, as far as a title holds them.
    fn finding(&self, metric: &metrics::Metric) -> String {
        let slowest = |spread: &Spread| spread.ecdf.steps.last().map(|step| step.value);
        let half = |spread: &Spread| self.summary(spread, metric)?.percentile(crate::plan::Percentile::P50).value();
        let one = |spread: &&Spread| {
            let half = half(spread).map_or_else(|| "n/a".to_owned(), value);
            let slowest = slowest(spread).map_or_else(|| "n/a".to_owned(), digits);
            format!("{} p50 {half}, slowest {slowest} ms", self.name(spread))
        };
        if self.spreads.len() <= 2 {
            return format!("{}: {}", metric.title, self.spreads.iter().map(one).collect::<Vec<_>>().join("; "));
        }
        let ends = || self.spreads.iter().filter_map(|spread| slowest(spread));
        let (least, most) = (ends().fold(f64::INFINITY, f64::min), ends().fold(0.0, f64::max));
        format!(
            "{}: the slowest requests of {} runs took {} to {} ms",
            metric.title,
            self.spreads.len(),
            digits(least),
            digits(most)
        )
    }

    fn caption(&self) -> Vec<String> {
        let n: Vec<u64> = self.spreads.iter().map(|spread| spread.ecdf.n).collect();
        let (least, most) = (n.iter().min().copied().unwrap_or(0), n.iter().max().copied().unwrap_or(0));
        let n = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let failures: u64 = self.spreads.iter().map(|spread| spread.ecdf.failures).sum();
        let mut said = vec![format!("n: {n} requests of a run's window.")];
        if failures > 0 {
            said.push(format!("{failures} of them failed and lie above every value."));
        }
        said.push("No interval is drawn: those of percentiles are in the numbers.".to_owned());
        said
    }

    fn run(&self, spread: &Spread) -> Option<&'s MeasuredRun<'a>> {
        self.sources.runs.iter().find(|run| run.labels.run_id == spread.run)
    }

    fn summary(&self, spread: &Spread, metric: &metrics::Metric) -> Option<&'s Summary> {
        match metric::get(metric) {
            Get::Summary(get) => self.run(spread).map(|run| get(run.metrics)),
            Get::Scalar(_) | Get::Count(_) | Get::Plan(_) => None,
        }
    }

    /// Percentiles of each run with their intervals, as exports have them.
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
        for spread in self.spreads {
            let Some(summary) = self.summary(spread, metric) else { continue };
            for percentile in quantile::ALL {
                let estimate = summary.percentile(percentile);
                let interval = estimate.interval();
                let end = |of: fn(&crate::analysis::Interval) -> Option<crate::analysis::Value>| {
                    Cell::number(interval.as_ref().and_then(of).and_then(|value| value.exact()))
                };
                table.rows.push(vec![
                    Cell::text(&self.name(spread)),
                    Cell::text(&short(&spread.run)),
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

/// A percentile, or why there is none.
fn known(estimate: Estimate) -> Cell {
    match (estimate.exact(), estimate.value()) {
        (Some(exact), _) => Cell::marked(exact, estimate.few_samples()),
        (None, Some(among_failures)) => Cell::text(&value(among_failures)),
        (None, None) => Cell::text(&estimate.to_string()),
    }
}
