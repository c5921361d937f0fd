//! Tests conversations in the rows and in the server's own log: which responses the history contains,
//! how long users think, when conversations begin, and which part of a history remains at the context
//! limit.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sweepline::rows::{Phase, RequestRow};

use lab::mock::Mock;
use lab::{Lab, Run};

const MS: u64 = 1_000_000;

/// One run and the server's log lines for it, by request number.
struct Told {
    run: Run,
    log: BTreeMap<u64, Value>,
}

/// Returns the results of a plan whose endpoints are one mock with `flags`; `c` uses the completions API.
fn told(flags: &[&str], plan: &str) -> Vec<Told> {
    let lab = Lab::new();
    let mut mock = Mock::start(flags);
    let url = format!("http://127.0.0.1:{}/v1", mock.port);
    let head = format!(
        "sweepline: 1\nname: talk\nseed: 5\nmodels: {{ m: {{ id: tiny }} }}\nendpoints:\n  \
         a: {{ url: {url}, engine: mock, resource: one }}\n  b: {{ url: {url}, engine: mock, resource: one }}\n  \
         c: {{ url: {url}, engine: mock, api: completions, resource: one }}\n"
    );
    lab.write("plan.yaml", &(head + plan));
    let ended = lab.run(&["run", "plan.yaml"]);
    // Exit code 3: a run is invalid, which may happen on a busy machine and is not tested here.
    assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
    mock.terminate();
    let log = mock.log_now();
    let of = |run: Run| {
        let prefix = format!("{}-{}-", &run.json["id"].as_str().unwrap()[..16], run.json["attempt"]);
        let number = |line: &Value| line["request_id"].as_str()?.strip_prefix(&prefix)?.parse().ok();
        let log = log.iter().filter_map(|line| Some((number(line)?, line.clone()))).collect();
        Told { run, log }
    };
    lab.runs().into_values().map(of).collect()
}

impl Told {
    fn rows(&self) -> impl Iterator<Item = &RequestRow> {
        self.run.records.iter().map(|record| &record.row)
    }

    /// Returns the turns of each conversation that the server saw, in order.
    fn conversations(&self) -> BTreeMap<u64, Vec<&RequestRow>> {
        let mut all: BTreeMap<u64, Vec<&RequestRow>> = BTreeMap::new();
        for row in self.rows().filter(|row| self.log.contains_key(&row.request)) {
            all.entry(row.conversation.expect("a conversation")).or_default().push(row);
        }
        all.values_mut().for_each(|turns| turns.sort_by_key(|row| row.turn));
        all
    }

    /// Returns pairs of successive turns of a conversation.
    fn followed(&self) -> Vec<(&RequestRow, &RequestRow)> {
        let conversations = self.conversations();
        conversations.values().flat_map(|turns| turns.windows(2).map(|two| (two[0], two[1]))).collect()
    }

    fn body(&self, row: &RequestRow) -> Value {
        serde_json::from_str(self.log[&row.request]["request"].as_str().unwrap()).unwrap()
    }

    /// Returns the texts of the messages with one role.
    fn texts(&self, row: &RequestRow, role: &str) -> Vec<String> {
        let body = self.body(row);
        let messages = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == role);
        messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    }

    fn spec(&self, path: &str) -> &Value {
        self.run.json["spec"].pointer(path).unwrap_or(&Value::Null)
    }

    fn scenario(&self) -> &str {
        self.spec("/labels/scenario").as_str().unwrap()
    }
}

/// Returns the users' think times from the rows. A think time lasts from the end of a response to the
/// scheduled instant of the next turn.
fn thought(pairs: &[(&RequestRow, &RequestRow)]) -> Vec<u64> {
    pairs.iter().map(|(one, next)| next.scheduled_ns - one.ended_ns.unwrap()).collect()
}

const TALK: &str = "scenarios:
  plain: { base: D, turns: 3, prompt_tokens: 30, output_tokens: 4 }
  slow: { base: plain, think: 60ms }
  people: { base: plain, think: { uniform: { min: 20ms, max: 80ms } } }
