//! Tests prompts of exact lengths: each generated prompt is encoded again by the tokenizer library
//! itself, with the chat template written out by hand, and has the requested number of tokens.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use sweepline::plan::model::content::{Content, Reuse};
use sweepline::plan::{Api, Disk, NonceMode, TokenizerFiles};
use sweepline::protocol::Framing;
use sweepline::units::{NonceSeed, Seed};
use sweepline::workload::tokenizer::{Message, TokenizerError};
use sweepline::workload::{Common, Counting, Generator, NonceKey, Prompt, Tokenizer};
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::models::unigram::{Unigram, UnigramTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::{AddedToken, Tokenizer as Library};

use super::lab::Lab;
use super::mock::Mock;
use super::realserver::RealServer;

const CHATML: &str = "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}\
                      {% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
const CONFIG: &str = r#"{ "bos_token": "<s>", "eos_token": { "content": "</s>" }, "model_max_length": 4096 }"#;

fn specials() -> Vec<AddedToken> {
    ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"].map(|text| AddedToken::from(text, true)).into()
}

/// Returns text for training tokenizers: our own prose and the words of a chat.
fn text() -> Vec<String> {
    let content = Content { prompt_tokens: 500, ..Content::default() };
    let generator = Generator::new(&content, Seed(3), 0, Some(NonceKey::new(NonceSeed([7; 16]))));
    (0..200).map(|k| generator.request(k).user).chain(["user\nassistant\nsystem\n".to_owned()]).collect()
}

/// Returns a byte-level BPE tokenizer, as in GPT-like models, which puts a token in front of text that is
/// not a chat.
pub fn bpe() -> Library {
    let mut library = Library::new(BPE::default());
    library.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
    library.with_decoder(Some(ByteLevel::default()));
    let alphabet = ByteLevel::alphabet().into_iter().collect();
    let trainer = BpeTrainer::builder().vocab_size(2_000).show_progress(false);
    let mut trainer: TrainerWrapper = trainer.special_tokens(specials()).initial_alphabet(alphabet).build().into();
    library.train(&mut trainer, text().into_iter()).unwrap();
    library
}

/// Returns a unigram tokenizer over words in which a mark stands for the space, as in
/// SentencePiece.
fn unigram() -> Library {
    let mut library = Library::new(Unigram::default());
    library.with_pre_tokenizer(Some(Metaspace::new('▁', PrependScheme::Always, true)));
    library.with_decoder(Some(Metaspace::default()));
    let mut building = UnigramTrainer::builder();
    building.vocab_size(1_500).show_progress(false).unk_token(Some("<unk>".to_owned())).special_tokens(specials());
    let mut trainer: TrainerWrapper = building.build().unwrap().into();
    library.train(&mut trainer, text().into_iter()).unwrap();
    library
}

/// Writes the folder of a tokenizer with a chat template.
pub fn folder(lab: &Lab, library: &Library) -> PathBuf {
    lab.write("model/tokenizer_config.json", CONFIG);
    lab.write("model/chat_template.jinja", CHATML);
    lab.write("model/tokenizer.json", &library.to_string(false).unwrap()).parent().unwrap().to_owned()
}

fn load(path: &Path) -> Tokenizer {
    Tokenizer::new(&TokenizerFiles::read(&Disk, path).unwrap()).unwrap()
}

/// Returns the library's own count, with the chat template written out by hand.
fn counted(library: &Library, api: Api, prompt: &Prompt) -> usize {
    let text = match (api.protocol().framing(), &prompt.system) {
        (Framing::Text, None) => prompt.user.clone(),
        (Framing::Text, Some(system)) => format!("{system}\n\n{}", prompt.user),
        (Framing::Chat, system) => {
            let said = |role: &str, text: &str| format!("<|im_start|>{role}\n{text}<|im_end|>\n");
            let system = system.as_ref().map(|text| said("system", text)).unwrap_or_default();
            format!("{system}{}<|im_start|>assistant\n", said("user", &prompt.user))
        }
    };
    library.encode_fast(text, api == Api::Completions).unwrap().len()
}

/// Returns the number of prompts per tokenizer.
fn prompts() -> u64 {
    std::env::var("SWEEPLINE_PROMPTS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000)
}

/// Returns a length. The lengths are from 16 to 8 192 tokens, including each one from 16 to 79, and one in
/// thirty is above 4 096.
fn length(k: u64) -> u32 {
    match k {
        0..64 => 16 + k as u32,
        64 => 8_192,
        _ => {
            let u = (k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1u64 << 53) as f64;
            16 + (8_176.0 * u.powi(20)) as u32
        }
    }
}

/// Generates prompts of all lengths, as chats if the template leaves room for at least one token.
fn every_prompt_is_as_long_as_asked(library: &Library, tokenizer: Tokenizer) {
    let tokenizer = Arc::new(tokenizer);
    let (mut making, mut tokens, mut smallest_chats) = (0.0, 0, 0);
    let smallest = smallest_chat(library);
    for k in 0..prompts() {
        // A third of the chats are as short as possible, or a few tokens longer.
        let asked = if k % 6 == 2 { smallest.max(16) + (k / 6 % 24) as u32 } else { length(k) };
        let api = if k % 2 == 0 && asked >= smallest { Api::Chat } else { Api::Completions };
        smallest_chats += u64::from(api == Api::Chat && asked == smallest.max(16));
        let content = Content { prompt_tokens: asked, ..Content::default() };
        let counting = Counting { tokenizer: Arc::clone(&tokenizer), framing: api.protocol().framing() };
        let key = (k % 5 > 0).then(|| NonceKey::new(NonceSeed([k as u8; 16])));
        let before = Instant::now();
        let generator = Generator::counted(&content, (Seed(k), 0), key, counting).unwrap();
        let prompt = generator.request(k);
        making += before.elapsed().as_secs_f64();
        tokens += u64::from(asked);
        assert_eq!(prompt.intended_prompt_tokens, asked, "{k} {api:?}: {}", prompt.user);
        assert_eq!(counted(library, api, &prompt), asked as usize, "{k} {api:?}: {}", prompt.user);
    }
    assert!(smallest_chats > 0, "{smallest}");
    let each = making / prompts() as f64;
    println!(
        "{} prompts, {tokens} tokens: {:.2} ms each, {:.2} µs a token",
        prompts(),
        each * 1e3,
        making / tokens as f64 * 1e6
    );
}

/// Returns the number of tokens of the shortest chat, which is that of the template plus one.
fn smallest_chat(library: &Library) -> u32 {
    let empty = Prompt {
        system: None,
        user: String::new(),
        more: Vec::new(),
        own_nonce: None,
        intended_prompt_tokens: 0,
        system_tokens: 0,
        seen_tokens: 0,
        common: Common::Nothing,
        output_tokens: 1,
    };
    counted(library, Api::Chat, &empty) as u32 + 1
}

#[timed_test]
fn byte_level_bpe_prompts_are_exact() {
    let (lab, library) = (Lab::new(), bpe());
    let tokenizer = load(&folder(&lab, &library));
    every_prompt_is_as_long_as_asked(&library, tokenizer);
}

#[timed_test]
fn unigram_prompts_are_exact() {
    let (lab, library) = (Lab::new(), unigram());
    let tokenizer = load(&folder(&lab, &library));
    every_prompt_is_as_long_as_asked(&library, tokenizer);
}

/// Returns the model of the real server if it is installed; otherwise prints a message and returns `None`.
pub fn real_model() -> Option<PathBuf> {
    let model = Path::new(&std::env::var_os("HOME")?).join(".cache/sweepline-realserver/model");
    if !model.join("tokenizer.json").is_file() {
        eprintln!("skipped: {} is missing", model.display());
        return None;
    }
    Some(model)
}

#[timed_test]
fn a_real_models_prompts_are_exact() {
    let Some(model) = real_model() else { return };
    let library = Library::from_file(model.join("tokenizer.json")).unwrap();
    every_prompt_is_as_long_as_asked(&library, load(&model));
}

/// Returns a plan with lengths of 16 to 3 500 tokens on both APIs of one server, and a model whose
/// tokenizer is next to the plan.
fn on_a_server(port: u16, lengths: &str) -> String {
    format!(
        "
sweepline: 1
name: exact
endpoints:
  chat: {{ url: http://127.0.0.1:{port}/v1, api: chat, resource: server }}
  text: {{ url: http://127.0.0.1:{port}/v1, api: completions, resource: server }}
models: {{ tiny: {{ id: default_model, tokenizer: model }} }}
scenarios: {{ short: {{ base: B1, output_tokens: 1 }} }}
phases: {{ fill: 0s, stabilize: 0s, measure: 500ms, drain: 60s }}
validity: {{ unsteady: {{ suspect: 100% }}, client_late: {{ suspect: 100% }} }}
sweeps:
  s:
    matrix: {{ endpoint: [chat, text], model: [tiny], scenario: [short], prompt_tokens: {lengths}, batch_size: [2] }}
"
    )
}

/// The server's own count equals the intended length to the token, for both APIs. With
/// SWEEPLINE_PROMPTS, more lengths are tested than the few that are needed to show this.
#[timed_test]
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

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for name in ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

/// A server that counts differently from its model's tokenizer is detected. The mock has no tokenizer.
#[timed_test]
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

#[timed_test]
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

#[timed_test]
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

#[timed_test]
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
#[timed_test]
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

#[timed_test]
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

#[timed_test]
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

#[timed_test]
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
