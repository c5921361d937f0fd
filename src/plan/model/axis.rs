//! The axes that a matrix may have, and the values that each accepts. The same ranges apply to the
//! fields of a scenario.

use crate::plan::diagnostic::suggest;
use crate::plan::model::lengths::presets::Preset;
use crate::plan::model::lengths::{LEAST_OUTPUT, LEAST_PROMPT, MOST_TOKENS};
use crate::plan::model::nonce::NonceMode;
use crate::plan::model::parameter_value::ParameterValue;
use crate::plan::model::process::Process;
use crate::plan::model::sampling::{PARAMETERS, Parameter};
use crate::plan::model::scalar::Scalar;
use crate::plan::model::talk::{ContextCut, History, Sessions};
use crate::plan::text::alias::ALIASES;
use crate::units::{Decimal, Nanos};

/// The kind of values that an axis accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Names of entries in a table of the plan.
    Name(&'static str),
    /// Whole numbers within these bounds.
    Whole(u32, u32),
    /// Numbers above 0, up to this maximum.
    Rate(u32),
    /// true or false.
    Flag,
    /// Numbers within these bounds (in hundredths), or `omit`.
    Parameter(i64, i64),
    /// An arrival process, by name.
    Process,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// Durations.
    Time,
    /// Values of a server flag: numbers, texts, true, false, and `none` for a flag that is not passed.
    Setting,
}

/// The prefix of axes that set a flag of a launched server: `server.max_num_seqs`.
pub const SERVER_PREFIX: &str = "server.";

/// The flag that an axis sets; `None` if it is not a server axis.
pub fn server_flag(axis: &str) -> Option<&str> {
    let flag = axis.strip_prefix(SERVER_PREFIX)?;
    let is_name = flag.starts_with(|c: char| c.is_ascii_alphabetic())
        && flag.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    is_name.then_some(flag)
}

/// All axes except sampling parameters, each with the kind of its values and a description for users.
const OF_THE_PLAN: [(&str, Kind, &str); 25] = [
    ("endpoint", Kind::Name("endpoints"), "Endpoints of the plan. Not needed if the plan has only one."),
    ("model", Kind::Name("models"), "Models of the plan. Not needed if the plan has only one."),
    (
        "scenario",
        Kind::Name("scenarios"),
        "Built-in scenarios (A1, A2, B1, B2, C, D) or the plan's own. Not needed if the plan has only one; default \
         B1 if it has none.",
    ),
    (
        "batch_size",
        Kind::Whole(1, 100_000),
        "Requests kept in flight (the concurrency) in a closed loop; together with `qps`, an in-flight cap.",
    ),
    ("qps", Kind::Rate(1_000_000), "Requests started per second in an open loop."),
    ("arrivals", Kind::Process, "How the arrivals of an open loop are spaced: poisson, constant or gamma cv 2."),
    ("connections", Kind::Choice(&["warm", "cold", "per_request"]), "How requests get their connections."),
    ("prompt_tokens", Kind::Whole(LEAST_PROMPT, MOST_TOKENS), "Tokens of the user's text in one request."),
    ("output_tokens", Kind::Whole(LEAST_OUTPUT, MOST_TOKENS), "Requested output tokens."),
    (
        "max_completion_tokens",
        Kind::Whole(LEAST_OUTPUT, MOST_TOKENS),
        "Requested output tokens, sent as max_completion_tokens.",
    ),
    ("lengths", Kind::Choice(&Preset::NAMES), "Lengths that vary from request to request, as a preset."),
    ("system_tokens", Kind::Whole(0, 4_000_000), "Tokens of the shared system prompt."),
    ("turns", Kind::Whole(1, 10_000), "Turns of a conversation."),
    ("think", Kind::Time, "How long a user thinks between a response and the next turn."),
    ("history", Kind::Choice(History::NAMES), "Source of the responses in the history of a conversation."),
    ("sessions", Kind::Choice(Sessions::NAMES), "Whether arrivals of an open loop are turns or whole conversations."),
    (
        "context_limit",
        Kind::Whole(17, 4_000_000),
        "Maximum number of tokens of a conversation's prompt and output \
                                                   together.",
    ),
    ("context_cut", Kind::Choice(ContextCut::NAMES), "How a conversation that would exceed the context is cut."),
    (
        "cache",
        Kind::Choice(&["warm", "cold"]),
        "Whether prompts share the text that the scenario declares, or nothing at all.",
    ),
    ("nonce", Kind::Choice(NonceMode::NAMES), "The scope of the nonce that opens a prompt."),
    ("stream", Kind::Flag, "Stream responses token by token."),
    ("ignore_eos", Kind::Flag, "Continue past the model's end-of-sequence token."),
    ("inputs", Kind::Whole(1, 10_000), "Texts of one request for embeddings."),
    ("documents", Kind::Whole(1, 10_000), "Documents of one request for reranking."),
    ("query_tokens", Kind::Whole(LEAST_PROMPT, MOST_TOKENS), "Tokens of the query against which documents are ranked."),
];

