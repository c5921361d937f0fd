//! What earlier sweeps have found decides about cells: their loads, whether they are left out, whether a gate stops them. A function of
//! the plan and of what is known; the same knowledge, the same runs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::plan::model::take::Use;
use crate::plan::{AskedMetric, Bound, Gate, Plan, Scalar, SkipIf, Sweep, Take};
use crate::units::Decimal;

use super::cell::{Cell, Entry};
use super::evidence::{FoundValue, TakenValue};
use super::known::{Finding, Known, Says};
use super::pending::{Pending, Waits};

/// Why a cell is no run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stop {
    state: Waits,
    why: String,
}

/// The cells of a sweep, by what is known.
pub(super) struct Settled {
    /// Those that are runs.
    pub cells: Vec<Cell>,
    /// The others.
    pub pending: Vec<Pending>,
    /// What the loads of cells follow from, by their ranks.
    pub evidence: HashMap<Vec<u32>, Vec<TakenValue>>,
}

/// What gates say, for every sweep that one stops: its own, or one of a sweep that it comes after.
pub(super) fn gates(plan: &Plan, known: &Known) -> HashMap<String, Stop> {
    let own = |name: &str| stopped(plan.sweeps.get(name)?.gate.as_ref()?, known);
    let mut stops = HashMap::new();
    for name in plan.sweeps.keys() {
        let (mut open, mut seen) = (vec![name.as_str()], BTreeSet::new());
        while let Some(at) = open.pop() {
            if let Some(stop) = own(at) {
                let why = if at == name { stop.why } else { format!("behind the gate of `{at}`: {}", stop.why) };
                stops.insert(name.clone(), Stop { state: stop.state, why });
                break;
            }
            let before = plan.sweeps.get(at).into_iter().flat_map(|sweep| &sweep.after.0);
            open.extend(before.map(String::as_str).filter(|before| seen.insert(*before)));
        }
    }
    stops
}

/// What is known of the cells of `sweep`; without knowledge loads are pending, and nothing is left out.
pub(super) fn settle(
    name: &Arc<str>,
    sweep: &Sweep,
    cells: Vec<Cell>,
    known: Option<&Known>,
    gate: Option<&Stop>,
) -> Settled {
    let mut settled = Settled { cells: Vec::with_capacity(cells.len()), pending: Vec::new(), evidence: HashMap::new() };
    let is_plain = sweep.asks().next().is_none() && gate.is_none();
    if is_plain {
        settled.cells = cells;
        return settled;
    }
    let mut loads = Loads::default();
    let mut seen: HashSet<Vec<(String, Scalar)>> = HashSet::new();
    for cell in cells {
        let skip = || sweep.skip_if.as_ref().zip(known).and_then(|(skip, known)| left_out(skip, &cell, known));
        let filled = match gate.cloned().or_else(skip) {
            Some(stop) => Err(stop),
            None => loads.fill(&cell, known),
        };
        match filled {
            Ok((filled, taken)) => {
                // Two values may come to the same load.
                if !seen.insert(filled.iter().map(|(axis, value)| (axis.to_owned(), value.clone())).collect()) {
                    continue;
                }
                if !taken.is_empty() {
                    settled.evidence.insert(filled.rank().to_vec(), taken);
                }
                settled.cells.push(filled);
            }
            Err(Stop { state, why }) => {
                settled.pending.push(Pending { sweep: name.clone(), cell, repeats: sweep.repeats.at_most, state, why });
            }
        }
    }
    settled.cells = loads.in_one_table(settled.cells);
    settled
}

/// The loads that were taken, as further values of the table of a sweep's cells.
#[derive(Default)]
struct Loads {
    /// The table with what was added; empty before anything was.
    entries: Vec<Entry>,
    /// By the entry that is written and the load that it came to, the entry that has the load.
    made: HashMap<(u32, Decimal), u32>,
}

impl Loads {
    /// The cell with the loads that it takes, and what they follow from.
    fn fill(&mut self, cell: &Cell, known: Option<&Known>) -> Result<(Cell, Vec<TakenValue>), Stop> {
        let (mut at, mut evidence) = (cell.rank().to_vec(), Vec::new());
        for number in &mut at {
            let entry = &cell.table()[*number as usize];
            let Some(take) = &entry.take else { continue };
            let taken = taken(take, &entry.axis, cell, known)?;
            if self.entries.is_empty() {
                self.entries = cell.table().to_vec();
            }
            let load = Scalar::Number(taken.load);
            *number = *self.made.entry((*number, taken.load)).or_insert_with(|| {
                self.entries.push(Entry::new(&entry.axis, &load, entry.place.clone()));
                self.entries.len() as u32 - 1
            });
            evidence.push(taken);
        }
        if evidence.is_empty() {
            return Ok((cell.clone(), evidence));
        }
        Ok((Cell::new(&self.entries.as_slice().into(), &at), evidence))
    }

