//! Summarizes a comparison in one sentence per arm: latency, throughput and failures. The sentences claim
//! only differences that were shown.

use indexmap::IndexMap;

use crate::analysis::comparison::{CellAnswer, Family, MarginAnswer, Outcome, Test, allowed, percent};
use crate::analysis::metric;
use crate::metrics::Unit;
use crate::plan::MetricName;

use super::estimate::titled;
use super::format::plain;

/// Latency metrics in order of preference: the total time of a request comes before its parts.
const PACE: [&str; 7] = [
    "e2e_from_schedule_p50",
    "e2e_p50",
    "ttft_from_schedule_p50",
    "ttft_p50",
    "tpot_p50",
    "ttft_from_schedule_p99",
    "ttft_p99",
];

/// Throughput metrics, in order of preference.
const THROUGHPUT: [&str; 3] = ["output_throughput", "output_throughput_per_gpu", "request_throughput"];

/// Maximum number of arms that get a sentence each. Further arms are only counted, except that a single
/// further arm gets a sentence too, because a count would take as much space.
const MOST: usize = 4;

/// Returns one sentence for each arm of each family, in the order of the plan. If there are too many arms,
/// the last sentence only gives the number of the others.
pub(crate) fn answers(families: &[Family]) -> Vec<String> {
    let mut answers = Vec::new();
    for family in families {
        let mut arms: IndexMap<&str, Vec<&CellAnswer>> = IndexMap::new();
        family.cells.iter().for_each(|cell| arms.entry(&cell.arm).or_default().push(cell));
        answers.extend(arms.into_iter().map(|(arm, cells)| Arm { family, arm, cells }.sentence()));
    }
    let more = answers.len().saturating_sub(MOST);
    if more > 1 {
        answers.truncate(MOST);
        answers.push(format!("{more} more arms below."));
    }
    answers
}

/// An arm with all of its loads.
struct Arm<'a> {
    family: &'a Family,
    arm: &'a str,
    cells: Vec<&'a CellAnswer>,
}

/// The result for one metric over all loads of an arm.
enum Said {
    /// A difference in one direction, with the number of loads that show it and the size of the change.
    Shown { better: bool, loads: usize, by: Option<String> },
    /// Differences in both directions, with the number of loads in each direction.
    Mixed { better: usize, worse: usize },
    /// A difference in a metric for which neither direction is better; contains the number of loads that show
    /// it.
    Differs(usize),
    /// Shown to be within the margin at every load; contains the margin.
    Within(f64),
    /// Identical in every repeat of every load.
    Same,
    /// No difference was shown.
    NotShown,
    /// Undecided; contains the reason.
    Undecided(&'static str),
}

impl Arm<'_> {
    fn sentence(&self) -> String {
        let (arm, baseline) = (quoted(self.arm), quoted(&self.family.baseline));
        let pace = self.first_of(&PACE).or_else(|| self.first_time());
        let throughput = self.first_of(&THROUGHPUT);
        let parts: Vec<String> = match (pace, throughput) {
            (None, None) => self.tests().first().map(|first| self.other(&first.metric)).into_iter().collect(),
            (pace, throughput) => {
                let pace = pace.map(|metric| self.pace(&metric));
                let throughput = throughput.map(|metric| self.other(&metric));
                pace.into_iter().chain(throughput).collect()
            }
        };
        if parts.is_empty() {
            return format!("{arm} against {baseline}: nothing could be compared.");
        }
        let fails = self.fails().map(|text| format!("; {text}")).unwrap_or_default();
        format!("{arm} against {baseline}: {}{fails}.", parts.join("; "))
    }

    fn tests(&self) -> Vec<&Test> {
        self.cells.iter().flat_map(|cell| &cell.tests).collect()
    }

    /// Returns the first metric of `names` that could be tested at some load; if there is none, the first one
    /// that was compared.
    fn first_of(&self, names: &[&str]) -> Option<String> {
        let tests = self.tests();
        let tells = |test: &Test| !matches!(test.outcome, Outcome::Unknown | Outcome::Refused);
        let is_told = |name: &&&str| tests.iter().any(|test| test.metric == **name && tells(test));
        let is_there = |name: &&&str| tests.iter().any(|test| test.metric == **name);
        names.iter().find(is_told).or_else(|| names.iter().find(is_there)).map(|name| (*name).to_owned())
    }

    /// Returns the first latency metric that was compared; `None` if there is none.
    fn first_time(&self) -> Option<String> {
        self.tests().iter().find(|test| is_time(&test.metric)).map(|test| test.metric.clone())
    }

    /// Describes the result for a latency: `responds 8 % faster (E2E p50, shown in 3 of 4 loads)`.
    fn pace(&self, metric: &str) -> String {
        let (name, of) = (self.named(metric), self.cells.len());
        match self.said(metric) {
            Said::Shown { better, loads, by } => {
                let word = if better { "faster" } else { "slower" };
                let by = by.map(|by| format!("{by} ")).unwrap_or_default();
                format!("responds {by}{word} ({name}, {})", shown(loads, of))
            }
            Said::Mixed { better, worse } => {
                format!("responds faster in {better} and slower in {worse} of {of} loads ({name})")
            }
            other => self.unshown(&other, &name),
        }
    }

