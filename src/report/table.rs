//! The table of results after a sweep: one line per run, with the median and the highest percentile of TTFT
//! that the number of requests supports.
//!
//! A run with an open loop gets a second line if its latency from the schedule differs from the latency from
//! the send. The second line shows how long a user would have waited.

use comfy_table::Cell;

use crate::analysis::{FinishReasons, RunMetrics, Summary, Verdict, quantile};
use crate::plan::Percentile;
use crate::rows::RunLabels;

use super::format::{cut, digits, estimate, fill, plain, said};
use super::grid::right;
use super::rows::{self, Head, Row};

/// One line of the table: a whole run, or one class of its mix.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// The labels of the run.
    pub labels: &'a RunLabels,
    /// The class of a mix that the line covers; `None` for the whole run.
    pub class: Option<&'a str>,
    /// The metrics of the run or the class.
    pub metrics: &'a RunMetrics,
    /// The verdict of the run.
    pub verdict: &'a Verdict,
}

/// Which optional columns the table needs.
pub(super) struct OptionalColumns {
    models: bool,
    repeats: bool,
    /// Whether to show errors, which is the case if any request failed.
    errors: bool,
    /// Whether to show TPOT; if some of the runs have no TPOT, E2E is shown instead.
    pub tpot: bool,
}

impl OptionalColumns {
    pub(super) fn of(lines: &[Line]) -> OptionalColumns {
        let differ = |other: fn(&RunLabels, &RunLabels) -> bool| {
            lines.first().is_some_and(|first| lines.iter().any(|line| other(line.labels, first.labels)))
        };
        OptionalColumns {
            models: differ(|a, b| a.model != b.model),
            repeats: differ(|a, b| a.repeat != b.repeat),
            errors: lines.iter().any(|line| line.metrics.counts.failed > 0),
            tpot: lines.iter().filter(|line| line.class.is_none()).all(has_tpot),
        }
    }

    /// Returns the headings of the columns that contain names.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let names = [Some("endpoint"), Some("model").filter(|_| self.models), Some("scenario")];
        names.into_iter().flatten().collect()
    }

    /// Returns the names of a line, in the order of their columns.
    pub(super) fn named(&self, Line { labels, class, metrics, .. }: &Line) -> Vec<String> {
        let scenario = match (class, metrics.start) {
            (Some(class), _) => format!("└ {}", plain(class)),
            (None, Some(_)) => with_axes("start".to_owned(), labels),
            (None, None) => with_axes(plain(&labels.scenario), labels),
        };
        let model = Some(plain(&labels.model)).filter(|_| self.models);
        [Some(plain(&labels.endpoint)), model, Some(scenario)].into_iter().flatten().collect()
    }

    /// Returns the heading of the column that shows TPOT or E2E.
    pub(super) fn pace(&self) -> &'static str {
        if self.tpot { "TPOT p50\nms" } else { "E2E p50\nms" }
    }
}

/// Whether TPOT can be shown for the run. True if no requests completed, so that such a run does not affect
/// the choice of column.
fn has_tpot(line: &Line) -> bool {
    line.metrics.tpot.n > 0 || line.metrics.counts.completed == 0
}

/// Renders the table of results, at most 100 columns wide. `colour` paints verdicts with ANSI sequences.
pub fn results(lines: &[Line], colour: bool) -> String {
    let shape = OptionalColumns::of(lines);
    let least = lines.iter().map(|line| least_width(line.verdict)).max().unwrap_or(0);
    let head = Head {
        names: shape.names(),
        cells: header(&shape),
        last: Some(least),
        paint: if colour { coloured } else { str::to_owned },
    };
    let rows: Vec<Row> =
        lines.iter().map(|line| Row { names: shape.named(line), cells: cells(line, &shape) }).collect();
    let mut text = rows::table(&head, &rows);
    if lines.iter().any(|line| from_schedule(line).is_some()) {
        text.push_str("\nfrom schedule: counted from the time a request was due, as a user would experience it\n");
    }
    if lines.iter().any(few_samples) {
        text.push_str(FEW_SAMPLES);
    }
    text.push_str(&said_of_errors(lines));
    text.push_str(&unusual_ends(lines));
    text
}

