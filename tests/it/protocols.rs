//! Tests protocols other than chat and completions: the requests of each protocol, how its responses are
//! parsed, and which numbers it has.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sweepline::rows::{Outcome, Phase};

use lab::mock::Mock;
use lab::sweeps::honest;
use lab::{Lab, Run};

const PLAN: &str = "\
sweepline: 1
name: protocols
models: { m: { id: tiny } }
endpoints:
  responses: { url: URL, engine: mock, api: responses }
  embeddings: { url: URL, engine: mock, api: embeddings }
  rerank: { url: URL, engine: mock, api: rerank }
scenarios:
  talk: { prompt_tokens: 32, output_tokens: 5, temperature: 0.5 }
  turns: { base: D, prompt_tokens: 20, output_tokens: 5, turns: 2 }
  passages: { prompt_tokens: 24, inputs: 3, system_tokens: 16 }
  search: { prompt_tokens: 24, documents: 4, query_tokens: 16 }
phases: { fill: 0s, stabilize: 0s, measure: { for: 200ms, min_requests: 6, at_most: 60s }, drain: 20s }
sweeps:
  a: { matrix: { endpoint: responses, scenario: [talk, turns], batch_size: 2, stream: [true, false] } }
  b: { matrix: { endpoint: embeddings, scenario: [passages, talk], batch_size: 2 } }
  c: { matrix: { endpoint: rerank, scenario: search, batch_size: 2 } }
";

/// Returns `endpoint scenario`, with ` stream=…` if streaming is an axis.
fn name(run: &Run) -> String {
    let text = |at: &str| run.json.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let stream = text("/spec/labels/axes/stream");
    let stream = if stream.is_empty() { stream } else { format!(" stream={stream}") };
    format!("{} {}{stream}", text("/spec/endpoint/name"), text("/spec/labels/scenario"))
}

/// Returns the requests of each run as the mock received them: path and body.
fn met(lab: &Lab, mock: &Mock) -> BTreeMap<String, Vec<(String, Value)>> {
    let names: BTreeMap<String, String> = lab.runs().into_iter().map(|(id, run)| (id, name(&run))).collect();
    let mut met: BTreeMap<String, Vec<(String, Value)>> = BTreeMap::new();
    for line in mock.log_now() {
        let Some(id) = line["request_id"].as_str() else { continue };
        let Some((_, name)) = names.iter().find(|(run, _)| id.starts_with(run.as_str())) else { continue };
        let body = serde_json::from_str(line["request"].as_str().unwrap()).unwrap();
        met.entry(name.clone()).or_default().push((line["path"].as_str().unwrap().to_owned(), body));
    }
    met
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// Returns the metrics of a run as JSON.
fn metrics(lab: &Lab, run: &Run) -> Value {
    let id = run.json["id"].as_str().unwrap();
    lab.ok(&["show", &id[..12], "--plan", "plan.yaml", "--format", "json"]).json()
}

#[test]
fn each_asks_and_is_answered_in_its_own_way() {
    let lab = Lab::new();
    let mut mock = Mock::start(&["--ttft", "10ms", "--itl", "2ms"]);
    lab.write("plan.yaml", &PLAN.replace("URL", &format!("http://127.0.0.1:{}/v1", mock.port)));
    assert_eq!(lab.ok(&["check", "plan.yaml"]).stdout.lines().next(), Some("plan.yaml: ok"));
    honest(&lab.run(&["run", "plan.yaml"]));
    let again = lab.run(&["run", "plan.yaml"]);
    assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    // The frozen plan gives the same runs.
    lab.ok(&["freeze", "plan.yaml", "-o", "frozen.yaml"]);
    let frozen = lab.run(&["run", "frozen.yaml"]);
    assert!(frozen.stderr.contains("nothing to do"), "{}", frozen.stderr);
    mock.terminate();
    let met = met(&lab, &mock);
    let first = |name: &str| met.get(name).unwrap_or_else(|| panic!("{name}: {:?}", met.keys()))[0].clone();
    let (path, body) = first("responses talk stream=true");
    assert_eq!(path, "/v1/responses");
    let fields = ["model", "max_output_tokens", "temperature", "stream", "store", "ignore_eos"];
    let said: Vec<&Value> = fields.iter().map(|field| &body[*field]).collect();
    assert_eq!(json!(said), json!(["tiny", 5, 0.5, true, false, true]));
    assert_eq!(body["input"][0]["role"], "user");
    assert_eq!(body.as_object().unwrap().len(), fields.len() + 1, "{body}");
    let turns = &met["responses turns stream=true"];
    let roles = |body: &Value| -> Vec<String> {
        body["input"].as_array().unwrap().iter().map(|item| item["role"].as_str().unwrap().to_owned()).collect()
    };
    assert!(turns.iter().any(|(_, body)| roles(body) == ["user", "assistant", "user"]), "the response continues");
    let (path, body) = first("embeddings passages");
    assert_eq!(path, "/v1/embeddings");
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["model", "input", "encoding_format"]);
    let inputs = texts(&body["input"]);
    assert_eq!(inputs.len(), 3);
    let (shared, _) = inputs[0].split_once("\n\n").unwrap();
    assert!(inputs.iter().all(|input| input.starts_with(shared)), "each follows the shared text: {inputs:?}");
    assert!(inputs[0] != inputs[1] && inputs[1] != inputs[2], "{inputs:?}");
    assert_eq!(texts(&first("embeddings talk").1["input"]).len(), 1);
    let (path, body) = first("rerank search");
    assert_eq!(path, "/v1/rerank");
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["model", "query", "documents"]);
    let documents = texts(&body["documents"]);
    assert_eq!(documents.len(), 4);
    assert!(documents.iter().all(|document| document.len() > body["query"].as_str().unwrap().len()));
    // No two requests share a text.
    let all = ["embeddings passages", "rerank search"].map(|name| met[name].iter().map(|(_, body)| body.to_string()));
    for bodies in all {
        let bodies: Vec<String> = bodies.collect();
        let distinct: std::collections::BTreeSet<&String> = bodies.iter().collect();
        assert_eq!(distinct.len(), bodies.len());
    }
}

