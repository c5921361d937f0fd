//! Tests that the probe, `check` and measured requests agree on every address of the API.

use std::time::{Duration, Instant};

use lab::recorder::{Recorded, Recorder, Rules};
use lab::{Ended, Lab};

/// Returns a plan with one short run on an endpoint with these fields. The sweep waits 60 s for the server.
fn plan(endpoint: &str) -> String {
    format!(
        "sweepline: 1\nname: t\n\
         endpoints:\n  e: {{ engine: vllm, retries: {{ runs: 0 }}, {endpoint} }}\n\
         models: {{ m: {{ id: m }} }}\n\
         scenarios: {{ s: {{ base: B1, prompt_tokens: 30, output_tokens: 8 }} }}\n\
         phases: {{ fill: 50ms, stabilize: 50ms, measure: 300ms, drain: 2s }}\n\
         sweeps: {{ a: {{ matrix: {{ batch_size: [1] }} }} }}\n"
    )
}

/// Checks and measures a plan, and asserts that the run has complete requests.
fn measure(lab: &Lab, endpoint: &str) -> Ended {
    lab.write("plan.yaml", &plan(endpoint));
    lab.ok(&["check", "plan.yaml"]);
    let probed = lab.run(&["probe", "plan.yaml"]);
    assert_eq!(probed.code, Some(0), "{}{}", probed.stdout, probed.stderr);
    let ended = lab.run(&["run", "plan.yaml"]);
    let runs = lab.runs();
    assert_eq!(runs.len(), 1, "{}{}", ended.stdout, ended.stderr);
    let run = &runs.values().next().unwrap();
    let outcomes: Vec<String> = run.records.iter().map(|record| format!("{:?}", record.row.outcome)).collect();
    assert!(outcomes.iter().any(|outcome| outcome == "Ok"), "{outcomes:?}");
    ended
}

/// Returns the request lines of calls of the API, and those of other pages.
fn calls(server: &Recorder) -> (Vec<String>, Vec<String>) {
    server.lines().into_iter().partition(|line| line.contains("models") || line.contains("completions"))
}

#[test]
fn every_call_of_the_api_has_the_base_path_and_the_query() {
    for (base, end, query) in [
        ("/v1", "", ""),
        ("/v1", "/", ""),
        ("", "", ""),
        ("/base/v1", "", "?deployment=blue"),
        ("/base/v1", "/", "?deployment=blue"),
        ("/openai/deployments/gpt", "", "?api-version=2024-10-21"),
    ] {
        let (lab, server) = (Lab::real_time(), Recorder::start(Rules::at(base)));
        let url = format!("http://127.0.0.1:{}{base}{end}{query}", server.port());
        measure(
            &lab,
            &format!("url: '{url}', telemetry: {{ prometheus: ['on'] }}, ready: {{ path: '/health?full=1' }}"),
        );
        let expected = [format!("GET {base}/models{query}"), format!("POST {base}/chat/completions{query}")];
        let (calls, pages) = calls(&server);
        assert_eq!(calls, expected, "{url}");
        let root = base.strip_suffix("/v1").unwrap_or(base);
        assert!(pages.contains(&format!("GET {root}/metrics")), "{url}: {pages:?}");
        assert!(pages.contains(&"GET /health?full=1".to_owned()), "{url}: {pages:?}");
    }
}

