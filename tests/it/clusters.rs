//! Tests plans on a cluster: the output of `submit --dry-run`, and Kubernetes with a fake kubectl.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use lab::Lab;

/// Returns a plan with these endpoints and sweeps.
fn plan(endpoints: &str, rest: &str) -> String {
    format!(
        "sweepline: 1
name: parts
endpoints:
{endpoints}
models: {{ m: {{ id: tiny }} }}
scenarios: {{ s: {{ base: B1, output_tokens: 4 }} }}
phases: {{ fill: 20ms, stabilize: 20ms, measure: 150ms, drain: 2s }}
slo: {{ ttft: {{ p90: 1s }} }}
{rest}"
    )
}

/// Returns the elements of a plan, and the dependencies of each script.
fn elements(lab: &Lab, plan: &str) -> (Vec<String>, Vec<String>) {
    lab.write("plan.yaml", plan);
    let answer = lab.ok(&["submit", "plan.yaml", "--on", "slurm", "--dry-run", "--format", "json"]).json();
    let texts = |list: &str, key: &str| -> Vec<String> {
        answer[list].as_array().unwrap().iter().map(|one| one[key].as_str().unwrap().to_owned()).collect()
    };
    let waits = |command: String| {
        command.split(' ').find_map(|word| word.strip_prefix("--dependency=")).unwrap_or_default().to_owned()
    };
    (texts("elements", "name"), texts("files", "command").into_iter().map(waits).collect())
}

