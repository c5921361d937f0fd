//! Tests measured requests over HTTP/2: the numbers are the same as over HTTP/1.1, streams share
//! connections, and connections can end in every possible way.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use sweepline::rows::{Connection, Outcome, Phase, Record, RequestRow};

use lab::http2_server::{Meets, Rules, Server};
use lab::mock::Mock;
use lab::plans::{by_number, plan};
use lab::{Ended, Lab, Run, wait_for};

const MS: u64 = 1_000_000;

/// Returns a closed loop of `slots` over one HTTP/2 endpoint, with at least `requests` requests;
/// `endpoint` and `sweep` add fields to the endpoint and the sweep.
fn closed(port: u16, slots: u32, requests: u32, endpoint: &str, sweep: &str) -> String {
    let rest = format!(
        "phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 50ms, min_requests: {requests}, at_most: 90s }}, drain: 30s }}\n\
         sweeps: {{ s: {{ {sweep}matrix: {{ endpoint: [a], model: [m], scenario: [short], batch_size: [{slots}] }} }} }}\n",
    );
    plan(&[("a", port)], &rest).replace("engine: mock }", &format!("engine: mock, errors: measured, {endpoint} }}"))
}

/// Runs a plan whose results are examined even if the machine spoiled them.
fn run(plan: &str) -> (Lab, Run, Ended) {
    let lab = Lab::new();
    lab.write("plan.yaml", plan);
    let ended = lab.run(&["run", "plan.yaml"]);
    assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
    let run = lab.only_run();
    (lab, run, ended)
}

fn rows(run: &Run) -> impl Iterator<Item = &RequestRow> {
    run.records.iter().map(|Record { row, .. }| row)
}

fn count(run: &Run, outcome: Outcome) -> usize {
    rows(run).filter(|row| row.outcome == outcome).count()
}

fn assert_none_failed(run: &Run) {
    let failed = rows(run).find(|row| !matches!(row.outcome, Outcome::Ok | Outcome::CutAtDrain));
    assert!(failed.is_none(), "{failed:?}");
    assert!(count(run, Outcome::Ok) > 0);
}

/// Returns the connections on which measured requests arrived, with the mock's numbers for them, as
/// soon as at least `requests` have ended there.
fn connections(mock: &Mock, requests: usize) -> BTreeSet<u64> {
    wait_for("the requests in the log", || {
        let log = mock.log_now();
        let measured = log.iter().filter(|line| line["request_id"].as_str().is_some_and(|id| id != "sweepline-probe"));
        let on: Vec<u64> = measured.map(|line| line["connection"].as_u64().unwrap()).collect();
        (on.len() >= requests).then(|| on.into_iter().collect())
    })
}

fn median(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    values[values.len() / 2] as f64
}

