//! Tests of scripted histories, and of histories that exceed the context.

use std::collections::HashSet;

use super::{Conversation, Exchange, Generator, NonceKey, Prompt, estimate};
use crate::plan::model::content::{Content, built_in};
use crate::plan::model::talk::Talk;
use crate::plan::{ContextCut, History, Sessions, Think};
use crate::units::{Nanos, NonceSeed, Seed};

fn content(name: &str) -> Content {
    built_in(name).expect("a built-in").clone()
}

/// Returns the turns of a conversation with these settings, each with the history before it, if the server
/// responds with `answer` each time. Also returns the conversation's generator.
fn turns_of(talk: Talk, system_tokens: u32, answer: &str) -> (Vec<(Vec<Exchange>, Prompt)>, Generator) {
    let content = Content { turns: 12, prompt_tokens: 40, output_tokens: 30, system_tokens, talk, ..content("D") };
    let generator = Generator::new(&content, Seed(3), 0, Some(NonceKey::new(NonceSeed([1; 16]))));
    let mut conversation = Conversation::new(&generator, 4);
    let mut turns = Vec::new();
    while let Some(prompt) = conversation.prompt().cloned() {
        turns.push((conversation.history().to_vec(), prompt));
        match talk.history {
            History::Real => conversation.answered(&generator, answer.to_owned(), None),
            History::Scripted => conversation.scripted(&generator),
        }
    }
    (turns, generator)
}

#[test]
fn a_scripted_history_needs_no_answer_and_has_the_length_asked_for() {
    let talk = Talk { history: History::Scripted, ..Talk::PLAIN };
    let (turns, generator) = turns_of(talk, 0, "");
    assert_eq!(turns.len(), 12);
    let (history, last) = &turns[11];
    for (turn, exchange) in history.iter().enumerate() {
        assert!(estimate(&exchange.answer).abs_diff(30) <= 2, "{}", exchange.answer);
        assert_eq!(exchange.answer, generator.answer(4, turn as u32).0);
        assert_eq!(
            exchange.user,
            generator.turn(4, turn as u32).user,
            "the users' texts are those sent to a real server"
        );
    }
    let said: HashSet<&String> = history.iter().map(|exchange| &exchange.answer).collect();
    assert_eq!(said.len(), history.len(), "no response is repeated");
    // The server has generated a text other than the scripted response, so the last scripted response is new
    // to it.
    let own = estimate(&last.user) + estimate(&history[10].answer);
    assert_eq!(last.seen_tokens, last.intended_prompt_tokens - own);
}

#[test]
fn an_answer_has_the_tokens_that_the_server_counted() {
    let content = Content { turns: 3, prompt_tokens: 40, output_tokens: 30, ..content("D") };
    let generator = Generator::new(&content, Seed(3), 0, None);
    let history = |counted| {
        let mut conversation = Conversation::new(&generator, 4);
        conversation.answered(&generator, "four words of thirty".to_owned(), counted);
        let next = conversation.prompt().expect("a second turn");
        assert_eq!(next.seen_tokens, next.intended_prompt_tokens - estimate(&next.user));
        next.seen_tokens - estimate(&conversation.history()[0].user)
    };
    assert_eq!((history(Some(30)), history(None)), (30, estimate("four words of thirty")));
}

#[test]
fn oldest_turns_are_cut_to_the_context_and_nothing_is_known_of_the_rest() {
    for system in [0, 50] {
        let talk = Talk { context_limit: Some(300), ..Talk::PLAIN };
        let answer =
            "It depends on what was agreed upon before, and on whoever has to pay for the rest of it in the end.";
        let (turns, generator) = turns_of(talk, system, answer);
        assert_eq!(turns.len(), 12, "it continues to its end");
        let mut cuts = 0;
        for (turn, (history, prompt)) in turns.iter().enumerate() {
            let tokens: u32 = history.iter().map(|one| estimate(&one.user) + estimate(&one.answer)).sum();
            assert_eq!(prompt.intended_prompt_tokens, generator.lead_tokens(0) + tokens + estimate(&prompt.user));
            assert!(prompt.intended_prompt_tokens + prompt.output_tokens <= 300, "{turn}: {prompt:?}");
            // Only whole turns are kept, and these are the newest ones.
            let kept: Vec<&String> = history.iter().map(|one| &one.user).collect();
            let newest: Vec<String> =
                (turn - history.len()..turn).map(|turn| generator.turn(4, turn as u32).user).collect();
            assert!(kept.into_iter().eq(&newest), "{turn}");
            let is_cut = turn > 0 && history.len() < turns[turn - 1].0.len() + 1;
            cuts += usize::from(is_cut);
            let known = generator.lead_tokens(0) + if is_cut { 0 } else { tokens };
            assert_eq!(prompt.seen_tokens, if turn == 0 { 0 } else { known }, "{turn}");
            // The first message begins with a nonce, which distinguishes this run from others.
            let first = history.first().map_or(&prompt.user, |one| &one.user);
            assert!(system > 0 || first.starts_with("[ref "), "{first}");
            // No more turns than necessary are dropped: one more turn would not fit.
            if let Some(oldest) = (turn - history.len()).checked_sub(1) {
                let more = estimate(&generator.turn(4, oldest as u32).user) + estimate(answer);
                assert!(prompt.intended_prompt_tokens + prompt.output_tokens + more > 300, "{turn}");
            }
        }
        assert!(cuts > 3, "{cuts} cuts");
    }
}

#[test]
fn a_conversation_may_end_at_the_context() {
    let talk = Talk { context_limit: Some(300), context_cut: ContextCut::End, ..Talk::PLAIN };
    let (turns, _) = turns_of(talk, 0, "Yes.");
    assert!((4..8).contains(&turns.len()), "{} turns", turns.len());
    assert!(turns.iter().all(|(_, prompt)| prompt.intended_prompt_tokens + prompt.output_tokens <= 300));
    assert!(turns.iter().enumerate().all(|(turn, (history, _))| history.len() == turn), "nothing is dropped");
    let (_, last) = turns.last().unwrap();
    assert!(last.intended_prompt_tokens + last.output_tokens + 40 + 1 > 300, "one more turn would not fit");
}

#[test]
fn what_is_sent_decides_the_digest() {
    let digest = |talk| Generator::new(&Content { talk, ..content("D") }, Seed(1), 0, None).digest();
    let think = Some(Think::Constant(Nanos::from_secs(5)));
    assert_eq!(digest(Talk { think, sessions: Sessions::Open, ..Talk::PLAIN }), digest(Talk::PLAIN));
    let limited = |context_cut| Talk { context_limit: Some(4_096), context_cut, ..Talk::PLAIN };
    let all = [
        digest(Talk::PLAIN),
        digest(Talk { history: History::Scripted, ..Talk::PLAIN }),
        digest(limited(ContextCut::OldestTurns)),
        digest(limited(ContextCut::End)),
    ];
    assert_eq!(HashSet::from(all).len(), 4);
}
