//! Tests exact lengths through the program: the server's count equals the requested length.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::lab::{Ended, Lab};
use super::mock::Mock;
use super::realserver::RealServer;
use super::tokens::{bpe, folder, real_model};

/// Returns a plan that sends prompts of these lengths to both APIs of one server.
fn plan(port: u16, (model, tokens): (&str, &str), measure: &str) -> String {
    format!(
        "
sweepline: 1
name: exact
endpoints:
  chat: {{ url: http://127.0.0.1:{port}/v1, api: chat, resource: server }}
  text: {{ url: http://127.0.0.1:{port}/v1, api: completions, resource: server }}
models: {{ tiny: {{ id: default_model, tokenizer: {model} }} }}
scenarios:
  short: {{ base: lengths, lengths: {{ prompt: {tokens}, output: {{ uniform: {{ min: 1, max: 4 }} }} }} }}
phases: {{ fill: 0s, stabilize: 0s, measure: {measure}, drain: 60s }}
validity: {{ unsteady: {{ suspect: 100% }}, client_late: {{ suspect: 100% }} }}
sweeps:
  s: {{ matrix: {{ endpoint: [chat, text], model: [tiny], scenario: [short], batch_size: [2] }} }}
"
    )
}

fn is_run(ended: &Ended) {
    // Exit code 3: a run is suspect, which may happen on a busy machine and is not tested here.
    assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
}

/// Copies the real server's model to the plan's folder.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for name in ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

/// Prompts of all lengths up to 3 500 tokens: the server's count equals the intended one, for chats and
/// texts. Only a few are sent by default because the server is slow; two hundred are sent with
/// SWEEPLINE_REALSERVER_PROMPTS=200.
#[timed_test]
fn a_real_server_counts_prompts_of_all_lengths_as_they_were_meant() {
    let wanted = std::env::var("SWEEPLINE_REALSERVER_PROMPTS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let seconds = (wanted / 3).max(5);
    let lab = Lab::new();
    let Some(server) = RealServer::start(lab.path()) else { return };
    let Some(model) = real_model() else { return };
    copy(&model, &lab.path().join("model"));
    let lengths = "{ lognormal: { median: 250, sigma: 1.3, min: 16, max: 3500 } }";
    let plan = plan(server.port, ("model", lengths), &format!("{seconds}s"));
    lab.write("plan.yaml", &plan);
    is_run(&lab.run(&["run", "plan.yaml"]));
    let runs = lab.runs();
    assert_eq!(runs.len(), 2);
    let mut counted = Vec::new();
    for run in runs.values() {
        let api = &run.json["spec"]["endpoint"]["api"];
        let facts = &run.json["facts"];
        assert_eq!((&facts["prompt_count"], api == "chat"), (&"tokenizer".into(), facts["shortest_prompt"].is_u64()));
        for row in run.records.iter().map(|record| &record.row).filter(|row| row.prompt_tokens.is_some()) {
            assert_eq!(row.prompt_tokens, Some(row.intended_prompt_tokens), "{api}: {row:?}");
            counted.push((api == "chat", row.intended_prompt_tokens));
        }
    }
    for chat in [true, false] {
        let lengths: BTreeSet<u32> = counted.iter().filter(|(c, _)| *c == chat).map(|(_, tokens)| *tokens).collect();
        println!("chat {chat}: {} different lengths, {:?} to {:?}", lengths.len(), lengths.first(), lengths.last());
        assert!(lengths.len() >= wanted / 3 && *lengths.first().unwrap() < 200, "{lengths:?}");
    }
    let longest = counted.iter().map(|(_, tokens)| *tokens).max();
    assert!(wanted < 100 || longest > Some(3_000), "{longest:?}");
    println!("{} prompts", counted.len());
    assert!(counted.len() >= wanted, "{} prompts of {wanted}", counted.len());
}

/// A template also needs tokens. Shorter prompts are reported, and a plan that always requests them
/// is rejected.
#[timed_test]
fn prompts_that_are_too_short_for_the_template_are_told() {
    let (lab, library, mock) = (Lab::new(), bpe(), Mock::start(&[]));
    folder(&lab, &library);
    let long =
        "{% for m in messages %}{{ 'a b c d e f g h i j k l m n o p q r s t u v w x y z' + m['content'] }}{% endfor %}";
    lab.write("model/chat_template.jinja", long);
    let lengths = "{ uniform: { min: 16, max: 60 } }";
    lab.write("plan.yaml", &plan(mock.port, ("model", lengths), "300ms"));
    is_run(&lab.run(&["run", "plan.yaml"]));
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
    lab.write("plan.yaml", &plan(mock.port, ("model", "20"), "300ms"));
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
  short: {{ base: B1, output_tokens: 2 }}
  led: {{ base: C, system_tokens: 60, output_tokens: 2 }}
phases: {{ fill: 0s, stabilize: 0s, measure: 300ms, drain: 60s }}
sweeps:
  s:
    matrix:
      endpoint: [chat, text]
      model: [tiny]
      scenario: [short, led]
      prompt_tokens: [40, 700]
      batch_size: [2]
"
    )
}

/// If there are no files of the model, its server counts the tokens, in three dialects, before the run and
/// not during it. Prompts have exactly the requested lengths. If the server does not count, lengths are
/// estimated, and the run reports this.
#[timed_test]
fn a_server_that_counts_makes_lengths_exact() {
    for dialect in ["vllm", "sglang", "llama.cpp", "none"] {
        let (lab, mock) = (Lab::new(), Mock::start(&["--tokenize", dialect, "--itl", "1ms"]));
        lab.write("plan.yaml", &counted_by_the_server(mock.port, ", tokenizer: server"));
        is_run(&lab.run(&["run", "plan.yaml"]));
        let runs = lab.runs();
        assert_eq!(runs.len(), 8);
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
        assert!(all > 100);
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
    assert_eq!(spans.len(), 8);
    for line in &counts {
        assert!(spans.values().all(|(first, last)| !(first..=last).contains(&&at(line))), "{line}");
    }
    println!("{} counts", counts.len());
    assert!(counts.len() < 10_000, "{}", counts.len());
}

#[timed_test]
fn who_counts_is_a_part_of_what_a_run_is() {
    let lab = Lab::new();
    let ids = |tokenizer: &str| {
        lab.write("plan.yaml", &counted_by_the_server(1, tokenizer));
        let preview = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
        preview["runs"].as_array().unwrap().iter().map(|run| run["id"].to_string()).collect::<BTreeSet<_>>()
    };
    let (server, nobody) = (ids(", tokenizer: server"), ids(""));
    assert!(server.len() == 8 && server.is_disjoint(&nobody));
    // A folder with that name must be written as a path.
    folder(&lab, &bpe());
    std::fs::rename(lab.path().join("model"), lab.path().join("server")).unwrap();
    assert!(ids(", tokenizer: ./server").is_disjoint(&server));
}
