//! Decides after how many repeats a cell ends. Repeats may end early because the means of a cell are known
//! precisely enough, or because a comparison is decided. The decision depends only on finished runs, taken
//! in the order of their repeats; no clock and no random numbers are used. A resumed sweep therefore
//! reaches the same decision, and a run that was in progress when the decision was made does not change it.

use crate::analysis::comparison::{self, RunValue, Sides, Test, undecided};
use crate::analysis::sequential::{Precision, Until, known};
use crate::expand::{CellEnd, CellRuns, Ends, PlannedRun, Series};
use crate::plan::MetricName;
use crate::units::text::counted;

/// The smallest number of repeats after which a decision is possible.
pub const FEWEST: u32 = 3;

/// Access to the results of finished runs.
pub trait Evidence {
    /// Whether the run is finished: it has a result or was given up.
    fn is_finished(&self, run: &PlannedRun) -> bool;
    /// Returns the value of a metric in a finished run; `None` if the run has no usable result because it
    /// was given up or is invalid.
    fn value(&self, run: &PlannedRun, name: MetricName) -> Option<RunValue>;
}

/// The state of a cell whose repeats may end early.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CellStanding {
    /// Number of finished repeats before the first repeat that is not finished.
    pub finished: u32,
    /// For means: half of the width of the widest confidence interval, as a share of the mean. `None`
    /// before three runs are finished, and for a comparison.
    pub half: Option<f64>,
    /// Expected total number of repeats, assuming that further repeats vary as much as the finished ones;
    /// `None` if it cannot be estimated.
    pub expect: Option<u32>,
    /// After how many repeats the cell ended, and why; `None` while the cell continues, or if all repeats
    /// were executed without a decision.
    pub end: Option<CellEnd>,
}

/// Returns the state of each cell of a series. `tests` is the total number of tests of the comparison to
/// which the series belongs: see [`tests`].
pub fn stand(series: &Series, tests: u32, evidence: &dyn Evidence) -> Vec<CellStanding> {
    match &series.ends {
        Ends::Known { within, metrics } => {
            series.cells.iter().map(|cell| means(cell, (*within, metrics), evidence)).collect()
        }
        Ends::Shown { margin, .. } => {
            let Some((baseline, arms)) = series.cells.split_first() else { return Vec::new() };
            let names = names(series);
            let asked = Asked { names: &names, tests, margin: *margin };
            let of_arms: Vec<_> = arms.iter().map(|arm| rounds(baseline, arm, &asked, evidence)).collect();
            let mut all = vec![of_baseline(&of_arms)];
            all.extend(of_arms);
            all
        }
    }
}

/// Returns the total number of tests of the comparison to which the series `one` belongs: the sum of
/// metrics × arms over all series with the same declaration; 0 if the series is not part of a comparison.
pub fn tests(all: &[Series], one: &Series) -> u32 {
    let Ends::Shown { declared_by, .. } = &one.ends else { return 0 };
    let is_theirs =
        |other: &&Series| matches!(&other.ends, Ends::Shown { declared_by: other, .. } if other == declared_by);
    let of = |series: &Series| names(series).len() * series.cells.len().saturating_sub(1);
    all.iter().filter(is_theirs).map(of).sum::<usize>() as u32
}

/// Returns the metrics that a comparison tests in a series.
fn names(series: &Series) -> Vec<MetricName> {
    let Ends::Shown { metrics, .. } = &series.ends else { return Vec::new() };
    let first = series.cells.first().and_then(|cell| cell.runs.first());
    comparison::expand(metrics, first.is_some_and(|run| run.spec.load.qps().is_some()))
}

/// The values of one metric in the finished runs of a cell.
#[derive(Default)]
struct Values {
    known: Vec<f64>,
    /// Whether a finished run has no value for the metric.
    is_missing: bool,
    /// Whether a percentile of a run fell among its failed requests. The percentile is then not a number,
    /// and ignoring it would hide the failures.
    is_failed: bool,
}

impl Values {
    fn take(&mut self, value: &RunValue) {
        self.known.extend(value.number());
        self.is_missing |= matches!(value, RunValue::Missing(_));
        self.is_failed |= matches!(value, RunValue::Failed);
    }

    /// Whether the mean of this metric must be known. This is not required if no run has the metric.
    fn is_asked(&self) -> bool {
        !self.known.is_empty() || self.is_failed
    }
}