#[test]
fn both_versions_tell_the_same() {
    let mut mock = Mock::start(&["--ttft", "20ms", "--itl", "2ms", "--slots", "64", "--seed", "3"]);
    let lab = Lab::new();
    let rest = "phases: { fill: 0s, stabilize: 0s, measure: { for: 500ms, min_requests: 60, at_most: 60s }, drain: 10s }\n\
                sweeps: { s: { matrix: { endpoint: [a, b], model: [m], scenario: [short], batch_size: [4] } } }\n";
    let text = plan(&[("a", mock.port), ("b", mock.port)], rest);
    let second = format!("b: {{ url: 'http://127.0.0.1:{}/v1', engine: mock", mock.port);
    lab.write("plan.yaml", &text.replace(&second, &format!("{second}, http: 2")));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
    mock.terminate();
    let log: BTreeMap<String, Value> = mock
        .log_now()
        .into_iter()
        .filter_map(|line| Some((line["request_id"].as_str()?.to_owned(), line)))
        .filter(|(id, _)| id != "sweepline-probe")
        .collect();
    let mut of: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    let mut origins = BTreeMap::new();
    for (_, run) in lab.runs() {
        let name = run.json["spec"]["endpoint"]["name"].as_str().unwrap().to_owned();
        let streams = run.json["spec"]["endpoint"]["http"].clone();
        assert_eq!(streams, if name == "b" { serde_json::json!({ "streams": 100 }) } else { Value::Null });
        let id = format!("{}-{}", &run.json["id"].as_str().unwrap()[..16], run.json["attempt"]);
        origins.insert(name.clone(), (run.json["facts"]["start_monotonic_ns"].as_u64().unwrap(), id));
        assert_none_failed(&run);
        of.insert(name, by_number(run));
    }
    let (one, two) = (&of["a"], &of["b"]);
    // Prompts differ in their nonces, and so do the mock's responses; their lengths and all counts are
    // equal.
    let told = |record: &Record| {
        let row = &record.row;
        let counts = (row.events, row.output_tokens, row.prompt_tokens, row.finish_reason.clone(), row.http_status);
        (counts, row.outcome, record.gaps_ns.len(), row.text_digest.is_some())
    };
    let pairs: Vec<(&Record, &Record)> =
        one.iter().zip(two).filter(|(one, two)| one.row.outcome.is_ok() && two.row.outcome.is_ok()).collect();
    assert!(pairs.len() >= 50, "{}", pairs.len());
    for (one, two) in &pairs {
        assert_eq!(told(one), told(two));
    }
    // Causes precede effects according to the server's clock, which is also the client's.
    for (name, records) in &of {
        let (origin, id) = &origins[name];
        for row in records.iter().map(|record| &record.row).filter(|row| row.outcome.is_ok()) {
            let line = &log[&format!("{id}-{}", row.request)];
            let at = |of: &str| line[of].as_u64().unwrap();
            let (sent, first, last) = (row.sent_ns.unwrap(), row.first_token_ns.unwrap(), row.last_token_ns.unwrap());
            assert!(origin + sent <= at("arrival_ns") + MS / 10, "{name}: arrived after it was sent: {line}");
            assert!(
                at("first_write_ns") <= origin + first + MS / 10,
                "{name}: a token is read after it was written: {line}"
            );
            assert!(at("last_write_ns") <= origin + last + MS / 10, "{name}: so is the last one: {line}");
            assert!(first - sent >= 20 * MS, "{name}: the mock takes 20 ms");
        }
    }
    let ttft = |records: &[Record]| {
        let of = |row: &RequestRow| Some(row.first_token_ns? - row.sent_ns?);
        median(records.iter().filter_map(|record| of(&record.row)).collect())
    };
    let itl = |records: &[Record]| median(records.iter().flat_map(|record| record.gaps_ns.iter().copied()).collect());
    for (what, one, two) in [("TTFT", ttft(one), ttft(two)), ("ITL", itl(one), itl(two))] {
        println!("{what}: {:.3} ms over HTTP/1.1, {:.3} ms over HTTP/2", one / 1e6, two / 1e6);
        // On a machine that is not busy, the two differ by little.
        if lab::is_whole() {
            assert!((0.9..1.25).contains(&(two / one)), "{what}: {one} over HTTP/1.1, {two} over HTTP/2");
        }
    }
}

#[test]
fn the_same_prompts_have_the_same_answers() {
    let mock = Mock::start(&["--slots", "64", "--seed", "3", "--reasoning", "3", "--words", "escaped"]);
    let texts = |http: &str| {
        let text = closed(mock.port, 3, 12, http, "").replace("base: B1,", "base: B1, nonce: off,");
        let (_lab, run, _) = run(&text);
        assert_none_failed(&run);
        let told = |record: Record| (record.row.text_digest.clone(), record.row.output_tokens, record.row.bytes);
        by_number(run).into_iter().take(12).map(told).collect::<Vec<_>>()
    };
    let (one, two) = (texts("http: 1.1"), texts("http: 2"));
    assert!(one.iter().all(|(digest, ..)| digest.is_some()));
    let words = |rows: &[(Option<String>, Option<u32>, u64)]| {
        rows.iter().map(|(digest, tokens, _)| (digest.clone(), *tokens)).collect::<Vec<_>>()
    };
    assert_eq!(words(&one), words(&two));
}

