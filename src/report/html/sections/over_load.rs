//! Draws one figure of a group of curves against their loads: lines with intervals, the objective's limit,
//! and a table of the numbers.

use indexmap::IndexMap;

use super::super::chart::{Axis, Limit, Point, Series, Stroke, lines};
use super::super::error::PageError;
use super::super::naming::{axis_title, load_of};
use super::super::view::{Caption, Cell, Figure, Link, Table, tone};
use super::groups::Group;
use crate::analysis::curve::{self, Curve, Ordinate, Rung};
use crate::analysis::quantile;
use crate::analysis::slo::Answer;
use crate::metrics::{ScaleMark, Unit};
use crate::plan::Plan;
use crate::report::curves::unknown;
use crate::report::format::{digits, plain};
use crate::report::spread;
use crate::units::text::counted;

/// States how many requests failed, and that they count as slower than all others.
pub(super) fn failures(failed: u64) -> String {
    let counts = if failed == 1 { "it counts" } else { "they count" };
    format!("{} failed: {counts} as slower than all others.", counted(failed as usize, "request"))
}

/// A limit is drawn only if it is at most this many times the highest value. A higher limit would squeeze all
/// points to the bottom of the chart.
const LIMIT_WITHIN: f64 = 3.0;

/// A curve, and the label that distinguishes it from other curves in the same figure.
#[derive(Clone, Copy)]
struct Member<'s, 'a> {
    label: &'s str,
    curve: &'s Curve<'a>,
}

/// A chart of one figure of a group of curves against their loads.
pub(super) struct OverLoad<'s, 'a> {
    /// The plan, for its objective.
    pub(super) plan: &'s Plan,
    /// All curves of the page, from which `group` selects.
    pub(super) curves: &'s [Curve<'a>],
    /// The curves that are drawn.
    pub(super) group: &'s Group,
    /// The figure that is drawn.
    pub(super) reading: &'static Ordinate,
    /// The prefix of the figure's id.
    pub(super) prefix: &'static str,
    /// Whether the objective applies to these curves. It does not apply to a class, because it covers all
    /// requests of the mix.
    pub(super) is_judged: bool,
    /// Marks on the scale of a ratio, whose axis is then logarithmic; empty for other figures.
    pub(super) marks: &'static [ScaleMark],
}