/// Returns the state of a cell that ends when the means of `metrics` are known to within `within`.
fn means(cell: &CellRuns, (within, metrics): (f64, &[MetricName]), evidence: &dyn Evidence) -> CellStanding {
    let at_most = cell.runs.len() as u32;
    let until = Until { within, at_least: FEWEST, at_most };
    let mut values: Vec<Values> = metrics.iter().map(|_| Values::default()).collect();
    let mut standing = CellStanding::default();
    for run in cell.runs.iter().take_while(|run| evidence.is_finished(run)) {
        standing.finished += 1;
        for (values, name) in values.iter_mut().zip(metrics) {
            evidence.value(run, *name).iter().for_each(|value| values.take(value));
        }
        let asked: Vec<&Values> = values.iter().filter(|values| values.is_asked()).collect();
        let is_whole = !asked.is_empty() && asked.iter().all(|values| !values.is_missing && !values.is_failed);
        let looks: Vec<Precision> = asked.iter().map(|values| known(&until, &values.known)).collect();
        let half = |look: &Precision| match look {
            Precision::Reached { half, .. } => Some(*half),
            Precision::NotYet { half, .. } | Precision::AtMost { half } => *half,
        };
        standing.half = looks.iter().map(half).collect::<Option<Vec<f64>>>().filter(|_| is_whole).and_then(widest);
        // Runs without a value do not contribute to the means, so one more run is expected for each of
        // them.
        let lost = standing.finished - asked.iter().map(|values| values.known.len() as u32).min().unwrap_or(0);
        let expect = |look: &Precision| match look {
            Precision::Reached { .. } => Some(standing.finished),
            Precision::NotYet { expect, .. } => expect.map(|expect| (expect + lost).min(at_most)),
            Precision::AtMost { .. } => None,
        };
        let all: Option<Vec<u32>> = looks.iter().map(expect).collect();
        standing.expect = all.filter(|_| is_whole).and_then(|all| all.into_iter().max());
        if is_whole && looks.iter().all(|look| matches!(look, Precision::Reached { .. })) {
            let (after, share) = (standing.finished, comparison::percent(standing.half.unwrap_or(0.0)));
            let why = format!("known to within {share} after {after} of {}", counted(at_most as usize, "repeat"));
            standing.end = Some(CellEnd { after, why });
            break;
        }
    }
    standing
}

fn widest(halves: Vec<f64>) -> Option<f64> {
    halves.into_iter().reduce(f64::max)
}

/// The parameters of the decision about an arm: the metrics, the total number of tests, and the margin of
/// equivalence.
struct Asked<'a> {
    names: &'a [MetricName],
    tests: u32,
    margin: Option<f64>,
}

/// Returns the state of an arm, which ends when it is shown to differ from its baseline or to be equivalent
/// to it.
fn rounds(baseline: &CellRuns, arm: &CellRuns, asked: &Asked, evidence: &dyn Evidence) -> CellStanding {
    let at_most = baseline.runs.len().min(arm.runs.len()) as u32;
    let mut values: Vec<Vec<[Option<RunValue>; 2]>> = vec![Vec::new(); asked.names.len()];
    let mut standing = CellStanding::default();
    let both = baseline.runs.iter().zip(&arm.runs);
    for (from, to) in both.take_while(|(from, to)| evidence.is_finished(from) && evidence.is_finished(to)) {
        standing.finished += 1;
        for (values, name) in values.iter_mut().zip(asked.names) {
            values.push([from, to].map(|run| evidence.value(run, *name)));
        }
        let look = |(name, values): (&MetricName, &Vec<[Option<RunValue>; 2]>)| {
            let side = |side: usize| {
                let of = (0..).zip(values).filter_map(|(repeat, both)| Some((repeat, both[side].as_ref()?)));
                of.collect()
            };
            Test::in_sequence(*name, &Sides { baseline: side(0), arm: side(1) }, at_most)
        };
        // After the last round, no repeats are left that could be skipped, so no decision is needed.
        if standing.finished < FEWEST || standing.finished >= at_most {
            continue;
        }
        let tests: Vec<Test> = asked.names.iter().zip(&values).map(look).collect();
        if undecided(&tests, asked.tests, asked.margin).is_empty() {
            let after = standing.finished;
            let why = format!("decided after {after} of {}", counted(at_most as usize, "round"));
            standing.end = Some(CellEnd { after, why });
            break;
        }
    }
    standing
}

