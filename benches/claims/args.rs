//! The command line of the benchmark.

/// The simulations, by their names on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `intervals`: how often an interval within a run is available, and how often it contains the true
    /// value.
    Intervals,
    /// `objectives`: how often the decision about a limit is wrong or missing.
    Objectives,
    /// `methods`: the same intervals, computed with other methods.
    Methods,
    /// `saturation`: the labels of open loops (such as "kept up") at and below a server's capacity.
    Saturation,
    /// `closed`: intervals and objectives of closed loops.
    Closed,
    /// `repeats`: one decision from several runs.
    Repeats,
}

impl Part {
    const ALL: [(&str, Part); 6] = [
        ("intervals", Part::Intervals),
        ("objectives", Part::Objectives),
        ("methods", Part::Methods),
        ("saturation", Part::Saturation),
        ("closed", Part::Closed),
        ("repeats", Part::Repeats),
    ];

    fn named(name: &str) -> Option<Part> {
        Part::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, part)| part)
    }
}

/// The parsed command line.
#[derive(Debug)]
pub struct Args {
    /// The parts to run.
    pub parts: Vec<Part>,
    /// Simulated runs of each cell.
    pub runs: u64,
    /// Number of requests after which the simulation of a cell stops, once it has the minimum number of runs.
    pub requests: u64,
    /// Minimum number of runs of a cell.
    pub fewest: u64,
    /// Number of cells simulated in parallel.
    pub threads: usize,
    /// Whether to fail if a promise is broken by more than chance.
    pub check: bool,
}

impl Args {
    /// Parses the command line, to which cargo adds `--bench`.
    pub fn read(words: Vec<String>) -> Result<Args, String> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut args =
            Args { parts: Vec::new(), runs: 1_000, requests: 100_000_000, fewest: 200, threads, check: false };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--bench" => {}
                "--runs" => args.runs = number(&word, words.next())?,
                "--requests" => args.requests = number(&word, words.next())?,
                "--fewest" => args.fewest = number(&word, words.next())?,
                "--threads" => args.threads = number(&word, words.next())? as usize,
                "--check" => args.check = true,
                "--only" => args.parts.push(part(words.next())?),
                other => return Err(unknown(other)),
            }
        }
        if args.parts.is_empty() {
            args.parts = Part::ALL.into_iter().map(|(_, part)| part).collect();
        }
        Ok(args)
    }

    /// Returns whether a part was requested.
    pub fn wants(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    /// Returns the number of runs of a cell whose runs have about this many requests each.
    pub fn runs_of(&self, requests: f64) -> u64 {
        let within = (self.requests as f64 / requests.max(1.0)) as u64;
        self.runs.min(within.max(self.fewest)).max(2)
    }
}

/// Parses a whole number of at least 1; `1e8` is accepted, too.
fn number(flag: &str, word: Option<String>) -> Result<u64, String> {
    let value: Option<f64> = word.and_then(|word| word.parse().ok());
    value.filter(|value| *value >= 1.0).map(|value| value as u64).ok_or_else(|| format!("{flag} wants a number"))
}

fn part(word: Option<String>) -> Result<Part, String> {
    let word = word.unwrap_or_default();
    Part::named(&word).ok_or_else(|| unknown(&word))
}

fn unknown(word: &str) -> String {
    let known = Part::ALL.map(|(name, _)| name).join(", ");
    format!(
        "`{word}` is unknown to this bench; options: --only PART ({known}), --runs N, --requests N, --fewest N, \
         --threads N, --check"
    )
}
