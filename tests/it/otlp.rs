//! Tests a sweep as OpenTelemetry spans: the data that a collector receives, and that a collector cannot
//! harm a sweep, however it behaves.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use lab::{Ended, Lab, Running, Server, wait_for};

/// A plan with two runs.
const PLAN: &str = "\
sweepline: 1
name: traced
endpoints: { one: { engine: openai, url: URL } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 6 } }
phases: { fill: 100ms, stabilize: 100ms, measure: 200ms, drain: 5s }
validity: { client_late: { suspect: 100%, invalid: 100% }, unsteady: { suspect: 99% } }
sweeps:
  s: { matrix: { endpoint: [one], model: [m], scenario: [short], batch_size: [1, 2], temperature: [0.5] } }
";

/// A request that a collector received.
struct Got {
    /// The request line and the headers.
    head: Vec<String>,
    body: Vec<u8>,
}

impl Got {
    fn header(&self, name: &str) -> Option<&str> {
        let value = |line: &'_ str| {
            line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v.len())
        };
        self.head.iter().find_map(|line| value(line).map(|length| &line[line.len() - length..]))
    }
}

/// The collector's response: a status, or no response.
#[derive(Clone, Copy)]
enum Mood {
    Answers(u16),
    Hangs,
}

/// Starts a collector; received requests arrive on the channel.
fn collector(mood: Mood) -> (String, Receiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, got) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let sender = sender.clone();
            std::thread::spawn(move || serve(stream.unwrap(), mood, |one| sender.send(one).is_ok()));
        }
    });
    (address, got)
}

fn serve(stream: TcpStream, mood: Mood, take: impl Fn(Got) -> bool) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    loop {
        let lines = reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty());
        let mut got = Got { head: lines.collect(), body: Vec::new() };
        let Some(length) = got.header("content-length").map(|length| length.parse().unwrap()) else { return };
        got.body.resize(length, 0);
        reader.read_exact(&mut got.body).unwrap();
        if !take(got) {
            return;
        }
        match mood {
            Mood::Answers(status) => {
                write!(writer, "HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n").unwrap();
            }
            // Runs until the program exits.
            Mood::Hangs => drop(reader.read(&mut [0])),
        }
    }
}

/// A span, from either encoding.
#[derive(Debug, Clone, PartialEq)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    name: String,
    start: u64,
    end: u64,
    attributes: BTreeMap<String, Value>,
    events: usize,
    error: Option<String>,
}

impl Span {
    fn text(&self, key: &str) -> &str {
        self.attributes.get(key).and_then(Value::as_str).unwrap_or_else(|| panic!("no {key}: {self:#?}"))
    }
}