/// Returns the state of the baseline, which continues until the last arm has ended.
fn of_baseline(arms: &[CellStanding]) -> CellStanding {
    let ends: Option<Vec<&CellEnd>> = arms.iter().map(|arm| arm.end.as_ref()).collect();
    let end = ends.and_then(|ends| ends.into_iter().max_by_key(|end| end.after).cloned());
    let finished = arms.iter().map(|arm| arm.finished).max().unwrap_or(0);
    CellStanding { finished, end, ..CellStanding::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::expand;
    use crate::plan::{Format, parse};

    /// Returns the series of a plan whose only sweep contains this declaration.
    fn series(further: serde_json::Value) -> Vec<Series> {
        let mut sweep = serde_json::json!({ "matrix": { "endpoint": "e", "model": "m", "batch_size": [1, 2, 4] } });
        sweep.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
        let plan = serde_json::json!({
            "sweepline": 1, "name": "t", "endpoints": { "e": { "engine": "mock" } }, "models": { "m": { "id": "x" } },
            "sweeps": { "s": sweep },
        });
        let plan = parse("plan.yaml".as_ref(), &plan.to_string(), Format::Yaml).expect("a plan").plan;
        expand(&plan).expect("expands").series
    }

    /// Simulates results: the first `there` repeats of each cell are finished, and all metrics of a run
    /// have the value that `value` returns.
    struct Made<'a> {
        there: u32,
        value: &'a dyn Fn(&PlannedRun) -> RunValue,
    }

    impl Evidence for Made<'_> {
        fn is_finished(&self, run: &PlannedRun) -> bool {
            run.repeat < self.there
        }

        fn value(&self, run: &PlannedRun, _: MetricName) -> Option<RunValue> {
            Some((self.value)(run))
        }
    }

    fn wobble(run: &PlannedRun) -> f64 {
        [1.0, 1.003, 0.998, 1.001, 0.999, 1.002][run.repeat as usize % 6]
    }

    #[test]
    fn a_cell_ends_at_the_first_repeat_that_tells_enough_whatever_came_after() {
        let all = series(serde_json::json!({ "repeats": { "until": "2%", "at_most": 8 } }));
        assert_eq!(all.len(), 3, "each cell separately");
        let of =
            |there| stand(&all[0], 0, &Made { there, value: &|run| RunValue::Known(100.0 * wobble(run)) }).remove(0);
        assert_eq!((of(2).finished, of(2).end), (2, None));
        let end = of(8).end.expect("known");
        assert_eq!(end.after, 3, "{}", end.why);
        assert!(end.why.starts_with("known to within 1.") && end.why.ends_with("after 3 of 8 repeats"), "{}", end.why);
        assert_eq!(of(3).end, Some(end));
    }

    #[test]
    fn noise_goes_on_and_failures_are_no_numbers() {
        let all = series(serde_json::json!({ "repeats": { "until": "2%", "at_most": 8 } }));
        let noisy = |run: &PlannedRun| RunValue::Known([50.0, 150.0][run.repeat as usize % 2]);
        let standing = stand(&all[0], 0, &Made { there: 8, value: &noisy }).remove(0);
        assert_eq!((standing.finished, standing.end), (8, None));
        assert!(standing.half.is_some_and(|half| half > 0.02));
        let failing = |run: &PlannedRun| if run.repeat == 1 { RunValue::Failed } else { RunValue::Known(100.0) };
        assert_eq!(stand(&all[0], 0, &Made { there: 8, value: &failing })[0].end, None);
        let nothing = |_: &PlannedRun| RunValue::Missing("no such thing".to_owned());
        assert_eq!(stand(&all[0], 0, &Made { there: 8, value: &nothing })[0].end, None);
    }

    #[test]
    fn an_arm_ends_by_itself_and_the_baseline_with_the_last() {
        let compare =
            serde_json::json!({ "by": "batch_size", "baseline": 2, "metrics": ["e2e_p50"], "sequential": true });
        let all = series(serde_json::json!({ "repeats": 12, "compare": compare }));
        assert_eq!(all.len(), 1);
        let size = |cell: &CellRuns| cell.runs[0].spec.load.batch_size();
        let sizes: Vec<_> = all[0].cells.iter().filter_map(size).collect();
        assert_eq!(sizes, [2, 1, 4], "the baseline first");
        assert_eq!(tests(&all, &all[0]), 2);
        // Batch 1 is far from the baseline; batch 4 differs from it by chance.
        let value = |run: &PlannedRun| {
            let noise = [1.02, 0.97, 1.01, 0.99, 1.03, 0.98][run.repeat as usize % 6];
            RunValue::Known(match run.spec.load.batch_size() {
                Some(1) => 50.0 * wobble(run),
                Some(4) => 100.0 * noise,
                _ => 100.0,
            })
        };
        let of = |there| stand(&all[0], tests(&all, &all[0]), &Made { there, value: &value });
        let ends = |there| -> Vec<Option<u32>> { of(there).into_iter().map(|one| Some(one.end?.after)).collect() };
        let whole = ends(12);
        let after = whole[1].expect("a difference of half is shown");
        assert!((FEWEST..8).contains(&after), "{after}");
        for there in 0..=12 {
            assert_eq!(ends(there)[1], (there >= after).then_some(after), "{there} rounds");
        }
        // The arm with batch 4 continues to the last round, so the baseline does too.
        assert_eq!((whole[2], whole[0]), (None, None));
    }
}
