//! Tests editor support by `schemas/plan.schema.json`: a real yaml-language-server opens plans and
//! returns diagnostics, hover texts and completions.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use lab::{DEADLINE, Lab};

/// Returns the language server as installed by `.ci/run`; `None`, with a message, if it is missing.
fn program() -> Option<PathBuf> {
    let folder = std::env::var_os("SWEEPLINE_TEST_NODE").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/test-node"));
    let program = folder.join("node_modules/yaml-language-server/bin/yaml-language-server");
    let node = Command::new("node").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if program.exists() && node.is_ok_and(|status| status.success()) {
        return Some(program);
    }
    eprintln!("skipped: {} or node is not installed; run `.ci/run`", program.display());
    None
}

/// A language server over stdio, which is killed on drop.
struct Editor {
    child: Child,
    stdin: ChildStdin,
    messages: Receiver<Value>,
    waiting: VecDeque<Value>,
    asked: u64,
}

impl Editor {
    fn start(program: &Path, folder: &Path) -> Editor {
        let mut command = Command::new("node");
        command.arg(program).arg("--stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (sender, messages) = channel();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            while let Some(message) = read(&mut stdout) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take().unwrap();
        let mut editor = Editor { child, stdin, messages, waiting: VecDeque::new(), asked: 0 };
        let completion = json!({ "completionItem": { "snippetSupport": true } });
        let capabilities =
            json!({ "workspace": { "configuration": true }, "textDocument": { "completion": completion } });
        let folder = address(folder);
        editor.ask(
            "initialize",
            json!({ "processId": std::process::id(), "rootUri": folder, "capabilities": capabilities }),
        );
        editor.send(json!({ "method": "initialized", "params": {} }));
        editor.send(json!({ "method": "workspace/didChangeConfiguration", "params": { "settings": settings() } }));
        editor
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        let text = message.to_string();
        write!(self.stdin, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        self.stdin.flush().unwrap();
    }

    /// Waits for the next wanted message. In the meantime, responds to the server's requests and
    /// keeps other messages.
    fn wait(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.waiting.iter().position(&wanted) {
            return self.waiting.remove(at).unwrap();
        }
        loop {
            let message =
                self.messages.recv_timeout(DEADLINE).unwrap_or_else(|_| panic!("timed out waiting for {what}"));
            if message["method"].is_string() && !message["id"].is_null() {
                let items = message["params"]["items"].as_array().cloned().unwrap_or_default();
                let answer: Vec<Value> = items.iter().map(|item| answer_to(&item["section"])).collect();
                let result = if items.is_empty() { Value::Null } else { answer.into() };
                self.send(json!({ "id": message["id"], "result": result }));
            } else if wanted(&message) {
                return message;
            } else {
                self.waiting.push_back(message);
            }
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.send(json!({ "id": id, "method": method, "params": params }));
        self.wait(method, |message| message["id"] == id && message["method"].is_null())["result"].take()
    }

    /// Opens a file and returns the diagnostics that the editor would underline: line from 1, and
    /// message.
    fn open(&mut self, path: &Path) -> Vec<(u64, String)> {
        let text = std::fs::read_to_string(path).unwrap();
        let document = json!({ "uri": address(path), "languageId": "yaml", "version": 1, "text": text });
        self.send(json!({ "method": "textDocument/didOpen", "params": { "textDocument": document } }));
        let uri = address(path);
        let told = self.wait("diagnostics", |message| {
            message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri.as_str()
        });
        let found = told["params"]["diagnostics"].as_array().unwrap().iter();
        found
            .map(|one| {
                (one["range"]["start"]["line"].as_u64().unwrap() + 1, one["message"].as_str().unwrap().to_owned())
            })
            .collect()
    }

    /// Sends a request for the position of `word` in the line that starts with `line`.
    fn at(&mut self, method: &str, path: &Path, line: &str, word: &str) -> Value {
        let text = std::fs::read_to_string(path).unwrap();
        let (number, found) = text
            .lines()
            .enumerate()
            .find(|(_, text)| text.trim_start().starts_with(line))
            .unwrap_or_else(|| panic!("{line}"));
        let character = if word.is_empty() { found.len() } else { found.find(word).unwrap() };
        let params =
            json!({ "textDocument": { "uri": address(path) }, "position": { "line": number, "character": character } });
        self.ask(method, params)
    }

    fn hover(&mut self, path: &Path, line: &str, word: &str) -> String {
        self.at("textDocument/hover", path, line, word)["contents"]["value"].as_str().unwrap_or_default().to_owned()
    }

    /// Returns the completions at the end of a line, with the text that each inserts.
    fn completions(&mut self, path: &Path, line: &str) -> Vec<(String, String)> {
        let offered = self.at("textDocument/completion", path, line, "");
        let text = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
        let items = offered["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| (text(item, "label"), text(item, "insertText"))).collect()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn address(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// Returns settings without the online catalog of schemas.
fn settings() -> Value {
    json!({ "yaml": { "hover": true, "completion": true, "validate": true, "schemaStore": { "enable": false } } })
}

fn answer_to(section: &Value) -> Value {
    section.as_str().and_then(|section| settings().get(section).cloned()).unwrap_or_else(|| json!({}))
}

/// Reads one message: headers, an empty line, a body.
fn read(from: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// Creates a folder like this repository, in which the schema is at the path given in the first
/// line of plans.
fn folder() -> Lab {
    let lab = Lab::new();
    lab.write("schemas/plan.schema.json", &lab.ok(&["schema"]).stdout);
    lab
}

#[test]
fn an_editor_has_nothing_to_say_about_our_plans_and_explains_their_fields() {
    let Some(program) = program() else { return };
    let lab = folder();
    let mut editor = Editor::start(&program, lab.path());
    let plans = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans");
    for entry in std::fs::read_dir(plans).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.extension().is_some_and(|ending| ending == "yaml") {
            let name = entry.file_name().unwrap().to_str().unwrap();
            let path = lab.write(&format!("plans/{name}"), &std::fs::read_to_string(&entry).unwrap());
            assert_eq!(editor.open(&path), [], "{name}");
        }
    }
    let plan = lab.path().join("plans/quickstart.yaml");
    for (line, word, said) in [
        ("phases:", "measure", "Full load, measured."),
        ("qps:", "qps", "Requests started per second"),
        ("lean:", "ttft", "Time from the start of a request in a slot to its first token"),
        ("lean:", "engine", "`vllm`: vLLM."),
        ("hypothesis:", "hypothesis", "before you measure"),
    ] {
        let hover = editor.hover(&plan, line, word);
        assert!(hover.contains(said), "{line} {word}: {hover}");
    }
}

const DRAFT: &str = "# yaml-language-server: $schema=../schemas/plan.schema.json
sweepline: 1
name: draft
endpoints:
  a:
    url: http://127.0.0.1:8000/v1
    engine: vlm
    hardware:
      gpus: 0
models: { m: { id: m } }
sed: 5
phases:
  measure: 120
  f
sweeps:
  s:
    repeats: three
    matrix:
      batch_size: [1, 8]
      q
";

#[test]
fn an_editor_underlines_mistakes_and_completes_keys_and_values() {
    let Some(program) = program() else { return };
    let lab = folder();
    let mut editor = Editor::start(&program, lab.path());
    let path = lab.write("plans/draft.yaml", DRAFT);
    let found = editor.open(&path);
    for (line, word) in [(7, "vllm"), (9, "minimum"), (11, "sed"), (13, "string"), (17, "write a whole number")] {
        assert!(found.iter().any(|(at, said)| *at == line && said.contains(word)), "{line} {word}: {found:#?}");
    }
    let offers = |found: &[(String, String)], label: &str| found.iter().find(|offer| offer.0 == label).cloned();
    let engines = editor.completions(&path, "engine:");
    for engine in ["vllm", "sglang", "mock"] {
        assert!(offers(&engines, engine).is_some(), "{engine}: {engines:?}");
    }
    let phases = editor.completions(&path, "f");
    assert_eq!(offers(&phases, "fill").map(|(_, insert)| insert), Some("fill: ${1:30s}".to_owned()), "{phases:?}");
    let axes = editor.completions(&path, "q");
    let (_, rates) = offers(&axes, "qps").unwrap_or_else(|| panic!("{axes:?}"));
    assert_eq!(rates.split_whitespace().collect::<Vec<_>>(), ["qps:", "-", "${1:1}", "-", "${2:5}", "-", "${3:10}"]);
}
