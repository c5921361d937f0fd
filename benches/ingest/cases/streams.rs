//! CPU time and rate of a closed loop of 64 streams, which a mock serves as fast as it can.

use std::time::{Duration, Instant};

use crate::args::Args;
use crate::bare::Closed;
use crate::child::{self, Done, Order};
use crate::mock::Mock;
use crate::report::{Bound, Report, seconds, thousands};
use crate::stats::Rounds;

use super::plan;
use super::run::Run;

/// Requests in flight.
const STREAMS: u32 = 64;

/// Streams of 128 tokens with several events per write.
pub fn coalesced(args: &Args, report: &mut Report) {
    report.head("streams: 128 tokens, 64 in flight, events share writes");
    let rounds = rounds(args, report, &[], 128);
    rounds.cpu(report, Some(Bound::Most(1.25)));
    rounds.rate(report, "tokens per second", Done::tokens_per_second, Some(Bound::Least(0.85)));
    let bare = Rounds::of(rounds.bare.iter().map(Done::tokens_per_second)).median;
    report.fact("the bare reader's tokens per second on this machine", bare, thousands, Bound::Least(1e6));
}

/// Streams of 128 tokens with one write call for each event.
pub fn per_event(args: &Args, report: &mut Report) {
    report.head("per-event: 128 tokens, 64 in flight, one write per event");
    let rounds = rounds(args, report, &["--write-per-event"], 128);
    rounds.cpu(report, Some(Bound::Most(1.25)));
    rounds.rate(report, "tokens per second", Done::tokens_per_second, None);
}

/// Streams of 128 tokens over HTTP/2, on one connection. The bare reader is then hyper's client, whose
/// connection has a separate task, like sweepline's. It costs half as much as over HTTP/1.1, because one read
/// returns frames of many streams; sweepline costs as much as over HTTP/1.1. The limit only ensures that
/// sweepline's cost does not grow, and is not the limit of `streams`.
pub fn http2(args: &Args, report: &mut Report) {
    report.head("http2: 128 tokens, 64 in flight on one connection of HTTP/2, events share writes");
    let rounds = rounds_of(args, report, &[], 128, true);
    rounds.cpu(report, Some(Bound::Most(2.25)));
    rounds.rate(report, "tokens per second", Done::tokens_per_second, None);
}

/// Streams of one token.
pub fn one_token(args: &Args, report: &mut Report) {
    report.head("one-token: 1 token, 64 in flight");
    let rounds = rounds(args, report, &[], 1);
    rounds.cpu(report, None);
    rounds.rate(report, "streams per second", Done::streams_per_second, Some(Bound::Least(0.7)));
}

/// The results of all rounds, for both sides.
struct Both {
    bare: Vec<Done>,
    ours: Vec<Done>,
}

impl Both {
    fn cpu(&self, report: &mut Report, bound: Option<Bound>) {
        self.rate_as(report, "CPU per 1 000 streams", Done::cpu_per_1000, seconds, bound);
    }

    fn rate(&self, report: &mut Report, what: &str, of: fn(&Done) -> f64, bound: Option<Bound>) {
        self.rate_as(report, what, of, thousands, bound);
    }

    fn rate_as(
        &self,
        report: &mut Report,
        what: &str,
        of: fn(&Done) -> f64,
        show: fn(f64) -> String,
        bound: Option<Bound>,
    ) {
        let rounds = |side: &[Done]| Rounds::of(side.iter().map(of));
        report.ratio(what, rounds(&self.bare), rounds(&self.ours), show, bound);
    }
}

/// Runs alternating rounds against one mock, whose share of a core shows which side is the bottleneck.
fn rounds(args: &Args, report: &Report, flags: &[&str], tokens: u32) -> Both {
    rounds_of(args, report, flags, tokens, false)
}

fn rounds_of(args: &Args, report: &Report, flags: &[&str], tokens: u32, http2: bool) -> Both {
    let mock = mock(flags);
    let mut both = Both { bare: Vec::new(), ours: Vec::new() };
    let mut shares = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        let (done, share) = watched(&mock, || bare_round(args, mock.port, tokens, http2));
        both.bare.push(done);
        shares.0.push(share);
        let (done, share) = watched(&mock, || our_round(args, mock.port, tokens, http2));
        both.ours.push(done);
        shares.1.push(share);
    }
    mock.end();
    let share = |shares: Vec<f64>| Rounds::of(shares).median * 100.0;
    report.say(&format!(
        "the mock's core: {:.0} % busy with the bare reader, {:.0} % with sweepline",
        share(shares.0),
        share(shares.1)
    ));
    both
}

/// Runs one round of the bare reader against a separate mock.
pub fn bare(args: &Args, flags: &[&str], tokens: u32) -> Done {
    let mock = mock(flags);
    bare_round(args, mock.port, tokens, false)
}

/// Runs one round of sweepline's engine against a separate mock.
pub fn ours(args: &Args, flags: &[&str], tokens: u32) -> Done {
    let mock = mock(flags);
    our_round(args, mock.port, tokens, false)
}

/// Starts a mock that cannot be the bottleneck.
fn mock(flags: &[&str]) -> Mock {
    Mock::start(&[&["--ttft", "0s", "--itl", "0s", "--slots", "64"], flags].concat())
}

/// Runs a round; also returns the share of a core that the mock used.
fn watched(mock: &Mock, round: impl FnOnce() -> Done) -> (Done, f64) {
    let (start, before) = (Instant::now(), mock.cpu());
    let done = round();
    assert_eq!(done.seen.failed, 0, "requests failed");
    let share = (mock.cpu() - before) / start.elapsed().as_secs_f64();
    (done, share)
}

/// Returns the minimum window of a round.
fn window(args: &Args) -> Duration {
    args.window(Duration::from_secs(4))
}

/// Returns the minimum number of streams of a round. There must be enough streams that one-time work
/// (start-up, requests prepared in advance, the commit) is a small share.
fn least(args: &Args) -> u64 {
    if args.quick { 1_000 } else { 3_000 }
}

/// Returns the plan of a closed loop.
fn plan(args: &Args, port: u16, tokens: u32) -> String {
    let (window, least) = (window(args).as_millis(), least(args));
    let measure = format!("{{ for: {window}ms, min_requests: {least}, at_most: 60s }}");
    let phases = format!("fill: 0s, stabilize: 0s, measure: {measure}, drain: 30s");
    plan::plan(port, tokens, &format!("batch_size: [{STREAMS}]"), &phases)
}

fn bare_round(args: &Args, port: u16, tokens: u32, http2: bool) -> Done {
    let body = plan::body(&plan(args, port, tokens));
    let closed = Closed { port, body, tokens, streams: STREAMS, window: window(args), least: least(args) };
    child::run(&if http2 { Order::BareHttp2(closed) } else { Order::Bare(closed) })
}

fn our_round(args: &Args, port: u16, tokens: u32, http2: bool) -> Done {
    let plan = plan(args, port, tokens);
    let plan = if http2 { plan.replace("engine: mock }", "engine: mock, http: 2 }") } else { plan };
    Run::make(port, plan, "bench").done
}