phases: { fill: 100ms, stabilize: 100ms, measure: 1500ms, drain: 30s }
";

#[test]
fn users_think_between_an_answer_and_their_next_turn() {
    let sweeps =
        "sweeps: { s: { matrix: { endpoint: a, model: m, scenario: [plain, slow, people], batch_size: 6 } } }\n";
    let all = told(&["--ttft", "4ms", "--itl", "1ms", "--slots", "16"], &format!("{TALK}{sweeps}"));
    assert_eq!(all.len(), 3);
    for told in &all {
        let (scenario, pairs) = (told.scenario(), told.followed());
        let times = thought(&pairs);
        assert!(times.len() > 20, "{scenario}: {} turns followed another", times.len());
        match scenario {
            "plain" => assert!(times.iter().all(|time| *time == 0)),
            "slow" => assert!(times.iter().all(|time| *time == 60 * MS), "{times:?}"),
            _ => {
                assert!(times.iter().all(|time| (20 * MS..=80 * MS).contains(time)), "{times:?}");
                assert!(BTreeSet::from_iter(&times).len() * 10 > times.len() * 9, "each turn has its own pause");
            }
        }
        // The server received nothing for a conversation while its user was thinking.
        for ((one, next), time) in pairs.iter().zip(&times) {
            let at = |row: &RequestRow, name: &str| told.log[&row.request][name].as_u64().unwrap();
            let quiet = at(next, "arrival_ns") - at(one, "last_write_ns");
            assert!(quiet >= *time, "{scenario}: {quiet} < {time}");
            assert!(next.sent_ns >= Some(next.scheduled_ns), "never early");
        }
        // A slot's new conversation starts as soon as the previous one is over.
        let ends: BTreeSet<u64> = told.rows().filter_map(|row| row.ended_ns).collect();
        let later: Vec<&RequestRow> =
            told.rows().filter(|row| row.turn == Some(0) && row.scheduled_ns > 100 * MS).collect();
        assert!(later.len() > 3, "{scenario}");
        assert!(later.iter().all(|row| ends.contains(&row.scheduled_ns)), "{scenario}");
        // Conversations of several users overlap.
        let in_window = told.rows().filter(|row| row.phase == Phase::Measure);
        let busy: BTreeSet<u64> = in_window.filter_map(|row| row.conversation).collect();
        assert!(busy.len() >= 6, "{busy:?}");
        let thinks = if scenario == "plain" { Value::Null } else { true.into() };
        assert_eq!(told.run.json["facts"]["thinks"], thinks);
    }
}

#[test]
fn think_times_are_the_same_for_every_server() {
    let sweeps = "sweeps: { s: { matrix: { endpoint: [a, b], model: m, scenario: people, batch_size: [3, 6] } } }\n";
    let flags = ["--ttft", "3ms", "--itl", "1ms", "--slots", "16", "--jitter", "50%"];
    let all = told(&flags, &format!("{TALK}{sweeps}"));
    assert_eq!(all.len(), 4);
    let mut known: BTreeMap<(u64, u32), u64> = BTreeMap::new();
    let mut twice = 0;
    for told in &all {
        let pairs = told.followed();
        for ((_, next), time) in pairs.iter().zip(thought(&pairs)) {
            let turn = (next.conversation.unwrap(), next.turn.unwrap());
            if let Some(before) = known.insert(turn, time) {
                assert_eq!(before, time, "{turn:?}");
                twice += 1;
            }
        }
    }
    assert!(twice > 20, "{twice} turns on several servers or at several loads");
}