#[test]
fn what_has_no_tokens_has_no_numbers_of_tokens() {
    let lab = Lab::new();
    let mock = Mock::start(&["--ttft", "10ms", "--itl", "2ms"]);
    lab.write("plan.yaml", &PLAN.replace("URL", &format!("http://127.0.0.1:{}/v1", mock.port)));
    honest(&lab.run(&["run", "plan.yaml"]));
    let mut seen = 0;
    for run in lab.runs().into_values() {
        let (name, shown) = (name(&run), metrics(&lab, &run));
        let number = |key: &str| shown["metrics"].get(key).unwrap_or_else(|| panic!("{key} in {shown:#}"));
        let of_tokens = ["ttft", "tpot", "itl", "generation_throughput", "user_throughput"];
        let counts: Vec<&Value> = of_tokens.iter().map(|metric| number(&format!("{metric}_n"))).collect();
        let streams = name.ends_with("stream=true");
        if name.starts_with("responses") {
            assert!(counts[..4].iter().all(|count| (**count != json!(0)) == streams), "{name}: {counts:?}");
        } else {
            assert!(counts.iter().all(|count| **count == json!(0)), "{name}: {counts:?}");
            assert!(number("output_throughput_tokens_per_s").is_null(), "{name}");
            assert!(number("prompt_throughput_tokens_per_s").is_number(), "{name}");
            assert!(number("e2e_mean_ms").is_number(), "{name}");
            seen += 1;
        }
        for record in run.records.iter().filter(|record| record.row.phase == Phase::Measure) {
            let row = &record.row;
            assert_eq!(row.outcome, Outcome::Ok, "{name}: {:?}", row.error);
            let tokens = if name.starts_with("responses") { Some(5) } else { None };
            assert_eq!(row.output_tokens, tokens, "{name}");
            assert_eq!(row.first_token_ns.is_some(), streams, "{name}");
            // The mock counts words and marks, which an estimate approximates well.
            let (sent, counted) = (row.intended_prompt_tokens, row.prompt_tokens.unwrap());
            let least = match name.split(' ').next().unwrap() {
                "rerank" => 4 * (16 + 24),
                "embeddings" if name.ends_with("passages") => 3 * (16 + 24),
                _ => 20,
            };
            assert!(sent.abs_diff(least) <= least / 8 || sent > 20 && least == 20, "{name}: {sent} of {least}");
            assert!(counted > sent / 2 && counted < sent * 2, "{name}: {counted} of {sent}");
        }
    }
    assert_eq!(seen, 3);
    let table = lab.ok(&["export", "plan.yaml", "--format", "csv"]).stdout;
    assert_eq!(table.lines().count(), 8, "{table}");
}

#[test]
fn an_answer_of_another_length_or_form_is_a_failure() {
    let faults = ["short@3", "empty@4", "error-object@5", "wrong-shape@6", "invalid-json@7"];
    let wanted = ["malformed", "malformed", "stream_error", "malformed", "malformed"];
    for (endpoint, scenario) in [("embeddings", "passages"), ("rerank", "search")] {
        let lab = Lab::new();
        let flags: Vec<String> = faults.iter().map(|fault| format!("--fault={fault}")).collect();
        let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        flags.extend(["--ttft", "5ms"]);
        let mock = Mock::start(&flags);
        let plan = PLAN.split("sweeps:").next().unwrap().replace("min_requests: 6", "min_requests: 8");
        let plan = plan.replace("URL", &format!("http://127.0.0.1:{}/v1", mock.port));
        let sweeps =
            format!("sweeps: {{ s: {{ matrix: {{ endpoint: {endpoint}, scenario: {scenario}, batch_size: 1 }} }} }}\n");
        lab.write("plan.yaml", &format!("{plan}{sweeps}"));
        honest(&lab.run(&["run", "plan.yaml"]));
        let mut records = lab.only_run().records;
        records.sort_by_key(|record| record.row.request);
        // The probe's generation is the mock's request 1.
        let outcomes: Vec<String> = records.iter().map(|record| record.row.outcome.to_string()).collect();
        assert_eq!(outcomes[1..6], wanted, "{endpoint}: {outcomes:?}");
        let said: Vec<&str> = records.iter().filter_map(|record| record.row.error.as_deref()).collect();
        let count = if endpoint == "embeddings" { 3 } else { 4 };
        assert_eq!(said[0], format!("{} values for {count} texts", count - 1));
        assert_eq!(said[1], format!("0 values for {count} texts"));
        assert!(said[2].contains("a fault of the mock"), "{said:?}");
    }
}

