//! The configuration of the mock: its timing, the form of its streams, and its faults.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::fault::Fault;
use crate::units::{Decimal, Nanos, PerToken, Share};

/// A heading in `--help`. The `mock` command also uses it for its own flags.
pub const LISTENING: &str = "Listening";
const TIMING: &str = "Timing";
const PREFIX_CACHE: &str = "Prefix cache";
const ANSWERS: &str = "Responses";
/// A heading in `--help`. The flags of the log are also below it.
pub const WIRE: &str = "Bytes on the wire";
const FAULTS: &str = "Faults";

/// The complete behavior of the server, as set by the flags of `sweepline mock`. The defaults are those of
/// a plan's embedded mock.
#[derive(Debug, Clone, Args)]
pub struct Config {
    /// Version to report at /version; several separated by commas are reported in turn, as behind a
    /// balancer [default: sweepline's own]
    #[arg(help_heading = LISTENING, long = "version-says", value_name = "VERSION,…", value_delimiter = ',')]
    pub versions: Vec<String>,
    /// Name of a served model; may be given several times. Requests for other models get a 404 [default: any
    /// name]
    #[arg(help_heading = LISTENING, long = "model", value_name = "NAME")]
    pub models: Vec<String>,
    /// The API key that requests must contain, in the header of their API; `None` if no key is required.
    #[arg(skip)]
    pub api_key: Option<String>,
    /// Time from a free slot to the first token, without prefill
    #[arg(help_heading = TIMING, long, value_name = "TIME", default_value = "20ms")]
    pub ttft: Nanos,
    /// Time between tokens if only one stream is active
    #[arg(help_heading = TIMING, long, value_name = "TIME", default_value = "4ms")]
    pub itl: Nanos,
    /// Number of concurrent streams; others wait, first come, first served
    #[arg(help_heading = TIMING, long, value_name = "STREAMS", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub slots: u32,
    /// Extra time to the first token for each prompt token that is not in the prefix cache, like 0.1ms/token
    #[arg(help_heading = TIMING, long, value_name = "TIME/token", default_value_t = PerToken::default())]
    pub prefill: PerToken,
    /// Growth of the inter-token time for each further busy slot: itl × (1 + load × (busy − 1))
    #[arg(help_heading = TIMING, long, value_name = "FACTOR", default_value_t = Decimal::default())]
    pub load: Decimal,
    /// Multiply each delay by a seeded random factor, drawn uniformly from 1 ± this share
    #[arg(help_heading = TIMING, long, value_name = "SHARE", default_value = "0%")]
    pub jitter: Share,
    /// Finish the generations of disconnected clients, in their slots, as mlx-lm does; by default they end
    /// at once, as in vLLM
    #[arg(help_heading = TIMING, long)]
    pub finish_abandoned: bool,
    /// Omit the numbers of running and waiting requests from /metrics
    #[arg(help_heading = TIMING, long)]
    pub no_load_gauges: bool,
    /// Seed of jitter, text, splits and faults by rate
    #[arg(help_heading = TIMING, long, default_value_t = 0)]
    pub seed: u64,
    /// Keep the computed tokens of prompts and responses, at most this many, like vLLM's prefix caching:
    /// tokens that a prompt shares with them are not computed again, and are reported as `cached_tokens`.
    /// Figures are at /metrics; POST /reset_prefix_cache clears the cache [default: no prefix cache]
    #[arg(help_heading = PREFIX_CACHE, long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub prefix_cache: Option<u32>,
    /// Tokens per block of the prefix cache; only full blocks are cached and reused
    #[arg(
        help_heading = PREFIX_CACHE, long, value_name = "TOKENS", default_value_t = Config::PREFIX_BLOCK, requires = "prefix_cache",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub prefix_block: u32,
    /// Omit `cached_tokens` from responses, as vLLM does without --enable-prompt-tokens-details; the log
    /// contains them nevertheless
    #[arg(help_heading = PREFIX_CACHE, long)]
    pub no_cached_tokens: bool,
    /// End responses after this many tokens, unless the request sets ignore_eos
    #[arg(help_heading = ANSWERS, long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub eos_after: Option<u32>,
    /// Probability that a token is the last one, unless the request sets ignore_eos
    #[arg(help_heading = ANSWERS, long, value_name = "SHARE", default_value = "0%")]
    pub eos_rate: Share,
    /// The first chunk of a chat stream
    #[arg(help_heading = ANSWERS, long, value_enum, default_value_t = FirstChunk::Role)]
    pub first: FirstChunk,
    /// Where a stream reports the usage
    #[arg(help_heading = ANSWERS, long, value_enum, default_value_t = UsagePosition::Separate)]
    pub usage: UsagePosition,
    /// Tokens in each event
    #[arg(help_heading = ANSWERS, long, value_name = "TOKENS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub tokens_per_event: u32,
    /// Leading tokens of a chat response that are reasoning
    #[arg(help_heading = ANSWERS, long, value_name = "TOKENS", default_value_t = 0)]
    pub reasoning: u32,
    /// The field that contains reasoning
    #[arg(help_heading = ANSWERS, long, value_enum, default_value_t = ReasoningField::ReasoningContent)]
    pub reasoning_field: ReasoningField,
    /// The words of responses: ASCII, multi-byte characters, or words that JSON escapes
    #[arg(help_heading = ANSWERS, long, value_enum, default_value_t = Vocabulary::Plain)]
    pub words: Vocabulary,
    /// The form of /tokenize, which counts texts before they are sent
    #[arg(help_heading = ANSWERS, long, value_enum, default_value_t = Tokenize::Vllm)]
    pub tokenize: Tokenize,
    /// Report how long the parts of each request took: in the `timings` of llama.cpp, in `Server-Timing`
    /// (for streams only the queue, since the head is sent before the rest), or in TGI's headers (not for
    /// streams)
    #[arg(help_heading = ANSWERS, long, value_enum, default_value_t = TellTimes::Never)]
    pub tell_times: TellTimes,
    /// Return a `traceparent`; its trace id is in the log
    #[arg(help_heading = ANSWERS, long)]
    pub trace_ids: bool,
    /// Omit the `[DONE]` at the end of a stream
    #[arg(help_heading = ANSWERS, long, help = "Omit the [DONE] at the end of a stream")]
    pub no_done: bool,
    /// End the lines of a stream with CR LF
    #[arg(help_heading = ANSWERS, long)]
    pub crlf: bool,
    /// Send comments before the first token, as mlx-lm does
    #[arg(help_heading = ANSWERS, long)]
    pub keepalive_comments: bool,
    /// Send HTTP chunks of this many bytes, each in a separate write, regardless of where they split the text
    #[arg(help_heading = WIRE, long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub chunk_bytes: Option<u32>,
    /// Split writes into small pieces, at any byte
    #[arg(help_heading = WIRE, long, value_enum, default_value_t = Cut::None)]
    pub cut: Cut,
    /// Pause between the pieces of --chunk-bytes and --cut
    #[arg(help_heading = WIRE, long, value_name = "TIME", default_value = "0s")]
    pub cut_pause: Nanos,
    /// Stream as HTTP/1.0 and end with the connection
    #[arg(help_heading = WIRE, long)]
    pub close_delimited: bool,
    /// Maximum number of concurrent requests on one HTTP/2 connection; HTTP/2 is available by prior
    /// knowledge on the same port [default: no limit]
    #[arg(help_heading = WIRE, long, value_name = "STREAMS", value_parser = clap::value_parser!(u32).range(1..))]
    pub http2_streams: Option<u32>,
    /// Write each event in its own call, even with --itl 0s
    #[arg(help_heading = WIRE, long)]
    pub write_per_event: bool,
    /// Faults and when they occur, like http:503@5%, reset:20@3,7,10-12, stall@every:10 or empty@all; may be
    /// given several times. Kinds: refuse (counts connections), http:STATUS, reset, stall, stall-headers,
    /// truncate, close, invalid-json, invalid-utf8, wrong-shape, error-object, empty, short, long,
    /// usage:TOKENS, huge-line:BYTES, slow:FACTOR, pause:MS, exit; for the other kinds, N counts tokens: the
    /// fault occurs after N of them, or the response has N
    #[arg(help_heading = FAULTS, long = "fault", value_name = "KIND[:N]@WHEN")]
    pub faults: Vec<Fault>,
    /// Stop listening after this many connections: the kernel refuses further ones
    #[arg(help_heading = FAULTS, long, value_name = "CONNECTIONS")]
    pub refuse_after: Option<u64>,
    /// Write a log of the actual events to this file, as JSON lines, with instants on the monotonic clock
    #[arg(help_heading = WIRE, long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Log request bodies and responses as well
    #[arg(help_heading = WIRE, long, requires = "log")]
    pub log_text: bool,
}

