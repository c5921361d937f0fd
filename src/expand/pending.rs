//! Cells that are no runs, or not yet: what an earlier sweep finds decides about them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::Cell;

/// A cell that is no run as long as an earlier sweep says nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    /// Name of the sweep.
    pub sweep: Arc<str>,
    /// The cell; a load that is not known stands as it will be made: `0.8 × limit.max_qps_under_slo`.
    pub cell: Cell,
    /// How often it would be run.
    pub repeats: u32,
    /// How it stands.
    pub state: Waits,
    /// Why, in words.
    pub why: String,
}

/// How a cell stands that is no run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Waits {
    /// An earlier sweep has not answered yet.
    Pending,
    /// An earlier sweep has no answer, so that there is no load.
    Blocked,
    /// `skip_if` leaves it out.
    Pruned,
    /// The budget leaves its sweep out.
    LeftOut,
    /// A `gate` said no.
    Stopped,
    /// A `gate` cannot be decided.
    Undecided,
}

impl Waits {
    /// The name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The same in words.
    pub fn words(self) -> &'static str {
        match self {
            Waits::Pending => "pending",
            Waits::Blocked => "blocked",
            Waits::Pruned => "left out by `skip_if`",
            Waits::LeftOut => "left out",
            Waits::Stopped => "not made, the gate says no",
            Waits::Undecided => "not made, the gate cannot be decided",
        }
    }

    /// When such cells have runs, and so ids.
    pub fn when_ids_come(self) -> &'static str {
        match self {
            Waits::Pending => "their ids come once that is answered",
            Waits::Blocked => "their ids come once there is a load to take",
            Waits::Pruned => "no ids as long as `skip_if` leaves them out",
            Waits::LeftOut => "no ids as long as the budget leaves them out",
            Waits::Stopped => "no ids as long as the gate says no",
            Waits::Undecided => "their ids come once the gate is decided",
        }
    }
}
