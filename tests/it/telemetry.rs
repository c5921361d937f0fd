//! Tests pages of metrics that are scraped during a run: they agree with the client's observations, and no
//! page can harm a run.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use serde_json::Value;
use sweepline::rows::{Sample, read_samples};

use super::live::{Listening, is_there};
use lab::mock::Mock;
use lab::{Lab, Run, Server, wait_for};

/// A plan with a closed loop that has more requests than the server has slots, whose prompts share
/// their beginnings.
const CLOSED: &str = "\
sweepline: 1
name: watched
endpoints: { one: { engine: vllm, url: URL, telemetry: TELEMETRY } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 16, system_tokens: 64 } }
phases: { fill: 300ms, stabilize: 300ms, measure: 3s, drain: { for: 10s, mode: stop } }
validity: { client_late: { suspect: 100%, invalid: 100% }, unsteady: { suspect: 99% }, warm_cache: { suspect: 100%, invalid: 100% } }
sweeps: { s: { matrix: { endpoint: [one], model: [m], scenario: [short], batch_size: [8] } } }
";

fn plan(url: &str, telemetry: &str) -> String {
    CLOSED.replace("URL", url).replace("TELEMETRY", telemetry)
}

/// Returns a figure of a run, or the reason why it is missing.
pub fn figure(shown: &Value, name: &str) -> Result<f64, String> {
    let all = shown["server"].as_array().unwrap_or_else(|| panic!("nothing was scraped: {shown}"));
    let found = all.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("no {name} in {all:#?}"));
    found["value"].as_f64().ok_or_else(|| found["absent"].as_str().unwrap().to_owned())
}

pub fn shown(lab: &Lab, run: &Run) -> Value {
    lab.ok(&["show", run.json["id"].as_str().unwrap(), "--plan", "plan.yaml", "--format", "json"]).json()
}

fn is_near(what: &str, found: f64, wanted: f64, within: f64) {
    let apart = (found - wanted).abs() / wanted.abs();
    assert!(apart <= within, "{what}: {found} from the server, {wanted} from the client");
}

pub fn samples(run: &Run) -> Vec<Sample> {
    read_samples(&run.dir.join("samples.parquet")).unwrap()
}

pub fn reasons(shown: &Value) -> Vec<&str> {
    shown["verdict"]["reasons"].as_array().unwrap().iter().map(|reason| reason["name"].as_str().unwrap()).collect()
}