#[test]
fn streams_share_connections_as_the_plan_and_the_server_allow() {
    for (slots, http, flags, expected, why) in [
        (64, "http: 2", &[][..], 1, "64 of 100 streams"),
        (16, "http: { version: 2, streams: 4 }", &[], 4, "four on each"),
        (6, "http: 2", &["--http2-streams", "3"], 2, "the server allows three"),
    ] {
        let mock = Mock::start(&[&["--itl", "2ms", "--slots", "64"], flags].concat());
        let (_lab, run, _) = run(&closed(mock.port, slots, slots * 3, http, ""));
        assert_none_failed(&run);
        assert_eq!(run.json["facts"]["max_in_flight"], slots, "{why}");
        // On a busy machine, a stream may end so long after `[DONE]` that the next request needs another connection.
        let held = run.json["facts"]["lingering"]["responses"].as_u64().unwrap_or(0) as usize;
        let opened = rows(&run).filter(|row| row.connection() == Some(Connection::New)).count();
        assert!(opened <= held, "{why}: they were open before the run's clock started: {opened}, {held} held open");
        let used = connections(&mock, count(&run, Outcome::Ok)).len();
        assert!((expected..=expected + held).contains(&used), "{why}: {used}, {held} held open");
    }
}

#[test]
fn connections_are_warm_cold_or_new_for_each_request() {
    let mock = Mock::start(&["--itl", "1ms", "--slots", "64"]);
    let (_lab, cold, _) = run(&closed(mock.port, 6, 24, "http: 2", "connections: cold, "));
    assert_none_failed(&cold);
    let before = connections(&mock, count(&cold, Outcome::Ok));
    assert_eq!(before.len(), 1, "the first request opens a connection, and the others wait for it");
    let new: Vec<&RequestRow> = rows(&cold).filter(|row| row.connection() == Some(Connection::New)).collect();
    assert!((1..=6).contains(&new.len()), "{}: requests that waited for it", new.len());
    assert!(new.iter().any(|row| row.request == 0), "the first of these requests opened it");
    for row in &new {
        let waited = row.sent_ns.unwrap() - row.released_ns.unwrap();
        assert!(row.connect_ns.unwrap() <= waited, "a part of the wait: {row:?}");
        assert_eq!((row.dns_ns, row.tls_ns), (None, None));
    }

    let (_lab, each, _) = run(&closed(mock.port, 6, 24, "http: 2", "connections: per_request, "));
    assert_none_failed(&each);
    let ok = count(&each, Outcome::Ok);
    assert!(rows(&each).filter(|row| row.outcome.is_ok()).all(|row| row.connection() == Some(Connection::New)));
    let all = connections(&mock, ok + count(&cold, Outcome::Ok));
    assert!(all.len() > ok, "{} connections for {ok} requests: one each", all.len() - 1);
}

#[test]
fn threads_have_connections_of_their_own() {
    let mock = Mock::start(&["--itl", "2ms", "--slots", "64"]);
    let (_lab, run, _) = run(&(closed(mock.port, 8, 32, "http: 2", "") + "engine: { threads: 2 }\n"));
    assert_none_failed(&run);
    assert_eq!(connections(&mock, count(&run, Outcome::Ok)).len(), 2);
}