#[test]
fn real_answers_stand_in_the_history_and_scripted_ones_are_the_same_everywhere() {
    let all = told(
        &["--ttft", "2ms", "--itl", "1ms", "--slots", "16", "--fault", "http:503@20"],
        "nonce: off
scenarios:
  real: { base: D, turns: 3, prompt_tokens: 30, output_tokens: 6 }
  scripted: { base: real, history: scripted }
phases: { fill: 50ms, stabilize: 50ms, measure: 700ms, drain: 30s }
sweeps: { s: { matrix: { endpoint: [a, b, c], model: m, scenario: [real, scripted], batch_size: 3 } } }
",
    );
    let mut scripted: BTreeMap<(String, u64, u32), Value> = BTreeMap::new();
    let (mut compared, mut deep) = (0, 0);
    for told in &all {
        let api = told.spec("/endpoint/api").as_str().unwrap();
        for turns in told.conversations().into_values() {
            if told.scenario() == "scripted" {
                for row in turns {
                    let key = (api.to_owned(), row.conversation.unwrap(), row.turn.unwrap());
                    let body = told.body(row);
                    if let Some(before) = scripted.insert(key.clone(), body.clone()) {
                        assert_eq!(before, body, "{key:?}: two servers get different texts");
                        compared += 1;
                    }
                }
                continue;
            }
            let answer = |row: &&RequestRow| told.log[&row.request]["answer"].as_str().unwrap_or_default().to_owned();
            let answers: Vec<String> = turns.iter().map(answer).collect();
            for (turn, row) in turns.iter().enumerate() {
                let said = &answers[..turn];
                deep += said.len();
                if api == "completions" {
                    let sent = told.body(row)["prompt"].as_str().unwrap().to_owned();
                    assert!(said.iter().all(|answer| sent.contains(&format!("\nAssistant:{answer}\n"))), "{sent}");
                } else {
                    assert_eq!(told.texts(row, "assistant"), said, "the server's response");
                }
            }
        }
    }
    assert!(compared > 10, "{compared} scripted turns went to both servers");
    assert!(deep > 10, "{deep} responses are part of later requests");
}

#[test]
fn conversations_arrive_at_their_rate_and_go_on_by_themselves() {
    let all = told(
        &["--ttft", "5ms", "--itl", "1ms", "--slots", "64"],
        "scenarios:
  visits: { base: D, turns: 3, prompt_tokens: 30, output_tokens: 4, sessions: open, think: 40ms }
phases: { fill: 200ms, stabilize: 300ms, measure: 1500ms, drain: 30s }
sweeps:
  even: { arrivals: constant, matrix: { endpoint: a, model: m, scenario: visits, qps: 20 } }
  chance: { matrix: { endpoint: [a, b], model: m, scenario: visits, qps: 15 } }
  capped: { arrivals: constant, matrix: { endpoint: a, model: m, scenario: visits, qps: 25, batch_size: 2 } }
",
    );
    let mut by_chance: Vec<Vec<u64>> = Vec::new();
    for told in &all {
        let qps = told.spec("/load/open/qps").as_f64().unwrap();
        let firsts = told.rows().filter(|row| row.turn == Some(0));
        let mut starts: Vec<u64> = firsts.map(|row| row.scheduled_ns).collect();
        starts.sort_unstable();
        if qps == 15.0 {
            by_chance.push(starts.clone());
        } else {
            // Conversation k starts when k + 1 arrivals are expected, whatever happened to the others.
            for (k, at) in starts.iter().enumerate() {
                let (t, fill) = (*at as f64 / 1e9, 0.2);
                let arrived = if t < fill { qps * t * t / (2.0 * fill) } else { qps * (t - fill / 2.0) };
                assert!((arrived - (k + 1) as f64).abs() < 1e-6, "conversation {k} at {t}: {arrived}");
            }
        }
        let pairs = told.followed();
        assert!(pairs.len() > 15, "{} later turns", pairs.len());
        assert!(thought(&pairs).iter().all(|time| *time == 40 * MS));
        assert!(pairs.iter().all(|(one, next)| one.turn.unwrap() + 1 == next.turn.unwrap()));
        let facts = &told.run.json["facts"];
        if qps == 25.0 {
            assert!(facts["max_in_flight"].as_u64().unwrap() <= 2);
        } else {
            assert!(told.rows().all(|row| row.released_ns.is_none_or(|at| at == row.scheduled_ns)), "no request waits");
        }
        // Requests are counted, not arrivals, and none was missed, except those that a busy machine was
        // about to send when the window closed.
        assert_eq!(facts["scheduled"].as_u64().unwrap() as usize, told.run.records.len());
        assert!(facts["never_sent"].as_u64().unwrap() <= 2, "{facts}");
    }
    let length = by_chance[0].len().min(by_chance[1].len());
    assert!(length > 8, "{length} conversations");
    assert_eq!(by_chance[0][..length], by_chance[1][..length], "two servers get conversations at the same instants");
}

