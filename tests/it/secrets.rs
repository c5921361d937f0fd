//! Tests that a canary key is sent to the server and appears nowhere else.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use sweepline::rows::{Outcome, read_journal};

use lab::mock::Mock;
use lab::plans::by_number;
use lab::server::{Server, stream_of, token};
use lab::{Ended, Lab, Running, wait_for};

/// The key is in lower case, as the test server repeats it.
const CANARY: &str = "canary7f3a9c51d2e84b60";
/// Text that must not appear anywhere; the start of the key would also reveal it.
const TRACE: &str = "canary7f";
/// The end of the key would also reveal it.
const END: &str = "51d2e84b60";

/// Returns a plan over endpoints in YAML's flow style, with one closed loop on each endpoint, in
/// this order.
fn plan(endpoints: &[(&str, String)], requests: usize) -> String {
    let mut text = "sweepline: 1\nname: keys\nendpoints:\n".to_owned();
    for (name, endpoint) in endpoints {
        writeln!(text, "  {name}: {{ {endpoint} }}").unwrap();
    }
    write!(
        text,
        "models: {{ m: {{ id: tiny }} }}\nscenarios: {{ short: {{ base: B1, output_tokens: 8 }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 300ms, min_requests: {requests}, at_most: 90s }}, drain: 60s }}\n\
         sweeps:\n"
    )
    .unwrap();
    for (name, _) in endpoints {
        writeln!(
            text,
            "  {name}: {{ matrix: {{ endpoint: [{name}], model: [m], scenario: [short], batch_size: [1] }} }}"
        )
        .unwrap();
    }
    text
}

fn at(port: u16, more: &str) -> String {
    format!("url: 'http://127.0.0.1:{port}/v1', engine: mock, {more}")
}

/// Asserts that no output of a program contains the key.
fn said_nothing(ended: &Ended) {
    for text in [&ended.stdout, &ended.stderr] {
        assert!(!text.contains(TRACE) && !text.contains(END), "{text}");
    }
}

/// Asserts that no file below `folder` contains the key, neither as bytes nor in the decoded values of its
/// rows. Returns the number of files.
fn is_clean(folder: &Path) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(!path.to_str().unwrap().contains(TRACE));
        if path.is_dir() {
            files += is_clean(&path);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(TRACE.len()).any(|part| part == TRACE.as_bytes()), "{}", path.display());
        if path.ends_with("journal.arrow") {
            assert!(!format!("{:?}", read_journal(&path).unwrap().1).contains(TRACE), "{}", path.display());
        }
        files += 1;
    }
    files
}

/// Asserts that the key does not appear in the output of any command that reads results, nor in any
/// file.
fn everything_is_clean(lab: &Lab, with_key: impl Fn(&[&str]) -> Ended) {
    for args in [
        &["list"][..],
        &["list", "--format", "json"],
        &["preview", "plan.yaml"],
        &["preview", "plan.yaml", "--format", "json"],
        &["check", "plan.yaml"],
        &["graph", "plan.yaml"],
        &["verify"],
        &["probe", "plan.yaml"],
        &["export", "plan.yaml", "--format", "json"],
        &["export", "--format", "markdown"],
        &["export", "--rows", "requests"],
        &["export", "--rows", "requests", "--format", "json"],
        &["export", "--format", "parquet"],
        &["run", "plan.yaml", "-v"],
        &["run", "plan.yaml", "--dry-run"],
    ] {
        let ended = with_key(args);
        assert!(!matches!(ended.code, None | Some(1 | 2 | 5)), "{args:?} reads no results: {}", ended.stderr);
        said_nothing(&ended);
    }
    for (id, run) in lab.runs() {
        let why = ["why", "--plan", "plan.yaml", &id];
        for args in [&["show", &id][..], &["show", &id, "--format", "json"], &why] {
            let ended = with_key(args);
            assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
            said_nothing(&ended);
        }
        assert!(!format!("{:?}{}", run.records, run.json).contains(TRACE), "{id}");
    }
    assert!(is_clean(&lab.results()) >= 4);
}

