//! Pools of possible runs, from which measurements select the runs to execute: for searches, for
//! optimizations, and for loads that increase until a stop rule applies. All possible runs are known in
//! advance, each with its id. No decisions are made here, and no id depends on a decision.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::plan::model::axis::server_flag;
use crate::plan::model::content::Reuse;
use crate::plan::model::optimize;
use crate::plan::model::search::{MOST_CONFIRMATIONS, MOST_OF_A_LOAD, Objective};
use crate::plan::{Aim, Scalar, Sessions, Slo, StopRule, Sweep};
use crate::units::Nanos;

use super::cell::Cell;
use super::error::Mistake;
use super::planned::PlannedRun;
use super::spec::RunSpec;

/// The parameters of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Searched {
    /// The searched axis: `qps` or `batch_size`.
    pub axis: &'static str,
    /// The resolution, as a share of a load.
    pub within: f64,
    /// The window of the runs that confirm the result; `None` if the result is not confirmed.
    pub confirm: Option<Nanos>,
    /// The ordered list of the objectives that a load must meet; never empty.
    pub meets: Vec<Objective>,
    /// The latencies that the plan's objective limits.
    pub limits: Vec<Objective>,
}

/// The parameters of an `optimize`, which searches for the best server settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimized {
    /// The quantity that the search optimizes.
    pub aim: Aim,
    /// Maximum total time of all runs.
    pub budget: Nanos,
    /// The number of rungs. The windows of the runs become longer with each rung.
    pub rungs: u32,
    /// The possible settings, in the order of the matrix. Each is a text with the values on the
    /// `server` axes.
    pub configurations: Vec<String>,
    /// The latencies that the plan's objective limits.
    pub limits: Vec<Objective>,
}

/// A run of an optimization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// The position of the settings in [`Optimized::configurations`].
    pub configuration: usize,
    /// The rung of the run, counted from 0. The window triples with each rung.
    pub rung: u32,
    /// The number of the run with these settings on this rung, counted from 0. Run 1 is executed only if run
    /// 0 has no result.
    pub repeat: u32,
}

/// How the runs of a pool are selected.
#[derive(Debug, Clone, PartialEq)]
pub enum Chooses {
    /// A search for the highest load that meets the objective.
    Search(Searched),
    /// A search for the best settings of a server, with runs that become longer on each rung.
    Optimize(Optimized),
    /// Loads that are run from the lightest up, until the stop rule is shown to apply.
    Ladder {
        /// The ascending axis: `qps` or `batch_size`.
        axis: &'static str,
        /// The rule that ends the ladder.
        stop: StopRule,
    },
}

impl Chooses {
    /// The axis whose value is selected; `server` stands for all flags of a server.
    pub fn axis(&self) -> &'static str {
        match self {
            Chooses::Optimize(_) => "server",
            Chooses::Search(Searched { axis, .. }) | Chooses::Ladder { axis, .. } => axis,
        }
    }
}

impl Chooses {
    /// Whether the value on this axis is selected by measurements.
    fn is_chosen(&self, axis: &str) -> bool {
        match self {
            Chooses::Optimize(_) => server_flag(axis).is_some(),
            _ => axis == self.axis(),
        }
    }
}

/// A run that measurements may select.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The run itself.
    pub run: PlannedRun,
    /// The load of the run: requests per second, or requests in flight; 0 if settings are selected instead of
    /// loads.
    pub load: f64,
    /// Whether the run confirms the result of a search, with the longer window.
    pub confirms: bool,
    /// The settings and the rung of the run, if settings are selected.
    pub trial: Option<Trial>,
}

/// The possible runs of one cell whose load or settings are not fixed.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// Name of the sweep.
    pub sweep: Arc<str>,
    /// How the runs to execute are selected.
    pub chooses: Chooses,
    /// All possible runs, from the lightest load up, with the repeats of a load together.
    pub members: Vec<Member>,
}

