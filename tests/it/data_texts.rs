//! Runs that send a data set's own texts, as seen in the servers' logs, and runs whose lengths are drawn
//! from a data set.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sweepline::rows::RequestRow;

use lab::exact_prompts::{bpe, folder};
use lab::mock::Mock;
use lab::{Lab, Run};

/// The request bodies that one server saw, by request number.
type Log = BTreeMap<u64, Value>;

/// A run, with the log of its server.
struct Told {
    run: Run,
    log: Log,
}

impl Told {
    fn rows(&self) -> impl Iterator<Item = &RequestRow> {
        self.run.records.iter().map(|record| &record.row)
    }

    /// Returns the first message of each request without its nonce, by number.
    fn texts(&self) -> Vec<String> {
        self.log.values().map(|body| bare(&said(body)[0].1).to_owned()).collect()
    }

    fn spec(&self, path: &str) -> &Value {
        self.run.json["spec"].pointer(path).unwrap_or(&Value::Null)
    }
}

/// Returns the role and text of each message of a body.
fn said(body: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    body["messages"].as_array().unwrap().iter().map(|one| (text(&one["role"]), text(&one["content"]))).collect()
}

/// Returns a text without its nonce.
fn bare(text: &str) -> &str {
    let (nonce, rest) = text.split_once("] ").unwrap_or_else(|| panic!("no nonce: {text}"));
    assert!(nonce.starts_with("[ref ") && nonce.len() == "[ref 482 773 194 205".len(), "{text}");
    rest
}

/// Returns the runs of a plan on two separate mocks, `a` and `b`; `plan` comes after models and
/// endpoints.
fn told(lab: &Lab, plan: &str) -> Vec<Told> {
    told_of(lab, "{ m: { id: tiny } }", plan)
}

fn told_of(lab: &Lab, models: &str, plan: &str) -> Vec<Told> {
    let mut mocks = ["a", "b"].map(|name| (name, Mock::start(&["--ttft", "1ms", "--itl", "1ms"])));
    let urls = mocks
        .each_ref()
        .map(|(name, mock)| format!("  {name}: {{ url: http://127.0.0.1:{}/v1, engine: mock }}\n", mock.port));
    let head = "phases: { fill: 0s, stabilize: 0s, measure: 600ms, drain: 30s }\nendpoints:\n";
    let urls = urls.concat();
    let all = format!("sweepline: 1\nname: texts\nseed: 3\nmodels: {models}\n{head}{urls}{plan}");
    lab.write("plan.yaml", &all);
    let ended = lab.run(&["run", "plan.yaml"]);
    // Exit code 3: a run is invalid, which may happen on a busy machine and is not tested here.
    assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
    let lines: BTreeMap<&str, Vec<Value>> = mocks
        .iter_mut()
        .map(|(name, mock)| {
            mock.terminate();
            (*name, mock.log_now())
        })
        .collect();
    let of = |run: Run| {
        let endpoint = run.json["spec"]["endpoint"]["name"].as_str().unwrap();
        let prefix = format!("{}-{}-", &run.json["id"].as_str().unwrap()[..16], run.json["attempt"]);
        let number = |line: &Value| line["request_id"].as_str()?.strip_prefix(&prefix)?.parse().ok();
        let body = |line: &Value| serde_json::from_str(line["request"].as_str()?).ok();
        let log = lines[endpoint].iter().filter_map(|line| Some((number(line)?, body(line)?))).collect();
        Told { run, log }
    };
    lab.runs().into_values().map(of).collect()
}

/// Returns a ShareGPT file with `count` conversations. The k-th has 1 + k % 3 exchanges, and every fourth
/// has a system message.
fn sharegpt(count: usize) -> String {
    let one = |k: usize| {
        let mut said = Vec::new();
        if k.is_multiple_of(4) {
            said.push(json!({ "from": "system", "value": format!("You are clerk {k}.") }));
        }
        for turn in 0..=k % 3 {
            said.push(json!({ "from": "human", "value": question(k, turn) }));
            said.push(json!({ "from": "gpt", "value": answer(k, turn) }));
        }
        json!({ "id": format!("c{k}"), "conversations": said }).to_string()
    };
    format!("[\n{}\n]\n", (0..count).map(one).collect::<Vec<_>>().join(",\n"))
}

fn question(k: usize, turn: usize) -> String {
    format!("Question {turn} of visitor {k}: é, \"quotes\" and\nlines?")
}

/// Returns a response of 1 + k + turn estimated tokens.
fn answer(k: usize, turn: usize) -> String {
    "word".repeat(1 + k + turn)
}

/// Returns the number of the record that contains a question.
fn number(text: &str) -> usize {
    let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
    let rest = text.split_once("visitor ").or_else(|| text.split_once("clerk ")).unwrap_or_else(|| panic!("{text}")).1;
    digits(rest).parse().unwrap()
}

