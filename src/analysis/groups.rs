//! A run by what some of its requests have in common: the class of a mix, how long prompts are, how long answers are asked
//! to be. Each group is measured as if its requests were the run.

use std::collections::BTreeSet;

use crate::rows::{Facts, Replay, RequestRow};

use super::measure::{RunMetrics, measure};
use super::{Events, Gaps, window};

/// What requests are put together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// The class of a mix.
    Class,
    /// Prompt tokens meant to be sent.
    PromptTokens,
    /// Output tokens asked for.
    OutputTokens,
}

impl By {
    /// As tables write it.
    pub fn name(self) -> &'static str {
        match self {
            By::Class => "class",
            By::PromptTokens => "prompt_tokens",
            By::OutputTokens => "output_tokens",
        }
    }
}

/// Requests of a run that belong together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Those of one class.
    Class(String),
    /// Those whose prompts have from 2^n to 2^(n+1) − 1 tokens.
    Prompt(u32),
    /// Those that ask for from 2^n to 2^(n+1) − 1 tokens.
    Output(u32),
}

impl Group {
    /// What its requests have in common.
    pub fn by(&self) -> By {
        match self {
            Group::Class(_) => By::Class,
            Group::Prompt(_) => By::PromptTokens,
            Group::Output(_) => By::OutputTokens,
        }
    }

    /// The class, or the tokens: `256-511`.
    pub fn name(&self) -> String {
        match self {
            Group::Class(class) => class.clone(),
            Group::Prompt(power) | Group::Output(power) => {
                let first = 1u64 << power;
                format!("{first}-{}", 2 * first - 1)
            }
        }
    }

    /// Whether a request belongs to it.
    fn has(&self, row: &RequestRow) -> bool {
        match self {
            Group::Class(class) => row.class.as_ref() == Some(class),
            Group::Prompt(power) => bucket(row.intended_prompt_tokens) == *power,
            Group::Output(power) => bucket(row.requested_tokens) == *power,
        }
    }
}

/// The power of two that a bucket begins at.
fn bucket(tokens: u32) -> u32 {
    tokens.max(1).ilog2()
}

/// The groups of a run, in order: by class where there are classes, by length where lengths differ.
pub fn groups(rows: &[RequestRow], facts: &Facts) -> Vec<Group> {
    let members = || window::members(rows, facts);
    let classes: BTreeSet<Group> = members().filter_map(|row| row.class.clone()).map(Group::Class).collect();
    let prompts = buckets(members().map(|row| row.intended_prompt_tokens), Group::Prompt);
    let outputs = buckets(members().map(|row| row.requested_tokens), Group::Output);
    classes.into_iter().chain(prompts).chain(outputs).collect()
}

/// Prompts that are to be equally long differ by a few tokens, for words cannot be cut: no more than this apart, and a
/// sixteenth of the shortest, is one length.
const SAME: u32 = 4;

fn buckets(lengths: impl Iterator<Item = u32> + Clone, group: fn(u32) -> Group) -> BTreeSet<Group> {
    let range = lengths.clone().min().zip(lengths.clone().max());
    let differ = range.is_some_and(|(least, most)| most - least > SAME + least / 16);
    if differ { lengths.map(|tokens| group(bucket(tokens))).collect() } else { BTreeSet::new() }
}

/// The requests of one group as a run of their own.
struct Part<'r, R: ?Sized> {
    run: &'r R,
    group: &'r Group,
    rows: Vec<RequestRow>,
}

impl<R: Replay + ?Sized> Replay for Part<'_, R> {
    type Error = R::Error;

    fn rows(&self) -> &[RequestRow] {
        &self.rows
    }

    fn replay(&self, each: &mut dyn FnMut(&RequestRow, &[u64])) -> Result<(), R::Error> {
        self.run.replay(&mut |row, gaps| {
            if self.group.has(row) {
                each(row, gaps);
            }
        })
    }
}

/// The metrics of one group: every one of a run, but what only all requests together have.
pub fn measure_group<R: Replay + ?Sized>(run: &R, group: &Group, facts: &Facts) -> Result<RunMetrics, R::Error> {
    let rows = run.rows().iter().filter(|row| group.has(row)).cloned().collect();
    let part = Part { run, group, rows };
    let events = Events::of(&part, facts, &[])?;
    let gaps = Gaps::of(&part, facts, &events)?;
    let metrics = measure(part.rows(), (&events, &gaps), facts);
    // The batch is that of all groups together.
    Ok(RunMetrics { derived_server_throughput: None, ..metrics })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::synthetic::Run;
    use crate::rows::Records;

    /// A run whose requests ask for 16, 100 or 1 000 tokens, the third part of them each.
    fn varied() -> (Records, Facts) {
        let (mut records, facts) = Run::default().make();
        for (at, record) in records.iter_mut().enumerate() {
            record.row.requested_tokens = [16, 100, 1_000][at % 3];
            record.row.class = Some(["chat", "code"][at % 2].to_owned());
            // As a text of 256 tokens comes out.
            record.row.intended_prompt_tokens = [254, 255, 256, 257][at % 4];
        }
        (records.into_iter().collect(), facts)
    }

    #[test]
    fn groups_are_classes_and_lengths_that_differ() {
        let (run, facts) = varied();
        let groups = groups(run.rows(), &facts);
        let shown: Vec<String> = groups.iter().map(|group| format!("{} {}", group.by().name(), group.name())).collect();
        let outputs = ["output_tokens 16-31", "output_tokens 64-127", "output_tokens 512-1023"];
        assert_eq!(shown, [&["class chat", "class code"][..], &outputs].concat());
    }

    #[test]
    fn a_run_of_one_length_has_no_groups() {
        let (records, facts) = Run::default().make();
        let run: Records = records.into_iter().collect();
        assert_eq!(groups(run.rows(), &facts), []);
    }

    #[test]
    fn groups_add_up_to_the_run() {
        let (run, facts) = varied();
        let events = Events::of(&run, &facts, &[]).unwrap();
        let gaps = Gaps::of(&run, &facts, &events).unwrap();
        let whole = measure(run.rows(), (&events, &gaps), &facts);
        for by in [By::Class, By::OutputTokens] {
            let groups: Vec<Group> = groups(run.rows(), &facts).into_iter().filter(|group| group.by() == by).collect();
            let parts: Vec<RunMetrics> =
                groups.iter().map(|group| measure_group(&run, group, &facts).unwrap()).collect();
            let sum = |of: fn(&RunMetrics) -> u64| parts.iter().map(of).sum::<u64>();
            assert_eq!(sum(|part| part.counts.requests), whole.counts.requests);
            assert_eq!(sum(|part| part.ttft.n), whole.ttft.n);
            assert_eq!(sum(|part| part.itl.n), whole.itl.n);
            let throughput: f64 = parts.iter().filter_map(|part| part.flow.output_throughput).sum();
            let all = whole.flow.output_throughput.unwrap();
            assert!((throughput - all).abs() < 1e-6 * all, "{throughput} of {all}");
            assert!(parts.iter().all(|part| part.derived_server_throughput.is_none()));
        }
    }
}