impl Pool {
    /// The possible loads, ascending.
    pub fn loads(&self) -> Vec<f64> {
        let mut loads: Vec<f64> = self.members.iter().map(|member| member.load).collect();
        loads.dedup();
        loads
    }

    /// The unit of the loads: `qps`, `conversations per second`, `users` of conversations, or requests `in
    /// flight`.
    pub fn unit(&self) -> &'static str {
        let scenario = self.members.first().map(|member| &member.run.spec.scenario);
        let converses = scenario.is_some_and(|scenario| scenario.reuse == Reuse::Conversation);
        let arrive = scenario.is_some_and(|scenario| scenario.talk.sessions == Sessions::Open);
        match (self.chooses.axis(), converses) {
            ("qps", true) if arrive => "conversations per second",
            ("qps", _) => "qps",
            (_, true) => "users",
            (_, false) => "in flight",
        }
    }

    /// The position of the member with this load and repeat; `None` if there is no such member. The repeat is
    /// counted from 0, separately for members that confirm and members that do not.
    pub fn find(&self, load: f64, repeat: u32, confirms: bool) -> Option<usize> {
        let members = self.members.iter().enumerate();
        let mut meant = members.filter(|(_, member)| member.load == load && member.confirms == confirms);
        meant.nth(repeat as usize).map(|(at, _)| at)
    }

    /// The title including the sweep: `limit: vllm · llama · chat`.
    pub fn title(&self) -> String {
        format!("{}: {}", self.sweep, self.name())
    }

    /// The title without the sweep: endpoint, model, scenario and the values on further axes.
    pub fn name(&self) -> String {
        let Some(first) = self.members.first() else { return self.sweep.to_string() };
        let values = first.run.cell.iter().filter(|(axis, _)| !self.chooses.is_chosen(axis));
        values.map(|(_, value)| value.to_string()).collect::<Vec<_>>().join(" · ")
    }
}

/// The repeat number of the second run on the first rung; the numbers for the other rungs follow. An
/// `optimize` always has fewer rungs than this number, so the repeat numbers are distinct.
const AGAIN_FROM: u32 = 100;

/// Number of neighboring loads in a search that all have different arrivals and texts.
const NEIGHBOURS: i64 = 8;

impl Searched {
    /// The first repeat of a load. Arrivals and texts depend on the number of the repeat, so the same repeat
    /// has the same arrivals and texts at every load. Comparisons of loads need this, but a search must avoid
    /// it, because it combines runs at several loads as if each were an independent draw. Neighboring loads
    /// of a search therefore have different repeat numbers. The number depends only on the load and the
    /// resolution, so runs are reused after the range is edited.
    fn first_repeat(&self, load: f64) -> u32 {
        let step = (1.0 + self.within).ln() / 2.0;
        let at = (load.ln() / step).round() as i64;
        at.rem_euclid(NEIGHBOURS) as u32 * (MOST_OF_A_LOAD + MOST_CONFIRMATIONS)
    }
}

/// A possible run of a pool.
pub(super) struct Wanted<'c> {
    pub cell: &'c Cell,
    pub load: f64,
    pub repeat: u32,
    /// The window of a confirming run; `None` for an ordinary run.
    pub window: Option<Nanos>,
    /// The settings and the rung, if settings are selected.
    pub trial: Option<Trial>,
}

/// How the runs of a group are selected, and the cells of the group, which differ only in the selected
/// values.
type Group<'c> = (Chooses, Vec<&'c Cell>);

/// Groups the cells of a sweep that differ only in the selected values (loads or settings), and determines
/// how the runs of each group are selected.
pub(super) fn groups<'c>(sweep: &Sweep, slo: Option<&Slo>, cells: &'c [Cell]) -> Vec<Group<'c>> {
    let mut groups: IndexMap<Vec<(&str, String)>, Group> = IndexMap::new();
    for cell in cells {
        let Some(chooses) = chooses(sweep, slo, cell) else { continue };
        let others = cell.iter().filter(|(axis, _)| !chooses.is_chosen(axis));
        let key = others.map(|(axis, value)| (axis, value.to_string())).collect();
        groups.entry(key).or_insert_with(|| (chooses, Vec::new())).1.push(cell);
    }
    groups.into_values().map(|(chooses, cells)| (chooses.over(&cells), cells)).collect()
}

