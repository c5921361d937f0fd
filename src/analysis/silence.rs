//! Detects pauses of the server: a pause is a time in which nothing arrived on any stream although
//! requests were in flight, and that is longer than the run's other silences explain.
//!
//! A silence is any time in which nothing arrives on any stream, such as the time to first token or a gap of
//! a single stream, or the time in which a server computes a long prompt while the other streams wait. A
//! run's own silences thus show how long a silence may be, whatever TTFT and gaps depend on. The model
//! assumes that their lengths have the tail of a lognormal distribution, with a deviation that is increased
//! because few silences may underestimate it. The tail is fitted to the longest tenth and to the longest
//! fortieth, and the fit that falls faster is used. With many concurrent streams, most silences last a
//! millisecond and do not show how long a silence may be. If the true tail falls faster (such as an
//! exponential one), too few pauses are reported, never too many. If it falls more slowly, too many pauses
//! are reported, and the number rises with the weight of the tail (`docs/METRICS.md`, Steadiness).

use crate::plan::{Limits, Validity};
use crate::rows::{Facts, Measured, Outcome};

use super::state::{State, exceeded};
use super::student::upper;
use super::window;

/// Minimum length of a cell, in nanoseconds, and maximum number of cells of a window.
const CELL_NS: u64 = 1_000_000;
const MOST_CELLS: u64 = 1 << 20;
/// A shorter silence is not a pause, because the client's machine may stand still that long without
/// raising its own reason (`client_paused`).
const LEAST_NS: u64 = 250_000_000;
/// Minimum number of silences that is needed to judge their lengths.
const FEWEST: usize = 20;
/// Maximum number of pauses of a run; more frequent pauses are the server's normal behavior.
const MOST: usize = 5;
/// A silence is a pause only if fewer silences of its length than this are expected by chance.
const CHANCE: f64 = 0.01;
/// The longest fortieth of a run's silences is only a few silences, so an expected number that is
/// estimated from them is multiplied by this factor.
const OF_FEW: f64 = 100.0;
/// A pause is at least this many times as long as any other silence.
const TIMES: f64 = 2.0;

/// Judges the share of the window that was spent in pauses against the plan's limits.
pub(super) fn judge(
    signs: &Signs,
    rows: &[Measured],
    facts: &Facts,
    limits: Limits,
) -> Result<Option<(State, String)>, String> {
    let silences = silences(signs, rows);
    let lengths: Vec<u64> = silences.iter().map(Silence::nanos).collect();
    let count = pauses(&lengths)?;
    let Some(longest) = silences.first().filter(|_| count > 0) else { return Ok(None) };
    if stood_still(facts) * 2 >= longest.nanos() {
        return Err("the generator itself stood still (client_paused)".into());
    }
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let window = facts.windows.measure_secs();
    let share = seconds(lengths[..count].iter().sum()) / window;
    let state = exceeded(limits, Validity::PAUSED, |limit| share > limit);
    Ok(state.map(|state| {
        let at = seconds(longest.from - facts.windows.measure_start_ns);
        let under_way = rows.iter().filter(|row| is_under_way(row, facts, longest.to)).count();
        let times = if count == 1 { String::new() } else { format!("{count} times, the longest ") };
        let (length, other) = (seconds(longest.nanos()), seconds(lengths[count]));
        let text = format!(
            "no stream received anything {times}for {length:.2} s, {at:.1} s into the window, with {under_way} \
             requests in flight; other silences last at most {other:.2} s"
        );
        (state, text)
    }))
}

/// Returns the longest standstill of the generator, in nanoseconds.
fn stood_still(facts: &Facts) -> u64 {
    let known = facts.pauses.map_or(0, |pauses| pauses.stopped.longest_ns.max(pauses.starved.longest_ns));
    let wakes = facts.observed.as_ref().and_then(|observed| observed.wakes);
    known.max(wakes.map_or(0, |wakes| wakes.max_ns))
}

fn is_under_way(row: &Measured, facts: &Facts, at: u64) -> bool {
    row.sent_ns().is_some_and(|sent| sent < at) && window::request(row, facts).end_ns() >= at
}

/// The cells of the window in which anything arrived.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Signs {
    from: u64,
    to: u64,
    cell: u64,
    bits: Vec<u64>,
}

