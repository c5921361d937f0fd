//! Simulates how often a server's count raises a false alarm on a clean run, and how often another client is
//! detected. The runs have fixed seeds.
//!
//! A clean run has 100 to 1 500 requests in a minute with responses of 1 to 400 tokens, and a drain of 0
//! to 10 s. Up to 16 requests are truncated at the end of the run, and 0 to 1 % fail: they are refused
//! before the server counts them, get an error response, or are given up by the client. The server may
//! have completed the requests that were given up, and one in ten of the truncated ones. It counts up to
//! two requests, with their tokens, only after the last scrape, and sweepline itself requests up to
//! three tokens. The server is scraped every second. A response reaches the client up to 20 ms after the
//! server has counted it.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::analysis::synthetic::{Run, fail};
use crate::rows::{Outcome, Record, Telemetry, Windows};

const RUNS: u64 = 500;

struct Draw(ChaCha8Rng);

impl Draw {
    fn up_to(&mut self, most: u32) -> u32 {
        self.0.random_range(0..=most)
    }

    fn happens(&mut self, share: f64) -> bool {
        self.0.random::<f64>() < share
    }

    /// Returns the number of tokens of a response.
    fn tokens(&mut self) -> u32 {
        1 + self.up_to(399)
    }
}

/// The kind of a simulated run.
#[derive(Clone, Copy)]
struct Kind {
    least: u32,
    /// Requests of another client, as a share of the run's own requests.
    foreign: f64,
    /// Whether the server counts failed requests.
    tells_failed: bool,
}

/// What a server counts: the time at which each completed request ended, the number of failed requests, and
/// the tokens of all requests.
#[derive(Default)]
struct Server {
    well: Vec<u64>,
    failed: f64,
    tokens: f64,
}

impl Server {
    fn count(&mut self, well: Option<u64>, tokens: u32) {
        match well {
            Some(at) => self.well.push(at),
            None => self.failed += 1.0,
        }
        self.tokens += f64::from(tokens);
    }

    /// Returns the samples that were scraped every second until `end` and once shortly after.
    fn scraped(&self, end: u64) -> Vec<Sample> {
        let one = |at_ns, source: &str, name: &str, value| Sample {
            at_ns,
            url: Some(0),
            source: source.to_owned(),
            name: name.to_owned(),
            value,
            ..Sample::default()
        };
        let instants = (0..=end / S).map(|second| second * S).chain([end + LAST]);
        let at = |at: u64| {
            let counted = self.well.iter().filter(|counted| **counted <= at).count() as f64;
            let seconds = one(at, "scrape", "scrape_duration_seconds", 0.002);
            [seconds, one(at, "server", "requests_succeeded", counted)]
        };
        instants.flat_map(at).collect()
    }
}

const S: u64 = 1_000_000_000;
/// Duration of the load.
const LOAD: u64 = 60 * S;
/// Time from the end of the run to the last scrape.
const LAST: u64 = S / 10;

/// Returns the finding for the run with this seed.
fn found(seed: u64, Kind { least, foreign, tells_failed }: Kind, template: &Record) -> Result<bool, String> {
    let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed));
    let requests = least + draw.up_to(1_500 - least);
    let cut = if draw.happens(0.5) { draw.up_to(16) } else { 0 };
    let failures = f64::from(draw.up_to(100)) / 1e4 * f64::from(u8::from(draw.happens(0.5)));
    let late = draw.up_to(2);
    let end = LOAD + [0, 2, 5, 10][draw.up_to(3) as usize] * S;
    let mut server = Server::default();
    let mut rows = Vec::new();
    for at in 0..requests {
        let (mut record, tokens) = (template.clone(), draw.tokens());
        let sent = LOAD / u64::from(requests) * u64::from(at);
        let done = (sent + S / 10 + u64::from(tokens) * S / 100).min(end - u64::from(draw.up_to(50)) * S / 1_000);
        let counted = done - u64::from(draw.up_to(20)) * S / 1_000;
        let row = &mut record.row;
        (row.scheduled_ns, row.sent_ns, row.output_tokens) = (sent, Some(sent), Some(tokens));
        (row.requested_tokens, row.last_token_ns, row.done_ns, row.ended_ns) =
            (400, Some(done), Some(done), Some(done));
        let is_last = at >= requests - cut;
        if is_last {
            fail(&mut record, Outcome::CutAtDrain, 0);
            record.row.last_token_ns = Some(end - S / 50);
            let ends_well = draw.happens(0.1).then_some(end);
            server.count(ends_well, tokens / 2);
        } else if draw.happens(failures) {
            match draw.up_to(2) {
                0 => fail(&mut record, Outcome::Connect, 1_000_000),
                1 => {
                    fail(&mut record, Outcome::Http(500), 1_000_000);
                    server.count(None, 0);
                }
                _ => {
                    fail(&mut record, Outcome::Timeout, 1_000_000);
                    let ends_well = draw.happens(0.3).then_some(counted);
                    server.count(ends_well, tokens);
                }
            }
        } else if at >= late {
            server.count(Some(counted), tokens);
        }
        rows.push(Measured::from(&record.row));
    }
    for _ in 0..(foreign * f64::from(requests)).ceil() as u32 {
        let tokens = draw.tokens();
        let at = u64::from(draw.up_to((LOAD / 1_000) as u32)) * 1_000;
        server.count(Some(at), tokens);
    }
    let probes = draw.up_to(3);
    (0..probes).for_each(|_| server.count(Some(LOAD / 2), 1));
    let samples = server.scraped(end);
    let Server { well, failed, tokens } = server;
    let failed = tells_failed.then_some(failed);
    let requests = Some(well.len() as f64);
    let counted = Counted { requests, failed, generation_tokens: Some(tokens), ..Counted::default() };
    let telemetry = Telemetry { counted, probes: u64::from(probes), ..Telemetry::default() };
    let windows = Windows { end_ns: end, ..Windows::default() };
    let facts = Facts { telemetry: Some(telemetry), windows, ..Facts::default() };
    judge(&rows, &samples, &facts).map(|found| found.is_some())
}

fn how_many(kind: Kind) -> usize {
    let mut template = Run::default().make().0.swap_remove(0);
    template.row.token_source = Some(TokenSource::Usage);
    (0..RUNS).filter(|seed| found(*seed, kind, &template).unwrap()).count()
}

#[test]
fn nothing_is_claimed_of_clean_runs() {
    for tells_failed in [true, false] {
        assert_eq!(how_many(Kind { least: 100, foreign: 0.0, tells_failed }), 0);
    }
}

#[test]
fn two_in_a_hundred_of_somebody_else_are_found() {
    let found = [true, false].map(|tells_failed| how_many(Kind { least: 300, foreign: 0.02, tells_failed }));
    let [telling, silent] = found.map(|found| 100.0 * found as f64 / RUNS as f64);
    println!("found: {telling} % if the server counts failures, {silent} % if it does not");
    assert!(telling >= 95.0 && silent >= 95.0, "{telling} %, {silent} %");
}
