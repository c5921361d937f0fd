//! Tests `api: messages`: the bytes of its requests, and how its responses are read, streamed or not, from the
//! mock and from recorded forms of other servers.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::{Value, json};
use sweepline::rows::{Outcome, Phase, Record, RequestRow, TokenSource, read_texts};

use lab::mock::Mock;
use lab::server::{Server, stream_of};
use lab::sweeps::honest;
use lab::wire::{Exchange, Proxy};
use lab::{Ended, Lab, Run};

const KEY: &str = "canary-of-messages";

const PLAN: &str = "\
sweepline: 1
name: messages
models: { m: { id: tiny } }
endpoints: { e: { url: URL, engine: mock, api: messages, api_key: { secret: env:KEY } } }
scenarios:
  talk:
    { base: C, system_tokens: 64, prompt_tokens: 24, output_tokens: 5, temperature: 0.5, stop: ['###'],
      extra: { top_k: 5 } }
  turns: { base: D, prompt_tokens: 20, output_tokens: 5, turns: 2 }
phases: { fill: 0s, stabilize: 0s, measure: { for: 200ms, min_requests: 6, at_most: 60s }, drain: 20s }
record: { text: true }
sweeps: { s: { matrix: { scenario: [talk, turns], batch_size: 2, stream: [true, false] } } }
";

const MOCK: [&str; 10] =
    ["--ttft", "10ms", "--itl", "2ms", "--reasoning", "2", "--prefix-cache", "100000", "--api-key-env", "MOCK_KEY"];

fn mock() -> Mock {
    Mock::start_with(&MOCK, |command| command.env("MOCK_KEY", KEY))
}

/// Writes the plan for a server at this port.
fn write(lab: &Lab, plan: &str, port: u16) {
    lab.write("plan.yaml", &plan.replace("URL", &format!("http://127.0.0.1:{port}/v1")));
}

fn run(lab: &Lab, key: &str) -> Ended {
    lab.command(&["run", "plan.yaml"]).env("KEY", key).output().unwrap().into()
}

/// Returns the records of a run in the order in which the requests were scheduled.
fn by_number(run: Run) -> Vec<Record> {
    let mut records = run.records;
    records.sort_by_key(|record| record.row.request);
    records
}

/// Returns the header fields of a request whose values are the same in every request.
fn fixed_fields(exchange: &Exchange) -> BTreeMap<&str, &str> {
    let varying = ["host", "content-length", "x-request-id", "user-agent", "accept-encoding"];
    let fields = exchange.head.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    fields.filter(|(name, _)| !varying.contains(name)).collect()
}

#[test]
fn requests_are_byte_for_byte_what_the_api_wants() {
    let lab = Lab::new();
    let mock = mock();
    let proxy = Proxy::start(mock.port);
    write(&lab, PLAN, proxy.port());
    assert_eq!(lab.ok(&["check", "plan.yaml"]).stdout.lines().next(), Some("plan.yaml: ok"));
    let ended = run(&lab, KEY);
    honest(&ended);
    assert!(!format!("{}{}", ended.stdout, ended.stderr).contains(KEY));
    let runs = lab.runs();
    let exchanges = proxy.finish();
    let of_api = ("anthropic-version", "2023-06-01");
    let (mut measured, mut with_history) = (0, 0);
    for exchange in &exchanges {
        assert_eq!(exchange.head.fields.get("x-api-key").map(String::as_str), Some(KEY), "{:?}", exchange.head);
        assert_eq!(exchange.head.fields.get(of_api.0).map(String::as_str), Some(of_api.1));
        assert!(!exchange.head.fields.contains_key("authorization"), "{:?}", exchange.head);
        let Some(run) = runs.values().find(|run| exchange.id().starts_with(&run.json["id"].as_str().unwrap()[..16]))
        else {
            continue;
        };
        measured += 1;
        assert_eq!(exchange.head.line, "POST /v1/messages HTTP/1.1");
        let streams = run.json["spec"]["shaping"]["stream"] == true;
        let accept = if streams { "text/event-stream" } else { "application/json" };
        let wanted = [("content-type", "application/json"), ("accept", accept), ("x-api-key", KEY), of_api]
            .into_iter()
            .collect();
        assert_eq!(fixed_fields(exchange), wanted);
        let (text, body) = (String::from_utf8(exchange.body.clone()).unwrap(), exchange.json());
        if run.json["spec"]["labels"]["scenario"] == "talk" {
            let (system, messages) = (&body["system"], &body["messages"]);
            let whole = format!(
                concat!(
                    r#"{{"model":"tiny","system":{},"messages":{},"max_tokens":5,"temperature":0.5,"stream":{},"#,
                    r####""stop_sequences":["###"],"top_k":5}}"####
                ),
                system, messages, streams
            );
            assert_eq!(text, whole);
            assert!(system.as_str().unwrap().len() > 100, "{system}");
            assert_eq!(messages.as_array().unwrap().len(), 1);
            assert_eq!(messages[0]["role"], "user");
        } else {
            let keys: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys, ["model", "messages", "max_tokens", "temperature", "stream"]);
            let roles: Vec<&str> =
                body["messages"].as_array().unwrap().iter().map(|one| one["role"].as_str().unwrap()).collect();
            with_history += usize::from(roles == ["user", "assistant", "user"]);
        }
    }
    assert!(measured >= 24 && with_history > 0, "{measured} requests, {with_history} with a history");
    let probe: Vec<&str> =
        exchanges.iter().filter(|one| one.id() == "sweepline-probe").map(|one| one.head.line.as_str()).collect();
    assert!(probe.contains(&"GET /v1/models HTTP/1.1"), "{probe:?}");
    let generation = exchanges.iter().find(|one| one.id() == "sweepline-probe" && !one.body.is_empty()).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&generation.body),
        r#"{"model":"tiny","messages":[{"role":"user","content":"Say hello."}],"max_tokens":4,"stream":false}"#
    );
}

