//! Creates a profile from records.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use crate::units::Nanos;

use super::lengths::Cells;
use super::merge::{Span, at_least};
use super::{Arrivals, PROFILE_VERSION, PrefixClass, Prefixes, Profile, Stretch, TurnBucket, Turns};
use crate::dataset::record::{BLOCK_TOKENS, CHARS_PER_TOKEN, Record, estimated_tokens};

/// Maximum number of periods in the description of the rate over time. A period lasts at least a second.
const MOST_STRETCHES: u64 = 500;

/// The error if there are fewer requests than a single range must cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a profile with k = {k} needs at least {k} requests, but there are only {requests}")]
pub struct TooFew {
    /// The minimum number of requests in a range.
    pub k: u32,
    /// The number of requests.
    pub requests: u64,
}

/// A profile under construction.
///
/// The profiler takes about eight bytes of memory for each request with a time, each distinct block
/// and each named conversation.
#[derive(Default)]
pub struct Profiler {
    requests: u64,
    cells: Cells,
    offsets: Vec<Nanos>,
    hasher: RandomState,
    /// Names of the full blocks of all prompts so far.
    blocks: HashSet<u64>,
    /// Groups of requests, by their first block.
    groups: HashMap<u64, Group>,
    /// Number of prompt tokens in all requests with known beginnings.
    prompt_tokens: u64,
    /// Number of requests whose prompts are shorter than a block.
    short: u64,
    /// Number of requests in each named conversation, by a hash of its name.
    named: HashMap<u64, u64>,
    /// For each number of requests, the number of conversations that consist of one record with that many
    /// requests.
    turns: BTreeMap<u64, u64>,
    has_text: bool,
}

/// Requests with the same first block.
#[derive(Clone, Copy, Default)]
struct Group {
    requests: u64,
    shared_tokens: u64,
}

impl Profiler {
    /// Adds a record to the counts.
    pub fn add(&mut self, record: &Record) {
        self.offsets.extend(record.offset);
        self.prefix(record);
        match &record.conversation {
            Some(name) => *self.named.entry(self.hasher.hash_one(name)).or_default() += record.requests() as u64,
            None => *self.turns.entry(record.requests() as u64).or_default() += 1,
        }
        self.has_text |= !record.turns.is_empty();
        self.requests += record.requests() as u64;
        let is_declared = record.input_tokens.is_some();
        self.cells.add(record.prompt_tokens().unwrap_or(0), record.answer_tokens(), is_declared);
        for exchange in record.exchanges().skip(1) {
            self.cells.add(estimated_tokens(exchange.user), exchange.answer.map(estimated_tokens), false);
        }
    }

    /// Counts the beginning of a record's first prompt. The blocks are those named in the file, or
    /// otherwise the full blocks of the prompt's text.
    fn prefix(&mut self, record: &Record) {
        let blocks = if record.hash_ids.is_empty() { self.text_blocks(record) } else { record.hash_ids.clone() };
        if record.hash_ids.is_empty() && record.turns.is_empty() {
            return;
        }
        let tokens = u64::from(record.prompt_tokens().unwrap_or(0));
        self.prompt_tokens += tokens;
        let Some(first) = blocks.first() else {
            self.short += 1;
            return;
        };
        let known = blocks.iter().take_while(|block| self.blocks.contains(block)).count() as u64;
        let group = self.groups.entry(*first).or_default();
        group.requests += 1;
        group.shared_tokens += (known * u64::from(BLOCK_TOKENS)).min(tokens);
        self.blocks.extend(blocks);
    }

    /// Returns names for the full blocks of the text of a record's first prompt. Each name is derived from
    /// all text up to the end of its block.
    fn text_blocks(&self, record: &Record) -> Vec<u64> {
        let Some(first) = record.exchanges().next() else { return Vec::new() };
        let mut text = record.system().unwrap_or_default().chars().chain(first.user.chars());
        let mut blocks = Vec::new();
        let mut before = 0u64;
        loop {
            let block: String = text.by_ref().take(BLOCK_TOKENS as usize * CHARS_PER_TOKEN).collect();
            if estimated_tokens(&block) < BLOCK_TOKENS {
                return blocks;
            }
            before = self.hasher.hash_one((before, block));
            blocks.push(before);
        }
    }

    /// Returns the profile. Every range covers at least `k` requests or conversations.
    pub fn finish(self, k: u32) -> Result<Profile, TooFew> {
        let least = u64::from(k.max(1));
        if self.requests < least {
            return Err(TooFew { k, requests: self.requests });
        }
        Ok(Profile {
            sweepline_profile: PROFILE_VERSION,
            k,
            requests: self.requests,
            arrivals: arrivals(self.offsets, least),
            prefixes: prefixes(self.groups, self.short, self.prompt_tokens, least),
            turns: turns(self.named, self.turns, self.has_text, least),
            lengths: self.cells.lengths(least),
        })
    }
}

