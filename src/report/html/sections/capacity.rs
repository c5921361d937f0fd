//! The section on the load that each configuration sustains under the objective and on its cost, as in the
//! output of `capacity`.

use super::super::chart::{Axis, Row, forest};
use super::super::error::PageError;
use super::super::naming::Names;
use super::super::sources::Sources;
use super::super::view::{Block, Caption, Cell, Figure, Found, Link, Missing, Section, Table, tone};
use crate::analysis::capacity::Instance;
use crate::analysis::curve;
use crate::metrics;
use crate::report::capacity::{cheapest, cheapest_line, doubts, failed, notes, other, per_million_ends, priced};
use crate::report::configuration::{Answer, Configuration};
use crate::report::curves::undecided;
use crate::report::format::digits;
use crate::report::scalings;

const TITLE: &str = "Capacity and money";

/// Builds the section, or states why it is missing.
pub(crate) fn capacity(sources: &Sources) -> Result<Found, PageError> {
    let configurations = sources.configurations;
    if configurations.is_empty() {
        let why = "capacity needs an objective, and the plan has none: slo: { ttft: { p99: 500ms } }";
        return Ok(Err(Missing { title: TITLE, why: why.to_owned() }));
    }
    let names = Names::of(sources.curves);
    let name = |at: usize| names.curve(configurations[at].curve);
    let holding: Vec<usize> =
        (0..configurations.len()).filter(|at| matches!(configurations[*at].answer, Answer::Holds { .. })).collect();
    let mut blocks = Vec::new();
    let best: Vec<usize> = cheapest(configurations, None).concat();
    let mut said = Vec::new();
    for group in cheapest(configurations, None) {
        said.push(cheapest_line(configurations, &group, None, &name));
        said.extend(
            doubts(configurations, &group, None, &name).into_iter().map(|doubt| format!("not certain: {doubt}")),
        );
    }
    if best.is_empty() && !holding.is_empty() {
        said.push("cannot determine the cheapest: declare hardware: { price_per_hour } or { owned } for every endpoint that holds".to_owned());
    }
    said.extend(scalings(configurations).iter().map(|measured| measured.line(None)));
    said.extend(failed(configurations).into_iter().map(|line| format!("errors: {line}")));
    said.extend(notes(configurations, &holding, &name, false));
    if !holding.is_empty() {
        let one = Holding { sources, names: &names, holding: &holding, best: &best };
        let figures: Vec<Figure> = [one.limits()?, one.money()?].into_iter().flatten().collect();
        blocks.push(Block::Heading { text: "What one instance sustains, and the cost of its tokens".to_owned() });
        blocks.push(Block::Figures { figures });
        blocks.push(Block::Table { table: one.table() });
    }
    said.extend(configurations.iter().enumerate().filter_map(|(at, one)| other(one, &name(at))));
    if !said.is_empty() {
        blocks.push(Block::List { items: said });
    }
    let of = |(at, one): (usize, &Configuration)| {
        let name = name(at);
        undecided(one.curve, true).into_iter().map(move |line| format!("{name}: {line}"))
    };
    let why: Vec<String> = configurations.iter().enumerate().flat_map(of).collect();
    if !why.is_empty() {
        blocks.push(Block::Folded { title: "Why the objective is undecided at some loads".to_owned(), items: why });
    }
    Ok(Ok(Section { id: "capacity", title: TITLE, blocks }))
}

/// Maximum number of rows of a figure.
const MOST_ROWS: usize = 16;

/// The configurations that meet the objective at some load.
struct Holding<'s, 'a> {
    sources: &'s Sources<'a>,
    names: &'s Names,
    holding: &'s [usize],
    best: &'s [usize],
}

/// One configuration that meets the objective at some load.
struct One<'s> {
    name: String,
    /// The highest load that met the objective in what was seen; `None` if it is not above the load that holds.
    observed: Option<f64>,
    /// Whether a search chose the loads.
    is_search: bool,
    instance: &'s Instance,
    output: &'s curve::Figure,
    is_best: bool,
}

