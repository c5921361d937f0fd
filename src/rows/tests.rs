//! Tests that rows survive a round trip unchanged, whatever they contain, and that a journal is readable
//! up to the point where it is truncated.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::option;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;

/// Generates numbers in the stored range of 63 bits, with frequent extreme values.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(i64::MAX as u64), 0..i64::MAX as u64]
}

fn small() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(u32::MAX), any::<u32>()]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just("naïve 日本語 🦀 \u{0} \"'|\n".to_owned()), any::<String>()]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    use Outcome::*;
    let plain = [
        Ok,
        Connect,
        Timeout,
        Reset,
        Stalled,
        Malformed,
        StreamError,
        Empty,
        Aborted,
        NotStreamed,
        ServerDied,
        CutAtDrain,
    ];
    prop_oneof![prop::sample::select(plain.to_vec()), any::<u16>().prop_map(Http)]
}

fn labels() -> impl Strategy<Value = RunLabels> {
    let axes = prop::collection::btree_map(text(), text(), 0..3);
    let names = (text(), text(), text(), text());
    (names, small(), option::of(small()), option::of(-1e300f64..1e300), small(), axes).prop_map(
        |((run_id, endpoint, model, scenario), attempt, batch_size, qps, repeat, axes)| RunLabels {
            run_id,
            attempt,
            endpoint,
            model,
            scenario,
            batch_size,
            qps,
            repeat,
            axes,
        },
    )
}

prop_compose! {
    fn row()(
        instants in prop::collection::vec(option::of(number()), 19),
        counts in prop::collection::vec(option::of(small()), 8),
        wholes in prop::collection::vec(number(), 3),
        smalls in prop::collection::vec(small(), 3),
        texts in prop::collection::vec(option::of(text()), 4),
        words in (prop::sample::select(Phase::ALL.to_vec()), outcome(), any::<bool>(), option::of(0..4usize)),
        unknown in option::of(0..4usize),
        http_status in option::of(any::<u16>()),
    ) -> RequestRow {
        let sources = [TokenSource::Usage, TokenSource::Timings, TokenSource::Tokenizer, TokenSource::Events];
        let reasons = [TokensUnknown::HiddenReasoning, TokensUnknown::TokensByEvents, TokensUnknown::ImpossibleUsage, TokensUnknown::SeveralChoices];
        RequestRow {
            request: wholes[0], phase: words.0, class: texts[0].clone(), conversation: instants[0], turn: counts[0],
            scheduled_ns: wholes[1], released_ns: instants[1], sent_ns: instants[2], headers_ns: instants[3],
            first_chunk_ns: instants[4], first_token_ns: instants[5], first_output_ns: instants[6],
            last_token_ns: instants[7], done_ns: instants[8], ended_ns: instants[13], dns_ns: instants[9], connect_ns: instants[10],
            tls_ns: instants[11], stamp: if words.2 { Stamp::Kernel } else { Stamp::User },
            read_delay_ns: instants[12], outcome: words.1, http_status, error: texts[1].clone(),
            finish_reason: texts[2].clone(), prompt_tokens: counts[1], cached_tokens: counts[2],
            output_tokens: counts[3], reasoning_tokens: counts[4], requested_tokens: smalls[0],
            intended_prompt_tokens: smalls[1], reusable_tokens: counts[5],
            content_wait_ns: instants[14], token_source: words.3.map(|n| sources[n]), usage_doubt: texts[3].clone(), events: smalls[2],
            streamed_tokens: counts[6], tokens_unknown: unknown.map(|n| reasons[n]), unread_events: counts[7],
            server_queue_ns: instants[15], server_prefill_ns: instants[16], server_decode_ns: instants[17],
            server_total_ns: instants[18], trace_id: texts[0].clone(), bytes: wholes[2], text_digest: texts[3].clone(),
        }
    }
}

fn record() -> impl Strategy<Value = Record> {
    (row(), prop::collection::vec(number(), 0..6)).prop_map(|(row, gaps_ns)| Record { row, gaps_ns })
}