/// Every axis by its primary name, with the kind of its values and a description for users.
pub(crate) const AXES: [(&str, Kind, &str); OF_THE_PLAN.len() + PARAMETERS.len()] = {
    let mut all = [OF_THE_PLAN[0]; OF_THE_PLAN.len() + PARAMETERS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < OF_THE_PLAN.len() {
            OF_THE_PLAN[at]
        } else {
            let Parameter { name, hundredths: (low, high), meaning, .. } = PARAMETERS[at - OF_THE_PLAN.len()];
            (name, Kind::Parameter(low, high), meaning)
        };
        at += 1;
    }
    all
};

/// Whether a matrix may have an axis with this primary name.
pub fn is_axis(name: &str) -> bool {
    kind(name).is_some()
}

/// The primary name of an axis; `None` if there is no axis called `key`.
pub(crate) fn first_name(key: &str) -> Option<&str> {
    if server_flag(key).is_some() {
        return Some(key);
    }
    let own = AXES.iter().map(|(name, ..)| *name).find(|name| *name == key);
    own.or_else(|| ALIASES.iter().find(|(alias, _)| *alias == key).map(|(_, first)| *first))
}

/// The kind of an axis's values, by its primary name; `None` if there is no such axis.
pub(crate) fn kind(name: &str) -> Option<Kind> {
    if server_flag(name).is_some() {
        return Some(Kind::Setting);
    }
    AXES.iter().find(|(axis, ..)| *axis == name).map(|(_, kind, _)| *kind)
}

impl Kind {
    /// Whether the values of the axis are numbers.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Kind::Whole(..) | Kind::Rate(_) | Kind::Parameter(..))
    }

    /// Whether a value has this kind. Whether the plan declares a name is checked elsewhere.
    pub(crate) fn takes(self, value: &Scalar) -> bool {
        match (self, value) {
            (Kind::Name(_), Scalar::Text(_)) | (Kind::Flag, Scalar::Bool(_)) => true,
            (Kind::Whole(least, most), Scalar::Number(number)) => {
                number.to_string().parse::<u32>().is_ok_and(|number| (least..=most).contains(&number))
            }
            (Kind::Rate(most), Scalar::Number(number)) => number.is_positive() && *number <= Decimal::from(most),
            (Kind::Parameter(..), Scalar::Text(text)) => text == ParameterValue::OMIT,
            (Kind::Parameter(low, high), Scalar::Number(number)) => {
                (Decimal::new(low, 2)..=Decimal::new(high, 2)).contains(number)
            }
            (Kind::Process, Scalar::Text(text)) => text.parse::<Process>().is_ok(),
            (Kind::Choice(choices), Scalar::Text(text)) => choices.contains(&text.as_str()),
            (Kind::Time, Scalar::Text(text)) => text.parse::<Nanos>().is_ok(),
            (Kind::Setting, Scalar::Text(text)) => !text.is_empty(),
            (Kind::Setting, _) => true,
            _ => false,
        }
    }

    /// A description of the expected value.
    pub(crate) fn wanted(self) -> String {
        match self {
            Kind::Name(table) => format!("the name of an entry of `{table}`"),
            Kind::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Rate(most) => format!("a number above 0, up to {most}"),
            Kind::Flag => "true or false".to_owned(),
            Kind::Parameter(low, high) => {
                format!("a number from {} to {}, or omit", Decimal::new(low, 2), Decimal::new(high, 2))
            }
            Kind::Process => "poisson, constant or gamma cv 2".to_owned(),
            Kind::Choice(choices) => suggest::choices(choices.iter().copied()),
            Kind::Time => "a duration".to_owned(),
            Kind::Setting => "a number, a string, true or false".to_owned(),
        }
    }

    /// The remedy for a value of another kind.
    pub(crate) fn remedy(self, value: &Scalar) -> String {
        match (self, value) {
            (Kind::Process, Scalar::Text(text)) => match text.parse::<Process>() {
                Err(why) => why.split_once(": ").map_or(why.clone(), |(_, remedy)| remedy.to_owned()),
                Ok(_) => format!("write {}", self.wanted()),
            },
            (Kind::Choice(choices), Scalar::Text(text)) => suggest::remedy(text, choices.iter().copied()),
            (Kind::Time, _) => "write a duration with its unit, like 5s or 500ms".to_owned(),
            (Kind::Flag, _) => "write true or false".to_owned(),
            (Kind::Name(_), other) => format!("put quotes around a name that looks like a number: \"{other}\""),
            (_, Scalar::Text(text)) => suggest::meant_range(text)
                .or_else(|| suggest::meant_number(text))
                .unwrap_or_else(|| format!("write {}", self.wanted())),
            _ => format!("write {}", self.wanted()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list of axes in docs/PLAN.md contains every axis once, and nothing else.
    #[test]
    fn the_page_of_plans_lists_just_these_axes() {
        let page = include_str!("../../../docs/PLAN.md");
        let (_, list) = page.split_once("The following can be axes: ").unwrap();
        let (list, _) = list.split_once(" `concurrency`,").unwrap();
        let mut told: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
        let mut known: Vec<&str> = AXES.iter().map(|(name, ..)| *name).collect();
        told.sort_unstable();
        known.sort_unstable();
        assert_eq!(told, known);
    }
}
