//! Tests `sweepline import --entry`, which imports a part of a file with many entries, and files from which
//! no plan can be made.

use std::fmt::Write as _;
use std::path::Path;

use lab::{Ended, Lab};

/// Returns an entry of a master file.
fn entry(key: &str, runner: &str, more: &str) -> String {
    format!(
        "{key}:\n  image: vllm/vllm-openai:v0.21.0\n  model: m/{key}\n  model-prefix: m\n  runner: {runner}\n  precision: fp8\n  \
         framework: vllm\n  {more}\n  scenarios:\n    fixed-seq-len:\n    - isl: 1024\n      osl: 1024\n      search-space:\n      \
         - {{ tp: 8, conc-start: 4, conc-end: 16 }}\n"
    )
}

fn import(lab: &Lab, args: &[&str]) -> Ended {
    lab.run(&[&["import"], args].concat())
}

/// A master file has entries for many machines, including servers on several nodes.
#[test]
fn entries_of_a_master_file_are_chosen() {
    let lab = Lab::new();
    let mut text = String::new();
    for (key, runner) in [("a-h100", "h100"), ("b-h100", "cluster:h100-dgxc"), ("c-h200", "h200-dgxc")] {
        let _ = write!(text, "{}", entry(key, runner, "multinode: false"));
    }
    let _ = write!(text, "{}", entry("d-b200", "b200-multinode", "multinode: true\n  disagg: true"));
    lab.write("master.yaml", &text);

    // Either all entries of one machine are imported, or a selection.
    let several = import(&lab, &["master.yaml"]);
    assert_eq!(several.code, Some(2), "{}", several.stderr);
    for part in [
        "a plan can start 3 entries, for 2 kinds of machine",
        "H100: a-h100 (3), b-h100 (3)",
        "H200: c-h200 (3)",
        "--entry",
    ] {
        assert!(several.stderr.contains(part), "{part}: {}", several.stderr);
    }
    let one = import(&lab, &["master.yaml", "--entry", "c-h200"]);
    assert_eq!(one.code, Some(0), "{}", one.stderr);
    assert!(one.stdout.contains("name: c-h200") && !one.stdout.contains("a-h100"), "{}", one.stdout);
    assert!(one.stdout.contains("3 other entries: not chosen by --entry"), "{}", one.stdout);
    let two = import(&lab, &["master.yaml", "--entry", "*-h100", "--entry", "c-h200"]);
    lab.write("plan.yaml", &two.stdout);
    lab.ok(&["check", "plan.yaml"]);
    let runs = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json()["runs"].as_array().unwrap().len();
    assert_eq!(runs, 9, "{}", two.stdout);

    // Entries that use several nodes are rejected, with the reason and the alternative.
    let refused = import(&lab, &["master.yaml", "--entry", "d-b200"]);
    assert_eq!(refused.code, Some(2));
    for part in ["master.yaml:", "d-b200", "prefill and decode are separate servers behind a router", "`url`"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    let left_out = import(&lab, &["master.yaml", "--entry", "*-h200", "--entry", "d-*"]);
    assert_eq!(left_out.code, Some(0), "{}", left_out.stderr);
    assert!(left_out.stderr.contains("- d-b200 (line"), "{}", left_out.stderr);
    let strict = import(&lab, &["master.yaml", "--entry", "*-h200", "--entry", "d-*", "--strict"]);
    assert_eq!(strict.code, Some(2), "{}", strict.stderr);

    let unknown = import(&lab, &["master.yaml", "--entry", "c-h20"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("no entry matches `--entry c-h20`; the nearest is c-h200"), "{}", unknown.stderr);
}

/// A running server has one setting.
#[test]
fn a_master_entry_is_started_or_asked() {
    let lab = Lab::new();
    lab.write("one.yaml", &entry("one", "h200", "multinode: false"));
    let asked = lab.ok(&["import", "one.yaml", "--url", "http://gpu-7:8000"]).stdout;
    assert!(asked.contains("url: http://gpu-7:8000/v1") && !asked.contains("launch:"), "{asked}");
    assert!(asked.contains("tensor_parallel_size: 8") && !asked.contains("      server:"), "{asked}");
    lab.write(
        "two.yaml",
        &entry("two", "h200", "multinode: false")
            .replace("tp: 8,", "tp: 8, pp: 2,")
            .replace("search-space:\n", "search-space:\n      - { tp: 4, conc-list: [1, 2] }\n"),
    );
    let several = import(&lab, &["two.yaml", "--url", "http://gpu-7:8000"]);
    assert_eq!(several.code, Some(2));
    assert!(several.stderr.contains("2 settings of the server, and --url names one"), "{}", several.stderr);
    // A setting that occurs in one row is set in every row, so that the accelerators can be
    // counted.
    let started = lab.ok(&["import", "two.yaml"]).stdout;
    assert!(
        started.contains("gpus: \"{{ server.tensor_parallel_size * server.pipeline_parallel_size }}\""),
        "{started}"
    );
}

/// LoadGen's own file has settings for all benchmarks.
#[test]
fn models_of_an_mlperf_configuration_are_chosen() {
    let lab = Lab::new();
    let text = "resnet50.Server.target_latency = 15\n*.Server.target_qps = 1.0\nllama2-70b.Server.ttft_latency = 2000\n\
                llama2-70b.Server.tpot_latency = 200\nllama2-70b.*.use_token_latencies = 1\nllama2-70b.Offline.min_query_count = 24576\n";
    lab.write("mlperf.conf", text);
    let several = import(&lab, &["mlperf.conf"]);
    assert_eq!(several.code, Some(2));
    assert!(several.stderr.contains("it has settings of 2 models (resnet50, llama2-70b)"), "{}", several.stderr);
    let pictures = import(&lab, &["mlperf.conf", "--entry", "resnet50"]);
    assert!(pictures.code == Some(2) && pictures.stderr.contains("resnet50 sends images"), "{}", pictures.stderr);
    let server = lab.ok(&["import", "mlperf.conf", "--entry", "llama2-70b.Server"]).stdout;
    assert!(server.contains("qps: [1.0]") || server.contains("qps: [1]"), "{server}");
    assert!(server.contains("ttft: { p99: 2000ms }") && server.contains("tpot: { p99: 200ms }"), "{server}");
    assert!(server.contains("`--entry llama2-70b.Offline` imports it"), "{server}");

    // FindPeakPerformance searches for the highest rate.
    lab.write("user.conf", "*.Server.target_qps = 4\n*.Server.mode = 3\n");
    let nameless = import(&lab, &["user.conf"]);
    assert!(nameless.code == Some(2) && nameless.stderr.contains("--entry"), "{}", nameless.stderr);
    let peak = lab.ok(&["import", "user.conf", "--entry", "mixtral-8x7b"]).stdout;
    assert!(peak.contains("search: { qps: { from: 4, to: 1000, within: 5% }, meets: slo }"), "{peak}");
    lab.write("plan.yaml", &peak);
    lab.ok(&["check", "plan.yaml"]);
    lab.write("broken.conf", "*.Server.target_qps = 4\n*.Server.min_duration = long\n");
    let broken = import(&lab, &["broken.conf", "--entry", "mixtral-8x7b"]);
    assert!(
        broken.code == Some(2) && broken.stderr.contains("broken.conf:2: `long` is not a number"),
        "{}",
        broken.stderr
    );
}

/// A profile has placeholders for model and server; an experiment overrides its values.
#[test]
fn experiments_lay_values_over_profiles() {
    let lab = Lab::new();
    let profile = "executable: benchmark_serving.py\nmodel: REPLACE_ENV_LLMDBENCH_DEPLOY_CURRENT_MODEL\n\
                   base-url: REPLACE_ENV_LLMDBENCH_HARNESS_STACK_ENDPOINT_URL\ndataset-name: random\nmax-concurrency: 1\nnum-prompts: 32\n\
                   ignore-eos: none\n";
    lab.write("p.yaml.in", profile);
    let nameless = import(&lab, &["p.yaml.in"]);
    assert!(nameless.code == Some(2) && nameless.stderr.contains("add --model ID"), "{}", nameless.stderr);
    let filled = lab.ok(&["import", "p.yaml.in", "--model", "a/b", "--url", "http://gateway:8080"]).stdout;
    assert!(filled.contains("id: a/b") && filled.contains("url: http://gateway:8080/v1"), "{filled}");

    lab.write(
        "old.yaml",
        "experiment: { harness: vllm-benchmark, profile: p.yaml }\nreset_caches: true\ntreatment_max_attempts: 5\n\
         run:\n  factors: [max-concurrency, num-prompts]\n  levels: { max-concurrency: \"1,8\" }\n  treatments: [\"1,10\", \"8,80\"]\n",
    );
    let plan = lab.ok(&["import", "old.yaml", "--model", "a/b"]).stdout;
    assert!(
        plan.contains("batch_size: [1, 8]")
            && plan.contains("reset: prefix_cache")
            && plan.contains("retries: { runs: 4 }"),
        "{plan}"
    );
    lab.write("plan.yaml", &plan);
    lab.ok(&["check", "plan.yaml"]);

    lab.write("lost.yaml", "treatments:\n- name: a\n  load.stages.0.rate: 5\n");
    let lost = import(&lab, &["lost.yaml", "--model", "m"]);
    assert!(lost.code == Some(2) && lost.stderr.contains("it names no workload profile"), "{}", lost.stderr);
    let scenario = "scenario:\n- name: gpu-example\n  common: { model: { name: a } }\n";
    lab.write("scenario.yaml", scenario);
    let deployed = import(&lab, &["scenario.yaml"]);
    assert!(
        deployed.code == Some(2) && deployed.stderr.contains("it deploys servers on Kubernetes"),
        "{}",
        deployed.stderr
    );
}

/// The plan on each page of docs/COMING_FROM.md equals the import of the public example.
#[test]
fn the_plans_of_the_pages_come_out() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_to_string(home.join("docs/COMING_FROM.md")).unwrap();
    let experiment = ["experiment_pd_disaggregation.yaml", "--model", "Qwen/Qwen3-32B"];
    for (page, folder, args) in [
        ("InferenceX", "inferencex", &["gptoss_h100_vllm.yaml"][..]),
        ("LLM-d benchmark", "llmd", &experiment[..]),
        ("MLPerf", "mlperf", &["llama2_70b.conf", "--entry", "llama2-70b"][..]),
    ] {
        let lab = Lab::new();
        for file in std::fs::read_dir(home.join("tests/import").join(folder)).unwrap() {
            let path = file.unwrap().path();
            std::fs::copy(&path, lab.path().join(path.file_name().unwrap())).unwrap();
        }
        let plan = lab.ok(&[&["import"], args].concat()).stdout;
        let said: Vec<&str> = plan.lines().map(|line| line.split("  #").next().unwrap().trim_end()).collect();
        let text = docs.split(&format!("\n## {page}\n")).nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
        let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("    ")).collect();
        let lines: Vec<&str> = lines.into_iter().filter(|line| !line.starts_with("sweepline ")).collect();
        assert!(lines.len() > 6, "{page}: the plan is missing");
        for line in lines {
            assert!(said.contains(&line), "{page}: `{line}` is not in:\n{plan}");
        }
    }
}

