//! Tests prompts of exact lengths: many with each tokenizer, and those of a real model and its server.

use lab::Lab;
use lab::exact_prompts::{bpe, copy, every_prompt_is_as_long_as_asked, folder, load, on_a_server, real_model, unigram};
use lab::realserver::RealServer;
use tokenizers::Tokenizer as Library;

/// Returns the number of prompts per tokenizer.
fn prompts() -> u64 {
    std::env::var("SWEEPLINE_PROMPTS").ok().and_then(|text| text.parse().ok()).unwrap_or(4_000)
}

fn byte_level_bpe_prompts_are_exact() {
    let (lab, library) = (Lab::new(), bpe());
    let tokenizer = load(&folder(&lab, &library));
    every_prompt_is_as_long_as_asked(prompts(), &library, tokenizer);
}

fn unigram_prompts_are_exact() {
    let (lab, library) = (Lab::new(), unigram());
    let tokenizer = load(&folder(&lab, &library));
    every_prompt_is_as_long_as_asked(prompts(), &library, tokenizer);
}

fn a_real_models_prompts_are_exact() {
    let Some(model) = real_model() else { return };
    let library = Library::from_file(model.join("tokenizer.json")).unwrap();
    every_prompt_is_as_long_as_asked(prompts(), &library, load(&model));
}

/// The server's own count equals the intended length to the token, for both APIs. With
/// SWEEPLINE_PROMPTS, more lengths are tested than the few that are needed to show this.
fn a_real_server_counts_what_we_meant_to_send() {
    let lab = Lab::new();
    let Some(server) = RealServer::start(lab.path()) else { return };
    let Some(model) = real_model() else { return };
    copy(&model, &lab.path().join("model"));
    let many = "[64, 100, 150, 200, 300, 400, 600, 800, 1000, 1300, 1600, 2000, 2400, 2800, 3200, 3500]";
    let lengths = if std::env::var_os("SWEEPLINE_PROMPTS").is_some() { many } else { "[64, 1000, 3500]" };
    lab.write("plan.yaml", &on_a_server(server.port, lengths));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
    let (mut counted, mut runs) = (0, 0);
    for run in lab.runs().values() {
        assert_eq!(run.json["facts"]["prompt_count"], "tokenizer");
        let probe = &run.json["facts"]["probe_prompt"];
        assert_eq!(probe["ours"], probe["server"], "{probe}");
        let asked = run.json["spec"]["scenario"]["prompt_tokens"].as_u64().unwrap();
        for row in run.records.iter().map(|record| &record.row).filter(|row| row.prompt_tokens.is_some()) {
            assert_eq!(u64::from(row.intended_prompt_tokens), asked);
            assert_eq!(row.prompt_tokens, Some(row.intended_prompt_tokens));
            counted += 1;
        }
        runs += 1;
    }
    println!("{counted} prompts in {runs} runs");
    assert!(counted >= 2 * runs, "{counted} prompts in {runs} runs");
}

lab::measured_tests![
    byte_level_bpe_prompts_are_exact,
    unigram_prompts_are_exact,
    a_real_models_prompts_are_exact,
    a_real_server_counts_what_we_meant_to_send,
];