impl Signs {
    /// Creates the cells of a window in which nothing has arrived yet.
    pub(crate) fn new(facts: &Facts) -> Signs {
        let (from, to) = (facts.windows.measure_start_ns, facts.windows.measure_end_ns);
        let length = to.saturating_sub(from);
        let cell = CELL_NS.max(length.div_ceil(MOST_CELLS));
        let cells = length.div_ceil(cell);
        Signs { from, to, cell, bits: vec![0; cells.div_ceil(64) as usize] }
    }

    /// Records an arrival.
    pub(crate) fn add(&mut self, at: u64) {
        if (self.from..self.to).contains(&at) {
            let cell = (at - self.from) / self.cell;
            self.bits[(cell / 64) as usize] |= 1 << (cell % 64);
        }
    }

    /// Records the end of a response that failed on the server's side, which also counts as an arrival.
    pub(crate) fn add_end(&mut self, row: &Measured) {
        use Outcome::{CutAtDrain, Stalled, Timeout};
        if let Some(ended) = row.ended_ns().filter(|_| !matches!(row.outcome, CutAtDrain | Stalled | Timeout)) {
            self.add(ended);
        }
    }

    /// Returns the times without arrivals: from the end of one arrival's cell to the beginning of the
    /// next arrival's cell.
    fn empty(&self) -> Vec<(u64, u64)> {
        let (mut found, mut from) = (Vec::new(), self.from);
        for (index, word) in self.bits.iter().enumerate() {
            let mut word = *word;
            while word != 0 {
                let cell = index as u64 * 64 + u64::from(word.trailing_zeros());
                let at = self.from + cell * self.cell;
                if at > from {
                    found.push((from, at));
                }
                from = at + self.cell;
                word &= word - 1;
            }
        }
        if self.to > from {
            found.push((from, self.to));
        }
        found
    }
}

/// A time in which nothing arrived although requests were in flight, in nanoseconds since the run's
/// start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Silence {
    /// The beginning of the silence.
    pub from: u64,
    /// The end of the silence.
    pub to: u64,
}

impl Silence {
    /// Returns the length in nanoseconds.
    pub(crate) fn nanos(&self) -> u64 {
        self.to - self.from
    }
}

/// Returns the silences of a run, the longest first.
pub(crate) fn silences(signs: &Signs, rows: &[Measured]) -> Vec<Silence> {
    // Requests sorted by end, the latest first, each with the earliest sending time of all requests that
    // ended at the same time or later.
    let span = |row: &Measured| Some((row.ended_ns().unwrap_or(u64::MAX), row.sent_ns()?));
    let mut ended: Vec<(u64, u64)> = rows.iter().filter_map(span).collect();
    ended.sort_unstable_by_key(|(end, _)| std::cmp::Reverse(*end));
    let mut first = u64::MAX;
    for (_, sent) in &mut ended {
        first = first.min(*sent);
        *sent = first;
    }
    let waits_since = |at: u64| {
        let late = ended.partition_point(|(end, _)| *end >= at);
        late.checked_sub(1).map(|last| ended[last].1)
    };
    let waited = |(from, to): (u64, u64)| {
        let from = waits_since(to)?.max(from);
        (from < to).then_some(Silence { from, to })
    };
    let mut found: Vec<Silence> = signs.empty().into_iter().filter_map(waited).collect();
    found.sort_by_key(|silence| std::cmp::Reverse(silence.nanos()));
    found
}

/// Returns how many of the silences, sorted with the longest first, are pauses. An error states why this
/// cannot be decided.
pub fn pauses(lengths: &[u64]) -> Result<usize, String> {
    if lengths.first().is_none_or(|longest| *longest < LEAST_NS) {
        return Ok(0);
    }
    if lengths.len() < FEWEST + MOST {
        let count = lengths.len();
        return Err(format!("{count} silences are too few to judge how long a normal silence lasts"));
    }
    let is_pause = |count: &usize| {
        let (shortest, others) = (lengths[count - 1], &lengths[*count..]);
        let is_long = shortest >= LEAST_NS && shortest as f64 >= TIMES * others[0] as f64;
        is_long && expected(others, shortest) < CHANCE
    };
    Ok((1..=MOST).rev().find(is_pause).unwrap_or(0))
}

/// Returns how many silences as long as `length` are expected by chance among as many silences as
/// `others` contains. `others` is sorted with the longest first.
fn expected(others: &[u64], length: u64) -> f64 {
    let by = |tail: usize| expected_by(others, length, tail);
    let tenth = by((others.len() / 10).clamp(FEWEST / 2, 200));
    let fortieth = others.len() / 40;
    if fortieth < FEWEST / 2 { tenth } else { tenth.min(OF_FEW * by(fortieth.min(50))) }
}