/// Lists the finish reasons of the runs in which responses ended for a reason other than `stop` or `length`; empty if
/// there are none.
fn unusual_ends(lines: &[Line]) -> String {
    let unusual = lines.iter().map(|line| &line.metrics.finish_reasons).filter(|reasons| reasons.are_unusual());
    let kinds: indexmap::IndexSet<String> = unusual.map(FinishReasons::kinds).collect();
    if kinds.is_empty() {
        return String::new();
    }
    let more = if kinds.len() > MOST_SAID { "; …" } else { "" };
    let listed: Vec<&str> = kinds.iter().take(MOST_SAID).map(String::as_str).collect();
    fill("\n", 2, &format!("finish reasons: {}{more}", plain(&listed.join("; "))))
}

/// Formats the number of failed requests and, below it, their most frequent outcome.
fn errors(metrics: &RunMetrics) -> String {
    match metrics.failures.0.as_slice() {
        [] => "0".to_owned(),
        [failure] => format!("{}\n{}", failure.count, failure.outcome),
        [first, ..] => format!("{}\n{}, …", metrics.counts.failed, first.outcome),
    }
}

/// Maximum number of error messages quoted below the table.
const MOST_SAID: usize = 5;
/// Maximum number of characters of a quoted error message.
const LONGEST_SAID: usize = 200;

/// Lists the error messages, each combination of outcome and message once: `http_500: out of memory`, or
/// `http_500, first: out of memory` if a run has several failures with this outcome.
fn said_of_errors(lines: &[Line]) -> String {
    let mut all = indexmap::IndexMap::new();
    for failure in lines.iter().flat_map(|line| &line.metrics.failures.0) {
        let message = failure.message.as_deref().map(|text| cut(text, LONGEST_SAID));
        *all.entry((failure.outcome, message)).or_insert(false) |= failure.count > 1;
    }
    let mut text = String::new();
    for ((outcome, message), several) in all.iter().take(MOST_SAID) {
        text.push_str(&fill("", 2, &format!("{outcome}{}", said(message.as_deref(), *several))));
    }
    match all.len() {
        0 => text,
        count if count > MOST_SAID => {
            format!("\nerrors\n{text}and {} more; `show RUN` has those of one run\n", count - MOST_SAID)
        }
        _ => format!("\nerrors\n{text}"),
    }
}

/// The legend of the mark `*`.
pub(super) const FEW_SAMPLES: &str = "\n* from few samples: the true value may lie well away from it\n";

fn header(shape: &OptionalColumns) -> Vec<Cell> {
    let cells = [
        Some(Cell::new("load")),
        Some(right("rep")).filter(|_| shape.repeats),
        Some(right("requests")),
        Some(right("errors")).filter(|_| shape.errors),
        Some(right("TTFT p50\nms")),
        Some(right("TTFT tail\nms")),
        Some(right(shape.pace())),
        Some(right("output\ntok/s")),
        Some(Cell::new("verdict")),
    ];
    cells.into_iter().flatten().collect()
}

