//! Tests reading the GPUs of this machine through a driver's library or its programs, all of which are
//! fakes. The values appear in the figures of a run, limited to the server's GPUs, and no failure of the
//! library or the programs harms a run.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use super::telemetry::{FakePage, figure, reasons, samples, shown};
use lab::{Ended, Lab, Run, Server};

/// The program, as a command in a plan.
const SWEEPLINE: &str = "sweepline";

/// Returns a closed loop with a window of this length on an endpoint with these fields.
fn plan(endpoint: &str, measure: &str) -> String {
    format!(
        "\
sweepline: 1
name: gpus
endpoints: {{ one: {{ {endpoint} }} }}
models: {{ m: {{ id: tiny }} }}
scenarios: {{ short: {{ base: B1, output_tokens: 8 }} }}
phases: {{ fill: 100ms, stabilize: 100ms, measure: {measure}, drain: {{ for: 10s, mode: stop }} }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }}, unsteady: {{ suspect: 99% }} }}
sweeps: {{ s: {{ matrix: {{ endpoint: [one], model: [m], scenario: [short], batch_size: [4] }} }} }}
"
    )
}

/// Returns a server that sweepline starts and whose process is on the GPUs that the library lists.
fn launched(lab: &Lab, variables: &str, telemetry: &str) -> String {
    let pids = lab.path().join("pids").display().to_string();
    let script = format!("echo $$ >> {pids}; exec {SWEEPLINE} mock --ttft 20ms --itl 1ms --port $P");
    format!(
        "engine: mock, launch: {{ command: [sh, -c, '{script}'], port: auto, host_env: {{ P: '{{{{ port }}}}'{variables} }} }}, \
         telemetry: {telemetry}"
    )
}

/// Returns the folder with a driver's library, built once.
fn library() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let made = FOLDER.get_or_init(|| {
        let folder = lab::folder();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpus/nvml.rs");
        let rustc = std::env::var("RUSTC").unwrap_or("rustc".to_owned());
        let mut compile = Command::new(rustc);
        compile.args(["--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort", "-o"]);
        let output = compile.arg(folder.path().join("libnvidia-ml.so.1")).arg(source).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder
    });
    made.path()
}

fn with_library(lab: &Lab, args: &[&str], change: impl FnOnce(&mut Command) -> &mut Command) -> Ended {
    let mut command = lab.command(args);
    command.env("LD_LIBRARY_PATH", library()).env("FAKE_PIDS", lab.path().join("pids"));
    let ended = Ended::from(change(&mut command).output().unwrap());
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    ended
}

