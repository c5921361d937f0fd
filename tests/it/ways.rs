//! Tests of the ways to a server: another host, own certificates, proxies and Unix sockets. Every request of the
//! program, measured or not, must take the way of the plan.

use std::path::Path;

use lab::http_proxy::HttpProxy;
use lab::http2_server;
use lab::recorder::{Recorded, Recorder, Rules, certificates};
use lab::{Ended, Lab};

/// Returns a plan with one short run on an endpoint with these fields. The sweep does not wait for its server.
fn plan(endpoint: &str) -> String {
    format!(
        "sweepline: 1\nname: t\n\
         endpoints:\n  e: {{ engine: vllm, retries: {{ runs: 0 }}, ready: {{ within: 0s }}, {endpoint} }}\n\
         models: {{ m: {{ id: m }} }}\n\
         scenarios: {{ s: {{ base: B1, prompt_tokens: 30, output_tokens: 8 }} }}\n\
         phases: {{ fill: 50ms, stabilize: 50ms, measure: 300ms, drain: 2s }}\n\
         sweeps: {{ a: {{ matrix: {{ batch_size: [1] }} }} }}\n"
    )
}

/// Creates a folder for a plan, with the certificates in it.
fn lab() -> Lab {
    let lab = Lab::real_time();
    for name in ["ca.pem", "own.pem", "client.pem", "client.key"] {
        std::fs::copy(certificates().join(name), lab.path().join(name)).unwrap();
    }
    lab
}

/// Fields of an endpoint that make sweepline send requests of further kinds to its server.
const EXTRAS: &str = "telemetry: { prometheus: [\"on\"] }, hooks: { before_run: { request: POST /hook } }";

/// Checks, probes and measures a plan whose endpoint also has a metrics page and a hook, and asserts that the run
/// has complete requests.
fn measure(lab: &Lab, endpoint: &str, variables: &[(&str, &str)]) -> Ended {
    lab.write("plan.yaml", &plan(&format!("{EXTRAS}, {endpoint}")));
    lab.ok(&["check", "plan.yaml"]);
    let run = |command: &str| {
        let mut command = lab.command(&[command, "plan.yaml"]);
        Ended::from(command.envs(variables.iter().copied()).output().unwrap())
    };
    let probed = run("probe");
    assert_eq!(probed.code, Some(0), "{}{}", probed.stdout, probed.stderr);
    let ended = run("run");
    let runs = lab.runs();
    assert_eq!(runs.len(), 1, "{}{}", ended.stdout, ended.stderr);
    let records = &runs.values().next().unwrap().records;
    assert!(records.iter().any(|record| format!("{:?}", record.row.outcome) == "Ok"), "{}", ended.stderr);
    ended
}

/// Asserts that the server got probes, scrapes, a hook and measured requests, and returns them all.
fn all_kinds(server: &Recorder) -> Vec<Recorded> {
    let log = server.log();
    for kind in ["GET /v1/models", "POST /v1/chat/completions", "GET /metrics", "GET /version", "POST /hook"] {
        assert!(log.iter().any(|request| request.line() == kind), "{kind}: {:?}", server.lines());
    }
    assert!(log.iter().any(Recorded::is_measured));
    log
}

/// Runs `probe` and `run`, and asserts that both end with this exit code and a message that contains `parts`.
fn refused(lab: &Lab, endpoint: &str, code: i32, parts: &[&str]) {
    lab.write("plan.yaml", &plan(endpoint));
    for command in ["probe", "run"] {
        let ended = lab.run(&[command, "plan.yaml"]);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.code, Some(code), "{command}: {said}");
        for part in parts {
            assert!(said.contains(part), "{command}: `{part}` is missing: {said}");
        }
    }
}

fn tls(certificate: &'static str) -> Rules {
    Rules { certificate: Some(certificate), ..Rules::default() }
}

#[test]
fn a_gateway_that_is_addressed_by_ip_gets_the_name_of_the_plan() {
    for (host, name) in [("gw.example", "gw.example"), ("gw.example:443", "gw.example")] {
        let (lab, server) = (lab(), Recorder::start(tls("gateway")));
        let url = format!("url: 'https://127.0.0.1:{}/v1'", server.port());
        measure(&lab, &format!("{url}, host: '{host}', tls: {{ ca: ca.pem }}"), &[]);
        for request in all_kinds(&server) {
            assert_eq!((request.fields("host"), request.sni.as_deref()), (vec![host], Some(name)), "{request:?}");
        }
    }
}

