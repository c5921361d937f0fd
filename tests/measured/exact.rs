//! Tests exact lengths with a real inference server: its count equals the requested length.

use std::collections::BTreeSet;

use lab::Lab;
use lab::exact_prompts::{copy, lengths_on_a_server, real_model};
use lab::realserver::RealServer;
use lab::sweeps::honest;

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
    let plan = lengths_on_a_server(server.port, ("model", lengths), &format!("{seconds}s"));
    lab.write("plan.yaml", &plan);
    honest(&lab.run(&["run", "plan.yaml"]));
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