/// Runs the program with these scripts of tools at the front of its `PATH`.
fn with_tools(lab: &Lab, args: &[&str], tools: &[(&str, &str)]) -> Ended {
    for (name, script) in tools {
        let tool = lab.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", lab.path().join("bin").display(), lab::path_with_program().display());
    Ended::from(lab.command(args).env("PATH", &path).output().unwrap())
}

fn source(run: &Run) -> String {
    let urls = run.json["facts"]["telemetry"]["urls"].as_array().unwrap();
    urls.last().unwrap().as_str().unwrap().to_owned()
}

fn is_near(what: &str, found: f64, wanted: f64, within: f64) {
    assert!((found / wanted - 1.0).abs() <= within, "{what}: {found}, expected {wanted}");
}

fn seconds(run: &Run) -> f64 {
    (run.window("measure_end_ns") - run.window("measure_start_ns")) as f64 / 1e9
}

#[test]
fn the_library_reads_the_gpu_that_a_launched_server_was_given() {
    let lab = Lab::new();
    // A process that does not belong to the server, namely this one.
    lab.write("pids", &format!("{}\n", std::process::id()));
    lab.write("plan.yaml", &plan(&launched(&lab, ", CUDA_VISIBLE_DEVICES: \"1\"", "{ every: 100ms }"), "1s"));
    with_library(&lab, &["run", "plan.yaml"], |command| command);
    let run = lab.only_run();
    assert_eq!(source(&run), "GPUs of this machine by nvml: 1");
    let shown = shown(&lab, &run);
    lab.follows("show", &shown);
    let of = |name: &str| figure(&shown, name).unwrap();
    is_near("power", of("gpu_power_watts_mean"), 500.0, 1e-9);
    is_near("use", of("gpu_utilization_mean"), 0.9, 1e-9);
    is_near("memory", of("gpu_memory_used_max"), 7_000.0 * 1_048_576.0, 1e-9);
    is_near("clock", of("gpu_sm_clock_mean"), 1.98e9, 1e-9);
    // The counter is read at instants before and after the window.
    is_near("energy", of("energy_by_counter"), 500.0 * seconds(&run), if lab::is_whole() { 0.03 } else { 0.5 });
    let tokens = shown["metrics"]["output_throughput_tokens_per_s"].as_f64().unwrap() * seconds(&run);
    is_near("a token's energy", of("joules_per_output_token"), of("energy_by_counter") / tokens, 0.02);
    let reason = shown["verdict"]["reasons"].as_array().unwrap().iter().find(|one| one["name"] == "gpu_shared");
    let reason = reason.unwrap_or_else(|| panic!("{:#}", shown["verdict"]));
    assert_eq!(reason["state"], "suspect");
    let text = reason["text"].as_str().unwrap();
    assert!(text.contains(&format!("(pid {}, at ", std::process::id())), "{text}");
    // The GPU ran at its power cap, which is normal for GPUs.
    assert!(!reasons(&shown).contains(&"server_throttled"));

    // No GPU reading is part of a run's identity.
    for telemetry in ["{ every: 500ms, gpus: off }", "{ gpus: { source: nvml, devices: [0] } }"] {
        let text = plan(&launched(&lab, ", CUDA_VISIBLE_DEVICES: \"0\"", telemetry), "1s");
        lab.write("plan.yaml", &text);
        assert_eq!(lab.run(&["preview", "plan.yaml", "--exit-code"]).code, Some(0), "{telemetry}");
        let why = lab.ok(&["why", run.json["id"].as_str().unwrap(), "--plan", "plan.yaml", "--format", "json"]).json();
        assert_eq!(why["state"], "cached", "{why:#}");
    }
}

#[test]
fn a_server_alone_on_its_instance_shares_it_with_nobody() {
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(&launched(&lab, "", "{ every: 200ms, gpus: { devices: MIG-2222 } }"), "500ms"));
    with_library(&lab, &["run", "plan.yaml"], |command| command.env("FAKE_MIG", "1"));
    let run = lab.only_run();
    assert_eq!(source(&run), "GPUs of this machine by nvml: MIG-2222");
    let shown = shown(&lab, &run);
    is_near("its memory", figure(&shown, "gpu_memory_total_max").unwrap(), 10_000.0 * 1_048_576.0, 1e-9);
    is_near("heat", figure(&shown, "gpu_temperature_max").unwrap(), 61.0, 1e-9);
    // The power of the whole GPU does not belong to the instance.
    let names: Vec<&str> =
        shown["server"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(!names.iter().any(|name| name.contains("power") || name.contains("energy")), "{names:?}");
    let verdict = &shown["verdict"];
    assert!(!reasons(&shown).contains(&"gpu_shared") && verdict["not_checked"]["gpu_shared"].is_null(), "{verdict:#}");
}

/// If no variable is set, the server's processes show which GPU it uses.
#[test]
fn a_server_that_was_given_all_is_on_the_gpus_that_it_uses() {
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(&launched(&lab, "", "on"), "500ms"));
    with_library(&lab, &["run", "plan.yaml"], |command| command.env_remove("CUDA_VISIBLE_DEVICES"));
    assert_eq!(source(&lab.only_run()), "GPUs of this machine by nvml: 1");
}

/// Responds like the nvidia-smi of a driver before version 535.
const NVIDIA_SMI: &str = "\
case \"$*\" in
*clocks_event_reasons*) echo 'Field \"clocks_event_reasons.active\" is not a valid field to query.'; exit 2;;
*gpu=index*) echo '0, GPU-aa, NVIDIA Test'; echo '1, GPU-bb, NVIDIA Test';;
*gpu=uuid*) echo 'GPU-aa, 75, 30, 1000, 2000, 120.50, 50, 1500, 0x20'; echo 'GPU-bb, 99, 30, 1000, 2000, [N/A], 50, 1500, 0x0';;
*) echo 'NVIDIA Test, 550.54.15, 2000 MiB';;
esac";

