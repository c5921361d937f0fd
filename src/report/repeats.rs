//! Summarizes the repeats of each cell: the mean of each figure over the runs, with its interval over the
//! runs.
//!
//! An interval within a run covers only the variation between requests. The requests of one run are
//! correlated near saturation, so a claim about a configuration needs several runs (see "Percentiles" in
//! docs/METRICS.md).

use comfy_table::Cell;

use crate::analysis::metric;
use crate::analysis::replicates::{OverRuns, Scale, over_runs};
use crate::analysis::verdict::State;
use crate::analysis::{Estimate, Summary, quantile};
use crate::plan::Percentile;
use crate::units::text::counted;

use super::format::{digits, fill};
use super::grid::right;
use super::rows::{self, Head, Row};
use super::table::{FEW_SAMPLES, Line, OptionalColumns, from_schedule, load};

/// Minimum number of repeats for a summary of a cell.
pub(crate) const FEWEST: usize = 3;

/// Renders a table with a row for each cell of at least three runs, at most 100 columns wide; `None`
/// without such a cell. `cells` contains the runs of each cell, without classes.
pub fn repeats(cells: &[Vec<Line>]) -> Option<String> {
    let cells: Vec<Cells> = cells.iter().filter(|runs| runs.len() >= FEWEST).map(|runs| Cells::of(runs)).collect();
    let all: Vec<Line> = cells.iter().flat_map(|cell| cell.all).copied().collect();
    let shape = OptionalColumns::of(&all);
    let first = cells.first()?;
    let head = Head { names: shape.names(), cells: header(&shape), last: None, paint: str::to_owned };
    let rows: Vec<Row> = cells.iter().map(|cell| cell.row(&shape)).collect();
    let summarized = cells.iter().flat_map(|cell| &cell.counted);
    let left_out = all.len() - summarized.clone().count();
    let suspect = summarized.filter(|line| line.verdict.state == State::Suspect).count();
    let mut text = fill("", 0, &title(cells.len(), first.all.len()));
    text.push_str(&rows::table(&head, &rows));
    let said = said(left_out, suspect);
    if !said.is_empty() {
        text.push_str(&fill("\n", 0, &said).replacen("\n ", "\n", 1));
    }
    let is_marked = |row: &Row| row.cells.iter().any(|cell| cell.content().contains('*'));
    if rows.iter().any(is_marked) {
        text.push_str(FEW_SAMPLES);
    }
    Some(text)
}

fn title(cells: usize, runs: usize) -> String {
    let of = if cells == 1 { format!("the {runs} repeats") } else { "the repeats of each cell".to_owned() };
    format!(
        "over runs: geometric mean of {of}, and below it its 95 % interval; `show RUN` has the intervals within a run"
    )
}

fn said(left_out: usize, suspect: usize) -> String {
    // The sentence names the summary, because cells with fewer repeats are not in it.
    let parts = [("excludes", left_out, "invalid run"), ("includes", suspect, "suspect run")].into_iter();
    let parts: Vec<String> = parts
        .filter(|(_, count, _)| *count > 0)
        .map(|(verb, count, what)| format!("{verb} {}", counted(count, what)))
        .collect();
    if parts.is_empty() { String::new() } else { format!("the summary {}", parts.join(" and ")) }
}

fn header(shape: &OptionalColumns) -> Vec<Cell> {
    let cells = ["runs", "TTFT p50\nms", "TTFT tail\nms", shape.pace(), "output\ntok/s"];
    std::iter::once(Cell::new("load")).chain(cells.map(right)).collect()
}

/// The runs of a cell, for its summary.
struct Cells<'a> {
    all: &'a [Line<'a>],
    /// The runs of the cell, except invalid ones.
    counted: Vec<&'a Line<'a>>,
    /// The highest percentile above the median that all counted runs have enough requests for, if there is
    /// one.
    tail: Option<Percentile>,
}

