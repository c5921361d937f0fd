//! Tests headers in a plan: each is sent where the plan specifies, and secret headers are sent only
//! to the server.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use lab::mock::Mock;
use lab::sweeps::honest;
use lab::{Ended, Lab};

/// The text that every secret contains.
const TRACE: &[u8] = b"sekrit";
const CANARY: &str = "sekrit5b8e02d7f1";

const PLAN: &str = "\
sweepline: 1
name: headers
models: { m: { id: tiny } }
endpoints:
  e:
    url: URL
    engine: mock
    headers: { X-Tenant: bench, X-Gateway-Key: { secret: env:GATEWAY_KEY } }
scenarios:
  plain: { prompt_tokens: 16, output_tokens: 3 }
  priority: { prompt_tokens: 16, output_tokens: 3, headers: { X-Priority: high, x-tenant: urgent } }
  keyed: { base: priority, headers: { X-Session: { secret: 'file:keys/session' } } }
  both: { mix: [{ scenario: plain, share: 1 }, { scenario: priority, share: 1 }] }
phases: { fill: 0s, stabilize: 0s, measure: { for: 100ms, min_requests: 6, at_most: 60s }, drain: 20s }
sweeps: { s: { matrix: { scenario: [priority, plain, keyed, both], batch_size: 2 } } }
";

fn with_key(lab: &Lab, args: &[&str]) -> Ended {
    lab.command(args).env("GATEWAY_KEY", CANARY).output().unwrap().into()
}

/// Returns the headers of each run's requests, by scenario, and the headers of all earlier
/// requests.
fn met(lab: &Lab, mock: &Mock) -> (BTreeMap<String, BTreeSet<String>>, Vec<Value>) {
    let name = |json: &Value| json["spec"]["labels"]["scenario"].as_str().unwrap().to_owned();
    let names: BTreeMap<String, String> = lab.runs().into_iter().map(|(id, run)| (id, name(&run.json))).collect();
    let (mut met, mut asked) = (BTreeMap::<String, BTreeSet<String>>::new(), Vec::new());
    for line in mock.log_now() {
        let id = line["request_id"].as_str().unwrap_or_default();
        match names.iter().find(|(run, _)| id.starts_with(run.as_str())) {
            Some((_, name)) => drop(met.entry(name.clone()).or_default().insert(line["headers"].to_string())),
            None => asked.push(line["headers"].clone()),
        }
    }
    (met, asked)
}

#[test]
fn each_arrives_as_it_is_said() {
    let lab = Lab::new();
    let mut mock = Mock::start(&["--ttft", "5ms"]);
    let plan = PLAN.replace("URL", &format!("http://127.0.0.1:{}/v1", mock.port));
    lab.write("plan.yaml", &plan);
    lab.write("keys/session", "Token sekrit-of-a-file\nnot this\n");
    assert_eq!(with_key(&lab, &["check", "plan.yaml"]).stdout.lines().next(), Some("plan.yaml: ok"));
    let ended = with_key(&lab, &["run", "plan.yaml", "-v"]);
    honest(&ended);
    let (met, asked) = {
        mock.terminate();
        met(&lab, &mock)
    };
    let gateway = json!({ "x-gateway-key": CANARY, "x-tenant": "bench" });
    let urgent = json!({ "x-gateway-key": CANARY, "x-priority": "high", "x-tenant": "urgent" });
    let keyed = json!({
        "x-gateway-key": CANARY, "x-priority": "high", "x-session": "Token sekrit-of-a-file", "x-tenant": "urgent"
    });
    let texts = |values: &[&Value]| -> BTreeSet<String> { values.iter().map(|value| value.to_string()).collect() };
    let sorted = |met: &BTreeSet<String>| -> BTreeSet<String> {
        met.iter().map(|text| serde_json::from_str::<Value>(text).unwrap().to_string()).collect()
    };
    assert_eq!(sorted(&met["plain"]), texts(&[&gateway]));
    assert_eq!(sorted(&met["priority"]), texts(&[&urgent]));
    assert_eq!(sorted(&met["keyed"]), texts(&[&keyed]));
    assert_eq!(sorted(&met["both"]), texts(&[&gateway, &urgent]), "each class has its own");
    assert!(!asked.is_empty(), "there are requests before the runs");
    assert!(
        asked.iter().all(|headers| *headers == gateway),
        "a scenario's headers apply only to its own requests: {asked:?}"
    );
    // No stored text or output contains a secret.
    let mut said = format!("{}{}", ended.stdout, ended.stderr);
    for args in [&["probe", "plan.yaml"][..], &["why", "--plan", "plan.yaml"], &["freeze", "plan.yaml"]] {
        let mut args = args.to_vec();
        let id = lab.runs().into_keys().next().unwrap();
        if args[0] == "why" {
            args.push(&id);
        }
        let ended = with_key(&lab, &args);
        said += &format!("{}{}", ended.stdout, ended.stderr);
    }
    assert!(said.contains("headers.x-gateway-key = {\"secret\":\"env:GATEWAY_KEY\"}"), "{said}");
    assert!(!said.contains("sekrit"), "{said}");
    is_clean(&lab.results());
    // The reference determines the identity, not the secret.
    let again = lab.command(&["run", "plan.yaml"]).env("GATEWAY_KEY", "another").output().unwrap();
    assert!(Ended::from(again).stderr.contains("nothing to do"));
    with_key(&lab, &["freeze", "plan.yaml", "-o", "frozen.yaml"]);
    let frozen = with_key(&lab, &["run", "frozen.yaml"]);
    assert!(frozen.stderr.contains("nothing to do"), "{}", frozen.stderr);
    lab.write("other.yaml", &plan.replace("X-Priority: high", "X-Priority: low"));
    let other = with_key(&lab, &["preview", "other.yaml", "--format", "json"]).json();
    let new = other["runs"].as_array().unwrap().iter().filter(|run| run["state"] == "new").count();
    assert_eq!(new, 3, "all but `plain` send another header: {other:#}");
}