/// Generates batches of records whose request numbers differ, as in a run.
fn batches() -> impl Strategy<Value = Vec<Vec<Record>>> {
    prop::collection::vec(prop::collection::vec(record(), 1..4), 0..4).prop_map(|mut batches| {
        batches.iter_mut().flatten().zip(0..).for_each(|(record, k)| record.row.request = k);
        batches
    })
}

fn write_journal(path: &Path, labels: &RunLabels, batches: &[Vec<Record>]) {
    let mut journal = Journal::create(path, labels).unwrap();
    batches.iter().for_each(|batch| journal.append(batch).unwrap());
    journal.finish().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sealed_rows_come_back(labels in labels(), batches in batches()) {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join("journal.arrow");
        write_journal(&journal, &labels, &batches);
        let records: Vec<Record> = batches.into_iter().flatten().collect();
        prop_assert_eq!(read_journal(&journal).unwrap(), (labels.clone(), records.clone()));
        prop_assert_eq!(seal(&journal, dir.path()).unwrap(), records.len() as u64);
        let labels = if records.is_empty() { RunLabels::default() } else { labels };
        let rows: Vec<RequestRow> = records.iter().map(|record| record.row.clone()).collect();
        let requests = dir.path().join(Table::Requests.file());
        prop_assert_eq!(read_requests(&requests).unwrap(), (labels.clone(), rows));
        let run = RunReader::open(dir.path()).unwrap();
        let held: Records = records.iter().cloned().collect();
        let (mut read, mut expected) = (Vec::new(), Vec::new());
        run.replay(&mut |row, gaps| read.push((row.clone(), gaps.to_vec()))).unwrap();
        let Ok(()) = held.replay(&mut |row, gaps| expected.push((row.clone(), gaps.to_vec())));
        prop_assert_eq!((&run.labels, &read), (&labels, &expected));
        prop_assert_eq!(run.rows(), held.rows());
        let events: Result<Vec<EventRow>, _> = stream_events(&dir.path().join(Table::Events.file())).unwrap().collect();
        let events: Vec<_> = events.unwrap().into_iter().map(|row| (row.first_token_ns, row.gaps_ns)).collect();
        let expected: Vec<_> = records.iter().map(|record| (record.row.first_token_ns, record.gaps_ns.clone())).collect();
        prop_assert_eq!(events, expected);
        for table in [Table::Requests, Table::Events] {
            prop_assert_eq!(check(&dir.path().join(table.file()), table).unwrap(), records.len() as u64);
        }
    }

    #[test]
    fn samples_come_back(labels in labels(), points in prop::collection::vec((number(), text(), text(), any::<f64>()), 0..9)) {
        let dir = tempfile::tempdir().unwrap();
        let samples: Vec<Sample> =
            points.into_iter().map(|(at_ns, source, name, value)| Sample { at_ns, source, name, value, ..Sample::default() }).collect();
        let mut writer = SampleWriter::create(dir.path(), labels).unwrap();
        samples.chunks(4).for_each(|samples| writer.append(samples).unwrap());
        prop_assert_eq!(writer.finish().unwrap(), samples.len() as u64);
        let path = dir.path().join(Table::Samples.file());
        prop_assert_eq!(read_samples(&path).unwrap(), samples);
    }
}

fn some_record(request: u64) -> Record {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut record = record().new_tree(&mut runner).unwrap().current();
    record.row.request = request;
    record
}

fn some_labels() -> RunLabels {
    RunLabels { run_id: "ab".repeat(32), attempt: 1, endpoint: "demo".into(), ..RunLabels::default() }
}

