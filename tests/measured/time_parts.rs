//! Tests how the time was spent: each part of a mean latency is compared with the mock's own times and a
//! network path of known delay, from a light load to one near the server's limit, and with a cap that
//! makes requests wait in the client.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use lab::mock::Mock;
use lab::report::{Page, Table, is_sound};
use lab::{Lab, Run};

/// Four slots with 40 ms to the first token and 15 gaps of 2 ms can serve 57 requests per second.
const FLAGS: [&str; 6] = ["--ttft", "40ms", "--itl", "2ms", "--slots", "4"];

const PLAN: &str = "\
sweepline: 1
name: parts
endpoints: { one: { engine: vllm, url: URL, telemetry: { prometheus: PAGE, every: 250ms } } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 16 } }
phases: { fill: 300ms, stabilize: 700ms, measure: 4s, drain: 3s }
validity: { client_late: { suspect: 100%, invalid: 100% }, unsteady: { suspect: 99% } }
sweeps:
  open: { matrix: { endpoint: one, model: m, scenario: short, qps: [17, 40, 54] } }
  capped: { matrix: { endpoint: one, model: m, scenario: short, qps: 50, batch_size: 3 } }
";

/// The delay of the path in each direction.
const WAY: Duration = Duration::from_millis(10);

/// Opens a path to a server on this machine on which every byte takes `WAY` in each direction; returns its
/// port.
fn way_to(port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for near in listener.incoming() {
            let (near, far) = (near.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap());
            for (from, to) in [(&near, &far), (&far, &near)] {
                let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                to.set_nodelay(true).unwrap();
                thread::spawn(move || delayed(from, to));
            }
        }
    });
    own
}

