//! The section on the results of each load: throughput, TTFT and TPOT against the batch size and against
//! the offered rate, with intervals and a line for the objective.

use super::super::error::PageError;
use super::super::naming::Names;
use super::super::sources::Sources;
use super::super::view::{Block, Found, Missing, Section};
use super::groups::{Group, groups};
use super::over_load::OverLoad;
use crate::analysis::curve::{Curve, Ordinate};
use crate::plan::Slo;
use crate::report::curves::lines as said;

const TITLE: &str = "Throughput and latency over load";

/// Maximum number of charts in this section; further figures have only a table. With this limit, a page with
/// a thousand runs stays far below five megabytes.
const MOST_FIGURES: usize = 28;

/// Builds the section, or states why it is missing.
pub(crate) fn loads(sources: &Sources) -> Result<Found, PageError> {
    let curves = sources.curves;
    let names = Names::of(curves);
    let (mut blocks, mut drawn) = (Vec::new(), 0);
    for (number, group) in groups(curves).into_iter().enumerate() {
        let readings = shown(curves, &group, sources.plan.slo.as_ref());
        if readings.is_empty() {
            continue;
        }
        blocks.push(Block::Heading { text: group.title.clone() });
        let mut figures = Vec::new();
        for reading in readings {
            let one = OverLoad {
                plan: sources.plan,
                curves,
                group: &group,
                reading,
                prefix: "fig",
                is_judged: true,
                marks: &[],
            };
            if drawn >= MOST_FIGURES {
                blocks.push(Block::Table { table: one.table() });
                continue;
            }
            figures.extend(one.figure(number)?);
            drawn += 1;
        }
        if !figures.is_empty() {
            blocks.push(Block::Figures { figures });
        }
        let sentences = group.members.iter().flat_map(|at| {
            let name = names.curve(&curves[*at]);
            said(&curves[*at], false).into_iter().map(move |line| format!("{name}: {line}"))
        });
        blocks.push(Block::List { items: sentences.collect() });
    }
    if blocks.is_empty() {
        let why = "no counted run has a throughput or a latency under load: see the table of runs";
        return Ok(Err(Missing { title: TITLE, why: why.to_owned() }));
    }
    Ok(Ok(Section { id: "loads", title: TITLE, blocks }))
}

/// Returns the figures of a group: throughput, the figures that the objective limits, and the median and a
/// high percentile of latencies.
fn shown(curves: &[Curve], group: &Group, slo: Option<&Slo>) -> Vec<&'static Ordinate> {
    let rungs = || group.members.iter().flat_map(|at| &curves[*at].rungs);
    let known = |reading: &Ordinate| rungs().filter(|rung| rung.figure(reading).is_some()).count();
    // From each list, the first figure that is known for at least half of the loads is chosen; if there is
    // none, the figure that is known for the most loads.
    let half = rungs().filter(|rung| !rung.runs.is_empty()).count().div_ceil(2);
    let best = |keys: &[&str]| {
        let all = || keys.iter().filter_map(|key| Ordinate::named(key)).filter(|reading| known(reading) > 0);
        all().find(|reading| known(reading) >= half).or_else(|| all().max_by_key(|reading| known(reading)))
    };
    let wanted: [&[&str]; 6] = [
        &["output_throughput", "request_throughput"],
        &["ttft_p50"],
        &["ttft_p99", "ttft_p95"],
        &["tpot_p50"],
        &["tpot_p99"],
        &["e2e_p99", "e2e_p95", "e2e_p50"],
    ];
    let mut shown: Vec<&'static Ordinate> = wanted.into_iter().filter_map(best).collect();
    // Figures that the objective limits are drawn as soon as one load has a value, and come after throughput.
    for reading in Ordinate::limited(slo).into_iter().filter(|reading| known(reading) > 0) {
        shown.retain(|other| other.name != reading.name);
        shown.insert(shown.len().min(1), reading);
    }
    shown
}