#[test]
fn each_fault_is_its_outcome_and_leaves_the_connection_to_the_others() {
    let faults: [(&str, &str, &str); 9] = [
        ("http:503", "http_503", "a fault of the mock"),
        ("reset:3", "reset", "the server reset the stream: INTERNAL_ERROR"),
        ("close", "reset", "the server reset the stream"),
        ("stall:2", "stalled", "nothing was received for 1s"),
        ("stall-headers", "stalled", "nothing was received for 1s"),
        ("truncate", "malformed", "EOF"),
        ("error-object:4", "stream_error", "a fault of the mock"),
        ("empty", "empty", "without any text"),
        ("slow:200", "timeout", "not done within 3s"),
    ];
    // The probe's generation is the mock's request 1.
    let flags: Vec<String> =
        faults.iter().enumerate().map(|(at, (fault, ..))| format!("--fault={fault}@{}", at + 2)).collect();
    let flags: Vec<&str> =
        ["--ttft", "3ms", "--itl", "2ms"].into_iter().chain(flags.iter().map(String::as_str)).collect();
    let mock = Mock::start(&flags);
    let requests = faults.len() as u32 + 2;
    let (_lab, run, _) =
        run(&(closed(mock.port, 1, requests, "http: 2", "") + "timeouts: { stall: 1s, request: 3s }\n"));
    let sent = rows(&run).filter(|row| row.sent_ns.is_some()).count();
    for (record, (fault, outcome, text)) in by_number(run).iter().zip(faults) {
        let row = &record.row;
        let error = row.error.as_deref().unwrap_or("");
        assert_eq!(row.outcome.to_string(), outcome, "{fault}: {error}");
        assert!(error.contains(text), "{fault}: {error}");
        assert!(row.sent_ns.is_some() && row.ended_ns >= row.sent_ns, "{fault}");
    }
    assert_eq!(
        connections(&mock, sent).len(),
        1,
        "the server is notified of canceled requests; the connection continues"
    );
    let lines = mock.log_now().into_iter().filter(|line| line["fault"].as_str().is_some());
    let gone = lines.filter(|line| line["outcome"] == "client_closed").count();
    assert_eq!(
        gone, 1,
        "the slow response was generated until its stream was reset; the others had ended by their fault"
    );
}

#[test]
fn a_connection_that_takes_no_more_is_replaced() {
    let server =
        Server::start(Rules { at: Some((10, Meets::GoAway)), takes: Duration::from_millis(8), ..Rules::default() });
    let (_lab, run, _) = run(&closed(server.port, 4, 40, "http: 2", ""));
    assert_none_failed(&run);
    let seen = server.seen();
    assert_eq!(seen.by_connection.len(), 2, "{seen:?}");
    assert!(seen.by_connection.values().next().unwrap().len() >= 10, "in-flight requests get their responses");
    assert_sent_once(&run, &seen.ids());
}

#[test]
fn a_connection_that_ends_ends_what_is_on_it() {
    // A server that closes a connection on which bytes are still in transit resets it, and its GOAWAY may
    // be lost.
    const BROKE: &str = "the connection broke";
    for (meets, words) in [
        (Meets::Drops, [BROKE, BROKE]),
        (Meets::Fails, ["the server ended the connection: GOAWAY INTERNAL_ERROR", BROKE]),
    ] {
        let server =
            Server::start(Rules { at: Some((120, meets)), takes: Duration::from_millis(40), ..Rules::default() });
        let (_lab, run, _) = run(&closed(server.port, 50, 300, "http: 2", ""));
        let reset: Vec<&RequestRow> = rows(&run).filter(|row| row.outcome == Outcome::Reset).collect();
        assert!((20..=50).contains(&reset.len()), "{meets:?}: {} of the 50 on it", reset.len());
        for row in &reset {
            let error = row.error.as_deref().unwrap();
            assert!(words.iter().any(|words| error.contains(words)), "{meets:?}: {row:?}");
            assert!(row.sent_ns.is_some() && row.ended_ns >= row.sent_ns);
        }
        let others = rows(&run).filter(|row| !matches!(row.outcome, Outcome::Reset | Outcome::CutAtDrain));
        let others: Vec<&RequestRow> = others.collect();
        assert!(others.iter().all(|row| row.outcome.is_ok()), "{meets:?}");
        assert!(others.len() >= 200, "{meets:?}: the others continue on other connections");
        assert_sent_once(&run, &server.seen().ids());
    }
}

/// Asserts that no request was sent twice, and that each request that arrived has a row that was
/// sent.
fn assert_sent_once(run: &Run, ids: &[String]) {
    let id = format!("{}-{}", &run.json["id"].as_str().unwrap()[..16], run.json["attempt"]);
    let sent: BTreeSet<String> =
        rows(run).filter(|row| row.sent_ns.is_some()).map(|row| format!("{id}-{}", row.request)).collect();
    let arrived: BTreeSet<String> = ids.iter().cloned().collect();
    assert_eq!(arrived.len(), ids.len(), "nothing is sent twice");
    assert!(arrived.is_subset(&sent), "{:?}", arrived.difference(&sent).collect::<Vec<_>>());
}

