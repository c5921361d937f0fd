//! What the mock is like: figures, shape of the stream, faults.

use std::path::PathBuf;

use clap::ValueEnum;

use super::fault::Fault;
use crate::units::{Decimal, Nanos, PerToken, Seed, Share};

/// Everything that decides how the server behaves. The defaults are those of a plan's embedded mock.
#[derive(Debug, Clone)]
pub struct Config {
    /// Time from a free slot to the first token, without prefill.
    pub ttft: Nanos,
    /// Time between tokens of a stream that is alone.
    pub itl: Nanos,
    /// Streams served at once, at least 1; further requests wait, first come, first served.
    pub slots: u32,
    /// Extra time to the first token for each prompt token that is not in the prefix cache.
    pub prefill: PerToken,
    /// Tokens that the prefix cache keeps, at least one block; `None`: there is none.
    pub prefix_cache: Option<u32>,
    /// Tokens of a block of the prefix cache, at least 1.
    pub prefix_block: u32,
    /// Whether answers tell what the prefix cache held, as vLLM does only with `--enable-prompt-tokens-details`.
    pub reports_cached: bool,
    /// Growth of the inter-token time for each further busy slot: itl × (1 + load × (busy − 1)).
    pub load: Decimal,
    /// Spread: every time is multiplied by 1 ± jitter, uniformly, by seed.
    pub jitter: Share,
    /// Seed of jitter, text, faults by rate and cuts.
    pub seed: Seed,
    /// Whether a generation goes on to its end after its client has gone away, in its slot, as mlx-lm's does; otherwise it ends
    /// at once, as vLLM's does.
    pub finishes_abandoned: bool,
    /// Whether `/metrics` tells how many requests run and wait.
    pub tells_load: bool,
    /// What `/version` says, one after another and from the beginning again, as a balancer between several servers does; empty:
    /// sweepline's own version.
    pub versions: Vec<String>,
    /// Names that are served; any other is answered with 404. Empty: any name is served.
    pub models: Vec<String>,
    /// The bearer key that requests must carry; `None`: no key is asked for.
    pub api_key: Option<String>,
    /// Tokens after which an answer ends by itself, unless the request says `ignore_eos`.
    pub eos_after: Option<u32>,
    /// Chance of each token to be the last, unless the request says `ignore_eos`.
    pub eos_rate: Share,
    /// How a chat stream opens.
    pub first: FirstChunk,
    /// Where a stream carries the usage.
    pub usage: UsagePosition,
    /// Tokens in each event, at least 1 (speculative decoding sends several).
    pub tokens_per_event: u32,
    /// Leading tokens of a chat answer that are reasoning.
    pub reasoning: u32,
    /// The field that carries reasoning.
    pub reasoning_field: ReasoningField,
    /// Which words answers are made of.
    pub words: Vocabulary,
    /// How texts are counted before they are sent.
    pub tokenize: Tokenize,
    /// Whether a stream ends with `data: [DONE]`.
    pub done_marker: bool,
    /// Whether lines of the stream end with CR LF.
    pub crlf: bool,
    /// Whether comments (`: keepalive 0/18`) come before the first token, as mlx-lm sends them.
    pub keepalive_comments: bool,
    /// Size of the HTTP chunks of a stream in bytes, each written by a call of its own; `None`: one chunk per event.
    pub chunk_bytes: Option<usize>,
    /// Whether the bytes on the wire are cut into small writes.
    pub cut: Cut,
    /// Pause between the pieces of `chunk_bytes` and `cut`.
    pub cut_pause: Nanos,
    /// Whether streams are HTTP/1.0 and end with the connection.
    pub close_delimited: bool,
    /// Whether each event is a write call of its own even where nothing is to be waited for.
    pub write_per_event: bool,
    /// What goes wrong; of several that match a request the first counts.
    pub faults: Vec<Fault>,
    /// Connections after which the server stops listening: further ones are refused by the kernel.
    pub refuse_after: Option<u64>,
    /// The file for the log, JSON lines.
    pub log: Option<PathBuf>,
    /// Whether the log holds request bodies and answers.
    pub log_text: bool,
}

