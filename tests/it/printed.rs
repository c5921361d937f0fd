//! Tests the output of the program: it has no terminal control characters, no secrets and a limited
//! length, but all figures and places.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use lab::reserved::ReservedPort;
use lab::{Ended, Lab, Server};

/// Characters that reverse text or are invisible.
const MARKS: [char; 16] = [
    '\u{34f}',
    '\u{3164}',
    '\u{fe0f}',
    '\u{e0100}',
    '\u{202a}',
    '\u{202e}',
    '\u{2066}',
    '\u{2069}',
    '\u{200e}',
    '\u{200f}',
    '\u{61c}',
    '\u{200b}',
    '\u{200d}',
    '\u{2060}',
    '\u{feff}',
    '\u{1b}',
];

/// Returns a plan with these characters in its names.
fn marked() -> String {
    "sweepline: 1\nname: \"na\u{202e}m\u{34f}\u{3164}e\u{fe0f}\u{e0100}\"\nnotes: \"n\u{2066}\"\n\
     endpoints: { \"e\u{202e}vil\": { engine: mock, mock: { ttft: 2ms, itl: 1ms } } }\n\
     models: { \"m\u{200b}\": { id: \"t\u{2066}iny\" } }\n\
     scenarios: { \"s\u{feff}\u{61c}\": { base: B1, output_tokens: 4, extra: { \"k\u{200f}\": \"v\u{200d}\" } } }\n\
     phases: { fill: 0s, stabilize: 0s, measure: 200ms, drain: 5s }\n\
     sweeps: { \"w\u{2060}\": { matrix: { endpoint: [\"e\u{202e}vil\"], model: [\"m\u{200b}\"], scenario: [\"s\u{feff}\u{61c}\"], batch_size: [1] } } }\n"
        .to_owned()
}

fn has_no_marks(what: &[&str], ended: &Ended) {
    for text in [&ended.stdout, &ended.stderr] {
        let found: Vec<char> = MARKS.into_iter().filter(|mark| text.contains(*mark)).collect();
        assert!(found.is_empty(), "{what:?} prints {found:?}:\n{text}");
    }
}

#[test]
fn no_mark_of_a_plan_reaches_the_terminal() {
    let lab = Lab::new();
    lab.write("plan.yaml", &marked());
    for args in [
        &["check", "plan.yaml"][..],
        &["check", "plan.yaml", "--format", "json"],
        &["preview", "plan.yaml", "--all"],
        &["preview", "plan.yaml", "--format", "json"],
        &["graph", "plan.yaml"],
        &["freeze", "plan.yaml"],
        &["probe", "plan.yaml"],
        &["run", "plan.yaml", "-v"],
        &["run", "plan.yaml"],
        &["list"],
        &["list", "--format", "json"],
        &["curves", "plan.yaml"],
        &["capacity", "plan.yaml"],
        &["diagnose", "plan.yaml"],
        &["report", "plan.yaml"],
        &["verify"],
        &["why", "--plan", "plan.yaml", "--all"],
        &["run", "plan.yaml", "--only", "endpoint == 'x\u{202e}'"],
        &["run", "no\u{202e}.yaml"],
        &["show", "x\u{202e}"],
        &["frob\u{202e}"],
        &["run", "plan.yaml", "--no\u{202e}"],
        &["run", "plan.yaml", "--set", "na\u{202e}me=1"],
        &["diff", "plan.yaml", "plan.yaml", "--set", "seed=9"],
        &["diff", "plan.yaml", "plan.yaml", "--set", "seed=9", "--format", "markdown"],
        &["export", "plan.yaml", "--format", "markdown"],
        &["export", "plan.yaml", "--format", "markdown", "--columns", "all"],
        &["export", "plan.yaml", "--format", "markdown", "--rows", "requests", "--columns", "all"],
        &["run", "plan.yaml", "--markdown", "page.md"],
        &["export", "plan.yaml", "-o", "table.md"],
    ] {
        has_no_marks(args, &lab.run(args));
    }
    for file in ["page.md", "table.md"] {
        let text = std::fs::read_to_string(lab.path().join(file)).unwrap();
        let found: Vec<char> = MARKS.into_iter().filter(|mark| text.contains(*mark)).collect();
        assert!(found.is_empty(), "{file} contains {found:?}");
        assert!(text.contains('\u{fffd}'), "{file} shows where they were: {text}");
    }
    let (id, _) = lab.runs().pop_first().expect("it was measured");
    for args in [&["show", &id, "--plan", "plan.yaml"][..], &["show", &id, "--format", "json"], &["why", &id]] {
        has_no_marks(args, &lab.run(args));
    }
    let page = std::fs::read_to_string(lab.path().join("report.html")).unwrap();
    let found: Vec<char> = MARKS.into_iter().filter(|mark| page.contains(*mark)).collect();
    assert!(found.is_empty(), "the report contains {found:?}");
    // JSON still has the same values.
    let json = lab.ok(&["show", &id, "--format", "json"]).json();
    assert_eq!(json["run"]["spec"]["endpoint"]["name"], "e\u{202e}vil");

    lab.write("bad.yaml", &marked().replace("name: \"na", "na\u{202e}me\u{200b}: \"\u{2066}na"));
    let bad = lab.run(&["check", "bad.yaml"]);
    assert_eq!(bad.code, Some(2));
    has_no_marks(&["check", "bad.yaml"], &bad);
}

