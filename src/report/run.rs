//! Renders one run in full: the verdict with its reasons, every distribution with its intervals, and every
//! other metric.

use comfy_table::Cell;

use crate::analysis::metric::{self, Get};
use crate::analysis::{
    Counted, Estimate, Failure, Failures, FinishReasons, Interval, PlanMetrics, Pulse, Summary, Value, Verdict,
    quantile,
};
use crate::metrics::{Kind, METRICS, Metric, Unit};
use crate::plan::Percentile;
use crate::rows::{Environment, Facts};

use super::format::{self, cut, digits, estimate, plain, said, value};
use super::generator;
use super::grid::{self, right};
use super::parts;
use super::server;
use super::spark;
use super::table::{Line, coloured, load};

/// Maximum number of characters of a failed request's message.
const LONGEST_SAID: usize = 300;

/// Maximum number of lines that are shown of a failed hook's output; `LONGEST_HOOK_LINE` is the maximum
/// number of characters per line. run.json contains the rest.
const MOST_HOOK_LINES: usize = 4;
const LONGEST_HOOK_LINE: usize = 90;

/// Options for the output of one run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Detail {
    /// Whether to append the definition of each metric.
    pub definitions: bool,
    /// Whether to color the verdict with ANSI sequences.
    pub colour: bool,
}

