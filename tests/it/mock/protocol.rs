//! HTTP and its rejections.

use std::io::{Read, Write};

use serde_json::json;

use lab::mock::{Answer, Mock, chat, request, with};

#[test]
fn connections_are_kept_and_requests_may_be_pipelined() {
    let mock = Mock::start(&[]);
    let mut stream = mock.connect();
    let asked = |prompt: &str, fields| request("/v1/completions", &json!({"prompt": prompt}), fields);
    let both = asked("one", "") + &asked("two", "X-Request-Id: second\r\n") + &asked("three", "Connection: close\r\n");
    // The first request arrives in two parts, with the others immediately after it.
    let (start, rest) = both.split_at(30);
    stream.write_all(start.as_bytes()).unwrap();
    stream.flush().unwrap();
    stream.write_all(rest.as_bytes()).unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    assert_eq!(all.matches("HTTP/1.1 200 OK").count(), 3);
    assert_eq!(all.matches("connection: keep-alive").count(), 2);
    let log = mock.log(3);
    assert!(log.iter().all(|line| line["connection"] == 1));
    assert_eq!(log[1]["request_id"], "second");
    assert_eq!(log.iter().map(|line| line["n"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
}

/// Returns an HTTP/2 frame (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u32).to_be_bytes()[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

#[test]
fn http_2_is_spoken_by_prior_knowledge_on_the_same_port() {
    let mock = Mock::start(&["--http2-streams", "3"]);
    let mut stream = mock.connect();
    let body = chat().to_string();
    // Fields as literals, never indexed (RFC 7541, section 6.2.3): writing them needs no encoder.
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "mock"),
        (":path", "/v1/chat/completions"),
        ("content-type", "application/json"),
        ("x-request-id", "by-frames"),
    ];
    let literal = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    let head: Vec<u8> =
        fields.iter().flat_map(|(name, value)| [vec![0x10], literal(name), literal(value)].concat()).collect();
    let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    sent.extend([frame(4, 0, 0, &[]), frame(1, 4, 1, &head), frame(0, 1, 1, body.as_bytes())].concat());
    // The preface arrives in two reads.
    let (start, rest) = sent.split_at(5);
    stream.write_all(start).unwrap();
    stream.flush().unwrap();
    stream.write_all(rest).unwrap();
    let (mut settings, mut text) = (Vec::new(), String::new());
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).unwrap();
        let (kind, flags, number) = (head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]));
        match (kind, number) {
            (4, 0) if flags == 0 => settings.extend(payload),
            (0, 1) => text.push_str(std::str::from_utf8(&payload).unwrap()),
            (3, 1) => panic!("the stream was reset: {payload:?}"),
            _ => {}
        }
        if matches!(kind, 0 | 1) && number == 1 && flags & 1 != 0 {
            break;
        }
    }
    assert!(settings.chunks(6).any(|setting| setting == [0, 3, 0, 0, 0, 3]), "three streams at once: {settings:?}");
    assert!(text.starts_with("data: {") && text.ends_with("data: [DONE]\n\n"), "no chunks: {text}");
    let log = mock.log(1);
    assert_eq!((&log[0]["request_id"], &log[0]["outcome"]), (&"by-frames".into(), &"complete".into()));
    assert_eq!(log[0]["request"].as_str().unwrap(), body);
    // The same port accepts HTTP/1.1 from the next client.
    assert_eq!(mock.chat(&chat()).data().last().unwrap(), "[DONE]");
}

#[test]
fn an_old_client_gets_no_chunks() {
    let mock = Mock::start(&[]);
    let mut stream = mock.connect();
    let asked = request("/v1/chat/completions", &chat(), "").replace("HTTP/1.1", "HTTP/1.0");
    stream.write_all(asked.as_bytes()).unwrap();
    let answer = Answer::read(&mut stream);
    assert!(!answer.head.contains("chunked"));
    assert_eq!(answer.data().last().unwrap(), "[DONE]");
}