#[test]
fn an_arrival_takes_the_conversation_that_has_waited_longest() {
    let all = told(
        &["--ttft", "5ms", "--itl", "1ms", "--slots", "64"],
        "scenarios:
  plain: { base: D, turns: 3, prompt_tokens: 30, output_tokens: 4 }
  slow: { base: plain, think: 150ms }
phases: { fill: 100ms, stabilize: 100ms, measure: 1500ms, drain: 30s }
sweeps: { s: { arrivals: constant, matrix: { endpoint: a, model: m, scenario: [plain, slow], qps: 40 } } }
",
    );
    for told in &all {
        let least = if told.scenario() == "slow" { 150 * MS } else { 0 };
        let pairs = told.followed();
        assert!(pairs.len() > 20, "{}", pairs.len());
        let waited = pairs.iter().map(|(one, next)| next.released_ns.unwrap().checked_sub(one.ended_ns.unwrap()));
        assert!(
            least == 0 || waited.clone().all(|time| time >= Some(least)),
            "no turn starts while its user is thinking"
        );
        // Every arrival is one request of any conversation.
        let mut wanted: Vec<u64> = told.rows().map(|row| row.scheduled_ns).filter(|at| *at >= 200 * MS).collect();
        wanted.sort_unstable();
        assert!(wanted.windows(2).all(|two| (two[1] - two[0]).abs_diff(25 * MS) <= 1), "{wanted:?}");
    }
}

#[test]
fn a_history_is_cut_at_the_context() {
    let all = told(
        &["--ttft", "2ms", "--itl", "1ms", "--slots", "16"],
        "scenarios:
  cut: { base: D, turns: 8, prompt_tokens: 40, output_tokens: 20, context_limit: 220 }
  ruled: { base: cut, system_tokens: 40 }
  ended: { base: cut, context_cut: end }
phases: { fill: 50ms, stabilize: 50ms, measure: 1s, drain: 30s }
sweeps: { s: { matrix: { endpoint: a, model: m, scenario: [cut, ruled, ended], batch_size: 3 } } }
",
    );
    for told in &all {
        let (scenario, conversations) = (told.scenario(), told.conversations());
        let deepest = conversations.values().map(Vec::len).max().unwrap();
        let mut cuts = 0;
        for turns in conversations.values() {
            let mut said: Vec<String> = Vec::new();
            for (turn, row) in turns.iter().enumerate() {
                assert!(row.intended_prompt_tokens + row.requested_tokens <= 220, "{scenario}: {row:?}");
                let (users, before) = (told.texts(row, "user"), said.len());
                said.push(users.last().unwrap().clone());
                // The newest turns remain, verbatim.
                assert_eq!(users, said[said.len() - users.len()..], "{scenario}");
                assert_eq!(told.texts(row, "assistant").len() + 1, users.len());
                if scenario == "ruled" {
                    assert_eq!(told.texts(row, "system"), told.texts(turns[0], "system"), "the system message remains");
                } else {
                    assert!(users[0].starts_with("[ref "), "{scenario}: each run has its own opening: {}", users[0]);
                }
                let last = turn.checked_sub(1).map(|last| told.texts(turns[last], "user"));
                if users.len() <= before && last.is_some_and(|last| last[0] != users[0]) {
                    cuts += 1;
                    let system = if scenario == "ruled" { 41 } else { 0 };
                    assert!(row.reusable_tokens.unwrap() <= system, "{scenario}: {row:?}");
                }
            }
        }
        match scenario {
            "ended" => assert!(cuts == 0 && (2..8).contains(&deepest), "{cuts} cuts, {deepest} turns"),
            _ => assert!(cuts > 5 && deepest > 3, "{scenario}: {cuts} cuts, {deepest} turns"),
        }
    }
}
