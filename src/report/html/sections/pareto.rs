//! The section on Pareto fronts: the loads of configurations for which no other load is at least as good in
//! both figures and better in one. The section draws the fronts that `curves` lists.

use super::super::chart::{Axis, Spot, scatter};
use super::super::error::PageError;
use super::super::naming::load_of;
use super::super::sources::Sources;
use super::super::view::{Block, Caption, Cell, Figure, Found, Link, Missing, Section, Table, tone};
use crate::analysis::curve::{
    self, Curve, FRONTS, Front, Ordinate, Rung, Series, alike, labels, money_front, on_front,
};
use crate::metrics::{Metric, Unit};
use crate::report::format::{digits, plain};
use crate::report::fronts::left_out;
use crate::report::spread;
use crate::units::Currency;
use crate::units::text::counted;

const TITLE: &str = "Pareto fronts";

/// Maximum number of points in all figures together. With this limit, a page with a thousand runs stays below
/// five megabytes.
const MOST_POINTS: usize = 200;

/// Builds the section, or states why it is missing.
pub(crate) fn pareto(sources: &Sources) -> Result<Found, PageError> {
    let curves = sources.curves;
    let fronts = [FRONTS[0], FRONTS[1], money_front(sources.plan.slo.as_ref())];
    let on: Vec<Vec<Vec<bool>>> = fronts.iter().map(|front| on_front(curves, front)).collect();
    let text = "Each point is a configuration at a load. Those on the line are the Pareto front: no other one \
                is as good in both figures and better in one. The choice among them depends on which figure \
                matters more.";
    let mut blocks = vec![Block::Text { text: text.to_owned() }];
    let (mut drawn, mut left) = (0, 0);
    for (number, group) in alike(curves, |curve| &curve.series).into_iter().enumerate() {
        let mut figures = Vec::new();
        let series: Vec<&Series> = group.iter().map(|at| &curves[*at].series).collect();
        let labels: Vec<String> = labels(&series).iter().map(|label| plain(label)).collect();
        for (front, on) in fronts.iter().zip(&on) {
            let one = One { curves, group: &group, labels: &labels, on, front, currency: sources.plan.currency };
            let points = one.points();
            // A single load offers no choice.
            if points.iter().filter(|point| point.values.is_some()).count() < 2 {
                continue;
            }
            if drawn + points.len() > MOST_POINTS {
                left += 1;
                continue;
            }
            drawn += points.len();
            figures.push(one.figure(number, &points)?);
        }
        if !figures.is_empty() {
            blocks.push(Block::Heading { text: plain(&curves[group[0]].series.served()) });
            blocks.push(Block::Figures { figures });
        }
    }
    if drawn + left == 0 {
        let why = "this needs two loads at which the server was shown to keep up and both figures are known: \
                   throughput, and the speed of a user or the p99 of E2E; or a price, and the latency of the \
                   objective";
        return Ok(Err(Missing { title: TITLE, why: why.to_owned() }));
    }
    if left > 0 {
        let left = counted(left, "more front");
        blocks.push(Block::Text {
            text: format!("{left} would make the page too large: `sweepline export --rows curves` has every point."),
        });
    }
    Ok(Ok(Section { id: "pareto", title: TITLE, blocks }))
}

/// One front among curves of the same requests.
struct One<'s, 'a> {
    curves: &'s [Curve<'a>],
    /// Indices of the curves of the same requests.
    group: &'s [usize],
    /// The label of each curve of the group.
    labels: &'s [String],
    on: &'s [Vec<bool>],
    front: &'s Front,
    currency: Option<Currency>,
}

/// A load of a curve, which is a point of the figure.
struct Point<'s, 'a> {
    curve: &'s Curve<'a>,
    rung: &'s Rung<'a>,
    /// The curve's index in the group.
    slot: usize,
    /// The two figures of the load; `None` if the load cannot be on the front.
    values: Option<[f64; 2]>,
    is_on: bool,
}

impl<'s, 'a> One<'s, 'a> {
    fn points(&self) -> Vec<Point<'s, 'a>> {
        let of = |(slot, at): (usize, &usize)| {
            let (curve, on) = (&self.curves[*at], &self.on[*at]);
            let point = move |(rung, on): (&'s Rung<'a>, &bool)| Point {
                curve,
                rung,
                slot,
                values: self.front.values(rung),
                is_on: *on,
            };
            curve.rungs.iter().zip(on).map(point).collect::<Vec<_>>()
        };
        self.group.iter().enumerate().flat_map(of).collect()
    }