impl Chooses {
    /// Completes an optimization of these cells with their settings and the number of rungs.
    fn over(self, cells: &[&Cell]) -> Chooses {
        let Chooses::Optimize(optimized) = self else { return self };
        let configurations: Vec<String> = cells.iter().map(|cell| settings(cell)).collect();
        Chooses::Optimize(Optimized { rungs: optimize::rungs(configurations.len()), configurations, ..optimized })
    }
}

/// The settings of a cell: `max_num_seqs=64 enable_prefix_caching=false`.
fn settings(cell: &Cell) -> String {
    let flags = cell.iter().filter_map(|(axis, value)| Some(format!("{}={value}", server_flag(axis)?)));
    flags.collect::<Vec<_>>().join(" ")
}

fn chooses(sweep: &Sweep, slo: Option<&Slo>, cell: &Cell) -> Option<Chooses> {
    if let Some((search, (axis, range))) = sweep.search.as_ref().and_then(|search| Some((search, search.axis()?))) {
        return Some(Chooses::Search(Searched {
            axis,
            within: range.within.to_f64(),
            confirm: search.confirmation(),
            meets: search.objectives(slo),
            limits: slo.map(Objective::latencies_of).unwrap_or_default(),
        }));
    }
    if let Some(optimize::Optimize { aim, budget }) = sweep.optimize {
        let limits = slo.map(Objective::latencies_of).unwrap_or_default();
        return Some(Chooses::Optimize(Optimized { aim, budget, rungs: 0, configurations: Vec::new(), limits }));
    }
    // If there is also a rate, the batch size is only a cap.
    let axis = if cell.get("qps").is_some() { "qps" } else { "batch_size" };
    Some(Chooses::Ladder { axis, stop: sweep.stop? })
}

/// All possible runs of a pool, from the lightest load up.
pub(super) fn wanted<'c>(sweep: &Sweep, chooses: &Chooses, cells: &[&'c Cell]) -> Vec<Wanted<'c>> {
    if let Chooses::Optimize(optimized) = chooses {
        let of = |(rung, again)| {
            let trials = cells.iter().enumerate();
            trials.map(move |(configuration, cell)| {
                let trial = Some(Trial { configuration, rung, repeat: u32::from(again) });
                let repeat = if again { AGAIN_FROM + rung } else { rung };
                Wanted { cell, load: 0.0, repeat, window: None, trial }
            })
        };
        let rungs = (0..optimized.rungs).flat_map(|rung| [(rung, false), (rung, true)]);
        return rungs.flat_map(of).collect();
    }
    let mut loads: Vec<(f64, &Cell)> =
        cells.iter().filter_map(|cell| Some((load(cell, chooses.axis())?, *cell))).collect();
    loads.sort_by(|a, b| a.0.total_cmp(&b.0));
    let of = |(load, cell): (f64, &'c Cell)| {
        let (repeats, confirm) = match chooses {
            Chooses::Search(search) => (MOST_OF_A_LOAD, search.confirm),
            Chooses::Ladder { .. } | Chooses::Optimize(_) => (sweep.repeats.at_most, None),
        };
        let first = match chooses {
            Chooses::Search(search) => search.first_repeat(load),
            Chooses::Ladder { .. } | Chooses::Optimize(_) => 0,
        };
        let until = first + repeats;
        let probes = (first..until).map(move |repeat| Wanted { cell, load, repeat, window: None, trial: None });
        // Confirming runs have their own arrivals and texts, so that chance effects in the runs that found
        // the result do not carry over.
        let confirming = confirm.into_iter().flat_map(move |window| {
            let repeats = until..until + MOST_CONFIRMATIONS;
            repeats.map(move |repeat| Wanted { cell, load, repeat, window: Some(window), trial: None })
        });
        probes.chain(confirming)
    };
    loads.into_iter().flat_map(of).collect()
}