#[test]
fn a_refused_stream_is_a_reset_and_is_not_tried_again() {
    let server =
        Server::start(Rules { at: Some((20, Meets::Refuses)), takes: Duration::from_millis(4), ..Rules::default() });
    let (_lab, run, _) = run(&closed(server.port, 1, 30, "http: 2", ""));
    let records = by_number(run);
    for Record { row, .. } in records.iter().filter(|record| record.row.outcome != Outcome::CutAtDrain) {
        let expected = if row.request < 19 { Outcome::Ok } else { Outcome::Reset };
        assert_eq!(row.outcome, expected, "{row:?}");
        let error = row.error.as_deref().unwrap_or_default();
        assert_eq!(
            error.contains("the server reset the stream: REFUSED_STREAM"),
            expected == Outcome::Reset,
            "{error}"
        );
    }
    let ids = server.seen().ids();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}

#[test]
fn a_server_s_streams_are_never_exceeded() {
    let rules = Rules { streams: Some(5), takes: Duration::from_millis(10), ..Rules::default() };
    let server = Server::start(rules.clone());
    let (_lab, warm, _) = run(&closed(server.port, 12, 48, "http: 2", ""));
    assert_none_failed(&warm);
    let seen = server.seen();
    assert_eq!((seen.by_connection.len(), seen.most_at_once), (3, 5), "twelve at once, five on each");
    let server = Server::start(rules);
    let (_lab, cold, _) = run(&closed(server.port, 12, 48, "http: 2", "connections: cold, "));
    assert_none_failed(&cold);
    assert!(server.seen().most_at_once <= 5, "also if nothing was known when the first request arrived");
}

#[test]
fn a_server_of_http_1_1_alone_is_told_before_anything_is_measured() {
    for (alpn, scheme, remedy) in [
        (None, "http", "configure the server to accept HTTP/2 without TLS (h2c, prior knowledge)"),
        (Some(vec!["http/1.1"]), "https", "offer h2 (ALPN)"),
    ] {
        let server = Server::start(Rules { is_old: true, alpn, ..Rules::default() });
        let lab = Lab::new();
        let text = closed(server.port, 1, 4, "http: 2, insecure_tls: true, ready: { within: 0s }", "");
        lab.write("plan.yaml", &text.replace("http://", &format!("{scheme}://")));
        for args in [&["probe", "plan.yaml"][..], &["run", "plan.yaml"]] {
            let ended = lab.run(args);
            let said = ended.stdout + &ended.stderr;
            assert_eq!(ended.code, Some(2), "{args:?}: the plan must be edited: {said}");
            assert!(said.contains("uses HTTP/1.1, not HTTP/2"), "{args:?}: {said}");
            assert!(said.contains(remedy) && said.contains("remove `http: 2`"), "{args:?}: {said}");
        }
        assert!(lab.runs().is_empty());
    }
}

#[test]
fn a_server_of_http_2_alone_is_told_too() {
    for (alpn, scheme) in [(None, "http"), (Some(vec!["h2"]), "https")] {
        let server = Server::start(Rules { alpn, ..Rules::default() });
        let lab = Lab::new();
        let text = closed(server.port, 1, 4, "insecure_tls: true, ready: { within: 0s }", "");
        lab.write("plan.yaml", &text.replace("http://", &format!("{scheme}://")));
        let ended = lab.run(&["probe", "plan.yaml"]);
        let said = ended.stdout + &ended.stderr;
        assert_eq!(ended.code, Some(2), "{scheme}: {said}");
        assert!(said.contains("uses HTTP/2, not HTTP/1.1"), "{scheme}: {said}");
        assert!(said.contains("write `http: 2` under the endpoint"), "{scheme}: {said}");
    }
}

