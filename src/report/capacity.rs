//! What each configuration bears under the objective, and what a load takes of it.

use comfy_table::{Cell, CellAlignment};

use crate::analysis::capacity::{Fleet, Instance, Target};
use crate::analysis::curve::{Bracket, Curve, Figure};
use crate::plan::{Percentile, Slo};
use crate::units::Nanos;

use super::curves::{bracket, differ, title};
use super::format::{self, digits, plain};

/// What a curve says of its endpoint as an instance.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It bears a load under the objective.
    Holds {
        /// What one instance bears, brings and costs.
        instance: Instance,
        /// Between which loads its limit lies.
        bracket: Bracket,
        /// Output tokens per second at the load that holds, with its interval.
        output: Figure,
    },
    /// A closed loop: it says how many requests in flight hold, not how many per second may arrive.
    Closed(Bracket),
    /// No load of it holds, and why.
    Rejected(String),
}

/// One curve and what it says.
pub struct Configuration<'a> {
    /// The curve.
    pub curve: &'a Curve<'a>,
    /// What it says.
    pub answer: Answer,
}

impl Configuration<'_> {
    /// What decides between configurations: money for the target, else money per token; where a price is missing, instances.
    fn price(&self, target: Option<Target>) -> Option<f64> {
        let Answer::Holds { instance, .. } = &self.answer else { return None };
        match target {
            Some(target) => instance.fleet(target).per_month,
            None => instance.per_million(),
        }
    }
}

/// The cheapest configuration for each model and scenario, by money per month at the target, else by money per token. Where one
/// that holds has no price, nothing is called cheapest.
pub fn cheapest(configurations: &[Configuration], target: Option<Target>) -> Vec<usize> {
    let mut best: Vec<usize> = Vec::new();
    for group in groups(configurations) {
        let holding = group.iter().filter(|at| matches!(configurations[**at].answer, Answer::Holds { .. }));
        let priced: Option<Vec<(usize, f64)>> =
            holding.map(|at| Some((*at, configurations[*at].price(target)?))).collect();
        let least = priced.into_iter().flatten().min_by(|a, b| a.1.total_cmp(&b.1));
        best.extend(least.map(|(at, _)| at));
    }
    best
}

/// Configurations that serve the same: one model and scenario.
fn groups(configurations: &[Configuration]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, one) in configurations.iter().enumerate() {
        let series = &one.curve.series;
        let like = |group: &&mut Vec<usize>| {
            let first = &configurations[group[0]].curve.series;
            first.model == series.model && first.scenario == series.scenario
        };
        match groups.iter_mut().find(like) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    groups
}

/// The whole answer, at most 100 columns wide.
pub fn capacity(configurations: &[Configuration], target: Option<Target>, slo: Option<&Slo>) -> String {
    let (models, sweeps) = differ(configurations.iter().map(|one| &one.curve.series));
    let name = |at: usize| title(&configurations[at].curve.series, models, sweeps);
    let mut out = format::fill("", 0, &head(target, slo)).trim_start().to_owned();
    let holding: Vec<usize> =
        (0..configurations.len()).filter(|at| matches!(configurations[*at].answer, Answer::Holds { .. })).collect();
    if !holding.is_empty() {
        out.push_str(&format!("\n{}\n", table(configurations, &holding, target, &name)));
    }
    for at in cheapest(configurations, target) {
        out.push_str(&format::fill("", 4, &cheapest_line(configurations, at, target, &name)));
    }
    if cheapest(configurations, target).is_empty() && !holding.is_empty() {
        let text = "which is cheapest is not known: declare hardware: { price_per_hour } or { owned } of every endpoint that holds";
        out.push_str(&format::fill("", 4, text));
    }
    let others: Vec<String> =
        (0..configurations.len()).filter_map(|at| other(&configurations[at], &name(at))).collect();
    if !others.is_empty() {
        out.push_str("\nnot counted\n");
        others.iter().for_each(|line| out.push_str(&format::fill(" ", 4, line)));
    }
    out
}

fn head(target: Option<Target>, slo: Option<&Slo>) -> String {
    let objective = slo.map(objective).unwrap_or_default();
    match target {
        Some(Target { qps, headroom }) if headroom > 0.0 => {
            format!("to serve {qps} requests/s with {} % to spare, under {objective}", headroom * 100.0)
        }
        Some(Target { qps, .. }) => format!("to serve {qps} requests/s, under {objective}"),
        None => format!("what one instance bears under {objective} (--target-qps N counts instances)"),
    }
}

