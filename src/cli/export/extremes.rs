//! Property tests with extreme rows that no server should produce. They check that every table is written,
//! that every number in it is finite, and that displayed text fits its width.

use proptest::option;
use proptest::prelude::*;

use crate::analysis::lengths::{Bucket, buckets, measure_bucket};
use crate::analysis::slo::SloTest;
use crate::analysis::turns::{measure_turn, turns};
use crate::analysis::{
    Events, Gaps, MeanTokens, PlanMetrics, Pulse, Thresholds, classes, curve, goodput, judge, measure, slo,
};
use crate::export::breakdown::Turn;
use crate::export::facts::{DeclaredFacts, FoundHosts};
use crate::export::further::Further;
use crate::export::run_row::{self, RunRow};
use crate::export::runs;
use crate::export::runs_parquet::{self, StoredRun};
use crate::export::{Csv, Format, Json, Markdown, Parquet, Sheet, Workbook, breakdown, curves, events, requests, wide};
use crate::plan::{Percentile, Slo, Validity};
use crate::report::{Detail, Line, results, run as page};
use crate::rows::{
    Environment, EventRow, Facts, Outcome, Phase, PromptCount, Record, Records, Replay, RequestRow, RunLabels, Stamp,
    TokenSource, Windows,
};
use crate::units::Nanos;

/// The largest number that a row can contain.
const MOST: u64 = i64::MAX as u64;

fn instant() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..4_000_000_000u64, 1 => Just(0), 1 => Just(1), 1 => Just(MOST), 1 => 0..=MOST]
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![3 => 0..300u32, 1 => Just(0), 1 => Just(1), 1 => Just(u32::MAX), 1 => any::<u32>()]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just("=1+1\u{1b}[2J|\n".to_owned()), Just("x".repeat(60)), any::<String>()]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    use Outcome::*;
    prop_oneof![4 => Just(Ok), 1 => Just(CutAtDrain), 1 => Just(Timeout), 1 => Just(Empty), 1 => any::<u16>().prop_map(Http)]
}

prop_compose! {
    fn row()(
        at in prop::collection::vec(option::of(instant()), 14),
        counts in prop::collection::vec(option::of(count()), 6),
        wholes in (instant(), count(), count(), count(), 0..=MOST),
        words in (prop::sample::select(Phase::ALL.to_vec()), outcome(), option::of(0..3usize), any::<bool>()),
        texts in prop::collection::vec(option::of(text()), 4),
    ) -> RequestRow {
        RequestRow {
            phase: words.0, class: texts[0].clone(), conversation: at[0], turn: counts[0], scheduled_ns: wholes.0,
            released_ns: at[1], sent_ns: at[2], headers_ns: at[3], first_chunk_ns: at[4], first_token_ns: at[5],
            first_output_ns: at[6], last_token_ns: at[7], done_ns: at[8], ended_ns: at[9], dns_ns: at[10],
            connect_ns: at[11], tls_ns: at[12], stamp: if words.3 { Stamp::Kernel } else { Stamp::User },
            read_delay_ns: at[13], outcome: words.1, error: texts[1].clone(), finish_reason: texts[2].clone(),
            prompt_tokens: counts[1], cached_tokens: counts[2], output_tokens: counts[3], reasoning_tokens: counts[4],
            requested_tokens: wholes.1, intended_prompt_tokens: wholes.2, reusable_tokens: counts[5],
            content_wait_ns: at[13], server_queue_ns: at[0], server_prefill_ns: at[1], server_decode_ns: at[2],
            server_total_ns: at[3], trace_id: texts[1].clone(),
            token_source: words.2.map(|at| [TokenSource::Usage, TokenSource::Tokenizer, TokenSource::Events][at]),
            events: wholes.3, bytes: wholes.4, text_digest: texts[3].clone(), ..RequestRow::wanted(0, Phase::Fill, 0)
        }
    }
}

/// Generates no requests, one request, or many; sometimes all of them have failed.
fn records() -> impl Strategy<Value = Vec<Record>> {
    let record = || (row(), prop::collection::vec(instant(), 0..6)).prop_map(|(row, gaps_ns)| Record { row, gaps_ns });
    let many = prop_oneof![Just(0..1usize), Just(1..2), Just(2..60)];
    (many.prop_flat_map(move |size| prop::collection::vec(record(), size)), any::<bool>()).prop_map(
        |(mut records, fail)| {
            for (number, record) in records.iter_mut().enumerate() {
                record.row.request = number as u64;
                record.row.outcome = if fail { Outcome::Reset } else { record.row.outcome };
            }
            records
        },
    )
}

