//! Tests secrets in files outside the plan's folder: mounted ones, as container platforms mount them, and others
//! with `--allow-outside`. `unshare` gives each test its own `/run`.

use std::process::Command;

use lab::mock::Mock;
use lab::{Ended, Lab, program};

/// The key of the mock. It must not appear anywhere.
const CANARY: &str = "canary7f3a9c51d2e84b60";

fn plan(port: u16, reference: &str, more: &str) -> String {
    format!(
        "sweepline: 1\nname: mounted\nendpoints:\n  \
         a: {{ url: 'http://127.0.0.1:{port}/v1', engine: mock, api_key: {{ secret: '{reference}' }}{more} }}\n\
         models: {{ m: {{ id: tiny }} }}\nscenarios: {{ short: {{ base: B1, output_tokens: 4 }} }}\n\
         phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 100ms, min_requests: 3, at_most: 60s }}, drain: 20s }}\n\
         sweeps: {{ s: {{ matrix: {{ endpoint: [a], model: [m], scenario: [short], batch_size: [1] }}, repeats: 2 }} }}\n"
    )
}

fn mock() -> Mock {
    Mock::start_with(&["--ttft", "2ms", "--api-key-env", "MOCK_KEY"], |command| command.env("MOCK_KEY", CANARY))
}

/// Runs the program after `setup`, a shell script, in a mount namespace with an empty `/run`; `None` if this machine
/// does not allow such namespaces.
fn isolated(lab: &Lab, setup: &str, args: &str) -> Option<Ended> {
    if !Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: this machine does not allow mount namespaces");
        return None;
    }
    let script = format!("set -e; mount -t tmpfs none /run; {setup}\nexec '{}' {args}", program().display());
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &script]).current_dir(lab.path()).env("NO_COLOR", "1");
    lab.set_time(&mut command);
    Some(Ended::from(command.output().unwrap()))
}

/// Mounts a token as Kubernetes does: the file is a link through the link `..data`, which is replaced as a whole.
const SERVICE_ACCOUNT: &str = "
    folder=/run/secrets/kubernetes.io/serviceaccount
    mkdir -p $folder/..2026_01
    echo FIRST > $folder/..2026_01/token
    ln -s ..2026_01 $folder/..data
    ln -s ..data/token $folder/token
";

#[test]
fn a_mounted_token_is_read_through_its_links_and_again_before_each_run() {
    let mock = mock();
    for root in ["/run", "/var/run"] {
        let lab = Lab::new();
        let file = format!("file:{root}/secrets/kubernetes.io/serviceaccount/token");
        lab.write("plan.yaml", &plan(mock.port, &file, ""));
        let Some(ended) = isolated(&lab, &SERVICE_ACCOUNT.replace("FIRST", CANARY), "run plan.yaml") else { return };
        assert_eq!((ended.code, lab.runs().len()), (Some(0), 2), "{}{}", ended.stdout, ended.stderr);
        assert!(!format!("{}{}", ended.stdout, ended.stderr).contains(CANARY));
    }
    // The token changes after the first run, as the server's does.
    let lab = Lab::new();
    let server = lab::server::Server::start(|_, stream| drop(std::io::Write::write_all(stream, &lab::server::good())));
    lab.write("rotate.sh", "cd /run/secrets/kubernetes.io/serviceaccount; mkdir -p ..2026_02; echo second > ..2026_02/token; ln -sfn ..2026_02 ..data\n");
    let hook = ", hooks: { after_run: { command: [sh, rotate.sh] } }";
    let file = "file:/run/secrets/kubernetes.io/serviceaccount/token";
    lab.write("plan.yaml", &plan(server.port, file, hook));
    let Some(ended) = isolated(&lab, &SERVICE_ACCOUNT.replace("FIRST", "first"), "run plan.yaml") else { return };
    assert_eq!(lab.runs().len(), 2, "{}{}", ended.stdout, ended.stderr);
    let keys = |key: &str| server.seen().iter().filter(|head| head.contains(&format!("bearer {key}\r"))).count();
    assert!(keys("first") >= 3 && keys("second") >= 3, "{} {}", keys("first"), keys("second"));
}

#[test]
fn a_link_that_leaves_the_mounted_secrets_is_refused() {
    let mock = mock();
    let lab = Lab::new();
    let outside = lab.write("outside/key", CANARY);
    lab.write("plan.yaml", &plan(mock.port, "file:/run/secrets/key", ""));
    let setup = format!("mkdir /run/secrets; ln -s {} /run/secrets/key", outside.display());
    let Some(ended) = isolated(&lab, &setup, "run plan.yaml --allow-outside") else { return };
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    let words =
        format!("/run/secrets/key leads to {}, outside /run/secrets", outside.canonicalize().unwrap().display());
    assert!(ended.stderr.contains(&words), "{words}: {}", ended.stderr);
    // The whole folder may be a link.
    let setup = format!("mkdir /run/real; echo {CANARY} > /run/real/key; ln -s /run/real /run/secrets");
    let ended = isolated(&lab, &setup, "run plan.yaml").unwrap();
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn other_files_outside_the_folder_need_a_flag() {
    let mock = mock();
    let lab = Lab::new();
    let outside = lab::folder();
    let key = outside.path().join("key");
    std::fs::write(&key, CANARY).unwrap();
    let refused = [
        format!("file:{}", key.display()),
        "file:../key".to_owned(),
        "file:/run/secrets/../key".to_owned(),
        "file:/run/secrets".to_owned(),
        "file:/run/secrets2/key".to_owned(),
    ];
    for reference in &refused {
        lab.write("plan.yaml", &plan(mock.port, reference, ""));
        let ended = lab.run(&["check", "plan.yaml"]);
        assert_eq!(ended.code, Some(2), "{reference}: {}", ended.stderr);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        for part in ["E031", "is outside the plan's folder", "/var/run/secrets", "--allow-outside"] {
            assert!(said.contains(part), "{reference}: {part}: {said}");
        }
    }
    // A reading command needs no mounted file.
    lab.write("plan.yaml", &plan(mock.port, "file:/var/run/secrets/sweepline/none", ""));
    lab.ok(&["check", "plan.yaml"]);
    lab.write("plan.yaml", &plan(mock.port, &refused[0], ""));
    let ended = lab.ok(&["run", "plan.yaml", "--allow-outside"]);
    assert_eq!(lab.runs().len(), 2, "{}", ended.stderr);
}
