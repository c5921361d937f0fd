//! The reasons of a verdict that concern what responses contained: how they ended, and which of their tokens were
//! counted.

use std::collections::BTreeMap;

use crate::rows::{Facts, Finish, Lingering, Measured, TokensUnknown};

use crate::units::text::plain;

use super::reason::Reason;
use super::state::State;
use super::window;

/// Number of finish reasons that a sentence names.
const NAMED_REASONS: usize = 3;

/// The completed responses of the window.
struct Responses<'a> {
    completed: Vec<&'a Measured>,
    facts: &'a Facts,
}

/// Returns the reasons that count against a run.
pub(super) fn reasons(rows: &[Measured], facts: &Facts) -> Vec<Reason> {
    let responses = Responses::of(rows, facts);
    let reasons = [
        responses.unknown_finish(),
        responses.hidden_reasoning(),
        responses.tokens_by_events(),
        responses.several_choices(),
    ];
    reasons.into_iter().flatten().filter(|reason| reason.state != State::Valid).collect()
}

/// Returns the labels of a run.
pub(super) fn labels(rows: &[Measured], facts: &Facts) -> Vec<Reason> {
    let responses = Responses::of(rows, facts);
    let labels = [responses.hidden_reasoning(), responses.unread_events(), responses.held_open()];
    labels.into_iter().flatten().filter(|label| label.state == State::Valid).collect()
}

impl<'a> Responses<'a> {
    fn of(rows: &'a [Measured], facts: &'a Facts) -> Responses<'a> {
        let completed = window::members(rows, facts).filter(|row| row.outcome.is_ok()).collect();
        Responses { completed, facts }
    }

    fn unknown(&self, unknown: TokensUnknown) -> usize {
        self.completed.iter().filter(|row| row.tokens_unknown == Some(unknown)).count()
    }

    /// Checks for finish reasons that are in no table, so that nobody knows whether the response is complete.
    fn unknown_finish(&self) -> Option<Reason> {
        let mut counts = BTreeMap::<&str, usize>::new();
        let reasons = self.completed.iter().filter_map(|row| row.finish_reason());
        reasons
            .filter(|reason| Finish::of(reason) == Finish::Unknown)
            .for_each(|reason| *counts.entry(reason).or_default() += 1);
        let count: usize = counts.values().sum();
        if count == 0 {
            return None;
        }
        let named: Vec<String> =
            counts.keys().take(NAMED_REASONS).map(|reason| format!("`{}`", plain(reason))).collect();
        let more = if counts.len() > NAMED_REASONS { ", …" } else { "" };
        let all = self.completed.len();
        let text = format!(
            "{count} of {all} responses ended for a reason that sweepline does not know: {}{more}",
            named.join(", ")
        );
        Some(Reason { name: "unknown_finish", state: State::Suspect, text })
    }

    /// Checks for reasoning that the server counts but did not stream. If the rest is counted, the metrics are those of
    /// the rest, and the run only gets a label.
    fn hidden_reasoning(&self) -> Option<Reason> {
        let uncounted = self.unknown(TokensUnknown::HiddenReasoning);
        let all = self.completed.len();
        if uncounted > 0 {
            let text = format!(
                "{uncounted} of {all} responses have tokens that were not streamed, and nothing counts the others: their \
                 metrics per token are n/a; set tokenizer: FILE for the model"
            );
            return Some(Reason { name: "hidden_reasoning", state: State::Suspect, text });
        }
        let hidden: Vec<(u32, u32)> = self.completed.iter().filter_map(|row| hidden_tokens(row)).collect();
        if hidden.is_empty() {
            return None;
        }
        let sum = |side: fn(&(u32, u32)) -> u32| hidden.iter().map(|counts| u64::from(side(counts))).sum::<u64>();
        let (missing, tokens) = (sum(|(hidden, _)| *hidden), sum(|(_, all)| *all));
        let text = format!(
            "{missing} of {tokens} output tokens of {} responses were reasoning that the server did not stream: TTFT \
             includes it, and metrics per token use the others",
            hidden.len()
        );
        Some(Reason { name: "hidden_reasoning", state: State::Valid, text })
    }

    fn tokens_by_events(&self) -> Option<Reason> {
        let count = self.unknown(TokensUnknown::TokensByEvents);
        let all = self.completed.len();
        let text = || {
            format!(
                "{count} of {all} responses have no token count, and their events do not have the size of tokens: metrics per token \
                 are n/a; make the server report usage, or set tokenizer: FILE for the model"
            )
        };
        (count > 0).then(|| Reason { name: "tokens_by_events", state: State::Suspect, text: text() })
    }

    fn several_choices(&self) -> Option<Reason> {
        let count = self.unknown(TokensUnknown::SeveralChoices);
        let all = self.completed.len();
        let text = || format!("{count} of {all} streams have more than one choice: their metrics per token are n/a");
        (count > 0).then(|| Reason { name: "several_choices", state: State::Suspect, text: text() })
    }

    fn unread_events(&self) -> Option<Reason> {
        let events: u64 = self.completed.iter().filter_map(|row| row.unread_events()).map(u64::from).sum();
        let responses =
            self.completed.iter().filter(|row| row.unread_events().is_some_and(|events| events > 0)).count();
        let text =
            || format!("{events} events of {responses} responses were valid JSON of an unknown shape and were skipped");
        (events > 0).then(|| Reason { name: "unread_events", state: State::Valid, text: text() })
    }

    fn held_open(&self) -> Option<Reason> {
        let Lingering { responses, most } = self.facts.lingering?;
        let text = format!(
            "the server held {responses} streams open after [DONE], up to {most} at once; their slots were free at [DONE]"
        );
        Some(Reason { name: "held_open", state: State::Valid, text })
    }
}

/// Returns the number of output tokens that were not streamed, and of all output tokens; `None` if all were streamed.
fn hidden_tokens(row: &Measured) -> Option<(u32, u32)> {
    let (streamed, all) = (row.streamed_tokens()?, row.output_tokens()?);
    (streamed < all).then(|| (all - streamed, all))
}
