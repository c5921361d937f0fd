//! Tests of cases that the examples do not cover: every option, all forms of lists, secrets, and the places
//! in error messages.

use super::options::{Arity, OPTIONS, Target};
use crate::import::{ImportError, Imported, Wishes, import};

/// A key that must never be shown.
const SECRET: &str = "sk-live-Zz9-0123456789abcdefgh";
const MODEL: &str = "benchmark:\n  model: m\n  endpoint: { url: http://h:1 }\n";

fn made(name: &str, text: &str) -> Result<Imported, ImportError> {
    let read = |path: &str| if path == "b.yaml" { Ok(base()) } else { Err("there is none".to_owned()) };
    import(&Wishes {
        name: name.to_owned(),
        text: Some(text.to_owned()),
        command: Vec::new(),
        format: "auto".to_owned(),
        quick: false,
        entries: Vec::new(),
        model: None,
        url: None,
        folder: std::path::PathBuf::new(),
        read: &read,
    })
}

fn base() -> String {
    format!("{MODEL}  dataset: {{ isl: 100, osl: 10 }}\n  phases: {{ type: concurrency, concurrency: 2 }}\n")
}

fn yaml(body: &str, rest: &str) -> Result<Imported, ImportError> {
    made("a.yaml", &format!("{MODEL}{body}{rest}"))
}

#[test]
fn every_option_is_in_the_plan_or_in_the_list() {
    for (names, arity, target) in OPTIONS {
        for name in *names {
            let value = match (arity, target) {
                // These options need a file.
                (_, Target::On("phases.profiling.fixed_schedule")) => continue,
                (_, Target::Path("datasets.default.path" | "datasets.default.format")) => continue,
                (Arity::Flag, _) => "",
                (_, Target::Pairs(_)) => "inter_token_latency:10",
                (_, Target::Path("endpoint.type")) => "completions",
                (_, Target::Path("phases.profiling.type")) => "constant",
                (_, Target::Values("endpoint.urls")) => "http://gpu:8000",
                _ => "3",
            };
            let rate = if name.starts_with("arrival") || name.contains("rate-mode") || *name == "num-users" {
                "--request-rate 5"
            } else {
                ""
            };
            let text = format!("aiperf profile --model m --request-count 10 {rate} --{name} {value}\n");
            let imported = match made("a.sh", &text) {
                Ok(imported) => imported,
                // An invalid value is an error that names the option.
                Err(error) => {
                    assert!(error.to_string().contains(&format!("--{name}")), "{text}: {error}");
                    continue;
                }
            };
            let all =
                format!("{} {:?} {:?} {:?}", imported.plan, imported.missing, imported.differs, imported.needless);
            assert!(all.contains(&format!("--{name}")), "{text}\n{all}");
            assert!(!all.contains("unknown option"), "{text}\n{all}");
        }
    }
}

#[test]
fn a_file_lies_under_the_options_of_a_command() {
    let plan =
        made("a.sh", "aiperf profile --config b.yaml --concurrency 4,8 --isl 200 --url http://gpu:9\n").unwrap().plan;
    assert!(plan.contains("batch_size: [4, 8]") && plan.contains("prompt_tokens: 200"), "{plan}");
    assert!(plan.contains("output_tokens: 10") && plan.contains("url: http://gpu:9/v1"), "{plan}");
    let none = made("a.sh", "aiperf profile --config c.yaml\n").unwrap_err().to_string();
    assert!(none.starts_with("a.sh:1: cannot read c.yaml"), "{none}");
}

#[test]
fn lists_are_sweeps_in_all_their_forms() {
    let body =
        "  dataset: { isl: 100, osl: 10 }\n  phases: { type: poisson, rate: [1, 2], concurrency: 4, duration: 5m }\n";
    let plan = yaml(body, "").unwrap().plan;
    assert!(plan.contains("qps: [1, 2]") && plan.contains("measure: 300s"), "{plan}");
    let body = "  dataset: { isl: 100, osl: 10 }\n  phases: { type: concurrency, concurrency: 1 }\n";
    let zip =
        "sweep:\n  type: zip\n  parameters:\n    concurrency: [1, 2]\n    datasets.default.prompts.isl: [64, 128]\n";
    let plan = yaml(body, zip).unwrap().plan;
    assert!(plan.contains("synthetic-64-10") && plan.contains("synthetic-128-10"), "{plan}");
    assert_eq!(plan.matches("batch_size: [").count(), 2, "{plan}");
    let uneven = "sweep: { type: zip, parameters: { concurrency: [1, 2], datasets.default.prompts.isl: [64] } }\n";
    let error = yaml(body, uneven).unwrap_err().to_string();
    assert!(error.starts_with("a.yaml: zip:"), "{error}");
    let variables = "variables: { n: 2 }\nsweep: { parameters: { variables.n: [4, 8] } }\n";
    let body = body.replace("concurrency: 1", "concurrency: \"{{ n * 2 }}\"");
    let plan = yaml(&body, variables).unwrap().plan;
    assert!(plan.contains("batch_size: [8, 16]"), "{plan}");
    let wrong = "sweep: { parameters: { phases.nowhere.rate: [1] } }\n";
    let error = yaml(&body.replace("{{ n * 2 }}", "3"), wrong).unwrap_err().to_string();
    assert!(error.contains("unknown path `phases.nowhere.rate`"), "{error}");
}