#[test]
fn both_servers_get_the_texts_of_the_data_set_in_one_order() {
    let lab = Lab::new();
    lab.write("data/chats.json", &sharegpt(12));
    let plan = "scenarios: { chats: { data: { file: data/chats.json } } }\n\
                sweeps: { s: { matrix: { endpoint: [a, b], scenario: chats, qps: [40, 60] } } }\n";
    let all = told(&lab, plan);
    assert_eq!(all.len(), 4);
    let longest = all.iter().map(Told::texts).max_by_key(Vec::len).unwrap();
    assert!(longest.len() > 24, "{} requests", longest.len());
    for one in &all {
        let texts = one.texts();
        assert_eq!(texts, longest[..texts.len()], "at every server and load");
        let rows: BTreeMap<u64, &RequestRow> = one.rows().map(|row| (row.request, row)).collect();
        for ((at, body), text) in one.log.iter().zip(&texts) {
            let (k, row) = (number(text), rows[at]);
            let messages = said(body);
            assert_eq!(messages.len(), if k.is_multiple_of(4) { 2 } else { 1 });
            assert_eq!(messages.last().unwrap().0, "user");
            assert!(messages.last().unwrap().1.ends_with(&question(k, 0)), "{messages:?}");
            assert_eq!(body["max_tokens"], 1 + k, "as many tokens as the recorded response");
            assert_eq!((row.requested_tokens, row.reusable_tokens), (1 + k as u32, Some(0)));
        }
    }
    // Every record is used once before any is repeated, each time in a different order.
    let passes: Vec<Vec<usize>> =
        longest.chunks(12).map(|pass| pass.iter().map(|text| number(text)).collect()).collect();
    for pass in passes.iter().filter(|pass| pass.len() == 12) {
        assert_eq!(pass.iter().copied().collect::<BTreeSet<_>>(), (0..12).collect());
    }
    assert!(passes[0] != passes[1] && passes[0] != (0..12).collect::<Vec<_>>(), "{passes:?}");
    // The same text occurs twice, but a cache has no hits because nonces differ.
    let heads: BTreeSet<String> =
        all.iter().flat_map(|one| one.log.values().map(|body| said(body)[0].1[..24].to_owned())).collect();
    assert_eq!(heads.len(), all.iter().map(|one| one.log.len()).sum::<usize>());
    // No text is stored with the results, only the number of records and the file.
    let stored = std::fs::read_to_string(all[0].run.dir.join("run.json")).unwrap();
    assert!(!stored.contains("visitor"));
    assert_eq!(all[0].spec("/scenario/data/records"), 12);
    let frozen = lab.ok(&["freeze", "plan.yaml"]).stdout;
    assert!(!frozen.contains("visitor") && frozen.contains("file: data/chats.json"), "{frozen}");
}

#[test]
fn the_order_of_the_file_is_kept_where_it_is_asked_for_and_texts_stand_alone_without_a_nonce() {
    let lab = Lab::new();
    lab.write("chats.json", &sharegpt(5));
    let plan = "nonce: off\nscenarios: { chats: { data: { file: chats.json, order: file }, output_tokens: 3 } }\n\
                sweeps: { s: { matrix: { endpoint: a, scenario: chats, qps: 40 } } }\n";
    let all = told(&lab, plan);
    let one = &all[0];
    assert!(one.log.len() > 10, "{}", one.log.len());
    let rows: BTreeMap<u64, &RequestRow> = one.rows().map(|row| (row.request, row)).collect();
    for (at, body) in &one.log {
        let k = *at as usize % 5;
        let messages = said(body);
        assert_eq!(messages.last().unwrap().1, question(k, 0));
        assert_eq!(messages.len() == 2, k.is_multiple_of(4));
        assert_eq!(body["max_tokens"], 3, "the number in the scenario");
        let row = rows[at];
        let again = if *at < 5 { 0 } else { row.intended_prompt_tokens };
        assert_eq!(row.reusable_tokens, Some(again), "repeated texts are in the cache by then");
    }
}