#[test]
fn what_the_mock_says_of_itself_is_what_the_client_saw() {
    let lab = Lab::new();
    let flags = ["--ttft", "30ms", "--itl", "2ms", "--slots", "4", "--prefix-cache", "100000"];
    let server = Mock::start(&flags);
    let url = format!("http://127.0.0.1:{}/v1", server.port);
    lab.write("plan.yaml", &plan(&url, "{ every: 200ms }"));
    lab.ok(&["run", "plan.yaml"]);
    let run = lab.only_run();
    let shown = shown(&lab, &run);
    lab.follows("show", &shown);
    let (metric, value) =
        (|name: &str| shown["metrics"][name].as_f64().unwrap(), |name: &str| figure(&shown, name).unwrap());
    let seconds = (run.window("measure_end_ns") - run.window("measure_start_ns")) as f64 / 1e9;

    is_near("running", value("requests_running_mean"), 4.0, 0.1);
    // On a busy machine, the client sends its next requests late, so that fewer of them wait at the server.
    is_near("waiting", value("requests_waiting_mean"), 4.0, if lab::is_whole() { 0.15 } else { 0.5 });
    assert!(value("requests_running_max") <= 4.0 && value("requests_waiting_max") <= 8.0);
    is_near("tokens", value("generation_tokens"), metric("output_throughput_tokens_per_s") * seconds, 0.05);
    is_near("requests", value("requests_succeeded"), metric("requests"), 0.1);
    is_near("TTFT", value("ttft_seconds_mean"), metric("ttft_mean_ms") / 1e3, 0.05);
    is_near("E2E", value("e2e_seconds_mean"), metric("e2e_mean_ms") / 1e3, 0.05);
    let parts = ["queue_seconds_mean", "prefill_seconds_mean", "decode_seconds_mean"].map(value);
    is_near("the parts of E2E", parts.iter().sum(), value("e2e_seconds_mean"), 0.02);
    is_near("queue and prefill", parts[0] + parts[1], value("ttft_seconds_mean"), 0.05);
    // On a busy machine, the first token is late, but the last one is due at the same time.
    let least = if lab::is_whole() { 0.029 } else { 0.027 };
    assert!(parts[1] >= 0.03 && parts[2] >= least, "30 ms of prefill and 15 gaps of 2 ms: {parts:?}");
    let of_window = run.records.iter().filter(|record| record.row.phase.name() == "measure").map(|record| &record.row);
    let [cached, prompts] = of_window.fold([0.0, 0.0], |[cached, prompts], row| {
        let told = row.cached_tokens.zip(row.prompt_tokens).map(|(cached, prompt)| [cached, prompt].map(f64::from));
        told.map_or([cached, prompts], |[more, prompt]| [cached + more, prompts + prompt])
    });
    assert!(cached > 0.0);
    is_near("hits", value("prefix_hit_share"), cached / prompts, 0.05);
    assert!(value("kv_cache_usage_mean") > 0.0 && value("preemptions") == 0.0);

    let telemetry = &run.json["facts"]["telemetry"];
    let ok = run.records.iter().filter(|record| record.row.outcome.is_ok());
    let tokens: u32 = ok.clone().map(|record| record.row.output_tokens.unwrap()).sum();
    // The server had generated some of the 16 tokens of a request that was cut off at the end, or all of them
    // a moment before.
    let completed = ok.count();
    let cut = run.records.len() - completed;
    let requests = telemetry["counted"]["requests"].as_f64().unwrap() as usize;
    assert!((completed..=completed + cut).contains(&requests), "{completed} completed, {cut} cut: {telemetry}");
    let [least, most] = [tokens, tokens + 16 * cut as u32].map(f64::from);
    let counted = telemetry["counted"]["generation_tokens"].as_f64().unwrap();
    assert!((least..=most).contains(&counted), "{counted} tokens are not {least} to {most}");
    assert_eq!((&telemetry["gaps"], telemetry["urls"].as_array().unwrap().len()), (&0.into(), 1));
    let of_server = reasons(&shown).into_iter().filter(|name| name.starts_with("server_")).count();
    assert_eq!(of_server, 0, "{:#}", shown["verdict"]);

    let ups: Vec<u64> = samples(&run).iter().filter(|one| one.name == "up").map(|one| one.at_ns).collect();
    assert_eq!(ups[0], 0, "one scrape precedes the load");
    assert!(*ups.last().unwrap() >= run.window("end_ns"), "and one follows it");
    for border in ["measure_start_ns", "measure_end_ns"].map(|name| run.window(name)) {
        let nearest = ups.iter().map(|up| up.abs_diff(border)).min().unwrap();
        assert!(nearest < 120_000_000, "a scrape is {nearest} ns from the boundary at {border}: {ups:?}");
    }
    let text = lab.ok(&["show", run.json["id"].as_str().unwrap()]).stdout;
    assert!(text.contains("server in the window") && text.contains("requests running mean"), "{text}");
    let table = lab.ok(&["export", "--format", "csv", "--columns", "all"]).stdout;
    assert!(table.lines().next().unwrap().contains("server.queue_seconds_mean"), "{table}");

    // Telemetry is not part of a run's identity: without it there is nothing to do, and the result is still
    // read.
    lab.write("plan.yaml", &plan(&url, "on").replace(", telemetry: on", ""));
    assert_eq!(lab.run(&["preview", "plan.yaml", "--exit-code"]).code, Some(0));
    lab.ok(&["verify"]);
}