    fn readings(&self) -> [Option<&'static Ordinate>; 2] {
        self.front.of.map(Ordinate::named)
    }

    fn is_open(&self) -> bool {
        self.group.iter().any(|at| self.curves[*at].axis == curve::Axis::Qps)
    }

    fn metric(&self, which: usize) -> Option<&'static Metric> {
        Some(self.readings()[which]?.metric(self.is_open()))
    }

    /// Returns the axis of a figure, with a title like `output throughput, tok/s`.
    fn axis(&self, which: usize, most: f64) -> Axis {
        let Some(reading) = self.readings()[which] else { return Axis::from_zero("", most) };
        let metric = reading.metric(self.is_open());
        let of = match reading.percentile {
            Some(percentile) => format!("{} {}", metric.title, crate::analysis::quantile::name(percentile)),
            None => metric.title.to_owned(),
        };
        Axis::from_zero(format!("{of}, {}", self.unit(which)).trim_end_matches(", ").to_owned(), most)
    }

    /// Returns the unit of a figure; for money, the plan's currency.
    fn unit(&self, which: usize) -> String {
        match (self.metric(which).map(|metric| metric.unit), self.currency) {
            (Some(Unit::Money), Some(currency)) => currency.to_string(),
            (unit, _) => unit.map_or("", Unit::symbol).to_owned(),
        }
    }

    /// Returns the name of a point: `quick, batch size 8`.
    fn name(&self, point: &Point) -> String {
        format!("{}, {}", self.configuration(point), load_of(point.curve.axis, point.rung.load))
    }

    /// Returns the label of a point's curve, with the sweep if curves of several sweeps have this label.
    fn configuration(&self, point: &Point) -> String {
        let label = &self.labels[point.slot];
        let is_same = |(at, other): &(&usize, &String)| *other == label && self.curves[**at].axis == point.curve.axis;
        let several = self.group.iter().zip(self.labels).filter(is_same).count() > 1;
        let sweep = if several { format!("{}: ", plain(&point.curve.series.sweep)) } else { String::new() };
        format!("{sweep}{label}")
    }

    fn figure(&self, number: usize, points: &[Point<'s, 'a>]) -> Result<Figure, PageError> {
        let mut known: Vec<(&Point, [f64; 2])> =
            points.iter().filter_map(|point| Some((point, point.values?))).collect();
        known.sort_by(|a, b| a.1[0].total_cmp(&b.1[0]));
        // The axis covers the highest value, and the intervals that end at most 1.5 times as high.
        let most = |which: usize| {
            let highest = known.iter().map(|(_, values)| values[which]).fold(0.0, f64::max);
            let on = known.iter().filter(|(point, _)| point.is_on);
            let ends = on.filter_map(|(point, _)| Some(self.figures(point)[which]?.span()?[1]));
            ends.filter(|high| *high <= highest * 1.5).fold(highest * 1.04, f64::max)
        };
        let (x, y) = (self.axis(0, most(0)), self.axis(1, most(1)));
        let spots: Vec<_> = known.iter().map(|(point, values)| self.spot(point, *values)).collect();
        let metric = self.metric(1).or_else(|| self.metric(0));
        Ok(Figure {
            id: format!("front-{}-{}", number + 1, self.front.of.join("-")),
            title: self.finding(&known),
            caption: self.caption(points, &known, (&x, &y)),
            metric: metric.map(|metric| Link { key: metric.key, title: metric.title }),
            drawing: scatter((&x, &y), &spots)?,
            table: self.table(points),
        })
    }

    fn spot(&self, point: &Point, [x, y]: [f64; 2]) -> Spot {
        let name = self.name(point);
        let said = |which: usize, value: f64| format!("{} {}", digits(value), self.unit(which)).trim_end().to_owned();
        let beaten = if point.is_on { "" } else { "; not on the front" };
        Spot {
            x,
            y,
            ends: self.figures(point).map(|found| found?.span()),
            text: format!("{name}: {}, {}{beaten}", said(0, x), said(1, y)),
            name: point.is_on.then_some(name),
            slot: point.slot,
        }
    }

    fn figures(&self, point: &Point) -> [Option<curve::Figure>; 2] {
        self.readings().map(|reading| point.rung.figure(reading?))
    }

    /// Returns the finding for the title: the number of points on the front, and their names.
    fn finding(&self, known: &[(&Point, [f64; 2])]) -> String {
        const MOST: usize = 3;
        let on: Vec<String> =
            known.iter().filter(|(point, _)| point.is_on).map(|(point, _)| self.name(point)).collect();
        let more = if on.len() > MOST { format!(" and {} more", on.len() - MOST) } else { String::new() };
        let served = self.group.first().map(|at| plain(&self.curves[*at].series.served())).unwrap_or_default();
        let (count, all) = (on.len(), known.len());
        let verb = if count == 1 { "is" } else { "are" };
        let names = on.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join("; ");
        format!("{served}, {}: {count} of {all} loads {verb} on the Pareto front ({names}{more})", self.front.title)
    }

    fn caption(&self, points: &[Point], known: &[(&Point, [f64; 2])], (x, y): (&Axis, &Axis)) -> Caption {
        let way = match self.front.is_less_better() {
            [false, false] => "right and high",
            [false, true] => "right and low",
            [true, false] => "left and high",
            [true, true] => "left and low",
        };
        let mut said = vec![
            super::over_load::sizes(known.iter().map(|(point, _)| point.rung)),
            format!(
                "Better is {way}. Grey circles are not on the front: another load is as good in both figures and \
                 better in one."
            ),
        ];
        let mut details = vec!["The order of points whose bars overlap is not certain.".to_owned()];
        let figures: Vec<curve::Figure> = known.iter().flat_map(|(point, _)| self.figures(point)).flatten().collect();
        details.extend(spread::bars(&figures));
        if figures.iter().all(|found| found.span().is_none()) {
            details.clear();
            said.push(
                "There is no interval (repeats would give one): a point just off the front may belong on it."
                    .to_owned(),
            );
        }
        let is_cut = |(point, _): &(&Point, [f64; 2])| {
            let [first, second] = self.figures(point).map(|found| Some(found?.span()?[1]));
            let is_off = |high: Option<f64>, axis: &Axis| high.is_some_and(|high| !axis.holds(high));
            point.is_on && (is_off(first, x) || is_off(second, y))
        };
        if known.iter().any(is_cut) {
            details.push(
                "An interval that ends outside the figure is not drawn on that side; its end is in the numbers.".into(),
            );
        }
        if figures.iter().any(|found| found.few_samples) {
            details.push("* from few samples: the true value may lie well away from it.".to_owned());
        }
        if known.len() < points.len() {
            let why = left_out(points.iter().map(|point| point.rung), self.front);
            said.push(format!("{} of {} loads are not drawn{why}.", points.len() - known.len(), points.len()));
        }
        details.push("Both axes begin at 0.".to_owned());
        Caption { shown: said, details }
    }

    fn table(&self, points: &[Point]) -> Table {
        // The columns have the same names as in `export --rows curves`.
        let key = |which: usize, end: &str| {
            let suffix = self.metric(which).map_or("", |metric| metric.unit.suffix());
            format!("{}{end}{suffix}#", self.front.of[which])
        };
        let keys: Vec<String> = (0..2).flat_map(|which| ["", "_low", "_high"].map(|end| key(which, end))).collect();
        let columns = ["configuration", "axis", "load#"].into_iter().chain(keys.iter().map(String::as_str));
        let columns: Vec<&str> = columns.chain(["on the front"]).collect();
        let mut table =
            Table::new(format!("{}, 95 % intervals (for two repeats, both values)", self.front.title), &columns);
        for point in points {
            let configuration = self.configuration(point);
            let mut row =
                vec![Cell::text(&configuration), Cell::text(point.curve.axis.name()), Cell::exact(point.rung.load)];
            for found in self.figures(point) {
                let ends = found.and_then(|found| found.span());
                row.push(
                    found.map_or_else(|| Cell::number(None), |found| Cell::marked(found.value, found.few_samples)),
                );
                row.push(Cell::number(ends.map(|[low, _]| low)));
                row.push(Cell::number(ends.map(|[_, high]| high)));
            }
            let why = || left_out(std::iter::once(point.rung), self.front);
            row.push(match (point.values, point.is_on) {
                (None, _) => Cell::text(&format!("does not count{}", why().replace("; 1 ", ": "))),
                (Some(_), true) => Cell::toned("yes", tone("better")),
                (Some(_), false) => Cell::text("no"),
            });
            table.rows.push(row);
        }
        table
    }
}