/// Returns the results of a lab's run on a server started by the plan, with these tools found before
/// others.
fn by_tools(gpus: &str, pages: &str, tools: &[(&str, &str)]) -> (Lab, Run, Value) {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let telemetry = format!("{{ prometheus: [{pages}], every: 200ms, gpus: {gpus} }}");
    lab.write("plan.yaml", &plan(&format!("engine: vllm, url: \"{}\", telemetry: {telemetry}", server.url()), "500ms"));
    let ended = with_tools(&lab, &["run", "plan.yaml"], tools);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let run = lab.only_run();
    let shown = shown(&lab, &run);
    (lab, run, shown)
}

#[test]
fn programs_read_where_no_library_is() {
    let (_lab, run, shown) = by_tools("{ source: auto, devices: [0] }", "on", &[("nvidia-smi", NVIDIA_SMI)]);
    assert_eq!(source(&run), "GPUs of this machine by nvidia-smi: 0");
    let of = |name: &str| figure(&shown, name).unwrap();
    is_near("power", of("gpu_power_watts_mean"), 120.5, 1e-9);
    is_near("energy", of("energy_by_power"), 120.5 * seconds(&run), 1e-6);
    is_near("throttling", of("gpu_throttled_share"), 1.0, 1e-9);
    assert!(reasons(&shown).contains(&"server_throttled"), "{:#}", shown["verdict"]);
    let why = shown["verdict"]["not_checked"]["gpu_shared"].as_str().unwrap();
    assert!(why.starts_with("sweepline did not start the server"), "{why}");

    // One of two GPUs does not report its power, so there is no total for both.
    let (_lab, run, shown) = by_tools("nvidia-smi", "on", &[("nvidia-smi", NVIDIA_SMI)]);
    assert_eq!(source(&run), "GPUs of this machine by nvidia-smi: 0, 1");
    is_near("use", figure(&shown, "gpu_utilization_mean").unwrap(), 0.87, 1e-9);
    assert!(shown["server"].as_array().unwrap().iter().all(|one| one["name"] != "gpu_power_watts_mean"));

    let amd = "case \"$*\" in
        list*) echo '[{ \"gpu\": 0, \"uuid\": \"aa\" }, { \"gpu\": 1, \"uuid\": \"bb\" }]';;
        *) echo '[{ \"gpu\": 0, \"power\": { \"socket_power\": { \"value\": 550, \"unit\": \"W\" } } },
            { \"gpu\": 1, \"power\": { \"socket_power\": { \"value\": 450, \"unit\": \"W\" } } }]';;
        esac";
    let (_lab, run, shown) = by_tools("amd-smi", "on", &[("amd-smi", amd)]);
    assert_eq!(source(&run), "GPUs of this machine by amd-smi: 0, 1");
    is_near("power", figure(&shown, "gpu_power_watts_mean").unwrap(), 1_000.0, 1e-9);
}

#[test]
fn a_page_with_gpus_counts_and_they_count_once() {
    let page = FakePage::of(|_| "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 250\n".to_owned());
    let (_lab, run, shown) = by_tools("nvidia-smi", &format!("on, \"{}\"", page.url), &[("nvidia-smi", NVIDIA_SMI)]);
    is_near("power", figure(&shown, "gpu_power_watts_mean").unwrap(), 250.0, 1e-9);
    let read = samples(&run).into_iter().filter(|one| one.name == "gpu_utilization" && one.url == Some(2)).count();
    assert!(read > 0, "the samples exist nevertheless: {read}");
}

