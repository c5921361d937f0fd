//! Tests prompts of exact lengths: each generated prompt is encoded again by the tokenizer library
//! itself, with the chat template written out by hand, and has the requested number of tokens.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sweepline::plan::model::content::{Content, Reuse};
use sweepline::plan::{Api, Disk, NonceMode, TokenizerFiles};
use sweepline::protocol::Framing;
use sweepline::units::{NonceSeed, Seed};
use sweepline::workload::tokenizer::{Message, TokenizerError};
use sweepline::workload::{Counting, Generator, NonceKey, Tokenizer};
use tokenizers::Tokenizer as Library;

use lab::Lab;
use lab::exact_prompts::{
    bpe, counted, every_prompt_is_as_long_as_asked, folder, load, on_a_server, real_model, unigram,
};
use lab::mock::Mock;

/// The number of prompts per tokenizer. The measured suite generates more.
const PROMPTS: u64 = 200;

#[test]
fn byte_level_bpe_prompts_are_exact() {
    let (lab, library) = (Lab::new(), bpe());
    let tokenizer = load(&folder(&lab, &library));
    every_prompt_is_as_long_as_asked(PROMPTS, &library, tokenizer);
}

#[test]
fn unigram_prompts_are_exact() {
    let (lab, library) = (Lab::new(), unigram());
    let tokenizer = load(&folder(&lab, &library));
    every_prompt_is_as_long_as_asked(PROMPTS, &library, tokenizer);
}

/// A server that counts differently from its model's tokenizer is detected. The mock has no tokenizer.
#[test]
fn a_server_of_another_tokenizer_is_told() {
    let (lab, library) = (Lab::new(), bpe());
    folder(&lab, &library);
    let mock = Mock::start(&[]);
    // The number of words and of tokens in a small vocabulary differ only slightly, so this plan
    // reports every difference.
    let plan = on_a_server(mock.port, "[400]").replace("validity: {", "validity: { prompt_length: { suspect: 0% },");
    lab.write("plan.yaml", &plan);
    let ended = lab.run(&["run", "plan.yaml"]);
    assert!(ended.stderr.contains("prompt_length"), "{}", ended.stderr);
    for run in lab.runs().values() {
        assert!(run.json["facts"]["probe_prompt"]["server"].as_u64().is_some_and(|tokens| tokens > 0));
        assert!(run.records.iter().all(|record| record.row.intended_prompt_tokens == 400));
    }
}

