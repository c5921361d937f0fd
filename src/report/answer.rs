//! Summarizes a comparison in one sentence per arm. The sentences say what is claimed about the arms
//! (`comparison::claim`), and nothing else.

use indexmap::IndexMap;

use crate::analysis::comparison::{Claim, Conclusion, ERRORS, Family, MarginAnswer, Shown, Unproven, allowed};
use crate::units::text::counted;

use super::estimate::titled;
use super::format::plain;

/// Maximum number of arms that get a sentence each, unless they are worse. Further arms are only counted,
/// except that a single further arm gets a sentence too, because a count would take as much space.
const MOST: usize = 4;

/// Maximum number of metrics that are listed although nothing is proven.
const MOST_UNPROVEN: usize = 3;

/// Returns one sentence for each arm of each family: those that are worse in anything first, then in the
/// order of the plan. If there are too many arms, the last sentence only counts the others.
pub(crate) fn answers(families: &[Family]) -> Vec<String> {
    let arms = families.iter().flat_map(|family| family.claims.iter().map(move |claim| Arm { family, claim }));
    let (worse, others): (Vec<Arm>, Vec<Arm>) = arms.partition(|arm| !arm.claim.worse.is_empty());
    let room = match MOST.saturating_sub(worse.len()) {
        room if others.len() == room + 1 => room + 1,
        room => room,
    };
    let (told, counted) = others.split_at(room.min(others.len()));
    let sentences = worse.iter().chain(told).map(Arm::sentence);
    sentences.chain((!counted.is_empty()).then(|| more(counted))).collect()
}

/// Counts arms by their conclusions.
fn more(arms: &[Arm]) -> String {
    let said = [
        (Conclusion::Better, "better"),
        (Conclusion::WithinMargin, "within the margin"),
        (Conclusion::Differs, "different"),
        (Conclusion::NoDifferenceShown, "without a shown difference"),
        (Conclusion::Undecided, "undecided"),
    ];
    let count = |conclusion| arms.iter().filter(|arm| arm.claim.conclusion == conclusion).count();
    let parts = said.into_iter().map(|(conclusion, words)| (count(conclusion), words));
    let parts: Vec<String> =
        parts.filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}")).collect();
    format!("{} more arms below: {}.", arms.len(), parts.join(", "))
}

/// An arm and what is claimed about it.
struct Arm<'a> {
    family: &'a Family,
    claim: &'a Claim,
}

