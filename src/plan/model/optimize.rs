//! The best settings of a server at a load, as the user writes the question.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// A longer run is so many times as long as one before it, and this share of the settings goes on.
pub const FACTOR: u32 = 3;

/// What the best settings are best at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Aim {
    /// Most requests per second that meet the plan's `goodput`, or the limits of its `slo`.
    Goodput,
    /// Most output tokens per second. Settings that miss the plan's `slo` are none.
    OutputThroughput,
    /// The cheapest output tokens, by `price_per_hour`. Settings that miss the plan's `slo` are none.
    CostPerMillion,
}

impl Aim {
    /// The name in plans and answers.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What its values count.
    pub fn unit(self) -> &'static str {
        match self {
            Aim::Goodput => "good requests/s",
            Aim::OutputThroughput => "tokens/s",
            Aim::CostPerMillion => "per million tokens",
        }
    }
}

/// The settings of the server that are best at the loads of the sweep, for each cell but for its `server` axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Optimize {
    /// What they are best at: goodput, output_throughput or cost_per_million.
    #[serde(rename = "for")]
    #[schemars(example = &"goodput")]
    pub aim: Aim,
    /// The most time that all runs of a cell may take, with the starts of their servers. It ends at a run that would be longer.
    #[schemars(example = &"2h")]
    pub budget: Nanos,
}

/// How many lengths of runs so many settings take: the last two or three meet in the longest, and there are at least two.
pub fn rungs(configurations: usize) -> u32 {
    let (mut left, mut rungs) = (configurations, 1);
    while left > FACTOR as usize || rungs < 2 {
        left = left.div_ceil(FACTOR as usize);
        rungs += 1;
    }
    rungs
}
