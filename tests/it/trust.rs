//! Tests what a user learns about a plan before it executes commands and sends secrets, that `--no-exec` prevents the
//! commands, and what a launched server inherits.

use serde_json::{Value, json};

use lab::{Ended, Lab, Server};

/// The value of every secret, which must not appear anywhere.
const CANARY: &str = "canary7f3a9c51";

/// Prefixes of the names of variables that configure engines.
const OF_ENGINES: [&str; 5] = ["CUDA_", "HF_", "NCCL_", "SGLANG_", "VLLM_"];

fn plan(endpoint: &str, sweep: &str) -> String {
    format!(
        "sweepline: 1\nname: trusted\nendpoints:\n  m: {{ {endpoint} }}\nmodels: {{ tiny: {{ id: mock }} }}\n\
         scenarios: {{ short: {{ base: B1, output_tokens: 8, headers: {{ X-Key: {{ secret: env:HEADER_KEY }} }} }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 200ms }}, drain: 10s }}\n\
         validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}\n\
         sweeps: {{ s: {{ matrix: {{ batch_size: [1] }}{sweep} }} }}\n"
    )
}

/// An endpoint whose server the plan launches. The script writes its environment to a file.
const LAUNCHED: &str = "engine: mock, api_key: { secret: env:API_KEY }, launch: { \
    command: [sh, -c, 'env > inherited; exec sweepline mock --ttft 5ms --port $P'], port: auto, \
    env: { TOKEN: { secret: env:SERVER_KEY }, HF_HOME: /models }, host_env: { P: '{{ port }}', CUDA_VISIBLE_DEVICES: '' }, \
    stop: { command: [touch, stopped] } }, hooks: { before_run: { command: [touch, hooked] } }";

/// Runs the program with the plan's secrets, and with variables of engines.
fn run(lab: &Lab, args: &[&str]) -> Ended {
    let mut command = lab.command(args);
    for (name, _) in std::env::vars().filter(|(name, _)| OF_ENGINES.iter().any(|prefix| name.starts_with(prefix))) {
        command.env_remove(name);
    }
    for name in ["API_KEY", "SERVER_KEY", "HEADER_KEY"] {
        command.env(name, format!("{CANARY}-{name}"));
    }
    command.env("NCCL_DEBUG", "its-value").env("HF_HOME", "elsewhere").env("CUDA_VISIBLE_DEVICES", "0");
    command.env("VLLM_LOGGING_LEVEL", "its-value").env("UNRELATED", "1");
    let ended = Ended::from(command.output().unwrap());
    assert!(!format!("{}{}", ended.stdout, ended.stderr).contains(CANARY), "{args:?}");
    ended
}

/// Returns the fields of each entry in a list of a JSON answer.
fn fields(answer: &Value, key: &str, names: &[&str]) -> Vec<Vec<Value>> {
    let entries = answer[key].as_array().unwrap_or_else(|| panic!("no {key}: {answer}"));
    entries.iter().map(|entry| names.iter().map(|name| entry[*name].clone()).collect()).collect()
}