impl Config {
    /// Default number of tokens in a block of the prefix cache: vLLM's default.
    pub const PREFIX_BLOCK: u32 = 16;
}

#[cfg(test)]
impl Default for Config {
    fn default() -> Self {
        /// A parser that accepts only the flags of [`Config`].
        #[derive(clap::Parser)]
        struct Flags {
            #[command(flatten)]
            config: Config,
        }
        <Flags as clap::Parser>::parse_from(["mock"]).config
    }
}

/// The first chunk of a chat stream. A chunk without text is written when the request gets its slot, well before the
/// first token, to expose clients that mistake the chunk for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FirstChunk {
    /// A chunk with the role and `content: ""`, as vLLM and SGLang send it.
    Role,
    /// Role and first text in one chunk, as sent by mlx-lm.
    Content,
    /// A chunk with the role and `content: null`, as llama.cpp sends it; in completions a chunk with empty text.
    Empty,
}

/// Where a stream reports the usage if `stream_options.include_usage` requests it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UsagePosition {
    /// In a separate chunk with empty `choices`, after the finish chunk, as OpenAI and vLLM do.
    Separate,
    /// In the finish chunk, which has no text, as transformers serve does.
    Last,
    /// In the chunk with the last text, which also has the finish reason, as SGLang did.
    WithContent,
    /// In the chunk with the last text, and again in a separate chunk.
    Both,
    /// In every chunk with text, with increasing counts, and in a separate chunk, like vLLM's
    /// `continuous_usage_stats`.
    Every,
    /// Nowhere, regardless of the request.
    Never,
    /// In a separate chunk, even if it is not requested.
    Always,
}

