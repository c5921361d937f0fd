//! A search for the best settings of a server at a load, as written by the user.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// The runs of each rung are this many times as long as those of the previous rung, and one in this
/// many settings advances.
pub const FACTOR: u32 = 3;

/// The quantity to optimize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Aim {
    /// The highest number of requests per second that meet the plan's `goodput`, or the limits of its `slo`.
    Goodput,
    /// The highest number of output tokens per second. Settings that miss the plan's `slo` are excluded.
    OutputThroughput,
    /// The lowest cost of output tokens, computed from `price_per_hour`. Settings that miss the plan's `slo`
    /// are excluded.
    CostPerMillion,
}

impl Aim {
    /// The name in plans and results.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The unit of the quantity.
    pub fn unit(self) -> &'static str {
        match self {
            Aim::Goodput => "good requests/s",
            Aim::OutputThroughput => "tokens/s",
            Aim::CostPerMillion => "per million tokens",
        }
    }
}

/// Searches for the best settings of the server at the loads of the sweep, for each combination of values on
/// the axes other than its `server` axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Optimize {
    /// The quantity to optimize: goodput, output_throughput or cost_per_million.
    #[serde(rename = "for")]
    #[schemars(example = &"goodput")]
    pub aim: Aim,
    /// Maximum time for all runs of a cell, including server starts. The search ends before a run that
    /// would exceed it.
    #[schemars(example = &"2h")]
    pub budget: Nanos,
}

/// Number of rungs that a search over this many settings needs; each rung has its own run length. The last two
/// or three settings are compared in the longest runs, and there are at least two rungs.
pub fn rungs(configurations: usize) -> u32 {
    let (mut left, mut rungs) = (configurations, 1);
    while left > FACTOR as usize || rungs < 2 {
        left = left.div_ceil(FACTOR as usize);
        rungs += 1;
    }
    rungs
}