    /// The cells over one table, which all of them share.
    fn in_one_table(self, cells: Vec<Cell>) -> Vec<Cell> {
        if self.entries.is_empty() {
            return cells;
        }
        let table: Arc<[Entry]> = self.entries.into();
        cells.iter().map(|cell| Cell::new(&table, cell.rank())).collect()
    }
}

/// The findings of a sweep that a cell is about: they agree on every axis that both have, but for loads and for axes that are made one of.
fn about<'k>(known: &'k Known, (from, metric): (&str, AskedMetric), over: &[String], cell: &Cell) -> Vec<&'k Finding> {
    let agrees = |(axis, value): &(String, String)| {
        over.contains(axis) || metric.is_over(axis) || cell.get(axis).is_none_or(|own| own.to_string() == *value)
    };
    let of_sweep = known.findings.iter().filter(|finding| *finding.sweep == *from && finding.metric == metric);
    of_sweep.filter(|finding| finding.cell.iter().all(agrees)).collect()
}

/// The load of a cell.
fn taken(take: &Take, axis: &str, cell: &Cell, known: Option<&Known>) -> Result<TakenValue, Stop> {
    let waits = |why: String| Stop { state: Waits::Pending, why };
    let blocked = |why: String| Stop { state: Waits::Blocked, why };
    let from = &take.from;
    let Some(known) = known else { return Err(waits(format!("waits for `{from}`"))) };
    let about = about(known, (from, take.take.into()), &take.over.0, cell);
    if about.is_empty() {
        return Err(blocked(format!("`{from}` has no cell with these values, and so no {}", take.take.name())));
    }
    let open = about.iter().find_map(|finding| match &finding.says {
        Says::Open(standing) => Some(format!("waits for {}: {standing}", finding.title())),
        _ => None,
    });
    if let Some(why) = open {
        return Err(waits(why));
    }
    let mut found = Vec::with_capacity(about.len());
    for finding in &about {
        let Says::Load { load, is_least, caveats, .. } = &finding.says else {
            return Err(blocked(format!("there is no load to take: {}", without_load(finding))));
        };
        found.push(FoundValue {
            cell: finding.cell.iter().cloned().collect(),
            load: *load,
            at_least: *is_least,
            caveats: caveats.clone(),
            runs: finding.runs.iter().map(ToString::to_string).collect(),
        });
    }
    let (uses, values) = (take.uses.unwrap_or_default(), found.iter().map(|found| found.load));
    let value = match uses {
        Use::Min => values.min(),
        Use::Max => values.max(),
    };
    let load = value.and_then(|value| take.load(value));
    let Some(load) = load else {
        let value = value.map(|value| value.to_string()).unwrap_or_default();
        return Err(blocked(format!("{value} {} × {} comes to no load", take.take.unit(), take.times)));
    };
    let uses = (!take.over.is_empty()).then(|| uses.name().to_owned());
    Ok(TakenValue { axis: axis.to_owned(), from: from.clone(), take: take.take, uses, times: take.times, load, found })
}

/// What a finding says that is no load, or that tells too little.
fn without_load(finding: &Finding) -> String {
    let (title, metric) = (finding.title(), finding.metric);
    match &finding.says {
        Says::Below(load) => {
            format!("{title}: {}, the lightest load, misses the objective", metric.words(load.to_f64()))
        }
        Says::Nothing(why) | Says::Open(why) => format!("{title}: {why}"),
        Says::Load { load, surely, .. } => {
            let words = |load: Decimal| metric.words(load.to_f64());
            let found = format!("{title}: {}", words(*load));
            match surely {
                Some(surely) if surely == load => found,
                Some(surely) => format!("{found} as observed, and surely {} only: prolong `confirm`", words(*surely)),
                None => format!("{found} as observed, and no load surely: prolong `confirm`"),
            }
        }
        Says::Measured { runs: 1, ends: None, .. } => {
            format!("{title}: {} of one run has no interval: give `{}` repeats", measured(finding), finding.sweep)
        }
        Says::Measured { .. } => format!("{title}: {}", measured(finding)),
    }
}

/// `ttft_p99 is 512 ms (498 ms to 530 ms)`; nothing of what is no measured value.
fn measured(finding: &Finding) -> String {
    let Says::Measured { value, ends, .. } = &finding.says else { return String::new() };
    let metric = finding.metric;
    let interval = match ends {
        Some([low, high]) if high.is_infinite() => return format!("{metric} is above {}", metric.words(*low)),
        Some(ends) => format!(" ({})", ends.map(|end| metric.words(end)).join(" to ")),
        None => String::new(),
    };
    format!("{metric} is {}{interval}", metric.words(*value))
}