fn load(cell: &Cell, axis: &str) -> Option<f64> {
    match cell.get(axis)? {
        Scalar::Number(number) => Some(number.to_f64()),
        _ => None,
    }
}

/// Gives a confirming run this window, unless its own window is longer.
pub(super) fn lengthen(spec: &mut RunSpec, window: Nanos) {
    let measure = &mut spec.phases.measure;
    measure.duration = measure.duration.max(window);
    measure.at_most = measure.at_most.map(|at_most| at_most.max(measure.duration));
}

/// Triples the window of a run for each rung. The first rung has the plan's window.
pub(super) fn at_rung(spec: &mut RunSpec, rung: u32) {
    let times = u64::from(optimize::FACTOR).saturating_pow(rung);
    let measure = &mut spec.phases.measure;
    measure.duration = Nanos(measure.duration.0.saturating_mul(times));
    measure.at_most = measure.at_most.map(|at_most| Nanos(at_most.0.saturating_mul(times)));
}

/// The error for a budget that is too small for one run of every setting on the first rung. If `min_requests`
/// may extend a window, its written length is counted.
pub(super) fn too_small(chooses: &Chooses, members: &[Member]) -> Option<Mistake> {
    let Chooses::Optimize(Optimized { budget, configurations, .. }) = chooses else { return None };
    let first = members.iter().filter(|member| member.trial.is_some_and(|trial| (trial.rung, trial.repeat) == (0, 0)));
    let time = |member: &Member| {
        let phases = &member.run.spec.phases;
        phases.measure_start().saturating_add(phases.idle.unwrap_or_default()).saturating_add(phases.measure.duration)
    };
    let needs = first.map(time).fold(Nanos::ZERO, Nanos::saturating_add);
    (*budget < needs).then_some(Mistake::SmallBudget { budget: *budget, settings: configurations.len(), needs })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::expand::expand;
    use crate::plan::{Format, parse};

    fn pool(from: f64, to: f64) -> Pool {
        let search = serde_json::json!({ "qps": { "from": from, "to": to, "within": "5%" } });
        let sweep = serde_json::json!({ "matrix": { "endpoint": "e", "model": "m" }, "search": search });
        let plan = serde_json::json!({
            "sweepline": 1, "name": "t", "endpoints": { "e": { "engine": "mock" } }, "models": { "m": { "id": "x" } },
            "slo": { "ttft": { "p99": "500ms" } }, "sweeps": { "s": sweep },
        });
        let plan = parse("plan.yaml".as_ref(), &plan.to_string(), Format::Yaml).expect("a plan").plan;
        expand(&plan).expect("expands").pools.remove(0)
    }

    /// Returns the repeats of each load, keyed by the load's text.
    fn repeats(pool: &Pool) -> Vec<(String, BTreeSet<u32>)> {
        let of = |load: f64| {
            let members = pool.members.iter().filter(move |member| member.load == load);
            (load.to_string(), members.map(|member| member.run.repeat).collect())
        };
        pool.loads().into_iter().map(of).collect()
    }

    #[test]
    fn neighbouring_loads_of_a_search_share_no_arrivals_and_an_edited_range_keeps_them() {
        let all = repeats(&pool(1.0, 200.0));
        for (at, (load, own)) in all.iter().enumerate() {
            assert_eq!(own.len(), (MOST_OF_A_LOAD + MOST_CONFIRMATIONS) as usize, "{load}");
            // The upper end of the range, 200, is skipped because it lies between two loads of the grid.
            for (other, theirs) in all[at + 1..].iter().take(6).filter(|(other, _)| other != "200") {
                assert!(own.is_disjoint(theirs), "{load} and {other}");
            }
        }
        let narrow = repeats(&pool(3.0, 50.0));
        let inner = &narrow[1..narrow.len() - 1];
        assert!(inner.len() > 80 && inner.iter().all(|one| all.contains(one)), "{inner:?}");
    }
}