#[test]
fn a_key_is_found_in_every_part_of_an_address() {
    const KEY: &str = "CANARY7f3a9c51d2e84b60";
    let half = |with: &str| format!("{}{with}{}", &KEY[..9], &KEY[9..]);
    let lab = Lab::new();
    for url in [
        format!("http://host/v1#access_token={KEY}"),
        format!("http://host/api_key={KEY}/v1"),
        format!("http://host/v1;token={KEY}"),
        format!("http://host/sk-{KEY}/v1"),
        format!("http://host/v1#sk-{KEY}"),
        format!("http://me:{}@host/v1", half("\\x01")),
        format!("http://me:{}@host/v1", half("\\u200b")),
        format!("ftp://me:{}@host/v1", half("\\e")),
        format!("host/v1?api_key={}", half("\\u202e")),
        format!("ftp://host/sk-{}", half("\\u001b[0m")),
        format!("ftp://host/sk-{}", half("\\u3164")),
    ] {
        let endpoint = format!("url: \"{url}\", engine: vllm");
        lab.write(
            "plan.yaml",
            &lab::sweeps::PLAN.replace("engine: mock, mock: { ttft: 2ms, itl: 1ms, slots: 4 }", &endpoint),
        );
        for args in [&["check", "plan.yaml"][..], &["check", "plan.yaml", "--format", "json"], &["run", "plan.yaml"]] {
            let ended = lab.run(args);
            assert_eq!(ended.code, Some(2), "{url}: {}", ended.stderr);
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert!(!said.contains(&KEY[..9]) && !said.contains(&KEY[9..]), "{url}\n{said}");
        }
    }
}

#[test]
fn a_key_that_an_address_repeats_is_not_printed() {
    const KEY: &str = "abcd-efgh-ijkl";
    let lab = Lab::new();
    let silent = ReservedPort::of_free();
    let port = silent.number;
    for path in [format!("{KEY}/v1"), format!("v1?a={KEY}"), format!("v1#{KEY}")] {
        // `run` would wait for a minute for a server that starts.
        let ready = "ready: { within: 0s }";
        let key = "api_key: { secret: env:SWEEP_KEY }";
        let url = format!("url: 'http://127.0.0.1:{port}/{path}', engine: vllm, {ready}, {key}");
        let plan = lab::sweeps::PLAN.replace("engine: mock, mock: { ttft: 2ms, itl: 1ms, slots: 4 }", &url);
        lab.write("plan.yaml", &plan);
        for args in
            [&["probe", "plan.yaml"][..], &["probe", "plan.yaml", "--format", "json"], &["run", "plan.yaml", "-v"]]
        {
            let ended = Ended::from(lab.command(args).env("SWEEP_KEY", KEY).output().unwrap());
            assert_ne!(ended.code, Some(0), "{}", ended.stderr);
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert!(!said.contains(KEY), "{args:?} {path}\n{said}");
        }
    }
}

