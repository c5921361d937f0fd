//! Tests exact lengths through the program: the server's count equals the requested length.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use lab::Lab;
use lab::exact_prompts::{bpe, folder, lengths_on_a_server};
use lab::mock::Mock;
use lab::sweeps::honest;

/// A template also needs tokens. Shorter prompts are reported, and a plan that always requests them
/// is rejected.
#[test]
fn prompts_that_are_too_short_for_the_template_are_told() {
    let (lab, library, mock) = (Lab::new(), bpe(), Mock::start(&[]));
    folder(&lab, &library);
    let long =
        "{% for m in messages %}{{ 'a b c d e f g h i j k l m n o p q r s t u v w x y z' + m['content'] }}{% endfor %}";
    lab.write("model/chat_template.jinja", long);
    let lengths = "{ uniform: { min: 16, max: 60 } }";
    lab.write(
        "plan.yaml",
        &lengths_on_a_server(mock.port, ("model", lengths), "{ for: 50ms, min_requests: 200, at_most: 60s }"),
    );
    honest(&lab.run(&["run", "plan.yaml"]));
    for (id, run) in lab.runs() {
        let is_chat = run.json["spec"]["endpoint"]["api"] == "chat";
        let shown = lab.run(&["show", &id]).stdout;
        let shortest = run.json["facts"]["shortest_prompt"].as_u64();
        let rows = run.records.iter().map(|record| u64::from(record.row.intended_prompt_tokens));
        assert_eq!(rows.clone().min().filter(|_| is_chat), shortest, "the shortest row matches the facts");
        assert!(!is_chat || shortest.is_some_and(|tokens| tokens > 26), "{shortest:?}");
        let told = shortest.map(|tokens| format!("prompts have at least {tokens} tokens")).unwrap_or("verdict".into());
        assert!(shown.replace("\n  ", " ").contains(&told), "{shown}");
        assert!(rows.max().is_some_and(|most| most > 50));
    }
    lab.write(
        "plan.yaml",
        &lengths_on_a_server(mock.port, ("model", "20"), "{ for: 50ms, min_requests: 200, at_most: 60s }"),
    );
    let ended = lab.run(&["run", "plan.yaml"]);
    let text = format!("{}{}", ended.stdout, ended.stderr);
    assert!(text.contains("no prompt can have 20 tokens") && ended.code != Some(0), "{text}");
}

/// Returns a plan whose model has no files, so that the server must count.
fn counted_by_the_server(port: u16, tokenizer: &str) -> String {
    format!(
        "
sweepline: 1
name: asked
endpoints:
  chat: {{ url: http://127.0.0.1:{port}/v1, api: chat, resource: server }}
  text: {{ url: http://127.0.0.1:{port}/v1, api: completions, resource: server }}
models: {{ tiny: {{ id: some/model{tokenizer} }} }}
scenarios:
  short: {{ base: B1, prompt_tokens: 40, output_tokens: 2 }}
  led: {{ base: C, system_tokens: 60, prompt_tokens: 700, output_tokens: 2 }}
phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 20ms, min_requests: 16, at_most: 60s }}, drain: 60s }}
sweeps:
  s:
    matrix:
      endpoint: [chat, text]
      model: [tiny]
      scenario: [short, led]
      batch_size: [2]
"
    )
}

/// If there are no files of the model, its server counts the tokens, in three dialects, before the run and
/// not during it. Prompts have exactly the requested lengths. If the server does not count, lengths are
/// estimated, and the run reports this.
#[test]
fn a_server_that_counts_makes_lengths_exact() {
    for dialect in ["vllm", "sglang", "llama.cpp", "none"] {
        let (lab, mock) = (Lab::new(), Mock::start(&["--tokenize", dialect, "--itl", "1ms"]));
        lab.write("plan.yaml", &counted_by_the_server(mock.port, ", tokenizer: server"));
        honest(&lab.run(&["run", "plan.yaml"]));
        let runs = lab.runs();
        assert_eq!(runs.len(), 4);
        let (mut exact, mut all) = (0, 0);
        for run in runs.values() {
            let (spec, facts) = (&run.json["spec"], &run.json["facts"]);
            assert_eq!(facts["prompt_count"], if dialect == "none" { "estimate" } else { "server" }, "{dialect}");
            let scenario = &spec["scenario"];
            let asked = scenario["prompt_tokens"].as_u64().unwrap() + scenario["system_tokens"].as_u64().unwrap_or(0);
            for row in run.records.iter().map(|record| &record.row).filter(|row| row.prompt_tokens.is_some()) {
                all += 1;
                exact += usize::from(row.prompt_tokens.map(u64::from) == Some(asked));
                let is_told = dialect == "none" || u64::from(row.intended_prompt_tokens) == asked;
                assert!(is_told, "{dialect} {asked}: {row:?}");
            }
        }
        println!("{dialect}: {exact} of {all}");
        assert!(all >= 64);
        assert!(if dialect == "none" { exact * 5 < all } else { exact == all }, "{dialect}: {exact} of {all}");
        asked_before_each_run(&mock);
    }
}

/// Asserts that no count was requested between the first and the last generation of a run, and that each
/// word was counted once.
fn asked_before_each_run(mock: &Mock) {
    let log = mock.log(1);
    let at = |line: &Value| line["arrival_ns"].as_u64().unwrap();
    let mut spans: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in &log {
        let Some((run, _)) = line["request_id"].as_str().and_then(|id| id.rsplit_once('-')) else { continue };
        if run != "sweepline" {
            let (first, last) = spans.entry(run.to_owned()).or_insert((u64::MAX, 0));
            (*first, *last) = ((*first).min(at(line)), (*last).max(at(line)));
        }
    }
    let counts: Vec<&Value> = log.iter().filter(|line| line["path"] == "/tokenize").collect();
    assert_eq!(spans.len(), 4);
    for line in &counts {
        assert!(spans.values().all(|(first, last)| !(first..=last).contains(&&at(line))), "{line}");
    }
    println!("{} counts", counts.len());
    assert!(counts.len() < 10_000, "{}", counts.len());
}

#[test]
fn who_counts_is_a_part_of_what_a_run_is() {
    let lab = Lab::new();
    let ids = |tokenizer: &str| {
        lab.write("plan.yaml", &counted_by_the_server(1, tokenizer));
        let preview = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
        preview["runs"].as_array().unwrap().iter().map(|run| run["id"].to_string()).collect::<BTreeSet<_>>()
    };
    let (server, nobody) = (ids(", tokenizer: server"), ids(""));
    assert!(server.len() == 4 && server.is_disjoint(&nobody));
    // A folder with that name must be written as a path.
    folder(&lab, &bpe());
    std::fs::rename(lab.path().join("model"), lab.path().join("server")).unwrap();
    assert!(ids(", tokenizer: ./server").is_disjoint(&server));
}