impl Config {
    /// Tokens of a block of the prefix cache where nothing else is said: vLLM's default.
    pub const PREFIX_BLOCK: u32 = 16;
}

impl Default for Config {
    fn default() -> Self {
        Config {
            ttft: Nanos::from_millis(20),
            itl: Nanos::from_millis(4),
            slots: 8,
            prefill: PerToken::default(),
            prefix_cache: None,
            prefix_block: Config::PREFIX_BLOCK,
            reports_cached: true,
            load: Decimal::default(),
            jitter: Share::default(),
            seed: Seed(0),
            finishes_abandoned: false,
            tells_load: true,
            versions: Vec::new(),
            models: Vec::new(),
            api_key: None,
            eos_after: None,
            eos_rate: Share::default(),
            first: FirstChunk::Role,
            usage: UsagePosition::Separate,
            tokens_per_event: 1,
            reasoning: 0,
            reasoning_field: ReasoningField::ReasoningContent,
            words: Vocabulary::Plain,
            tokenize: Tokenize::Vllm,
            done_marker: true,
            crlf: false,
            keepalive_comments: false,
            chunk_bytes: None,
            cut: Cut::None,
            cut_pause: Nanos::ZERO,
            close_delimited: false,
            write_per_event: false,
            faults: Vec::new(),
            refuse_after: None,
            log: None,
            log_text: false,
        }
    }
}

/// How a chat stream opens. A chunk without text is written when the request gets its slot, well before the first
/// token, so that a client which takes it for one is found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FirstChunk {
    /// A chunk with the role and `content: ""`, as vLLM and SGLang send it.
    Role,
    /// Role and first text in one chunk, as mlx-lm sends it.
    Content,
    /// A chunk with the role and `content: null`, as llama.cpp sends it; in completions a chunk with empty text.
    Empty,
}

/// Where a stream carries the usage, if the request asks for it by `stream_options.include_usage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UsagePosition {
    /// In a chunk of its own with empty `choices`, after the finish chunk, as OpenAI and vLLM do.
    Separate,
    /// In the finish chunk, which has no text, as transformers serve does.
    Last,
    /// In the chunk with the last text, which has the finish reason too, as SGLang did.
    WithContent,
    /// In the chunk with the last text, and again in one of its own.
    Both,
    /// In every chunk with text, growing, and in one of its own, as vLLM's `continuous_usage_stats` does.
    Every,
    /// Nowhere, whatever the request asks for.
    Never,
    /// In a chunk of its own, even if the request did not ask.
    Always,
}

/// The field of a chat delta that carries reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum ReasoningField {
    /// `reasoning_content`, as SGLang and DeepSeek name it.
    ReasoningContent,
    /// `reasoning`, as vLLM names it.
    Reasoning,
}

/// Which words answers are made of; one word is one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Vocabulary {
    /// Plain ASCII.
    Plain,
    /// Words of two to four bytes per character.
    Utf8,
    /// Words that JSON has to escape: quotes, backslashes, `\u` sequences and surrogate pairs.
    Escaped,
}

/// Whether the bytes on the wire are cut into small writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Cut {
    /// Written as they come.
    None,
    /// Pieces of 1 to 32 bytes by seed, so that borders fall inside characters, line ends and chunk sizes.
    Random,
}

/// The form of `/tokenize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tokenize {
    /// As vLLM has it: texts and chats.
    Vllm,
    /// As SGLang has it: texts, or lists of them.
    Sglang,
    /// As llama.cpp has it: texts, and /apply-template makes one of a chat.
    #[value(name = "llama.cpp")]
    LlamaCpp,
    /// There is none.
    None,
}
