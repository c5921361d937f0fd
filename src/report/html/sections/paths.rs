//! The section on the paths of searches and ladders: the loads in the order of their runs, each with its
//! result.

use super::super::chart::{Axis, Limit, Point, Series, Stroke, lines};
use super::super::error::PageError;
use super::super::naming::short;
use super::super::sources::Sources;
use super::super::view::{Block, Caption, Cell, Figure, Section, Table, tone};
use crate::report::format::plain;
use crate::report::{Trail, TrailStep};

/// Maximum number of figures in this section; further paths have only a table.
const MOST_FIGURES: usize = 12;

/// The possible results of a step, each with its name in the legend.
const ANSWERS: [(Option<&str>, &str); 4] = [
    (Some("holds"), "meets the objective"),
    (Some("misses"), "misses it"),
    (Some("undecided"), "undecided"),
    (None, "inconclusive"),
];

/// Builds the section; `None` if no load was chosen based on earlier results.
pub(crate) fn paths(sources: &Sources) -> Result<Option<Section>, PageError> {
    if sources.trails.is_empty() {
        return Ok(None);
    }
    let text = "The loads in the order in which they were requested: each depends on the results of the runs \
        before it.";
    let mut blocks = vec![Block::Text { text: text.to_owned() }];
    let mut figures = Vec::new();
    let mut tables = Vec::new();
    for (number, trail) in sources.trails.iter().enumerate() {
        // A single load is not a path.
        if number < MOST_FIGURES && trail.steps.len() > 1 {
            figures.push(figure(trail, number)?);
        } else if !trail.trials.is_empty() {
            tables.push(Block::Table { table: table_of_trials(trail) });
        } else {
            tables.push(Block::Table { table: table(trail) });
        }
    }
    if !figures.is_empty() {
        blocks.push(Block::Figures { figures });
    }
    blocks.extend(tables);
    let stands = sources.trails.iter().flat_map(|trail| {
        let stands = format!("{}: {}.", trail.title(), trail.standing);
        let left_out = trail.left_out().map(|why| format!("{}: {why}.", trail.title()));
        std::iter::once(stands).chain(left_out)
    });
    blocks.push(Block::List { items: stands.map(|line| plain(&line)).collect() });
    Ok(Some(Section { id: "paths", title: "The path of each search", blocks }))
}

/// Builds the figure of the load at each step, with a marker for its result.
fn figure(trail: &Trail, number: usize) -> Result<Figure, PageError> {
    let count = trail.steps.len();
    let every = count.div_ceil(12).max(1);
    let ticks = (1..=count).step_by(every).map(|step| (step as f64, step.to_string())).collect();
    let x = Axis::of_places(format!("step of the {}", trail.chooses), count as f64 + 0.5, ticks);
    let most = trail.steps.iter().map(|step| step.load).fold(0.0, f64::max);
    let y = Axis::from_zero(axis_title(trail), most);
    let line = |(name, load): (&str, Option<f64>)| {
        let load = load?;
        Some(Limit { at: load, name: format!("{name}: {load} {}", trail.unit()), is_objective: true })
    };
    let found = match trail.shown == trail.observed {
        true => vec![("shown and observed", trail.shown)],
        false => vec![("shown", trail.shown), ("observed", trail.observed)],
    };
    let found: Vec<Limit> = found.into_iter().filter_map(line).collect();
    let drawing = lines((&x, &y), &series(trail), &found)?;
    Ok(Figure {
        id: format!("path-{}", number + 1),
        title: plain(&format!("{}: {}", trail.title(), trail.headline().0)),
        caption: caption(trail),
        metric: None,
        drawing,
        table: table(trail),
    })
}

fn axis_title(trail: &Trail) -> &'static str {
    if trail.axis == "qps" { "offered rate, requests/s" } else { "requests in flight" }
}