fn cells(line: &Line, shape: &OptionalColumns) -> Vec<Cell> {
    let Line { labels, class, metrics, verdict } = line;
    let second = from_schedule(line);
    let stacked = |first: String, below: Option<String>| match below {
        // Each value is kept on one line, because the reason for a missing value would otherwise be on the
        // line of the other value.
        Some(below) => format!("{}\n{}", first.replace('\n', " "), below.replace('\n', " ")),
        None => first,
    };
    let pace = if shape.tpot { &metrics.tpot } else { &metrics.e2e };
    let cells = [
        Some(Cell::new(match metrics.start.map(|times| times.map(|ms| ms / 1e3)) {
            // A run that measures a server start has no load.
            Some([ready, first]) => format!("ready {ready:.2} s\nfirst response {first:.2} s"),
            None => stacked(load(labels), second.map(|_| "from schedule".into())),
        })),
        Some(right(labels.repeat.to_string())).filter(|_| shape.repeats),
        Some(right(metrics.counts.requests.to_string())),
        Some(right(errors(metrics))).filter(|_| shape.errors),
        Some(right(stacked(median(&metrics.ttft), second.map(median)))),
        Some(right(stacked(tail(&metrics.ttft), second.map(tail)))),
        Some(right(median(pace))),
        Some(right(metrics.flow.output_throughput.map_or("n/a".into(), digits))),
        // Only the run as a whole has a verdict.
        Some(Cell::new(if class.is_some() { String::new() } else { verdict.to_string() })),
    ];
    cells.into_iter().flatten().collect()
}

/// Returns the minimum width of the column for verdicts: at this width, no word is broken, and a verdict with
/// many reasons takes about three lines. If the names of runs leave less space, the names are placed above
/// the rows.
fn least_width(verdict: &Verdict) -> usize {
    /// Width that the other columns leave if the names are placed above the rows.
    const MOST: usize = 30;
    let text = verdict.to_string();
    let longest = text.split(' ').map(str::len).max().unwrap_or(0);
    longest.max(text.len().div_ceil(3).min(MOST))
}

/// Appends the cell's values on further axes to a name.
fn with_axes(what: String, labels: &RunLabels) -> String {
    let axes = labels.axes.iter().map(|(axis, value)| format!("\n{}={}", plain(axis), plain(value)));
    std::iter::once(what).chain(axes).collect()
}

/// Formats the load of a run: `batch 8`, `5 qps`, `5 qps ≤ 8`.
pub(super) fn load(labels: &RunLabels) -> String {
    match (labels.qps, labels.batch_size) {
        (Some(qps), Some(cap)) => format!("{qps} qps ≤ {cap}"),
        (Some(qps), None) => format!("{qps} qps"),
        (None, Some(batch)) => format!("batch {batch}"),
        (None, None) => "n/a".into(),
    }
}

fn median(summary: &Summary) -> String {
    with_n(estimate(summary.percentile(Percentile::P50)))
}

/// Adds `n=0` to a bare `n/a`, which means that the estimate has no values at all.
fn with_n(text: String) -> String {
    if text == "n/a" { "n/a\n(n=0)".to_owned() } else { text }
}

/// Formats the highest percentile above the median that the number of requests supports: `p95 123`.
fn tail(summary: &Summary) -> String {
    let highest = summary.highest().filter(|percentile| *percentile != Percentile::P50);
    let percentile = highest.unwrap_or(Percentile::P75);
    let text = with_n(estimate(summary.percentile(percentile)));
    if highest.is_some() { format!("{} {text}", quantile::name(percentile)) } else { text }
}

/// Returns the TTFT from the schedule if the loop is open and the median or the highest percentile is more
/// than 5 % and more than 1 ms longer than the same percentile of the TTFT from the send.
pub(super) fn from_schedule<'a>(line: &Line<'a>) -> Option<&'a Summary> {
    let metrics = line.metrics;
    let differs = |percentile: Percentile| {
        let of = |summary: &Summary| Some(summary.percentile(percentile).value()?.or_infinity());
        let (sent, due) = (of(&metrics.ttft)?, of(&metrics.ttft_from_schedule)?);
        Some(due > sent * 1.05 && due > sent + 1.0)
    };
    let checked = [Some(Percentile::P50), metrics.ttft.highest()].into_iter().flatten();
    let shown = line.labels.qps.is_some() && checked.filter_map(differs).any(|differs| differs);
    shown.then_some(&metrics.ttft_from_schedule)
}

/// Returns whether a figure in the line has the mark for few samples.
pub(super) fn few_samples(line: &Line) -> bool {
    let metrics = line.metrics;
    let highest = metrics.ttft.highest();
    highest.is_some_and(|percentile| metrics.ttft.percentile(percentile).few_samples())
}