prop_compose! {
    fn facts()(
        windows in prop::collection::vec(instant(), 4),
        flags in prop::collection::vec(any::<bool>(), 4),
        numbers in prop::collection::vec(option::of(prop_oneof![Just(0.0), Just(-1.0), Just(1e-300), Just(1e300), 0.0..1e4]), 2),
        counts in prop::collection::vec(option::of(count()), 2),
        clocks in (instant(), any::<i64>(), option::of(instant()), instant(), option::of(instant())),
    ) -> Facts {
        Facts {
            windows: Windows { stabilize_ns: windows[0], measure_start_ns: windows[1], measure_end_ns: windows[2], end_ns: windows[3] },
            open_loop: flags[0], stream: flags[1], ignore_eos: flags[2], thinks: flags[3], qps: numbers[0],
            window_qps: numbers[1], batch_size: counts[0], gpus: counts[1], monotonic_ns: clocks.0, wall_ns: clocks.1,
            boottime_ns: clocks.2, never_sent: clocks.3, idle_ns: clocks.4, scheduled_in_window: clocks.3,
            prompt_count: Some(PromptCount::Tokenizer), ..Facts::default()
        }
    }
}

prop_compose! {
    fn labels()(
        texts in prop::collection::vec(text(), 4),
        axes in prop::collection::btree_map(text(), text(), 0..3),
        load in (option::of(count()), option::of(prop_oneof![Just(0.0), Just(1e300), 0.0..1e5]), count()),
    ) -> RunLabels {
        RunLabels {
            run_id: "ab".repeat(32), attempt: load.2, endpoint: texts[0].clone(), model: texts[1].clone(),
            scenario: texts[2].clone(), batch_size: load.0, qps: load.1, repeat: load.2, axes,
        }
    }
}

fn objective() -> Slo {
    let limits = || [(Percentile::P50, Nanos(1)), (Percentile::P999, Nanos(MOST))].into_iter().collect();
    Slo { ttft: limits(), itl: limits(), tpot: limits(), e2e: limits(), ..Slo::default() }
}

/// Returns the row of the run, the rows of its classes, and the objective as tested on the run, as
/// produced by `answers::read`.
fn rows_of(run: &Records, facts: &Facts, labels: &RunLabels) -> (RunRow, Vec<RunRow>, Vec<SloTest>) {
    let slo = objective();
    let Ok(through) = Events::of(run, facts, &slo::gap_limits(Some(&slo)));
    let Ok(gaps) = Gaps::of(run, facts, &through);
    let thresholds = Thresholds::of(None, Some(&slo));
    let tests = slo::test(run.rows(), (&through, &gaps), facts, &slo);
    let row = RunRow {
        plan: Some("p".into()),
        sweep: None,
        labels: labels.clone(),
        class: None,
        started: "2026-11-22T00:00:00Z".into(),
        verdict: judge((run.rows(), &[]), &through, facts, &Validity::default(), Some(&slo)),
        metrics: measure(run.rows(), (&through, &gaps), facts),
        slo: tests.clone(),
        cost: None,
        hooks_failed: Some(u64::MAX),
        tokens: MeanTokens::of(run.rows(), facts),
        found: FoundHosts::default(),
        declared: DeclaredFacts::default(),
        objective: None,
        plan_metrics: PlanMetrics { goodput: goodput(run.rows(), facts, &thresholds), ..PlanMetrics::default() },
    };
    let Ok(classes) = classes(run, facts, &Thresholds::default(), ["=1+1\u{1b}[2J|\n".to_owned(), "never".to_owned()]);
    let of_class = |one: crate::analysis::OfClass| RunRow {
        class: Some(one.class),
        metrics: one.metrics,
        plan_metrics: PlanMetrics::default(),
        ..row.clone()
    };
    let classes = classes.into_iter().map(of_class).collect();
    (row, classes, tests)
}

/// Checks that the table can be written in every format, and that its rows are complete.
fn written<'a>(table: &dyn Fn() -> Sheet<'a>) -> Result<(), TestCaseError> {
    let bytes = |format: &dyn Format| {
        let mut bytes = Vec::new();
        format.write(table(), &mut bytes).unwrap();
        bytes
    };
    let rows: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_slice(&bytes(&Json)).unwrap();
    let columns = table().columns.len();
    prop_assert!(rows.iter().all(|row| row.len() == columns), "a column is listed twice");
    let csv = bytes(&Csv);
    let mut reader = csv::Reader::from_reader(&csv[..]);
    prop_assert_eq!(reader.records().filter(|line| line.as_ref().unwrap().len() == columns).count(), rows.len());
    let markdown = String::from_utf8(bytes(&Markdown)).unwrap();
    prop_assert_eq!(markdown.lines().count(), rows.len() + 2);
    prop_assert!(bytes(&Parquet).starts_with(b"PAR1"));
    let mut book = Workbook::new();
    book.add("rows", table()).unwrap();
    Ok(())
}