/// Returns the lines of a measured request with its number and length replaced.
fn shape(request: &Recorded) -> String {
    let field = |line: &str| match line.split_once(": ") {
        Some((name @ ("x-request-id" | "content-length"), _)) => format!("{name}: …"),
        _ => line.to_owned(),
    };
    request.head.lines().map(field).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_measured_request_is_byte_for_byte_what_the_plan_means() {
    let (lab, server) = (Lab::real_time(), Recorder::start(Rules::at("/base/v1")));
    let port = server.port();
    measure(&lab, &format!("url: 'http://127.0.0.1:{port}/base/v1?deployment=blue'"));
    let log = server.log();
    let measured = log.iter().find(|request| request.is_measured()).unwrap();
    let expected = format!(
        "POST /base/v1/chat/completions?deployment=blue HTTP/1.1\n\
         host: 127.0.0.1:{port}\n\
         content-type: application/json\n\
         accept: text/event-stream\n\
         user-agent: sweepline/{}\n\
         x-request-id: …\n\
         content-length: …",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(shape(measured), expected);
}

#[test]
fn a_missing_v1_ends_the_sweep_at_once_with_the_address_that_was_meant() {
    for (base, models, written, meant) in [
        ("/v1", 200, "", "/v1"),
        ("/v1", 403, "", "/v1"),
        ("/base/v1", 200, "/base?a=b", "/base/v1?a=b"),
        ("/x", 200, "/x/v1", "/x"),
    ] {
        let (lab, server) = (Lab::real_time(), Recorder::start(Rules { models, ..Rules::at(base) }));
        let root = format!("http://127.0.0.1:{}", server.port());
        lab.write("plan.yaml", &plan(&format!("url: '{root}{written}'")));
        let begin = Instant::now();
        for command in ["run", "probe"] {
            let ended = lab.run(&[command, "plan.yaml"]);
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert_eq!(ended.code, Some(2), "{command}: {said}");
            assert!(said.contains(&format!("did you mean {root}{meant}?")), "{command}: {said}");
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    }
}

#[test]
fn a_new_plan_keeps_the_query_of_the_address() {
    let (lab, server) = (Lab::real_time(), Recorder::start(Rules::at("/openai/deployments/gpt")));
    let base = format!("http://127.0.0.1:{}/openai/deployments/gpt", server.port());
    for call in ["", "/chat/completions"] {
        let ended = lab.ok(&["new", "--url", &format!("{base}{call}?api-version=2024-10-21")]);
        assert!(ended.stdout.contains(&format!("{base}?api-version=2024-10-21")), "{}", ended.stdout);
        let refused = lab.run(&["new", "--url", &format!("{base}{call}?api_key=0123456789abcdef")]);
        assert!(
            refused.code == Some(2) && refused.stderr.contains("which would end up in the plan"),
            "{}",
            refused.stderr
        );
    }
    let list = "GET /openai/deployments/gpt/models?api-version=2024-10-21".to_owned();
    assert!(server.lines().contains(&list), "{:?}", server.lines());
}

#[test]
fn a_redirect_is_quoted_with_its_target_and_not_followed() {
    for status in [301, 302, 307, 308] {
        let target = Recorder::start(Rules::default());
        let to = format!("http://127.0.0.1:{}/v1", target.port());
        let redirect = Some((status, format!("{to}/chat/completions")));
        let (lab, server) = (Lab::real_time(), Recorder::start(Rules { redirect, ..Rules::default() }));
        lab.write("plan.yaml", &plan(&format!("url: 'http://127.0.0.1:{}/v1'", server.port())));
        for command in ["run", "probe"] {
            let ended = lab.run(&[command, "plan.yaml"]);
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert_eq!(ended.code, Some(2), "{command}: {said}");
            assert!(said.contains(&format!("redirects to {to}/chat/completions (HTTP {status})")), "{command}: {said}");
            assert!(said.contains(&format!("write `url: {to}` on the endpoint")), "{command}: {said}");
        }
        assert!(target.log().is_empty(), "{:?}", target.lines());
    }
}

#[test]
fn the_row_of_a_redirected_request_names_the_target() {
    let redirect = Some((307, "https://elsewhere.example/v1/chat/completions".to_owned()));
    let rules = Rules { redirect, redirects_streams: true, ..Rules::default() };
    let (lab, server) = (Lab::real_time(), Recorder::start(rules));
    lab.write("plan.yaml", &plan(&format!("url: 'http://127.0.0.1:{}/v1'", server.port())));
    lab.run(&["run", "plan.yaml"]);
    let run = lab.only_run();
    let row = &run.records[0].row;
    assert_eq!(row.http_status, Some(307));
    let error = row.error.as_deref().unwrap();
    assert!(error.starts_with("redirects to https://elsewhere.example/v1/chat/completions"), "{error}");
}

#[test]
fn a_server_that_refuses_its_list_of_models_is_measured() {
    for status in [401, 403, 404] {
        let rules = Rules { models: status, ..Rules::default() };
        let (lab, server) = (Lab::real_time(), Recorder::start(rules));
        let ended = measure(&lab, &format!("url: 'http://127.0.0.1:{}/v1'", server.port()));
        let probe = server.log().into_iter().find(|request| request.line().starts_with("POST")).unwrap();
        let note = format!("refuses to list its models (HTTP {status}), but generates");
        assert_eq!(ended.stderr.contains(&note), status != 404, "{}", ended.stderr);
        assert_eq!(probe.body.contains(r#""max_tokens":4"#), status == 404, "{}", probe.body);
    }
}