#[test]
fn a_certificate_that_is_not_trusted_is_reported_with_the_key_and_the_variable() {
    let (lab, server) = (lab(), Recorder::start(tls("gateway")));
    let url = format!("url: 'https://localhost:{}/v1'", server.port());
    refused(&lab, &url, 2, &["UnknownIssuer", "tls: { ca: FILE }", "SSL_CERT_FILE"]);
    refused(&lab, &format!("{url}, tls: {{ ca: own.pem }}"), 2, &["UnknownIssuer"]);
    let by_ip = format!("url: 'https://127.0.0.1:{}/v1', tls: {{ ca: ca.pem }}", server.port());
    refused(&lab, &by_ip, 2, &["not valid for name", "`host`"]);
    assert!(server.log().is_empty(), "{:?}", server.lines());
    measure(&lab, &format!("{url}, tls: {{ ca: ca.pem }}"), &[]);
    all_kinds(&server);
}

#[test]
fn a_server_s_own_certificate_can_be_trusted() {
    let (lab, server) = (lab(), Recorder::start(tls("own")));
    let url = format!("url: 'https://127.0.0.1:{}/v1'", server.port());
    refused(&lab, &url, 2, &["tls: { ca: FILE }"]);
    measure(&lab, &format!("{url}, tls: {{ ca: own.pem }}"), &[]);
    all_kinds(&server);
}

#[test]
fn a_client_identifies_itself_with_its_certificate() {
    let (lab, server) = (lab(), Recorder::start(Rules { asks_clients: true, ..tls("gateway") }));
    let url = format!("url: 'https://localhost:{}/v1'", server.port());
    let identity = "certificate: file:client.pem, key: { secret: file:client.key }";
    let ended = measure(&lab, &format!("{url}, tls: {{ ca: ca.pem, {identity} }}"), &[]);
    assert!(all_kinds(&server).iter().all(|request| request.has_certificate));
    let key = std::fs::read_to_string(certificates().join("client.key")).unwrap();
    let secret = key.lines().nth(1).unwrap();
    assert!(!format!("{}{}", ended.stdout, ended.stderr).contains(secret));
    assert!(!contains(&lab.results(), secret), "the key is in the results");
}

#[test]
fn files_of_certificates_that_cannot_be_used_are_named() {
    let lab = lab();
    lab.write("empty.pem", "");
    let url = "url: 'https://127.0.0.1:1/v1'";
    for (fields, part) in [
        ("ca: nowhere.pem", "cannot read `tls.ca` from nowhere.pem"),
        ("ca: empty.pem", "`tls.ca`: empty.pem contains no certificate in PEM"),
        ("certificate: client.pem, key: empty.pem", "empty.pem contains no private key in PEM"),
        ("cert: own.pem, key: client.key", "the private key does not belong to the first certificate"),
    ] {
        refused(&lab, &format!("{url}, tls: {{ {fields} }}"), 2, &[part]);
    }
}

/// Whether a file below `folder` contains `text`.
fn contains(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => contains(&path, text),
            false => {
                let bytes = std::fs::read(&path).unwrap();
                bytes.windows(text.len()).any(|part| part == text.as_bytes())
            }
        }
    })
}

#[test]
fn a_proxy_forwards_plain_requests_with_their_whole_url() {
    let (lab, server) = (lab(), Recorder::start(Rules::default()));
    let proxy = HttpProxy::start(server.port(), None);
    let url = format!("url: 'http://gw.example:{0}/v1', proxy: 'http://127.0.0.1:{1}'", server.port(), proxy.port());
    measure(&lab, &url, &[]);
    let host = format!("gw.example:{}", server.port());
    assert!(all_kinds(&server).iter().all(|request| request.fields("host") == [host.as_str()]));
    let heads = proxy.heads();
    assert_eq!(heads.len(), server.log().len());
    assert!(heads.iter().all(|head| head.contains(&format!(" http://{host}/"))), "{heads:#?}");
}

#[test]
fn a_proxy_opens_a_tunnel_for_tls() {
    let (lab, server) = (lab(), Recorder::start(tls("gateway")));
    let proxy = HttpProxy::start(server.port(), None);
    let fields = format!("proxy: 'http://127.0.0.1:{}', tls: {{ ca: ca.pem }}", proxy.port());
    measure(&lab, &format!("url: 'https://gw.example/v1', {fields}"), &[]);
    let requests = all_kinds(&server);
    assert!(requests.iter().all(|request| request.fields("host") == ["gw.example"]));
    assert!(requests.iter().all(|request| request.sni.as_deref() == Some("gw.example")));
    let heads = proxy.heads();
    assert!(heads.iter().all(|head| head.starts_with("CONNECT gw.example:443 HTTP/1.1")), "{heads:#?}");
}