    /// Describes the result for a metric that is not a latency: `8 % more output throughput (shown in 3 of 4
    /// loads)`, `error share worse (…)`.
    fn other(&self, metric: &str) -> String {
        let (name, of) = (self.named(metric), self.cells.len());
        match self.said(metric) {
            Said::Shown { better, loads, by } => {
                let is_rate = THROUGHPUT.contains(&metric);
                let word = match (is_rate, better) {
                    (true, true) => "more",
                    (true, false) => "less",
                    (false, true) => "better",
                    (false, false) => "worse",
                };
                let by = by.map(|by| format!("{by} ")).unwrap_or_default();
                match is_rate {
                    true => format!("{by}{word} {name} ({})", shown(loads, of)),
                    false => format!("{name} {by}{word} ({})", shown(loads, of)),
                }
            }
            Said::Mixed { better, worse } => format!("{name} better in {better} and worse in {worse} of {of} loads"),
            other => self.unshown(&other, &name),
        }
    }

    /// Returns the phrase for a metric if no load shows which arm is better.
    fn unshown(&self, said: &Said, name: &str) -> String {
        let of = self.cells.len();
        match said {
            Said::Within(margin) => format!("{name} shown to be within the margin of {}", allowed(*margin)),
            Said::Same => format!("equal {name}, the same in every repeat"),
            Said::Differs(loads) => format!("{name} differs ({})", shown(*loads, of)),
            Said::Undecided(why) => format!("undecided in {name}: {why}"),
            _ => format!("no difference shown in {name}"),
        }
    }

    fn said(&self, metric: &str) -> Said {
        let tests: Vec<&Test> = self.tests().into_iter().filter(|test| test.metric == metric).collect();
        let count = |outcome: Outcome| tests.iter().filter(|test| test.outcome == outcome).count();
        let all = |is: &dyn Fn(&Test) -> bool| !tests.is_empty() && tests.iter().all(|test| is(test));
        let is_within = |test: &Test| test.margin.as_ref().is_some_and(|one| one.answer == MarginAnswer::Shown);
        let is_equal = |test: &Test| test.outcome == Outcome::Constant && test.words == EQUAL;
        match (count(Outcome::Better), count(Outcome::Worse), count(Outcome::Differs)) {
            (0, 0, 0) if all(&is_equal) => Said::Same,
            (0, 0, 0) if all(&is_within) => Said::Within(self.family.margin.unwrap_or_default()),
            (0, 0, 0) if all(&|test| test.outcome == Outcome::Refused) => Said::Undecided("too few repeats to tell"),
            (0, 0, 0) if all(&|test| test.outcome == Outcome::Unknown) => Said::Undecided("no values to compare"),
            (0, 0, 0) => Said::NotShown,
            (0, 0, loads) => Said::Differs(loads),
            (better, 0, _) => Said::Shown { better: true, loads: better, by: by(&tests, Outcome::Better) },
            (0, worse, _) => Said::Shown { better: false, loads: worse, by: by(&tests, Outcome::Worse) },
            (better, worse, _) => Said::Mixed { better, worse },
        }
    }

    /// States that the arm fails more requests than its baseline, if this was shown.
    fn fails(&self) -> Option<String> {
        let of = self.cells.len();
        let worse = self.cells.iter().filter(|cell| cell.guardrail.outcome == Outcome::Worse).count();
        (worse > 0).then(|| format!("fails more requests ({})", shown(worse, of)))
    }

    /// Returns the metric's name without its unit, because changes are given as percentages.
    fn named(&self, metric: &str) -> String {
        titled(metric, "")
    }
}

/// The verdict of a test whose values are identical in every repeat.
const EQUAL: &str = "equal in every repeat";

fn is_time(metric: &str) -> bool {
    let known = metric.parse::<MetricName>().ok().and_then(|name| metric::find(name.key));
    known.is_some_and(|metric| metric.unit == Unit::Millis)
}

/// Returns the range of the change over the loads that show it, such as `3 to 8 %`; `None` if changes of the
/// metric are not ratios.
fn by(tests: &[&Test], outcome: Outcome) -> Option<String> {
    let ratios = || {
        let shown = tests.iter().filter(|test| test.outcome == outcome).filter_map(|test| test.change.as_ref());
        shown.filter(|change| change.of == "ratio").map(|change| (change.value - 1.0).abs())
    };
    let (least, most) = (ratios().reduce(f64::min)?, ratios().reduce(f64::max)?);
    let [least, most] = [least, most].map(percent);
    Some(if least == most { most } else { format!("{} to {most}", least.trim_end_matches(" %")) })
}

/// Describes how many loads show a result: `shown`, `shown in 3 of 4 loads`.
fn shown(loads: usize, of: usize) -> String {
    if of == 1 { "shown".to_owned() } else { format!("shown in {loads} of {of} loads") }
}

fn quoted(name: &str) -> String {
    format!("`{}`", plain(name))
}
