//! The section on the classes of mixes: the latencies and the throughput of each class's requests, at the
//! loads of the whole mix.

use super::super::chart::MOST_SERIES;
use super::super::error::PageError;
use super::super::naming::{configuration, content, load, short};
use super::super::sources::Sources;
use super::super::view::{Block, Cell, Found, Missing, Section, Table};
use super::groups::Group;
use super::over_load::OverLoad;
use super::percentiles::percentile;
use crate::analysis::curve::{Axis, Curve, Ordinate};
use crate::plan::Percentile;
use crate::report::format::plain;
use crate::units::text::counted;

const TITLE: &str = "Classes of mixes";

/// Maximum number of figures in this section.
const MOST_FIGURES: usize = 12;

/// Maximum number of rows of the table of runs.
const MOST_ROWS: usize = 120;

/// Builds the section, or states why it is missing.
pub(crate) fn classes(sources: &Sources) -> Result<Found, PageError> {
    if sources.classes.is_empty() {
        let why = "no run has a mix of scenarios: scenarios: { mixed: { mix: [{ scenario: chat, share: 0.8 }, …] } }";
        return Ok(Err(Missing { title: TITLE, why: why.to_owned() }));
    }
    let curves: Vec<&Curve> = sources.classes.iter().flat_map(|class| &class.curves).collect();
    let names: Vec<&str> =
        sources.classes.iter().flat_map(|class| class.curves.iter().map(|_| class.name.as_str())).collect();
    let curves: Vec<Curve> = curves.into_iter().cloned().collect();
    let text = "The requests of each class, measured in the runs of the whole mix: classes share the server and \
                wait for each other. The load is that of the mix. The objective covers all requests together; \
                the goodput of a class is the share of its own requests that met every threshold. Scraped \
                server metrics and the breakdown of time cover the whole mix: servers do not distinguish its \
                classes.";
    let mut blocks = vec![Block::Text { text: text.to_owned() }];
    let (mut drawn, mut left) = (0, 0);
    for (number, group) in groups(&curves, &names).into_iter().enumerate() {
        let mut figures = Vec::new();
        for reading in shown(&curves, &group) {
            if drawn >= MOST_FIGURES {
                left += 1;
                continue;
            }
            drawn += 1;
            let one = OverLoad {
                plan: sources.plan,
                curves: &curves,
                group: &group,
                reading,
                prefix: "class",
                is_judged: false,
                marks: &[],
            };
            figures.extend(one.figure(number)?);
        }
        if !figures.is_empty() {
            blocks.push(Block::Heading { text: group.title });
            blocks.push(Block::Figures { figures });
        }
    }
    blocks.push(Block::Heading { text: "Each class of each run".to_owned() });
    let (table, rows_left) = table(sources);
    blocks.push(Block::Table { table });
    for (left, what, rows) in [(left, "more figure", "curves"), (rows_left, "more row", "classes")] {
        if left > 0 {
            let left = counted(left, what);
            blocks.push(Block::Text {
                text: format!("{left} would make the page too large: `sweepline export --rows {rows}` has them."),
            });
        }
    }
    Ok(Ok(Section { id: "classes", title: TITLE, blocks }))
}

/// Groups curves so that all classes of one configuration and one mix are drawn together. `names` contains
/// the name of the class of each curve.
fn groups(curves: &[Curve], names: &[&str]) -> Vec<Group> {
    let mut alike: Vec<Vec<usize>> = Vec::new();
    for (at, curve) in curves.iter().enumerate() {
        let is_one = |group: &&mut Vec<usize>| {
            let first = &curves[group[0]];
            first.axis == curve.axis && first.series == curve.series
        };
        match alike.iter_mut().find(is_one) {
            Some(group) => group.push(at),
            None => alike.push(vec![at]),
        }
    }
    let group = |members: &[usize]| {
        let first = &curves[members[0]];
        let by = match first.axis {
            Axis::Qps => "over the offered rate",
            Axis::BatchSize => "over batch size",
        };
        let (sweep, served) = (plain(&first.series.sweep), plain(&first.series.served()));
        Group {
            title: format!("{sweep}: {}, {served} {by}", configuration(first)),
            axis: first.axis,
            members: members.to_vec(),
            labels: members.iter().map(|at| plain(names[*at])).collect(),
        }
    };
    alike.iter().flat_map(|members| members.chunks(MOST_SERIES)).map(group).collect()
}

/// Returns the figures to draw: for each of TTFT, TPOT and E2E, the highest percentile that is known for at
/// least half of the loads, or else the percentile that is known for the most loads.
fn shown(curves: &[Curve], group: &Group) -> Vec<&'static Ordinate> {
    let rungs = || group.members.iter().flat_map(|at| &curves[*at].rungs).filter(|rung| !rung.runs.is_empty());
    let half = rungs().count().div_ceil(2);
    let known = |reading: &&Ordinate| rungs().filter(|rung| rung.figure(reading).is_some()).count();
    let best = |names: &[&str]| {
        let all = || names.iter().filter_map(|name| Ordinate::named(name)).filter(|reading| known(reading) > 0);
        all().find(|reading| known(reading) >= half).or_else(|| all().max_by_key(known))
    };
    let wanted: [&[&str]; 3] =
        [&["ttft_p99", "ttft_p95", "ttft_p50"], &["tpot_p99", "tpot_p50"], &["e2e_p99", "e2e_p95", "e2e_p50"]];
    wanted.into_iter().filter_map(best).collect()
}

/// Returns a table of each class of each run, as in `export --rows classes`, and the number of omitted rows.
fn table(sources: &Sources) -> (Table, usize) {
    let columns = [
        "run",
        "endpoint",
        "mix",
        "class",
        "load",
        "repeat#",
        "requests#",
        "failed#",
        "ttft_p50_ms#",
        "ttft_p99_ms#",
        "tpot_p50_ms#",
        "e2e_p50_ms#",
        "e2e_p99_ms#",
        "goodput_share#",
    ];
    let mut table = Table::new("Goodput: the share of the requests of the class that met every threshold", &columns);
    let all = sources.runs.iter().flat_map(|run| run.classes.iter().map(move |class| (run, class)));
    for (run, class) in all.clone().take(MOST_ROWS) {
        let (labels, metrics) = (run.labels, &class.metrics);
        table.rows.push(vec![
            Cell::text(&short(&labels.run_id)),
            Cell::text(&labels.endpoint),
            Cell::text(&content(labels)),
            Cell::text(&class.class),
            Cell::text(&load(labels)),
            Cell::count(labels.repeat.into()),
            Cell::count(metrics.counts.requests),
            Cell::count(metrics.counts.failed),
            percentile(&metrics.ttft, Percentile::P50),
            percentile(&metrics.ttft, Percentile::P99),
            percentile(&metrics.tpot, Percentile::P50),
            percentile(&metrics.e2e, Percentile::P50),
            percentile(&metrics.e2e, Percentile::P99),
            Cell::number(class.goodput.map(|goodput| goodput.share)),
        ]);
    }
    let left = all.count().saturating_sub(MOST_ROWS);
    (table, left)
}
