//! `sweepline new`: a first plan for a newcomer.

use super::lab::{Lab, Server};

/// A plan with windows that a test can wait for.
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

#[timed_test]
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

#[timed_test]
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

#[timed_test]
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
    let closed = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let url = format!("http://{closed}/v1");
    let silent = lab.run(&["new", "--url", &url]);
    assert_eq!((silent.code, silent.stdout.as_str()), (Some(2), ""));
    assert!(
        silent.stderr.contains("does not answer") && silent.stderr.contains("give --model ID"),
        "{}",
        silent.stderr
    );
    let named = lab.ok(&["new", "--url", &url, "--model", "m"]);
    assert!(named.stderr.starts_with("warning: ") && named.stdout.contains("id: m"), "{named:?}");
    lab.write("plan.yaml", &named.stdout);
    lab.ok(&["check", "plan.yaml"]);
}

#[timed_test]
fn flags_say_more_than_the_server() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--model", "m"]);
    let flags = ["--engine", "vllm", "--api", "completions", "--qps", "0.5,2", "--name", "my first"];
    let plan = lab.ok(&[&["new", "--url", &server.url()], &flags[..]].concat()).stdout;
    for words in ["name: \"my first\"", "engine: vllm   # as --engine said", "api: completions", "qps: [0.5, 2]"] {
        assert!(plan.contains(words), "{words}: {plan}");
    }
    lab.write("plan.yaml", &plan);
    lab.ok(&["check", "plan.yaml"]);
    for (flags, words) in [
        (&["--qps", "0"][..], "`qps`"),
        (&["--batch-size", "0"], "`batch_size`"),
        (&["--url", "not a url", "--model", "m"], "not a URL"),
        (&["--qps", "fast"], "--qps"),
        (&["--engine", "vllm"], "--url"),
    ] {
        let ended = lab.run(&[&["new"], flags].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{flags:?}");
        assert!(ended.stderr.contains(words), "{flags:?}: {}", ended.stderr);
    }
}

#[timed_test]
fn a_key_is_named_and_never_written() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--model", "m", "--api-key-env", "HOME"]);
    let url = server.url();
    let refused = lab.run(&["new", "--url", &url]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("refuses the API key"), "{}", refused.stderr);
    let plan = lab.ok(&["new", "--url", &url, "--api-key-env", "HOME"]).stdout;
    assert!(plan.contains("api_key: { secret: env:HOME }") && plan.contains("id: m"), "{plan}");
    let home = std::env::var("HOME").unwrap();
    assert!(home.len() < 2 || !plan.contains(&format!("secret: {home}")));
    for typed in ["sk-0123456789abcdef", "hf_0123456789abcdef", "my key", "1abc"] {
        let ended = lab.run(&["new", "--url", &url, "--api-key-env", typed]);
        assert_eq!(ended.code, Some(2), "{typed}");
        assert!(ended.stderr.contains("never the key itself") && !ended.stderr.contains(typed), "{}", ended.stderr);
    }
    let ended = lab.run(&["new", "--url", "http://me:pass1234@h/v1", "--model", "m"]);
    assert!(ended.code == Some(2) && !ended.stderr.contains("pass1234"), "{}", ended.stderr);
}