/// Parses the resource's attributes and the spans of a JSON request.
fn of_json(body: &[u8]) -> (BTreeMap<String, Value>, Vec<Span>) {
    let any = |value: &Value| match value.as_object().unwrap().iter().next().unwrap() {
        (kind, value) if kind == "intValue" => json!(value.as_str().unwrap().parse::<i64>().unwrap()),
        (kind, value) if kind == "arrayValue" => {
            value["values"].as_array().unwrap().iter().map(|one| one["stringValue"].clone()).collect()
        }
        (_, value) => value.clone(),
    };
    let attributes = |of: &Value| {
        let pairs = of["attributes"].as_array().unwrap().iter();
        pairs.map(|pair| (pair["key"].as_str().unwrap().to_owned(), any(&pair["value"]))).collect::<BTreeMap<_, _>>()
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let nanos = |value: &Value| value.as_str().unwrap().parse().unwrap();
    let body: Value = serde_json::from_slice(body).unwrap();
    let resource = &body["resourceSpans"][0];
    assert_eq!(resource["scopeSpans"][0]["scope"]["name"], "sweepline");
    let spans = resource["scopeSpans"][0]["spans"].as_array().unwrap().iter().map(|span| Span {
        trace: text(&span["traceId"]),
        id: text(&span["spanId"]),
        parent: text(&span["parentSpanId"]),
        name: text(&span["name"]),
        start: nanos(&span["startTimeUnixNano"]),
        end: nanos(&span["endTimeUnixNano"]),
        attributes: attributes(span),
        events: span["events"].as_array().unwrap().len(),
        error: (span["status"]["code"] == 2).then(|| text(&span["status"]["message"])),
    });
    (attributes(&resource["resource"]), spans.collect())
}

/// One field of a message: its field number and its content, or the bits of a numeric value.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Returns the fields of a message in protobuf's wire format, in order.
fn fields(mut rest: &[u8]) -> Vec<(u64, Field<'_>)> {
    fn varint(rest: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (byte, behind) = rest.split_first().unwrap();
            *rest = behind;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let tag = varint(&mut rest);
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut rest)),
            1 => {
                let (number, behind) = rest.split_first_chunk().unwrap();
                rest = behind;
                Field::Number(u64::from_le_bytes(*number))
            }
            2 => {
                let length = varint(&mut rest) as usize;
                let (bytes, behind) = rest.split_at(length);
                rest = behind;
                Field::Bytes(bytes)
            }
            other => panic!("unknown wire type {other}"),
        };
        fields.push((tag >> 3, field));
    }
    fields
}

fn all(message: &[u8], number: u64) -> Vec<&[u8]> {
    let bytes = |(field, content)| match content {
        Field::Bytes(bytes) if field == number => Some(bytes),
        _ => None,
    };
    fields(message).into_iter().filter_map(bytes).collect()
}

fn one(message: &[u8], number: u64) -> &[u8] {
    all(message, number).first().copied().unwrap_or_default()
}

fn number(message: &[u8], wanted: u64) -> u64 {
    let number = |(field, content)| match content {
        Field::Number(number) if field == wanted => Some(number),
        _ => None,
    };
    fields(message).into_iter().find_map(number).unwrap_or_default()
}

/// Parses a protobuf request in the same way, with the field numbers of
/// `opentelemetry/proto/trace/v1/trace.proto`.
fn of_protobuf(body: &[u8]) -> (BTreeMap<String, Value>, Vec<Span>) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let any = |value: &[u8]| match &fields(value)[..] {
        [(1, Field::Bytes(bytes))] => json!(text(bytes)),
        [(3, Field::Number(int))] => json!(*int as i64),
        [(4, Field::Number(bits))] => json!(f64::from_bits(*bits)),
        [(5, Field::Bytes(array))] => all(array, 1).into_iter().map(|one_of| json!(text(one(one_of, 1)))).collect(),
        _ => panic!("no value: {value:?}"),
    };
    let attributes = |message: &[u8], field: u64| {
        let pairs = all(message, field).into_iter();
        pairs.map(|pair| (text(one(pair, 1)), any(one(pair, 2)))).collect::<BTreeMap<_, _>>()
    };
    let resource = one(body, 1);
    let scope = one(resource, 2);
    assert_eq!(text(one(one(scope, 1), 1)), "sweepline");
    let spans = all(scope, 2).into_iter().map(|span| Span {
        trace: hex(one(span, 1)),
        id: hex(one(span, 2)),
        parent: hex(one(span, 4)),
        name: text(one(span, 5)),
        start: number(span, 7),
        end: number(span, 8),
        attributes: attributes(span, 9),
        events: all(span, 11).len(),
        error: (number(one(span, 15), 3) == 2).then(|| text(one(one(span, 15), 2))),
    });
    (attributes(one(resource, 1), 1), spans.collect())
}

/// Runs the plan with this environment; returns exit code, output and duration.
fn run(lab: &Lab, args: &[&str], environment: &[(&str, &str)]) -> (Ended, Duration) {
    let began = Instant::now();
    let mut command = lab.command(&[&["run", "plan.yaml"], args].concat());
    let ended = Ended::from(command.envs(environment.iter().copied()).output().unwrap());
    (ended, began.elapsed())
}