/// Returns the command lines of a process and of its children.
fn command_lines(process: u32) -> Vec<String> {
    let line =
        |pid: &str| std::fs::read(format!("/proc/{pid}/cmdline")).map(|b| String::from_utf8_lossy(&b).into_owned());
    let child = |entry: std::fs::DirEntry| -> Option<String> {
        let pid = entry.file_name().into_string().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent: u32 = stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()?;
        (parent == process || pid == process.to_string()).then(|| line(&pid).ok()).flatten()
    };
    std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter_map(child).collect()
}

#[test]
fn the_key_reaches_the_server_and_nothing_else() {
    let mock =
        Mock::start_with(&["--ttft", "2ms", "--api-key-env", "MOCK_KEY"], |command| command.env("MOCK_KEY", CANARY));
    let lab = Lab::new();
    lab.write("keys/key.txt", &format!("{CANARY}\n"));
    let endpoints = [
        ("variable", at(mock.port, "api_key: { secret: env:SWEEP_KEY }")),
        ("embedded", "engine: mock, mock: { ttft: 2ms, itl: 1ms }".to_owned()),
        ("file", at(mock.port, "api_key: { secret: 'file:keys/key.txt' }")),
    ];
    lab.write("plan.yaml", &plan(&endpoints, 5));
    let running = Running::start(lab.command(&["run", "plan.yaml", "-v"]).env("SWEEP_KEY", CANARY));
    let process = running.id();
    let lines = wait_for("sweepline and its server", || {
        let lines = command_lines(process);
        lines.iter().any(|line| line.contains("--parent-pipe")).then_some(lines)
    });
    assert!(lines.iter().all(|line| !line.contains(TRACE)), "{lines:?}");
    let ended = running.end();
    said_nothing(&ended);
    let runs = lab.runs();
    assert_eq!(runs.len(), 3, "{}", ended.stderr);
    for run in runs.into_values() {
        // The last request may be cut off at the end.
        let records = by_number(run);
        assert!(records.iter().take(5).all(|record| record.row.outcome.is_ok()), "the server accepted the key");
    }
    everything_is_clean(&lab, |args| Ended::from(lab.command(args).env("SWEEP_KEY", CANARY).output().unwrap()));
}