#[test]
fn http_2_is_agreed_on_over_tls() {
    let server = Server::start(Rules { alpn: Some(vec!["h2"]), takes: Duration::from_millis(8), ..Rules::default() });
    let text =
        closed(server.port, 4, 16, "http: 2, insecure_tls: true", "connections: cold, ").replace("http://", "https://");
    let (lab, run, _) = run(&text);
    assert_none_failed(&run);
    assert_eq!(server.seen().by_connection.len(), 1);
    let first = rows(&run).find(|row| row.request == 0).unwrap();
    assert!(first.connect_ns.is_some() && first.tls_ns.is_some_and(|took| took > 0), "{first:?}");
    assert!(run.json["environment"]["tls_ns"].as_u64().is_some_and(|took| took > 0));
    let probed = lab.ok(&["probe", "plan.yaml"]);
    assert!(probed.stdout.contains("HTTP/2, connect ") && probed.stdout.contains(" ms, TLS "), "{}", probed.stdout);
    assert!(rows(&run).filter(|row| row.phase == Phase::Measure).count() >= 16);
}

#[test]
fn a_near_server_is_held_against_what_is_measured() {
    let far = Server::start(Rules { takes: Duration::from_millis(40), ..Rules::default() });
    let lab = Lab::new();
    lab.write("plan.yaml", &closed(far.port, 1, 3, "http: 2, near: true", ""));
    let warning = "warning: `near: true`, but the shortest exchange takes 4";
    let probed = lab.ok(&["probe", "plan.yaml"]);
    assert!(probed.stdout.contains(warning), "{}", probed.stdout);
    let json = lab.ok(&["probe", "plan.yaml", "--format", "json"]).json();
    lab.follows("probe", &json);
    let way = &json["endpoints"][0]["way"];
    assert_eq!((&way["http"], &way["tls_ns"]), (&"2".into(), &Value::Null));
    assert!(way["round_trip_ns"].as_u64().unwrap() >= 40 * MS, "{way}");
    assert!(way["connect_ns"].as_u64().unwrap() < way["round_trip_ns"].as_u64().unwrap(), "{way}");
    assert!(json["endpoints"][0]["not_near"].as_str().unwrap().contains("remove `near`"), "{json}");
    let preview = lab.run(&["preview", "plan.yaml", "--probe"]);
    assert!((preview.stdout + &preview.stderr).contains("`near: true`, but the shortest exchange"));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert!(ended.stderr.contains("`near: true`, but the shortest exchange takes 4"), "{}", ended.stderr);
    let run = lab.only_run();
    assert!(run.json["environment"]["round_trip_ns"].as_u64().unwrap() >= 40 * MS);
    let shown = lab.ok(&["show", run.json["id"].as_str().unwrap()]);
    assert!(shown.stdout.contains("not_near (suspect): `near: true`, but the shortest"), "{}", shown.stdout);
    assert!(shown.stdout.contains("path to the server, measured by the probe\n  connect "), "{}", shown.stdout);

    lab.write("plan.yaml", &closed(far.port, 1, 3, "http: 2", ""));
    let silent = lab.ok(&["probe", "plan.yaml"]);
    assert!(silent.stdout.contains("round trip 4") && !silent.stdout.contains("near"), "{}", silent.stdout);
    let mock = Mock::start(&[]);
    lab.write("plan.yaml", &closed(mock.port, 1, 3, "near: true", ""));
    let near = lab.ok(&["probe", "plan.yaml"]);
    assert!(near.stdout.contains("HTTP/1.1, connect ") && !near.stdout.contains("warning"), "{}", near.stdout);
}

#[test]
fn what_a_plan_cannot_ask_of_http() {
    let lab = Lab::new();
    for (http, words) in [
        ("http: 3", "HTTP/3 cannot be measured"),
        ("http: { version: 1.1, streams: 4 }", "`streams` limits the requests on one HTTP/2 connection"),
        ("http: { version: 2, streams: 0 }", "1 to 100000"),
        ("http: 2, headers: { Keep-Alive: timeout=5 }", "`Keep-Alive` applies to a single HTTP/1.1 connection"),
    ] {
        lab.write("plan.yaml", &closed(1, 1, 1, http, ""));
        let ended = lab.run(&["check", "plan.yaml"]);
        assert_eq!(ended.code, Some(2), "{http}: {}", ended.stderr);
        assert!((ended.stdout + &ended.stderr).contains(words), "{http}");
    }
}