#[test]
fn no_tool_harms_a_run() {
    let hangs = format!("case \"$*\" in *gpu=uuid*) exec sleep 600;; esac\n{NVIDIA_SMI}");
    let garbage = format!("case \"$*\" in *gpu=uuid*) head -c 4000 /dev/urandom; exit 0;; esac\n{NVIDIA_SMI}");
    let fails = format!("case \"$*\" in *gpu=uuid*) echo 'GPU is lost' >&2; exit 15;; esac\n{NVIDIA_SMI}");
    // A tool that hangs is waited for four seconds, again and again.
    let hanging = [("nvidia-smi", hangs.as_str(), "timeout", "nvidia-smi did not end within 4s")];
    let hanging = if lab::is_whole() { &hanging[..] } else { &[] };
    let cases = [
        ("nvidia-smi", garbage.as_str(), "failed", "no longer lists GPU-aa"),
        ("nvidia-smi", &fails, "failed", "nvidia-smi ended with exit status: 15: GPU is lost"),
        (
            "{ source: nvidia-smi, devices: [4] }",
            NVIDIA_SMI,
            "no_device",
            "`devices` names an unknown GPU 4; available: 0, 1",
        ),
        ("nvml", NVIDIA_SMI, "no_gpu", "no GPU to read: nvml: "),
    ];
    std::thread::scope(|scope| {
        for &(gpus, script, kind, told) in hanging.iter().chain(&cases) {
            scope.spawn(move || {
                let (_lab, run, shown) = by_tools(gpus, "on", &[("nvidia-smi", script)]);
                let telemetry = &run.json["facts"]["telemetry"];
                let first = telemetry["first_gap"].as_str().unwrap();
                assert!(first.starts_with("GPUs of this machine") && first.contains(told), "{first}");
                let gaps = samples(&run).into_iter().filter(|one| one.name == "up" && one.url == Some(1));
                let kinds: Vec<Option<String>> = gaps.map(|one| one.error).collect();
                assert!(!kinds.is_empty() && kinds.iter().all(|found| found.as_deref() == Some(kind)), "{kinds:?}");
                assert!(figure(&shown, "generation_tokens").unwrap() > 0.0, "the pages are still read");
                assert_eq!(telemetry["counted"]["unknown"], Value::Null, "{telemetry}");
                assert!(shown["verdict"]["not_checked"]["gpu_shared"].is_string(), "{:#}", shown["verdict"]);
            });
        }
    });
    // If GPUs are neither requested nor present, there is no message.
    let (_lab, run, _) = by_tools("auto", "on", &[]);
    let telemetry = &run.json["facts"]["telemetry"];
    assert_eq!((telemetry["urls"].as_array().unwrap().len(), &telemetry["gaps"]), (1, &0.into()), "{telemetry}");
}

#[test]
fn gpus_that_are_not_the_server_s_are_refused() {
    let lab = Lab::new();
    let check = |endpoint: &str, gpus: &str| {
        lab.write("plan.yaml", &plan(&format!("engine: vllm, {endpoint}, telemetry: {{ gpus: {gpus} }}"), "1s"));
        let checked = lab.run(&["check", "plan.yaml"]);
        (checked.code, checked.stdout + &checked.stderr)
    };
    let [far, near] = ["gpu1", "127.0.0.1"].map(|host| format!("url: \"http://{host}:8000/v1\""));
    let tunnel = format!("{near}, hardware: {{ network: ssh tunnel }}");
    for (endpoint, gpus, told) in [
        (&far, "nvml", "run dcgm-exporter on the server's host"),
        (&far, "{ devices: 0 }", "its address is not a loopback address"),
        (&tunnel, "auto", "`hardware.network` states that its address leads to another machine"),
        (&near, "cuda", "write `auto`, `off`, `nvml`, `nvidia-smi`, `amd-smi` or `rocm-smi`"),
        (&near, "{ source: off, devices: 0 }", "`source: off` reads none"),
        (&near, "{ devices: [0, first] }", "`first` is neither the number of a GPU nor a UUID"),
        (&near, "5", "`endpoints.one.telemetry.gpus` cannot be `5`"),
    ] {
        let (code, said) = check(endpoint, gpus);
        assert!(code == Some(2) && said.contains(told), "{gpus}: {said}");
    }
    for (endpoint, gpus) in
        [(&far, "off"), (&near, "rocm-smi"), (&near, "{ source: nvml, devices: [0, GPU-8f6a1c2e] }")]
    {
        let (code, said) = check(endpoint, gpus);
        assert!(code == Some(0), "{gpus}: {said}");
    }
    let preview = lab.ok(&["preview", "plan.yaml"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(preview.contains("/metrics, GPUs of this machine (nvml) every 1 s"), "{preview}");
    let json = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
    assert_eq!(json["scrapes"][0]["gpus"], "nvml");
    lab.follows("preview", &json);
}
