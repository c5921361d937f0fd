//! Tests that data sets and traces are read as they are, and that each defect is reported with its
//! line, or counted and skipped.
//!
//! The files are in `tests/dataset/`, written for these tests in the format of public files; large files
//! are generated here.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use sweepline::dataset::{Dataset, Field, Filter, Format, Mapping, OnBad, Options, Reason, Record, Role, TimeUnit};

/// Returns a file that was written for these tests.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dataset").join(name)
}

fn skip() -> Options {
    Options { on_bad: OnBad::Skip, ..Options::default() }
}

/// Returns all records of a file without defects, and its detected format.
fn read(path: &Path, options: &Options) -> (Format, Vec<Record>) {
    let mut dataset = Dataset::open(path, options).unwrap();
    let records = dataset.by_ref().collect::<Result<_, _>>().unwrap();
    (dataset.format(), records)
}

fn good(name: &str) -> (Format, Vec<Record>) {
    read(&fixture(name), &Options::default())
}

/// Returns the error of a file that cannot be read completely, without its folder.
fn refusal(path: &Path, options: &Options) -> String {
    let error = match Dataset::open(path, options) {
        Err(error) => error,
        Ok(dataset) => dataset.filter_map(Result::err).next().expect("an error"),
    };
    let folder = format!("{}/", path.parent().unwrap().display());
    error.to_string().replace(&folder, "")
}

/// Returns the skipped records of a file: the count for each reason, and the first place.
fn left_out(path: &Path) -> (usize, BTreeMap<Reason, (u64, u64)>) {
    let mut dataset = Dataset::open(path, &skip()).unwrap();
    let kept = dataset.by_ref().map(Result::unwrap).count();
    let skipped = dataset.skipped().0.iter().map(|(reason, skips)| (*reason, (skips.count, skips.first))).collect();
    (kept, skipped)
}

