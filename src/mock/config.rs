//! What the mock is like: figures, shape of the stream, faults.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::fault::Fault;
use crate::units::{Decimal, Nanos, PerToken, Share};

/// The heading of `--help` that is the command's too.
pub const LISTENING: &str = "Listening";
const TIMING: &str = "Timing";
const PREFIX_CACHE: &str = "Prefix cache";
const ANSWERS: &str = "Answers";
/// What the log holds stands here too.
pub const WIRE: &str = "Bytes on the wire";
const FAULTS: &str = "Faults";

/// Everything that decides how the server behaves, as the flags of `sweepline mock` say it. The defaults are those of a plan's embedded
/// mock.
#[derive(Debug, Clone, Args)]
pub struct Config {
    /// Say this version at /version; several with commas are said in turn, as behind a balancer [default: sweepline's own]
    #[arg(help_heading = LISTENING, long = "version-says", value_name = "VERSION,…", value_delimiter = ',')]
    pub versions: Vec<String>,
    /// A model that is served, may be given several times; others are answered with 404 [default: any name]
    #[arg(help_heading = LISTENING, long = "model", value_name = "NAME")]
    pub models: Vec<String>,
    /// The bearer key that requests must carry; none: no key is asked for.
    #[arg(skip)]
    pub api_key: Option<String>,
    /// Time from a free slot to the first token, without prefill
    #[arg(help_heading = TIMING, long, value_name = "TIME", default_value = "20ms")]
    pub ttft: Nanos,
    /// Time between tokens of a stream that is alone
    #[arg(help_heading = TIMING, long, value_name = "TIME", default_value = "4ms")]
    pub itl: Nanos,
    /// Streams served at once; others wait, first come, first served
    #[arg(help_heading = TIMING, long, value_name = "STREAMS", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub slots: u32,
    /// Extra time to the first token for each prompt token that is not in the prefix cache, like 0.1ms/token
    #[arg(help_heading = TIMING, long, value_name = "TIME/token", default_value_t = PerToken::default())]
    pub prefill: PerToken,
    /// Growth of the inter-token time for each further busy slot: itl × (1 + load × (busy − 1))
    #[arg(help_heading = TIMING, long, value_name = "FACTOR", default_value_t = Decimal::default())]
    pub load: Decimal,
    /// Multiply every time by 1 ± this share, uniformly, by seed
    #[arg(help_heading = TIMING, long, value_name = "SHARE", default_value = "0%")]
    pub jitter: Share,
    /// Generate to the end for clients that have gone away, in their slots, as mlx-lm does; without it such a generation ends at
    /// once, as vLLM's does
    #[arg(help_heading = TIMING, long)]
    pub finish_abandoned: bool,
    /// Leave out of /metrics how many requests run and wait
    #[arg(help_heading = TIMING, long)]
    pub no_load_gauges: bool,
    /// Seed of jitter, text, cuts and faults by rate
    #[arg(help_heading = TIMING, long, default_value_t = 0)]
    pub seed: u64,
    /// Keep the computed tokens of prompts and answers, so many at most, as vLLM's prefix caching does: what a prompt
    /// has in common with them is not computed again, and is reported as `cached_tokens`. Figures stand at /metrics;
    /// POST /reset_prefix_cache forgets them [default: no prefix cache]
    #[arg(help_heading = PREFIX_CACHE, long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub prefix_cache: Option<u32>,
    /// Tokens of a block: only full blocks are kept and found
    #[arg(
        help_heading = PREFIX_CACHE, long, value_name = "TOKENS", default_value_t = Config::PREFIX_BLOCK, requires = "prefix_cache",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub prefix_block: u32,
    /// Leave `cached_tokens` out of answers, as vLLM does without --enable-prompt-tokens-details; the log has them all the
    /// same
    #[arg(help_heading = PREFIX_CACHE, long)]
    pub no_cached_tokens: bool,
    /// End answers after this many tokens, unless the request says ignore_eos
    #[arg(help_heading = ANSWERS, long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub eos_after: Option<u32>,
    /// Chance of each token to be the last, unless the request says ignore_eos
    #[arg(help_heading = ANSWERS, long, value_name = "SHARE", default_value = "0%")]
    pub eos_rate: Share,
    /// How a chat stream opens: role with "", role with text, role with null
    #[arg(help_heading = ANSWERS, long, value_enum, default_value_t = FirstChunk::Role)]
    pub first: FirstChunk,
    /// Where a stream carries the usage
    #[arg(help_heading = ANSWERS, long, value_enum, default_value_t = UsagePosition::Separate)]
    pub usage: UsagePosition,
    /// Tokens in each event
    #[arg(help_heading = ANSWERS, long, value_name = "TOKENS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub tokens_per_event: u32,
    /// Leading tokens of a chat answer that are reasoning
    #[arg(help_heading = ANSWERS, long, value_name = "TOKENS", default_value_t = 0)]
    pub reasoning: u32,
    /// The field that carries reasoning
    #[arg(help_heading = ANSWERS, long, value_enum, default_value_t = ReasoningField::ReasoningContent)]
    pub reasoning_field: ReasoningField,
    /// Which words answers are made of: ASCII, multi-byte characters, or words that JSON escapes
    #[arg(help_heading = ANSWERS, long, value_enum, default_value_t = Vocabulary::Plain)]
    pub words: Vocabulary,
    /// Whose form /tokenize has, which counts texts before they are sent
    #[arg(help_heading = ANSWERS, long, value_enum, default_value_t = Tokenize::Vllm)]
    pub tokenize: Tokenize,
    /// Tell of each request how long its parts took: in the `timings` of llama.cpp, by `Server-Timing` (of a stream the queue alone, for its head
    /// comes before the rest), or by the fields of TGI's heads (not of streams)
    #[arg(help_heading = ANSWERS, long, value_enum, default_value_t = TellTimes::Never)]
    pub tell_times: TellTimes,
    /// Answer with a `traceparent`, whose trace id is in the log
    #[arg(help_heading = ANSWERS, long)]
    pub trace_ids: bool,
    /// Leave out the `[DONE]` at the end of a stream
    #[arg(help_heading = ANSWERS, long, help = "Leave out the [DONE] at the end of a stream")]
    pub no_done: bool,
    /// End the lines of a stream with CR LF
    #[arg(help_heading = ANSWERS, long)]
    pub crlf: bool,
    /// Send comments before the first token, as mlx-lm does
    #[arg(help_heading = ANSWERS, long)]
    pub keepalive_comments: bool,
    /// Make HTTP chunks of this many bytes, each its own write, wherever their borders fall
    #[arg(help_heading = WIRE, long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub chunk_bytes: Option<u32>,
    /// Cut what is written into small pieces, at any byte
    #[arg(help_heading = WIRE, long, value_enum, default_value_t = Cut::None)]
    pub cut: Cut,
    /// Pause between the pieces of --chunk-bytes and --cut
    #[arg(help_heading = WIRE, long, value_name = "TIME", default_value = "0s")]
    pub cut_pause: Nanos,
    /// Stream as HTTP/1.0 and end with the connection
    #[arg(help_heading = WIRE, long)]
    pub close_delimited: bool,
    /// Take so many requests at once on one connection of HTTP/2, which is spoken by prior knowledge on the same port [default:
    /// no limit]
    #[arg(help_heading = WIRE, long, value_name = "STREAMS", value_parser = clap::value_parser!(u32).range(1..))]
    pub http2_streams: Option<u32>,
    /// Write each event by a call of its own, even with --itl 0s
    #[arg(help_heading = WIRE, long)]
    pub write_per_event: bool,
    /// What goes wrong and when, may be given several times, like http:503@5%, reset:20@3,7,10-12, stall@every:10 or
    /// empty@all. Kinds: refuse (counts connections), http:STATUS, reset, stall, stall-headers, truncate, close,
    /// invalid-json, invalid-utf8, wrong-shape, error-object, empty, short, long, usage:TOKENS, huge-line:BYTES,
    /// slow:FACTOR, pause:MS, exit; a number after the others says after or with how many tokens
    #[arg(help_heading = FAULTS, long = "fault", value_name = "KIND[:N]@WHEN")]
    pub faults: Vec<Fault>,
    /// Stop listening after this many connections: the kernel refuses further ones
    #[arg(help_heading = FAULTS, long, value_name = "CONNECTIONS")]
    pub refuse_after: Option<u64>,
    /// Write a log of what really happened to this file, JSON lines, instants on the monotonic clock
    #[arg(help_heading = WIRE, long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Log request bodies and answers too
    #[arg(help_heading = WIRE, long, requires = "log")]
    pub log_text: bool,
}

impl Config {
    /// Tokens of a block of the prefix cache where nothing else is said: vLLM's default.
    pub const PREFIX_BLOCK: u32 = 16;
}

#[cfg(test)]
impl Default for Config {
    fn default() -> Self {
        /// The flags alone.
        #[derive(clap::Parser)]
        struct Flags {
            #[command(flatten)]
            config: Config,
        }
        <Flags as clap::Parser>::parse_from(["mock"]).config
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

/// Where an answer tells how long its parts took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TellTimes {
    /// Nowhere.
    Never,
    /// In the body, as llama.cpp does: prefill and decode.
    Timings,
    /// In the field `Server-Timing`: queue, prefill, decode and total.
    ServerTiming,
    /// In the fields that Text Generation Inference has: queue and total, in whole milliseconds.
    Tgi,
}
