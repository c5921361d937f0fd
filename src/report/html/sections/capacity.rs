//! How much each configuration bears under the objective, and what that costs: what `capacity` says.

use super::super::naming::Names;
use super::super::sources::Sources;
use super::super::view::{Block, Cell, Found, Missing, Section, Table, tone};
use crate::report::capacity::{Answer, cheapest, cheapest_line, doubts, failed, notes, other};

const TITLE: &str = "Capacity and money";

/// The section.
pub(crate) fn capacity(sources: &Sources) -> Found {
    let configurations = sources.configurations;
    if configurations.is_empty() {
        let why =
            "capacity is how much is served within an objective, and the plan has none: slo: { ttft: { p99: 500ms } }";
        return Err(Missing { title: TITLE, why: why.to_owned() });
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
        said.push("which is cheapest is not known: declare hardware: { price_per_hour } or { owned } of every endpoint that holds".to_owned());
    }
    said.extend(failed(configurations).into_iter().map(|line| format!("errors: {line}")));
    said.extend(notes(configurations, &holding, &name));
    if !holding.is_empty() {
        blocks.push(Block::Table { table: table(sources, &names, &holding, &best) });
    }
    said.extend(configurations.iter().enumerate().filter_map(|(at, one)| other(one, &name(at))));
    if !said.is_empty() {
        blocks.push(Block::List { items: said });
    }
    Ok(Section { id: "capacity", title: TITLE, blocks })
}

fn table(sources: &Sources, names: &Names, holding: &[usize], best: &[usize]) -> Table {
    let columns = [
        "configuration",
        "holds up to, qps#",
        "misses at, qps#",
        "came, requests/s#",
        "output, tokens/s#",
        "low#",
        "high#",
        "GPUs#",
        "money per million output tokens#",
        "tokens per unit of money#",
        "tokens per joule#",
        "cheapest",
    ];
    let caption = "What one instance bears: the limit lies between the load that holds and the one that misses (n/a: none missed); each end \
                   rests on a test that is wrong in at most 5 % of cases";
    let mut table = Table::new(caption, &columns);
    for at in holding {
        let one = &sources.configurations[*at];
        let Answer::Holds { instance, output, .. } = &one.answer else { continue };
        let is_best = best.contains(at);
        table.rows.push(vec![
            Cell::text(&names.curve(one.curve)),
            Cell::exact(instance.holds),
            instance.misses.map_or_else(|| Cell::number(None), Cell::exact),
            Cell::number(Some(instance.bears)),
            Cell::number(Some(output.value)),
            Cell::number(output.ends.map(|ends| ends.low)),
            Cell::number(output.ends.map(|ends| ends.high)),
            instance.gpus.map_or_else(|| Cell::number(None), |gpus| Cell::count(gpus.into())),
            Cell::number(instance.per_million()),
            Cell::number(instance.tokens_per_money()),
            Cell::number(instance.tokens_per_joule()),
            if is_best { Cell::toned("yes", tone("better")) } else { Cell::text("no") },
        ]);
    }
    table
}