#[test]
fn the_numbers_are_those_of_the_server() {
    let lab = Lab::new();
    let mut mock = mock();
    write(&lab, PLAN, mock.port);
    honest(&run(&lab, KEY));
    mock.terminate();
    let log = mock.log_now();
    let mut cached = 0;
    for run in lab.runs().into_values() {
        let streams = run.json["spec"]["shaping"]["stream"] == true;
        assert_eq!(run.json["spec"]["shaping"]["ignore_eos"], false, "this API has no such field");
        let texts = read_texts(&run.dir.join("texts.parquet")).unwrap();
        for record in run.records.iter().filter(|record| record.row.phase == Phase::Measure) {
            let row = &record.row;
            assert_eq!(row.outcome, Outcome::Ok, "{:?}", row.error);
            let end = format!("-{}-{}", run.json["attempt"], row.request);
            let id = &run.json["id"].as_str().unwrap()[..16];
            let logged = log.iter().find(|line| {
                line["request_id"].as_str().is_some_and(|found| found.starts_with(id) && found.ends_with(&end))
            });
            let logged = logged.unwrap_or_else(|| panic!("{id}{end} is not in the log"));
            assert_eq!(json!(row.prompt_tokens), logged["prompt_tokens"]);
            assert_eq!(json!(row.cached_tokens), logged["cached_tokens"]);
            assert_eq!((row.output_tokens, row.token_source), (Some(5), Some(TokenSource::Usage)));
            assert_eq!(row.finish_reason.as_deref(), Some("length"));
            cached += row.cached_tokens.unwrap();
            if streams {
                assert_eq!(row.events, 5, "announcements are not tokens");
                // Events that arrive together, as on a busy machine, have the same time.
                assert!(row.first_chunk_ns <= row.first_token_ns && row.first_token_ns <= row.first_output_ns);
            }
            let text = texts.iter().find(|text| text.request == row.request).unwrap();
            let told = format!("{}{}", text.reasoning.as_deref().unwrap(), text.answer.as_deref().unwrap());
            assert_eq!(json!(told), logged["answer"]);
            let body: Value = serde_json::from_str(logged["request"].as_str().unwrap()).unwrap();
            let messages = body["messages"].to_string();
            let prompt = body["system"].as_str().map_or(messages.clone(), |system| format!("{system}\n\n{messages}"));
            assert_eq!(text.prompt, prompt);
        }
    }
    assert!(cached > 0, "the prefixes of conversations and system texts are cached");
    // The same plan has nothing more to do, and neither has its frozen form.
    assert!(run(&lab, KEY).stderr.contains("nothing to do"));
}