/// The objective in a line: `ttft p99 ≤ 500ms, itl p99 ≤ 50ms`.
fn objective(slo: &Slo) -> String {
    let Slo { ttft, itl, tpot, e2e, cost_per_million } = slo;
    let of = |name: &'static str, limits: &indexmap::IndexMap<Percentile, Nanos>| -> Vec<String> {
        limits.iter().map(|(percentile, limit)| format!("{name} {} ≤ {limit}", percentile.name())).collect()
    };
    let limits = [of("ttft", ttft), of("itl", itl), of("tpot", tpot), of("e2e", e2e)].concat();
    let cost = cost_per_million.map(|cost| format!("cost per million output tokens ≤ {cost}"));
    limits.into_iter().chain(cost).collect::<Vec<_>>().join(", ")
}

type Name<'a> = &'a dyn Fn(usize) -> String;

fn table(configurations: &[Configuration], holding: &[usize], target: Option<Target>, name: Name) -> String {
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let mut table = format::table();
    let mut header = vec![Cell::new("configuration"), right("max qps\n(misses)".into()), right("output\ntok/s".into())];
    if target.is_some() {
        header.extend(["instances\n(at least)", "GPUs", "money\na month"].map(|text| right(text.into())));
    }
    header.extend(["money\nper M tok", "tok per\nmoney", "tok per\njoule"].map(|text| right(text.into())));
    table.set_header(header);
    for at in holding {
        let Answer::Holds { instance, bracket, output } = &configurations[*at].answer else { continue };
        let misses = bracket.misses.map_or("none".to_owned(), |load| load.to_string());
        let mut cells =
            vec![Cell::new(name(*at)), right(format!("{}\n({misses})", instance.holds)), right(with_ends(output))];
        cells.extend(target.map(|target| fleet(&instance.fleet(target)).map(right)).into_iter().flatten());
        cells.push(right(per_million(instance, output)));
        cells.push(right(or_na(instance.tokens_per_money(), digits)));
        cells.push(right(or_na(instance.tokens_per_joule(), digits)));
        table.add_row(cells);
    }
    format::text(table, 1, &[0])
}

fn or_na(value: Option<f64>, shown: fn(f64) -> String) -> String {
    value.map_or_else(|| "n/a".to_owned(), shown)
}

fn with_ends(figure: &Figure) -> String {
    let ends = figure.ends.map(|ends| format!("\n{}–{}", digits(ends.low), digits(ends.high)));
    format!("{}{}", digits(figure.value), ends.unwrap_or_default())
}

/// Money per million tokens; its interval is that of the output throughput, turned round.
fn per_million(instance: &Instance, output: &Figure) -> String {
    let at = |throughput: f64| Instance { output_throughput: throughput, ..*instance }.per_million();
    let ends = output.ends.and_then(|ends| Some(format!("\n{}–{}", digits(at(ends.high)?), digits(at(ends.low)?))));
    format!("{}{}", or_na(instance.per_million(), digits), ends.unwrap_or_default())
}

fn fleet(fleet: &Fleet) -> [String; 3] {
    let at_least = fleet.at_least.map_or("?".to_owned(), |least| least.to_string());
    [
        format!("{}\n({at_least})", fleet.instances),
        fleet.gpus.map_or("n/a".to_owned(), |gpus| gpus.to_string()),
        or_na(fleet.per_month, |money| format!("{money:.0}")),
    ]
}

fn cheapest_line(configurations: &[Configuration], at: usize, target: Option<Target>, name: Name) -> String {
    let Answer::Holds { instance, .. } = &configurations[at].answer else { return String::new() };
    let series = &configurations[at].curve.series;
    let of = format!("{} on {}", plain(&series.scenario), plain(&series.model));
    match target {
        Some(target) => {
            let fleet = instance.fleet(target);
            let per_million = or_na(fleet.per_million_at_target, digits);
            format!(
                "cheapest for {of}: {}, {} instances, {} a month, {per_million} per million output tokens at that load",
                name(at),
                fleet.instances,
                or_na(fleet.per_month, |money| format!("{money:.0}"))
            )
        }
        None => format!(
            "cheapest for {of}: {}, {} per million output tokens at qps {}",
            name(at),
            or_na(instance.per_million(), digits),
            instance.holds
        ),
    }
}

/// What is said of a configuration that is not in the table.
fn other(one: &Configuration, name: &str) -> Option<String> {
    match &one.answer {
        Answer::Holds { .. } => None,
        Answer::Rejected(why) => Some(format!("{name}: {why}")),
        Answer::Closed(found) => {
            let axis = one.curve.axis.name();
            let text = "a closed loop says nothing of arrivals (sweep `qps` for that)";
            Some(format!("{name}: {text}; the objective {}", bracket(found, axis)))
        }
    }
}
