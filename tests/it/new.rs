//! Tests `sweepline new`, which writes a first plan for new users.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use lab::{Lab, Server};

/// Returns a plan with windows short enough for a test.
fn shortened(plan: &str) -> String {
    let mut short = plan.to_owned();
    for (long, brief) in [
        ("fill: 30s", "fill: 20ms"),
        ("stabilize: 60s", "stabilize: 20ms"),
        ("measure: 120s", "measure: 300ms"),
        ("measure: 3s", "measure: 300ms"),
    ] {
        short = short.replace(long, brief);
    }
    short
}

#[test]
fn a_first_plan_runs_as_it_is() {
    let lab = Lab::new();
    let plan = lab.ok(&["new", "--batch-size", "1,2"]).stdout;
    insta::assert_snapshot!("new", plan);
    assert!(plan.contains("batch_size: [1, 2]") && !plan.contains("TODO"));
    lab.write("plan.yaml", &shortened(&plan));
    lab.ok(&["check", "plan.yaml"]);
    let ended = lab.run(&["run", "plan.yaml"]);
    assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(lab.runs().len(), 2);
}

#[test]
fn a_server_says_what_it_is() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--model", "tiny-7b"]);
    let ended = lab.ok(&["new", "--url", &server.url(), "-o", "plan.yaml", "--batch-size", "2"]);
    assert!(ended.stdout.is_empty() && ended.stderr.contains("wrote plan.yaml"), "{ended:?}");
    let plan = std::fs::read_to_string(lab.path().join("plan.yaml")).unwrap();
    for words in
        ["id: tiny-7b", "engine: mock   # its models are owned by sweepline", &server.url(), "server: { version: "]
    {
        assert!(plan.contains(words), "{words}: {plan}");
    }
    lab.write("plan.yaml", &shortened(&plan));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
    assert!(lab.only_run().records.iter().any(|record| record.row.outcome.is_ok()));
}

#[test]
fn servers_with_many_models_or_none_need_a_name() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--model", "one", "--model", "two"]);
    let several = lab.run(&["new", "--url", &server.url()]);
    assert_eq!((several.code, several.stdout.as_str()), (Some(2), ""));
    assert!(several.stderr.contains("several models; choose one with --model ID: one, two"), "{}", several.stderr);
    let chosen = lab.ok(&["new", "--url", &server.url(), "--model", "two"]);
    assert!(chosen.stdout.contains("id: two") && chosen.stderr.is_empty(), "{chosen:?}");
    let other = lab.ok(&["new", "--url", &server.url(), "--model", "three"]);
    assert!(other.stderr.contains("does not list `three`; it lists one, two"), "{}", other.stderr);
    // Nothing listens on this port.
    let closed = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let url = format!("http://{closed}/v1");
    let silent = lab.run(&["new", "--url", &url]);
    assert_eq!((silent.code, silent.stdout.as_str()), (Some(2), ""));
    assert!(
        silent.stderr.contains("does not respond") && silent.stderr.contains("use --model ID"),
        "{}",
        silent.stderr
    );
    let named = lab.ok(&["new", "--url", &url, "--model", "m"]);
    assert!(named.stderr.starts_with("warning: ") && named.stdout.contains("id: m"), "{named:?}");
    lab.write("plan.yaml", &named.stdout);
    lab.ok(&["check", "plan.yaml"]);
}

#[test]
fn flags_say_more_than_the_server() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--model", "m"]);
    let flags = ["--engine", "vllm", "--api", "completions", "--qps", "0.5,2", "--name", "my first"];
    let plan = lab.ok(&[&["new", "--url", &server.url()], &flags[..]].concat()).stdout;
    for words in ["name: \"my first\"", "engine: vllm   # set by --engine", "api: completions", "qps: [0.5, 2]"] {
        assert!(plan.contains(words), "{words}: {plan}");
    }
    lab.write("plan.yaml", &plan);
    lab.ok(&["check", "plan.yaml"]);
    for (flags, words) in [
        (&["--qps", "0"][..], "`qps`"),
        (&["--batch-size", "0"], "`batch_size`"),
        (&["--url", "not a url", "--model", "m"], "--url is not the URL of a server"),
        (&["--qps", "fast"], "--qps"),
        (&["--engine", "vllm"], "--url"),
    ] {
        let ended = lab.run(&[&["new"], flags].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{flags:?}");
        assert!(ended.stderr.contains(words), "{flags:?}: {}", ended.stderr);
    }
}