#[test]
fn http_2_carries_the_key_too_and_a_wrong_one_is_named() {
    let lab = Lab::new();
    let mock = mock();
    let one =
        PLAN.replace("scenario: [talk, turns], ", "scenario: talk, ").replace("stream: [true, false]", "stream: true");
    write(&lab, &one.replace("api: messages,", "api: messages, http: 2,"), mock.port);
    honest(&run(&lab, KEY));
    let records = lab.only_run().records;
    let mut measured = records.iter().filter(|record| record.row.phase == Phase::Measure);
    assert!(measured.all(|record| record.row.outcome == Outcome::Ok));
    let lab = Lab::new();
    write(&lab, &one, mock.port);
    let ended = run(&lab, "another-key");
    let said = format!("{}{}", ended.stdout, ended.stderr);
    for part in [
        "rejects the API key (HTTP 401): the API key is missing or wrong",
        "correct `api_key` of the endpoint, which was sent as `x-api-key`",
        "headers: { Authorization: { secret: env:NAME } }",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    // Other APIs carry it as before, and the mock accepts it only in their own header.
    let lab = Lab::new();
    write(&lab, &one.replace("api: messages", "api: chat"), mock.port);
    honest(&run(&lab, KEY));
}

/// Returns an event with its name.
fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

/// Returns the events of a block: its announcement, deltas and end.
fn block(index: u32, announced: Value, deltas: &[Value]) -> String {
    let mut events = event(&json!({ "type": "content_block_start", "index": index, "content_block": announced }));
    for delta in deltas {
        events += &event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }));
    }
    events + &event(&json!({ "type": "content_block_stop", "index": index }))
}

fn text_block(index: u32, texts: &[&str]) -> String {
    let deltas: Vec<Value> = texts.iter().map(|text| json!({ "type": "text_delta", "text": text })).collect();
    block(index, json!({ "type": "text", "text": "" }), &deltas)
}

fn start(usage: Value) -> String {
    let message = json!({
        "id": "msg_01", "type": "message", "role": "assistant", "model": "tiny", "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": usage
    });
    event(&json!({ "type": "message_start", "message": message })) + &event(&json!({ "type": "ping" }))
}

fn stopped(reason: &str, usage: Value) -> String {
    event(
        &json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": usage }),
    )
}

fn end() -> String {
    event(&json!({ "type": "message_stop" }))
}