#[test]
fn two_in_a_hundred_of_somebody_else_are_found() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let text = plan(&server.url(), "on").replace("batch_size: [8]", "qps: [150]").replace("measure: 3s", "measure: 4s");
    lab.write("plan.yaml", &text);
    let address = server.url().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let other = std::thread::spawn(move || {
        wait_for("the load", || (succeeded(&address) > 50.0).then_some(()));
        for _ in 0..14 {
            ask(&address, "POST /v1/completions", r#"{"model":"m","prompt":"x","max_tokens":2}"#);
        }
    });
    lab.ok(&["run", "plan.yaml"]);
    other.join().unwrap();
    let run = lab.only_run();
    assert!((500..900).contains(&run.records.len()), "{} requests", run.records.len());
    let shown = shown(&lab, &run);
    let reason = shown["verdict"]["reasons"].as_array().unwrap().iter().find(|one| one["name"] == "server_counts");
    let reason = reason.unwrap_or_else(|| panic!("{:#}{:#}", shown["verdict"], run.json["facts"]["telemetry"]));
    assert_eq!(reason["state"], "suspect");
    assert!(reason["text"].as_str().unwrap().contains("something else used it too"), "{reason}");
    // If nothing else uses the server, the same plan reports no problem.
    lab.ok(&["run", "plan.yaml", "--force"]);
    assert!(!reasons(&self::shown(&lab, &lab.only_run())).contains(&"server_counts"));
}

/// Sends a request from the test and returns the body of the response.
fn ask(address: &str, line: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(stream, "{line} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Returns the number of requests to which the mock has responded successfully.
fn succeeded(address: &str) -> f64 {
    let page = ask(address, "GET /metrics", "");
    let lines = page.lines().filter(|line| line.starts_with("vllm:request_success_total"));
    lines
        .filter(|line| !line.contains("abort"))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum()
}

/// A page with configurable responses: `answer` writes the response to the nth request.
pub struct FakePage {
    pub url: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl FakePage {
    fn start(answer: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static) -> FakePage {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/metrics", listener.local_addr().unwrap());
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer, count) = (Arc::clone(&heads), Arc::new(answer), Arc::new(AtomicUsize::new(0)));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, answer, count) = (Arc::clone(&seen), Arc::clone(&answer), Arc::clone(&count));
                std::thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let mut head = Vec::new();
                    let mut byte = [0];
                    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                        head.push(byte[0]);
                    }
                    seen.lock().unwrap().push(String::from_utf8_lossy(&head).to_lowercase());
                    answer(count.fetch_add(1, Ordering::Relaxed), &mut stream);
                });
            }
        });
        FakePage { url, heads }
    }

    /// Creates a page that responds with a text.
    pub fn of(text: impl Fn(usize) -> String + Send + Sync + 'static) -> FakePage {
        FakePage::start(move |nth, stream| {
            let text = text(nth);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", text.len());
            let _ = stream.write_all((head + &text).as_bytes());
        })
    }
}

