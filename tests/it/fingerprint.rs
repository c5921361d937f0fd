//! Tests a server's information about itself: it is read by the probe, recorded with runs, shown and
//! exported, and none of its content can do harm.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use lab::mock::Mock;
use lab::{Ended, Lab};

/// The response for a page.
enum Page {
    Says(Vec<u8>),
    /// The request is accepted, but never gets a response.
    Silent,
}

/// A server in front of a mock that serves some pages itself; stopped on drop.
struct Pages {
    port: u16,
    over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Pages {
    fn before(behind: u16, pages: Vec<(&'static str, Page)>) -> Pages {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (over, pages) = (Arc::new(AtomicBool::new(false)), Arc::new(pages));
        let end = Arc::clone(&over);
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                let pages = Arc::clone(&pages);
                std::thread::spawn(move || serve(stream, behind, &pages));
            }
        });
        Pages { port, over, accepting: Some(accepting) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)), Duration::from_secs(1));
        if let Some(accepting) = self.accepting.take().filter(|_| !std::thread::panicking()) {
            accepting.join().unwrap();
        }
    }
}

/// Serves one of its own pages; forwards a connection that starts with another request to the mock.
fn serve(mut stream: TcpStream, behind: u16, pages: &[(&str, Page)]) {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut begin = Vec::new();
    let mut buffer = [0; 8192];
    while !begin.windows(2).any(|two| two == b"\r\n") {
        match stream.read(&mut buffer) {
            Ok(read) if read > 0 => begin.extend_from_slice(&buffer[..read]),
            _ => return,
        }
    }
    let line = String::from_utf8_lossy(&begin).lines().next().unwrap_or_default().to_owned();
    let path = line.split(' ').nth(1).unwrap_or_default();
    if let Some((_, page)) = pages.iter().find(|(own, _)| *own == path && line.starts_with("GET")) {
        match page {
            // The client may have closed the connection.
            Page::Says(bytes) => drop(stream.write_all(bytes)),
            Page::Silent => drop(stream.read(&mut buffer)),
        }
        return;
    }
    let mut mock = TcpStream::connect((Ipv4Addr::LOCALHOST, behind)).unwrap();
    mock.write_all(&begin).unwrap();
    let (mut from, mut to) = (mock.try_clone().unwrap(), stream.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
    let _ = std::io::copy(&mut stream, &mut mock);
    let _ = mock.shutdown(Shutdown::Both);
}

/// Returns a 200 response with this body.
fn says(body: &[u8]) -> Page {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    Page::Says([head.as_bytes(), body].concat())
}

fn page(body: &Value) -> Page {
    says(body.to_string().as_bytes())
}

/// Returns a lab with a short run on the endpoint `a`, with this engine.
fn lab(port: u16, endpoint: &str) -> Lab {
    let lab = Lab::new();
    lab.write(
        "plan.yaml",
        &format!(
            "sweepline: 1\nname: fingerprint\n\
             endpoints: {{ a: {{ url: 'http://127.0.0.1:{port}/v1', {endpoint} }} }}\n\
             models: {{ m: {{ id: tiny }} }}\n\
             scenarios: {{ short: {{ base: B1, output_tokens: 4 }} }}\n\
             phases: {{ fill: 0s, stabilize: 0s, measure: 50ms, drain: 5s }}\n\
             sweeps: {{ s: {{ matrix: {{ endpoint: a, scenario: short, batch_size: 1 }} }} }}\n"
        ),
    );
    lab
}

/// Returns the output of `probe` for the endpoint.
fn probed(lab: &Lab) -> Value {
    let json = lab.ok(&["probe", "plan.yaml", "--format", "json"]).json();
    lab.follows("probe", &json);
    json["endpoints"][0].clone()
}

#[track_caller]
fn measured(ended: &Ended) {
    assert!(matches!(ended.code, Some(0 | 3)), "{:?} {}{}", ended.code, ended.stdout, ended.stderr);
}

#[test]
fn a_vllm_is_recorded_shown_and_exported() {
    let mock = Mock::start(&["--ttft", "1ms"]);
    let list = json!({ "object": "list", "data": [
        { "id": "tiny", "owned_by": "vllm", "root": "/models/tiny-fp8", "max_model_len": 8192 },
        { "id": "lora", "owned_by": "vllm", "root": "/models/lora", "parent": "tiny" },
    ] });
    let pages = vec![("/v1/models", page(&list)), ("/version", page(&json!({ "version": "0.11.0+cu128" })))];
    let server = Pages::before(mock.port, pages);
    let lab = lab(server.port, "engine: vllm");
    let fingerprint =
        json!({ "engine": "vllm", "version": "0.11.0+cu128", "model": "/models/tiny-fp8", "context_length": 8192 });
    assert_eq!(probed(&lab)["fingerprint"], fingerprint);
    assert_eq!(probed(&lab)["hint"], Value::Null);
    let text = lab.ok(&["probe", "plan.yaml"]).stdout;
    let words = "is vllm 0.11.0+cu128, model /models/tiny-fp8, context of 8192 tokens";
    assert!(text.contains(words), "{text}");

    measured(&lab.run(&["run", "plan.yaml"]));
    let run = lab.only_run();
    assert_eq!(run.json["environment"]["fingerprint"], fingerprint);
    let id = run.dir.file_name().unwrap().to_str().unwrap().to_owned();
    let show = lab.run(&["show", &id]).stdout;
    assert!(show.contains("server: vllm 0.11.0+cu128, model /models/tiny-fp8, context of 8192 tokens"), "{show}");
    let export = lab.run(&["export", "plan.yaml", "--format", "json"]).json();
    let of = |name: &str| export[0][name].clone();
    assert_eq!(of("server_engine"), "vllm");
    assert_eq!(of("server_version"), "0.11.0+cu128");
    assert_eq!(of("served_model"), "/models/tiny-fp8");
    assert_eq!(of("context_length"), 8192);
    let why = lab.ok(&["why", &id[..8], "--format", "json"]).json();
    lab.follows("why", &why);
    assert_eq!(why["server"], fingerprint);
}

#[test]
fn an_undeclared_engine_is_told_and_changes_nothing_that_is_sent() {
    let mock = Mock::start(&["--ttft", "1ms"]);
    let of_sglang = json!({ "data": [{ "id": "tiny", "owned_by": "sglang", "root": "tiny", "max_model_len": 4096 }] });
    let info = json!({
        "version": "0.5.5", "model_path": "/models/tiny", "tp_size": 2, "attention_backend": "fa3", "admin_api_key": "sk-never-shown-0123",
    });
    let sglang = Pages::before(
        mock.port,
        vec![
            ("/v1/models", page(&of_sglang)),
            ("/get_server_info", page(&info)),
            ("/version", page(&json!({ "version": "9" }))),
        ],
    );
    let lab_of_sglang = lab(sglang.port, "engine: openai");
    let said = probed(&lab_of_sglang);
    assert_eq!(said["hint"], "this looks like SGLang (its models are owned by sglang); write `engine: sglang`");
    assert_eq!(said["fingerprint"]["version"], "0.5.5");
    assert_eq!(said["fingerprint"]["model"], "/models/tiny");
    assert_eq!(said["fingerprint"]["flags"], json!({ "attention_backend": "fa3", "tp_size": "2" }));
    measured(&lab_of_sglang.run(&["run", "plan.yaml"]));
    let run = lab_of_sglang.only_run();
    assert_eq!(run.json["spec"]["endpoint"]["engine"], "openai");
    let sent = mock.log_of_runs(1);
    assert!(sent.iter().all(|line| !line["request"].as_str().unwrap_or_default().contains("ignore_eos")));
    assert!(!run.json.to_string().contains("never-shown"));

    let props = json!({
        "build_info": "b6123-4a5b6c7", "model_path": "tiny.gguf", "total_slots": 4, "default_generation_settings": { "n_ctx": 2048 },
    });
    let llama = Pages::before(
        mock.port,
        vec![("/v1/models", page(&json!({ "data": [] }))), ("/props", page(&props)), ("/version", says(b"no"))],
    );
    let said = probed(&lab(llama.port, "engine: openai"));
    assert_eq!(said["hint"], "this looks like llama.cpp (it responds at /props); write `engine: llamacpp`");
    let fingerprint = &said["fingerprint"];
    assert_eq!(fingerprint["context_length"], 2048);
    assert_eq!((&fingerprint["version"], &fingerprint["model"]), (&json!("b6123-4a5b6c7"), &json!("tiny.gguf")));
}

#[test]
fn an_engine_that_is_not_the_declared_one_is_told_and_its_version_contradicts_nothing() {
    let mock = Mock::start(&["--ttft", "1ms"]);
    let lab = lab(mock.port, "engine: vllm, server: { version: 0.33.0 }");
    assert_eq!(
        probed(&lab)["hint"],
        "this looks like sweepline's mock (its models are owned by sweepline), but the plan sets `engine: vllm`"
    );
    measured(&lab.run(&["run", "plan.yaml"]));
}

#[test]
fn a_server_without_version_is_measured_and_never_asked_for_one_alone() {
    let mock = Mock::start(&["--ttft", "1ms"]);
    let gone = || Page::Says(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec());
    let server = Pages::before(mock.port, vec![("/version", gone())]);
    let lab = lab(server.port, "engine: mock, server: { version: 0.11.0 }");
    measured(&lab.run(&["run", "plan.yaml"]));
    assert_eq!(lab.only_run().json["environment"]["fingerprint"], json!({ "engine": "mock" }));
    let asked = mock.log_now().len();
    let again = lab.run(&["run", "plan.yaml"]);
    assert!(again.stderr.contains("no request was sent"), "{}", again.stderr);
    assert_eq!(mock.log_now().len(), asked);
}

#[test]
fn hostile_pages_are_as_good_as_none() {
    let key = "sk-0123456789abcdef";
    let mock = Mock::start(&["--ttft", "1ms"]);
    let huge = [&br#"{"version":""#[..], &vec![b'1'; 10 << 20], &br#""}"#[..]].concat();
    let html = b"<html><head><title>0.11.0</title></head></html>";
    let endless = Page::Says([&b"HTTP/1.1 200 OK\r\n\r\n{\"version\":\""[..], &vec![b'1'; 10 << 20]].concat());
    let sentence = json!({ "version": "0.11.0 \u{1b}[2J of today" });
    let nested = json!({ "version": { "of": "0.11.0" } });
    let broken = Page::Says(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"version\":\"0.1".to_vec());
    let mut pages = vec![says(&huge), says(html), endless, page(&sentence), page(&nested), broken];
    if lab::is_whole() {
        // Each of its pages is waited for two seconds.
        pages.push(Page::Silent);
    }
    for hostile in pages {
        let server = Pages::before(mock.port, vec![("/version", hostile)]);
        let lab = lab(server.port, "engine: mock, api_key: { secret: env:KEY }");
        let run = |args: &[&str]| Ended::from(lab.command(args).env("KEY", key).output().unwrap());
        let probe = run(&["probe", "plan.yaml"]);
        assert_eq!(probe.code, Some(0), "{}{}", probe.stdout, probe.stderr);
        assert!(probe.stdout.contains("ready; ") && probe.stdout.contains("is mock;"), "{}", probe.stdout);
        measured(&run(&["run", "plan.yaml"]));
    }
    // A server that repeats the key and sends terminal control sequences.
    let version = format!("0.11.0-{key}\u{1b}[31m\u{202e}");
    let server = Pages::before(mock.port, vec![("/version", page(&json!({ "version": version })))]);
    let lab = lab(server.port, "engine: mock, api_key: { secret: env:KEY }");
    let run = |args: &[&str]| Ended::from(lab.command(args).env("KEY", key).output().unwrap());
    let probe = run(&["probe", "plan.yaml"]);
    assert!(probe.stdout.contains("is mock 0.11.0-[secret][31m; lists"), "{:?}", probe.stdout);
    measured(&run(&["run", "plan.yaml"]));
    let recorded = lab.only_run().json["environment"]["fingerprint"]["version"].clone();
    assert_eq!(recorded, "0.11.0-[secret][31m");
}

#[test]
fn gpus_of_this_machine_are_recorded_as_its_own() {
    use std::os::unix::fs::PermissionsExt;
    let mock = Mock::start(&["--ttft", "1ms"]);
    for (script, gpus, driver) in [
        (
            "echo 'NVIDIA H100 80GB HBM3, 550.54.15, 81559 MiB'",
            json!("NVIDIA H100 80GB HBM3, 81559 MiB"),
            json!("550.54.15"),
        ),
        ("echo 'NVIDIA-SMI has failed'; exit 9", Value::Null, Value::Null),
        ("exec sleep 600", Value::Null, Value::Null),
    ] {
        // It is waited for two seconds.
        if script.contains("sleep") && !lab::is_whole() {
            continue;
        }
        let lab = lab(mock.port, "engine: mock");
        let tool = lab.write("bin/nvidia-smi", &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", lab.path().join("bin").display(), lab::path_with_program().display());
        let run = |args: &[&str]| Ended::from(lab.command(args).env("PATH", &path).output().unwrap());
        measured(&run(&["run", "plan.yaml"]));
        let row = run(&["export", "plan.yaml", "--format", "json"]).json()[0].clone();
        assert_eq!((&row["client_gpus"], &row["client_gpu_driver"]), (&gpus, &driver), "{script}");
    }
}