/// Returns a thin line through all steps, and for each possible result the markers of the steps with this
/// result.
fn series(trail: &Trail) -> Vec<Series> {
    let points = |is_shown: &dyn Fn(&TrailStep) -> bool, with_text: bool| -> Vec<Point> {
        let of = |(at, step): (usize, &TrailStep)| Point {
            x: (at + 1) as f64,
            y: is_shown(step).then_some(step.load),
            ends: None,
            text: if with_text { plain(&hover(trail, at, step)) } else { String::new() },
        };
        trail.steps.iter().enumerate().map(of).collect()
    };
    let way = Series { name: None, slot: ANSWERS.len(), points: points(&|_| true, false), stroke: Stroke::Thin };
    let answered = ANSWERS.iter().enumerate().filter_map(|(slot, (answer, name))| {
        let is_it = |step: &TrailStep| step.answer == *answer;
        // A gap follows each marker, so that no line joins the markers of one result; the thin line already
        // joins all steps.
        let points: Vec<Point> = points(&is_it, true).into_iter().filter(|point| point.y.is_some()).collect();
        let apart = points.into_iter().flat_map(|point| {
            let gap = Point { y: None, text: String::new(), ..point.clone() };
            [point, gap]
        });
        let points: Vec<Point> = apart.collect();
        (!points.is_empty()).then(|| Series { name: Some((*name).to_owned()), slot, points, stroke: Stroke::Points })
    });
    std::iter::once(way).chain(answered).collect()
}

fn hover(trail: &Trail, at: usize, step: &TrailStep) -> String {
    format!("step {}: {} {}, {}", at + 1, step.load, trail.unit(), step.told())
}

fn caption(trail: &Trail) -> Caption {
    let requests: Vec<u64> = trail.steps.iter().map(|step| step.requests).collect();
    let (least, most) = (requests.iter().min().unwrap_or(&0), requests.iter().max().unwrap_or(&0));
    let counted = if least == most { least.to_string() } else { format!("{least} to {most}") };
    let runs = trail.steps.iter().map(|step| step.runs.len()).sum::<usize>();
    let each = format!("{} steps with {runs} runs, {counted} requests in each step.", trail.steps.len());
    let shown = std::iter::once(each).chain(trail.left_out().map(|why| plain(&format!("{why}."))));
    let details = vec![
        "Each answer covers the whole objective and whether the server kept up, based on the runs of that step alone."
            .to_owned(),
        "The vertical axis begins at 0.".to_owned(),
    ];
    Caption { shown: shown.collect(), details }
}

/// Returns a table of all steps.
fn table(trail: &Trail) -> Table {
    let load = format!("{}#", trail.axis);
    let columns = ["step#", &load, "purpose", "runs", "requests#", "observed", "answer"];
    let mut table = Table::new(plain(&format!("The path of {}", trail.title())), &columns);
    for (at, step) in trail.steps.iter().enumerate() {
        let runs = step.runs.iter().map(|run| short(run)).collect::<Vec<_>>().join(", ");
        table.rows.push(vec![
            Cell::count(at as u64 + 1),
            Cell::exact(step.load),
            Cell::text(&step.what_for()),
            Cell::text(&runs),
            Cell::count(step.requests),
            Cell::text(&step.observed()),
            Cell::toned(&step.said(), step.answer.map_or("plain", tone)),
        ]);
    }
    table
}

/// Returns a table of the runs of all settings that were tried.
fn table_of_trials(trail: &Trail) -> Table {
    let unit = trail.trials.first().map(|trial| format!("{}#", trial.unit)).unwrap_or_default();
    let columns = ["step#", "rung#", "window", "settings", "run", &unit, "then"];
    let mut table = Table::new(plain(&format!("The path of {}", trail.title())), &columns);
    for (at, trial) in trail.trials.iter().enumerate() {
        table.rows.push(vec![
            Cell::count(at as u64 + 1),
            Cell::count(trial.rung as u64),
            Cell::text(&trial.window.to_string()),
            Cell::text(&trial.settings),
            Cell::text(&short(&trial.run)),
            trial.value.map_or_else(|| Cell::text("n/a"), Cell::exact),
            Cell::text(&trial.fate()),
        ]);
    }
    table
}