#[test]
fn a_cut_journal_gives_the_batches_before_the_cut() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let batches: Vec<Vec<Record>> = (0..3).map(|k| vec![some_record(2 * k), some_record(2 * k + 1)]).collect();
    write_journal(&whole, &some_labels(), &batches);
    let bytes = std::fs::read(&whole).unwrap();
    let records: Vec<Record> = batches.into_iter().flatten().collect();
    let cut = dir.path().join("cut");
    let mut most = 0;
    // Every seventh length; the measured suite (`SWEEPLINE_WHOLE=1`) cuts at each.
    let step = if std::env::var("SWEEPLINE_WHOLE").is_ok_and(|whole| whole == "1") { 1 } else { 7 };
    for length in (0..bytes.len()).rev().step_by(step).collect::<Vec<_>>().into_iter().rev() {
        std::fs::write(&cut, &bytes[..length]).unwrap();
        assert!(matches!(seal(&cut, dir.path()), Err(RowsError::Unfinished { .. })), "truncated at {length}");
        let Ok((labels, read)) = read_journal(&cut) else {
            assert_eq!(most, 0, "the head is complete, the truncation at {length} is after it");
            continue;
        };
        assert_eq!(labels, some_labels());
        assert!(read.len() >= most && read.len() % 2 == 0, "truncated at {length}");
        assert_eq!(read, records[..read.len()]);
        most = read.len();
    }
    assert_eq!(most, 6);
}

#[test]
fn files_of_different_axes_are_one_table() {
    let dir = tempfile::tempdir().unwrap();
    let schemas = [BTreeMap::new(), BTreeMap::from([("server".to_owned(), "64".to_owned())])].map(|axes| {
        let labels = RunLabels { axes, qps: Some(2.5), ..some_labels() };
        let journal = dir.path().join("journal");
        let _ = std::fs::remove_file(&journal);
        write_journal(&journal, &labels, &[vec![some_record(0)]]);
        seal(&journal, dir.path()).unwrap();
        let file = std::fs::File::open(dir.path().join(Table::Requests.file())).unwrap();
        let reader = ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        (reader.schema().as_ref().clone(), reader.parquet_schema().clone())
    });
    assert_eq!(schemas[0], schemas[1]);
    assert_eq!(schemas[0].0.fields(), Table::Requests.schema().fields());
}

#[test]
fn a_connection_is_new_reused_or_none() {
    let mut row = some_record(0).row;
    for (connect_ns, sent_ns, connection) in
        [(Some(5), Some(9), Some(Connection::New)), (None, Some(9), Some(Connection::Reused)), (None, None, None)]
    {
        (row.connect_ns, row.sent_ns) = (connect_ns, sent_ns);
        assert_eq!(row.connection(), connection);
    }
}

#[test]
fn a_number_beyond_the_column_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(&dir.path().join("journal"), &some_labels()).unwrap();
    let mut record = some_record(0);
    record.row.bytes = u64::MAX;
    let error = journal.append(&[record]).unwrap_err().to_string();
    assert!(error.contains("column `bytes` cannot hold 18446744073709551615"), "{error}");
}

#[test]
fn a_damaged_file_is_named_and_never_panics() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    write_journal(&journal, &some_labels(), &[(0..64).map(some_record).collect()]);
    seal(&journal, dir.path()).unwrap();
    let path = dir.path().join(Table::Events.file());
    let bytes = std::fs::read(&path).unwrap();
    for length in (0..bytes.len()).step_by(7) {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let error = check(&path, Table::Events).unwrap_err();
        assert!(error.to_string().contains("events.parquet"), "{error}");
        // Callers that show the error use this to choose the remedy.
        assert_eq!(error.damaged_file(), Some(path.as_path()), "{error}");
    }
    for at in (0..bytes.len()).step_by(3) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x55;
        std::fs::write(&path, &flipped).unwrap();
        let _ = check(&path, Table::Events);
    }
}

#[test]
fn a_full_disk_keeps_its_name() {
    let error = Journal::create(Path::new("/dev/full/journal"), &some_labels()).err().unwrap();
    assert!(matches!(error, RowsError::Io { .. }), "{error}");
    let full = ::parquet::errors::ParquetError::from(std::io::Error::from(std::io::ErrorKind::StorageFull));
    let error = RowsError::parquet_write(Path::new("f"), full);
    assert!(matches!(error, RowsError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull));
}
