//! How conversations go on, besides how many turns they have: whose answers the history holds, how long users think, when
//! new conversations begin, and what is sent when the history outgrows the model's context.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::plan::model::think::Lognormal;
pub(crate) use crate::plan::model::think::{Exponential, Think, Uniform};

/// All of that, resolved.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Talk {
    /// How long a user thinks between an answer and the next turn; none: not at all.
    pub think: Option<Think>,
    /// Whose answers the history holds.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub history: History,
    /// What an arrival of an open loop is.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub sessions: Sessions,
    /// The most tokens that a prompt and the output asked for may have together; none: no bound.
    pub context_limit: Option<u32>,
    /// What happens to a conversation that would be longer.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub context_cut: ContextCut,
}

impl Talk {
    /// Conversations without pauses, bounds or scripts, which share an open loop's arrivals.
    pub const PLAIN: Talk = Talk {
        think: None,
        history: History::Real,
        sessions: Sessions::Pooled,
        context_limit: None,
        context_cut: ContextCut::OldestTurns,
    };
}

/// Whose answers the history of a conversation holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// The answers that came from the server.
    #[default]
    Real,
    /// Answers written beforehand, each of `output_tokens`: every server is sent the same.
    Scripted,
}

/// What an arrival of an open loop over conversations is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sessions {
    /// A request: the next turn of the conversation that has waited longest for one, or the first of a new one.
    #[default]
    Pooled,
    /// A new conversation; its later turns follow their answers by themselves.
    Open,
}

/// What happens to a conversation whose next turn would be longer than the context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextCut {
    /// Its oldest turns are left out, whole, as few as will do. The system message stays.
    #[default]
    OldestTurns,
    /// It ends.
    End,
}

/// The names of a choice in plans and in canonical form.
macro_rules! names {
    ($($type:ident: $($variant:ident = $name:literal),*;)*) => {$(
        impl $type {
            /// All of them, the default first.
            pub const ALL: &[$type] = &[$($type::$variant),*];
            /// Their names, in the same order.
            pub const NAMES: &[&'static str] = &[$($name),*];

            /// The name in plans.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)*
                }
            }
        }
    )*};
}
names! {
    History: Real = "real", Scripted = "scripted";
    Sessions: Pooled = "pooled", Open = "open";
    ContextCut: OldestTurns = "oldest_turns", End = "end";
}
