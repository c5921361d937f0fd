//! Tests that small files which are read whole must be regular files of bounded size: anything else is refused at
//! once, by name, instead of blocking the program or filling its memory.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use lab::{Ended, Lab, Server, peak_memory, wait_for};

/// The most memory that the program may use, in bytes. Its own code and the largest of the limits need less.
const MOST_MEMORY: u64 = 1 << 30;

/// Fields of the plan's endpoint and model, which name the file `odd`.
struct Named<'a> {
    endpoint: &'a str,
    model: &'a str,
}

const NOT_NAMED: Named<'static> = Named { endpoint: "engine: mock", model: "" };

fn plan(named: &Named) -> String {
    let Named { endpoint, model } = named;
    format!(
        "sweepline: 1\nname: odd\nendpoints:\n  e: {{ {endpoint} }}\n\
         models: {{ m: {{ id: m{model} }} }}\nscenarios: {{ s: {{ base: B1, output_tokens: 4 }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: 200ms, drain: 1s }}\n\
         sweeps: {{ a: {{ matrix: {{ batch_size: [1] }} }} }}\n"
    )
}

/// Runs the program until it ends, and asserts that it needs little memory.
fn bounded(lab: &Lab, args: &[&str]) -> Ended {
    let mut running = lab.start(args);
    let mut peak = 0;
    wait_for(&format!("the end of sweepline {args:?}"), || {
        peak = peak_memory(running.id()).unwrap_or(0).max(peak);
        (running.has_ended() || peak > MOST_MEMORY).then_some(())
    });
    assert!(peak <= MOST_MEMORY, "{args:?} uses {peak} bytes");
    running.end()
}

/// What is put in the place of a file, and how an error calls it.
type Odd = (&'static str, fn(&Path));

fn large(path: &Path) {
    std::fs::File::create(path).unwrap().set_len(4 << 30).unwrap();
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A link to a pipe, like those of mounted secrets.
fn link_to_pipe(path: &Path) {
    let target = path.with_extension("target");
    if !target.exists() {
        pipe(&target);
    }
    symlink(target, path).unwrap();
}

const ODD: [Odd; 5] = [
    ("it is a named pipe", pipe),
    ("it is a named pipe", link_to_pipe),
    ("it is a device", |path| symlink("/dev/zero", path).unwrap()),
    ("it is a folder", |path| std::fs::create_dir(path).unwrap()),
    ("", large),
];

#[test]
fn a_file_that_is_not_regular_or_too_large_is_refused_by_name() {
    let lab = Lab::new();
    lab.write("good.yaml", &plan(&NOT_NAMED));
    let secret = "engine: vllm, ready: { within: 0s }, url: 'http://127.0.0.1:1/v1', api_key: { secret: 'file:odd' }";
    let authority = "engine: vllm, ready: { within: 0s }, url: 'https://127.0.0.1:1/v1', tls: { ca: odd }";
    lab.write("secret.yaml", &plan(&Named { endpoint: secret, model: "" }));
    lab.write("authority.yaml", &plan(&Named { endpoint: authority, model: "" }));
    lab.write("tokenizer.yaml", &plan(&Named { endpoint: "engine: mock", model: ", tokenizer: odd" }));
    lab.write("fragment.yaml", &format!("use: odd.yaml\n{}", plan(&NOT_NAMED)));
    let cases: [(&str, &[&str]); 9] = [
        ("odd.yaml", &["check", "odd.yaml"]),
        ("odd.yaml", &["run", "odd.yaml"]),
        ("odd.yaml", &["check", "fragment.yaml", "--allow-outside"]),
        ("odd", &["run", "secret.yaml", "--allow-outside"]),
        ("odd", &["run", "authority.yaml", "--allow-outside"]),
        ("odd", &["check", "tokenizer.yaml", "--allow-outside"]),
        ("odd", &["compare", "good.yaml", "--against", "odd"]),
        ("odd", &["preview", "good.yaml", "--frozen", "odd"]),
        ("odd", &["import", "odd"]),
    ];
    for (name, args) in cases {
        let path = lab.path().join(name);
        for (words, put) in ODD {
            // A folder may be a folder of results, of a tokenizer, or of a plan's fragments.
            put(&path);
            let ended = bounded(&lab, args);
            let told = format!("{}{}", ended.stdout, ended.stderr);
            assert_eq!(ended.code, Some(2), "{args:?} {words}: {told}");
            assert!(told.contains("odd"), "{args:?}: {told}");
            let is_other_folder = words == "it is a folder" && (args[0] == "compare" || args[1] == "tokenizer.yaml");
            assert!(told.contains(words) || is_other_folder, "{args:?}: {words}: {told}");
            assert!(words.is_empty() || !told.contains("check the path and its permissions"), "{told}");
            if path.is_dir() { std::fs::remove_dir(&path).unwrap() } else { std::fs::remove_file(&path).unwrap() }
        }
    }
    assert!(lab.runs().is_empty());
}

#[test]
fn links_to_regular_files_are_followed() {
    let lab = Lab::new();
    let text = plan(&NOT_NAMED);
    lab.write("inner/plan.yaml", &text);
    lab.write("inner/key", "canary7f3a9c51\n");
    symlink("inner/plan.yaml", lab.path().join("plan.yaml")).unwrap();
    symlink("key", lab.path().join("inner/second")).unwrap();
    symlink("inner/second", lab.path().join("key")).unwrap();
    lab.ok(&["check", "plan.yaml"]);
    let server = Server::start(&lab, &["--model", "m"]);
    let secret = format!("engine: mock, url: '{}', api_key: {{ secret: 'file:key' }}", server.url());
    lab.write("secret.yaml", &plan(&Named { endpoint: &secret, model: "" }));
    lab.ok(&["run", "secret.yaml"]);
    assert_eq!(lab.runs().len(), 1);
}
