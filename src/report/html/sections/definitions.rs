//! The definition of every metric on the page, from the table of metrics.

use indexmap::IndexSet;

use super::super::view::{Block, Definition, Section};
use crate::metrics::{Better, METRICS};

/// The section. Metrics are given by their keys, in the order of the table.
pub(crate) fn definitions(shown: &IndexSet<&str>) -> Section {
    let of = |metric: &crate::metrics::Metric| {
        let better = match metric.better {
            Better::Lower => "lower is better",
            Better::Higher => "higher is better",
            Better::Neither => "neither direction is better",
        };
        let unit = metric.unit.name();
        let null = if metric.null_when.is_empty() { String::new() } else { format!(" n/a: {}.", metric.null_when) };
        Definition {
            key: metric.key,
            title: metric.title,
            unit: if unit.is_empty() { better.to_owned() } else { format!("{unit}, {better}") },
            text: format!("{}.{null}", metric.definition),
        }
    };
    let definitions = METRICS.iter().filter(|metric| shown.contains(metric.key)).map(of).collect();
    let text = "95 % intervals: within a run, between order statistics of its requests, with their effective number \
                if they depend on each other; for several runs, Student's t over runs. docs/METRICS.md \
                has every rule.";
    let blocks = vec![Block::Text { text: text.to_owned() }, Block::Definitions { definitions }];
    Section { id: "definitions", title: "Definitions", blocks }
}