impl<'s> Holding<'s, '_> {
    fn each(&self) -> impl Iterator<Item = One<'s>> {
        self.holding.iter().filter_map(|at| {
            let one = &self.sources.configurations[*at];
            let Answer::Holds { instance, output, .. } = &one.answer else { return None };
            let observed = one.curve.highest().observed.filter(|observed| *observed > instance.holds);
            let (name, is_search) = (self.names.curve(one.curve), one.curve.search.is_some());
            Some(One { name, observed, is_search, instance, output, is_best: self.best.contains(at) })
        })
    }

    /// Builds the figure of limits: for each configuration, the range from the highest load that meets the
    /// objective to the lowest load that misses it.
    fn limits(&self) -> Result<Option<Figure>, PageError> {
        let row = |One { name, observed, is_search, instance, is_best, .. }: One| {
            let Instance { holds, misses, .. } = *instance;
            let missed = misses.map_or("no load is shown to miss".to_owned(), |load| format!("misses at {load}"));
            let held = if is_search { "shown" } else { "holds up to" };
            let seen = observed.map(|load| format!(", observed qps {load}")).unwrap_or_default();
            let text = format!("{name}: {held} qps {holds}{seen}, {missed}");
            Row {
                name: format!("{name}: {missed}"),
                value: holds,
                ends: [holds, misses.unwrap_or(holds)],
                shown: is_best,
                text,
            }
        };
        let rows: Vec<Row> = self.each().take(MOST_ROWS).map(row).collect();
        let said: Vec<String> = rows.iter().take(3).map(|row| row.text.clone()).collect();
        let more = if rows.len() > 3 { format!("; and {} more", rows.len() - 3) } else { String::new() };
        let title = format!("Objective: {}{more}", said.join("; "));
        let caption = [
            "The square is the highest load that holds; the line ends at the lowest load that misses, and the limit \
             lies in between. Without a line, no load is shown to miss: the limit lies above, among undecided loads \
             or beyond the measured ones.",
            "Each end rests on a test that is wrong in at most 5 % of cases.",
        ];
        let mut table = Table::new(
            "Limits of one instance",
            &["configuration", "shown, qps#", "observed, qps#", "misses at, qps#"],
        );
        for One { name, observed, instance, .. } in self.each() {
            let misses = instance.misses.map_or_else(|| Cell::number(None), Cell::exact);
            let observed = Cell::exact(observed.unwrap_or(instance.holds));
            table.rows.push(vec![Cell::text(&name), Cell::exact(instance.holds), observed, misses]);
        }
        self.figure(("capacity-limit", "arrived_rate"), "offered rate, requests/s", (title, &caption), (rows, table))
    }

    /// Builds the cost chart: the cost per million output tokens of each configuration at the highest load
    /// that meets the objective.
    fn money(&self) -> Result<Option<Figure>, PageError> {
        let currency = self.sources.plan.currency;
        let of_whom = format!(
            "In {}, for an instance that runs at the highest load that holds.",
            currency.map_or_else(|| "the plan's currency".to_owned(), |currency| currency.to_string())
        );
        let row = |One { name, instance, output, is_best, .. }: One| {
            let value = instance.per_million()?;
            let ends = per_million_ends(instance, output).unwrap_or([value, value]);
            let money = priced(digits(value), currency);
            let text = format!("{name}: {money} per million output tokens at qps {}", instance.holds);
            Some(Row { name: format!("{name}, qps {}", instance.holds), value, ends, shown: is_best, text })
        };
        let rows: Vec<Row> = self.each().take(MOST_ROWS).filter_map(row).collect();
        let said: Vec<String> = rows.iter().take(3).map(|row| row.text.clone()).collect();
        let more = if rows.len() > 3 { format!("; and {} more", rows.len() - 3) } else { String::new() };
        let title = format!("Money: {}{more}", said.join("; "));
        let caption = [
            of_whom.as_str(),
            "Lines are 95 % intervals (those of the output throughput, inverted), or join the values of two repeats; \
             a point without a line is from one run.",
        ];
        let columns = ["configuration", "money per million output tokens#", "low#", "high#"];
        let mut table = Table::new("Money per million output tokens", &columns);
        for One { name, instance, output, .. } in self.each() {
            let ends = per_million_ends(instance, output);
            let [low, high] = [ends.map(|[low, _]| low), ends.map(|[_, high]| high)];
            table.rows.push(vec![
                Cell::text(&name),
                Cell::number(instance.per_million()),
                Cell::number(low),
                Cell::number(high),
            ]);
        }
        let key = "cost_per_million_output_tokens";
        self.figure(("capacity-money", key), "money per million output tokens", (title, &caption), (rows, table))
    }

    /// Describes on how many requests and runs the results at the highest loads that meet the objective are
    /// based.
    fn sizes(&self) -> String {
        let rungs = self.holding.iter().filter_map(|at| {
            let one = &self.sources.configurations[*at];
            let Answer::Holds { instance, .. } = &one.answer else { return None };
            one.curve.rung(instance.holds)
        });
        format!("At the loads that hold {}", super::over_load::sizes(rungs))
    }

    fn figure(
        &self,
        (id, key): (&str, &str),
        axis: &str,
        (title, caption): (String, &[&str]),
        (rows, table): (Vec<Row>, Table),
    ) -> Result<Option<Figure>, PageError> {
        if rows.is_empty() {
            return Ok(None);
        }
        let x = Axis::from_zero(axis, rows.iter().flat_map(|row| row.ends).fold(0.0, f64::max));
        let mut details: Vec<String> = caption.iter().map(|text| (*text).to_owned()).collect();
        details.push("Filled: the cheapest. The axis begins at 0.".to_owned());
        let mut shown = vec![self.sizes()];
        let (all, drawn) = (self.sources.configurations.len(), rows.len());
        if drawn < all {
            let why = "they hold at no load, are closed loops, lack a price, or are too many, and are listed below";
            shown.push(format!("{} of {all} configurations are not drawn: {why}.", all - drawn));
        }
        let metric = metrics::find(key).map(|metric| Link { key: metric.key, title: metric.title });
        let drawing = forest(&x, &rows, None)?;
        Ok(Some(Figure { id: id.to_owned(), title, caption: Caption { shown, details }, metric, drawing, table }))
    }

    fn table(&self) -> Table {
        let columns = [
            "configuration",
            "shown, qps#",
            "observed, qps#",
            "misses at, qps#",
            "actual, requests/s#",
            "output, tokens/s#",
            "low#",
            "high#",
            "GPUs#",
            "money per million output tokens#",
            "tokens per unit of money#",
            "tokens per joule#",
            "energy by",
            "cheapest",
        ];
        let caption = "What one instance sustains: the limit lies between the load that holds and the one that misses (n/a: none missed); each end \
                   rests on a test that is wrong in at most 5 % of cases. That n instances serve n times as much is an assumption";
        let mut table = Table::new(caption, &columns);
        for One { name, observed, instance, output, is_best, .. } in self.each() {
            table.rows.push(vec![
                Cell::text(&name),
                Cell::exact(instance.holds),
                Cell::exact(observed.unwrap_or(instance.holds)),
                instance.misses.map_or_else(|| Cell::number(None), Cell::exact),
                Cell::number(Some(instance.bears)),
                Cell::number(Some(output.value)),
                Cell::number(output.span().map(|[low, _]| low)),
                Cell::number(output.span().map(|[_, high]| high)),
                instance.gpus.map_or_else(|| Cell::number(None), |gpus| Cell::count(gpus.into())),
                Cell::number(instance.per_million()),
                Cell::number(instance.tokens_per_money()),
                Cell::number(instance.per_joule().map(|(tokens, _)| tokens)),
                Cell::text(instance.per_joule().map_or("n/a", |(_, by)| by)),
                if is_best { Cell::toned("yes", tone("better")) } else { Cell::text("no") },
            ]);
        }
        table
    }
}