impl<'a> Cells<'a> {
    fn of(all: &'a [Line<'a>]) -> Cells<'a> {
        let counted: Vec<&Line> = all.iter().filter(|line| line.verdict.state != State::Invalid).collect();
        let highest = counted.iter().map(|line| line.metrics.ttft.highest()).min().flatten();
        Cells { all, counted, tail: highest.filter(|percentile| *percentile != Percentile::P50) }
    }

    fn row(&self, shape: &OptionalColumns) -> Row {
        let first = &self.all[0];
        let due = self.counted.iter().any(|line| from_schedule(line).is_some());
        let ttft = |at: Percentile| self.percentile("ttft", at, |line| &line.metrics.ttft);
        let from_due =
            |at: Percentile| self.percentile("ttft_from_schedule", at, |line| &line.metrics.ttft_from_schedule);
        let both = |at: Percentile| if due { format!("{}\n{}", ttft(at), from_due(at)) } else { ttft(at) };
        let pace = match shape.tpot {
            true => self.percentile("tpot", Percentile::P50, |line| &line.metrics.tpot),
            false => self.percentile("e2e", Percentile::P50, |line| &line.metrics.e2e),
        };
        let flows: Option<Vec<f64>> = self.counted.iter().map(|line| line.metrics.flow.output_throughput).collect();
        let flow = flows.map_or_else(|| "n/a".to_owned(), |values| self.mean("output_throughput", &values));
        let load = load(first.labels);
        let load = if due { format!("{load}\n\nfrom schedule") } else { load };
        let counted = match (self.counted.len(), self.all.len()) {
            (counted, all) if counted == all => all.to_string(),
            (counted, all) => format!("{counted} of {all}"),
        };
        let cells = [counted, both(Percentile::P50), self.tail(both), pace, flow].map(right);
        Row { names: shape.named(first), cells: std::iter::once(Cell::new(load)).chain(cells).collect() }
    }

    /// Formats the highest percentile of a figure, prefixed by the percentile's name.
    fn tail(&self, of: impl Fn(Percentile) -> String) -> String {
        let Some(percentile) = self.tail else { return of(Percentile::P75) };
        let named = |(at, line): (usize, &str)| match at % 2 {
            0 if !line.starts_with("n/a") => format!("{} {line}", quantile::name(percentile)),
            _ => line.to_owned(),
        };
        of(percentile).lines().enumerate().map(named).collect::<Vec<_>>().join("\n")
    }

    /// Formats a percentile over the runs in two lines: the mean, with the mark for few samples, and its
    /// interval. If a run lacks the percentile, the lines give the reason instead.
    fn percentile(&self, key: &str, at: Percentile, of: impl Fn(&'a Line<'a>) -> &'a Summary) -> String {
        let estimates: Vec<Estimate> = self.counted.iter().map(|line| of(line).percentile(at)).collect();
        let lacking = estimates.iter().filter_map(|estimate| match estimate {
            Estimate::NotEnough { n, need, of } => Some((*n, *need, *of)),
            Estimate::Is { .. } => None,
        });
        if let Some((n, need, of)) = lacking.min() {
            return format!("n/a\n({})", of.short_of(n, need));
        }
        let values: Option<Vec<f64>> = estimates.iter().map(Estimate::exact).collect();
        let Some(values) = values else { return "n/a\n(failures)".to_owned() };
        let text = self.mean(key, &values);
        let is_marked = estimates.iter().any(Estimate::few_samples) && !text.starts_with("n/a");
        if is_marked { text.replacen('\n', "*\n", 1) } else { text }
    }

    /// Formats the mean of a metric over the runs, with its interval on a second line.
    fn mean(&self, key: &str, values: &[f64]) -> String {
        if values.len() < 2 {
            return format!("n/a\n(runs={} < 2)", values.len());
        }
        let over =
            metric::find(key).map_or_else(|| over_runs(values, Scale::Log), |metric| OverRuns::of(metric, values));
        match over.mean.zip(over.ends) {
            // If all runs but two are invalid, both values are shown, because the interval of two values is
            // meaningless.
            Some((mean, _)) if values.len() == 2 => {
                let (low, high) = (values[0].min(values[1]), values[0].max(values[1]));
                format!("{}\n{} and {}", digits(mean), digits(low), digits(high))
            }
            Some((mean, ends)) => format!("{}\n{}–{}", digits(mean), digits(ends.low), digits(ends.high)),
            None => "n/a\n(0 in a run)".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::synthetic::{Run, fail, measured, verdict};
    use crate::analysis::{RunMetrics, Verdict};
    use crate::plan::Validity;
    use crate::rows::{Outcome, RunLabels};

    type Made = (RunLabels, RunMetrics, Verdict);

    /// Returns a run of a cell with `failing` failed requests. The first and last tokens of all responses are
    /// delayed by `later_ms` milliseconds.
    fn made(run: &Run, repeat: u32, later_ms: f64, failing: usize) -> Made {
        let (mut records, facts) = run.make();
        for record in &mut records {
            let later = (later_ms * 1e6) as u64;
            for instant in [&mut record.row.first_token_ns, &mut record.row.last_token_ns] {
                *instant = instant.map(|at| at + later);
            }
        }
        records.iter_mut().take(failing).for_each(|record| fail(record, Outcome::Http(500), 3_000_000));
        let labels = RunLabels {
            endpoint: "mock".into(),
            scenario: if run.qps.is_some() { "open".into() } else { "closed".into() },
            batch_size: run.batch_size,
            qps: run.qps,
            repeat,
            ..RunLabels::default()
        };
        let verdict = verdict(&records, &facts, &Validity::default(), None);
        (labels, measured(&records, &facts), verdict)
    }

    fn lines(made: &[Made]) -> Vec<Line<'_>> {
        let line = |(labels, metrics, verdict)| Line { labels, class: None, metrics, verdict };
        made.iter().map(|(a, b, c)| line((a, b, c))).collect()
    }

    const LATER: [f64; 5] = [0.0, 1.0, 2.0, 0.5, 1.5];

    fn cell(run: &Run, failing: [usize; 5]) -> Vec<Made> {
        (0..5).map(|at| made(run, at as u32, LATER[at], failing[at])).collect()
    }

    #[test]
    fn repeats_are_summed_up_over_runs() {
        let (closed, short) = (Run::default(), Run { seconds: 0.1, ..Run::default() });
        let all = [
            cell(&closed, [0; 5]),
            cell(&Run::open(20.0), [0; 5]),
            // One run is invalid, and the highest percentile of another lies among failed requests.
            cell(&closed, [400, 0, 10, 0, 0]),
            cell(&closed, [400, 400, 400, 400, 0]),
            cell(&short, [0; 5]),
            cell(&closed, [0; 5])[..2].to_vec(),
        ];
        let cells: Vec<Vec<Line>> = all.iter().map(|made| lines(made)).collect();
        let text = repeats(&cells).expect("five cells");
        insta::assert_snapshot!(text);
        // Computed by hand: the geometric mean of the five medians, and t(0.975, 4) = 2.776445 on their
        // logarithms.
        let medians: Vec<f64> =
            all[0].iter().map(|made| made.1.ttft.percentile(Percentile::P50).exact().unwrap().ln()).collect();
        let mean = medians.iter().sum::<f64>() / 5.0;
        let sd = (medians.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 4.0).sqrt();
        let half = 2.776_445 * sd / 5f64.sqrt();
        let [mean, low, high] = [mean, mean - half, mean + half].map(|value| digits(value.exp()));
        assert!(text.contains(&mean) && text.contains(&format!("{low}–{high}")), "{mean} {low} {high}\n{text}");
    }

    #[test]
    fn fewer_than_three_repeats_are_not_summed_up() {
        let made = cell(&Run::default(), [0; 5]);
        let all = lines(&made);
        assert_eq!(repeats(&[all[..2].to_vec(), all[2..4].to_vec()]), None);
        assert!(
            repeats(&[all[..3].to_vec()])
                .is_some_and(|text| text.starts_with("over runs: geometric mean of the 3 repeats, "))
        );
    }
}