#[test]
fn commands_and_secrets_are_listed_before_anything_happens() {
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(LAUNCHED, ""));
    let preview = run(&lab, &["preview", "plan.yaml", "--format", "json"]).json();
    lab.follows("preview", &preview);
    let commands = fields(&preview, "executes", &["endpoint", "purpose", "command"]);
    let purposes: Vec<&Value> = commands.iter().map(|command| &command[1]).collect();
    assert_eq!(purposes, ["launch", "stop", "before_run"]);
    assert_eq!(
        commands[1..],
        [[json!("m"), json!("stop"), json!("touch stopped")], [json!("m"), json!("before_run"), json!("touch hooked")]]
    );
    assert!(commands[0][2].as_str().unwrap().contains("exec sweepline mock"));
    let sent = fields(&preview, "sends", &["secret", "used_as", "to"]);
    let sent: Vec<Vec<&str>> = sent.iter().map(|of| of.iter().map(|text| text.as_str().unwrap()).collect()).collect();
    assert_eq!(
        sent,
        [
            ["env:API_KEY", "api_key", "the launched server"],
            ["env:HEADER_KEY", "header x-key", "the launched server"],
            ["env:SERVER_KEY", "variable TOKEN", "the launched server"],
        ]
    );
    let told = ["`touch stopped` (stop of m)", "touch hooked", "env:API_KEY to the launched server (api_key of m)"];
    for args in [&["preview", "plan.yaml"][..], &["run", "plan.yaml", "--dry-run"]] {
        let text = run(&lab, args).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        told.iter().for_each(|words| assert!(text.contains(words), "{words}: {text}"));
    }
    assert!(!lab.path().join("hooked").exists() && !lab.path().join("inherited").exists());
    let ended = run(&lab, &["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let (before, _) = ended.stderr.split_once("m: starting ").expect("the server is started");
    told.iter().for_each(|words| assert!(before.contains(words), "{words}: {before}"));
    assert!(lab.path().join("hooked").exists() && lab.path().join("stopped").exists());
    // A plan with nothing to do executes nothing, so nothing is listed.
    let again = run(&lab, &["run", "plan.yaml"]);
    assert!(!again.stderr.contains("executes") && !again.stderr.contains("sends"), "{}", again.stderr);
    let preview = run(&lab, &["preview", "plan.yaml", "--format", "json"]).json();
    assert!(preview.get("executes").is_none() && preview.get("sends").is_none(), "{preview}");
}

#[test]
fn nothing_is_executed_without_permission() {
    let lab = Lab::new();
    let workers = ", engine: { workers: { count: 2, start: ['sweepline'] } }";
    lab.write("plan.yaml", &plan(LAUNCHED, workers));
    let ended = run(&lab, &["run", "plan.yaml", "--no-exec"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    for words in [
        "(launch of m)",
        "`touch stopped` (stop of m)",
        "`touch hooked` (before_run hook of m)",
        "`sweepline` (workers)",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    assert!(!lab.results().join("runs").exists());
    ["hooked", "inherited", "stopped"].iter().for_each(|name| assert!(!lab.path().join(name).exists(), "{name}"));
    // A plan without commands is executed.
    lab.write("plan.yaml", &plan("engine: mock", ""));
    let ended = run(&lab, &["run", "plan.yaml", "--no-exec"]);
    assert_eq!((ended.code, lab.runs().len()), (Some(0), 1), "{}", ended.stderr);
}

#[test]
fn a_command_that_prints_a_secret_needs_permission_too() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    lab.write("token.sh", "touch printed; echo some-long-token\n");
    let endpoint = format!(
        "engine: mock, url: '{}', api_key: {{ secret: {{ command: [sh, token.sh], valid: 1h }} }}",
        server.url()
    );
    lab.write("plan.yaml", &plan(&endpoint, ""));
    let printed = lab.path().join("printed");
    for args in [&["run", "plan.yaml"][..], &["probe", "plan.yaml"], &["preview", "plan.yaml", "--probe"]] {
        let refused = run(&lab, &[args, &["--no-exec"]].concat());
        assert_eq!(refused.code, Some(2), "{args:?} {}", refused.stderr);
        assert!(refused.stderr.contains("`sh token.sh` (secret of m)"), "{}", refused.stderr);
        assert!(!printed.exists(), "{args:?}");
    }
    let preview = run(&lab, &["preview", "plan.yaml", "--format", "json"]).json();
    let sent = fields(&preview, "sends", &["secret", "to"]);
    let host = server.url().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    assert_eq!(sent[0], [json!("the output of `sh token.sh`"), json!(host)]);
    assert!(!printed.exists());
    let ended = run(&lab, &["probe", "plan.yaml"]);
    assert!(ended.code == Some(0) && printed.exists(), "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn a_launched_server_inherits_no_secret_and_its_variables_are_recorded_by_name() {
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(LAUNCHED, ""));
    let ended = run(&lab, &["run", "plan.yaml"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let inherited = std::fs::read_to_string(lab.path().join("inherited")).unwrap();
    let value = |name: &str| inherited.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    assert_eq!([value("API_KEY"), value("SERVER_KEY"), value("HEADER_KEY")], [None; 3]);
    assert_eq!(value("TOKEN"), Some(&*format!("{CANARY}-SERVER_KEY")));
    assert_eq!([value("NCCL_DEBUG"), value("UNRELATED")], [Some("its-value"), Some("1")]);
    assert_eq!([value("HF_HOME"), value("CUDA_VISIBLE_DEVICES")], [Some("/models"), Some("")]);
    // Only the names are recorded, and only of variables that the plan does not set.
    let start = &lab.only_run().json["environment"]["server_start"];
    assert_eq!(start["inherited_variables"], json!(["NCCL_DEBUG", "VLLM_LOGGING_LEVEL"]));
    let (id, stored) = lab.runs().into_iter().map(|(id, run)| (id, run.json.to_string())).next().unwrap();
    assert!(!stored.contains("its-value"), "{stored}");
    for command in ["show", "why"] {
        let ended = run(&lab, &[command, &id]);
        let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("NCCL_DEBUG, VLLM_LOGGING_LEVEL"), "{text}");
        let answer = run(&lab, &[command, &id, "--format", "json"]).json();
        lab.follows(command, &answer);
    }
    // They are not part of the run's identity.
    let other = Ended::from(lab.command(&["preview", "plan.yaml"]).output().unwrap());
    assert!(other.stdout.contains("1 cached"), "{}", other.stdout);
}