/// Returns the streams that the server sends, in order, each with what must be read of it.
fn streams() -> Vec<(&'static str, String)> {
    let anthropic = json!({
        "input_tokens": 20, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 40, "output_tokens": 1
    });
    let thought = block(
        0,
        json!({ "type": "thinking", "thinking": "", "signature": "" }),
        &[
            json!({ "type": "thinking_delta", "thinking": "Let" }),
            json!({ "type": "thinking_delta", "thinking": " me." }),
            json!({ "type": "signature_delta", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h" }),
        ],
    );
    let call = block(
        2,
        json!({ "type": "tool_use", "id": "toolu_01", "name": "get_weather", "input": {} }),
        &[
            json!({ "type": "input_json_delta", "partial_json": "" }),
            json!({ "type": "input_json_delta", "partial_json": "{\"city\":" }),
            json!({ "type": "input_json_delta", "partial_json": " \"Bern\"}" }),
        ],
    );
    let whole = start(anthropic.clone())
        + &thought
        + &text_block(1, &["Good", " day."])
        + &call
        + &stopped("tool_use", json!({ "output_tokens": 12 }))
        + &end();
    let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    let counts = json!({ "input_tokens": 9, "output_tokens": 2 });
    let two = || text_block(0, &["Good", " day."]);
    vec![
        ("whole", whole),
        ("error", start(anthropic.clone()) + &two() + &event(&error)),
        ("cut", start(anthropic.clone()) + &two()),
        ("cut before its end", start(anthropic.clone()) + &two() + &stopped("end_turn", json!({ "output_tokens": 2 }))),
        // vLLM: the prompt's tokens in both events, none apart, and [DONE] behind.
        ("vllm", start(counts.clone()) + &two() + &stopped("end_turn", counts) + &end() + "data: [DONE]\n\n"),
        // Anthropic repeats the uncached tokens alone in the last event.
        (
            "repeated",
            start(anthropic)
                + &two()
                + &stopped("stop_sequence", json!({ "input_tokens": 20, "output_tokens": 2 }))
                + &end(),
        ),
        // A server that does not know the prompt's tokens at first; events without names.
        (
            "late",
            (start(json!({ "input_tokens": 0, "output_tokens": 0 }))
                + &two()
                + &stopped(
                    "pause_turn",
                    json!({ "input_tokens": 9, "cache_read_input_tokens": 8, "output_tokens": 2 }),
                )
                + &end())
                .lines()
                .filter(|line| !line.starts_with("event: "))
                .map(|line| format!("{line}\n"))
                .collect(),
        ),
        ("empty", start(json!({ "input_tokens": 9, "output_tokens": 1 })) + &stopped("end_turn", json!({})) + &end()),
    ]
}

/// Returns the counts of a row: prompt, cached and output tokens, and events.
fn counts(row: &RequestRow) -> (Option<u32>, Option<u32>, Option<u32>, u32) {
    (row.prompt_tokens, row.cached_tokens, row.output_tokens, row.events)
}

#[test]
fn every_form_of_a_stream_is_read_and_only_its_end_is_one() {
    let forms = streams();
    let count = forms.len();
    let served: Vec<Vec<u8>> = forms.iter().map(|(_, body)| stream_of(body)).collect();
    let server = Server::start(move |number, stream| {
        let answer = served.get(number).unwrap_or(&served[0]);
        // The client may have disconnected.
        let _ = stream.write_all(answer);
    });
    let lab = Lab::new();
    let plan = PLAN.split("sweeps:").next().unwrap().replace("min_requests: 6", &format!("min_requests: {count}"));
    let plan = plan.replace("output_tokens: 5", "output_tokens: 12");
    let plan = plan.replace("api: messages", "api: messages, errors: measured")
        + "sweeps: { s: { matrix: { scenario: talk, batch_size: 1 } } }\n";
    write(&lab, &plan, server.port);
    run(&lab, KEY);
    let run = lab.only_run();
    let texts = read_texts(&run.dir.join("texts.parquet")).unwrap();
    let records = by_number(run);
    let rows: BTreeMap<&str, &RequestRow> =
        forms.iter().zip(&records).map(|((form, _), record)| (*form, &record.row)).collect();
    let outcome = |form: &str| rows[form].outcome.to_string();
    let outcomes: Vec<String> = forms.iter().map(|(form, _)| outcome(form)).collect();
    assert_eq!(outcomes, ["ok", "stream_error", "reset", "reset", "ok", "ok", "ok", "empty"]);
    assert_eq!(rows["error"].error.as_deref(), Some("Overloaded"));
    for cut in ["cut", "cut before its end"] {
        assert_eq!(rows[cut].error.as_deref(), Some("the stream ended before its message_stop"));
    }
    // Two deltas of thinking, two of text, the name of the tool and two pieces of its arguments.
    assert_eq!(counts(rows["whole"]), (Some(63), Some(40), Some(12), 7));
    assert!(rows["whole"].first_token_ns <= rows["whole"].first_output_ns);
    assert_eq!(counts(rows["vllm"]), (Some(9), None, Some(2), 2));
    assert_eq!(counts(rows["repeated"]), (Some(63), Some(40), Some(2), 2));
    assert_eq!(counts(rows["late"]), (Some(17), Some(8), Some(2), 2));
    let reasons: Vec<Option<&str>> =
        ["whole", "vllm", "repeated", "late"].map(|form| rows[form].finish_reason.as_deref()).into();
    assert_eq!(reasons, [Some("tool_calls"), Some("stop"), Some("stop"), Some("pause_turn")]);
    let said = texts.iter().find(|text| text.request == rows["whole"].request).unwrap();
    assert_eq!((said.reasoning.as_deref(), said.answer.as_deref()), (Some("Let me."), Some("Good day.")));
    let call = r#"[{"name":"get_weather","arguments":"{\"city\": \"Bern\"}"}]"#;
    assert_eq!(said.tool_calls.as_deref(), Some(call));
}

#[test]
fn faults_of_the_mock_are_told_as_with_any_api() {
    for (stream, wanted) in [
        (true, ["stream_error", "malformed", "reset", "malformed", "ok", "empty", "http_529"]),
        (false, ["stream_error", "malformed", "reset", "malformed", "malformed", "empty", "http_529"]),
    ] {
        let faults = [
            "error-object:2@2",
            "truncate:2@3",
            "reset:2@4",
            "invalid-json:2@5",
            "wrong-shape:2@6",
            "empty@7",
            "http:529@8",
        ];
        let flags: Vec<String> = faults.iter().map(|fault| format!("--fault={fault}")).collect();
        let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        flags.extend(["--ttft", "5ms", "--itl", "1ms"]);
        let mock = Mock::start(&flags);
        let lab = Lab::new();
        let plan = PLAN.split("sweeps:").next().unwrap().replace("min_requests: 6", "min_requests: 9");
        let plan = plan.replace("api: messages", "api: messages, errors: measured");
        let sweep = format!("sweeps: {{ s: {{ matrix: {{ scenario: talk, batch_size: 1, stream: {stream} }} }} }}\n");
        write(&lab, &format!("{plan}{sweep}"), mock.port);
        run(&lab, KEY);
        let records = by_number(lab.only_run());
        let outcomes: Vec<String> = records.iter().map(|record| record.row.outcome.to_string()).collect();
        // The probe's generation is the mock's request 1.
        assert_eq!(outcomes[..7], wanted, "stream: {stream}: {outcomes:?}");
        assert_eq!(outcomes[7], "ok");
        let told = [0, 6].map(|at| records[at].row.error.clone().unwrap_or_default());
        assert!(
            told.iter().all(|text| text.contains("a fault of the mock") && !text.contains("api_error")),
            "{told:?}"
        );
    }
}

#[test]
fn what_the_api_lacks_is_a_mistake_of_the_plan() {
    let lab = Lab::new();
    let text = "\
sweepline: 1
name: wrong
models: { m: { id: m } }
endpoints:
  e:
    url: http://127.0.0.1:1/v1/messages
    api: messages
    api_key: { secret: env:KEY }
    headers: { X-Api-Key: { secret: env:OTHER }, Anthropic-Version: '2099-01-01', Authorization: { secret: env:THIRD } }
    extra: { system: be brief, stop_sequences: [x] }
scenarios:
  eos: { ignore_eos: true }
  penalty: { frequency_penalty: 0.5 }
  far: { extra: { seed: 7, topk: 5, vllm: { min_tokens: 3 } } }
  good: { ignore_eos: false, extra: { top_k: 5, thinking: { type: enabled, budget_tokens: 1024 }, tools: [{ name: f }] } }
sweeps:
  s: { matrix: { scenario: [eos, penalty, far, good], batch_size: 1 } }
  v: { matrix: { endpoint: e, scenario: good, presence_penalty: [0, 0.5], batch_size: 1 } }
";
    lab.write("plan.yaml", text);
    let ended = lab.run(&["check", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    for part in [
        "`url` is the base address of the API; sweepline appends `/messages`",
        "`api_key` is sent as `x-api-key: …`, but `headers` also sets that header",
        "`Anthropic-Version` is sent by sweepline itself",
        "`system` cannot be an extra field of `api: messages`: sweepline sends it itself",
        "`stop_sequences` cannot be an extra field of `api: messages`: sweepline sends it itself",
        "write `stop` in the scenario, outside `extra`",
        "scenario `eos` sets `ignore_eos`, which this API does not have, but endpoint `e` has `api: messages`",
        "scenario `penalty` sets `frequency_penalty`, which this API does not have",
        "requests of `api: messages` have no field `seed`",
        "requests of `api: messages` have no field `topk`",
        "did you mean `top_k`?",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    assert!(!said.contains("`good`") && !said.contains("`Authorization`"), "{said}");
    let plan = "\
sweepline: 1
name: axis
models: { m: { id: m } }
endpoints: { e: { url: 'http://127.0.0.1:1/v1', api: messages } }
scenarios: { good: { prompt_tokens: 20 } }
sweeps: { v: { matrix: { presence_penalty: [0.5, omit], ignore_eos: [false], batch_size: 1 } } }
";
    lab.write("axis.yaml", plan);
    let ended = lab.run(&["check", "axis.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    let wanted = "`presence_penalty: 0.5` cannot be sent to endpoint `e`: `api: messages` has no such parameter";
    assert!(said.contains(wanted), "{said}");
    assert!(!said.contains("presence_penalty: omit"), "{said}");
}
