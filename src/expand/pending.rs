//! Cells that have not (yet) become runs, because they depend on the findings of earlier sweeps.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::Cell;

/// A cell that is not a run, given the current findings of earlier sweeps.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    /// Name of the sweep.
    pub sweep: Arc<str>,
    /// The cell. An unknown load is replaced by its definition: `0.8 × limit.max_qps_under_slo`.
    pub cell: Cell,
    /// The number of repeats that the cell would have if it became runs.
    pub repeats: u32,
    /// The state of the cell.
    pub state: Waits,
    /// The reason for this state, as text.
    pub why: String,
}

/// The state of a cell that is not a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Waits {
    /// An earlier sweep has no result yet.
    Pending,
    /// An earlier sweep has no usable result, so there is no load.
    Blocked,
    /// `skip_if` skips the cell.
    Pruned,
    /// The sweep of the cell is skipped because of the budget.
    LeftOut,
    /// A `gate` before the sweep failed.
    Stopped,
    /// A `gate` before the sweep cannot be decided.
    Undecided,
}

impl Waits {
    /// The name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The text for users.
    pub fn words(self) -> &'static str {
        match self {
            Waits::Pending => "pending",
            Waits::Blocked => "blocked",
            Waits::Pruned => "skipped by `skip_if`",
            Waits::LeftOut => "skipped",
            Waits::Stopped => "stopped by the gate",
            Waits::Undecided => "held back, because the gate cannot be decided",
        }
    }

    /// When cells in this state get runs, and therefore ids.
    pub fn when_ids_come(self) -> &'static str {
        match self {
            Waits::Pending => "their ids are known once the earlier sweep has a result",
            Waits::Blocked => "their ids are known once there is a load to use",
            Waits::Pruned => "no ids while `skip_if` skips them",
            Waits::LeftOut => "no ids while the budget skips them",
            Waits::Stopped => "no ids while the gate fails",
            Waits::Undecided => "their ids are known once the gate is decided",
        }
    }
}