/// Computes every table and text about a run, and checks that each can be written.
fn answered(records: Vec<Record>, facts: &Facts, labels: &RunLabels) -> Result<(), TestCaseError> {
    let events_of: Vec<EventRow> = records
        .iter()
        .map(|record| EventRow {
            request: record.row.request,
            first_token_ns: record.row.first_token_ns,
            gaps_ns: record.gaps_ns.clone(),
        })
        .collect();
    let rows_of_run: Vec<(RequestRow, Vec<u64>)> =
        records.iter().map(|record| (record.row.clone(), record.gaps_ns.clone())).collect();
    let run: Records = records.into_iter().collect();
    let (row, classes, tests) = rows_of(&run, facts, labels);
    let axes = run_row::axes([labels].into_iter());
    let one = [row.clone()];
    let further = Further::of(&one, &[]);
    written(&|| runs::sheet(&one, &further, false))?;
    written(&|| runs::sheet(&classes, &further, true))?;
    written(&|| wide(&one, &[]).unwrap())?;
    written(&|| {
        requests::sheet(
            &axes,
            None,
            [((None, labels.clone()), facts.clone(), rows_of_run.clone().into_iter())].into_iter(),
        )
    })?;
    written(&|| events::sheet([((None, labels.clone()), events_of.clone().into_iter())].into_iter()))?;
    let measured = buckets(run.rows(), facts).into_iter().map(|bucket| {
        let Ok(metrics) = measure_bucket(&run, bucket, facts);
        (bucket, metrics)
    });
    let measured: Vec<_> = measured.collect();
    written(&|| breakdown::sheet::<Bucket>(&axes, None, [((None, labels.clone()), measured.clone())].into_iter()))?;
    let measured = turns(run.rows(), facts).into_iter().map(|turn| {
        let Ok(metrics) = measure_turn(&run, turn, facts);
        (Turn(turn), metrics)
    });
    let measured: Vec<_> = measured.collect();
    written(&|| breakdown::sheet(&axes, None, [((None, labels.clone()), measured.clone())].into_iter()))?;
    let point = curve::Run {
        sweep: "s",
        labels,
        metrics: &row.metrics,
        plan_metrics: &row.plan_metrics,
        verdict: &row.verdict,
        saturation: row.metrics.saturation,
        slo: &tests,
        cost: None,
        tokens: MeanTokens::of(run.rows(), facts),
    };
    let on_curve = curve::curves(&[point, point], true);
    written(&|| curves::sheet(&axes, None, &on_curve, None))?;
    let stored = StoredRun { labels: labels.clone(), started: row.started.clone(), metrics: row.metrics.clone() };
    prop_assert!(runs_parquet::bytes(vec![stored]).is_ok());

    let line = Line { labels, class: None, metrics: &row.metrics, verdict: &row.verdict };
    let of_class = classes.iter().map(|row| Line { class: row.class.as_deref(), metrics: &row.metrics, ..line });
    let lines: Vec<Line> = std::iter::once(line).chain(of_class).collect();
    let Ok(through) = Events::of(&run, facts, &[]);
    let pulse = Pulse::of(run.rows(), &through, facts);
    let detail = Detail { definitions: true, colour: false };
    let page = page(&line, (facts, &Environment::default()), &row.plan_metrics, pulse.as_ref(), detail);
    let wide = page.lines().find(|line| crate::report::format::width(line) > 100);
    prop_assert_eq!(wide, None);
    for text in [results(&lines, false), page] {
        prop_assert!(!text.contains("NaN") && !text.contains("inf "), "{}", text);
        prop_assert!(!text.contains('\u{1b}'), "{:?}", text);
    }
    let counts = row.metrics.counts;
    if counts.completed == 0 {
        prop_assert!(row.metrics.ttft.percentile(Percentile::P50).exact().is_none(), "no response has no latency");
    }
    if counts.requests == 0 {
        prop_assert_eq!(row.verdict.state.name(), "invalid");
    }
    Ok(())
}

/// The number of cases: a quarter of those in the measured suite (`SWEEPLINE_WHOLE=1`).
fn cases() -> ProptestConfig {
    let is_whole = std::env::var("SWEEPLINE_WHOLE").is_ok_and(|whole| whole == "1");
    ProptestConfig::with_cases(if is_whole { 64 } else { 16 })
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn extreme_rows_break_no_answer(records in records(), facts in facts(), labels in labels()) {
        answered(records, &facts, &labels)?;
    }
}
