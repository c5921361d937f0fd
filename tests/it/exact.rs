//! Exact lengths through the program: what the server counts is what was asked for.

use std::collections::BTreeSet;
use std::path::Path;

use super::lab::{Ended, Lab};
use super::mock::Mock;
use super::realserver::RealServer;
use super::tokens::{bpe, folder, real_model};

/// A plan that sends prompts of these lengths to both APIs of one server.
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
    // 3: a run is suspect, which on a busy machine may be so and is not what these tests are about.
    assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
}

/// Copies the model of the real server beside the plan.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for name in ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

/// Prompts of all lengths up to 3 500 tokens: the server counts each as it was meant, chats and texts. A few by default; two
/// hundred, as the server is slow, with SWEEPLINE_REALSERVER_PROMPTS=200.
#[test]
fn a_real_server_counts_prompts_of_all_lengths_as_they_were_meant() {
    let wanted = std::env::var("SWEEPLINE_REALSERVER_PROMPTS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let seconds = (wanted / 2).max(5);
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
        assert!(wanted < 100 || *lengths.last().unwrap() > 3_000, "{lengths:?}");
    }
    println!("{} prompts", counted.len());
    assert!(counted.len() >= wanted, "{} prompts of {wanted}", counted.len());
}

/// A template needs tokens of its own: what is asked to be shorter is told, and what is asked to be so always is refused.
#[test]
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
        assert_eq!(rows.clone().min().filter(|_| is_chat), shortest, "the shortest row is as long as the facts say");
        assert!(!is_chat || shortest.is_some_and(|tokens| tokens > 26), "{shortest:?}");
        let told = shortest.map(|tokens| format!("room for none below {tokens} tokens")).unwrap_or("verdict".into());
        assert!(shown.replace("\n  ", " ").contains(&told), "{shown}");
        assert!(rows.max().is_some_and(|most| most > 50));
    }
    lab.write("plan.yaml", &plan(mock.port, ("model", "20"), "300ms"));
    let ended = lab.run(&["run", "plan.yaml"]);
    let text = format!("{}{}", ended.stdout, ended.stderr);
    assert!(text.contains("no prompt has 20 tokens") && ended.code != Some(0), "{text}");
}
