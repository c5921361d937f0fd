use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    BodyWriter, Common, Conversation, Generator, NONCE_TOKENS, NonceKey, Prompt, RequestShape, Trail, estimate,
};
use crate::plan::model::content::{Content, Reuse, built_in};
use crate::plan::{Api, Cache, NonceMode, Prefix, PrefixOrder};
use crate::plan::{RequestFields, Sampling};
use crate::units::{Decimal, NonceSeed, Seed, Share};

const SCENARIOS: [&str; 6] = ["A1", "A2", "B1", "B2", "C", "D"];
/// Number of characters of a nonce, including the few that all nonces have in common.
const NONCE: usize = "[ref 482 773 194 205] ".len();

fn content(name: &str) -> Content {
    built_in(name).expect("a built-in").clone()
}

fn key(run: u8) -> NonceKey {
    NonceKey::new(NonceSeed([run; 16]))
}

fn generator(name: &str, nonce: Option<NonceKey>) -> Generator {
    Generator::new(&content(name), Seed(42), 0, nonce)
}

/// Returns the whole text of a prompt, starting with the first message.
fn text(prompt: &Prompt) -> String {
    format!("{}{}", prompt.system.as_deref().unwrap_or_default(), prompt.user)
}

fn shared_prefix(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

#[test]
fn texts_are_pinned() {
    let expected = "[ref 339 726 802 015] When the old windmill became covered in fog, the bus driver explored the narrow \
                    path with great care. A group of students asked... Write a postcard about this day.";
    assert_eq!(text(&generator("B1", Some(key(1))).request(7)), expected);
}

#[test]
fn the_same_generator_writes_the_same_in_any_order() {
    for name in SCENARIOS {
        let (a, b) = (generator(name, Some(key(1))), generator(name, Some(key(1))));
        let first = a.request(5);
        b.request(0);
        b.turn(5, 3);
        b.request(1 << 40);
        assert_eq!(b.request(5), first, "{name}");
        assert_eq!(a.request(5), first, "{name}");
    }
}

#[test]
fn without_a_nonce_runs_share_their_texts_and_digest() {
    for name in SCENARIOS {
        let verbatim = generator(name, None);
        assert!(!text(&verbatim.request(3)).contains("[ref"), "{name}");
        assert_eq!(verbatim.digest(), generator(name, Some(key(1))).digest());
        let other = |seed, repeat| Generator::new(&content(name), Seed(seed), repeat, None);
        assert_eq!(other(42, 0).request(3), verbatim.request(3));
        for changed in [other(43, 0), other(42, 1)] {
            assert_ne!(changed.request(3), verbatim.request(3), "{name}");
            assert_ne!(changed.digest(), verbatim.digest(), "{name}");
        }
    }
}

#[test]
fn two_runs_share_no_more_than_the_template_of_the_nonce() {
    for name in SCENARIOS {
        for (a, b) in [(key(1), key(2)), (key(2), key(3))] {
            let (a, b) = (generator(name, Some(a)), generator(name, Some(b)));
            for k in 0..50 {
                let (a, b) = (text(&a.request(k)), text(&b.request(k)));
                assert!(shared_prefix(&a, &b) < NONCE - 4, "{name}: {a} | {b}");
                assert_eq!(a[NONCE..].len(), b[NONCE..].len(), "{name}");
            }
        }
    }
}

#[test]
fn one_nonce_for_all_opens_every_prompt_and_nothing_else() {
    let all = |run| key(run).under(NonceMode::Run, None);
    let contents =
        SCENARIOS.map(content).into_iter().chain([grouped(PrefixOrder::Uniform), grouped(PrefixOrder::Tile)]);
    let led = contents.clone().map(|content| Content { system_tokens: 50, ..content });
    for content in contents.chain(led) {
        let [a, b] = [all(1), all(2)].map(|key| Generator::new(&content, Seed(42), 0, key));
        let head = text(&a.request(0))[..NONCE].to_owned();
        for k in 0..60 {
            let prompt = a.request(k);
            let (own, other) = (text(&prompt), text(&b.request(k)));
            assert!(own.starts_with(&head) && own.matches("[ref").count() == 1, "{content:?}: {own}");
            assert!(shared_prefix(&own, &other) < NONCE - 4 && own[NONCE..] == other[NONCE..], "{own} | {other}");
            let tokens = content.prompt_tokens + a.lead_tokens(k);
            assert!(prompt.intended_prompt_tokens.abs_diff(tokens) <= 3, "{content:?}");
            assert!(k == 0 || reusable(&a.request(0), &prompt) >= NONCE_TOKENS, "{content:?}");
        }
    }
    // With one nonce per run, all classes of a mix have the same nonce; otherwise each class has
    // its own.
    let [one, two] = [Some(0), Some(1)];
    assert_eq!(key(1).under(NonceMode::Run, one), key(1).under(NonceMode::Run, two));
    assert_ne!(key(1).under(NonceMode::On, one), key(1).under(NonceMode::On, two));
    assert_eq!(key(1).under(NonceMode::Off, one), None);
}

#[test]
fn a_run_reuses_what_its_scenario_declares() {
    let prompts = |name| {
        let generator = generator(name, Some(key(1)));
        (generator.request(0), generator.request(1))
    };
    let (a, b) = prompts("A1");
    assert_eq!((&a.system, &a.user), (&b.system, &b.user));
    assert_eq!((reusable(&a, &b), b.common), (b.intended_prompt_tokens, Common::Same));
    let (a, b) = prompts("C");
    assert_eq!(a.system, b.system);
    assert_eq!(reusable(&a, &b), estimate(b.system.as_deref().unwrap()));
    assert!(a.system.is_some_and(|system| system.starts_with("[ref ")) && a.user != b.user);
    assert!(!b.user.contains("[ref"), "one nonce, at the very start");
    for name in ["B1", "B2", "D"] {
        let (a, b) = prompts(name);
        assert!(shared_prefix(&a.user, &b.user) < NONCE - 4, "{name}");
        assert_eq!((reusable(&a, &b), b.common), (0, Common::Nothing), "{name}");
    }
}

#[test]
fn a_system_prompt_goes_with_every_scenario() {
    for name in SCENARIOS {
        let content = Content { system_tokens: 300, ..content(name) };
        let generator = Generator::new(&content, Seed(1), 0, Some(key(1)));
        let (a, b) = (generator.request(0), generator.request(1));
        assert_eq!(a.system, b.system, "{name}");
        assert!(estimate(a.system.as_deref().expect("a system prompt")).abs_diff(300) <= 1, "{name}");
    }
}

#[test]
fn ten_thousand_requests_do_not_repeat() {
    let short = Content { prompt_tokens: 16, ..content("B1") };
    for (content, nonce) in [(content("B1"), None), (content("B1"), Some(key(1))), (short, Some(key(1)))] {
        let generator = Generator::new(&content, Seed(42), 0, nonce);
        let texts: HashSet<String> = (0..10_000).map(|k| generator.request(k).user).collect();
        assert_eq!(texts.len(), 10_000);
        if nonce.is_some() {
            let starts: HashSet<&str> = texts.iter().map(|text| &text[..32]).collect();
            assert_eq!(starts.len(), 10_000);
        }
    }
}

#[test]
fn a_nonce_always_counts_the_same() {
    for run in 0..100 {
        let text = generator("B1", Some(key(run))).request(u64::from(run)).user;
        assert_eq!(estimate(&text[..NONCE]), NONCE_TOKENS, "{text}");
        let groups: Vec<&str> = text[1..NONCE - 2].split(' ').collect();
        assert!(groups.len() == 5 && groups[1..].iter().all(|g| g.len() == 3 && g.parse::<u16>().is_ok()), "{text}");
    }
}

#[test]
fn the_estimate_counts_digits_by_threes() {
    assert_eq!(estimate(""), 0);
    assert_eq!(estimate("four"), 1);
    assert_eq!(estimate("fours"), 2);
    assert_eq!(estimate("1234567"), 3);
    assert_eq!(estimate("a 123"), 3, "a quarter, the space, the number");
}

#[test]
fn prose_is_readable() {
    let text = generator("B2", None).request(1).user;
    assert!(text.is_ascii() && text.contains("\n\n"));
    assert!(text.ends_with('.') || text.ends_with('?'), "a question or a task at the end");
    let body = text.rsplit_once("...").map_or(&*text, |(body, _)| body);
    for sentence in body.split_inclusive(". ").map(str::trim) {
        assert!(sentence.starts_with(|c: char| c.is_ascii_uppercase()), "{sentence}");
    }
    let words: HashSet<&str> = text.split_whitespace().collect();
    assert!(words.len() > 150, "{} different words", words.len());
    let sentences: HashSet<&str> = text.split_inclusive(". ").collect();
    assert!(sentences.len() as f64 > 0.98 * text.split_inclusive(". ").count() as f64, "few sentences are repeated");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn lengths_are_as_asked(tokens in 16u32..=8_192, small in 16u32..=80, k: u64, seed: u64, nonce: bool) {
        for prompt_tokens in [tokens, small] {
            let content = Content { prompt_tokens, system_tokens: prompt_tokens, ..content("C") };
            let generator = Generator::new(&content, Seed(seed), 0, nonce.then(|| key(3)));
            let prompt = generator.request(k);
            prop_assert!(estimate(&prompt.user).abs_diff(prompt_tokens) <= 1, "{prompt_tokens}: {}", prompt.user);
            let system = prompt.system.as_deref().expect("a system prompt");
            prop_assert!(estimate(system).abs_diff(prompt_tokens) <= 1, "{prompt_tokens}: {system}");
            prop_assert_eq!(prompt.intended_prompt_tokens, estimate(&prompt.user) + estimate(system));
            let own = Content { reuse: Reuse::None, system_tokens: 0, ..content };
            let prompt = Generator::new(&own, Seed(seed), 0, nonce.then(|| key(3))).request(k);
            prop_assert!(prompt.intended_prompt_tokens.abs_diff(prompt_tokens) <= 1, "{prompt_tokens}: {}", prompt.user);
            prop_assert_eq!(prompt.intended_prompt_tokens, estimate(&prompt.user));
        }
    }

    #[test]
    fn any_text_survives_the_body(user: String, answer: String) {
        let turn = super::Exchange { user: user.clone(), answer: answer.clone(), tokens: 0, answer_tokens: 0 };
        let prompt = said(None, &user);
        let json: Value = serde_json::from_slice(&body(&shape(Api::Chat), &[turn], &prompt)).expect("JSON");
        prop_assert_eq!(&json["messages"][0]["content"], &json!(user));
        prop_assert_eq!(&json["messages"][1]["content"], &json!(answer));
    }
}

#[test]
fn a_conversation_carries_the_real_answers() {
    let generator = generator("D", Some(key(1)));
    let mut conversation = Conversation::new(&generator, 9);
    let shape = RequestShape { conversation: true, ..shape(Api::Completions) };
    let mut before = String::new();
    for turn in 0..5 {
        assert_eq!((conversation.number(), conversation.turn()), (9, turn));
        let prompt = conversation.prompt().expect("a turn").clone();
        assert_eq!(prompt.user, generator.turn(9, turn).user);
        assert_eq!(prompt.user.starts_with("[ref "), turn == 0);
        let json: Value = serde_json::from_slice(&body(&shape, conversation.history(), &prompt)).expect("JSON");
        let sent = json["prompt"].as_str().expect("text").to_owned();
        assert!(sent.starts_with(&before), "each turn begins with the previous one and its response");
        assert!(prompt.intended_prompt_tokens >= 49 + turn * 50);
        assert_eq!(prompt.seen_tokens, prompt.intended_prompt_tokens - estimate(&prompt.user), "the history");
        before = format!("{sent} answer {turn}");
        conversation.answered(&generator, format!(" answer {turn}"), None);
    }
    assert_eq!(conversation.prompt(), None);
    assert_eq!(conversation.history()[4].answer, " answer 4");
}

#[test]
fn turns_of_a_conversation_differ() {
    let generator = generator("D", None);
    let texts: HashSet<String> =
        (0..20).flat_map(|c| (0..5).map(move |t| (c, t))).map(|(c, t)| generator.turn(c, t).user).collect();
    assert_eq!(texts.len(), 100);
}

/// Creates a prompt that requests 128 tokens.
fn said(system: Option<&str>, user: &str) -> Prompt {
    Prompt {
        system: system.map(Into::into),
        user: user.to_owned(),
        more: Vec::new(),
        own_nonce: None,
        intended_prompt_tokens: 1,
        system_tokens: 0,
        seen_tokens: 0,
        common: Common::All,
        output_tokens: 128,
    }
}

/// Returns the number of leading tokens that a prompt shares with an earlier one, as precisely as trails can
/// tell.
fn reusable(earlier: &Prompt, prompt: &Prompt) -> u32 {
    let [one, other] = [earlier, prompt].map(|prompt| Trail::of(0, prompt));
    let common = one.chunks().iter().zip(other.chunks()).take_while(|(a, b)| a == b).count();
    other.tokens(common)
}

fn body(shape: &RequestShape, history: &[super::Exchange], prompt: &Prompt) -> Vec<u8> {
    BodyWriter::new(shape.clone()).write(history, prompt)
}

fn shape(api: Api) -> RequestShape {
    RequestShape {
        model: "org/\"model\"".to_owned(),
        api,
        stream: true,
        ignore_eos: true,
        conversation: false,
        fields: RequestFields::default(),
        extra: Default::default(),
    }
}

#[test]
fn a_chat_body_has_the_fields_that_were_asked_for() {
    let prompt = said(Some("Be \"brief\"."), "Why?\n");
    let json: Value = serde_json::from_slice(&body(&shape(Api::Chat), &[], &prompt)).expect("JSON");
    assert_eq!(
        json,
        json!({
            "model": "org/\"model\"",
            "messages": [{ "role": "system", "content": "Be \"brief\"." }, { "role": "user", "content": "Why?\n" }],
            "max_tokens": 128,
            "temperature": 0,
            "stream": true,
            "stream_options": { "include_usage": true },
            "ignore_eos": true,
        })
    );
}

#[test]
fn a_completions_body_has_the_fields_that_were_asked_for() {
    let shape = RequestShape {
        stream: false,
        ignore_eos: false,
        fields: RequestFields {
            sampling: Sampling::of([
                ("temperature", Decimal::new(7, 1)),
                ("top_p", Decimal::new(9, 1)),
                ("presence_penalty", Decimal::new(-5, 1)),
                ("frequency_penalty", Decimal::new(25, 2)),
            ]),
            ..RequestFields::default()
        },
        ..shape(Api::Completions)
    };
    let prompt = said(Some("Rules."), "Why?");
    let json: Value = serde_json::from_slice(&body(&shape, &[], &prompt)).expect("JSON");
    assert_eq!(
        json,
        json!({
            "model": "org/\"model\"",
            "prompt": "Rules.\n\nWhy?",
            "max_tokens": 128,
            "temperature": 0.7,
            "stream": false,
            "top_p": 0.9,
            "presence_penalty": -0.5,
            "frequency_penalty": 0.25,
        })
    );
}

/// Creates a scenario whose prompts open with one of three shared texts, or with their own.
fn grouped(order: PrefixOrder) -> Content {
    let prefix = Prefix { share: Share::percent(60), tokens: 200, groups: 3, order };
    Content { prefix: Some(prefix), ..content("B1") }
}

#[test]
fn a_group_shares_its_text_and_nothing_else_is_shared() {
    for order in [PrefixOrder::Uniform, PrefixOrder::Zipf, PrefixOrder::Cycle] {
        let generator = Generator::new(&grouped(order), Seed(42), 0, Some(key(1)));
        let prompts: Vec<Prompt> = (0..60).map(|k| generator.request(k)).collect();
        let mut known = 0;
        for (k, prompt) in prompts.iter().enumerate() {
            let texts = prompts[..k].iter().map(|earlier| shared_prefix(&text(earlier), &text(prompt)));
            let shared = texts.max().unwrap_or_default();
            let opening = prompt.system.as_deref().unwrap();
            assert!(estimate(opening).abs_diff(200) <= 1, "shared or own, the opening has its length");
            // Text that two prompts have in common after different nonces does not count as a shared
            // beginning.
            let whole = shared >= opening.len();
            let found = prompts[..k].iter().map(|earlier| reusable(earlier, prompt)).max().unwrap_or(0);
            assert_eq!(found, if whole { estimate(opening) } else { 0 }, "{order:?}, request {k}");
            known += usize::from(whole);
            assert!(whole || shared < NONCE - 4);
        }
        assert!((15..=50).contains(&known), "{known} of 60 where three of five open with a shared text");
        let runs = Generator::new(&grouped(order), Seed(42), 0, Some(key(2)));
        assert_eq!(runs.digest(), generator.digest());
        assert!(shared_prefix(&text(&runs.request(1)), &text(&prompts[1])) < NONCE - 4);
    }
}

#[test]
fn a_cold_twin_says_the_same_and_shares_nothing() {
    let [chat, completions] = [shape(Api::Chat), RequestShape { conversation: true, ..shape(Api::Completions) }];
    for warm in [content("A1"), content("C"), content("D"), grouped(PrefixOrder::Cycle)] {
        let cold = Content { cache: Cache::Cold, ..warm.clone() };
        let [warm, cold] = [warm, cold].map(|content| Generator::new(&content, Seed(42), 0, Some(key(1))));
        assert_eq!(warm.digest(), cold.digest());
        let history =
            [super::Exchange { user: warm.turn(0, 0).user, answer: "Well.".to_owned(), tokens: 0, answer_tokens: 0 }];
        for shape in [&chat, &completions] {
            let sent = |generator: &Generator, history: &[super::Exchange], turn| {
                let json: Value = serde_json::from_slice(&body(shape, history, &generator.turn(0, turn))).unwrap();
                let chat = json["messages"].as_array().into_iter().flatten().map(|message| &message["content"]);
                chat.chain(json.get("prompt")).map(|text| text.as_str().unwrap()).collect::<String>()
            };
            let mut all = Vec::new();
            for (history, turn) in [(&[][..], 0), (&history[..], 1)] {
                let [hot, cool] = [&warm, &cold].map(|generator| sent(generator, history, turn));
                assert_eq!(hot.len(), cool.len());
                assert_eq!(hot.matches("[ref ").count(), cool.matches("[ref ").count(), "{cool}");
                assert!(cool.starts_with("[ref "), "{cool}");
                all.push(cool);
            }
            assert!(shared_prefix(&all[0], &all[1]) < NONCE - 4, "{all:?}");
        }
        assert!((0..5).map(|k| cold.turn(k, 1)).all(|turn| (turn.seen_tokens, turn.common) == (0, Common::Nothing)));
    }
}

#[test]
fn tiles_declare_no_reuse() {
    let tiles = |system_tokens| Content { system_tokens, ..grouped(PrefixOrder::Tile) };
    for (content, shared) in [(tiles(0), 0), (tiles(100), 100)] {
        let generator = Generator::new(&content, Seed(42), 0, None);
        for (earlier, later) in [(0, 3), (1, 4), (2, 5)] {
            let found = reusable(&generator.request(earlier), &generator.request(later));
            assert!(found.abs_diff(shared) <= 4, "{found}: the same text, which is no longer in the server's cache");
        }
    }
}

#[test]
fn what_another_class_sends_too_is_nobodys_own() {
    let twin = |has_twin: bool| {
        let mut generator = generator("B1", None);
        if has_twin {
            generator.has_twin();
        }
        generator.request(3).common
    };
    assert_eq!((twin(false), twin(true)), (Common::Nothing, Common::All));
}
