//! How conversations proceed, apart from their number of turns: whose responses the history contains, how
//! long users think, when new conversations start, and what is sent if the history exceeds the model's
//! context.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::plan::model::think::Lognormal;
pub(crate) use crate::plan::model::think::{Exponential, Think, Uniform};

/// The resolved conversation settings.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Talk {
    /// How long a user thinks between a response and the next turn; `None` for no think time.
    pub think: Option<Think>,
    /// Which responses the history contains.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub history: History,
    /// What arrives in an open loop: requests or conversations.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub sessions: Sessions,
    /// Maximum number of tokens that a prompt and the requested output may have together; `None` for no
    /// limit.
    pub context_limit: Option<u32>,
    /// How a conversation that would exceed the limit is truncated.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub context_cut: ContextCut,
}

impl Talk {
    /// Conversations without pauses, limits or scripted responses, whose requests share the arrivals of an
    /// open loop.
    pub const PLAIN: Talk = Talk {
        think: None,
        history: History::Real,
        sessions: Sessions::Pooled,
        context_limit: None,
        context_cut: ContextCut::OldestTurns,
    };
}

/// Source of the responses in the history of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// The responses of the server.
    #[default]
    Real,
    /// Scripted responses, each with `output_tokens` tokens, so that every server receives the same requests.
    Scripted,
}

/// Whether arrivals of an open loop are turns or whole conversations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sessions {
    /// Each arrival is one request: the next turn of the conversation that has waited longest for it, or the
    /// first turn of a new conversation.
    #[default]
    Pooled,
    /// Each arrival is a new conversation, whose later turns follow the previous responses automatically.
    Open,
}

/// How a conversation whose next turn would exceed the context is truncated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextCut {
    /// The oldest turns are dropped: whole turns, and as few as necessary. The system message stays.
    #[default]
    OldestTurns,
    /// The conversation ends.
    End,
}

/// Defines the names of choices, as used in plans and in the canonical form of a run.
macro_rules! names {
    ($($type:ident: $($variant:ident = $name:literal),*;)*) => {$(
        impl $type {
            /// All values, with the default first.
            pub const ALL: &[$type] = &[$($type::$variant),*];
            /// The names of all values, in the same order.
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
