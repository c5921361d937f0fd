//! Whether the server paused: a time in which nothing came on any stream although requests were under way, longer than the run's
//! other silences explain.
//!
//! Every time to a first token and every gap that all streams have in common is a silence: that of one stream, or of a server that
//! computes a long prompt while the others wait. So a run's own silences say how long one may be, whatever TTFT and gaps depend on.
//! Model: the tail of their lengths is that of a lognormal distribution, with a deviation taken to be larger by what so few may have
//! measured too small. It is fitted to the longest tenth and to the longest fortieth, and the one that falls faster counts: where many
//! streams speak at once most silences are of a millisecond, and say nothing of how long one may be. Of a tail that falls faster (an exponential one) too few pauses are told, never too
//! many; of one that falls more slowly as many more as it is heavier (`docs/METRICS.md`, Steadiness).

use crate::plan::{Limits, Validity};
use crate::rows::{Facts, Measured, Outcome};

use super::state::{State, exceeded};
use super::student::upper;
use super::window;

/// The finest time that is told apart, and the most cells of a window.
const CELL_NS: u64 = 1_000_000;
const MOST_CELLS: u64 = 1 << 20;
/// A shorter silence is no pause: the machine of the client may stand still as long without a reason of its own (`client_paused`).
const LEAST_NS: u64 = 250_000_000;
/// Silences below which nothing can be said of their lengths.
const FEWEST: usize = 20;
/// Most pauses of a run: what comes more often is what the server does.
const MOST: usize = 5;
/// How many silences of the length of a pause may be expected by chance.
const CHANCE: f64 = 0.01;
/// The longest fortieth is of few silences: what it expects counts so many times.
const OF_FEW: f64 = 100.0;
/// A pause is at least so many times as long as any other silence.
const TIMES: f64 = 2.0;

/// The share of the window in pauses, where it is above the plan's limits.
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
        return Err("the generator stood still itself (client_paused)".into());
    }
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let window = facts.windows.measure_secs();
    let share = seconds(lengths[..count].iter().sum()) / window;
    let state = exceeded(limits, Validity::PAUSED, |limit| share > limit);
    Ok(state.map(|state| {
        let at = seconds(longest.from - facts.windows.measure_start_ns);
        let under_way = rows.iter().filter(|row| is_under_way(row, facts, longest.to)).count();
        let times = if count == 1 { String::new() } else { format!("{count} times, once ") };
        let (length, other) = (seconds(longest.nanos()), seconds(lengths[count]));
        let text = format!(
            "nothing came on any stream {times}for {length:.2} s, {at:.1} s into the window, with {under_way} requests under way; \
             other silences last {other:.2} s at most"
        );
        (state, text)
    }))
}

/// How long the generator stood still at most, in nanoseconds.
fn stood_still(facts: &Facts) -> u64 {
    let known = facts.pauses.map_or(0, |pauses| pauses.stopped.longest_ns.max(pauses.starved.longest_ns));
    let wakes = facts.observed.as_ref().and_then(|observed| observed.wakes);
    known.max(wakes.map_or(0, |wakes| wakes.max_ns))
}

fn is_under_way(row: &Measured, facts: &Facts, at: u64) -> bool {
    row.sent_ns().is_some_and(|sent| sent < at) && window::request(row, facts).end_ns() >= at
}

/// In which cells of the window anything came.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Signs {
    from: u64,
    to: u64,
    cell: u64,
    bits: Vec<u64>,
}

impl Signs {
    /// Of a window in which nothing came yet.
    pub(crate) fn new(facts: &Facts) -> Signs {
        let (from, to) = (facts.windows.measure_start_ns, facts.windows.measure_end_ns);
        let length = to.saturating_sub(from);
        let cell = CELL_NS.max(length.div_ceil(MOST_CELLS));
        let cells = length.div_ceil(cell);
        Signs { from, to, cell, bits: vec![0; cells.div_ceil(64) as usize] }
    }