#[test]
fn a_tokenizer_is_a_part_of_what_a_run_is() {
    let (lab, library) = (Lab::new(), bpe());
    folder(&lab, &library);
    let ids = |plan: &str| {
        lab.write("plan.yaml", plan);
        let preview: serde_json::Value =
            serde_json::from_str(&lab.ok(&["preview", "plan.yaml", "--format", "json"]).stdout).unwrap();
        preview["runs"].as_array().unwrap().iter().map(|run| run["id"].to_string()).collect::<Vec<_>>()
    };
    let with = on_a_server(1, "[64]");
    let (exact, estimated) = (ids(&with), ids(&with.replace(", tokenizer: model", "")));
    assert_ne!(exact, estimated);
    lab.write("elsewhere/tokenizer.json", "{}");
    std::fs::rename(lab.path().join("model"), lab.path().join("elsewhere/model")).unwrap();
    assert_eq!(ids(&with.replace("tokenizer: model", "tokenizer: elsewhere/model")), exact, "its path does not matter");
    lab.write("elsewhere/model/chat_template.jinja", "{{ messages[0].content }}");
    assert_ne!(ids(&with.replace("tokenizer: model", "tokenizer: elsewhere/model")), exact, "its template does matter");
    for (path, expected) in [
        ("nowhere", "the file `nowhere` cannot be read"),
        ("..", "is not in the plan's folder"),
        (".", "has no tokenizer.json"),
    ] {
        lab.write("plan.yaml", &with.replace("tokenizer: model", &format!("tokenizer: {path}")));
        let ended = lab.run(&["check", "plan.yaml"]);
        assert_eq!(ended.code, Some(2), "{path}: {}{}", ended.stdout, ended.stderr);
        assert!(format!("{}{}", ended.stdout, ended.stderr).contains(expected), "{}{}", ended.stdout, ended.stderr);
    }
    // Files that are not a tokenizer are reported when the first run needs one: `check` does not read the
    // vocabulary.
    let mock = Mock::start(&[]);
    lab.write("plan.yaml", &on_a_server(mock.port, "[64]").replace(": model", ": elsewhere"));
    let ended = lab.run(&["run", "plan.yaml"]);
    assert_ne!(ended.code, Some(0));
    assert!(format!("{}{}", ended.stdout, ended.stderr).contains("tokenizer"), "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn a_system_message_and_equal_prompts_are_exact_too() {
    let (lab, library) = (Lab::new(), bpe());
    let tokenizer = Arc::new(load(&folder(&lab, &library)));
    let modes = [NonceMode::On, NonceMode::Run, NonceMode::Off];
    for (api, mode) in [Api::Chat, Api::Completions].into_iter().flat_map(|api| modes.map(|mode| (api, mode))) {
        for reuse in [Reuse::None, Reuse::SharedSystem, Reuse::SamePrompt] {
            let content = Content { reuse, system_tokens: 300, prompt_tokens: 200, ..Content::default() };
            let counting = Counting { tokenizer: Arc::clone(&tokenizer), framing: api.protocol().framing() };
            let key = NonceKey::new(NonceSeed([1; 16])).under(mode, None);
            let make = || Generator::counted(&content, (Seed(1), 0), key, counting.clone());
            let (a, b) = (make().unwrap(), make().unwrap());
            for k in [0, 1, 9] {
                let prompt = a.request(k);
                assert_eq!(prompt.intended_prompt_tokens, 500);
                assert_eq!(counted(&library, api, &prompt), 500);
                let system = prompt.system.clone().unwrap();
                assert_eq!(library.encode_fast(&*system, false).unwrap().len(), 300);
                b.request(k + 1);
                assert_eq!(b.request(k), prompt, "a pure function of its number");
            }
        }
    }
}

#[test]
fn what_cannot_be_reached_is_told_as_it_is() {
    let Some(model) = real_model() else { return };
    let library = Library::from_file(model.join("tokenizer.json")).unwrap();
    let content = Content { prompt_tokens: 16, ..Content::default() };
    let counting = Counting { tokenizer: Arc::new(load(&model)), framing: Framing::Chat };
    let generator =
        Generator::counted(&content, (Seed(1), 0), Some(NonceKey::new(NonceSeed([1; 16]))), counting).unwrap();
    let prompt = generator.request(0);
    assert!(prompt.intended_prompt_tokens > 16, "the template alone is longer");
    assert_eq!(prompt.intended_prompt_tokens as usize, counted(&library, Api::Chat, &prompt));
}

/// A message of each kind costs as many tokens as the rendered template has. `expected` is the output of
/// Hugging Face's library (transformers 5.23, jinja2 3.1.6) for the same template.
#[test]
fn a_template_is_rendered_as_hugging_faces_library_does() {
    let (lab, library) = (Lab::new(), bpe());
    let model = folder(&lab, &library);
    lab.write("model/chat_template.jinja", include_str!("../tokenizer/chat_template.jinja"));
    let tokenizer = load(&model);
    let user = |content| Message { role: "user", content };
    let long = [
        Message { role: "system", content: " Rules. More rules. " },
        user("[ref 1] Why?"),
        Message { role: "assistant", content: " So it is. " },
        user("And?\n"),
    ];
    let expected = "<s>\n<|system|>\nToday: a day\n<|user|>\n[ref 1] Why? \n{\"users\": 1, \"last\": \"[ref\", \"list\": \
                    [1, true, null, \"é<\"]}<|assistant|>\n";
    assert_eq!(tokenizer.rendered(&[user("[ref 1] Why? ")]).unwrap().unwrap(), expected);
    let expected = "<s>\n<|system|>\nToday: a day\nRULES|Rules. More rules.!\n<|user|>\n[ref 1] Why?<|next|>\
                    <|assistant|>\nSo it is.</s><|next|><|user|>\nAnd?\n\n{\"users\": 1, \"last\": \"And?\", \"list\": \
                    [1, true, null, \"é<\"]}<|assistant|>\n";
    assert_eq!(tokenizer.rendered(&long).unwrap().unwrap(), expected);
    let error = tokenizer.chat_tokens(&[user("a"), user("b")]).unwrap_err();
    assert!(error.to_string().contains("roles must alternate: user"), "{error}");
}

fn of_template(library: &Library, config: &str, template: Option<&str>) -> Result<Tokenizer, TokenizerError> {
    Tokenizer::new(&TokenizerFiles {
        tokenizer: library.to_string(false).unwrap().into_bytes(),
        config: Some(config.as_bytes().to_vec()),
        template: template.map(|text| text.as_bytes().to_vec()),
    })
}

#[test]
fn hostile_templates_end() {
    let library = bpe();
    let chat = [Message { role: "user", content: "Why?" }];
    let rendered = |template: &str| of_template(&library, "{}", Some(template)).and_then(|t| t.chat_tokens(&chat));
    for (template, expected) in [
        ("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", "fuel"),
        ("{% for a in range(100000) %}{{ messages[0].content * 1000 }}{% endfor %}", "more than"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recursion"),
        ("{% include 'tokenizer.json' %}", "tokenizer.json"),
        ("{{ 'a' * 100000000000 }}", ""),
        ("{% for %}", "line 1"),
        ("{{ messages[0].content.encode('x') }}", "encode"),
        ("{{ raise_exception('no\u{1b}[2J such\nchat') }}", "no[2J such"),
        ("{{ strftime_now('%Q%!') }}", "strftime_now"),
    ] {
        let error = rendered(template).expect_err(template).to_string();
        assert!(error.contains(expected) && !error.contains('\u{1b}'), "{template}: {error}");
    }
    let date = |text: &str| of_template(&library, "{}", Some(text)).unwrap().rendered(&chat).unwrap().unwrap();
    assert_eq!(date("{{ strftime_now('%d %b %Y') }}"), "26 Jul 2024", "the clock is fixed");
}

#[test]
fn what_stands_beside_the_vocabulary_counts() {
    let library = bpe();
    let text = |config: &str| of_template(&library, config, None).unwrap().text_tokens("Why?").unwrap();
    let plain = library.encode_fast("Why?", false).unwrap().len() as u32;
    assert_eq!(text("{}"), plain);
    assert_eq!(text(r#"{ "bos_token": "<s>", "add_bos_token": true }"#), plain + 1);
    assert_eq!(
        text(r#"{ "bos_token": "<s>", "eos_token": "</s>", "add_bos_token": true, "add_eos_token": true }"#),
        plain + 2
    );
    assert_eq!(text(r#"{ "add_bos_token": true }"#), plain, "there is no token to add");
    let chat = |config: &str| {
        let tokenizer = of_template(&library, config, None)?;
        assert_eq!(tokenizer.has_template(), config.contains("chat_template"));
        tokenizer.chat_tokens(&[Message { role: "user", content: "Why?" }])
    };
    assert_eq!(
        chat(r#"{ "add_bos_token": true, "bos_token": "<s>" }"#),
        Ok(plain),
        "the surrounding tokens are unknown"
    );
    assert_eq!(chat(r#"{ "chat_template": "{{ bos_token }}Why?", "bos_token": "<s>" }"#), Ok(plain + 1));
    let named =
        r#"{ "chat_template": [{ "name": "tool_use", "template": "x" }, { "name": "default", "template": "Why?" }] }"#;
    assert_eq!(chat(named), Ok(plain));
    // A special token that only the configuration defines is one token.
    assert_eq!(chat(r#"{ "chat_template": "{{ eos_token }}", "eos_token": "<|of_the_answer_end|>" }"#), Ok(1));
    for (config, expected) in [
        ("{", "tokenizer_config.json"),
        (r#"{ "chat_template": [{ "name": "rag", "template": "x" }] }"#, "no template named default"),
        (r#"{ "chat_template": "{% if %}" }"#, "chat template"),
    ] {
        assert!(chat(config).unwrap_err().to_string().contains(expected), "{config}");
    }
}

#[test]
fn files_are_found_digested_and_refused() {
    let (lab, library) = (Lab::new(), bpe());
    let model = folder(&lab, &library);
    let read = |path: &Path| TokenizerFiles::read(&Disk, path);
    let whole = read(&model).unwrap();
    let alone = read(&model.join("tokenizer.json")).unwrap();
    assert!(whole.config.is_some() && whole.template.is_some() && alone.config.is_none() && alone.template.is_none());
    let mut digests = BTreeMap::from([(whole.digest(), "whole"), (alone.digest(), "alone")]);
    lab.write("model/chat_template.jinja", "{{ messages[0].content }}");
    digests.insert(read(&model).unwrap().digest(), "template");
    lab.write("model/tokenizer_config.json", "{}");
    digests.insert(read(&model).unwrap().digest(), "config");
    assert_eq!(digests.len(), 4, "every file counts");
    std::fs::create_dir(lab.path().join("empty")).unwrap();
    for (path, expected) in [("empty", "has no tokenizer.json"), ("nowhere", "cannot be read")] {
        let error = read(&lab.path().join(path)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let refused = |text: &str| {
        let files = TokenizerFiles { tokenizer: text.as_bytes().to_vec(), config: None, template: None };
        Tokenizer::new(&files).unwrap_err().to_string()
    };
    assert!(refused("{}").starts_with("tokenizer.json is not a valid tokenizer"));
    assert!(
        refused(&library.to_string(false).unwrap().replace(r#""dropout":null"#, r#""dropout":0.1"#)).contains("0.1")
    );
}