fn served(lab: &Lab) -> Server {
    let server = Server::start(lab, &[]);
    lab.write("plan.yaml", &PLAN.replace("URL", &server.url()));
    server
}

/// Asserts the properties of the spans of a sweep with two runs, in either encoding.
fn two_runs(lab: &Lab, spans: &[Span], parent: &str) {
    let named = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let [sweep] = named("sweep")[..] else { panic!("{spans:#?}") };
    assert_eq!((sweep.parent.as_str(), sweep.text("sweepline.plan")), (parent, "traced"));
    let runs = named("run");
    let committed = lab.runs();
    assert_eq!(runs.len(), 2, "{spans:#?}");
    for run in &runs {
        assert_eq!((&run.parent, &run.trace), (&sweep.id, &sweep.trace));
        assert!(sweep.start <= run.start && run.end <= sweep.end);
        let id = run.text("sweepline.run.id");
        let (_, result) = committed.iter().find(|(_, result)| result.json["id"] == id).unwrap();
        let shown = lab.ok(&["show", id, "--plan", "plan.yaml", "--format", "json"]).json();
        assert_eq!(run.text("sweepline.verdict"), shown["verdict"]["state"]);
        let names = shown["verdict"]["reasons"].as_array().unwrap().iter().map(|reason| &reason["name"]);
        assert_eq!(run.attributes["sweepline.verdict.reasons"], json!(names.collect::<Vec<_>>()));
        for (key, metric) in [
            ("sweepline.requests", "requests"),
            ("sweepline.ttft_p50_ms", "ttft_p50_ms"),
            ("sweepline.output_throughput_tokens_per_s", "output_throughput_tokens_per_s"),
        ] {
            assert_eq!(run.attributes[key].as_f64(), shown["metrics"][metric].as_f64(), "{key}");
        }
        assert_eq!(run.text("gen_ai.request.model"), "m");
        assert_eq!(run.text("sweepline.axis.temperature"), "0.5");
        assert!([json!(1), json!(2)].contains(&run.attributes["sweepline.load.batch_size"]), "{run:#?}");
        assert_eq!(run.error, None);

        let phases: Vec<&Span> = spans.iter().filter(|span| span.parent == run.id).collect();
        let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
        assert!(names.ends_with(&["fill", "stabilize", "measure", "drain"]), "{names:?}");
        assert!(phases.windows(2).all(|two| two[0].end == two[1].start));
        let measured = phases.iter().find(|phase| phase.name == "measure").unwrap();
        let window = result.window("measure_end_ns") - result.window("measure_start_ns");
        assert!(
            (measured.end - measured.start).abs_diff(window)
                < if lab::is_whole() { 400_000_000 } else { 10_000_000_000 },
            "{measured:#?} of {window} ns"
        );
    }
    let ids: std::collections::BTreeSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    assert_eq!(ids.len(), spans.len(), "ids differ");
}