#[test]
fn parts_follow_from_what_endpoints_share() {
    let lab = Lab::new();
    let endpoints = "  a: { url: \"http://127.0.0.1:9/v1\" }
  b: { url: \"http://127.0.0.1:9/v1/\", engine: vllm }
  c: { url: \"http://127.0.0.1:8/v1\" }
  d: { launch: { command: [serve, \"{{ port }}\"], port: auto } }
  e: { launch: { command: [serve, \"{{ port }}\"], port: auto } }
  f: { launch: { command: [serve, \"{{ port }}\"], port: auto }, resource: c }";
    let all = "{ endpoint: [a, b, c, d, e, f], model: [m], scenario: [s], batch_size: [1] }";
    let (names, _) = elements(&lab, &plan(endpoints, &format!("sweeps:\n  s: {{ matrix: {all} }}\n")));
    assert_eq!(names, ["a", "c", "d", "e"], "a server is one part, and so are a launched server and a resource");
    let told = "{ matrix: { endpoint: [c, d], model: [m], scenario: [s], batch_size: [1] }, repeats: 8, \
                compare: { by: endpoint, baseline: c, margin: 5%, sequential: true } }";
    let (names, _) = elements(&lab, &plan(endpoints, &format!("sweeps:\n  s: {{ matrix: {all} }}\n  t: {told}\n")));
    assert_eq!(names, ["a", "c", "e"], "endpoints compared until they can be distinguished stay together");
}

#[test]
fn elements_wait_for_what_other_parts_make() {
    let lab = Lab::new();
    let endpoints = "  a: { engine: mock }\n  b: { engine: mock }";
    let of = |endpoints: &str, load: &str| {
        format!("matrix: {{ endpoint: [{endpoints}], model: [m], scenario: [s], {load} }}")
    };
    let chain = format!(
        "sweeps:\n  limit: {{ {}, search: {{ qps: {{ from: 1, to: 64 }}, meets: slo }} }}\n  \
         sustained: {{ after: limit, {} }}\n",
        of("a, b", "").replace(", }", " }"),
        of("a, b", "qps: [{ from: limit, take: max_qps_under_slo, over: endpoint, use: min, times: 0.8 }]"),
    );
    let (names, waits) = elements(&lab, &plan(endpoints, &chain));
    assert_eq!(names, ["a: limit", "b: limit", "a: sustained", "b: sustained"]);
    assert_eq!(waits, ["", "afterok:JOB1_0,afterok:JOB1_1"], "a load that is found needs both results");
    let chain = format!(
        "sweeps:\n  one: {{ {} }}\n  two: {{ after: one, {} }}\n  three: {{ after: two, {} }}\n",
        of("a", "batch_size: [1]"),
        of("a", "batch_size: [2]"),
        of("a, b", "batch_size: [4]"),
    );
    let (names, waits) = elements(&lab, &plan(endpoints, &chain));
    assert_eq!(names, ["a", "b"], "one process measures sweeps that only wait for their own part");
    assert_eq!(waits, ["", "afterany:JOB1_0"]);
}

#[test]
fn a_script_and_manifests_say_what_the_plan_asks_for() {
    let lab = Lab::new();
    let endpoints = "  big:
    launch: { command: [vllm, serve, \"{{ model.id }}\", --port, \"{{ port }}\"], port: auto, env: { HF_TOKEN: { secret: \"env:HF_TOKEN\" } } }
    resources:
      gpus: 8
      cpus: 32
      memory: 200GB
      time: 4h
      partition: h100
      account: team
      slurm: [--constraint=nvlink]
      kubernetes:
        image: registry.example.org/bench:1
        claim: results
        secret: sweepline
        service_account: bench
        node_selector: { pool: h100 }
        tolerations: [{ key: nvidia.com/gpu, effect: NoSchedule }]
  other: { url: \"http://vllm.bench.svc:8000/v1\", api_key: { secret: \"env:KEY\" }, resources: { kubernetes: { image: \"registry.example.org/sweepline:1\", claim: results, secret: sweepline } } }";
    let sweeps = "sweeps:\n  one: { matrix: { endpoint: [big, other], model: [m], scenario: [s], batch_size: [1] } }\n  \
                  two: { after: one, matrix: { endpoint: [other], model: [m], scenario: [s], batch_size: [2] } }\n";
    lab.write("plan.yaml", &plan(endpoints, sweeps));
    let mut command = lab.command(&["submit", "plan.yaml", "--on", "slurm", "--dry-run"]);
    let output = command.env("HF_TOKEN", "hidden-value").env("KEY", "hidden-value").output().unwrap();
    let text = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        assert!(!text.contains("hidden-value"), "scripts contain no secret");
        let text = text.replace(concat!("sweepline ", env!("CARGO_PKG_VERSION")), "sweepline VERSION");
        lab::with_program_at("/bin/sweepline", &text).replace(&lab.path().display().to_string(), "/lab")
    };
    insta::assert_snapshot!("slurm_script", text(output.stdout));
    let ended = lab.ok(&["submit", "plan.yaml", "--on", "kubernetes", "--dry-run"]);
    let jobs = ended.stdout.split_once("# job-").unwrap().1.to_owned();
    insta::assert_snapshot!("kubernetes_jobs", text(jobs.into_bytes()));
    assert!(!lab.results().exists(), "a dry run writes nothing");
}

#[test]
fn pods_read_mounted_secrets_and_execute_token_commands_themselves() {
    let lab = Lab::new();
    let one = "sweeps:\n  s: { matrix: { endpoint: [a], model: [m], scenario: [s], batch_size: [1] } }\n";
    for secret in [
        "'file:/var/run/secrets/kubernetes.io/serviceaccount/token'",
        "{ command: [gcloud, auth, print-access-token], valid: 50m }",
        "{ command: [/opt/token, a], valid: 50m }",
    ] {
        let endpoint = format!(
            "  a: {{ url: \"http://vllm:8000/v1\", api_key: {{ secret: {secret} }}, \
             resources: {{ kubernetes: {{ image: i, claim: c }} }} }}"
        );
        lab.write("plan.yaml", &plan(&endpoint, one));
        let text = lab.ok(&["submit", "plan.yaml", "--on", "kubernetes", "--dry-run"]).stdout;
        assert!(!text.contains("secretKeyRef"), "{text}");
        // The plan in the ConfigMap is complete.
        let written = text.split("plan.yaml: |").nth(1).unwrap().lines().skip(1);
        let written: Vec<&str> = written.take_while(|line| line.is_empty() || line.starts_with("    ")).collect();
        lab.write("pod.yaml", &written.join("\n"));
        let ids = |file: &str| lab.ok(&["preview", file, "--format", "json"]).json()["runs"][0]["id"].clone();
        assert_eq!(ids("pod.yaml"), ids("plan.yaml"));
    }
}

#[test]
fn what_a_cluster_needs_and_a_plan_lacks_is_named() {
    let lab = Lab::new();
    let refused = |endpoints: &str, on: &str, words: &str| {
        let one = "sweeps:\n  s: { matrix: { endpoint: [a], model: [m], scenario: [s], batch_size: [1] } }\n";
        lab.write("plan.yaml", &plan(endpoints, one));
        let ended = lab.run(&["submit", "plan.yaml", "--on", on, "--dry-run"]);
        assert!(ended.code == Some(2) && ended.stderr.contains(words), "{words}: {}", ended.stderr);
    };
    let url = "url: \"http://vllm:8000/v1\"";
    refused(&format!("  a: {{ {url} }}"), "kubernetes", "endpoint `a` has no image for Kubernetes: add resources");
    let pod = "resources: { kubernetes: { image: i, claim: c } }";
    let key = format!("  a: {{ {url}, {pod}, api_key: {{ secret: \"env:KEY\" }} }}");
    refused(&key, "kubernetes", "the plan reads a secret from KEY, but endpoint `a` has no secret for Kubernetes");
    let with_key = |secret: &str| format!("  a: {{ {url}, {pod}, api_key: {{ secret: {secret} }} }}");
    refused(&with_key("'file:keys/a'"), "kubernetes", "a pod has no file for the secret file:keys/a");
    let own_script = "{ command: [./token.sh, a], valid: 50m }";
    refused(&with_key(own_script), "kubernetes", "a pod has no file for the token command `./token.sh a`");
    refused(&format!("  a: {{ {url}, resources: {{ memory: 200 }} }}"), "slurm", "amount of memory");
    refused(&format!("  a: {{ {url}, resources: {{ gpus: 9999 }} }}"), "slurm", "`gpus` must be 0 to 1024, not 9999");
    refused(&format!("  a: {{ {url}, resources: {{ slurm: [--mem=1G] }} }}"), "slurm", "write `memory`");
    refused(
        &format!("  a: {{ {url}, resources: {{ slurm: [nvlink] }} }}"),
        "slurm",
        "is not a single long option of sbatch",
    );
    refused(&format!("  a: {{ {url}, resources: {{ partition: \"a b\" }} }}"), "slurm", "one word without spaces");
    let mock = "  a: { engine: mock }";
    lab.write(
        "plan.yaml",
        &plan(mock, "sweeps:\n  s: { matrix: { endpoint: [a], model: [m], scenario: [s], batch_size: [1] } }\n"),
    );
    let ended = lab.run(&["run", "plan.yaml", "--part", "x"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("the plan has the parts `a`"), "{}", ended.stderr);
}

/// A fake kubectl: stores the manifests that are applied, and returns them. The state of a Job is in
/// the file with the Job's name.
const KUBECTL: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 1
case $1 in
  version) exit 0 ;;
  apply) name=$(sed -n 's/^  name: //p' "$3" | head -n 1); case $(head -n 5 "$3") in *"kind: Job"*) echo '{}' > "$name.job" ;; esac ;;
  get)
    comma=
    printf '{"items":['
    for job in *.job; do
      [ -e "$job" ] || continue
      printf '%s{"metadata":{"name":"%s"},"status":%s}' "$comma" "${job%.job}" "$(cat "$job")"
      comma=,
    done
    printf ']}'
    ;;
  delete) shift 4; for job in "$@"; do rm -f "$job.job"; done ;;
esac
"#;

#[test]
fn kubernetes_gets_what_waits_once_its_turn_has_come() {
    let lab = Lab::new();
    let kubectl = lab.write("bin/kubectl", KUBECTL);
    std::fs::set_permissions(&kubectl, std::fs::Permissions::from_mode(0o755)).unwrap();
    let pod = "resources: { kubernetes: { image: i, claim: c } }";
    // Servers launched on one machine take turns; on a cluster, each has its own job.
    let launched = |name: &str| {
        let command = "[sweepline, mock, --port, '{{ port }}']";
        format!("  {name}: {{ engine: mock, launch: {{ command: {command}, port: auto }}, {pod} }}\n")
    };
    let endpoints = launched("a") + launched("b").trim_end();
    let sweeps = "sweeps:\n  one: { matrix: { endpoint: [a, b], model: [m], scenario: [s], batch_size: [1] } }\n  \
                  two: { after: one, matrix: { endpoint: [a], model: [m], scenario: [s], batch_size: [2] } }\n";
    lab.write("plan.yaml", &plan(&endpoints, sweeps));
    let call = |args: &[&str]| {
        let mut command: Command = lab.command(args);
        let path = format!("{}:{}", lab.path().join("bin").display(), lab::path_with_program().display());
        let output = command.env("PATH", path).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        serde_json::from_str::<Value>(&text)
            .unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
    };
    let states = |args: &[&str]| -> Vec<String> {
        let status = call(&[&["status", "plan.yaml", "--results", "there", "--format", "json"], args].concat());
        status["elements"].as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap().to_owned()).collect()
    };
    let submitted = call(&["submit", "plan.yaml", "--on", "kubernetes", "--results", "there", "--format", "json"]);
    let jobs: Vec<&str> =
        submitted["elements"].as_array().unwrap().iter().map(|one| one["job"].as_str().unwrap()).collect();
    let is_named =
        |(at, job): (usize, &&str)| job.starts_with("sweepline-parts-") && job.ends_with(&format!("-1-{at}"));
    assert!(jobs.len() == 3 && jobs.iter().enumerate().all(is_named), "{jobs:?}");
    let job = |at: usize| lab.path().join("bin").join(format!("{}.job", jobs[at]));
    assert!(lab.path().join("there/submit/0001/job-2.yaml").exists() && !lab.results().exists());
    assert!(job(0).exists() && job(1).exists() && !job(2).exists(), "a waiting job is not applied");
    std::fs::write(job(0), r#"{ "active": 1 }"#).unwrap();
    assert_eq!(states(&["--advance"]), ["running", "queued", "waiting"]);
    let complete = r#"{ "conditions": [{ "type": "Complete", "status": "True" }] }"#;
    let failed = r#"{ "conditions": [{ "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded" }] }"#;
    std::fs::write(job(0), complete).unwrap();
    std::fs::write(job(1), failed).unwrap();
    assert_eq!(states(&[]), ["ended", "failed", "waiting"], "its results are elsewhere");
    run_pod(&lab, 0);
    assert_eq!(
        states(&["--advance"]),
        ["done", "failed", "queued"],
        "a sweep runs after another one, however that one ended"
    );
    assert!(job(2).exists());
    run_pod(&lab, 2);
    std::fs::write(job(2), complete).unwrap();
    assert_eq!(states(&[]), ["done", "failed", "done"]);

    let again = call(&["submit", "plan.yaml", "--on", "kubernetes", "--results", "there", "--format", "json"]);
    let again: Vec<&str> =
        again["elements"].as_array().unwrap().iter().map(|one| one["job"].as_str().unwrap()).collect();
    let [again] = again[..] else { panic!("only the failed one: {again:?}") };
    let cancelled = call(&["cancel", "plan.yaml", "--results", "there", "--format", "json"]);
    assert_eq!(cancelled["cancelled"], serde_json::json!([again]));
    let left = |job: &str| lab.path().join("bin").join(format!("{job}.job")).exists();
    assert!(!left(again) && left(jobs[0]), "only pending and running jobs are deleted");
    assert_eq!(states(&[]), ["done", "cancelled", "done"]);
    run_pod(&lab, 1);
    assert_eq!(states(&[]), ["done", "done", "done"]);
    lab.ok(&["verify", "--results", "there"]);
    lab.run(&["run", "plan.yaml"]);
    let names = |folder: &str| -> BTreeSet<std::ffi::OsString> {
        std::fs::read_dir(lab.path().join(folder).join("runs")).unwrap().map(|run| run.unwrap().file_name()).collect()
    };
    assert_eq!(names("there"), names("results"), "running in a pod changes no id");
}

/// Acts as a kubelet for the Job of an element: runs its command, with the plan from the ConfigMap and
/// the volume of the claim at their mount paths.
fn run_pod(lab: &Lab, at: usize) {
    let manifest = |name: &str| -> Value {
        serde_yaml::from_str(&std::fs::read_to_string(lab.path().join("there/submit/0001").join(name)).unwrap())
            .unwrap()
    };
    lab.write("pod/plan.yaml", manifest("plan.yaml")["data"]["plan.yaml"].as_str().unwrap());
    let job = manifest(&format!("job-{at}.yaml"));
    let args = job["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    let mounted =
        |arg: &Value| arg.as_str().unwrap().replace("/sweepline/plan", "pod").replace("/sweepline/results", "there");
    let args: Vec<String> = args.iter().map(mounted).collect();
    lab.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Creates a program that stands in for a cluster's program.
fn stand_in(lab: &Lab, name: &str, script: &str) {
    let path = lab.write(&format!("bin/{name}"), script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs sweepline with the stand-ins; returns its JSON document.
fn with_stand_ins(lab: &Lab, args: &[&str]) -> Value {
    let path = format!("{}:{}", lab.path().join("bin").display(), lab::path_with_program().display());
    let output = lab.command(&[args, &["--format", "json"]].concat()).env("PATH", path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// Returns the state of each element, and its job's state as reported by the cluster.
fn states(document: &Value) -> Vec<(&str, Option<&str>)> {
    let elements = document["elements"].as_array().unwrap().iter();
    elements.map(|one| (one["state"].as_str().unwrap(), one["queue"].as_str())).collect()
}

#[test]
fn accounting_tells_the_end_of_jobs_that_the_queue_has_forgotten() {
    let lab = Lab::new();
    let endpoints = "  a: { engine: mock }\n  b: { engine: mock }\n  c: { engine: mock }";
    let sweeps = "sweeps:\n  s: { matrix: { endpoint: [a, b, c], model: [m], scenario: [s], batch_size: [1] } }\n";
    lab.write("plan.yaml", &plan(endpoints, sweeps));
    stand_in(&lab, "sbatch", "#!/bin/sh\necho 12\n");
    stand_in(&lab, "squeue", "#!/bin/sh\ncat \"$(dirname \"$0\")/listed\" 2> /dev/null\nexit 0\n");
    stand_in(&lab, "sacct", "#!/bin/sh\necho \"$@\" >> \"$(dirname \"$0\")/asked\"\ncat \"$(dirname \"$0\")/ended\"\n");
    lab.write("bin/listed", "12|0|PENDING|Priority|\n12|1|RUNNING|None|n1\n12|2|RUNNING|None|n2\n");
    with_stand_ins(&lab, &["submit", "plan.yaml", "--on", "slurm"]);
    let look = || with_stand_ins(&lab, &["status", "plan.yaml"]);
    let live = [("queued", Some("PENDING (Priority)")), ("running", Some("RUNNING")), ("running", Some("RUNNING"))];
    assert_eq!(states(&look()), live);
    assert!(!lab.path().join("bin/asked").exists(), "the queue lists all jobs");
    lab.write("bin/listed", "");
    let name = "sweepline-parts";
    lab.write(
        "bin/ended",
        &format!(
            "12_0|{name}|CANCELLED by 0|0:0|None assigned\n12_1|{name}|TIMEOUT|0:15|n1\n12_2|other|COMPLETED|0:0|n2\n"
        ),
    );
    let ended = [("cancelled", Some("CANCELLED")), ("failed", Some("TIMEOUT (signal 15)")), ("failed", None)];
    assert_eq!(states(&look()), ended);
    assert!(std::fs::read_to_string(lab.path().join("bin/asked")).unwrap().contains("--jobs=12 "));
    // Without accounting, the final states of jobs remain unknown.
    stand_in(&lab, "sacct", "#!/bin/sh\necho Slurm accounting storage is disabled >&2\nexit 1\n");
    assert_eq!(states(&look()), [("failed", None); 3]);
}

#[test]
fn kubernetes_cancels_what_needs_the_result_of_a_failed_job() {
    let lab = Lab::new();
    stand_in(&lab, "kubectl", KUBECTL);
    let pod = "resources: { kubernetes: { image: i, claim: c } }";
    let of = "matrix: { endpoint: [a, b], model: [m], scenario: [s]";
    let sweeps = format!(
        "sweeps:\n  limit: {{ {of} }}, search: {{ qps: {{ from: 1, to: 64 }}, meets: slo }} }}\n  \
         sustained: {{ after: limit, {of}, \
         qps: [{{ from: limit, take: max_qps_under_slo, over: endpoint, use: min, times: 0.8 }}] }} }}\n"
    );
    lab.write("plan.yaml", &plan(&format!("  a: {{ engine: mock, {pod} }}\n  b: {{ engine: mock, {pod} }}"), &sweeps));
    let submit = || {
        let submitted = with_stand_ins(&lab, &["submit", "plan.yaml", "--on", "kubernetes"]);
        let elements = submitted["elements"].as_array().unwrap().clone();
        elements.iter().map(|one| one["job"].as_str().unwrap().to_owned()).collect::<Vec<String>>()
    };
    let end = |job: &str, how: &str| {
        let status = format!(r#"{{ "conditions": [{{ "type": "{how}", "status": "True" }}] }}"#);
        lab.write(&format!("bin/{job}.job"), &status);
    };
    let look = || with_stand_ins(&lab, &["status", "plan.yaml", "--advance"]);
    let jobs = submit();
    assert_eq!(jobs.len(), 4);
    end(&jobs[0], "Failed");
    let waiting = ("waiting", Some("PENDING (Dependency)"));
    assert_eq!(states(&look())[2..], [waiting, waiting], "the other job has not ended");
    end(&jobs[1], "Complete");
    let cancelled = ("cancelled", Some("CANCELLED"));
    assert_eq!(states(&look())[2..], [cancelled, cancelled], "one of the two results will never exist");
    assert!(!lab.path().join(format!("bin/{}.job", jobs[2])).exists());
    // The next submission starts the chain again instead of waiting for a job that has failed.
    let again = submit();
    assert!(again.iter().all(|job| !jobs.contains(job)), "{again:?} {jobs:?}");
    assert_eq!(states(&look()), [("queued", Some("PENDING")), ("queued", Some("PENDING")), waiting, waiting]);
}

#[test]
fn the_last_element_of_an_array_is_requeued_alone() {
    let lab = Lab::new();
    let sweeps = "sweeps:\n  s: { matrix: { endpoint: [a, b], model: [m], scenario: [s], batch_size: [1] } }\n";
    lab.write("plan.yaml", &plan("  a: { engine: mock }\n  b: { engine: mock }", sweeps));
    stand_in(&lab, "sbatch", "#!/bin/sh\necho 12\n");
    // Slurm also assigns the array's number to its last element, but interprets the number as the
    // whole array.
    let queue = "case \"$*\" in *--jobs=12_1*) echo RUNNING ;; *--jobs=12*) echo RUNNING; echo RUNNING ;; esac";
    stand_in(&lab, "squeue", &format!("#!/bin/sh\n{queue}\n"));
    stand_in(&lab, "scontrol", "#!/bin/sh\necho \"$@\" >> \"$(dirname \"$0\")/asked\"\n");
    stand_in(&lab, "stopped", "#!/bin/sh\nexit 130\n");
    with_stand_ins(&lab, &["submit", "plan.yaml", "--on", "slurm"]);
    let script = std::fs::read_to_string(lab.results().join("submit/0001/job-1.sh")).unwrap();
    let stopped = lab.path().join("bin/stopped").display().to_string();
    let script = lab.write("job.sh", &lab::with_program_at(&stopped, &script));
    let mut job = Command::new("bash");
    let path = format!("{}:{}", lab.path().join("bin").display(), lab::path_with_program().display());
    job.arg(&script).current_dir(lab.path()).env("PATH", path);
    for (name, value) in [("SLURM_JOB_ID", "12"), ("SLURM_ARRAY_JOB_ID", "12"), ("SLURM_ARRAY_TASK_ID", "1")] {
        job.env(name, value);
    }
    let ended = job.output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(std::fs::read_to_string(lab.path().join("bin/asked")).unwrap(), "requeue 12_1\n");
}