#[test]
fn keys_and_headers_become_references() {
    let file = format!(
        "benchmark:\n  model: m\n  endpoint: {{ url: \"http://h:1\", api_key: {SECRET}, headers: {{ X-Key: {SECRET}a }} \
         }}\n  \
         dataset: {{ isl: 100, osl: 1 }}\n  phases: {{ type: concurrency, concurrency: 1 }}\n"
    );
    let command = format!("aiperf profile -m m --isl 100 --osl 1 --api-key {SECRET} -H 'X-Key: {SECRET}a'\n");
    for (name, text) in [("a.yaml", &file), ("a.sh", &command)] {
        let imported = made(name, text).unwrap();
        let all = format!("{imported:?}");
        assert!(!all.contains(SECRET), "{name}: {all}");
        assert!(imported.plan.contains("api_key: { secret: env:OPENAI_API_KEY }"), "{}", imported.plan);
        assert!(imported.plan.contains("X-Key: { secret: env:X_KEY }"), "{}", imported.plan);
    }
    let named = file.replace(&format!("api_key: {SECRET}"), "api_key: \"${TEAM_KEY}\"");
    assert!(made("a.yaml", &named).unwrap().plan.contains("secret: env:TEAM_KEY"));
}

#[test]
fn errors_stand_at_their_place() {
    let body = "  dataset: { isl: 100, osl: 10 }\n";
    for (text, says) in [
        ("  phases: { type: poisson, duration: 5 }\n", "a.yaml:5: this phase has no usable rate"),
        ("  phases: { type: odd }\n", "unknown load type `odd`"),
        ("  phases: { type: concurrency, concurrency: \"{{ nothing }}\" }\n", "`{{ nothing }}` has no value"),
        ("", "no phase is measured"),
    ] {
        let error = yaml(&format!("{body}{text}"), "").unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let image = made("a.sh", "aiperf profile -m m --endpoint-type image_generation\n").unwrap_err().to_string();
    assert!(image.contains("only text, embeddings and rankings over HTTP are measured"), "{image}");
    let triton = made("a.sh", "genai-perf profile -m gpt2 --backend vllm --streaming\n").unwrap_err().to_string();
    assert!(triton.contains("a.sh:1") && triton.contains("OpenAI-compatible front end"), "{triton}");
}

#[test]
fn the_messages_api_has_its_own_key_and_fields() {
    let command = "aiperf profile -m c --url https://api.anthropic.com --endpoint-type messages --streaming --isl 100 \
                   --osl 10 --concurrency 2 --api-key sk-odd-key --header Authorization:x --extra-inputs top_k:5 \
                   --extra-inputs seed:7 --extra-inputs ignore_eos:true\n";
    let plan = made("a.sh", command).unwrap().plan;
    for part in [
        "url: https://api.anthropic.com/v1",
        "api: messages",
        "api_key: { secret: env:ANTHROPIC_API_KEY }",
        "Authorization: { secret: env:AUTHORIZATION }",
        "extra: { top_k: 5 }",
        "`api: messages` does not have this field",
        "unknown to `api: messages`",
    ] {
        assert!(plan.contains(part), "{part} is not in\n{plan}");
    }
    assert!(!plan.contains("ignore_eos: true") && !plan.contains("sk-odd-key"), "{plan}");
    let keyed = command.replace("--api-key sk-odd-key --header Authorization:x", "--header x-api-key:$TEAM_KEY");
    let plan = made("a.sh", &format!("TEAM_KEY=$1\n{keyed}")).unwrap().plan;
    assert!(plan.contains("api_key: { secret: env:TEAM_KEY }"), "{plan}");
}

#[test]
fn lengths_have_the_figures_of_their_distribution() {
    for (written, expected) in [
        ("{ mean: 100, stddev: 0 }", "prompt_tokens: 100"),
        ("{ p50: 200, p99: 2000 }", "lognormal: { median: 200, sigma: 0.9898, min: 16, max: "),
        ("{ points: [{ value: 100, weight: 3 }, { value: 200, weight: 1 }] }", "{ min: 100, max: 100, weight: 3 }"),
        ("{ peaks: [{ mean: 100, stddev: 10, weight: 1 }] }", "weight: 0.0625 }"),
    ] {
        let body =
            format!("  dataset: {{ isl: {written}, osl: 10 }}\n  phases: {{ type: concurrency, concurrency: 1 }}\n");
        let plan = yaml(&body, "").unwrap().plan;
        assert!(plan.contains(expected), "{written}\n{plan}");
    }
    let pairs = "aiperf profile -m m --seq-dist '256|10,128:40;512,256:60'\n";
    assert!(made("a.sh", pairs).unwrap().plan.contains("pairs: [[256, 128, 40], [512, 256, 60]]"));
}