/// An experiment with a profile of a tool other than vLLM: the importer of that tool produces a
/// plan for each treatment, and all plans are merged into one.
#[test]
fn treatments_of_another_tool_become_one_plan() {
    let lab = Lab::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/llmd");
    for file in ["experiment_optimized_baseline.yaml", "shared_prefix_synthetic.yaml"] {
        std::fs::copy(folder.join(file), lab.path().join(file)).unwrap();
    }
    lab.ok(&["import", "experiment_optimized_baseline.yaml", "--model", "Qwen/Qwen3-32B", "-o", "plan.yaml"]);
    lab.ok(&["check", "plan.yaml"]);
    // There are 4 deployments × 9 treatments, as in the experiment's file, each with the seven
    // rates of the profile.
    let preview = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
    let runs = preview["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 36 * 7);
    let plan: serde_json::Value =
        serde_yaml::from_str(&std::fs::read_to_string(lab.path().join("plan.yaml")).unwrap()).unwrap();
    let sweep = &plan["sweeps"]["qlen300-olen1000"];
    let scenario = sweep["matrix"]["scenario"][0].as_str().unwrap();
    let scenario = &plan["scenarios"][scenario];
    assert_eq!((&scenario["prompt_tokens"], &scenario["output_tokens"]), (&300.into(), &1000.into()), "{scenario}");
    assert_eq!(sweep["matrix"]["endpoint"].as_array().unwrap().len(), 4, "{sweep}");
}