/// The field of a chat delta that contains reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum ReasoningField {
    /// `reasoning_content`, as SGLang and DeepSeek name it.
    ReasoningContent,
    /// `reasoning`, as vLLM names it.
    Reasoning,
}

/// The words of responses; one word is one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Vocabulary {
    /// Plain ASCII.
    Plain,
    /// Words of two to four bytes per character.
    Utf8,
    /// Words with JSON escapes: quotes, backslashes, `\u` sequences and surrogate pairs.
    Escaped,
}

/// Whether the bytes on the wire are split into small writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Cut {
    /// Not split.
    None,
    /// Pieces of random size (1 to 32 bytes, by seed), so that borders fall inside characters, line ends and
    /// chunk sizes.
    Random,
}

/// The form of `/tokenize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tokenize {
    /// As in vLLM: texts and chats.
    Vllm,
    /// As in SGLang: texts, or lists of texts.
    Sglang,
    /// As in llama.cpp: texts; /apply-template converts a chat to a text.
    #[value(name = "llama.cpp")]
    LlamaCpp,
    /// Not available.
    None,
}

/// Where a response reports how long its parts took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TellTimes {
    /// Nowhere.
    Never,
    /// In the body, as llama.cpp does: prefill and decode.
    Timings,
    /// In the header `Server-Timing`: queue, prefill, decode and total.
    ServerTiming,
    /// In the headers of Text Generation Inference: queue and total, in whole milliseconds.
    Tgi,
}