#[test]
fn a_stream_of_responses_that_breaks_is_told_like_any_other() {
    let faults = ["error-object:2@3", "truncate:2@4", "reset:2@5", "invalid-json:2@6", "empty@7"];
    let wanted = ["stream_error", "malformed", "reset", "malformed", "empty"];
    let lab = Lab::new();
    let flags: Vec<String> = faults.iter().map(|fault| format!("--fault={fault}")).collect();
    let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    flags.extend(["--ttft", "5ms", "--itl", "1ms"]);
    let mock = Mock::start(&flags);
    let plan = PLAN.split("sweeps:").next().unwrap().replace("min_requests: 6", "min_requests: 8");
    let plan = plan.replace("URL", &format!("http://127.0.0.1:{}/v1", mock.port));
    let plan = plan.replace("api: responses", "api: responses, errors: measured");
    lab.write(
        "plan.yaml",
        &format!("{plan}sweeps: {{ s: {{ matrix: {{ endpoint: responses, scenario: talk, batch_size: 1 }} }} }}\n"),
    );
    honest(&lab.run(&["run", "plan.yaml"]));
    let mut records = lab.only_run().records;
    records.sort_by_key(|record| record.row.request);
    let outcomes: Vec<String> = records.iter().map(|record| record.row.outcome.to_string()).collect();
    assert_eq!(outcomes[1..6], wanted, "{outcomes:?}");
}

#[test]
fn what_a_protocol_does_not_do_is_a_mistake_of_the_plan() {
    let lab = Lab::new();
    let text = "\
sweepline: 1
name: wrong
models: { m: { id: m } }
endpoints:
  chat: { engine: mock }
  vectors: { engine: mock, api: embeddings }
  ranker: { engine: mock, api: rerank }
scenarios:
  passages: { inputs: 3 }
  search: { documents: 4 }
  both: { inputs: 2, documents: 3 }
  words: { inputs: 2, output_tokens: 7, temperature: 0 }
slo: { ttft: { p99: 1s }, e2e: { p99: 2s } }
goodput: { tpot: 10ms }
sweeps:
  s: { matrix: { endpoint: [chat, vectors, ranker], scenario: [passages, search, D, B1], batch_size: 1 } }
";
    lab.write("plan.yaml", text);
    let ended = lab.run(&["check", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    for part in [
        "`ttft` depends on tokens, but responses of endpoint `vectors` (`api: embeddings`) have none, so `ttft` \
         cannot be measured there",
        "`tpot` depends on tokens, but responses of endpoint `vectors` (`api: embeddings`) have none, so `tpot` \
         cannot be measured there",
        "help: limit `e2e`, or measure that endpoint in a separate plan",
        "scenario `passages` has `inputs`, but endpoint `chat` has `api: chat`",
        "remove them there, or use an endpoint with `api: embeddings`",
        "scenario `search` has `documents`, but endpoint `chat` has `api: chat`",
        "scenario `D` is a conversation, but endpoint `vectors` has `api: embeddings`",
        "scenario `both` has both `inputs` and `documents`, but a request can have only one of them",
        "`output_tokens` has no effect in scenario `words`: its requests have `inputs`, and the responses are vectors",
        "`temperature` has no effect in scenario `words`",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    assert!(!said.contains("scenario `B1`"), "a text can be embedded: {said}");
}

#[test]
fn how_many_texts_may_be_an_axis_and_defaults_are_said() {
    let lab = Lab::new();
    let text = "\
sweepline: 1
name: axis
models: { m: { id: m } }
endpoints: { v: { engine: mock, api: embeddings, mock: { ttft: 5ms } } }
scenarios: { one: { prompt_tokens: 16 }, said: { prompt_tokens: 16, inputs: 1 } }
phases: { fill: 0s, stabilize: 0s, measure: 100ms, drain: 20s }
sweeps:
  a: { matrix: { scenario: one, inputs: [1, 4], batch_size: 1 } }
  b: { matrix: { scenario: [one, said], batch_size: 1 } }
";
    lab.write("plan.yaml", text);
    honest(&lab.run(&["run", "plan.yaml"]));
    let runs = lab.runs();
    let inputs: Vec<&Value> = runs.values().map(|run| &run.json["spec"]["shaping"]["inputs"]).collect();
    assert_eq!(inputs.len(), 2, "the default and the written value are one run: {inputs:?}");
    assert!(inputs.contains(&&json!(1)) && inputs.contains(&&json!(4)), "{inputs:?}");
}