/// Whether a value lies below a bound; none where that is not known.
fn is_below(says: &Says, bound: Bound) -> Option<bool> {
    match (says, bound) {
        (Says::Load { surely: Some(surely), .. }, Bound::Number(bound)) if *surely >= bound => Some(false),
        // Where it is the heaviest, the highest load may lie above it: that says nothing of a bound that is higher still.
        (Says::Load { load, is_least, .. }, Bound::Number(bound)) => (*load < bound && !is_least).then_some(true),
        (Says::Below(lightest), Bound::Number(bound)) => (*lightest <= bound).then_some(true),
        (Says::Measured { ends: Some([low, high]), .. }, bound) => {
            beyond(*high < bound.to_f64(), *low >= bound.to_f64())
        }
        _ => None,
    }
}

/// Whether a value lies above a bound; none where that is not known.
fn is_above(says: &Says, bound: Bound) -> Option<bool> {
    match (says, bound) {
        (Says::Load { load, is_least: true, .. }, Bound::Number(bound)) => (*load > bound).then_some(true),
        (Says::Load { load, .. }, Bound::Number(bound)) => Some(*load > bound),
        (Says::Below(lightest), Bound::Number(bound)) => (*lightest <= bound).then_some(false),
        (Says::Measured { ends: Some([low, high]), .. }, bound) => {
            beyond(*low > bound.to_f64(), *high <= bound.to_f64())
        }
        _ => None,
    }
}

/// Of an interval: all of it lies beyond a bound, none of it does, or the bound lies within.
fn beyond(all: bool, none: bool) -> Option<bool> {
    if all { Some(true) } else { none.then_some(false) }
}

/// What is wrong with a value, by bounds that it must keep; no answer where that is not known.
fn broken(finding: &Finding, low: Option<Bound>, high: Option<Bound>) -> Option<Option<String>> {
    let tests = [
        low.map(|bound| (is_below(&finding.says, bound), "below", bound)),
        high.map(|bound| (is_above(&finding.says, bound), "above", bound)),
    ];
    let tests: Vec<_> = tests.into_iter().flatten().collect();
    let words = |word: &str, bound: Bound| {
        let metric = finding.metric;
        match &finding.says {
            Says::Load { load, .. } => {
                format!("{}: {metric} is {}, {word} {bound}", finding.title(), metric.words(load.to_f64()))
            }
            Says::Measured { .. } => format!("{}: {}, {word} {bound}", finding.title(), measured(finding)),
            _ => format!("{}, so {metric} is {word} {bound}", without_load(finding)),
        }
    };
    if let Some((_, word, bound)) = tests.iter().find(|(is, ..)| *is == Some(true)) {
        return Some(Some(words(word, *bound)));
    }
    tests.iter().all(|(is, ..)| *is == Some(false)).then_some(None)
}

/// Whether `skip_if` leaves a cell out, or nobody knows.
fn left_out(skip: &SkipIf, cell: &Cell, known: &Known) -> Option<Stop> {
    let about = about(known, (&skip.sweep, skip.metric), &[], cell);
    let told = || about.iter().map(|finding| (finding, broken(finding, skip.below, skip.above)));
    if let Some(why) = told().find_map(|(_, broken)| broken.flatten()) {
        return Some(Stop { state: Waits::Pruned, why });
    }
    let undecided = told().find(|(_, broken)| broken.is_none()).map(|(finding, _)| finding);
    undecided.map(|finding| match &finding.says {
        Says::Open(standing) => {
            Stop { state: Waits::Pending, why: format!("waits for {}: {standing}", finding.title()) }
        }
        _ => Stop {
            state: Waits::Blocked,
            why: format!("whether `skip_if` leaves it out is not known: {}", without_load(finding)),
        },
    })
}

/// Whether a gate stops a sweep.
fn stopped(gate: &Gate, known: &Known) -> Option<Stop> {
    let about = || known.findings.iter().filter(|found| *found.sweep == *gate.sweep && found.metric == gate.metric);
    let told = || about().map(|finding| (finding, broken(finding, gate.at_least, gate.at_most)));
    let missed: Vec<String> = told().filter_map(|(_, broken)| broken.flatten()).collect();
    if !missed.is_empty() {
        return Some(Stop { state: Waits::Stopped, why: missed.join("; ") });
    }
    let open = about().find_map(|finding| match &finding.says {
        Says::Open(standing) => Some(format!("waits for {}: {standing}", finding.title())),
        _ => None,
    });
    if let Some(why) = open {
        return Some(Stop { state: Waits::Pending, why });
    }
    let undecided = told().find(|(_, broken)| broken.is_none()).map(|(finding, _)| without_load(finding));
    let nothing = || about().next().is_none().then(|| format!("`{}` found nothing", gate.sweep));
    undecided.or_else(nothing).map(|why| Stop { state: Waits::Undecided, why })
}
