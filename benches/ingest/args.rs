//! The command line of the benchmark.

use std::time::Duration;

/// The measurements, by their names on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `streams`: streams of 128 tokens, 64 in flight, several events per write.
    Streams,
    /// `per-event`: the same with one write call for each event, as in real engines.
    PerEvent,
    /// `http2`: streams of 128 tokens, 64 in flight on one HTTP/2 connection, several events per write.
    Http2,
    /// `one-token`: streams of one token.
    OneToken,
    /// `open`: Poisson arrivals, checked against the mock's log.
    Open,
    /// `ttft`: the error of TTFT compared with the mock's log.
    Ttft,
    /// `memory`: memory at 64 and at 10 000 streams, and with 1 000 streams that are held open.
    Memory,
    /// `steps`: the separate cost of each step.
    Steps,
}

impl Part {
    const ALL: [(&str, Part); 8] = [
        ("streams", Part::Streams),
        ("per-event", Part::PerEvent),
        ("http2", Part::Http2),
        ("one-token", Part::OneToken),
        ("open", Part::Open),
        ("ttft", Part::Ttft),
        ("memory", Part::Memory),
        ("steps", Part::Steps),
    ];

    fn named(name: &str) -> Option<Part> {
        Part::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, part)| part)
    }
}

/// The parsed command line.
#[derive(Debug)]
pub struct Args {
    /// The parts to run, in order.
    pub parts: Vec<Part>,
    /// Rounds of each measurement.
    pub rounds: usize,
    /// Whether to use short windows, for a quick check instead of figures.
    pub quick: bool,
    /// The factor by which a limit must be exceeded for the bench to fail.
    pub check: Option<f64>,
}

impl Args {
    /// Parses the command line, to which cargo adds `--bench`.
    pub fn read(words: Vec<String>) -> Result<Args, String> {
        let mut args = Args { parts: Vec::new(), rounds: 5, quick: false, check: None };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--bench" => {}
                "--quick" => args.quick = true,
                "--rounds" => args.rounds = number(&word, words.next())?,
                "--check" => args.check = Some(number(&word, words.next())?),
                name => args.parts.push(Part::named(name).ok_or_else(|| unknown(name))?),
            }
        }
        if args.rounds == 0 {
            return Err("--rounds is at least 1".to_owned());
        }
        if args.parts.is_empty() {
            args.parts = Part::ALL.into_iter().map(|(_, part)| part).collect();
        }
        Ok(args)
    }

    /// Returns how long to measure something that usually takes `usual`.
    pub fn window(&self, usual: Duration) -> Duration {
        if self.quick { usual / 4 } else { usual }
    }
}

fn number<T: std::str::FromStr>(flag: &str, word: Option<String>) -> Result<T, String> {
    word.and_then(|word| word.parse().ok()).ok_or_else(|| format!("{flag} wants a number"))
}

fn unknown(name: &str) -> String {
    let known = Part::ALL.map(|(name, _)| name).join(", ");
    format!("`{name}` is no part of this bench: {known}; options: --rounds N, --quick, --check FACTOR")
}