#[test]
fn lists_have_an_end() {
    let lab = Lab::new();
    let names: Vec<String> = (0..1_500).map(|at| format!("model-{at}-{}", "x".repeat(80))).collect();
    let flags: Vec<&str> = names.iter().flat_map(|name| ["--model", name.as_str()]).collect();
    let server = Server::start(&lab, &flags);
    let seeds = (1..=300).map(|at| at.to_string()).collect::<Vec<_>>().join(", ");
    lab.write(
        "plan.yaml",
        &format!(
            "sweepline: 1\nname: many\nendpoints: {{ srv: {{ url: '{}', engine: vllm }} }}\nmodels: {{ m: {{ id: {} }} }}\n\
             sweeps: {{ s: {{ matrix: {{ model: [m], scenario: [B1], batch_size: [1], output_tokens: [{seeds}] }} }} }}\n",
            server.url(),
            names[0],
        ),
    );
    let probed = lab.ok(&["probe", "plan.yaml"]);
    assert!(probed.stdout.contains(" and 980 more") && probed.stdout.len() < 5_000, "{}", probed.stdout);
    assert_eq!(
        lab.ok(&["probe", "plan.yaml", "--format", "json"]).json()["endpoints"][0]["models"].as_array().unwrap().len(),
        1_000
    );

    let running = lab::sweeps::Talking::start(&mut lab.command(&["run", "plan.yaml", "-v"]), lab.path().join("said"));
    running.wait_to_say("started");
    running.signal(rustix::process::Signal::INT);
    assert_eq!(running.end(), Some(130));
    let said = std::fs::read_to_string(lab.path().join("said")).unwrap();
    assert_eq!(said.matches("never committed").count(), 20, "{said}");
    assert!(said.contains("and 280 more: `preview --all`") && said.len() < 15_000, "{} bytes\n{said}", said.len());
}

#[test]
fn a_frozen_plan_shows_the_thresholds_that_hold() {
    let lab = lab::sweeps::lab();
    let text = lab.ok(&["freeze", "plan.yaml"]).stdout;
    let block = text.split("validity:").nth(1).unwrap();
    for (reason, limits) in [
        ("client_late", "suspect: 1%"),
        ("errors", "invalid: 10%"),
        ("warm_cache", "suspect: 2%"),
        ("unsteady", "suspect: 5%"),
    ] {
        let of = block.split(&format!("{reason}:")).nth(1).unwrap();
        let of: String = of.lines().take(3).collect();
        assert!(of.contains(limits), "{reason}: {block}");
    }
    lab.write("lock.yaml", &text);
    lab.ok(&["run", "plan.yaml", "--frozen", "lock.yaml", "--dry-run"]);
    lab.write("own.yaml", &format!("{}validity: {{ errors: {{ suspect: 3% }} }}\n", lab::sweeps::PLAN.trim_start()));
    let own = lab.ok(&["freeze", "own.yaml"]).stdout;
    let of_validity = own.split("validity:").nth(1).unwrap();
    let errors: String = of_validity.split("errors:").nth(1).unwrap().lines().take(3).collect();
    assert!(errors.contains("suspect: 3%") && errors.contains("invalid: 10%"), "{errors}");
}