/// Colours the state at the beginning of a verdict with ANSI sequences.
pub(super) fn coloured(verdict: &str) -> String {
    for (state, code) in [("valid", 32), ("suspect", 33), ("invalid", 31)] {
        if let Some(rest) = verdict.strip_prefix(state) {
            return format!("\u{1b}[{code}m{state}\u{1b}[0m{rest}");
        }
    }
    verdict.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::synthetic::{Run, fail, measured, verdict};
    use crate::plan::Validity;
    use crate::rows::{Facts, Outcome, Record};

    type Made = (RunLabels, RunMetrics, Verdict);

    fn made(run: &Run, scenario: &str, (records, facts): (Vec<Record>, Facts)) -> Made {
        let labels = RunLabels {
            endpoint: "mock".into(),
            model: "m".into(),
            scenario: scenario.into(),
            batch_size: run.batch_size,
            qps: run.qps,
            ..RunLabels::default()
        };
        let verdict = verdict(&records, &facts, &Validity::default(), None);
        (labels, measured(&records, &facts), verdict)
    }

    fn line((labels, metrics, verdict): &Made) -> Line<'_> {
        Line { labels, class: None, metrics, verdict }
    }

    fn table(made: &[Made], colour: bool) -> String {
        results(&made.iter().map(line).collect::<Vec<_>>(), colour)
    }

    fn some() -> Vec<Made> {
        let closed = Run { seconds: 12.0, ..Run::default() };
        let open = Run::open(20.0);
        let flooded = Run { batch_size: Some(8), ..Run::open(200.0) };
        let short = Run { seconds: 0.2, batch_size: Some(1), ..Run::default() };
        let mut failing = closed.make();
        failing.0.iter_mut().step_by(9).for_each(|record| fail(record, Outcome::Http(500), 3_000_000));
        let mut queued = flooded.make();
        queued.0.iter_mut().for_each(|record| {
            let row = &mut record.row;
            let due = row.first_token_ns.map(|first| first - 20_000_000);
            (row.released_ns, row.sent_ns) = (due, due);
        });
        vec![
            made(&closed, "A1", closed.make()),
            made(&open, "B1", open.make()),
            made(&flooded, "B1", queued),
            made(&short, "C", short.make()),
            made(&closed, "D", failing),
        ]
    }

    #[test]
    fn a_table_for_people() {
        insta::assert_snapshot!(table(&some(), false), @r#"
        endpoint scenario load          requests   errors  TTFT p50  TTFT tail  TPOT p50 output verdict
                                                                 ms         ms        ms  tok/s
        mock     A1       batch 8           1200        0      20.1   p99 21.0      4.00   1599 valid
        mock     B1       20 qps             217        0      20.1   p95 20.9      4.00    349 valid
        mock     B1       200 qps ≤ 8       1988        0      20.0  p99 20.0*      4.00   1600 valid,
                          from schedule                        7520 p99 12495*                  saturated
        mock     C        batch 1              3        0       n/a        n/a       n/a    200 valid
                                                          (n=3 < 6) (n=3 < 13) (n=3 < 6)
        mock     D        batch 8           1200      134      20.2 p99 > 21.0      4.01   1421 invalid:
                                                 http_500                                       errors

        from schedule: counted from the time a request was due, as a user would experience it

        * from few samples: the true value may lie well away from it

        errors
        http_500: (no message)
        "#);
    }

    #[test]
    fn every_optional_column_fits() {
        let mut made = some();
        made[1].0.model = "llama-3.1-70b-instruct".into();
        made[1].0.repeat = 1;
        made[1].0.axes = [("output_tokens".to_string(), "128".to_string())].into();
        made[2].0.endpoint = "vllm-on-node-a".into();
        let text = table(&made, false);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        insta::assert_snapshot!(text, @r#"
          load          rep requests   errors  TTFT p50  TTFT tail  TPOT p50 output verdict
                                                     ms         ms        ms  tok/s
        mock · m · A1
          batch 8         0     1200        0      20.1   p99 21.0      4.00   1599 valid
        mock · llama-3.1-70b-instruct · B1 · output_tokens=128
          20 qps          1      217        0      20.1   p95 20.9      4.00    349 valid
        vllm-on-node-a · m · B1
          200 qps ≤ 8     0     1988        0      20.0  p99 20.0*      4.00   1600 valid, saturated
          from schedule                            7520 p99 12495*
        mock · m · C
          batch 1         0        3        0       n/a        n/a       n/a    200 valid
                                              (n=3 < 6) (n=3 < 13) (n=3 < 6)
        mock · m · D
          batch 8         0     1200      134      20.2 p99 > 21.0      4.01   1421 invalid: errors
                                     http_500

        from schedule: counted from the time a request was due, as a user would experience it

        * from few samples: the true value may lie well away from it

        errors
        http_500: (no message)
        "#);
    }

    #[test]
    fn names_of_any_length_fit() {
        let mut all = some();
        let reason = all[4].2.reasons[0].clone();
        let long = |with: &str, at: usize| format!("{at}{}", with.repeat(79 / super::super::format::width(with)));
        for (at, of) in ["x", "模", "モデル", "é", "🚀"].into_iter().enumerate() {
            let labels = &mut all[at].0;
            (labels.endpoint, labels.model, labels.scenario) = (long(of, at), long(of, at + 10), long(of, at + 20));
            labels.axes = (0..6).map(|axis| (format!("{of}{axis}"), long(of, axis))).collect();
            labels.repeat = 1_000_000;
            all[at].2.reasons.extend(std::iter::repeat_n(reason.clone(), 3));
        }
        for only in 0..=all.len() {
            let shown: Vec<Made> = if only < all.len() { vec![all[only].clone()] } else { all.clone() };
            let cells: Vec<Vec<Line>> = shown.iter().map(|made| vec![line(made); 3]).collect();
            for text in [table(&shown, false), super::super::repeats(&cells).expect("three runs of each")] {
                assert!(text.lines().all(|line| super::super::format::width(line) <= 100), "{text}");
                for (labels, ..) in &shown {
                    let whole = |name: &String| text.contains(name.as_str());
                    assert!(whole(&labels.endpoint) && whole(&labels.scenario), "no name is truncated: {text}");
                    assert!(labels.axes.values().all(whole), "{text}");
                }
            }
        }
        insta::assert_snapshot!(table(&all[1..3], true));
    }

    #[test]
    fn a_missing_value_keeps_to_its_line() {
        let mut few = some().remove(1);
        let ten = |from: f64| Summary::of((0..10).map(|at| from + f64::from(at) / 100.0).collect(), 0, None);
        (few.1.ttft, few.1.ttft_from_schedule) = (ten(20.0), ten(40.0));
        let text = table(&[few], false);
        let lines: Vec<&str> = text.lines().skip(2).take(2).collect();
        assert!(lines[0].contains("n/a (n=10 < 13)") && lines[0].contains("20 qps"), "{text}");
        assert!(lines[1].contains("n/a (n=10 < 13)") && lines[1].contains("from schedule"), "{text}");
    }

    #[test]
    fn colour_is_only_paint() {
        let made = some();
        let (plain, colour) = (table(&made, false), table(&made, true));
        assert!(colour.contains("\u{1b}[32mvalid\u{1b}[0m") && colour.contains("\u{1b}[31minvalid\u{1b}[0m"));
        let stripped =
            [32, 33, 31, 0].into_iter().fold(colour, |text, code| text.replace(&format!("\u{1b}[{code}m"), ""));
        assert_eq!(stripped, plain);
    }

    #[test]
    fn no_runs_are_a_header() {
        assert!(table(&[], false).starts_with("endpoint"));
    }
}