/// Returns responses that repeat the key in every stored part of a response.
fn echoes() -> Vec<Vec<u8>> {
    let status = |status: u16, body: &str| {
        format!("HTTP/1.1 {status} No\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    let mut echoes: Vec<Vec<u8>> = vec![
        status(401, &format!("Incorrect API key provided: {CANARY}.")),
        status(403, &format!(r#"{{"error":{{"message":"bad key Bearer {CANARY}","type":"auth"}}}}"#)),
        status(400, &format!(r#"{{"headers":{{"authorization":"Bearer {CANARY}"}}}}"#)),
        stream_of(&format!("data: {{\"error\":\"key {CANARY}\"}}\n\n")),
        stream_of(&format!("event: error\ndata: key {CANARY}\n\n")),
        stream_of(&format!("data: {CANARY}\n\n")),
        stream_of(&format!("data: {{\"odd\":\"{CANARY}\"}}\n\n")),
        stream_of(&format!("{}data: {{\"choices\":[{{\"finish_reason\":\"{CANARY}\"}}]}}\n\n", token("a"))),
        format!("HTTP/1.1 {CANARY}\r\n\r\n").into_bytes(),
    ];
    // Invisible characters are removed before a text is shown, and they must not hide the key before
    // that.
    for mark in ["\u{1}", "\u{200b}", "\u{202e}", "\\u0001"] {
        let split = format!("{}{mark}{}", &CANARY[..10], &CANARY[10..]);
        echoes.push(status(401, &format!("{{\"error\":{{\"message\":\"bad key {split}\"}}}}")));
        echoes.push(status(401, &format!("bad key {split}")));
        echoes.push(status(400, &format!("{{\"headers\":{{\"authorization\":\"Bearer {split}\"}}}}")));
    }
    // Events that are skipped, and bodies that are no stream, are quoted. A key that is removed makes a text shorter, so a
    // later one may move to where the text was cut.
    for pad in 0..24 {
        let keys = format!("{CANARY} ").repeat(8);
        echoes.push(stream_of(&format!("data: {{\"odd\":\"{keys}{}{CANARY}\"}}\n\n", "x".repeat(pad))));
    }
    echoes.push(stream_of(&format!("{{\"detail\":\"{CANARY}\"}}")));
    echoes.push(stream_of(&format!("<p>{CANARY}</p>")));
    // Wherever a message is truncated, no part of the key remains.
    for before in 170..205 {
        echoes.push(status(401, &format!("{} {CANARY}", "x".repeat(before))));
        echoes.push(stream_of(&format!("data: {{\"error\":\"{} {CANARY}\"}}\n\n", "x".repeat(before))));
    }
    echoes
}

#[test]
fn a_server_that_repeats_the_key_finds_no_reader() {
    let server = Server::start(|number, stream| {
        let echoes = echoes();
        let _ = stream.write_all(&echoes[number.min(echoes.len() - 1)]);
    });
    let lab = Lab::new();
    lab.write(
        "plan.yaml",
        &plan(&[("echo", at(server.port, "errors: measured, api_key: { secret: env:SWEEP_KEY }"))], echoes().len()),
    );
    let with_key = |args: &[&str]| Ended::from(lab.command(args).env("SWEEP_KEY", CANARY).output().unwrap());
    let ended = with_key(&["run", "plan.yaml", "-v"]);
    said_nothing(&ended);
    assert!(ended.stderr.contains("[secret]"), "the server's name repeats it: {}", ended.stderr);
    assert!(server.seen().iter().all(|head| head.contains(&format!("authorization: bearer {CANARY}"))), "it was sent");
    let run = lab.only_run();
    assert_eq!(run.json["environment"]["server"], "odd [secret]");
    let records = by_number(run);
    for record in records.iter().take(7).chain(records.iter().skip(9).take(12)) {
        let error = record.row.error.as_deref().unwrap();
        assert!(error.contains("[secret]") && !error.contains(END), "{error}");
    }
    assert_eq!(records[7].row.finish_reason.as_deref(), Some("[secret]"));
    assert!(records.iter().all(|record| record.row.outcome != Outcome::Connect));
    everything_is_clean(&lab, with_key);
}

#[test]
fn a_refused_key_is_not_shown() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    // Two commands send two requests each, for the list of models and for a generation; the thread ends after it
    // has responded to all.
    let answering = std::thread::spawn(move || {
        for (before, mark) in [(10, "\u{1}"), (10, "\u{1}"), (190, ""), (190, "")] {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let body = format!("{} {}{mark}{} is wrong", "x".repeat(before), &CANARY[..10], &CANARY[10..]);
            let _ =
                write!(stream, "HTTP/1.1 401 No\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        }
    });
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(&[("picky", at(port, "api_key: { secret: env:SWEEP_KEY }"))], 5));
    for args in [&["probe", "plan.yaml"][..], &["run", "plan.yaml", "-v"]] {
        let ended = Ended::from(lab.command(args).env("SWEEP_KEY", CANARY).output().unwrap());
        assert_eq!(ended.code, Some(2), "{args:?} {}{}", ended.stdout, ended.stderr);
        assert!(
            format!("{}{}", ended.stdout, ended.stderr).contains("rejects the API key (HTTP 401)"),
            "{}",
            ended.stderr
        );
        said_nothing(&ended);
    }
    answering.join().unwrap();
    is_clean(&lab.results());
}

#[test]
fn missing_keys_are_named_together_before_anything_is_sent() {
    let mock = Mock::start(&["--ttft", "2ms"]);
    let lab = Lab::new();
    lab.write("empty.txt", "\n");
    let endpoints = [
        ("unset", at(mock.port, "api_key: { secret: env:SWEEP_NO_SUCH_KEY }")),
        ("absent", at(mock.port, "api_key: { secret: 'file:no-such-file.txt' }")),
        ("empty", at(mock.port, "api_key: { secret: 'file:empty.txt' }")),
        ("open", at(mock.port, "api: chat")),
    ];
    lab.write("plan.yaml", &plan(&endpoints, 5));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    for text in [
        "endpoint `unset`: environment variable SWEEP_NO_SUCH_KEY is not set",
        "endpoint `absent`: cannot read the api_key from no-such-file.txt",
        "endpoint `empty`: the api_key from file:empty.txt is empty",
    ] {
        assert!(ended.stderr.contains(text), "{text}: {}", ended.stderr);
    }
    assert!(lab.runs().is_empty(), "nothing is measured before the plan is fixed");
    let probed = lab.run(&["probe", "plan.yaml"]);
    assert_eq!(probed.code, Some(2));
    assert!(
        probed.stdout.contains("unset: not ready: environment variable SWEEP_NO_SUCH_KEY is not set"),
        "{}",
        probed.stdout
    );
    assert!(probed.stdout.contains("open: ready"), "{}", probed.stdout);
}

/// A key with characters that every encoding writes differently.
const ODD_KEY: &str = "Canary7f&9c<51d2>/e8'4b+60=Ab";

/// Encodes bytes in base64, with the two last digits of an alphabet.
fn base64(bytes: &[u8], last: [char; 2]) -> String {
    let digits: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(last).collect();
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let six = |bits: &[u8]| format!("{:0<6}", std::str::from_utf8(bits).unwrap());
    let digit = |bits: &[u8]| digits[usize::from_str_radix(&six(bits), 2).unwrap()];
    let text: String = bits.as_bytes().chunks(6).map(digit).collect();
    format!("{text}{}", "=".repeat((4 - text.len() % 4) % 4))
}

/// Returns the key in every encoding, each with the part that the mask leaves before and after it.
fn encoded_keys() -> Vec<(String, String, String)> {
    let each = |of: &dyn Fn(char) -> String| ODD_KEY.chars().map(of).collect::<String>();
    let html = ODD_KEY.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\'', "&#39;");
    let escaped = |c: char| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("%{:02X}", u32::from(c)) };
    let plain = [
        ODD_KEY.to_ascii_lowercase(),
        ODD_KEY.to_ascii_uppercase(),
        each(&escaped),
        each(&escaped).to_ascii_lowercase(),
        html.clone(),
        html.replace("&#39;", "&apos;").replace("&amp;", "&#x26;"),
        ODD_KEY.replace('/', "\\/").replace('&', "\\u0026"),
        each(&|c| format!("\\u{:04x}", u32::from(c))),
    ];
    let mut all: Vec<_> = plain.into_iter().map(|form| (form, String::new(), String::new())).collect();
    for (user, last) in [("", ['+', '/']), ("u:", ['+', '/']), ("us:", ['-', '_']), ("user:", ['-', '_'])] {
        let text = base64(format!("{user}{ODD_KEY}").as_bytes(), last);
        let before = text[..8 * user.len() / 6].to_owned();
        all.push((text, before, String::new()));
        let text = base64(format!("{user}{ODD_KEY}:end").as_bytes(), last);
        let (from, to) = (8 * user.len() / 6, (8 * (user.len() + ODD_KEY.len())).div_ceil(6));
        all.push((text.clone(), text[..from].to_owned(), text[to..].to_owned()));
    }
    all
}

#[test]
fn a_key_that_a_server_repeats_in_another_encoding_is_masked() {
    let server = Server::start(|number, stream| {
        let keys = encoded_keys();
        let (key, ..) = &keys[number.min(keys.len() - 1)];
        let body = format!("the key ({key}) is wrong");
        let _ = write!(stream, "HTTP/1.1 401 No\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    });
    let lab = Lab::new();
    let keys = encoded_keys();
    lab.write(
        "plan.yaml",
        &plan(&[("echo", at(server.port, "errors: measured, api_key: { secret: env:SWEEP_KEY }"))], keys.len()),
    );
    let ended = Ended::from(lab.command(&["run", "plan.yaml"]).env("SWEEP_KEY", ODD_KEY).output().unwrap());
    let records = by_number(lab.only_run());
    assert!(records.len() >= keys.len(), "{}", ended.stderr);
    for (record, (key, before, after)) in records.iter().zip(&keys) {
        let error = record.row.error.as_deref().unwrap();
        let words = format!("the key ({before}[secret]{after}) is wrong");
        assert!(error.contains(&words), "{key}: {error}");
    }
}