/// Rounds a figure so that it does not reveal a single request.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn arrivals(offsets: Vec<Nanos>, k: u64) -> Option<Arrivals> {
    let (first, last) = (offsets.first()?, offsets.last()?);
    let span = last.saturating_sub(*first);
    let step = (span.0 / MOST_STRETCHES).max(1_000_000_000);
    let mut spans: Vec<Span<()>> = Vec::new();
    for offset in &offsets {
        let at = offset.saturating_sub(*first).0 / step;
        match spans.last_mut().filter(|span| span.range[1] == at) {
            Some(span) => span.weight += 1,
            None => {
                // Time without requests is added to the period of the next request.
                let from = spans.last().map_or(0, |span| span.range[1] + 1);
                spans.push(Span { range: [from, at], weight: 1, sums: () });
            }
        }
    }
    let (stretches, left) = at_least(spans, k, |(), ()| {});
    let end = |range: [u64; 2]| Nanos(((range[1] + 1) * step).min(span.0));
    let seconds = |range: [u64; 2]| end(range).saturating_sub(Nanos(range[0] * step)).secs();
    let stretch = |span: &Span<()>| Stretch { seconds: rounded(seconds(span.range)), requests: span.weight };
    (left == 0).then(|| Arrivals {
        seconds: rounded(span.secs()),
        gap_cv: rounded(gap_cv(&offsets)),
        stretches: stretches.iter().map(stretch).collect(),
    })
}

/// Returns the coefficient of variation of the gaps, that is, their standard deviation divided by their
/// mean; 0 if there are no gaps.
fn gap_cv(offsets: &[Nanos]) -> f64 {
    let gaps: Vec<f64> = offsets.windows(2).map(|pair| pair[1].saturating_sub(pair[0]).secs()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len().max(1) as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len().max(1) as f64;
    if mean > 0.0 { variance.sqrt() / mean } else { 0.0 }
}

fn prefixes(groups: HashMap<u64, Group>, short: u64, prompt_tokens: u64, k: u64) -> Option<Prefixes> {
    let requests = short + groups.values().map(|group| group.requests).sum::<u64>();
    if requests == 0 || prompt_tokens == 0 {
        return None;
    }
    let reusable: u64 = groups.values().map(|group| group.shared_tokens).sum();
    // Classes of group sizes (1, 2 to 3, 4 to 7, …), each with its groups, requests and shared
    // tokens.
    let mut classes: BTreeMap<u32, (u64, Group)> = BTreeMap::new();
    let short = (0..short).map(|_| Group { requests: 1, shared_tokens: 0 });
    for group in groups.into_values().chain(short) {
        let (count, sums) = classes.entry(group.requests.ilog2()).or_default();
        *count += 1;
        sums.requests += group.requests;
        sums.shared_tokens += group.shared_tokens;
    }
    let spans = classes.into_iter().map(|(class, (groups, sums))| Span {
        range: [1 << class, (2 << class) - 1],
        weight: sums.requests,
        sums: (groups, sums.shared_tokens),
    });
    let (classes, suppressed) = at_least(spans.collect(), k, |sum, more| *sum = (sum.0 + more.0, sum.1 + more.1));
    let class = |span: &Span<(u64, u64)>| {
        let (groups, shared) = span.sums;
        let shared_tokens = shared.checked_div(span.weight - groups).unwrap_or(0);
        let shared_tokens = u32::try_from(shared_tokens).unwrap_or(u32::MAX);
        PrefixClass { size: span.range, groups, requests: span.weight, shared_tokens }
    };
    Some(Prefixes {
        block_tokens: BLOCK_TOKENS,
        requests,
        reusable_share: rounded(reusable as f64 / prompt_tokens as f64),
        classes: classes.iter().map(class).collect(),
        suppressed,
    })
}

fn turns(named: HashMap<u64, u64>, mut turns: BTreeMap<u64, u64>, has_text: bool, k: u64) -> Option<Turns> {
    // If records have only lengths, without text and without the names of conversations, it is unknown
    // which requests belong to the same conversation.
    if named.is_empty() && !has_text {
        return None;
    }
    let with_history = !named.is_empty();
    for count in named.into_values() {
        *turns.entry(count).or_default() += 1;
    }
    let spans = turns.into_iter().map(|(turns, weight)| Span { range: [turns; 2], weight, sums: () });
    let (buckets, suppressed) = at_least(spans.collect(), k, |(), ()| {});
    let bucket = |span: &Span<()>| TurnBucket { turns: span.range, conversations: span.weight };
    Some(Turns { buckets: buckets.iter().map(bucket).collect(), suppressed, with_history })
}