    /// Something came.
    pub(crate) fn add(&mut self, at: u64) {
        if (self.from..self.to).contains(&at) {
            let cell = (at - self.from) / self.cell;
            self.bits[(cell / 64) as usize] |= 1 << (cell % 64);
        }
    }

    /// An answer that failed at the server's side came too.
    pub(crate) fn add_end(&mut self, row: &Measured) {
        use Outcome::{CutAtDrain, Stalled, Timeout};
        if let Some(ended) = row.ended_ns().filter(|_| !matches!(row.outcome, CutAtDrain | Stalled | Timeout)) {
            self.add(ended);
        }
    }

    /// Times without a sign: from the end of the cell of one to the begin of the cell of the next.
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

/// A time in which nothing came although requests were under way, in nanoseconds since the run's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Silence {
    /// Its begin.
    pub from: u64,
    /// Its end.
    pub to: u64,
}

impl Silence {
    /// Length in nanoseconds.
    pub(crate) fn nanos(&self) -> u64 {
        self.to - self.from
    }
}

/// The silences of a run, the longest first.
pub(crate) fn silences(signs: &Signs, rows: &[Measured]) -> Vec<Silence> {
    // By end, the latest first; beside each the first that was sent of all that ended as late.
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

/// Which of the silences, the longest first, are pauses: so many of the first. An error says why nobody can tell.
pub fn pauses(lengths: &[u64]) -> Result<usize, String> {
    if lengths.first().is_none_or(|longest| *longest < LEAST_NS) {
        return Ok(0);
    }
    if lengths.len() < FEWEST + MOST {
        let count = lengths.len();
        return Err(format!("{count} silences are too few to say how long one may be"));
    }
    let is_pause = |count: &usize| {
        let (shortest, others) = (lengths[count - 1], &lengths[*count..]);
        let is_long = shortest >= LEAST_NS && shortest as f64 >= TIMES * others[0] as f64;
        is_long && expected(others, shortest) < CHANCE
    };
    Ok((1..=MOST).rev().find(is_pause).unwrap_or(0))
}

/// How many silences as long as `length` are expected by chance among as many as `others`, which are sorted, the longest first.
fn expected(others: &[u64], length: u64) -> f64 {
    let by = |tail: usize| expected_by(others, length, tail);
    let tenth = by((others.len() / 10).clamp(FEWEST / 2, 200));
    let fortieth = others.len() / 40;
    if fortieth < FEWEST / 2 { tenth } else { tenth.min(OF_FEW * by(fortieth.min(50))) }
}

/// The same by the longest `tail` of them.
fn expected_by(others: &[u64], length: u64, tail: usize) -> f64 {
    let n = others.len() as f64;
    let least = others[tail] as f64;
    let excess = others[..tail].iter().map(|other| (*other as f64 / least).ln()).sum::<f64>() / tail as f64;
    let share = tail as f64 / n;
    let place = normal_place(share);
    // The mean of what lies above a place of the normal distribution, less that place.
    let above = (-place * place / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() / share - place;
    let deviation = (excess / above * (1.0 + 1.0 / (tail as f64).sqrt())).max(0.1);
    n * upper(place + (length as f64 / least).ln() / deviation)
}

/// The z above which a share of a normal distribution lies.
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

    /// Lengths by a rule, the longest first.
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
        // Many streams at once: nearly all silences are of a few milliseconds.
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
        // One that is answered after 20 ms, and one sent at 60 ms that waits until 90 ms.
        let records = [request(0, 20 * MS), request(60 * MS, 90 * MS)];
        let (run, events) = crate::analysis::synthetic::read(&records, &facts, None);
        let found = silences(&events.signs, crate::rows::Replay::rows(&run));
        assert_eq!(found, [Silence { from: 60 * MS, to: 90 * MS }, Silence { from: 0, to: 20 * MS }]);
    }
}
