//! Tokenizers, and prompts of exact lengths: each generated prompt is encoded again by the tokenizer library
//! itself, with the chat template written out by hand, and must have the requested number of tokens.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use sweepline::plan::model::content::Content;
use sweepline::plan::{Api, Disk, TokenizerFiles};
use sweepline::protocol::Framing;
use sweepline::units::{NonceSeed, Seed};
use sweepline::workload::{Common, Counting, Generator, NonceKey, Prompt, Tokenizer};
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::models::unigram::{Unigram, UnigramTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::{AddedToken, Tokenizer as Library};

use super::Lab;

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
pub fn unigram() -> Library {
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

/// Returns the model of the real server if it is installed; otherwise prints a message and returns `None`.
pub fn real_model() -> Option<PathBuf> {
    let model = Path::new(&std::env::var_os("HOME")?).join(".cache/sweepline-realserver/model");
    if !model.join("tokenizer.json").is_file() {
        eprintln!("skipped: {} is missing", model.display());
        return None;
    }
    Some(model)
}

pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for name in ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

pub fn load(path: &Path) -> Tokenizer {
    Tokenizer::new(&TokenizerFiles::read(&Disk, path).unwrap()).unwrap()
}

/// Returns the library's own count, with the chat template written out by hand.
pub fn counted(library: &Library, api: Api, prompt: &Prompt) -> usize {
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
pub fn every_prompt_is_as_long_as_asked(prompts: u64, library: &Library, tokenizer: Tokenizer) {
    let tokenizer = Arc::new(tokenizer);
    let (mut making, mut tokens, mut smallest_chats) = (0.0, 0, 0);
    let smallest = smallest_chat(library);
    for k in 0..prompts {
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
    let each = making / prompts as f64;
    println!(
        "{} prompts, {tokens} tokens: {:.2} ms each, {:.2} µs a token",
        prompts,
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

/// Returns a plan with lengths of 16 to 3 500 tokens on both APIs of one server, and a model whose
/// tokenizer is next to the plan.
pub fn on_a_server(port: u16, lengths: &str) -> String {
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

/// Returns a plan that sends prompts of these lengths to both APIs of one server.
pub fn lengths_on_a_server(port: u16, (model, tokens): (&str, &str), measure: &str) -> String {
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