impl Arm<'_> {
    fn sentence(&self) -> String {
        let Claim { arm, worse, better, differs, .. } = self.claim;
        let lists = [("worse", worse), ("better", better), ("different", differs)];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let lists = lists.map(|(word, list)| format!("{word}: {}", self.listed(list, word == "worse")));
        let parts: Vec<String> = lists.chain(self.rest()).collect();
        let (baseline, scope) = (quoted(&self.family.baseline), self.claim.scope());
        format!("{} against {baseline}{scope}: {}.", quoted(arm), parts.join("; "))
    }

    /// Describes each metric of a list once: `TTFT p50 slower by 6.9 to 10 % in 2 of 2 cells`.
    /// With `with_margin`, the result for the margin follows.
    fn listed(&self, list: &[Shown], with_margin: bool) -> String {
        let mut metrics: IndexMap<&str, Vec<&Shown>> = IndexMap::new();
        list.iter().for_each(|one| metrics.entry(&one.metric).or_default().push(one));
        let part = |(metric, of): (&str, Vec<&Shown>)| {
            let margin = if with_margin { margin(&of) } else { "" };
            format!("{}{margin}", self.metric(metric, &of))
        };
        metrics.into_iter().map(part).collect::<Vec<_>>().join(", ")
    }

    /// Describes the differences of a metric, the largest first.
    fn metric(&self, metric: &str, all: &[&Shown]) -> String {
        let of_cells: Vec<&Shown> = all.iter().filter(|one| one.cell.is_some()).copied().collect();
        let over_cells = all.iter().find(|one| one.cell.is_none()).map(|one| one.words.as_str());
        let is_of_errors = metric == ERRORS;
        let name = if is_of_errors { "failed requests".to_owned() } else { titled(metric, "") };
        let of = self.cells_with(metric);
        let cells = if of == 1 { String::new() } else { format!(" in {} of {of} cells", of_cells.len()) };
        match (of_cells.as_slice(), over_cells) {
            ([], over_cells) => {
                format!("{name} {} on average over {}", over_cells.unwrap_or_default(), self.averaged(metric))
            }
            ([most, ..], _) if is_of_errors => {
                let word = if most.change > 0.0 { "more" } else { "fewer" };
                format!("{word} {name}{cells}")
            }
            ([most, .., least], over_cells) => {
                let average = over_cells.map(|words| format!(", {} on average", size(words))).unwrap_or_default();
                format!("{name} {}{cells}{average}", range(&least.words, &most.words))
            }
            ([only], over_cells) => {
                let average = over_cells.map(|words| format!(", {} on average", size(words))).unwrap_or_default();
                format!("{name} {}{cells}{average}", only.words)
            }
        }
    }

    /// Returns over how many cells a metric is averaged: `3 cells`.
    fn averaged(&self, metric: &str) -> String {
        let mut pooled = self.family.pooled.iter();
        let cells = pooled.find(|one| one.arm == self.claim.arm && one.metric == metric).map_or(0, |one| one.cells);
        counted(cells, "cell")
    }

    /// Returns the number of cells of the arm in which a metric is compared.
    fn cells_with(&self, metric: &str) -> usize {
        let of_arm = self.family.cells.iter().filter(|cell| cell.arm == self.claim.arm);
        of_arm.filter(|cell| metric == ERRORS || cell.tests.iter().any(|test| test.metric == metric)).count()
    }

    /// Describes the tests that show no difference: how many are undecided, or else what all of them say.
    fn rest(&self) -> Option<String> {
        let Claim { tests, undecided, with_margin, equal, worse, better, differs, .. } = self.claim;
        let (n, k) = (counted(*tests, "test"), *undecided);
        let is_test = |one: &&Shown| one.metric != ERRORS;
        let shown = worse.iter().chain(better).chain(differs).filter(is_test).count() as u32;
        let rest = tests.saturating_sub(shown);
        if *tests == 0 {
            return Some("nothing could be compared".to_owned());
        }
        if k > 0 {
            let margin = self.margin().filter(|_| *with_margin > 0);
            let what = margin.map(|margin| format!(" not shown to be within {margin}")).unwrap_or_default();
            return Some(format!("undecided: {k} of {n}{what}{}", self.unproven()));
        }
        let is_outside = |one: &Shown| one.margin == Some(MarginAnswer::Worse);
        let outside = worse.iter().filter(|one| is_outside(one)).count() as u32;
        match (self.margin(), *with_margin - outside) {
            (Some(margin), within @ 1..) => Some(match (within == *tests, *tests) {
                (true, 1) => format!("within {margin}"),
                (true, _) => format!("within {margin} in all {n}"),
                (false, _) => format!("within {margin} in {within} of {n}"),
            }),
            _ if rest == 0 => None,
            _ if equal == tests => Some("equal in every repeat".to_owned()),
            _ if rest == 1 && *tests == 1 => Some("no difference shown".to_owned()),
            _ if rest == *tests => Some(format!("no difference shown in any of {n}")),
            _ => Some(format!("no difference shown in the other {rest} of {n}")),
        }
    }

    /// Returns the margin in words: `the margin of 2 %`.
    fn margin(&self) -> Option<String> {
        self.family.margin.map(|margin| format!("the margin of {}", allowed(margin)))
    }

    /// Describes what was observed in too few repeats.
    fn unproven(&self) -> String {
        let all = &self.claim.unproven;
        if all.is_empty() {
            return String::new();
        }
        let one = |unproven: &Unproven| format!("{} {}", titled(&unproven.metric, ""), unproven.words);
        let more = match all.len().saturating_sub(MOST_UNPROVEN) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let listed: Vec<String> = all.iter().take(MOST_UNPROVEN).map(one).collect();
        format!(" (observed, not proven: {}{more})", listed.join(", "))
    }
}

/// Returns the note on the margin of a metric that is worse; empty if there is none.
fn margin(all: &[&Shown]) -> &'static str {
    let is = |answer| all.iter().any(|one| one.margin == Some(answer));
    match () {
        () if is(MarginAnswer::Worse) => " (outside the margin)",
        () if is(MarginAnswer::Shown) && !is(MarginAnswer::NotShown) => " (within the margin)",
        () => "",
    }
}

/// Returns the size in a description such as `slower by 3.1 %`.
fn size(words: &str) -> &str {
    words.split_once(" by ").map_or(words, |(_, size)| size)
}

/// Returns two descriptions as one: `slower by 6.9 to 10 %`.
fn range(least: &str, most: &str) -> String {
    let Some((word, most_size)) = most.split_once(" by ") else { return most.to_owned() };
    let (least_size, unit) = (size(least), most_size.split_once(' ').map(|(_, unit)| unit));
    match least_size.split_once(' ') {
        _ if least_size == most_size => most.to_owned(),
        Some((number, own)) if Some(own) == unit => format!("{word} by {number} to {most_size}"),
        _ => format!("{word} by {least_size} to {most_size}"),
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", plain(name))
}
