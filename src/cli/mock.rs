//! `sweepline mock`: the stand-in server as a program.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::limits::raise_file_limit;
use crate::cli::failure::Exit;
use crate::mock::{Config, Cut, Ended, Fault, FirstChunk, ReasoningField, Server, Tokenize, UsagePosition, Vocabulary};
use crate::units::{Decimal, Nanos, PerToken, Seed, Share};

/// Connections that may wait to be accepted; the kernel lowers it to what the host allows.
const BACKLOG: u32 = 65_535;

/// The flags of `sweepline mock`.
#[derive(Debug, Args)]
pub struct MockArgs {
    #[command(flatten)]
    listen: Listen,
    #[command(flatten)]
    timing: Timing,
    #[command(flatten)]
    prefix: Prefix,
    #[command(flatten)]
    answers: Answers,
    #[command(flatten)]
    wire: Wire,
    /// What goes wrong and when, may be given several times, like http:503@5%, reset:20@3,7,10-12, stall@every:10 or
    /// empty@all. Kinds: refuse (counts connections), http:STATUS, reset, stall, stall-headers, truncate, close,
    /// invalid-json, invalid-utf8, wrong-shape, error-object, empty, short, long, usage:TOKENS, huge-line:BYTES,
    /// slow:FACTOR, pause:MS, exit; a number after the others says after or with how many tokens
    #[arg(long = "fault", value_name = "KIND[:N]@WHEN", help_heading = "Faults")]
    faults: Vec<Fault>,
    /// Stop listening after this many connections: the kernel refuses further ones
    #[arg(long, value_name = "CONNECTIONS", help_heading = "Faults")]
    refuse_after: Option<u64>,
    /// Write a log of what really happened to this file, JSON lines, instants on the monotonic clock
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Log request bodies and answers too
    #[arg(long, requires = "log")]
    log_text: bool,
    /// End when standard input ends: the server is gone when its parent is gone, however that died
    #[arg(long)]
    parent_pipe: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Listening")]
struct Listen {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// Port to listen on; 0: a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// A model that is served, may be given several times; others are answered with 404 [default: any name]
    #[arg(long = "model", value_name = "NAME")]
    models: Vec<String>,
    /// Say this version at /version; several with commas are said in turn, as behind a balancer [default: sweepline's own]
    #[arg(long, value_name = "VERSION,…", value_delimiter = ',')]
    version_says: Vec<String>,
    /// Require the bearer key that this environment variable holds
    #[arg(long, value_name = "VARIABLE")]
    api_key_env: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Timing")]
struct Timing {
    /// Time from a free slot to the first token, without prefill
    #[arg(long, value_name = "TIME", default_value = "20ms")]
    ttft: Nanos,
    /// Time between tokens of a stream that is alone
    #[arg(long, value_name = "TIME", default_value = "4ms")]
    itl: Nanos,
    /// Streams served at once; others wait, first come, first served
    #[arg(long, value_name = "STREAMS", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    slots: u32,
    /// Extra time to the first token for each prompt token that is not in the prefix cache, like 0.1ms/token
    #[arg(long, value_name = "TIME/token", default_value_t = PerToken::default())]
    prefill: PerToken,
    /// Growth of the inter-token time for each further busy slot: itl × (1 + load × (busy − 1))
    #[arg(long, value_name = "FACTOR", default_value_t = Decimal::default())]
    load: Decimal,
    /// Multiply every time by 1 ± this share, uniformly, by seed
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    jitter: Share,
    /// Generate to the end for clients that have gone away, in their slots, as mlx-lm does; without it such a generation ends at
    /// once, as vLLM's does
    #[arg(long)]
    finish_abandoned: bool,
    /// Leave out of /metrics how many requests run and wait
    #[arg(long)]
    no_load_gauges: bool,
    /// Seed of jitter, text, cuts and faults by rate
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Prefix cache")]
struct Prefix {
    /// Keep the computed tokens of prompts and answers, so many at most, as vLLM's prefix caching does: what a prompt
    /// has in common with them is not computed again, and is reported as `cached_tokens`. Figures stand at /metrics;
    /// POST /reset_prefix_cache forgets them [default: no prefix cache]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    prefix_cache: Option<u32>,
    /// Tokens of a block: only full blocks are kept and found
    #[arg(
        long, value_name = "TOKENS", default_value_t = Config::PREFIX_BLOCK, requires = "prefix_cache",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    prefix_block: u32,
    /// Leave `cached_tokens` out of answers, as vLLM does without --enable-prompt-tokens-details; the log has them all the
    /// same
    #[arg(long)]
    no_cached_tokens: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Answers")]
struct Answers {
    /// End answers after this many tokens, unless the request says ignore_eos
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    eos_after: Option<u32>,
    /// Chance of each token to be the last, unless the request says ignore_eos
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    eos_rate: Share,
    /// How a chat stream opens: role with "", role with text, role with null
    #[arg(long, value_enum, default_value_t = FirstChunk::Role)]
    first: FirstChunk,
    /// Where a stream carries the usage
    #[arg(long, value_enum, default_value_t = UsagePosition::Separate)]
    usage: UsagePosition,
    /// Tokens in each event
    #[arg(long, value_name = "TOKENS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    tokens_per_event: u32,
    /// Leading tokens of a chat answer that are reasoning
    #[arg(long, value_name = "TOKENS", default_value_t = 0)]
    reasoning: u32,
    /// The field that carries reasoning
    #[arg(long, value_enum, default_value_t = ReasoningField::ReasoningContent)]
    reasoning_field: ReasoningField,
    /// Which words answers are made of: ASCII, multi-byte characters, or words that JSON escapes
    #[arg(long, value_enum, default_value_t = Vocabulary::Plain)]
    words: Vocabulary,
    /// Whose form /tokenize has, which counts texts before they are sent
    #[arg(long, value_enum, default_value_t = Tokenize::Vllm)]
    tokenize: Tokenize,
    /// Leave out the [DONE] at the end of a stream
    #[arg(long)]
    no_done: bool,
    /// End the lines of a stream with CR LF
    #[arg(long)]
    crlf: bool,
    /// Send comments before the first token, as mlx-lm does
    #[arg(long)]
    keepalive_comments: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Bytes on the wire")]
struct Wire {
    /// Make HTTP chunks of this many bytes, each its own write, wherever their borders fall
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    chunk_bytes: Option<u32>,
    /// Cut what is written into small pieces, at any byte
    #[arg(long, value_enum, default_value_t = Cut::None)]
    cut: Cut,
    /// Pause between the pieces of --chunk-bytes and --cut
    #[arg(long, value_name = "TIME", default_value = "0s")]
    cut_pause: Nanos,
    /// Stream as HTTP/1.0 and end with the connection
    #[arg(long)]
    close_delimited: bool,
    /// Write each event by a call of its own, even with --itl 0s
    #[arg(long)]
    write_per_event: bool,
}

impl MockArgs {
    fn config(self) -> anyhow::Result<Config> {
        let MockArgs { listen, timing, prefix, answers, wire, faults, refuse_after, log, log_text, parent_pipe: _ } =
            self;
        if timing.load < Decimal::default() {
            bail!("--load {} is negative: tokens cannot come faster because others wait", timing.load);
        }
        if let Some(tokens) = prefix.prefix_cache.filter(|tokens| *tokens < prefix.prefix_block) {
            bail!(
                "--prefix-cache {tokens} is less than one block of {} tokens: nothing could be kept",
                prefix.prefix_block
            );
        }
        let api_key = listen.api_key_env.map(|name| {
            std::env::var(&name).with_context(|| format!("--api-key-env: the environment has no text in `{name}`"))
        });
        Ok(Config {
            ttft: timing.ttft,
            itl: timing.itl,
            slots: timing.slots,
            prefill: timing.prefill,
            prefix_cache: prefix.prefix_cache,
            prefix_block: prefix.prefix_block,
            reports_cached: !prefix.no_cached_tokens,
            load: timing.load,
            jitter: timing.jitter,
            seed: Seed(timing.seed),
            finishes_abandoned: timing.finish_abandoned,
            tells_load: !timing.no_load_gauges,
            versions: listen.version_says,
            models: listen.models,
            api_key: api_key.transpose()?,
            eos_after: answers.eos_after,
            eos_rate: answers.eos_rate,
            first: answers.first,
            usage: answers.usage,
            tokens_per_event: answers.tokens_per_event,
            reasoning: answers.reasoning,
            reasoning_field: answers.reasoning_field,
            words: answers.words,
            tokenize: answers.tokenize,
            done_marker: !answers.no_done,
            crlf: answers.crlf,
            keepalive_comments: answers.keepalive_comments,
            chunk_bytes: wire.chunk_bytes.map(|bytes| bytes as usize),
            cut: wire.cut,
            cut_pause: wire.cut_pause,
            close_delimited: wire.close_delimited,
            write_per_event: wire.write_per_event,
            faults,
            refuse_after,
            log,
            log_text,
        })
    }
}

/// Serves until SIGTERM, SIGINT or, with `--parent-pipe`, the end of standard input. The one line on standard output
/// says where, once connections are taken.
///
/// # Errors
/// The address cannot be listened on, the key is not in the environment, or the log cannot be written.
pub fn run(args: MockArgs) -> anyhow::Result<Exit> {
    let address = SocketAddr::new(args.listen.bind, args.listen.port);
    let parent_pipe = args.parent_pipe;
    let config = args.config()?;
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let ended = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let orphaned = parent_pipe.then(watch_parent).transpose()?;
        let listener = listen(address).with_context(|| format!("cannot listen on {address}"))?;
        let log = config.log.clone();
        let failed = || log.map_or("the mock failed".into(), |log| format!("cannot write the log {}", log.display()));
        let bound = listener.local_addr()?;
        let server = Server::new(config, listener).with_context(failed.clone())?;
        let mut out = std::io::stdout();
        writeln!(out, "listening on http://{bound}")?;
        out.flush()?;
        let shutdown = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                // The thread drops its end when standard input has ended.
                _ = async { orphaned?.await.ok() }, if parent_pipe => {}
            }
        };
        server.serve(shutdown).await.with_context(failed)
    })?;
    Ok(if ended == Ended::Shutdown { Exit::Done } else { Exit::Unexpected })
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Ready when standard input has ended. Not by a death signal: Linux sends that when the thread that started us ends.
fn watch_parent() -> anyhow::Result<oneshot::Receiver<()>> {
    let (ended, receiver) = oneshot::channel();
    std::thread::Builder::new().name("mock-parent".into()).spawn(move || {
        let mut buffer = [0; 256];
        while std::io::stdin().read(&mut buffer).is_ok_and(|read| read > 0) {}
        drop(ended);
    })?;
    Ok(receiver)
}