impl<'s, 'a> OverLoad<'s, 'a> {
    /// Returns the curves with their distinguishing labels.
    fn members(&self) -> impl Iterator<Item = Member<'s, 'a>> {
        let of = |(at, label): (&usize, &'s String)| Member { label, curve: &self.curves[*at] };
        self.group.members.iter().zip(&self.group.labels).map(of)
    }

    fn rungs(&self) -> impl Iterator<Item = (Member<'s, 'a>, &'s Rung<'a>)> {
        self.members().flat_map(|member| member.curve.rungs.iter().map(move |rung| (member, rung)))
    }

    /// Returns the title of the figure: `TTFT from schedule p99`.
    pub(super) fn title(&self) -> String {
        let metric = self.reading.metric(self.is_open());
        let percentile = self.reading.percentile.map(|percentile| format!(" {}", quantile::name(percentile)));
        format!("{}{}", metric.title, percentile.unwrap_or_default())
    }

    fn is_open(&self) -> bool {
        self.group.axis == curve::Axis::Qps
    }

    fn unit(&self) -> Unit {
        self.reading.metric(self.is_open()).unit
    }

    /// Builds the figure; `None` if no load has a value.
    pub(super) fn figure(&self, number: usize) -> Result<Option<Figure>, PageError> {
        let known: Vec<f64> =
            self.rungs().filter_map(|(_, rung)| rung.figure(self.reading)).map(|found| found.value).collect();
        let Some(most) = known.iter().copied().reduce(f64::max) else { return Ok(None) };
        let highest = self.rungs().filter_map(|(_, rung)| rung.figure(self.reading)?.span()).map(|[_, high]| high);
        // An interval that extends far above all values would squeeze them to the bottom of the chart, so it
        // is truncated. The table of numbers contains its end.
        let most = highest.fold(most, f64::max).min(most * 4.0);
        let limit = self.limit();
        let is_near = |limit: &Limit| limit.at <= most * LIMIT_WITHIN;
        let top = limit.iter().filter(|limit| is_near(limit)).map(|limit| limit.at * 1.08).fold(most, f64::max);
        let loads: Vec<f64> = self.rungs().map(|(_, rung)| rung.load).collect();
        let x = Axis::of_loads(axis_title(self.group.axis), &loads);
        let y = self.axis(&known, top);
        let marks =
            self.marks.iter().map(|mark| Limit { at: mark.at, name: mark.word.to_owned(), is_objective: false });
        let limits: Vec<Limit> = marks.chain(limit.clone()).collect();
        let drawing = lines((&x, &y), &self.series(), &limits)?;
        let metric = self.reading.metric(self.is_open());
        Ok(Some(Figure {
            id: format!("{}-{}-{}", self.prefix, number + 1, self.reading.name),
            title: self.finding(),
            caption: self.caption(limit.as_ref(), &y),
            metric: Some(Link { key: metric.key, title: metric.title }),
            drawing,
            table: self.table(),
        }))
    }

    /// Returns a linear axis from 0 or, for a ratio with marks on its scale, a logarithmic axis that extends
    /// at least to the last mark.
    fn axis(&self, known: &[f64], top: f64) -> Axis {
        let title = format!("{}, {}", self.title(), self.unit().symbol());
        let title = title.trim_end_matches(", ");
        match self.marks.iter().map(|mark| mark.at).reduce(f64::max) {
            None => Axis::from_zero(title, top),
            Some(last) => {
                let all = known.iter().copied().chain([top]);
                Axis::of_multiples(&format!("{title}, log scale"), all, last * 1.15)
            }
        }
    }

    fn series(&self) -> Vec<Series> {
        let of = |(slot, member): (usize, Member)| Series {
            name: Some(member.label.to_owned()),
            slot,
            points: member.curve.rungs.iter().map(|rung| self.point(member, rung)).collect(),
            stroke: Stroke::Points,
        };
        self.members().enumerate().map(of).collect()
    }

    fn point(&self, Member { label, curve }: Member, rung: &Rung) -> Point {
        let figure = rung.figure(self.reading);
        let text = figure.map(|found| {
            let ends = spread::in_sentence(&found).map(|spread| format!(", {spread}"));
            let (load, unit) = (load_of(curve.axis, rung.load), self.unit().symbol());
            format!("{label}, {load}: {} {unit}{}", digits(found.value), ends.unwrap_or_default())
        });
        Point {
            x: rung.load,
            y: figure.map(|found| found.value),
            ends: figure.and_then(|found| found.span()),
            text: text.unwrap_or_default(),
        }
    }

    /// Returns the limit that the objective sets for the figure; `None` if it sets no limit or does not
    /// apply.
    fn limit(&self) -> Option<Limit> {
        if !self.is_judged {
            return None;
        }
        let slo = self.plan.slo.as_ref()?;
        if self.reading.name == "cost_per_million_output_tokens" {
            return slo.cost_per_million.map(|cost| Limit {
                at: cost.to_f64(),
                name: format!("objective ≤ {cost}"),
                is_objective: true,
            });
        }
        let limit = self.reading.limit(slo)?;
        Some(Limit { at: limit.millis(), name: format!("objective ≤ {limit}"), is_objective: true })
    }

    /// Returns the finding for the title: the values at the lightest and the heaviest load, or the range of
    /// values if there are more than two curves.
    fn finding(&self) -> String {
        let unit = self.unit().symbol();
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        let name = self.title();
        let reached: Vec<Reached> = self.members().filter_map(|member| Reached::of(member, self.reading)).collect();
        if !self.marks.is_empty() {
            return self.highest(&name);
        }
        if reached.len() > 2 {
            let values = || reached.iter().flat_map(|one| [one.first.value, one.last.value]);
            let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
            return format!("{name}: {} to {}{unit} in {} configurations", digits(least), digits(most), reached.len());
        }
        let one = |Reached { name, first, last }: &Reached| {
            let at = load_of(self.group.axis, first.load);
            let later = if last.load == first.load {
                String::new()
            } else {
                format!(", {} at {}", digits(last.value), last.load)
            };
            format!("{name} {}{unit} at {at}{later}", digits(first.value))
        };
        format!("{name}: {}", reached.iter().map(one).collect::<Vec<_>>().join("; "))
    }

    /// Returns the finding for a ratio: the highest value, its curve and load, and the marks of the scale
    /// around the value.
    fn highest(&self, name: &str) -> String {
        let all = self.rungs().filter_map(|(member, rung)| Some((member, rung.load, rung.figure(self.reading)?)));
        let Some((Member { label, curve }, load, figure)) = all.max_by(|a, b| a.2.value.total_cmp(&b.2.value)) else {
            return name.to_owned();
        };
        let value = figure.value;
        let ends = spread::in_sentence(&figure).map(|spread| format!("{spread}; "));
        let ends = ends.unwrap_or_default();
        let below = self.marks.iter().rfind(|mark| mark.at <= value).map(|mark| mark.word);
        let above = self.marks.iter().find(|mark| mark.at > value).map(|mark| mark.word);
        let between = match (below, above) {
            (Some(below), Some(above)) => format!("between {below} and {above}"),
            (Some(only), None) | (None, Some(only)) => only.to_owned(),
            (None, None) => String::new(),
        };
        let (served, load) = (plain(&curve.series.served()), load_of(curve.axis, load));
        format!("{served}: {name} at most {} ({ends}{label}, {load}), {between}", digits(value))
    }

    /// Returns the notes that are needed to read the figure.
    fn caption(&self, limit: Option<&Limit>, y: &Axis) -> Caption {
        let mut said = vec![sizes(self.rungs().map(|(_, rung)| rung))];
        let mut details = Vec::new();
        let figures: Vec<curve::Figure> = self.rungs().filter_map(|(_, rung)| rung.figure(self.reading)).collect();
        details.extend(spread::bars(&figures));
        if figures.iter().any(|found| found.span().is_some_and(|[_, high]| !y.holds(high))) {
            details.push(
                "An interval that ends above the figure is truncated there; its end is in the numbers.".to_owned(),
            );
        }
        if figures.iter().any(|found| found.few_samples) {
            details.push("* from few samples: the true value may lie well away from it.".to_owned());
        }
        said.extend(self.not_drawn());
        // A limit that is drawn is named in the legend, so only a limit outside the chart is mentioned.
        let above = limit.filter(|limit| !y.holds(limit.at));
        said.extend(above.map(|limit| format!("The {} lies above the figure.", limit.name)));
        said.extend(self.missed());
        details.push(match self.marks {
            [] => "The vertical axis begins at 0.".to_owned(),
            _ => format!(
                "Lines and the meaning of their values: {}.",
                self.marks.iter().map(ScaleMark::said).collect::<Vec<_>>().join(", ")
            ),
        });
        Caption { shown: said, details }
    }

    /// Describes the loads without a point, the failed requests, and the runs that do not count.
    fn not_drawn(&self) -> Vec<String> {
        let all = self.rungs().count();
        let unknown = self.rungs().filter(|(_, rung)| rung.figure(self.reading).is_none()).count();
        let is_unknown = |rung: &Rung| rung.figure(self.reading).is_none();
        let few = self.rungs().filter(|(_, rung)| is_unknown(rung) && rung.too_few(self.reading).is_some()).count();
        // Whether the load has enough requests but no value, because the percentile lies among failed
        // requests.
        let is_failed = |rung: &Rung| {
            let has_failed = self.reading.percentile.is_some() && rung.failed_requests().0 > 0;
            is_unknown(rung) && rung.too_few(self.reading).is_none() && has_failed
        };
        let failing = self.rungs().filter(|(_, rung)| is_failed(rung)).count();
        let whys = [
            (few, "fewer requests in one of its runs than the percentile needs"),
            (failing, "the percentile lies among failed requests: above every value that is drawn"),
        ];
        let whys: Vec<String> =
            whys.iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{count}: {why}")).collect();
        let why = if whys.is_empty() { String::new() } else { format!(" ({})", whys.join("; ")) };
        let sum = |of: fn(&Rung) -> usize| self.rungs().map(|(_, rung)| of(rung)).sum::<usize>();
        let (invalid, excluded, given_up) =
            (sum(|rung| rung.left_out.len()), sum(|rung| rung.excluded.len()), sum(|rung| rung.given_up.len()));
        let failed: u64 = self.rungs().map(|(_, rung)| rung.failed_requests().0).sum();
        [
            (unknown as u64, format!("n/a at {unknown} of {all} loads{why}: not drawn.")),
            (failed, failures(failed)),
            (invalid as u64, format!("{} excluded as invalid.", counted(invalid, "run"))),
            (excluded as u64, format!("{} excluded.", counted(excluded, "repeat"))),
            (given_up as u64, format!("{} given up: no figures.", counted(given_up, "run"))),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(_, text)| text)
        .collect()
    }

    /// Lists the loads at which the objective as a whole is missed; `None` if there are none.
    fn missed(&self) -> Option<String> {
        if !self.is_judged {
            return None;
        }
        let missed = self.rungs().filter(|(_, rung)| rung.answer() == Some(Answer::Misses));
        let mut places: IndexMap<&str, String> = IndexMap::new();
        for (member, rung) in missed {
            let first = || format!("{} at {}", member.label, load_of(member.curve.axis, rung.load));
            places
                .entry(member.label)
                .and_modify(|said| said.push_str(&format!(", {}", rung.load)))
                .or_insert_with(first);
        }
        let places: Vec<String> = places.into_values().collect();
        (!places.is_empty()).then(|| format!("The whole objective is missed by {}.", places.join("; ")))
    }

    /// Returns a table of the figure's numbers.
    pub(super) fn table(&self) -> Table {
        let key = format!("{}{}", self.reading.name, self.unit().suffix());
        let columns = [
            "configuration",
            &format!("{}#", self.group.axis.name()),
            "runs#",
            "requests#",
            &format!("{key}#"),
            "low#",
            "high#",
            "interval",
            if self.is_judged { "objective" } else { "objective of all requests" },
        ];
        let mut table = Table::new(format!("{}, 95 % intervals; {}", self.title(), self.group.title), &columns);
        for (member, rung) in self.rungs() {
            let figure = rung.figure(self.reading);
            let ends = figure.and_then(|found| found.span());
            let interval = match figure.map(|found| (found.pair, found.ends)) {
                Some((Some(_), _)) => spread::TWO_REPEATS,
                Some((None, Some(ends))) => ends.kind.name(),
                _ => "none",
            };
            let value = match figure {
                Some(found) => Cell::marked(found.value, found.few_samples),
                None => Cell::text(&unknown(rung, self.reading)),
            };
            table.rows.push(vec![
                Cell::text(member.label),
                Cell::exact(rung.load),
                Cell::count(rung.runs.len() as u64),
                Cell::count(requests(rung)),
                value,
                Cell::number(ends.map(|[low, _]| low)),
                Cell::number(ends.map(|[_, high]| high)),
                Cell::text(interval),
                objective(rung),
            ]);
        }
        table
    }
}

/// A load and the figure's value at this load.
#[derive(Clone, Copy)]
struct At {
    load: f64,
    value: f64,
}

/// The values of a curve at the lightest and the heaviest load for which the figure is known.
struct Reached {
    name: String,
    first: At,
    last: At,
}

impl Reached {
    fn of(Member { label, curve }: Member, reading: &Ordinate) -> Option<Reached> {
        let at = |rung: &Rung| Some(At { load: rung.load, value: rung.figure(reading)?.value });
        let mut known = curve.rungs.iter().filter_map(at);
        let first = known.next()?;
        let last = known.next_back().unwrap_or(first);
        Some(Reached { name: label.to_owned(), first, last })
    }
}

/// Describes how many requests each run behind the points has (percentiles are computed per run), and the
/// number of these runs.
pub(super) fn sizes<'r>(rungs: impl Iterator<Item = &'r Rung<'r>>) -> String {
    sizes_of(rungs.flat_map(|rung| &rung.runs).map(|run| run.metrics.counts.requests))
}

