//! Tests `sweepline import`: `--strict`, `--quick`, and the command in the docs.

use std::path::Path;

use lab::{Ended, Lab};

fn import(lab: &Lab, args: &[&str]) -> Ended {
    lab.run(&[&["import"], args].concat())
}

#[test]
fn strict_writes_no_plan_where_something_is_not_in_it() {
    let lab = Lab::new();
    lab.write(
        "a.sh",
        "vllm bench serve --model m --request-rate 5 --num-prompts 300 --use-beam-search --lora-modules a b\n",
    );
    let ended = import(&lab, &["a.sh", "--strict", "-o", "plan.yaml"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    for words in
        ["--strict: 2 settings have no counterpart", "- --use-beam-search (line 1)", "- --lora-modules a b (line 1)"]
    {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    assert!(!lab.path().join("plan.yaml").exists());
    let ended = import(&lab, &["a.sh"]);
    assert!(ended.stderr.starts_with("import: 3 settings mapped, 2 not (listed below)\n"), "{}", ended.stderr);
    lab.write("b.sh", "vllm bench serve --model m --request-rate 5 --num-prompts 300 --save-result\n");
    let ended = import(&lab, &["b.sh", "--strict", "-o", "plan.yaml"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.starts_with("import: 4 settings mapped, all of them\n"), "{}", ended.stderr);
    // Settings that sweepline applies anyway count as mapped; settings with a different meaning are listed,
    // but also count as mapped.
    lab.write("c.sh", "vllm bench serve --model m --num-prompts 20\n");
    let ended = import(&lab, &["c.sh", "--strict"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("in the plan, with a different meaning:\n- --request-rate inf"), "{}", ended.stderr);
}

#[test]
fn quick_has_short_phases_beside_the_full_ones() {
    let lab = Lab::new();
    for file in ["rates.sh", "six_settings.sh", "six_settings.json"] {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import").join(file);
        std::fs::copy(fixture, lab.path().join(file)).unwrap();
    }
    let seconds = |plan: &str, set: &[&str]| {
        let json = lab.ok(&[&["preview", plan, "--format", "json"], set].concat()).json();
        (json["totals"]["to_do"]["runs"].as_u64().unwrap(), json["totals"]["to_do"]["seconds"].as_f64().unwrap())
    };
    for file in ["rates.sh", "six_settings.sh"] {
        lab.ok(&["import", file, "-o", "full.yaml", "--force"]);
        lab.ok(&["import", file, "--quick", "-o", "quick.yaml", "--force"]);
        let (full, both) = (seconds("full.yaml", &[]), seconds("quick.yaml", &["--set", "vars.quick=false"]));
        assert_eq!(full, both, "{file}: the full phases are those of the plan without --quick");
        let (runs, look) = seconds("quick.yaml", &[]);
        assert!(look <= 120.0 && look * 5.0 < full.1 && runs <= full.0, "{file}: {runs} runs, {look} s");
    }
}

/// Short runs cannot decide a percentile, so --quick measures loads between the bounds of a search, and
/// the full plan searches.
#[test]
fn quick_measures_a_few_loads_where_the_full_plan_searches() {
    let lab = Lab::new();
    let command = "vllm bench sweep serve_sla --serve-cmd 'vllm serve m' --bench-cmd 'vllm bench serve --model m --dataset-name random' \
                   --sla-params sla.json --sla-variable max_concurrency";
    lab.write("sla.sh", command);
    lab.write("sla.json", r#"[{ "p99_e2el_ms": "<=2000" }]"#);
    lab.ok(&["import", "sla.sh", "--quick", "-o", "plan.yaml"]);
    let runs = |set: &[&str]| {
        let cells = lab.ok(&[&["preview", "plan.yaml", "--format", "json"], set].concat()).json();
        let cells = cells["runs"].as_array().unwrap().iter().map(|run| run["cell"]["batch_size"].as_u64().unwrap());
        cells.collect::<std::collections::BTreeSet<u64>>()
    };
    assert_eq!(runs(&[]), std::collections::BTreeSet::from([1, 10, 100, 1000]));
    let why = lab.ok(&["why", "limit", "--plan", "plan.yaml", "--set", "vars.quick=false"]);
    assert!(why.stdout.contains("1 in flight, going up"), "{}", why.stdout);
}

/// The page about vLLM shows a command and its plan.
#[test]
fn the_command_in_the_docs_makes_the_plan_in_the_docs() {
    let lab = Lab::new();
    let docs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/COMING_FROM.md")).unwrap();
    let page = docs.split("\n## vLLM\n").nth(1).unwrap();
    let mut lines = page.lines().filter_map(|line| line.strip_prefix("    "));
    let command = lines.next().unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    let plan = lab.ok(&[&["import", "--"], &words[..]].concat()).stdout;
    let values = |text: &str| text.split("  #").next().unwrap().trim().to_owned();
    let said: Vec<String> = plan.lines().map(values).collect();
    for line in lines.take_while(|line| !line.starts_with("vllm ")).filter(|line| !line.contains("matrix:")) {
        assert!(said.contains(&values(line)), "{line}\n{plan}");
    }
}