#[test]
fn a_key_is_named_and_never_written() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--model", "m", "--api-key-env", "HOME"]);
    let url = server.url();
    let refused = lab.run(&["new", "--url", &url]);
    assert_eq!(refused.code, Some(2));
    let words = "requires an API key, or rejects the given one (HTTP 401); pass --api-key-env NAME";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
    let unset = lab.run(&["new", "--url", &url, "--api-key-env", "SWEEPLINE_NO_SUCH_KEY"]);
    assert!(unset.stderr.contains("the variable SWEEPLINE_NO_SUCH_KEY is not set"), "{}", unset.stderr);
    let plan = lab.ok(&["new", "--url", &url, "--api-key-env", "HOME"]).stdout;
    assert!(plan.contains("api_key: { secret: env:HOME }") && plan.contains("id: m"), "{plan}");
    let home = std::env::var("HOME").unwrap();
    assert!(home.len() < 2 || !plan.contains(&format!("secret: {home}")));
    for typed in ["sk-0123456789abcdef", "hf_0123456789abcdef", "my key", "1abc"] {
        let ended = lab.run(&["new", "--url", &url, "--api-key-env", typed]);
        assert_eq!(ended.code, Some(2), "{typed}");
        assert!(ended.stderr.contains("not the key itself") && !ended.stderr.contains(typed), "{}", ended.stderr);
    }
    let ended = lab.run(&["new", "--url", "http://me:pass1234@h/v1", "--model", "m"]);
    assert!(ended.code == Some(2) && !ended.stderr.contains("pass1234"), "{}", ended.stderr);
}

/// Starts a server that responds to every GET according to its path, with a status and a body, or with
/// 404. It runs as long as the tests.
fn pages(pages: &'static [(&'static str, u16, &'static str)]) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let (status, body) = pages
                .iter()
                .find(|(known, ..)| *known == path)
                .map_or((404, "{}"), |(_, status, body)| (*status, *body));
            let answer = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn a_host_and_port_is_enough() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--model", "m"]);
    let url = server.url();
    let bare = url.strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap();
    for typed in [bare, &format!("http://{bare}"), &format!("{url}/chat/completions")] {
        let ended = lab.ok(&["new", "--url", typed]);
        assert!(ended.stdout.contains(&format!("url: {url}\n")), "{typed}: {}", ended.stdout);
        assert_eq!(ended.stderr, format!("--url {typed}: using {url}\n"));
    }
    // An API at another path, with or without /v1 after it.
    let address = pages(&[("/models", 200, r#"{"data": [{"id": "m"}]}"#)]);
    let ended = lab.ok(&["new", "--url", &address]);
    assert!(ended.stdout.contains(&format!("url: http://{address}\n")), "{}", ended.stdout);
    let address = pages(&[("/proxy/v1/models", 200, r#"{"data": [{"id": "m"}]}"#)]);
    let ended = lab.ok(&["new", "--url", &format!("http://{address}/proxy")]);
    assert!(ended.stdout.contains(&format!("url: http://{address}/proxy/v1\n")), "{}", ended.stdout);
    let ended = lab.run(&["new", "--url", &format!("me:pass1234@{address}")]);
    assert!(
        ended.code == Some(2) && ended.stderr.contains("--api-key-env") && !ended.stderr.contains("pass1234"),
        "{ended:?}"
    );
}

#[test]
fn a_server_that_lists_no_model_is_told_with_the_remedy() {
    let lab = Lab::new();
    let starting = pages(&[("/v1/models", 503, "{}")]);
    let empty = pages(&[("/v1/models", 200, r#"{"data": []}"#)]);
    let elsewhere = pages(&[]);
    let page = pages(&[("/v1/models", 200, "<html></html>")]);
    for (address, words) in [
        (
            &starting,
            "/v1/models returned HTTP 503: the server is starting, loading its model or overloaded; retry once the \
             server lists a model",
        ),
        (
            &empty,
            "the server lists no model: it has not loaded one yet, or serves none; retry once the server lists a \
             model, or name one with --model ID",
        ),
        (&elsewhere, "no list of models at http://"),
        (&page, "does not return a list of models: check that --url is the address of an OpenAI-compatible API"),
    ] {
        let ended = lab.run(&["new", "--url", &format!("http://{address}/v1")]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
        let named = lab.ok(&["new", "--url", &format!("http://{address}/v1"), "--model", "m"]);
        assert!(named.stdout.contains("id: m"), "{}", named.stdout);
        assert!(named.stderr.starts_with("warning: "), "{}", named.stderr);
    }
    for typed in ["", "ftp://host"] {
        let ended = lab.run(&["new", "--url", typed]);
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains("--url is not the URL of a server: "), "{}", ended.stderr);
        assert!(ended.stderr.contains("write http://HOST:PORT"), "{}", ended.stderr);
    }
}

#[test]
fn both_loads_are_a_sweep_each() {
    let lab = Lab::new();
    let plan = lab.ok(&["new", "--batch-size", "1,2", "--qps", "0.5"]).stdout;
    assert!(plan.starts_with("# yaml-language-server: $schema=plan.schema.json\n"), "{plan}");
    lab.write("plan.yaml", &plan);
    lab.ok(&["check", "plan.yaml"]);
    let runs = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json()["runs"].as_array().unwrap().clone();
    let mut loads: Vec<String> = runs
        .iter()
        .map(|run| format!("{} {} {}", run["sweep"], run["cell"]["batch_size"], run["cell"]["qps"]))
        .collect();
    loads.sort();
    assert_eq!(loads, ["\"batches\" 1 null", "\"batches\" 2 null", "\"rates\" null 0.5"]);
}