#[test]
fn a_collector_gets_the_sweep_its_runs_and_their_phases() {
    let lab = Lab::new();
    let _server = served(&lab);
    let (address, got) = collector(Mood::Answers(200));
    let endpoint = format!("http://{address}/base");
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let common = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20top-secret"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
    ];
    let of = |args: &[&str], more: &[(&str, &str)]| {
        let (ended, _) = run(&lab, args, &[&common, more].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(!ended.stderr.contains("traces"), "{}", ended.stderr);
        assert!(!format!("{}{}", ended.stdout, ended.stderr).contains("top-secret"));
        got.try_iter().collect::<Vec<Got>>()
    };
    let requests = of(&[], &[("OTEL_SERVICE_NAME", "night"), ("TRACEPARENT", &parent)]);
    let mut spans = Vec::new();
    for request in &requests {
        assert!(request.head[0].starts_with("POST /base/v1/traces "), "{:?}", request.head);
        assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
        assert_eq!(request.header("authorization"), Some("Bearer top-secret"));
        let (resource, more) = of_protobuf(&request.body);
        assert_eq!(
            (&resource["service.name"], &resource["deployment.environment.name"]),
            (&json!("night"), &json!("test"))
        );
        spans.extend(more);
    }
    assert!(spans.iter().all(|span| span.trace == trace));
    two_runs(&lab, &spans, "b7ad6b7169203331");

    let requests = of(&["--force"], &[("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")]);
    assert!(requests.iter().all(|request| request.header("content-type") == Some("application/json")));
    let spans: Vec<Span> = requests.iter().flat_map(|request| of_json(&request.body).1).collect();
    assert!(spans[0].trace != trace && spans[0].trace.len() == 32);
    two_runs(&lab, &spans, "");
    for file in lab.runs().values().flat_map(|run| std::fs::read_dir(&run.dir).unwrap()) {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(10).any(|window| window == b"top-secret"));
    }
    assert!(of(&["--force"], &[("OTEL_SDK_DISABLED", "true")]).is_empty());
}

#[test]
fn no_collector_harms_a_sweep() {
    let lab = Lab::new();
    let _server = served(&lab);
    // Nothing listens on a port that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let (hanging, _got) = collector(Mood::Hangs);
    let (refusing, refused) = collector(Mood::Answers(401));
    let mut wanted = None;
    for (address, why) in [(free, "no connection"), (hanging, "no response"), (refusing, "HTTP 401")] {
        let endpoint = format!("http://user:top-secret@{address}");
        let (ended, took) = run(&lab, &["--force"], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let told = "the collector of OTEL_EXPORTER_OTLP_ENDPOINT does not accept spans";
        assert_eq!(ended.stderr.matches(told).count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(why) && !ended.stderr.contains("top-secret"), "{}", ended.stderr);
        let base = *wanted.get_or_insert(took);
        // The timeout is two seconds, plus a margin for slow machines.
        assert!(!lab::is_whole() || took < base + Duration::from_secs(4), "{why}: {took:?} after {base:?}");
        assert_eq!(lab.runs().len(), 2);
    }
    assert!(refused.try_iter().count() >= 1);
    let (ended, _) = run(&lab, &[], &[("OTEL_EXPORTER_OTLP_ENDPOINT", "top-secret")]);
    assert!(
        ended.stderr.contains("no traces are sent: OTEL_EXPORTER_OTLP_ENDPOINT is not an address"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stderr.contains("top-secret") && ended.code == Some(0));
}

#[test]
fn what_is_stopped_under_way_is_a_span_of_an_error() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    lab.write("plan.yaml", &PLAN.replace("URL", &server.url()).replace("200ms", "60s"));
    let (address, got) = collector(Mood::Answers(200));
    let endpoint = format!("http://{address}/in");
    let mut command = lab.command(&["run", "plan.yaml"]);
    let running = Running::start(command.env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint));
    wait_for("the load", || (server.requests() > 20).then_some(()));
    running.signal(rustix::process::Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    let requests: Vec<Got> = got.try_iter().collect();
    assert!(requests.iter().all(|request| request.head[0].starts_with("POST /in ")));
    let spans: Vec<Span> = requests.iter().flat_map(|request| of_protobuf(&request.body).1).collect();
    let [run] = spans.iter().filter(|span| span.name == "run").collect::<Vec<_>>()[..] else { panic!("{spans:#?}") };
    assert!(run.error.is_some() && !run.text("error.type").is_empty(), "{run:#?}");
    assert!(!run.attributes.contains_key("sweepline.verdict"));
    let sweep = spans.iter().find(|span| span.name == "sweep").unwrap();
    assert!(sweep.events >= 1, "the event of its stop: {sweep:#?}");
}
