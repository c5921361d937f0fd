//! How often the count of a server is held against a clean run, and how often somebody else is found: runs with fixed seeds.
//!
//! A clean run has 100 to 1 500 requests with answers of 1 to 400 tokens. Up to 16 of them are cut at the end of drain, 0 to 1 % fail:
//! refused before the server counts them, answered with an error, given up by the client. What was given up the server may
//! have ended well all the same. Up to two requests it counts only after the last scrape, and their tokens with them; sweepline asks for
//! up to three tokens itself.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::analysis::synthetic::{Run, fail};
use crate::rows::{Outcome, Record, Telemetry};

const RUNS: u64 = 500;

struct Draw(ChaCha8Rng);

impl Draw {
    fn up_to(&mut self, most: u32) -> u32 {
        self.0.random_range(0..=most)
    }

    fn happens(&mut self, share: f64) -> bool {
        self.0.random::<f64>() < share
    }

    /// Tokens of an answer.
    fn tokens(&mut self) -> u32 {
        1 + self.up_to(399)
    }
}

/// What a run is to be like.
#[derive(Clone, Copy)]
struct Kind {
    least: u32,
    /// Requests of somebody else, as a share of the run's.
    foreign: f64,
    /// Whether the server counts requests that failed.
    tells_failed: bool,
}

/// What the server counts of one request, by how that ended: well, not so, tokens.
#[derive(Default)]
struct Server {
    well: f64,
    failed: f64,
    tokens: f64,
}

impl Server {
    fn count(&mut self, well: bool, tokens: u32) {
        *(if well { &mut self.well } else { &mut self.failed }) += 1.0;
        self.tokens += f64::from(tokens);
    }
}

/// What is found in the run of a seed.
fn found(seed: u64, Kind { least, foreign, tells_failed }: Kind, template: &Record) -> Result<bool, String> {
    let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed));
    let requests = least + draw.up_to(1_500 - least);
    let cut = if draw.happens(0.5) { draw.up_to(16) } else { 0 };
    let failures = f64::from(draw.up_to(100)) / 1e4 * f64::from(u8::from(draw.happens(0.5)));
    let late = draw.up_to(2);
    let mut server = Server::default();
    let mut rows = Vec::new();
    for at in 0..requests {
        let (mut record, tokens) = (template.clone(), draw.tokens());
        record.row.output_tokens = Some(tokens);
        let is_last = at >= requests - cut;
        if is_last {
            fail(&mut record, Outcome::CutAtDrain, 0);
            let ends_well = draw.happens(0.1);
            server.count(ends_well, tokens / 2);
        } else if draw.happens(failures) {
            match draw.up_to(2) {
                0 => fail(&mut record, Outcome::Connect, 1_000_000),
                1 => {
                    fail(&mut record, Outcome::Http(500), 1_000_000);
                    server.count(false, 0);
                }
                _ => {
                    fail(&mut record, Outcome::Timeout, 1_000_000);
                    let ends_well = draw.happens(0.3);
                    server.count(ends_well, tokens);
                }
            }
        } else if at >= late {
            server.count(true, tokens);
        }
        rows.push(Measured::from(&record.row));
    }
    for _ in 0..(foreign * f64::from(requests)).ceil() as u32 {
        let tokens = draw.tokens();
        server.count(true, tokens);
    }
    let probes = draw.up_to(3);
    (0..probes).for_each(|_| server.count(true, 1));
    let Server { well, failed, tokens } = server;
    let failed = tells_failed.then_some(failed);
    let counted = Counted { requests: Some(well), failed, generation_tokens: Some(tokens), ..Counted::default() };
    let telemetry = Telemetry { counted, probes: u64::from(probes), ..Telemetry::default() };
    let facts = Facts { telemetry: Some(telemetry), ..Facts::default() };
    judge(&rows, &facts).map(|found| found.is_some())
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
    println!("found: {telling} % where the server counts what failed, {silent} % where it does not");
    assert!(telling >= 95.0, "{telling} %");
}