/// Forwards bytes, each `WAY` after its arrival, however many other bytes arrive in between.
fn delayed(mut from: TcpStream, mut to: TcpStream) {
    let (sender, receiver) = channel::<(Instant, Vec<u8>)>();
    let writer = thread::spawn(move || {
        for (due, bytes) in receiver {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
    let mut buffer = [0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if sender.send((Instant::now() + WAY, buffer[..read].to_vec())).is_err() {
            break;
        }
    }
    drop(sender);
    writer.join().unwrap();
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the mock's mean times for the requests that ended in the window, in ms: in the queue, to the
/// first token, and from the first token to the last.
fn done(log: &[Value], run: &Run) -> [f64; 3] {
    let origin = run.json["facts"]["start_monotonic_ns"].as_u64().unwrap();
    let [start, end] = ["measure_start_ns", "measure_end_ns"].map(|name| origin + run.window(name));
    let at = |line: &Value, name: &str| line[name].as_u64().unwrap();
    let ended: Vec<&Value> = log.iter().filter(|line| (start..end).contains(&at(line, "done_ns"))).collect();
    let between = |from: &str, to: &str| mean(ended.iter().map(|line| (at(line, to) - at(line, from)) as f64 / 1e6));
    [between("body_ns", "slot_ns"), between("slot_ns", "first_write_ns"), between("first_write_ns", "last_write_ns")]
}

/// Returns the client's mean times for the requests that ended in the window, in ms: from schedule to
/// send without connecting, connecting, from send to first token, and from first to last token.
fn seen(run: &Run) -> [f64; 4] {
    let [start, end] = ["measure_start_ns", "measure_end_ns"].map(|name| run.window(name));
    let rows = run.records.iter().map(|record| &record.row);
    let ended: Vec<_> = rows.filter(|row| row.done_ns.is_some_and(|at| (start..end).contains(&at))).collect();
    let millis = |ns: u64| ns as f64 / 1e6;
    let connecting = mean(ended.iter().map(|row| {
        let known = [row.dns_ns, row.connect_ns, row.tls_ns];
        millis(known.into_iter().flatten().sum())
    }));
    let waited = mean(ended.iter().map(|row| millis(row.sent_ns.unwrap() - row.scheduled_ns))) - connecting;
    let first = mean(ended.iter().map(|row| millis(row.first_token_ns.unwrap() - row.sent_ns.unwrap())));
    let rest = mean(ended.iter().map(|row| millis(row.last_token_ns.unwrap() - row.first_token_ns.unwrap())));
    [waited, connecting, first, rest]
}

/// Asserts equality within 5 % or 2 ms.
fn is_near(what: &str, found: f64, wanted: f64) {
    assert!((found - wanted).abs() <= (0.05 * wanted).max(2.0), "{what}: {found} ms is not {wanted} ms");
}

fn checked(lab: &Lab, run: &Run, log: &[Value]) -> [f64; 2] {
    let id = run.json["id"].as_str().unwrap();
    let shown = lab.ok(&["show", id, "--plan", "plan.yaml", "--format", "json"]).json();
    lab.follows("show", &shown);
    let ([queue, prefill, decode], [client, connection, first, rest]) = (done(log, run), seen(run));
    // Tokens have absolute due times, so a late first token does not delay the others.
    let told = prefill >= 39.9 && prefill + decode >= 69.9;
    assert!(told, "15 gaps of 2 ms after 40 ms: {prefill} and {decode} ms");
    let outside = first - queue - prefill;
    let way = 2.0 * WAY.as_secs_f64() * 1e3;
    assert!(outside >= way - 0.5, "the path takes {way} ms, not {outside}");
    let wholes = shown["parts"].as_array().unwrap_or_else(|| panic!("no parts: {shown:#}"));
    for (whole, more) in wholes.iter().zip([0.0, rest]) {
        let of = whole["of"].as_str().unwrap();
        let known = |name: &str| {
            let found = whole["parts"].as_array().unwrap().iter().find(|part| part["name"] == name);
            found.unwrap()["ms"].as_f64()
        };
        let part = |name: &str| known(name).unwrap_or_else(|| panic!("{of} {name}: {whole:#}"));
        let wanted = [("client", client), ("connection", connection), ("queue", queue), ("prefill", prefill)];
        for (name, wanted) in wanted {
            is_near(&format!("{of} {name} of {id}"), part(name), wanted);
        }
        // The TCP connection ends at the near end of the path, on this machine, so the network's share
        // beyond that point is unknown.
        is_near(&format!("{of} outside of {id}"), part("network") + part("outside_server"), outside);
        assert!(part("network") > 0.0 && part("outside_server") >= way - 2.0, "{whole:#}");
        if of == "e2e" {
            // If a busy machine delays tokens, one of the two values contains the delay.
            is_near("decode", part("decode") + known("stalls").unwrap_or(0.0), decode);
        }
        let mean_ms = whole["mean_ms"].as_f64().unwrap();
        assert!((mean_ms - (client + connection + first + more)).abs() < 0.01, "{of}: {mean_ms} ms");
        let sum: f64 = whole["parts"].as_array().unwrap().iter().filter_map(|part| part["ms"].as_f64()).sum();
        assert!((sum - mean_ms).abs() < 0.001, "{of}: the parts sum to {sum} ms, the total is {mean_ms} ms");
        assert!(whole["assigned_share"].as_f64().unwrap() >= 0.95, "{whole:#}");
    }
    assert_eq!(wholes.len(), 2);
    let text = lab.ok(&["show", id, "--plan", "plan.yaml"]).stdout;
    let block = text.split("where the time went").nth(1).unwrap_or_else(|| panic!("no block: {text}"));
    let block = block.split("\n\n").next().unwrap();
    assert!(block.contains("outside the server") && block.lines().all(|line| line.chars().count() <= 80), "{block}");
    [client, queue]
}

/// `diagnose` names the deliberate delays: the cap in the client and the path outside the server, and
/// claims no more than was measured.
fn diagnosed(lab: &Lab, runs: &BTreeMap<String, Run>) {
    let found = lab.ok(&["diagnose", "plan.yaml", "--format", "json"]).json();
    lab.follows("diagnose", &found);
    let symptom = |key: &str| {
        let all = found["symptoms"].as_array().unwrap();
        all.iter().find(|one| one["symptom"] == key).unwrap_or_else(|| panic!("no {key}: {found:#}"))
    };
    let outside = symptom("outside_the_server");
    assert_eq!(outside["found"], "seen", "a path of 20 ms next to 40 ms of prefill: {found:#}");
    // This also applies to the capped load, in which the delay is in the client.
    let capped = runs.values().find(|run| run.json["facts"]["batch_size"].is_u64()).unwrap();
    let named = outside["evidence"].as_array().unwrap().iter().find(|one| one["runs"][0] == capped.json["id"]).unwrap();
    let text = named["text"].as_str().unwrap();
    let client: f64 = text.split("the client ").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    assert!(client > 50.0, "{text}");
    assert_eq!(symptom("preempted")["found"], "not_seen");
    for key in ["kv_cache_short", "throttled"] {
        assert_eq!(symptom(key)["found"], "not_checked", "the mock has neither a KV cache nor a GPU");
    }
    let unmeasured = found["not_measured"].as_str().unwrap();
    assert!(unmeasured.contains("GPU use") && !unmeasured.contains("time in the queue"), "{unmeasured}");
}

/// The report contains the numbers of `show`, in a figure for each curve and sum, and in each run's part of
/// the page.
fn reported(lab: &Lab, runs: &BTreeMap<String, Run>) {
    lab.ok(&["report", "plan.yaml", "-o", "report.html"]);
    let page = Page::of(lab, "report.html");
    is_sound(&page);
    let section = page.section("time").expect("a section of where the time went");
    let mut compared = 0;
    let shown =
        |run: &Run| lab.ok(&["show", run.json["id"].as_str().unwrap(), "--plan", "plan.yaml", "--format", "json"]);
    for figure in Page::between(section, "<figure id=\"", "</figure>") {
        let table = Table::of(Page::between(figure, "<table>", "</table>")[0]);
        let of = if figure.split('"').next().unwrap().ends_with("-ttft") { "ttft" } else { "e2e" };
        let is_capped = figure.contains("one, at most 3 in flight");
        for row in 0..table.rows.len() {
            let load = table.number(row, "qps").unwrap();
            let is_meant =
                |run: &&Run| run.json["facts"]["qps"] == load && run.json["facts"]["batch_size"].is_u64() == is_capped;
            let shown = shown(runs.values().find(is_meant).unwrap()).json();
            let whole = shown["parts"].as_array().unwrap().iter().find(|whole| whole["of"] == of).unwrap();
            assert_eq!(table.number(row, &format!("{of}_mean_ms")), whole["mean_ms"].as_f64());
            for part in whole["parts"].as_array().unwrap() {
                let name = format!("{of}_{}_ms", part["name"].as_str().unwrap());
                assert_eq!(table.number(row, &name), part["ms"].as_f64(), "{name} at {load}");
                compared += 1;
            }
        }
        let drawn = figure.matches("<title>").count();
        assert!(drawn >= 3 * table.rows.len(), "{drawn} stripes show their value: {figure}");
        assert!(figure.contains("What is TTFT from schedule?") || figure.contains("What is E2E from schedule?"));
    }
    // There are two sums for each of three loads and for the capped load.
    assert!(compared >= 4 * (8 + 9), "{compared} numbers");
    for run in runs.values() {
        let id = run.json["id"].as_str().unwrap();
        let part = page.text.split(&format!("id=\"run-{}\"", &id[..16])).nth(1).expect("a part of the run");
        let part = part.split("<details class=\"run\">").next().unwrap();
        let tables: Vec<Table> = Page::between(part, "<table>", "</table>").into_iter().map(Table::of).collect();
        let shown = shown(run).json();
        let server = tables.iter().find(|table| table.headings[0] == "figure").expect("the server in the window");
        let figures = shown["server"].as_array().unwrap();
        assert_eq!(server.rows.len(), figures.len());
        for (row, figure) in figures.iter().enumerate() {
            assert_eq!(server.text(row, "figure"), figure["name"].as_str().unwrap());
            assert_eq!(server.number(row, "value"), figure["value"].as_f64(), "{figure}");
        }
        let parts = tables.iter().find(|table| table.headings[0] == "part").expect("where the time went");
        let queue = (0..parts.rows.len()).find(|row| parts.text(*row, "part") == "queue").unwrap();
        let ttft = shown["parts"].as_array().unwrap().iter().find(|whole| whole["of"] == "ttft").unwrap();
        let wanted = ttft["parts"].as_array().unwrap().iter().find(|part| part["name"] == "queue").unwrap();
        assert_eq!(parts.number(queue, "TTFT, ms"), wanted["ms"].as_f64());
    }
}

fn the_parts_of_a_mean_are_what_happened() {
    let lab = Lab::measured_time();
    let server = Mock::start(&FLAGS);
    let url = format!("http://127.0.0.1:{}/v1", way_to(server.port));
    let page = format!("http://127.0.0.1:{}/metrics", server.port);
    lab.write("plan.yaml", &PLAN.replace("URL", &url).replace("PAGE", &page));
    lab.run(&["run", "plan.yaml"]);
    let runs = lab.runs();
    assert_eq!(runs.len(), 4);
    let whole = runs.values().flat_map(|run| &run.records).filter(|record| record.row.outcome.is_ok());
    let mut log = server.log_of_runs(whole.count());
    log.retain(|line| line["finish_reason"] == "length");
    let mut waits: Vec<(f64, bool, [f64; 2])> = Vec::new();
    for run in runs.values() {
        let open = &run.json["spec"]["load"]["open"];
        let qps = run.json["facts"]["qps"].as_f64().unwrap_or_else(|| panic!("{open}"));
        waits.push((qps, run.json["facts"]["batch_size"].is_u64(), checked(&lab, run, &log)));
    }
    // The loads are as intended: the queue grows, and the cap moves the queue into the client.
    waits.sort_by(|a, b| a.0.total_cmp(&b.0));
    let open: Vec<f64> = waits.iter().filter(|one| !one.1).map(|(.., [_, queue])| *queue).collect();
    assert!(open[0] < 3.0 && open[0] < open[2] && open[1] < open[2], "{waits:?}");
    let [client, queue] = waits.iter().find(|one| one.1).unwrap().2;
    assert!(client > 50.0 && queue < 1.0, "{waits:?}");

    diagnosed(&lab, &runs);
    reported(&lab, &runs);

    let table = lab.ok(&["export", "--format", "csv", "--columns", "all"]).stdout;
    let header = table.lines().next().unwrap();
    for column in ["parts.ttft_queue_ms", "parts.ttft_mean_ms", "parts.e2e_decode_ms", "parts.e2e_assigned_share"] {
        assert!(header.split(',').any(|name| name == column), "no {column} in {header}");
    }
}

lab::measured_tests![the_parts_of_a_mean_are_what_happened];
