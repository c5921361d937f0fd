//! What a drawn graph is made of: nodes with their states, edges, and what is to be known of runs and searches to draw them.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::RunId;

/// A sweep with more runs than this is drawn as one node that says how many it stands for.
pub(crate) const DRAWN_RUNS: usize = 200;

/// What is drawn: nodes in execution order, behind them searches and ladders with what they leave out, then the cells that are no runs or not
/// yet, and edges as positions among them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Drawing {
    /// The nodes.
    pub nodes: Vec<DrawnNode>,
    /// From, to, as positions among the nodes, from 0: the second waits for the first.
    pub edges: BTreeSet<(usize, usize)>,
}

/// One node as it is drawn.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DrawnNode {
    /// What it does: serve, probe, run, runs (several, drawn as one), gate, search, ladder, optimize, pruned (a load that a ladder leaves
    /// out) or cell (what an earlier sweep finds decides about it, so that it is no run or not yet).
    pub kind: &'static str,
    /// What it says.
    pub label: String,
    /// How many nodes of the graph it stands for; of what is left out and of a cell, how many runs.
    pub count: usize,
    /// The run's id; absent for other nodes, and for several runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Of a run pending, done, given_up, pruned (enough is known without it) or left_out (the budget leaves its sweep out); of several runs
    /// the same, or partly; of a search or a ladder pending, searching or done; of a load that a ladder leaves out pruned; of a cell pending,
    /// blocked, pruned, left_out, stopped or undecided. Absent for other nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// What it came to: how a search or a ladder stands, what a run that one asked for said, why a run or a load is left out, what a cell
    /// waits for. Absent where there is nothing to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// The load that a search found, in what its axis counts. Absent where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The search or ladder that asked for it, or leaves it out, as its position among the nodes. Absent where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<usize>,
}

/// How far the runs of a plan are.
#[derive(Debug, Default)]
pub struct States {
    /// For each run of the expansion, by position. A run beyond its end is pending.
    pub runs: Vec<RunState>,
    /// The searches and ladders.
    pub pools: Vec<PoolState>,
}

/// How far a run is.
#[derive(Debug, Clone)]
pub struct RunState {
    /// pending, done, given_up, pruned or left_out.
    pub state: &'static str,
    /// Why it is left out; none of any other run.
    pub why: Option<String>,
}

impl RunState {
    /// A run of which there is no more to say.
    pub fn of(state: &'static str) -> RunState {
        RunState { state, why: None }
    }
}

/// How a search or a ladder stands.
#[derive(Debug)]
pub struct PoolState {
    /// Its sweep.
    pub sweep: String,
    /// search or ladder.
    pub kind: &'static str,
    /// What it is called.
    pub title: String,
    /// pending, searching or done.
    pub state: &'static str,
    /// How it stands, in words.
    pub standing: String,
    /// The load that it found.
    pub found: Option<f64>,
    /// Its runs in the order in which they were asked for, each with what it said, or what it is for.
    pub runs: Vec<(RunId, String)>,
    /// What it leaves out.
    pub pruned: Vec<PrunedLoad>,
}

/// A load that a ladder leaves out.
#[derive(Debug)]
pub struct PrunedLoad {
    /// What it is called.
    pub label: String,
    /// Why.
    pub why: String,
    /// How many runs that are.
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