#[test]
fn the_password_of_a_proxy_is_a_secret_and_is_sent_only_to_the_proxy() {
    for rules in [Rules::default(), tls("gateway")] {
        let scheme = if rules.certificate.is_some() { "https" } else { "http" };
        let (lab, server) = (lab(), Recorder::start(rules));
        let proxy = HttpProxy::start(server.port(), Some("Basic bWU6aHVudGVyMg=="));
        let ca = if scheme == "https" { ", tls: { ca: ca.pem }" } else { "" };
        let fields = format!("url: '{scheme}://gw.example/v1', proxy: {{ secret: env:THE_PROXY }}{ca}");
        let address = format!("http://me:hunter2@127.0.0.1:{}", proxy.port());
        let ended = measure(&lab, &fields, &[("THE_PROXY", &address)]);
        assert!(all_kinds(&server).iter().all(|request| request.fields("proxy-authorization").is_empty()));
        let said = format!("{}{}", ended.stdout, ended.stderr);
        for secret in ["hunter2", "bWU6aHVudGVyMg=="] {
            assert!(!said.contains(secret) && !contains(&lab.results(), secret), "{secret}: {said}");
        }
    }
}

#[test]
fn a_proxy_that_refuses_is_named_with_the_remedy() {
    let (lab, server) = (lab(), Recorder::start(tls("gateway")));
    let proxy = HttpProxy::start(server.port(), Some("Basic bWU6aHVudGVyMg=="));
    let fields = format!("url: 'https://gw.example/v1', proxy: 'http://127.0.0.1:{}'", proxy.port());
    let parts = ["opened no tunnel to gw.example:443: HTTP 407", "proxy: { secret: env:NAME }"];
    refused(&lab, &fields, 6, &parts);
    let gone = "url: 'http://gw.example/v1', proxy: 'http://127.0.0.1:1'";
    refused(&lab, gone, 6, &["the proxy http://127.0.0.1:1: Connection refused"]);
}

#[test]
fn the_proxies_of_the_environment_are_ignored_with_one_note() {
    let (lab, server) = (lab(), Recorder::start(Rules::default()));
    let url = format!("url: 'http://127.0.0.1:{}/v1'", server.port());
    let ended = measure(&lab, &url, &[("HTTP_PROXY", "http://127.0.0.1:1")]);
    all_kinds(&server);
    assert_eq!(ended.stderr.matches("HTTP_PROXY is set, but ignored").count(), 1, "{}", ended.stderr);
}

#[test]
fn requests_over_http_2_take_the_same_way() {
    let secure = http2_server::Rules { alpn: Some(vec!["h2"]), ..http2_server::Rules::default() };
    for (scheme, rules) in [("http", http2_server::Rules::default()), ("https", secure)] {
        let (lab, server) = (lab(), http2_server::Server::start(rules));
        let proxy = HttpProxy::start(server.port, None);
        let url = format!("url: '{scheme}://127.0.0.1:{}/v1?a=b', insecure_tls: true, http: 2", server.port);
        let host = if scheme == "https" { "gw.example" } else { "gw.example:1234" };
        let direct = plan(&format!("{url}, host: '{host}'")).replace("id: m ", "id: tiny ");
        lab.write("plan.yaml", &direct);
        let ended = lab.run(&["run", "plan.yaml"]);
        assert_eq!(lab.runs().len(), 1, "{}{}", ended.stdout, ended.stderr);
        let seen = server.seen();
        assert!(!seen.ids().is_empty());
        let expected = format!("{scheme}://{host}/v1/chat/completions?a=b");
        assert!(seen.uris.contains(&expected), "{:?}", seen.uris);
        assert!(seen.uris.iter().all(|uri| uri.starts_with(&format!("{scheme}://{host}/"))), "{:?}", seen.uris);
        let proxied = plan(&format!("{url}, proxy: 'http://127.0.0.1:{}'", proxy.port()));
        lab.write("plan.yaml", &proxied.replace("id: m ", "id: tiny ").replace("[1]", "[2]"));
        let ended = lab.run(&["run", "plan.yaml"]);
        assert_eq!(lab.runs().len(), 2, "{}{}", ended.stdout, ended.stderr);
        let tunnel = format!("CONNECT 127.0.0.1:{} HTTP/1.1", server.port);
        assert!(proxy.heads().iter().all(|head| head.starts_with(&tunnel)), "{:#?}", proxy.heads());
    }
}