#[test]
fn a_client_that_expects_to_continue_is_told_so() {
    let mock = Mock::start(&[]);
    let mut stream = mock.connect();
    let asked = request("/v1/completions", &json!({"prompt": "x"}), "Expect: 100-continue\r\nConnection: close\r\n");
    let (head, body) = asked.split_at(asked.find("\r\n\r\n").unwrap() + 4);
    stream.write_all(head.as_bytes()).unwrap();
    let mut go = [0; 25];
    stream.read_exact(&mut go).unwrap();
    assert_eq!(&go, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body.as_bytes()).unwrap();
    assert_eq!(Answer::read(&mut stream).status(), 200);
}

#[test]
fn mistakes_are_answered_as_openai_does() {
    let mock = Mock::start(&["--model", "llama"]);
    for (path, body, status, part) in [
        ("/v1/nothing", json!({}), 404, "nothing at this path"),
        ("/v1/models", json!({}), 405, "another method"),
        ("/v1/chat/completions", json!("text"), 400, "invalid request body"),
        ("/v1/completions", json!({"model": "llama"}), 400, "`prompt` is missing"),
        ("/v1/chat/completions", chat(), 404, "The model `m` does not exist."),
    ] {
        let answer = mock.post(path, &body);
        assert_eq!(answer.status(), status, "{path}");
        assert!(answer.json()["error"]["message"].as_str().unwrap().contains(part), "{path}");
    }
    assert_eq!(mock.chat(&with(chat(), &json!({"model": "llama"}))).status(), 200);
    assert_eq!(mock.post("/chat/completions", &with(chat(), &json!({"model": "llama"}))).status(), 200);
    let outcomes = mock.log(7).iter().map(|line| line["outcome"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(outcomes[..5], ["rejected"; 5]);
    assert_eq!(outcomes[5..], ["complete"; 2]);
}

#[test]
fn bodies_are_bounded() {
    let mock = Mock::start(&[]);
    for (head, status) in [
        ("Content-Length: 67108865\r\n\r\nabc", 413),
        ("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        ("Content-Length: -1\r\n\r\n", 400),
    ] {
        let mut stream = mock.connect();
        write!(stream, "POST /v1/completions HTTP/1.1\r\n{head}").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(Answer::read(&mut stream).status(), status);
    }
    let mut stream = mock.connect();
    write!(stream, "GET /health HTTP/1.1\r\nX: {}", "x".repeat(70_000)).unwrap();
    assert_eq!(Answer::read(&mut stream).status(), 431);
}

#[test]
fn models_health_and_keys() {
    let flags = ["--model", "a", "--model", "b", "--api-key-env", "MOCK_TEST_KEY"];
    let mock = Mock::start_with(&flags, |command| command.env("MOCK_TEST_KEY", "canary"));
    assert_eq!(mock.get("/health", "").status(), 200);
    assert_eq!(mock.get("/v1/models", "").status(), 401);
    assert_eq!(mock.get("/v1/models", "Authorization: Bearer wrong\r\n").status(), 401);
    let models = mock.get("/v1/models", "Authorization: Bearer canary\r\n").json();
    assert_eq!([&models["data"][0]["id"], &models["data"][1]["id"]], ["a", "b"]);
    assert_eq!(mock.chat(&chat()).status(), 401);
    mock.log(5);
    assert!(!std::fs::read_to_string(mock.log_path()).unwrap().contains("canary"));
}

#[test]
fn a_version_is_said_and_several_in_turn() {
    let version = |mock: &Mock| mock.get("/version", "").json()["version"].as_str().unwrap().to_owned();
    let one = Mock::start(&["--version-says", "0.11.0+cu128"]);
    assert_eq!([version(&one), version(&one)], ["0.11.0+cu128", "0.11.0+cu128"]);
    let two = Mock::start(&["--version-says", "0.11.0,0.11.1"]);
    assert_eq!([version(&two), version(&two), version(&two)], ["0.11.0", "0.11.1", "0.11.0"]);
    assert_eq!(version(&Mock::start(&[])), env!("CARGO_PKG_VERSION"));
}
