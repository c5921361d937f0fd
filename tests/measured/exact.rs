//! Tests exact lengths with a real inference server: its count equals the requested length.

use std::collections::BTreeSet;

use lab::exact_prompts::{copy, real_model};
use lab::realserver::RealServer;
use lab::{Ended, Lab};

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

/// Prompts of all lengths up to 3 500 tokens: the server's count equals the intended one, for chats and
/// texts. Only a few are sent by default because the server is slow; two hundred are sent with
/// SWEEPLINE_REALSERVER_PROMPTS=200.
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

lab::measured_tests![a_real_server_counts_prompts_of_all_lengths_as_they_were_meant];
