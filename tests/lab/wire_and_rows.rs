//! Compares the rows with the bytes. A recording proxy is in front of a server, and a simple independent
//! parser of its recording must find the same texts, counts and outcomes as the rows.

use std::collections::{BTreeMap, BTreeSet};

use sweepline::rows::{Outcome, Phase, RequestRow, TokenSource};

use super::wire::{Exchange, Proxy};
use super::{Lab, Run};

/// How long each run takes, and the rate of open loops.
pub struct Load {
    /// The plan's phases.
    pub phases: &'static str,
    /// Requests per second.
    pub qps: u32,
}

/// Returns a plan with closed and open loops, both APIs, single requests and conversations, with and
/// without streaming.
fn plan(port: u16, load: &Load) -> String {
    let Load { phases, qps } = load;
    format!(
        "
sweepline: 1
name: wire
seed: 11
endpoints:
  chat: {{ url: http://127.0.0.1:{port}/v1, api: chat, resource: server }}
  text: {{ url: http://127.0.0.1:{port}/v1, api: completions, resource: server }}
models: {{ tiny: {{ id: default_model }} }}
scenarios:
  short: {{ base: B1, output_tokens: 12 }}
  talk: {{ base: D, output_tokens: 8, turns: 3 }}
  whole: {{ base: B1, output_tokens: 12, stream: false }}
phases: {{ {phases} }}
sweeps:
  closed:
    matrix: {{ endpoint: [chat, text], model: [tiny], scenario: [short, talk, whole], batch_size: [3] }}
  open:
    matrix: {{ endpoint: [chat, text], model: [tiny], scenario: [short, talk], qps: [{qps}] }}
"
    )
}

/// Runs the plan against the server at `port` and compares the rows of all runs with the wire. Returns the
/// exchanges of measured requests by their id.
pub fn measured(lab: &Lab, port: u16, load: &Load) -> BTreeMap<String, Exchange> {
    let proxy = Proxy::start(port);
    lab.write("plan.yaml", &plan(proxy.port(), load));
    let ended = lab.run(&["run", "plan.yaml"]);
    // Exit code 3: a run is invalid, which may happen on a busy machine and is not tested here.
    assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
    let mut wire = BTreeMap::new();
    let mut probes = 0;
    for exchange in proxy.finish() {
        if exchange.id() == "sweepline-probe" {
            probes += 1;
        } else if let Some(twice) = wire.insert(exchange.id().to_owned(), exchange) {
            panic!("{} was sent twice", twice.id());
        }
    }
    assert!(probes > 0, "the probe goes through the proxy too");
    let runs = lab.runs();
    assert_eq!(runs.len(), 10);
    let mut sent = BTreeSet::new();
    for (name, run) in &runs {
        for record in &run.records {
            let id = id(name, run, &record.row);
            if record.row.sent_ns.is_some() {
                let exchange = wire.get(&id).unwrap_or_else(|| panic!("{id} was sent, but never seen: {record:?}"));
                agree(&id, run, &record.row, exchange);
                assert!(sent.insert(id));
            }
        }
        let measured = run.records.iter().filter(|record| record.row.phase == Phase::Measure);
        let (ok, all) =
            measured.fold((0, 0), |(ok, all), record| (ok + usize::from(record.row.outcome.is_ok()), all + 1));
        assert!(ok > 0 && ok == all, "{name}: {ok} of {all} requests of the window are ok");
    }
    let unknown: Vec<&String> = wire.keys().filter(|id| !sent.contains(*id)).collect();
    assert!(unknown.is_empty(), "seen on the wire, but not in any row that was sent: {unknown:?}");
    history(&runs, &wire);
    wire
}

fn id(name: &str, run: &Run, row: &RequestRow) -> String {
    format!("{name}-{}-{}", run.json["attempt"], row.request)
}

/// Asserts that a row and its bytes agree.
fn agree(id: &str, run: &Run, row: &RequestRow, exchange: &Exchange) {
    let spec = &run.json["spec"];
    let path = if spec["endpoint"]["api"] == "chat" { "/v1/chat/completions" } else { "/v1/completions" };
    assert_eq!(exchange.head.line, format!("POST {path} HTTP/1.1"), "{id}");
    let asked = exchange.json();
    assert_eq!(asked["stream"], spec["shaping"]["stream"], "{id}");
    assert_eq!(asked["max_tokens"], row.requested_tokens, "{id}");

    let answer = exchange.answer();
    let heard = if row.outcome.is_ok() { answer.content.len() } else { row.events as usize };
    if row.outcome != Outcome::Ok {
        // For requests in flight at the end, the proxy may have recorded more than the client read.
        assert_eq!((row.outcome, row.phase), (Outcome::CutAtDrain, Phase::Drain), "{id}: {:?}", row.error);
        assert!(heard <= answer.content.len(), "{id}");
        assert_eq!(row.text_digest, answer.digest(heard), "{id}");
        return;
    }
    assert!(answer.is_done && exchange.response.as_ref().unwrap().is_whole, "{id}: {answer:?}");
    assert_eq!(row.http_status, exchange.status(), "{id}");
    assert_eq!(row.http_status, Some(200), "{id}");
    assert_eq!(row.finish_reason, answer.finish_reason, "{id}");
    assert!(row.finish_reason.is_some(), "{id}");
    assert_eq!(row.prompt_tokens.map(u64::from), answer.prompt_tokens, "{id}");
    assert_eq!(row.output_tokens.map(u64::from), answer.output_tokens, "{id}");
    assert_eq!((row.token_source, answer.output_tokens.is_some()), (Some(TokenSource::Usage), true), "{id}");
    assert_eq!(row.text_digest, answer.digest(heard), "{id}: {answer:?}");
    assert!(row.text_digest.is_some(), "{id}");
    assert_eq!(row.bytes, exchange.response.as_ref().unwrap().body.len() as u64, "{id}");
    if spec["shaping"]["stream"] == true {
        assert_eq!(row.events as usize, heard, "{id}");
    }
}

/// Each turn of a conversation contains the server's real responses to the earlier turns.
fn history(runs: &BTreeMap<String, Run>, wire: &BTreeMap<String, Exchange>) {
    let mut answers = BTreeSet::new();
    for (name, run) in runs.iter().filter(|(_, run)| run.json["spec"]["scenario"]["reuse"] == "conversation") {
        let mut turns = BTreeMap::new();
        for record in run.records.iter().filter(|record| record.row.sent_ns.is_some()) {
            let place = (record.row.conversation.unwrap(), record.row.turn.unwrap());
            let twice = turns.insert(place, &wire[&id(name, run, &record.row)]);
            assert!(twice.is_none(), "{name}: conversation and turn {place:?} twice");
        }
        let mut deepest = 0;
        for ((conversation, turn), exchange) in &turns {
            let asked = exchange.json();
            let before: Vec<&&Exchange> = (0..*turn).map(|earlier| &turns[&(*conversation, earlier)]).collect();
            let said: Vec<String> = before.iter().map(|exchange| exchange.answer().content.concat()).collect();
            deepest = deepest.max(*turn);
            answers.extend(said.iter().cloned());
            if let Some(messages) = asked["messages"].as_array() {
                let texts = |role: &str| -> Vec<&str> {
                    let of_role = messages.iter().filter(|message| message["role"] == role);
                    of_role.map(|message| message["content"].as_str().unwrap()).collect()
                };
                assert_eq!(texts("assistant"), said, "{name}: turn {turn} of conversation {conversation}");
                assert_eq!(texts("user").len(), *turn as usize + 1);
            } else if let Some(last) = before.last() {
                let (prompt, last) = (asked["prompt"].clone(), last.json()["prompt"].clone());
                let carried = format!("{}{}\nUser: ", last.as_str().unwrap(), said.last().unwrap());
                assert!(
                    prompt.as_str().unwrap().starts_with(&carried),
                    "{name}: {prompt} does not contain {carried:?}"
                );
            }
        }
        assert_eq!(deepest, 2, "{name}: some conversation reached its last turn");
    }
    assert!(answers.len() > 2, "responses differ and can be told apart: {answers:?}");
}