fn written(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn said(record: &Record) -> Vec<(Role, &str)> {
    record.turns.iter().map(|turn| (turn.role, turn.text.as_str())).collect()
}

#[test]
fn sharegpt_is_read() {
    let (format, records) = good("sharegpt.json");
    assert_eq!(format, Format::ShareGpt);
    let ids: Vec<_> = records.iter().map(|record| (record.id.as_deref().unwrap(), record.place.line)).collect();
    assert_eq!(
        ids,
        [("QWJhYvA_0", 2), ("QWJhYvA_1", 11), ("i6IyJda_0", 19)],
        "an empty conversation has nothing to send"
    );
    assert_eq!(records[0].requests(), 2);
    assert_eq!(said(&records[0])[1], (Role::Assistant, "That is A Coruña, with the Tower of Hercules."));
    assert_eq!(said(&records[1])[0], (Role::User, "Please go on."), "a response without a question is skipped");
    let last = said(&records[2]);
    assert_eq!(last[0], (Role::System, "You answer in one sentence."));
    assert_eq!(last[1], (Role::User, "What is a monsoon?\n\nAnd where does it rain most?"));
    assert_eq!(left_out(&fixture("sharegpt.json")), (3, BTreeMap::from([(Reason::NoPrompt, (1, 28))])));
}

#[test]
fn sharegpt_is_read_as_lines_and_with_a_mark() {
    let folder = lab::folder();
    let text = "\u{feff}\r\n{\"id\":1,\"conversations\":[{\"from\":\"user\",\"value\":\"Eins?\"}]}\r\n\r\n\
                {\"id\":2,\"conversations\":[{\"from\":\"human\",\"value\":\"Zwei?\"}]}";
    let (format, records) = read(&written(&folder, "lines", text.as_bytes()), &Options::default());
    assert_eq!(format, Format::ShareGpt);
    assert_eq!(records.iter().map(|record| record.place.line).collect::<Vec<_>>(), [2, 4]);
    let array = "\u{feff}[{\"conversations\":[{\"from\":\"user\",\"value\":\"a ] and \\\" and }\"}]}]";
    let (_, records) = read(&written(&folder, "array", array.as_bytes()), &Options::default());
    assert_eq!(said(&records[0]), [(Role::User, "a ] and \" and }")]);
}

#[test]
fn longbench_is_asked_as_its_authors_do() {
    let (format, records) = good("longbench.json");
    assert_eq!(format, Format::LongBench);
    let text = &records[0].turns[0].text;
    assert!(text.starts_with("Please read the following text and answer the question below.\n\n<text>\nThe ladder"));
    assert!(text.contains("question: Who moved the ladder?\nChoices:\n(A) The gardener\n(B) The cook\n"), "{text}");
    assert_eq!(records[0].id.as_deref(), Some("66ec0c4c821e116aacb1994a"));
    assert_eq!(records[0].prompt_chars().unwrap() as usize, text.chars().count());
    assert_eq!(records[0].prompt_tokens().unwrap() as usize, text.chars().count().div_ceil(4));
}

#[test]
fn trees_become_conversations_along_the_best_replies() {
    let (format, records) = good("oasst.trees.jsonl");
    assert_eq!(format, Format::Oasst);
    let texts: Vec<_> = records[0].turns.iter().map(|turn| turn.text.as_str()).collect();
    assert_eq!(texts, ["How do tides work?", "The moon pulls the water.", "And the sun?", "It helps, by about half."]);
    assert_eq!(records[2].requests(), 1, "a question without a response can be sent");
    let german =
        Options { filter: Filter { languages: ["de".to_owned()].into(), ..Filter::default() }, ..Options::default() };
    let (_, records) = read(&fixture("oasst.trees.jsonl"), &german);
    assert_eq!(said(&records[0])[0].1, "Was ist ein Fjord?");
    assert_eq!(records.len(), 1);
    let refused = refusal(&fixture("sharegpt.json"), &german);
    assert_eq!(
        refused,
        "sharegpt.json: the format sharegpt does not declare languages; remove the filter on languages"
    );
}

/// Returns offsets in ms, prompt tokens and output tokens.
fn lengths(records: &[Record]) -> Vec<(f64, u32, u32)> {
    let figures = |r: &Record| (r.offset.unwrap().millis(), r.input_tokens.unwrap(), r.output_tokens.unwrap());
    records.iter().map(figures).collect()
}

#[test]
fn traces_are_read() {
    let (format, records) = good("mooncake.jsonl");
    assert_eq!(format, Format::Mooncake);
    assert_eq!(lengths(&records)[2], (300.0, 1536, 500));
    assert_eq!(records[2].hash_ids, [46, 47, 48]);

    let (format, records) = good("burstgpt.csv");
    assert_eq!(format, Format::BurstGpt);
    let expected = [(0.0, 472, 18), (40e3, 1087, 230), (113e3, 417, 276), (180e3, 300, 60)];
    assert_eq!(lengths(&records), expected, "the failed request is skipped");
    assert_eq!(left_out(&fixture("burstgpt.csv")).1, BTreeMap::from([(Reason::NoAnswer, (1, 5))]));

    let (_, records) = good("burstgpt_sessions.csv");
    assert_eq!(lengths(&records), [(0.0, 472, 18), (500.0, 100, 20), (39750.0, 540, 30)]);
    let sessions: Vec<_> = records.iter().map(|record| record.conversation.as_deref().unwrap()).collect();
    assert_eq!(sessions, ["17", "18", "17"]);

    let (format, records) = good("azure_2023.csv");
    assert_eq!(format, Format::Azure);
    assert_eq!(records[1].offset.unwrap().0, 4_314_579_000, "seven digits of a second are kept");
    let (format, records) = good("azure_2024.csv");
    assert_eq!(format, Format::Azure);
    assert_eq!(lengths(&records), [(0.0, 2162, 5), (7.405, 2399, 6), (990.07, 76, 15)]);
}

#[test]
fn columns_mean_what_is_said() {
    let (format, records) = good("own.jsonl");
    assert_eq!(format, Format::Columns);
    assert_eq!((records[0].requests(), records[0].output_tokens), (1, Some(4)));
    assert_eq!(said(&records[1]), [(Role::User, "Name a mountain."), (Role::Assistant, "Rysy.")]);
    assert_eq!(records[2].offset.unwrap().0, 1_000_000_001);
    assert_eq!((records[2].hash_ids.len(), records[2].prompt_tokens()), (2, Some(700)));

    let columns = [
        (Field::Time, "ts"),
        (Field::Prompt, "request.body.question"),
        (Field::InputTokens, "usage.in"),
        (Field::OutputTokens, "usage.out"),
        (Field::Conversation, "session"),
    ];
    let columns = columns.map(|(field, column)| (field, column.to_owned())).into();
    let mapped = |columns| Options { mapping: Mapping { columns, time_unit: TimeUnit::S }, ..Options::default() };
    let (_, records) = read(&fixture("gateway.jsonl"), &mapped(columns));
    assert_eq!(lengths(&records), [(0.0, 7, 31), (1500.0, 4, 12)]);
    assert_eq!(said(&records[1]), [(Role::User, "And swallows?")]);

    let columns = [(Field::Prompt, "question"), (Field::Output, "reply"), (Field::Language, "lang")];
    let columns: BTreeMap<_, _> = columns.map(|(field, column)| (field, column.to_owned())).into();
    let (_, records) = read(&fixture("questions.csv"), &mapped(columns.clone()));
    assert_eq!(said(&records[0])[0].1, "Say \"hello\", please.");
    assert_eq!(said(&records[0])[1].1, "Hello,\nthere.");
    assert_eq!(records.iter().map(|record| record.place.line).collect::<Vec<_>>(), [2, 4]);
    let bad = [(Field::Prompt, "qestion".to_owned())].into();
    assert_eq!(
        refusal(&fixture("questions.csv"), &mapped(bad)),
        "questions.csv: it lacks the column qestion (it has number, question, reply, lang); check that \
         file and format are right"
    );
    assert_eq!(
        refusal(&fixture("questions.csv"), &Options::default()).split(';').next().unwrap(),
        "questions.csv: its entries have an unknown format (their fields: number, question, reply, lang)"
    );
}

#[test]
fn every_broken_entry_is_named_with_its_line_or_counted() {
    use Reason::*;
    let expected = [
        (
            "sharegpt_broken.json",
            "sharegpt_broken.json:3, entry 2: the role `robot` of message 1 is unknown (known: human or user, gpt or assistant, system)",
            2,
            vec![(Syntax, (1, 11)), (WrongValue, (4, 3)), (Missing, (2, 6)), (Duplicate, (1, 8))],
        ),
        (
            "longbench_broken.json",
            "longbench_broken.json:3, entry 2: `choice_D` is missing",
            1,
            vec![(WrongValue, (1, 5)), (Missing, (2, 3))],
        ),
        (
            "oasst_broken.jsonl",
            "oasst_broken.jsonl:2: the role `narrator` is unknown (known: prompter, assistant)",
            1,
            vec![(WrongValue, (3, 2)), (Missing, (1, 4)), (Duplicate, (1, 6))],
        ),
        (
            "mooncake_broken.jsonl",
            "mooncake_broken.jsonl:2: its time is 500ms before that of an earlier entry: sort the file by time",
            2,
            vec![(Syntax, (1, 10)), (WrongValue, (5, 5)), (Missing, (1, 9)), (Negative, (2, 3)), (Unsorted, (1, 2))],
        ),
        (
            "burstgpt_broken.csv",
            "burstgpt_broken.csv:3: its time is 1s before that of an earlier entry: sort the file by time",
            2,
            vec![(Syntax, (1, 7)), (WrongValue, (2, 6)), (Missing, (1, 8)), (Negative, (2, 4)), (Unsorted, (1, 3))],
        ),
        (
            "azure_broken.csv",
            "azure_broken.csv:3: `TIMESTAMP` is `2023-13-45 18:15:46.6805900`, not a time: a number, or a date like \
             2024-05-10 00:00:00.009930",
            2,
            vec![(WrongValue, (3, 3)), (Unsorted, (1, 4))],
        ),
    ];
    let remedy = "; fix the entry, or skip such entries with --skip-bad (in a plan: `on_bad: skip`)";
    for (name, first, kept, reasons) in expected {
        assert_eq!(refusal(&fixture(name), &Options::default()), format!("{first}{remedy}"));
        assert_eq!(left_out(&fixture(name)), (kept, reasons.into_iter().collect()), "{name}");
    }
}

#[test]
fn files_that_are_none_are_refused_with_a_remedy() {
    let folder = lab::folder();
    let nothing = "the file is empty; download or write it again";
    let cases: [(&str, &[u8], &str); 11] = [
        ("empty", b"", nothing),
        ("blank", b" \n\n ", nothing),
        ("mark", b"\xef\xbb\xbf", nothing),
        ("none", b"[]", "the file contains no entry; check that it is the right file"),
        ("header", b"TIMESTAMP,ContextTokens,GeneratedTokens\n", "the file contains no entry; "),
        ("gzip", b"\x1f\x8b\x08", "it is compressed (gzip); unpack it first: gunzip FILE"),
        ("utf16", b"\xff\xfe[\0", "it is UTF-16; convert it first"),
        ("binary", b"\x00\x01\x02", "it is not text or Parquet"),
        ("parquet", b"PAR1 and no footer", "it is not a complete Parquet file: "),
        (
            "prose",
            b"Once upon a time\nthere was",
            "its entries have an unknown format (their fields: Once upon a time)",
        ),
        ("twice", b"a,b,a\n1,2,3\n", "its header has the column `a` twice; rename one of them"),
    ];
    for (name, bytes, expected) in cases {
        let path = written(&folder, name, bytes);
        let refusal = refusal(&path, &Options::default());
        assert!(refusal.starts_with(&format!("{name}: {expected}")), "{refusal}");
    }
    assert!(refusal(folder.path(), &Options::default()).contains("it is a folder; name a file in it"));
    let absent = Options { format: Some(Format::Azure), ..Options::default() };
    let missing = refusal(&fixture("burstgpt.csv"), &absent);
    assert!(missing.contains("it lacks the column TIMESTAMP, ContextTokens, GeneratedTokens"), "{missing}");
}

/// Writes 10 MB in one line, with one entry before it and one after it.
fn giant(
    folder: &tempfile::TempDir,
    name: &str,
    [open, fill, close]: [&str; 3],
    [before, behind]: [&str; 2],
) -> PathBuf {
    let path = folder.path().join(name);
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    file.write_all(before.as_bytes()).unwrap();
    file.write_all(open.as_bytes()).unwrap();
    for _ in 0..11_000_000 / fill.len() {
        file.write_all(fill.as_bytes()).unwrap();
    }
    file.write_all(close.as_bytes()).unwrap();
    file.write_all(behind.as_bytes()).unwrap();
    file.flush().unwrap();
    path
}

#[test]
fn an_entry_of_ten_megabytes_is_refused_or_left_out() {
    let folder = lab::folder();
    let prompt = |text: &str| format!("{{\"prompt\":\"{text}\"}}");
    let [first, last] = [prompt("first"), prompt("last")];
    let long = ["{\"prompt\":\"", "many words ", "\"}"];
    let lines = giant(&folder, "lines", long, [&format!("{first}\n"), &format!("\n{last}\n")]);
    let array = giant(&folder, "array", long, [&format!("[{first},\n"), &format!(",\n{last}]")]);
    let csv = giant(&folder, "csv", ["\"", "many, words\n", "\"\n"], ["prompt\nfirst\n", "last\n"]);
    for (path, line) in [(lines, 2), (array, 2), (csv, 3)] {
        let refused = refusal(&path, &Options::default());
        // Array entries are counted.
        let place = if path.ends_with("array") { format!("{line}, entry 2") } else { line.to_string() };
        assert!(
            refused.contains(&format!(":{place}: the entry is longer than 10000000 bytes (--max-entry)")),
            "{refused}"
        );
        assert_eq!(left_out(&path), (2, BTreeMap::from([(Reason::TooLong, (1, line))])));
        let roomy = Options { most_bytes: 20_000_000, ..Options::default() };
        assert_eq!(read(&path, &roomy).1.len(), 3);
    }
    // An unclosed quote covers the rest of the file, but does not need more memory than the largest
    // allowed entry.
    let open = giant(&folder, "open", ["\"", "many words\n", ""], ["prompt\nfirst\n", ""]);
    assert_eq!(left_out(&open), (1, BTreeMap::from([(Reason::TooLong, (1, 3))])));
}

#[test]
fn text_that_is_no_utf8_is_refused_or_left_out() {
    let folder = lab::folder();
    let cases: [(&str, &[u8], u64); 3] = [
        ("lines", b"{\"prompt\":\"a\"}\n{\"prompt\":\"\xff\xfe\"}\n{\"prompt\":\"b\"}\n", 2),
        ("array", b"[{\"prompt\":\"a\"},\n\n{\"prompt\":\"\xc3\"}, {\"prompt\":\"b\"}]", 3),
        ("csv", b"prompt\na\nb\xe9b\nb\n", 3),
    ];
    for (name, bytes, line) in cases {
        let path = written(&folder, name, bytes);
        let refused = refusal(&path, &Options::default());
        let place = if name == "array" { format!("{line}, entry 2") } else { line.to_string() };
        assert!(
            refused.starts_with(&format!("{name}:{place}: byte ")) && refused.contains("is not UTF-8"),
            "{refused}"
        );
        assert_eq!(left_out(&path), (2, BTreeMap::from([(Reason::NotUtf8, (1, line))])));
    }
}

#[test]
fn files_that_were_cut_off_say_so() {
    let folder = lab::folder();
    let whole = std::fs::read(fixture("sharegpt.json")).unwrap();
    let cut = written(&folder, "cut", &whole[..whole.len() / 2]);
    assert!(refusal(&cut, &Options::default()).contains("not JSON: EOF while parsing"), "{}", refusal(&cut, &skip()));
    let open = written(&folder, "open", b"[{\"prompt\":\"a\"},\n{\"prompt\":\"b\"}\n");
    let refused = refusal(&open, &Options::default());
    assert!(refused.starts_with("open:3: the file ends before its list does: it is truncated"), "{refused}");
    assert_eq!(left_out(&open).0, 2);
    // Deep nesting is rejected by the parser before the stack overflows.
    let deep = format!("[{{\"prompt\":\"a\"}},{}]", "[".repeat(100_000));
    let (kept, skipped) = left_out(&written(&folder, "deep", deep.as_bytes()));
    assert_eq!((kept, skipped.keys().copied().collect::<Vec<_>>()), (1, vec![Reason::Syntax]));
}

#[test]
fn filters_count_what_they_leave_out() {
    let trees = |filter| {
        let options = Options { filter, ..Options::default() };
        let mut dataset = Dataset::open(&fixture("oasst.trees.jsonl"), &options).unwrap();
        let kept: Vec<u64> = dataset.by_ref().map(|record| record.unwrap().place.line).collect();
        (kept, dataset.skipped().0.iter().map(|(reason, skips)| (*reason, skips.count)).collect::<Vec<_>>())
    };
    let turns = Filter { turns: Some("2..".parse().unwrap()), ..Filter::default() };
    assert_eq!(trees(turns), (vec![1], vec![(Reason::Turns, 2)]));
    let chars = Filter { prompt_chars: Some("..18".parse().unwrap()), ..Filter::default() };
    assert_eq!(trees(chars), (vec![1, 2], vec![(Reason::Length, 1)]));
    let answered = Filter { output_tokens: Some("1..".parse().unwrap()), ..Filter::default() };
    assert_eq!(trees(answered), (vec![1, 2], vec![(Reason::Length, 1)]));
    let tokens = Filter { prompt_tokens: Some("400..500".parse().unwrap()), ..Filter::default() };
    let (_, records) = read(&fixture("burstgpt.csv"), &Options { filter: tokens, ..Options::default() });
    assert_eq!(lengths(&records), [(0.0, 472, 18), (113e3, 417, 276)]);
}