#[test]
fn no_page_harms_a_run() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let hangs = FakePage::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na 1\n");
        let _ = stream.read(&mut [0]);
    });
    let endless = FakePage::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        let line = b"a{b=\"c\"} 1\n".repeat(10_000);
        while stream.write_all(&line).is_ok() {}
    });
    let html = FakePage::of(|_| "<html>not found</html>".to_owned());
    let failing =
        FakePage::start(|_, stream| drop(stream.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")));
    let cut =
        FakePage::start(|_, stream| drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na 1\n")));
    // Counters that grow every millisecond, and restart in the middle of the window.
    let since = OnceLock::new();
    let restarts = FakePage::of(move |_| {
        let passed = since.get_or_init(Instant::now).elapsed().as_millis();
        format!("my_tokens {}\n", if passed < 2_000 { passed } else { passed - 2_000 })
    });
    let pages = [&hangs, &endless, &html, &failing, &cut, &restarts].map(|page| page.url.clone());
    let list = pages.iter().map(|page| format!("\"{page}\"")).collect::<Vec<_>>().join(", ");
    let telemetry =
        format!("{{ prometheus: [on, {list}], every: 250ms, map: {{ preemptions: my_tokens }}, raw: my_tokens }}");
    lab.write("plan.yaml", &plan(&server.url(), &telemetry));
    lab.ok(&["run", "plan.yaml"]);
    let run = lab.only_run();
    let telemetry = &run.json["facts"]["telemetry"];
    assert_eq!(telemetry["urls"].as_array().unwrap().len(), 7);
    assert!(telemetry["gaps"].as_u64().unwrap() >= 5 * 3, "{telemetry}");
    let mut errors: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for sample in samples(&run).into_iter().filter(|sample| sample.name == "up") {
        errors.entry(sample.url.unwrap()).or_default().extend(sample.error);
    }
    for (url, kind) in [(1, "timeout"), (2, "too_large"), (3, "malformed"), (4, "status"), (5, "cut")] {
        let found = &errors[&url];
        // On a busy machine, 16 MiB may take longer than the interval.
        let is_kind = |error: &String| error == kind || url == 2 && error == "timeout";
        assert!(!found.is_empty() && found.iter().all(is_kind), "{url} {kind}: {found:?}");
    }
    assert!(errors[&0].is_empty() && errors[&6].is_empty(), "{errors:?}");
    let shown = shown(&lab, &run);
    assert!(figure(&shown, "preemptions").unwrap_err().contains("fell"), "{shown:#}");
    assert!(figure(&shown, "generation_tokens").unwrap() > 0.0, "the other pages are still read");
    let raw: Vec<Sample> = samples(&run).into_iter().filter(|sample| sample.source == "raw").collect();
    assert!(raw.len() >= 4 && raw.iter().all(|sample| sample.name == "my_tokens" && sample.url == Some(6)));
    assert!(!reasons(&shown).contains(&"server_counts"), "pages that never responded count nothing: {shown:#}");
}

/// Like vLLM's, the mock's responses do not report prefix cache hits; its metrics do.
#[test]
fn prefix_hits_are_held_against_what_prompts_share() {
    let lab = Lab::new();
    let server = Mock::start(&["--ttft", "10ms", "--itl", "1ms", "--prefix-cache", "100000", "--no-cached-tokens"]);
    let url = format!("http://127.0.0.1:{}/v1", server.port);
    let text = |telemetry| {
        let default = "warm_cache: { suspect: 2% }";
        plan(&url, telemetry)
            .replace("warm_cache: { suspect: 100%, invalid: 100% }", default)
            .replace("measure: 3s", "measure: 1s")
    };
    lab.write("plan.yaml", &text("{ every: 200ms }"));
    lab.ok(&["run", "plan.yaml"]);
    let clean = shown(&lab, &lab.only_run());
    assert!(
        !reasons(&clean).contains(&"warm_cache") && clean["verdict"]["not_checked"]["warm_cache"].is_null(),
        "{clean:#}"
    );
    let [hits, reusable] = ["prefix_hit_share", "prefix_reusable_share"].map(|name| figure(&clean, name).unwrap());
    assert!(hits > 0.3 && hits < reusable + 0.02, "{hits} were found of {reusable}");
    assert_eq!(reusable, clean["metrics"]["declared_reuse"].as_f64().unwrap());
    // A cache that hits every lookup has seen these prompts before.
    lab.write("plan.yaml", &text("{ every: 200ms, map: { prefix_cache_hits: 'vllm:prefix_cache_queries' } }"));
    lab.ok(&["run", "plan.yaml", "--force"]);
    let warm = shown(&lab, &lab.only_run());
    let reason = warm["verdict"]["reasons"].as_array().unwrap().iter().find(|one| one["name"] == "warm_cache");
    let reason = reason.unwrap_or_else(|| panic!("{:#}", warm["verdict"]));
    assert_eq!(reason["state"], "suspect");
    assert!(
        reason["text"].as_str().unwrap().starts_with("by the server's metrics, 100.0% of prompt tokens"),
        "{reason}"
    );
}

#[test]
fn what_a_server_says_of_itself_speaks_against_a_run() {
    let lab = Lab::new();
    // Eight requests need more than the 64 tokens for which the server has room.
    let flags = ["--ttft", "30ms", "--itl", "2ms", "--slots", "8", "--prefix-cache", "64"];
    let server = Mock::start(&flags);
    // A replica that has other users, preempts requests, is hot, and is restarted at the end.
    let replica = FakePage::of(|nth| {
        let start = 1_764_000_000 + if nth < 8 { 0 } else { 90 };
        format!(
            "vllm:num_requests_running 3\nvllm:num_requests_waiting 1\nvllm:num_preemptions_total {nth}\n\
             process_start_time_seconds {start}\nDCGM_FI_DEV_GPU_UTIL{{gpu=\"0\"}} 95\n\
             DCGM_FI_DEV_CLOCKS_EVENT_REASONS{{gpu=\"0\"}} 32\n"
        )
    });
    let url = format!("http://127.0.0.1:{}/v1", server.port);
    lab.write("plan.yaml", &plan(&url, &format!("{{ prometheus: [on, \"{}\"], every: 250ms }}", replica.url)));
    lab.ok(&["run", "plan.yaml"]);
    let run = lab.only_run();
    let shown = shown(&lab, &run);
    let found = shown["verdict"]["reasons"].as_array().unwrap();
    for (name, told) in [
        ("server_restarted", "that was started 90 s later responded from "),
        ("server_not_idle", "had 3 requests running and 1 waiting at the scrape just before the load"),
        ("server_throttled", "(100.0%) at which they were used: heat, by the driver;"),
        ("server_preempting", "requests were preempted in the window"),
        ("server_kv_full", "the KV cache was at least 99% full for "),
    ] {
        let reason = found.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}: {found:#?}"));
        assert_eq!(reason["state"], "suspect");
        assert!(reason["text"].as_str().unwrap().contains(told), "{reason}");
    }
    let text = lab.ok(&["show", run.json["id"].as_str().unwrap()]).stdout;
    assert!(text.contains("server_throttled (suspect): "), "{text}");
    let table = lab.ok(&["export", "--format", "csv", "--columns", "all"]).stdout;
    assert!(table.contains("server_preempting"), "{table}");
}

#[test]
fn keys_and_headers_go_to_the_endpoint_s_own_server_alone() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--log-text"]);
    let other = FakePage::of(|_| "a 1\n".to_owned());
    let with = format!(
        "{{ prometheus: [on, \"{}\"] }}, headers: {{ X-Tenant: bench }}, api_key: {{ secret: env:KEY }}",
        other.url
    );
    lab.write("plan.yaml", &plan(&server.url(), &with).replace("measure: 3s", "measure: 500ms"));
    let output = lab.command(&["run", "plan.yaml"]).env("KEY", "open-sesame").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let heads = other.heads.lock().unwrap();
    assert!(heads.len() >= 2 && heads.iter().all(|head| !head.contains("tenant") && !head.contains("authorization")));
    let log = std::fs::read_to_string(lab.path().join("server.jsonl")).unwrap();
    let own: Vec<&str> = log.lines().filter(|line| line.contains("\"path\":\"/metrics\"")).collect();
    assert!(!own.is_empty() && own.iter().all(|line| line.contains("x-tenant")), "{own:?}");
    assert!(!std::fs::read_to_string(lab.only_run().dir.join("run.json")).unwrap().contains("sesame"));
}

#[test]
fn what_cannot_be_scraped_is_told_before_anything_runs() {
    let lab = Lab::new();
    for (telemetry, engine, told) in [
        ("localhost:9400", "vllm", "`localhost:9400` is not the address of a metrics page"),
        ("\"http://me:pass@h/metrics\"", "vllm", "the URL contains a password or key"),
        ("on", "openai", "the metrics page of engine `openai` is not known"),
        ("{ every: 5ms }", "vllm", "`every` must be 100ms to 10m, not 5ms"),
        ("{ raw: 'a{b=\"c\"}' }", "vllm", "is not a metric name"),
        ("{ map: { requests_runing: a } }", "vllm", "did you mean `requests_running`?"),
        ("{ map: { requests_running: 'a b' } }", "vllm", "`a b` is not a metric"),
        ("{ prometheus: [on, 5] }", "vllm", "E007"),
        ("5", "vllm", "E007"),
    ] {
        lab.write(
            "plan.yaml",
            &plan("http://127.0.0.1:9/v1", telemetry).replace("engine: vllm", &format!("engine: {engine}")),
        );
        let checked = lab.run(&["check", "plan.yaml"]);
        let said = checked.stdout + &checked.stderr;
        assert_eq!(checked.code, Some(2), "{telemetry}: {said}");
        assert!(said.contains(told), "{telemetry}: {said}");
    }
    lab.write(
        "plan.yaml",
        &plan("http://127.0.0.1:9/v1", "{ prometheus: [on, \"http://gpu:9400/metrics\"], every: 250ms }"),
    );
    let preview = lab.ok(&["preview", "plan.yaml"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = "scrapes one: http://127.0.0.1:9/metrics, http://gpu:9400/metrics every 0.25 s";
    assert!(preview.contains(told), "{preview}");
    let json = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
    assert_eq!(json["scrapes"][0]["pages"].as_array().unwrap().len(), 2);
    lab.follows("preview", &json);
    for telemetry in ["on", "{}", "http://127.0.0.1:9400/metrics", "{ prometheus: on, every: 10s }"] {
        lab.write("plan.yaml", &plan("http://127.0.0.1:9/v1", telemetry));
        lab.ok(&["check", "plan.yaml"]);
    }
}

/// The embedded mock also has a page, at a port that is unknown in advance.
#[test]
fn the_embedded_mock_is_scraped() {
    let lab = Lab::real_time();
    let text =
        plan("URL", "on").replace("engine: vllm, url: URL", "engine: mock").replace("measure: 3s", "measure: 1s");
    lab.write("plan.yaml", &text);
    lab.ok(&["run", "plan.yaml"]);
    let run = lab.only_run();
    assert_eq!(run.json["facts"]["telemetry"]["urls"][0], "embedded mock");
    assert!(figure(&shown(&lab, &run), "generation_tokens").unwrap() > 0.0);
}

/// Tests the system's node exporter together with the server's own page: its figures for this
/// machine match those of the kernel.
#[test]
fn a_node_exporter_tells_of_the_host() {
    let program = "prometheus-node-exporter";
    if !is_there(program) {
        return;
    }
    let mut command = std::process::Command::new(program);
    let exporter =
        Listening::start(command.arg("--web.listen-address=127.0.0.1:0"), "msg=\"Listening on\" address=", ' ');
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let pages = format!("{{ prometheus: [on, 'http://{}/metrics'], every: 200ms }}", exporter.address);
    lab.write("plan.yaml", &plan(&server.url(), &pages).replace("measure: 3s", "measure: 1s"));
    lab.ok(&["run", "plan.yaml"]);
    let run = lab.only_run();
    assert_eq!(run.json["facts"]["telemetry"]["gaps"], 0, "{}", run.json["facts"]["telemetry"]);
    assert_eq!(run.json["facts"]["telemetry"]["exporters"], serde_json::json!(["vLLM", null]));
    let shown = shown(&lab, &run);
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
    let total = total.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0;
    is_near("memory", figure(&shown, "host_memory_total_mean").unwrap(), total, 1e-6);
    let available = figure(&shown, "host_memory_available_mean").unwrap();
    assert!(available > 0.0 && available < total, "{available}");
    // The load itself uses some CPU.
    let used = figure(&shown, "cpu_used_share").unwrap();
    assert!(used > 0.0 && used <= 1.0, "{used}");
}