/// Returns the same text as [`sizes`], given the number of requests of each run.
pub(super) fn sizes_of(requests: impl Iterator<Item = u64>) -> String {
    let requests: Vec<u64> = requests.collect();
    let (least, most) = (requests.iter().min().copied().unwrap_or(0), requests.iter().max().copied().unwrap_or(0));
    match requests.len() {
        1 => format!("n: {most} requests in 1 run."),
        runs if least == most => format!("n: {most} requests in each of {runs} runs."),
        runs => format!("n: {least} to {most} requests in each of {runs} runs."),
    }
}

/// Returns the number of requests of a load, over all runs that count.
pub(super) fn requests(rung: &Rung) -> u64 {
    rung.runs.iter().map(|run| run.metrics.counts.requests).sum()
}

/// Returns a cell with a load's result under the objective, and with the reasons why runs of the load do not
/// count.
pub(super) fn objective(rung: &Rung) -> Cell {
    let answer = rung.answer().map(Answer::name);
    let given_up = rung.why_given_up().map(|why| format!("given up: {why}"));
    let left_out = rung.why_left_out().map(|why| format!("invalid: {why}"));
    let excluded = rung.why_excluded().map(|why| format!("excluded: {why}"));
    let saturated = rung.is_saturated().then(|| "saturated".to_owned());
    let parts = answer.map(str::to_owned).into_iter().chain(saturated).chain(given_up).chain(left_out).chain(excluded);
    let text = parts.collect::<Vec<_>>().join("; ");
    match answer {
        Some(name) => Cell::toned(&text, tone(name)),
        None if text.is_empty() => Cell::text("none declared"),
        None => Cell::text(&text),
    }
}
