//! The parts of a drawn graph: nodes with their states, edges, and the facts about runs and searches
//! needed to draw them.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::RunId;

/// If a sweep has more runs than this, its runs are drawn as one node, which shows their number. The same
/// limit applies to the cells of a sweep that are not runs.
pub(crate) const DRAWN_RUNS: usize = 200;

/// The drawing. Nodes are in execution order, followed by searches and series with the loads that they skip,
/// and by the cells that have not (yet) become runs. Edges are positions among the nodes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Drawing {
    /// The nodes.
    pub nodes: Vec<DrawnNode>,
    /// Pairs of positions among the nodes, from 0. The second node of a pair waits for the first.
    pub edges: BTreeSet<(usize, usize)>,
}

/// A drawn node.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DrawnNode {
    /// The kind of node: serve, probe, run, runs (several runs, drawn as one), gate, search, ladder,
    /// optimize, pruned (a load that a ladder skips) or cell (a cell that has not become a run, because
    /// it depends on the findings of an earlier sweep).
    pub kind: &'static str,
    /// The text of the node.
    pub label: String,
    /// Number of nodes of the graph that this node represents; for a skipped load or a cell, the number
    /// of runs.
    pub count: usize,
    /// The id of the run. Absent for nodes that do not represent a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// For a run: pending, done, given_up, pruned (not needed for the result) or left_out (the budget
    /// skips its sweep); for several runs also partly; for a search or a ladder: pending, searching or
    /// done; for a load that a ladder skips: pruned; for a cell: pending, blocked, pruned, left_out,
    /// stopped or undecided. Absent for other nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// The outcome: the state of a search or a ladder, the result of a run that a search or a ladder
    /// requested, the reason why a run or a load is skipped, or the reason why a cell waits. Absent if
    /// there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// The load that a search found, in the unit of its axis. Absent if none was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The search or ladder that requested the run or skips the load, as a position among the nodes. Absent
    /// if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<usize>,
}

/// The progress of a plan's runs.
#[derive(Debug, Default)]
pub struct States {
    /// The progress of each run of the expansion, by position. A run beyond the end of the list is
    /// pending.
    pub runs: Vec<RunState>,
    /// The searches and ladders.
    pub pools: Vec<PoolState>,
}

/// The progress of a run.
#[derive(Debug, Clone)]
pub struct RunState {
    /// The state: pending, done, given_up, pruned or left_out.
    pub state: &'static str,
    /// The reason why the run is skipped; `None` if it is not skipped.
    pub why: Option<String>,
}

impl RunState {
    /// Creates a state without a reason.
    pub fn of(state: &'static str) -> RunState {
        RunState { state, why: None }
    }
}

/// The state of a search or a ladder.
#[derive(Debug)]
pub struct PoolState {
    /// The name of the sweep to which the search or ladder belongs.
    pub sweep: String,
    /// The kind of node: search or ladder.
    pub kind: &'static str,
    /// The title of the search or ladder.
    pub title: String,
    /// The state: pending, searching or done.
    pub state: &'static str,
    /// The state of the search or ladder, in words.
    pub standing: String,
    /// The load that was found, in the unit of its axis; `None` if none was found.
    pub found: Option<f64>,
    /// The ids of the requested runs, in the order of the requests, each with the run's result or
    /// purpose.
    pub runs: Vec<(RunId, String)>,
    /// The loads that the ladder skips.
    pub pruned: Vec<PrunedLoad>,
}

/// A load that a ladder skips.
#[derive(Debug)]
pub struct PrunedLoad {
    /// The label of the load.
    pub label: String,
    /// The reason why the load is skipped.
    pub why: String,
    /// Number of runs that the load would have had.
    pub runs: usize,
}

impl Default for DrawnNode {
    fn default() -> DrawnNode {
        DrawnNode {
            kind: "run",
            label: String::new(),
            count: 1,
            id: None,
            state: None,
            said: None,
            value: None,
            asked_by: None,
        }
    }
}