#[test]
fn a_server_on_a_unix_socket_is_measured() {
    let lab = lab();
    let server = Recorder::on_socket(&lab.path().join("vllm.sock"), Rules::default());
    measure(&lab, "url: 'http://localhost/v1', socket: vllm.sock", &[]);
    assert!(all_kinds(&server).iter().all(|request| request.fields("host") == ["localhost"]));
    let absolute = lab.path().join("vllm.sock").display().to_string();
    lab.write("plan.yaml", &plan(&format!("{EXTRAS}, url: 'http://localhost/v1', socket: '{absolute}'")));
    let again = lab.run(&["run", "plan.yaml"]);
    assert!(lab.runs().len() == 1, "the socket is not part of the identity: {}", again.stderr);
    let lab = self::lab();
    refused(&lab, "url: 'http://localhost/v1', socket: gone.sock", 6, &["the socket gone.sock: No such file"]);
}

#[test]
fn workers_take_the_same_way() {
    let (lab, server) = (lab(), Recorder::start(Rules { asks_clients: true, ..tls("gateway") }));
    let url = format!("url: 'https://127.0.0.1:{}/v1'", server.port());
    let fields =
        format!("{url}, host: gw.example, tls: {{ ca: file:ca.pem, certificate: client.pem, key: client.key }}");
    let text = plan(&fields).replace("batch_size: [1]", "batch_size: [2]");
    lab.write("plan.yaml", &format!("{text}engine: {{ workers: 2 }}\n"));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(lab.runs().len(), 1, "{}{}", ended.stdout, ended.stderr);
    let log = server.log();
    assert!(log.iter().filter(|request| request.is_measured()).count() > 1);
    assert!(log.iter().all(|request| request.sni.as_deref() == Some("gw.example") && request.has_certificate));
}

#[test]
fn settings_that_contradict_each_other_are_errors_of_check() {
    let lab = Lab::new();
    let http = "url: 'http://10.0.0.7/v1'";
    let https = "url: 'https://10.0.0.7/v1'";
    for (fields, code, part) in [
        (format!("{http}, host: 'https://gw.example'"), "E026", "is an address, not the name of a host"),
        (format!("{http}, host: 'a..b'"), "E026", "nothing before or between its dots"),
        (format!("{http}, tls: {{ ca: ca.pem }}"), "E025", "`url` begins with http://"),
        (format!("{https}, tls: {{ certificate: a.pem }}"), "E025", "`tls.certificate` has no `key`"),
        (format!("{https}, tls: {{ ca: /etc/ca.pem }}"), "E031", "outside the plan's folder"),
        (format!("{https}, tls: {{ ca: {{ secret: env:CA }} }}"), "E0", "are read from files"),
        (format!("{https}, insecure_tls: true, tls: {{ ca: ca.pem }}"), "E025", "has no effect"),
        (format!("{https}, proxy: 'socks5://h:1'"), "E026", "only http is supported"),
        (format!("{https}, proxy: 'http://me:hunter2@h:1'"), "E027", "contains a password"),
        (format!("{http}, host: gw.example, proxy: 'http://h:1'"), "E025", "`host` has no effect without TLS"),
        (format!("{http}, socket: a.sock, proxy: 'http://h:1'"), "E025", "remove `socket` or `proxy`"),
        ("socket: a.sock, launch: { command: [a, '{{ port }}'], port: auto }".to_owned(), "E025", "`launch`"),
    ] {
        lab.write("plan.yaml", &plan(&fields));
        let ended = lab.run(&["check", "plan.yaml"]);
        assert_eq!(ended.code, Some(2), "{fields}: {}", ended.stderr);
        assert!(ended.stderr.contains(code) && ended.stderr.contains(part), "{fields}: {}", ended.stderr);
        assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
    }
    lab.write("plan.yaml", &plan(&format!("{https}, tls: {{ ca: file:/run/secrets/ca.pem }}")));
    lab.ok(&["check", "plan.yaml"]);
    lab.write("plan.yaml", &plan(&format!("{https}, tls: {{ ca: /etc/ca.pem }}")));
    lab.ok(&["check", "--allow-outside", "plan.yaml"]);
}