/// Returns how many silences as long as `length` are expected by chance, estimated from the longest `tail`
/// silences of `others`.
fn expected_by(others: &[u64], length: u64, tail: usize) -> f64 {
    let n = others.len() as f64;
    let least = others[tail] as f64;
    let excess = others[..tail].iter().map(|other| (*other as f64 / least).ln()).sum::<f64>() / tail as f64;
    let share = tail as f64 / n;
    let place = normal_place(share);
    // The mean of the normal distribution above a point, minus that point.
    let above = (-place * place / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() / share - place;
    let deviation = (excess / above * (1.0 + 1.0 / (tail as f64).sqrt())).max(0.1);
    n * upper(place + (length as f64 / least).ln() / deviation)
}

/// Returns the z above which the given share of a normal distribution lies.
fn normal_place(share: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if upper(middle) > share { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns `n` lengths that `draw` computes from random numbers, the longest first.
    fn lengths(n: usize, seed: u64, draw: impl Fn(f64, f64) -> f64) -> Vec<u64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut two = || (1.0 - rng.random::<f64>(), rng.random::<f64>());
        let mut lengths: Vec<u64> = (0..n).map(|_| two()).map(|(a, b)| (draw(a, b) * MS as f64) as u64).collect();
        lengths.sort_unstable_by_key(|length| std::cmp::Reverse(*length));
        lengths
    }

    fn with(mut lengths: Vec<u64>, more: &[u64]) -> Vec<u64> {
        lengths.extend(more.iter().map(|millis| millis * MS));
        lengths.sort_unstable_by_key(|length| std::cmp::Reverse(*length));
        lengths
    }

    fn normal(a: f64, b: f64) -> f64 {
        (-2.0 * a.ln()).sqrt() * (2.0 * std::f64::consts::PI * b).cos()
    }

    #[test]
    fn a_pause_stands_out_of_what_is_usual() {
        let steady = || lengths(300, 1, |a, _| 100.0 * (0.9 + 0.2 * a));
        assert_eq!(pauses(&steady()), Ok(0));
        assert_eq!(pauses(&with(steady(), &[1_000])), Ok(1));
        assert_eq!(pauses(&with(steady(), &[900, 1_000, 700])), Ok(3));
        assert_eq!(pauses(&with(steady(), &[180])), Ok(0), "shorter than a pause");
        let exponential = || lengths(300, 2, |a, _| -100.0 * a.ln());
        assert_eq!(pauses(&exponential()), Ok(0));
        assert_eq!(pauses(&with(exponential(), &[3_000])), Ok(1));
        assert_eq!(pauses(&[]), Ok(0));
        assert!(pauses(&[300 * MS, MS]).is_err());
    }

    #[test]
    fn heavy_tails_are_no_pauses() {
        for n in [300, 1_000] {
            let found = |seed| {
                let lognormal = lengths(n, seed, |a, b| 100.0 * (1.27 * normal(a, b)).exp());
                usize::from(pauses(&lognormal) != Ok(0))
            };
            let count: usize = (0..500).map(found).sum();
            assert!(count <= 5, "{count} of 500 with {n} silences");
        }
        // Many concurrent streams: nearly all silences last a few milliseconds.
        let busy = || lengths(2_000, 3, |a, b| 1.5 * (1.1 * normal(a, b)).exp());
        assert_eq!((pauses(&busy()), pauses(&with(busy(), &[1_000]))), (Ok(0), Ok(1)));
    }

    #[test]
    fn nothing_comes_where_nothing_is_asked() {
        let facts = Facts {
            windows: crate::rows::Windows { measure_end_ns: 100 * MS, end_ns: 200 * MS, ..Default::default() },
            stream: true,
            ..Facts::default()
        };
        let windows = facts.windows;
        let request = |sent, first| crate::analysis::synthetic::record(sent, sent, first, vec![], windows);
        // One request is served in 20 ms, and another is sent at 60 ms and waits until 90 ms.
        let records = [request(0, 20 * MS), request(60 * MS, 90 * MS)];
        let (run, events) = crate::analysis::synthetic::read(&records, &facts, None);
        let found = silences(&events.signs, crate::rows::Replay::rows(&run));
        assert_eq!(found, [Silence { from: 60 * MS, to: 90 * MS }, Silence { from: 0, to: 20 * MS }]);
    }
}