/// Asserts that no file below a folder contains a secret.
fn is_clean(folder: &std::path::Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            is_clean(&path);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(TRACE.len()).any(|part| part == TRACE), "{}", path.display());
        }
    }
}

#[test]
fn missing_values_are_named_together_before_anything_is_sent() {
    let lab = Lab::new();
    let mock = Mock::start(&[]);
    let plan = PLAN.replace("URL", &format!("http://127.0.0.1:{}/v1", mock.port));
    lab.write("plan.yaml", &plan);
    let keyed = plan.replace("engine: mock\n", "engine: mock\n    api_key: { secret: env:SWEEP_NO_SUCH_KEY }\n");
    lab.write("keyed.yaml", &keyed);
    let ended = lab.run(&["run", "keyed.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    for part in [
        "environment variable SWEEP_NO_SUCH_KEY is not set, but the endpoint's api_key refers to it",
        "environment variable GATEWAY_KEY is not set, but a header refers to it",
        "cannot read the value of a header from keys/session",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    let ended = with_key(&lab, &["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("cannot read the value of a header from keys/session"), "{}", ended.stderr);
    assert!(mock.log_now().is_empty());
}

#[test]
fn what_cannot_be_a_header_is_a_mistake_of_the_plan() {
    let lab = Lab::new();
    let text = "\
sweepline: 1
name: wrong
models: { m: { id: m } }
endpoints:
  e:
    url: http://127.0.0.1:1/v1
    api_key: { secret: env:KEY }
    headers:
      Host: elsewhere
      Authorization: { secret: env:OTHER }
      'two words': x
      X-Twice: a
      x-twice: b
      X-Api-Key: abc
      X-Line: \"a\\nb\"
      X-Tenant: $TENANT
      X-Braces: '${TENANT}'
      X-Name: env:TENANT
      X-Price: $5
scenarios:
  s: { headers: { Content-Length: '3', X-Far: { secret: 'file:../key' } } }
sweeps: { s: { matrix: { scenario: s, batch_size: 1 } } }
";
    lab.write("plan.yaml", text);
    let ended = lab.run(&["check", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    for part in [
        "`Host` is sent by sweepline itself",
        "`api_key` is sent as `Authorization: Bearer …`, but `headers` also sets that header",
        "`two words` is not a valid header name",
        "`x-twice` appears twice: header names are case-insensitive",
        "the value of header `X-Api-Key` looks like a secret and would end up in results",
        "put the secret into an environment variable and write X-Api-Key: { secret: env:NAME }",
        "header `X-Line` cannot carry this value",
        "header `X-Tenant` would be sent literally as `$TENANT`: references in plain text are not resolved",
        "write X-Tenant: { secret: env:TENANT }",
        "write X-Braces: { secret: env:TENANT }",
        "write X-Name: { secret: env:TENANT }",
        "`Content-Length` is sent by sweepline itself",
        "`../key` is outside the plan's folder",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    assert!(!said.contains("`X-Price`"), "a price is not a reference: {said}");
}
