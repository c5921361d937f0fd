//! Tests streams in each form that real servers send: all are complete responses, with the server's
//! own instants, tokens and text.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest, Sha256};
use sweepline::rows::{Record, TokenSource, TokensUnknown};

use lab::Lab;
use lab::mock::Mock;
use lab::plans::by_number;
use lab::server::{Server, stream_of, token};

const TOKENS: u32 = 12;

/// A form of stream: flags of the mock, and the expected values of its rows.
struct Shape {
    flags: &'static [&'static str],
    endpoint: &'static str,
    events: u32,
    source: Option<TokenSource>,
    /// Number of leading tokens that are reasoning.
    reasoning: usize,
}

const PLAIN: Shape = Shape { flags: &[], endpoint: "", events: TOKENS, source: Some(TokenSource::Usage), reasoning: 0 };

const RESPONSES: &str = "api: responses";

const SHAPES: [Shape; 30] = [
    PLAIN,
    Shape { flags: &["--first", "role"], ..PLAIN },
    Shape { flags: &["--first", "content"], ..PLAIN },
    Shape { flags: &["--first", "empty"], ..PLAIN },
    Shape { flags: &["--first", "empty"], endpoint: "api: completions", ..PLAIN },
    Shape { flags: &[], endpoint: "api: completions", ..PLAIN },
    Shape { flags: &["--usage", "last"], ..PLAIN },
    Shape { flags: &["--usage", "with-content"], ..PLAIN },
    Shape { flags: &["--usage", "both"], ..PLAIN },
    Shape { flags: &["--usage", "every"], ..PLAIN },
    Shape { flags: &["--usage", "always"], ..PLAIN },
    Shape { flags: &["--usage", "never"], source: Some(TokenSource::Events), ..PLAIN },
    Shape { flags: &["--usage", "never", "--no-done"], source: Some(TokenSource::Events), ..PLAIN },
    Shape { flags: &["--tokens-per-event", "5"], events: 3, ..PLAIN },
    Shape { flags: &["--tokens-per-event", "5", "--usage", "never"], events: 3, source: None, ..PLAIN },
    Shape { flags: &["--reasoning", "4"], reasoning: 4, ..PLAIN },
    Shape { flags: &["--reasoning", "12", "--reasoning-field", "reasoning"], reasoning: 12, ..PLAIN },
    Shape { flags: &["--crlf", "--keepalive-comments", "--no-done"], ..PLAIN },
    Shape { flags: &["--words", "utf8", "--chunk-bytes", "1"], ..PLAIN },
    Shape { flags: &["--words", "utf8", "--cut", "random", "--cut-pause", "100us", "--crlf"], ..PLAIN },
    Shape { flags: &["--words", "escaped", "--cut", "random"], ..PLAIN },
    Shape { flags: &["--close-delimited", "--words", "utf8", "--cut", "random"], ..PLAIN },
    Shape { flags: &["--itl", "0s", "--usage", "with-content"], ..PLAIN },
    Shape { flags: &[], endpoint: RESPONSES, ..PLAIN },
    Shape { flags: &["--reasoning", "4"], reasoning: 4, endpoint: RESPONSES, ..PLAIN },
    Shape { flags: &["--tokens-per-event", "5"], events: 3, endpoint: RESPONSES, ..PLAIN },
    Shape { flags: &["--usage", "never"], source: Some(TokenSource::Events), endpoint: RESPONSES, ..PLAIN },
    Shape { flags: &["--crlf", "--keepalive-comments"], endpoint: RESPONSES, ..PLAIN },
    Shape { flags: &["--words", "utf8", "--chunk-bytes", "1"], endpoint: RESPONSES, ..PLAIN },
    Shape { flags: &["--words", "escaped", "--cut", "random", "--itl", "0s"], endpoint: RESPONSES, ..PLAIN },
];

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(8).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Returns the response of a log line as a row's digest covers it: content first, then reasoning.
fn content_first(answer: &str, reasoning: usize) -> String {
    // Every word except the first starts with its space.
    let border = answer.match_indices(' ').nth(reasoning.wrapping_sub(1)).map_or(answer.len(), |(at, _)| at);
    let border = if reasoning == 0 { 0 } else { border };
    format!("{}{}", &answer[border..], &answer[..border])
}