#[test]
fn an_entry_of_a_long_line_is_named_by_its_number() {
    let lab = Lab::new();
    let good = r#"{"prompt":"a","output":"b"}"#;
    lab.write(
        "wrong.json",
        &format!(r#"[{good}, {{"prompt":3,"output":"b"}}, {good}, {{"prompt":"d","output":}}, {good}]"#),
    );
    let ended = lab.run(&["dataset", "inspect", "wrong.json"]);
    assert!(ended.stderr.contains("wrong.json:1, entry 2: `prompt` is `3`"), "{}", ended.stderr);
    let skipped = lab.ok(&["dataset", "inspect", "wrong.json", "--skip-bad"]);
    assert!(skipped.stdout.contains("(first at 1, entry 2: "), "{}", skipped.stdout);
    assert!(
        skipped.stdout.contains("(first at 1, entry 4: not JSON: expected value (column 24 of the entry))"),
        "{}",
        skipped.stdout
    );
    let json = lab.ok(&["dataset", "inspect", "wrong.json", "--skip-bad", "--format", "json"]).json();
    assert_eq!(json["left_out"]["wrong_value"]["entry"], 2, "{json}");
}

#[test]
fn what_a_sweep_says_of_the_cache_on_one_side_only_is_a_difference() {
    let lab = Lab::new();
    let plan = |cache: &str| {
        format!(
            "sweepline: 1\nname: sides\nendpoints: {{ a: {{ url: 'http://a:8000/v1', engine: vllm }}, b: {{ url: 'http://b:8000/v1', engine: vllm }} }}\n\
             models: {{ m: {{ id: tiny }} }}\ncompare: {{ by: endpoint, baseline: a }}\n\
             sweeps: {{ s: {{ matrix: {{ endpoint: [a, b], scenario: [C], batch_size: [1, 8] }}, repeats: 3,\n\
             \x20 extend: [{{ when: {{ endpoint: b }}, with: {{ cache: {cache} }} }}] }} }}\n"
        )
    };
    let differs = |cache: &str| {
        lab.write("plan.yaml", &plan(cache));
        let found = lab.run(&["check", "plan.yaml", "--format", "json"]).json();
        let found = found["diagnostics"].as_array().unwrap().iter().filter(|one| one["code"] == "M008");
        let messages: Vec<String> = found.map(|one| one["message"].as_str().unwrap().to_owned()).collect();
        messages.into_iter().find(|message| message.contains("cache"))
    };
    assert_eq!(differs("warm"), None, "the other side is warm too");
    let message = differs("cold").expect("M008");
    assert!(message.contains("cache (") && message.contains("cold") && message.contains("warm"), "{message}");
}

#[test]
fn import_maps_what_a_plan_has() {
    let lab = Lab::new();
    lab.write(
        "data/sharegpt.json",
        r#"[{"id":"a","conversations":[{"from":"human","value":"What is a bog, and how is it made?"},{"from":"gpt","value":"Wet ground, made of moss over a long time."}]}]"#,
    );
    lab.write("script.sh", "vllm bench serve --model m --dataset-name sharegpt --dataset-path data/sharegpt.json --request-rate 5 --extra-body '{\"min_tokens\": 4, \"odd\": 1, \"stop\": [\"END\", \"{{\"]}' --chat-template-kwargs '{\"enable_thinking\": false}'\nvllm bench serve --model m --dataset-name prefix_repetition --prefix-repetition-num-prefixes 5 --request-rate 5\nvllm bench serve --model m --dataset-name sharegpt --dataset-path far/away.json --request-rate 5 --tokenizer org/name\n");
    let ended = lab.ok(&["import", "script.sh", "-o", "plan.yaml"]);
    let plan = std::fs::read_to_string(lab.path().join("plan.yaml")).unwrap();
    assert!(plan.contains("data: { file: data/sharegpt.json, as: sharegpt, on_bad: skip, filter:"), "{plan}");
    assert!(plan.contains("prefix: { tokens: 256, groups: 5 }"), "{plan}");
    assert!(
        plan.contains("min_tokens: 4") && plan.contains("chat_template_kwargs: { enable_thinking: false }"),
        "{plan}"
    );
    assert!(plan.contains(r#"stop: [END, "{{ '{{' }}"]"#), "{plan}");
    let listed = &ended.stderr;
    assert!(
        listed.contains("--extra-body odd = 1") && listed.contains("write it under `extra` of the endpoint if it does"),
        "{listed}"
    );
    assert!(
        listed.contains("file `far/away.json` not found here") && listed.contains("`data: { file: FILE }`"),
        "{listed}"
    );
    assert!(listed.contains("`tokenizer: server` counts with"), "{listed}");
    for false_sentence in ["sends no data sets", "this field is not sent", "share one prefix"] {
        assert!(!listed.contains(false_sentence) && !plan.contains(false_sentence), "{listed}");
    }
    lab.ok(&["preview", "plan.yaml"]);
    // If the plan is in another folder, the path of the file is relative to the plan, or not shown.
    lab.ok(&["import", "script.sh", "-o", "data/plan.yaml"]);
    assert!(std::fs::read_to_string(lab.path().join("data/plan.yaml")).unwrap().contains("{ file: sharegpt.json,"));
    lab.write("other/here", "");
    let other = lab.ok(&["import", "script.sh", "-o", "other/plan.yaml"]);
    assert!(other.stderr.contains("is not in the plan's folder"), "{}", other.stderr);
}

/// Returns the environment variables of a process's embedded servers.
fn variables_of_children(process: u32) -> Vec<String> {
    let of = |entry: std::fs::DirEntry| -> Option<String> {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent: u32 = stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let is_mock = parent == process && String::from_utf8_lossy(&line).contains("--parent-pipe");
        let variables = std::fs::read(entry.path().join("environ")).ok()?;
        is_mock.then(|| String::from_utf8_lossy(&variables).into_owned())
    };
    std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter_map(of).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn an_embedded_server_is_given_no_key() {
    let lab = lab::sweeps::lab();
    let running = lab::Running::start(lab.command(&["run", "plan.yaml"]).env("SWEEP_KEY", "CANARY7f3a9c51d2e84b60"));
    let variables = lab::wait_for("the embedded server", || {
        let found = variables_of_children(running.id());
        (!found.is_empty()).then_some(found)
    });
    assert!(variables.iter().all(|text| !text.contains("CANARY") && !text.contains("SWEEP_KEY")), "{variables:?}");
    // A busy machine may make a run invalid.
    assert!(matches!(running.end().code, Some(0 | 3)));
}

#[test]
fn the_words_of_a_server_move_no_cursor() {
    let server = lab::server::Server::start(|_, stream| {
        let body = "{\"error\":{\"message\":\"a\u{202e}b\u{200b}c\\u001b[2Jd\"}}";
        let _ = write!(stream, "HTTP/1.1 500 No\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    });
    let lab = Lab::new();
    let url = format!("url: 'http://127.0.0.1:{}/v1', engine: vllm", server.port);
    lab.write("plan.yaml", &lab::sweeps::PLAN.replace("engine: mock, mock: { ttft: 2ms, itl: 1ms, slots: 4 }", &url));
    let args = ["run", "plan.yaml", "--only", "batch_size == 1"];
    let ended = lab.run(&args);
    assert!(ended.stderr.contains("a b c [2Jd"), "{}", ended.stderr);
    has_no_marks(&args, &ended);
}

#[test]
fn a_server_that_does_not_end_its_answer_is_named() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
        let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{{");
        // Runs until the other side closes the connection.
        let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
    });
    let lab = Lab::new();
    let url = format!("url: 'http://127.0.0.1:{port}/v1', engine: vllm");
    let plan = lab::sweeps::PLAN.replace("engine: mock, mock: { ttft: 2ms, itl: 1ms, slots: 4 }", &url);
    lab.write("plan.yaml", &(plan + "timeouts: { request: 300ms }\n"));
    let ended = lab.run(&["probe", "plan.yaml"]);
    assert_eq!(ended.code, Some(6), "{}", ended.stderr);
    assert!(ended.stdout.contains("did not finish its response to /models within 300ms"), "{}", ended.stdout);
    server.join().unwrap();
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for_long() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = format!("http://{}/v1", silent.local_addr().unwrap());
    let url = format!("url: '{address}', engine: vllm, ready: {{ within: 0s }}");
    let lab = Lab::new();
    let plan = lab::sweeps::PLAN.replace("engine: mock, mock: { ttft: 2ms, itl: 1ms, slots: 4 }", &url);
    lab.write("plan.yaml", &(plan + "timeouts: { request: 300ms }\n"));
    let start = Instant::now();
    let running = lab.start(&["run", "plan.yaml"]);
    let ended = running.end();
    // Without the limit it would take ten minutes; this bound is far from both values.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert_eq!(ended.code, Some(6), "{}", ended.stderr);
    let said = format!("demo: {address} did not respond to /models within 300ms; wait until it has loaded its model");
    assert!(ended.stderr.contains(&said), "{said}\n{}", ended.stderr);
}
