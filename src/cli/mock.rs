//! `sweepline mock` runs the mock server as a program.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context, bail};
use clap::Args;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::limits::raise_file_limit;
use crate::cli::failure::Exit;
use crate::mock::{Config, Ended, LISTENING, Server, WIRE};
use crate::units::Decimal;

/// Maximum number of connections that may wait to be accepted; the kernel lowers the number to the host's
/// limit.
const BACKLOG: u32 = 65_535;

/// The flags of `sweepline mock`.
#[derive(Debug, Args)]
pub struct MockArgs {
    /// Address to listen on
    #[arg(help_heading = LISTENING, long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// Port to listen on; 0 picks a free one
    #[arg(help_heading = LISTENING, long, default_value_t = 0)]
    port: u16,
    /// Share the port with other mocks started with this flag, like replicas behind a load balancer; the
    /// kernel distributes connections among them
    #[arg(help_heading = LISTENING, long)]
    reuse_port: bool,
    #[command(flatten)]
    config: Config,
    /// Require the API key that this environment variable contains
    #[arg(help_heading = LISTENING, long, value_name = "VARIABLE")]
    api_key_env: Option<String>,
    /// Exit when standard input ends, so that the server ends with its parent process, even if the parent
    /// was killed
    #[arg(help_heading = WIRE, long)]
    parent_pipe: bool,
}

impl MockArgs {
    fn config(self) -> anyhow::Result<Config> {
        let MockArgs { config, api_key_env, .. } = self;
        if config.load < Decimal::default() {
            bail!("--load {} is negative: tokens cannot speed up under load", config.load);
        }
        let block = config.prefix_block;
        if let Some(tokens) = config.prefix_cache.filter(|tokens| *tokens < block) {
            bail!("--prefix-cache {tokens} is less than one block of {block} tokens: nothing could be cached");
        }
        let api_key = api_key_env.map(|name| {
            std::env::var(&name)
                .with_context(|| format!("--api-key-env: environment variable `{name}` is not set, or is not text"))
        });
        Ok(Config { api_key: api_key.transpose()?, ..config })
    }
}

/// Serves until SIGTERM, SIGINT or, with `--parent-pipe`, the end of standard input. Prints one line with
/// the address on standard output once it accepts connections.
///
/// # Errors
/// Fails if it cannot listen on the address, if the key is not in the environment, or if the log
/// cannot be written.
pub fn run(args: MockArgs) -> anyhow::Result<Exit> {
    let address = SocketAddr::new(args.bind, args.port);
    let parent_pipe = args.parent_pipe;
    let reuse_port = args.reuse_port;
    let config = args.config()?;
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let ended = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let orphaned = parent_pipe.then(watch_parent).transpose()?;
        let listener = listen(address, reuse_port).with_context(|| format!("cannot listen on {address}"))?;
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
                // The thread drops its end of the channel when standard input has ended.
                _ = async { orphaned?.await.ok() }, if parent_pipe => {}
            }
        };
        server.serve(shutdown).await.with_context(failed)
    })?;
    Ok(if ended == Ended::Shutdown { Exit::Done } else { Exit::Unexpected })
}

fn listen(address: SocketAddr, reuse_port: bool) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(reuse_port)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Returns a receiver that becomes ready when standard input has ended. A parent-death signal is not used,
/// because Linux sends it as soon as the thread that started this process ends.
fn watch_parent() -> anyhow::Result<oneshot::Receiver<()>> {
    let (ended, receiver) = oneshot::channel();
    std::thread::Builder::new().name("mock-parent".into()).spawn(move || {
        let mut buffer = [0; 256];
        while std::io::stdin().read(&mut buffer).is_ok_and(|read| read > 0) {}
        drop(ended);
    })?;
    Ok(receiver)
}