#[test]
fn every_shape_is_a_whole_answer() {
    let mocks: Vec<Mock> = SHAPES
        .iter()
        .map(|shape| {
            let mut flags = vec!["--ttft", "40ms"];
            flags.extend(if shape.flags.contains(&"--itl") { &[][..] } else { &["--itl", "2ms"] });
            flags.extend(shape.flags);
            Mock::start(&flags)
        })
        .collect();
    let mut plan = "sweepline: 1\nname: shapes\nendpoints:\n".to_owned();
    for (at, (shape, mock)) in SHAPES.iter().zip(&mocks).enumerate() {
        let more = if shape.endpoint.is_empty() { String::new() } else { format!(", {}", shape.endpoint) };
        writeln!(plan, "  s{at}: {{ url: 'http://127.0.0.1:{}/v1', engine: mock{more} }}", mock.port).unwrap();
    }
    let names: Vec<String> = (0..SHAPES.len()).map(|at| format!("s{at}")).collect();
    write!(
        plan,
        "models: {{ m: {{ id: tiny }} }}\nscenarios: {{ short: {{ base: B1, output_tokens: {TOKENS} }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 50ms, min_requests: 4, at_most: 90s }}, drain: 60s }}\n\
         sweeps: {{ s: {{ matrix: {{ endpoint: [{}], model: [m], scenario: [short], batch_size: [2] }} }} }}\n",
        names.join(", ")
    )
    .unwrap();
    let lab = Lab::new();
    lab.write("plan.yaml", &plan);
    let ended = lab.run(&["run", "plan.yaml", "--jobs", "8"]);
    let runs = lab.runs();
    assert_eq!(runs.len(), SHAPES.len(), "{}{}", ended.stdout, ended.stderr);
    for run in runs.into_values() {
        let name = run.json["spec"]["endpoint"]["name"].as_str().unwrap();
        let at: usize = name[1..].parse().unwrap();
        let id = format!("{}-{}", &run.json["id"].as_str().unwrap()[..16], run.json["attempt"]);
        let origin = run.json["facts"]["start_monotonic_ns"].as_u64().unwrap();
        let mut records = by_number(run);
        // Requests that are dispatched after the window are cut off at the end.
        records.retain(|record| record.row.phase == sweepline::rows::Phase::Measure);
        assert!(records.len() >= 4);
        let log = mocks[at].log(records.len() + 2);
        let line = |record: &Record| {
            let wanted = format!("{id}-{}", record.row.request);
            log.iter().find(|line| line["request_id"] == wanted.as_str()).unwrap_or_else(|| panic!("no {wanted}"))
        };
        for record in &records {
            compare(&SHAPES[at], record, line(record), origin);
        }
        role_chunk_is_no_token(&SHAPES[at], &records);
        let reasoning_first = records.iter().any(|record| record.row.first_output_ns > record.row.first_token_ns);
        let has_both = (1..TOKENS as usize).contains(&SHAPES[at].reasoning);
        // On a busy machine, one read may return several tokens, which then have the same time.
        let is_one_by_one = records.iter().any(|record| record.gaps_ns.iter().all(|gap| *gap > 0));
        assert!(reasoning_first == has_both || has_both && !is_one_by_one, "{:?}", SHAPES[at].flags);
    }
}

/// Compares a row with the server's own log line.
fn compare(shape: &Shape, record: &Record, line: &Value, origin: u64) {
    let (row, flags) = (&record.row, shape.flags);
    assert!(row.outcome.is_ok(), "{flags:?}: {} {:?}", row.outcome, row.error);
    assert_eq!((row.events, row.token_source), (shape.events, shape.source), "{flags:?}");
    let counted = if shape.source == Some(TokenSource::Usage) { TOKENS } else { shape.events };
    assert_eq!(row.output_tokens, shape.source.map(|_| counted), "{flags:?}");
    let unknown = shape.source.is_none().then_some(TokensUnknown::TokensByEvents);
    assert_eq!((row.streamed_tokens, row.tokens_unknown), (row.output_tokens, unknown), "{flags:?}");
    assert_eq!(
        row.prompt_tokens.map(Value::from),
        (shape.source == Some(TokenSource::Usage)).then(|| line["prompt_tokens"].clone())
    );
    assert_eq!(record.gaps_ns.len() + 1, shape.events as usize, "{flags:?}");
    assert_eq!(row.finish_reason.as_deref(), Some("length"), "{flags:?}");
    let text = content_first(line["answer"].as_str().unwrap(), shape.reasoning);
    assert_eq!(row.text_digest.as_deref(), Some(&*digest(&text)), "{flags:?}: {text}");
    if shape.source == Some(TokenSource::Usage) {
        assert_eq!(row.reasoning_tokens, Some(shape.reasoning as u32), "{flags:?}");
    }
    // Both sides use the same clock, so nothing is received before it was written.
    let written = |name: &str| line[name].as_u64().unwrap() - origin;
    assert!(row.sent_ns.unwrap() <= written("arrival_ns"), "{flags:?}");
    assert!(
        row.first_token_ns.unwrap() >= written("first_write_ns"),
        "{flags:?}: a token was read before it was written"
    );
    assert!(
        row.last_token_ns.unwrap() >= written("last_write_ns"),
        "{flags:?}: the last token was read before it was written"
    );
    let instants =
        [row.headers_ns, row.first_chunk_ns, row.first_token_ns, row.last_token_ns, row.done_ns, row.ended_ns];
    assert!(instants.iter().all(Option::is_some) && instants.is_sorted(), "{flags:?}: {instants:?}");
    match shape.reasoning {
        0 => assert_eq!(row.first_output_ns, row.first_token_ns, "{flags:?}"),
        all if all == TOKENS as usize => assert_eq!(row.first_output_ns, None, "{flags:?}: reasoning is not output"),
        // On a busy machine, a single read may contain the last reasoning token and the first output
        // token.
        _ => assert!(row.first_output_ns >= row.first_token_ns, "{flags:?}"),
    }
}