/// Renders one run, at most 100 columns wide; `pulse` is the load over time.
pub fn run(
    line: &Line,
    (facts, environment): (&Facts, &Environment),
    plan: &PlanMetrics,
    pulse: Option<&Pulse>,
    detail: Detail,
) -> String {
    let is_start = line.metrics.start.is_some();
    // A run that measures a server start has no load, so the sections about a load are empty.
    let of_load = |section: &dyn Fn() -> String| if is_start { String::new() } else { section() };
    let sections = [
        head(line),
        verdict(line.verdict, detail.colour),
        of_load(&|| prompts(facts)),
        policy(facts),
        hooks(facts),
        started(environment),
        of_load(&|| distributions(line)),
        of_load(&|| scalars(line, facts, plan)),
        of_load(&|| generator::block(facts)),
        server::block(&line.metrics.server, facts),
        parts::block(&line.metrics.wholes),
        way(environment),
        of_load(&|| pulse.map_or_else(String::new, spark::load)),
        if detail.definitions { definitions() } else { String::new() },
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

fn head(line: &Line) -> String {
    let labels = line.labels;
    let run = format!("run {} attempt {}\n", plain(&labels.run_id), labels.attempt);
    let axes: String = labels.axes.iter().map(|(axis, value)| format!(" · {}={}", plain(axis), plain(value))).collect();
    let names = [&labels.endpoint, &labels.model].map(|name| plain(name)).join(" · ");
    if line.metrics.start.is_some() {
        return format::fill("", 2, &format!("{names} · start{axes} · repeat {}", labels.repeat)) + &run;
    }
    let names = format!("{names} · {}", plain(&labels.scenario));
    let counts = line.metrics.counts;
    // The actual rate is shown after the declared rate, because random arrivals make it differ.
    let actual = line.metrics.saturation.filter(|_| labels.qps.is_some());
    let actual = actual.map(|saturation| format!(" (actual {})", digits(saturation.rate()))).unwrap_or_default();
    let title = format::fill("", 2, &format!("{names} · {}{actual}{axes} · repeat {}", load(labels), labels.repeat));
    format!(
        "{title}{run}{} requests in the window: {} completed, {} failed, {} of them cut at drain\n",
        counts.requests, counts.completed, counts.failed, counts.cut
    ) + &failures(&line.metrics.failures)
        + &finish_reasons(&line.metrics.finish_reasons)
}

/// Lists why the server ended the completed responses; empty if it stated no reasons.
fn finish_reasons(reasons: &FinishReasons) -> String {
    let kinds = reasons.kinds();
    if kinds.is_empty() { kinds } else { wrapped(&format!("finish reasons: {}", plain(&kinds))) }
}

/// Describes the start of the server that was launched for the run; returns an empty string if none was
/// launched.
fn started(environment: &Environment) -> String {
    let Some(start) = &environment.server_start else { return String::new() };
    let seconds = |ns: u64| format!("{} s", digits(ns as f64 / 1e9));
    let read = match start.storage_read_bytes {
        Some(bytes) => format!("{} MB read from storage by then", digits(bytes as f64 / 1e6)),
        None => "amount read from storage unknown".to_owned(),
    };
    let (ready, first) = (seconds(start.ready_ns), seconds(start.first_answer_ns));
    let inherited = match start.inherited_variables.as_slice() {
        [] => String::new(),
        names => format!("; inherited variables: {}", names.join(", ")),
    };
    let text = format!("ready after {ready}, first response after {first}; {read}; log: {}{inherited}", start.log);
    let text = plain(&text);
    format!("server start, {}\n{}", plain(&start.at), wrapped(&format!("  {text}")))
}

/// Describes the probe's measurements of the path to the server; returns an empty string if there are none,
/// as in runs of earlier versions of sweepline.
fn way(environment: &Environment) -> String {
    let Environment { connect_ns, tls_ns, round_trip_ns, .. } = *environment;
    let parts = [("connect", connect_ns), ("TLS", tls_ns), ("round trip", round_trip_ns)];
    let known = parts.into_iter().filter_map(|(name, ns)| Some(format!("{name} {:.2} ms", ns? as f64 / 1e6)));
    let known: Vec<String> = known.collect();
    if known.is_empty() {
        String::new()
    } else {
        format!("path to the server, measured by the probe\n  {}\n", known.join(", "))
    }
}

/// Lists the outcomes of failed requests, with the first message of each outcome.
fn failures(failures: &Failures) -> String {
    let line = |Failure { outcome, count, message }: &Failure| {
        let message = message.as_deref().map(|text| cut(text, LONGEST_SAID));
        wrapped(&format!("  {count} {outcome}{}", said(message.as_deref(), *count > 1)))
    };
    failures.0.iter().map(line).collect()
}

fn verdict(verdict: &Verdict, colour: bool) -> String {
    let state = verdict.state.name();
    let mut text = format!("verdict: {}\n", if colour { coloured(state) } else { state.to_string() });
    for reason in verdict.reasons.iter().chain(&verdict.labels) {
        text.push_str(&wrapped(&format!("  {} ({}): {}", reason.name, reason.state.name(), reason.text)));
    }
    for (name, why) in &verdict.not_checked {
        text.push_str(&wrapped(&format!("  not checked: {name}: {why}")));
    }
    text
}

/// States the minimum length that prompts could have, if some prompts could not be as short as requested.
fn prompts(facts: &Facts) -> String {
    let Some(shortest) = facts.shortest_prompt else { return String::new() };
    wrapped(&format!(
        "prompts: with the text around them, prompts have at least {shortest} tokens; shorter requested prompts have \
         {shortest}"
    ))
}

/// States that errors could not end the run, if the plan's error policy is `measured`.
fn policy(facts: &Facts) -> String {
    if !facts.errors_measured {
        return String::new();
    }
    wrapped("errors: measured; an outage of the server would not have ended this run")
}

/// Lists the results of the run's hooks, with the last lines of the output of each failed hook.
fn hooks(facts: &Facts) -> String {
    let mut text = String::new();
    for hook in &facts.hooks {
        let title = if text.is_empty() { "hooks:\n" } else { "" };
        text.push_str(title);
        text.push_str(&wrapped(&format!("  {}", plain(&hook.to_string()))));
        let lines: Vec<&str> = hook.output.lines().filter(|line| !line.trim().is_empty()).collect();
        let quoted = if hook.is_ok() { &[][..] } else { &lines[lines.len().saturating_sub(MOST_HOOK_LINES)..] };
        quoted.iter().for_each(|line| text.push_str(&format!("    {}\n", cut(line, LONGEST_HOOK_LINE))));
    }
    text
}

/// Renders the table of the metrics that are distributions and have values; distributions without values are
/// named below the table.
fn distributions(line: &Line) -> String {
    let (mut rows, mut absent, mut few, mut short) = (Vec::new(), Vec::new(), false, false);
    for metric in &METRICS {
        let Get::Summary(get) = metric::get(metric) else { continue };
        let summary = get(line.metrics);
        if summary.n == 0 {
            absent.push(format!("{} ({})", metric.title, metric.null_when));
            continue;
        }
        few |= summary.percentiles.iter().any(Estimate::few_samples);
        short |= summary.percentiles.iter().any(|one| one.value().is_some() && !has_ends(*one));
        rows.push((metric, summary));
    }
    let mut text = rendered(&rows);
    text.push_str("\nSecond lines: deviation and 95 % intervals within the run. ");
    let needs = quantile::ALL.map(|p| format!("{} {}", quantile::name(p), quantile::need(p))).join(", ");
    text.push_str(&format!("Values needed for a percentile:\n{needs}.\n"));
    if line.metrics.itl.n > 0 {
        text.push_str(&wrapped(GAPS));
    }
    if few {
        text.push_str("* few samples\n");
    }
    if short {
        text.push_str(&wrapped(TOO_SHORT));
    }
    if !absent.is_empty() {
        text.push_str(&wrapped(&format!("No values: {}.", absent.join("; "))));
    }
    text
}

/// The legend of `n/a`, `≥` and `≤` in the line below a percentile.
const TOO_SHORT: &str = "n/a, ≥ or ≤ below a percentile: the run is too short for both ends of its interval.";

/// The legend that explains how gaps are counted.
const GAPS: &str = "ITL needs 30 requests, and its gaps count as fewer independent ones: gaps of one request \
    are alike.";

fn has_ends(estimate: Estimate) -> bool {
    estimate.interval().is_some_and(|interval| interval.low.is_some() && interval.high.is_some())
}

/// The percentiles that are dropped on a narrow screen, in this order.
const LESS_NEEDED: [&str; 3] = ["p75", "p90", "p99.9"];

fn rendered(rows: &[(&Metric, &Summary)]) -> String {
    // If no latency has values, the table is omitted, because it would have no rows.
    if rows.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = ["mean"].into_iter().chain(quantile::ALL.map(quantile::name)).chain(["max"]).collect();
    grid::text_of_fewer(&LESS_NEEDED, (1, &[]), |left_out| {
        let is_shown = |at: &usize| !left_out.contains(&names[*at]);
        let mut table = grid::table();
        let header = (0..names.len()).filter(is_shown).map(|at| right(names[at]));
        table.set_header(std::iter::once(Cell::new("")).chain(header));
        for (metric, summary) in rows {
            let mut cells = row(metric, summary).into_iter();
            let name = cells.next();
            let numbers = cells.enumerate().filter(|(at, _)| is_shown(at)).map(|(_, cell)| cell);
            table.add_row(name.into_iter().chain(numbers));
        }
        table
    })
}

fn row(metric: &Metric, summary: &Summary) -> Vec<Cell> {
    let title = metric.title.trim_end_matches(" throughput").replacen(" from ", " from\n", 1);
    let break_or_blank =
        if title.len() + metric.unit.symbol().len() > 11 && !title.contains('\n') { '\n' } else { ' ' };
    let mean = summary.mean.map_or("n/a".into(), digits);
    let sd = summary.sd.map_or(String::new(), |sd| format!("\n± {}", digits(sd)));
    let mut cells = vec![Cell::new(format!("{title}{break_or_blank}{}\nn={}", metric.unit.symbol(), summary.n))];
    cells.push(right(format!("{mean}{sd}")));
    cells.extend(quantile::ALL.map(|percentile| right(percentile_cell(summary, percentile))));
    cells.push(right(summary.max.map_or("n/a".into(), value)));
    cells
}

/// Formats a percentile, with its interval on the next line. A missing percentile or interval is only `n/a`
/// here, because the required n and the reason are stated below the table.
fn percentile_cell(summary: &Summary, percentile: Percentile) -> String {
    let found = summary.percentile(percentile);
    if found.value().is_none() {
        return "n/a".into();
    }
    let interval = found.interval().map_or_else(|| NO_INTERVAL.to_owned(), ends);
    format!("{}\n{interval}", estimate(found))
}

/// Placeholder below a percentile without an interval.
const NO_INTERVAL: &str = "n/a";

/// Maximum width of an interval on one line, so that six of them fit next to each other.
const ONE_LINE: usize = 11;

/// Formats an interval: `20.0–20.1`; `20.0–>30` if the upper end lies among failures (for a rate
/// `<196–197`); one end if both lie among failures; `≥20.0` or `≤20.1` if the other end is open. A long
/// interval takes two lines.
fn ends(interval: Interval) -> String {
    let text = |end: Value| value(end).replace(' ', "");
    match (interval.low, interval.high) {
        (Some(low), Some(high)) if low.exact().or(high.exact()).is_some() => {
            let (low, high) = (text(low), text(high));
            let between = if low.chars().count() + 1 + high.chars().count() > ONE_LINE { "–\n" } else { "–" };
            format!("{low}{between}{high}")
        }
        // Both ends lie among failures, or one end is open. The whole interval then lies above the largest
        // observed time, or below the smallest observed rate.
        (Some(Value::AtLeast(_) | Value::Failed), _) | (Some(_), Some(_)) => {
            interval.low.map_or_else(String::new, text)
        }
        (None, Some(high @ Value::AtMost(_))) => text(high),
        (Some(low @ Value::Exact(_)), None) => format!("≥{}", text(low)),
        (None, Some(high @ Value::Exact(_))) => format!("≤{}", text(high)),
        _ => NO_INTERVAL.to_owned(),
    }
}

fn scalars(line: &Line, facts: &Facts, plan: &PlanMetrics) -> String {
    let mut table = grid::table();
    for metric in &METRICS {
        let found = match metric::get(metric) {
            Get::Scalar(get) => get(line.metrics),
            Get::Plan(get) => get(plan),
            Get::Summary(_) | Get::Count(_) => continue,
        };
        let planless = metric.kind == Kind::OfPlan && !plan.given;
        let why = || if planless { "no plan given".to_owned() } else { why_absent(metric, line, facts) };
        let text = found.map_or_else(|| format!("n/a ({})", why()), |value| scalar(metric.unit, value));
        table.add_row([metric.title.to_string(), text]);
    }
    grid::text(table, 2, &[1])
}

/// Returns the reason why the run does not have this figure: the specific reason if it is known, otherwise
/// all cases in which the figure is missing.
fn why_absent(metric: &Metric, line: &Line, facts: &Facts) -> String {
    let measured = line.metrics;
    let why = match metric.key {
        "output_throughput_per_gpu" if facts.gpus.is_none_or(|gpus| gpus == 0) => "none declared",
        "derived_server_throughput" if facts.open_loop => "open loop",
        "arrived_rate" if !facts.open_loop => "closed loop",
        "tokens_per_event" if !facts.stream => "not streaming",
        key if key.starts_with("idle_start") => metric.null_when,
        _ if measured.counts.requests == 0 => "no request in the window",
        key if key.starts_with("jitter_ratio") && measured.jitter_ratio.is_none() => return no_jitter(&measured.itl),
        _ => metric.null_when,
    };
    why.to_owned()
}

fn no_jitter(itl: &Summary) -> String {
    match itl.percentile(Percentile::P99) {
        _ if itl.n == 0 => "no gaps: not streaming, or fewer than 2 events".to_owned(),
        Estimate::NotEnough { n, need, of: Counted::Requests } => {
            format!("{n} requests have gaps, and ITL needs {need}")
        }
        Estimate::NotEnough { n, need, .. } => format!("too few gaps: weight {n}, and p99 needs {need}"),
        Estimate::Is { .. } => "p50 is 0".to_owned(),
    }
}

fn scalar(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Share => format!("{}%", digits(value * 100.0)),
        Unit::Requests | Unit::Ratio | Unit::Money | Unit::Tokens => digits(value),
        Unit::Millis | Unit::TokensPerSecond | Unit::RequestsPerSecond => {
            format!("{} {}", digits(value), unit.symbol())
        }
    }
}

fn definitions() -> String {
    METRICS.iter().map(|metric| wrapped(&format!("{}: {}", metric.title, metric.definition))).collect()
}

/// Wraps a text to the width of the screen, with later lines indented.
fn wrapped(text: &str) -> String {
    let indent = text.len() - text.trim_start().len();
    format::fill(&" ".repeat(indent), indent + 2, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::synthetic::{self, Run, fail, measured};
    use crate::analysis::{Thresholds, goodput};
    use crate::plan::Validity;
    use crate::rows::{Measured, Outcome, RunLabels};
    use crate::units::Nanos;

    fn shown(detail: Detail) -> String {
        let shape = Run { seconds: 12.0, ..Run::default() };
        let (mut records, facts) = shape.make();
        records.iter_mut().step_by(60).for_each(|record| fail(record, Outcome::Reset, 30_000_000));
        let labels = RunLabels {
            run_id: "ab".repeat(32),
            attempt: 1,
            endpoint: "mock".into(),
            model: "m".into(),
            scenario: "B1".into(),
            batch_size: shape.batch_size,
            ..RunLabels::default()
        };
        let (metrics, verdict) =
            (measured(&records, &facts), synthetic::verdict(&records, &facts, &Validity::default(), None));
        let thresholds = Thresholds { ttft: Some(Nanos::from_millis(20)), ..Thresholds::default() };
        let rows: Vec<_> = records.iter().map(|record| Measured::from(&record.row)).collect();
        let environment =
            Environment { connect_ns: Some(52_000), round_trip_ns: Some(312_000), ..Environment::default() };
        let plan = PlanMetrics { given: true, goodput: goodput(&rows, &facts, &thresholds), ..PlanMetrics::default() };
        run(
            &Line { labels: &labels, class: None, metrics: &metrics, verdict: &verdict },
            (&facts, &environment),
            &plan,
            None,
            detail,
        )
    }

    #[test]
    fn one_run_in_full() {
        let text = shown(Detail::default());
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn the_reason_of_a_missing_goodput_says_whether_a_plan_was_given() {
        let (records, facts) = Run::default().make();
        let (metrics, verdict) =
            (measured(&records, &facts), synthetic::verdict(&records, &facts, &Validity::default(), None));
        let labels = RunLabels::default();
        let line = Line { labels: &labels, class: None, metrics: &metrics, verdict: &verdict };
        let said = |given| {
            let text = run(
                &line,
                (&facts, &Environment::default()),
                &PlanMetrics { given, ..PlanMetrics::default() },
                None,
                Detail::default(),
            );
            text.lines().find(|line| line.starts_with("goodput  ")).unwrap().to_owned()
        };
        assert!(said(false).ends_with("n/a (no plan given)"), "{}", said(false));
        assert!(said(true).contains("n/a (no thresholds in the plan"), "{}", said(true));
    }

    #[test]
    fn a_long_interval_takes_two_lines() {
        let ends = |low, high| super::ends(Interval::between(Value::Exact(low), Value::Exact(high)));
        assert_eq!([ends(0.681, 12.72), ends(123_456.0, 234_567.0)], ["0.681–12.7", "123456–\n234567"]);
    }

    #[test]
    fn an_end_that_is_open_says_what_is_known() {
        let ends = |low, high| super::ends(Interval { low, high });
        let (known, failed) = (Some(Value::Exact(12.72)), Some(Value::AtLeast(30.0)));
        assert_eq!([ends(known, None), ends(None, known), ends(failed, None)], ["≥12.7", "≤12.7", ">30.0"]);
        assert_eq!([ends(known, failed), ends(failed, failed)], ["12.7–>30.0", ">30.0"]);
        // For a rate, failures lie below all other values, and `AtMost` is formatted with its own sign.
        let slow = Some(Value::AtMost(7.99));
        assert_eq!([ends(None, slow), ends(slow, known), ends(slow, slow)], ["<7.99", "<7.99–12.7", "<7.99"]);
        assert_eq!([ends(slow, None), ends(None, failed)], ["n/a", "n/a"], "nothing is known");
    }

    #[test]
    fn definitions_on_request() {
        let text = shown(Detail { definitions: true, colour: true });
        assert!(
            text.contains("E2E: last_token − sent (not streaming: done − sent)") && text.contains("\u{1b}[33msuspect")
        );
        assert!(text.lines().all(|line| line.chars().filter(|c| *c != '\u{1b}').count() <= 100));
    }
}