#[test]
fn conversations_carry_their_own_turns() {
    let lab = Lab::new();
    lab.write("chats.json", &sharegpt(7));
    let plan = "scenarios:\n  real: { base: D, data: { file: chats.json } }\n  scripted: { base: real, history: scripted }\n  \
                two: { base: scripted, turns: 2 }\n\
                sweeps: { s: { matrix: { endpoint: a, scenario: [real, scripted, two], batch_size: 3 } } }\n";
    for one in told(&lab, plan) {
        let scenario = one.spec("/labels/scenario").as_str().unwrap().to_owned();
        let mut turns: BTreeMap<u64, u32> = BTreeMap::new();
        let mut records: BTreeMap<u64, usize> = BTreeMap::new();
        for row in one.rows() {
            let Some(body) = one.log.get(&row.request) else { continue };
            let (conversation, turn) = (row.conversation.unwrap(), row.turn.unwrap());
            let mut messages = said(body);
            let first = bare(&messages[0].1).to_owned();
            let k = number(&first);
            assert_eq!(*records.entry(conversation).or_insert(k), k, "one conversation belongs to one record");
            messages[0].1 = first;
            if k.is_multiple_of(4) {
                assert_eq!(messages.remove(0), ("system".to_owned(), format!("You are clerk {k}.")));
            }
            assert_eq!(messages.len(), 2 * turn as usize + 1, "{scenario}: {messages:?}");
            for (at, (role, text)) in messages.iter().enumerate() {
                let (own, is_user) = (at / 2, at % 2 == 0);
                assert_eq!(role, if is_user { "user" } else { "assistant" });
                match (is_user, scenario.as_str()) {
                    (true, _) => assert_eq!(*text, question(k, own)),
                    (false, "real") => assert_ne!(*text, answer(k, own), "the server's response"),
                    (false, _) => assert_eq!(*text, answer(k, own), "the recorded response"),
                }
            }
            assert_eq!(body["max_tokens"], 1 + k + turn as usize);
            let most = turns.entry(conversation).or_default();
            *most = turn.max(*most);
        }
        // A conversation has as many turns as its record, unless it was still in flight at the end.
        let most = if scenario == "two" { 1 } else { 2 };
        let whole =
            turns.iter().filter(|(conversation, last)| **last as usize == (records[conversation] % 3).min(most));
        assert!(whole.count() + 3 >= turns.len() && turns.len() > 6, "{scenario}: {turns:?}");
        assert!(turns.iter().all(|(conversation, last)| *last as usize <= (records[conversation] % 3).min(most)));
        assert_eq!(turns.values().max(), Some(&(most as u32)));
    }
}

#[test]
fn a_data_set_may_be_a_class_of_a_mix_and_have_a_cold_twin() {
    let lab = Lab::new();
    lab.write("chats.json", &sharegpt(9));
    let plan = "scenarios:\n  asked: { data: { file: chats.json } }\n  talk: { base: D, data: { file: chats.json } }\n  \
                mixed: { mix: [{ scenario: asked, share: 1 }, { scenario: talk, share: 1 }, { scenario: B1, share: 1 }] }\n\
                sweeps: { s: { matrix: { endpoint: a, scenario: mixed, qps: 150, cache: [warm, cold] } } }\n";
    for one in told(&lab, plan) {
        let is_cold = one.spec("/mix/0/scenario/cache") == "cold";
        let mut firsts = BTreeSet::new();
        let mut records = Vec::new();
        let mut classes = BTreeSet::new();
        let mut rows: Vec<&RequestRow> = one.rows().filter(|row| one.log.contains_key(&row.request)).collect();
        rows.sort_unstable_by_key(|row| row.request);
        for row in rows {
            let messages = said(&one.log[&row.request]);
            let class = row.class.as_deref().unwrap().to_owned();
            if class == "asked" {
                records.push(number(&messages[0].1));
            }
            // Each turn of a cold conversation starts with a separate nonce; the turns of other
            // conversations share one nonce.
            if is_cold || row.turn.unwrap_or(0) == 0 {
                assert!(firsts.insert(messages[0].1[..24].to_owned()), "{class}: {messages:?}");
            }
            let known = row.reusable_tokens.unwrap() > 0;
            assert_eq!(known, !is_cold && row.turn.unwrap_or(0) > 0, "{class} {row:?}");
            classes.insert(class);
        }
        assert_eq!(classes.into_iter().collect::<Vec<_>>(), ["B1", "asked", "talk"]);
        assert!(records.len() > 18, "{records:?}");
        assert_eq!(
            records[..9].iter().copied().collect::<BTreeSet<_>>(),
            (0..9).collect(),
            "each class counts separately"
        );
    }
}

#[test]
fn texts_and_answers_are_counted_by_the_tokenizer_of_the_model() {
    let lab = Lab::new();
    lab.write("chats.json", &sharegpt(8));
    let library = bpe();
    folder(&lab, &library);
    let plan = "scenarios: { chats: { data: { file: chats.json } } }\n\
                sweeps: { s: { matrix: { endpoint: a, scenario: chats, qps: 40 } } }\n";
    let count = |text: &str| library.encode(text, false).unwrap().len();
    let all = told_of(&lab, "{ m: { id: tiny, tokenizer: model } }", plan);
    let rows: BTreeMap<u64, &RequestRow> = all[0].rows().map(|row| (row.request, row)).collect();
    assert!(all[0].log.len() > 10);
    for (at, body) in &all[0].log {
        let messages = said(body);
        let chat: String =
            messages.iter().map(|(role, text)| format!("<|im_start|>{role}\n{text}<|im_end|>\n")).collect();
        let ours = rows[at].intended_prompt_tokens as usize;
        assert_eq!(ours, count(&format!("{chat}<|im_start|>assistant\n")), "{messages:?}");
        let k = number(&messages[0].1);
        assert_eq!(body["max_tokens"], count(&answer(k, 0)), "a response is counted as its text");
    }
}