/// The opening chunk arrives when the request gets its slot, well before the first token.
fn role_chunk_is_no_token(shape: &Shape, records: &[Record]) {
    let ahead = |record: &Record| record.row.first_token_ns.unwrap() - record.row.first_chunk_ns.unwrap();
    let most = records.iter().map(ahead).max().unwrap();
    let opens = !(shape.flags.contains(&"content") || shape.endpoint.contains("completions") && shape.flags.is_empty());
    // Late reads can return both together, but not in every request.
    assert_eq!(most > 10_000_000, opens, "{:?} {}: {most} ns", shape.flags, shape.endpoint);
}

#[test]
fn a_whole_answer_without_a_stream() {
    let mock = Mock::start(&["--ttft", "5ms"]);
    let lab = Lab::new();
    lab.write(
        "plan.yaml",
        &format!(
            "sweepline: 1\nname: whole\nstream: false\nendpoints:\n  \
             chat: {{ url: 'http://127.0.0.1:{0}/v1', engine: mock }}\n  \
             text: {{ url: 'http://127.0.0.1:{0}/v1', engine: mock, api: completions }}\n\
             models: {{ m: {{ id: tiny }} }}\nscenarios: {{ short: {{ base: B1, output_tokens: {TOKENS} }} }}\n\
             phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 50ms, min_requests: 4, at_most: 90s }}, drain: 60s }}\n\
             sweeps: {{ s: {{ matrix: {{ endpoint: [chat, text], model: [m], scenario: [short], batch_size: [2] }} }} }}\n",
            mock.port
        ),
    );
    lab.run(&["run", "plan.yaml"]);
    let runs = lab.runs();
    assert_eq!(runs.len(), 2);
    for run in runs.into_values() {
        let records = by_number(run);
        for record in records.iter().filter(|record| record.row.phase == sweepline::rows::Phase::Measure) {
            let row = &record.row;
            assert!(row.outcome.is_ok(), "{:?}", row.error);
            assert_eq!((row.output_tokens, row.token_source), (Some(TOKENS), Some(TokenSource::Usage)));
            assert_eq!((row.first_chunk_ns, row.first_token_ns, row.last_token_ns, row.events), (None, None, None, 0));
            assert!(row.done_ns > row.sent_ns && row.text_digest.is_some());
        }
    }
}

#[test]
fn streams_that_the_mock_does_not_send() {
    let finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}";
    let tool =
        r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a\":1}"}}]}}]}"#;
    let usage = r#"data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":7}}"#;
    let (a, b) = (token("alpha"), token(" beta"));
    // The body, the events, the tokens, and the source of the token count.
    let answers: Vec<(String, u32, u32, TokenSource)> = vec![
        (format!("{a}{b}{finish}"), 2, 2, TokenSource::Events),
        (format!("\u{feff}{a}{b}data:[DONE]"), 2, 2, TokenSource::Events),
        (format!("{a}{b}{finish}\n\n").replace('\n', "\r"), 2, 2, TokenSource::Events),
        (format!("{usage}\n\n{a}{b}{finish}\n\n"), 2, 7, TokenSource::Usage),
        (format!(": hello\n\nevent: message\n{a}id: 7\nretry: 10\n{b}{finish}\n\n"), 2, 2, TokenSource::Events),
        (format!("event: ping\ndata: not json\n\n{a}{finish}\n\n"), 1, 1, TokenSource::Events),
        (
            format!("data: {{\"choices\":[{{\"delta\":\ndata: {{\"content\":\"alpha\"}}}}]}}\n\n{finish}\n\n"),
            1,
            1,
            TokenSource::Events,
        ),
        (format!("{tool}\n\n{finish}\n\n"), 1, 1, TokenSource::Events),
        (
            format!(
                "{a}data: {{\"choices\":[{{\"delta\":null,\"finish_reason\":\"stop\"}}],\"usage\":null,\"error\":null}}\n\n"
            ),
            1,
            1,
            TokenSource::Events,
        ),
        (
            format!("{a}{finish}\n\ndata: [DONE]\n\ndata: what comes after is not looked at\n\n"),
            1,
            1,
            TokenSource::Events,
        ),
    ];
    let bodies: Vec<Vec<u8>> = answers.iter().map(|(body, ..)| stream_of(body)).collect();
    let server = Server::start(move |number, stream| {
        let _ = std::io::Write::write_all(stream, &bodies[number.min(bodies.len() - 1)]);
    });
    let lab = Lab::new();
    lab.write("plan.yaml", &lab::plans::one_by_one(server.port, answers.len(), "stall: 30s"));
    lab.run(&["run", "plan.yaml"]);
    let records = by_number(lab.only_run());
    for (record, (body, events, tokens, source)) in records.iter().zip(&answers) {
        let row = &record.row;
        assert!(row.outcome.is_ok(), "{body}: {:?}", row.error);
        assert_eq!(
            (row.events, row.output_tokens, row.token_source),
            (*events, Some(*tokens), Some(*source)),
            "{body}"
        );
        assert!(row.first_token_ns.is_some() && row.first_output_ns.is_some(), "{body}");
    }
}
