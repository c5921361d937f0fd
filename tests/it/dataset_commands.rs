//! Tests `sweepline dataset`: inspection of files, one common format, samples, and anonymous
//! profiles.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StructBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::dataset::fixture;
use lab::Lab;

fn path(name: &str) -> String {
    fixture(name).to_str().unwrap().to_owned()
}

/// Returns the JSON of `inspect` for a file, without the fields that describe the file rather than
/// its records.
fn records(lab: &Lab, file: &str, flags: &[&str]) -> Value {
    let mut found = lab.ok(&[&["dataset", "inspect", file, "--format", "json"], flags].concat()).json();
    lab.follows("inspect", &found);
    for key in ["file", "format", "container", "bytes", "sha256", "left_out"] {
        found.as_object_mut().unwrap().remove(key).expect(key);
    }
    found
}

#[test]
fn a_file_is_looked_into() {
    let lab = Lab::new();
    std::fs::copy(fixture("sharegpt.json"), lab.path().join("chat.json")).unwrap();
    insta::assert_snapshot!(lab.ok(&["dataset", "inspect", "chat.json"]).stdout, @r"
    chat.json: sharegpt, JSON array, 1066 bytes
    sha256 faee7a978fa6f099b2194d23257d2eafae2feb9b48fbee3e272b97ed9fb82db9

    3 records with 4 requests; 3 with text

                          records  min  p50  mean  p90  p99  max
    requests of a record  3        1    1    1.33  2    2    2
    prompt tokens         3        4    12   11.7  19   19   19   estimated: characters / 4
    output tokens         3        12   15   16.3  22   22   22   estimated: characters / 4

    skipped 1: nothing to send (first at 28, entry 4: no user message and no prompt tokens)
    ");
    std::fs::copy(fixture("mooncake.jsonl"), lab.path().join("trace.jsonl")).unwrap();
    insta::assert_snapshot!(lab.ok(&["dataset", "inspect", "trace.jsonl"]).stdout, @r"
    trace.jsonl: mooncake, JSON lines, 432 bytes
    sha256 fb1133845989155cc8bdb1cabd4cdc2f8fe9768f215e802a40e95d378569ed5d

    5 records with 5 requests; 0 with text

                          records  min  p50   mean  p90   p99   max
    requests of a record  5        1    1     1.00  1     1     1
    prompt tokens         5        400  1300  1252  2000  2000  2000  declared by the file
    output tokens         5        9    52    141   500   500   500   declared by the file

    times: 3.00 s from first to last, 1.67 records/s
    distinct blocks of 512 tokens: 6
    ");
    let json = lab.ok(&["dataset", "inspect", &path("oasst.trees.jsonl"), "--format", "json"]).json();
    assert_eq!((&json["format"], &json["container"]), (&"oasst".into(), &"JSON lines".into()));
    assert_eq!(json["languages"], json!({ "de": 1, "en": 2 }));
    assert_eq!((&json["turns"]["max"], &json["requests"]), (&2.into(), &4.into()));
    let broken = lab.run(&["dataset", "inspect", &path("azure_broken.csv")]);
    assert_eq!((broken.code, broken.stdout.as_str()), (Some(2), ""));
    assert!(broken.stderr.contains("azure_broken.csv:3: `TIMESTAMP` is `2023-13-45"), "{}", broken.stderr);
    let absent = lab.run(&["dataset", "inspect", "absent.json"]);
    assert_eq!(absent.code, Some(2));
    assert!(absent.stderr.contains("cannot read absent.json: No such file"), "{}", absent.stderr);
}

#[test]
fn flags_say_how_a_file_is_read() {
    let lab = Lab::new();
    let count = |file: &str, flags: &[&str]| {
        let json = lab.ok(&[&["dataset", "inspect", &path(file), "--format", "json"], flags].concat()).json();
        (json["records"].as_u64().unwrap(), json["left_out"].clone())
    };
    assert_eq!(count("azure_broken.csv", &["--skip-bad"]).1["unsorted"]["first"], 4);
    assert_eq!(count("burstgpt.csv", &["--as", "burstgpt", "--prompt-tokens", "400..1100"]).0, 3);
    assert_eq!(count("burstgpt.csv", &["--output-tokens", "..60"]).0, 2);
    assert_eq!(count("sharegpt.json", &["--prompt-chars", "..20"]).0, 1);
    assert_eq!(count("sharegpt.json", &["--turns", "2.."]).0, 1);
    assert_eq!(count("oasst.trees.jsonl", &["--language", "de,fr"]).0, 1);
    let (kept, left_out) = count("sharegpt.json", &["--skip-bad", "--max-entry", "500B"]);
    assert_eq!((kept, &left_out["too_long"]["count"]), (3, &Value::Null), "{left_out}");
    assert_eq!(count("sharegpt.json", &["--skip-bad", "--max-entry", "250"]).1["too_long"]["count"], 3);
    let map = "time=Timestamp,input_tokens=Request tokens";
    let span = |unit: &str| {
        let flags = ["--map", map, "--time-unit", unit];
        records(&lab, &path("burstgpt.csv"), &flags)["span_s"].as_f64().unwrap()
    };
    assert_eq!([span("s"), span("ms"), span("us"), span("ns")], [180.0, 0.18, 0.00018, 0.00000018]);
    for (flags, told) in [
        (["--map", "prompt"], "`prompt` is not a mapping: write FIELD=COLUMN"),
        (["--map", "promt=x"], "`promt` is not a known column meaning: write one of prompt, output"),
        (["--turns", "5..2"], "the range `5..2` is empty"),
        (["--max-entry", "10 elephants"], "`10 elephants` is not a size: write it like 10MB"),
        (["--prompt-tokens", "999999.."], "no records remain; check the filters"),
    ] {
        let file = path("burstgpt.csv");
        let refused = lab.run(&[&["dataset", "convert", &file, "-o", "out.jsonl"], &flags[..]].concat());
        assert!(refused.code == Some(2) && refused.stderr.contains(told), "{refused:?}");
    }
    assert!(!lab.path().join("out.jsonl").exists());
}

#[test]
fn every_format_becomes_one_that_is_read_alike() {
    let lab = Lab::new();
    for name in ["sharegpt.json", "longbench.json", "oasst.trees.jsonl", "mooncake.jsonl", "burstgpt_sessions.csv"] {
        let file = path(name);
        let before = records(&lab, &file, &[]);
        let said = lab.ok(&["dataset", "convert", &file, "-o", "own.jsonl", "--force"]);
        assert!(said.stdout.is_empty() && said.stderr.contains(" in own.jsonl"), "{said:?}");
        assert_eq!(records(&lab, "own.jsonl", &[]), before, "{name}");
        lab.ok(&["dataset", "convert", "own.jsonl", "--output", "own.parquet", "--force"]);
        assert_eq!(records(&lab, "own.parquet", &["--as", "columns"]), before, "{name}");
        lab.ok(&["dataset", "convert", "own.parquet", "-o", "again.jsonl", "--force"]);
        let text = |name: &str| std::fs::read_to_string(lab.path().join(name)).unwrap();
        assert_eq!(text("again.jsonl"), text("own.jsonl"), "{name}: there and back");
    }
    let refused = lab.run(&["dataset", "convert", &path("azure_broken.csv"), "-o", "own.jsonl", "--force"]);
    assert_eq!(refused.code, Some(2));
    assert!(std::fs::read_to_string(lab.path().join("own.jsonl")).unwrap().contains("\"input_tokens\""), "unchanged");
    let nowhere = lab.run(&["dataset", "convert", &path("own.jsonl"), "-o", "nowhere/own.jsonl"]);
    assert!(nowhere.code == Some(2) && nowhere.stderr.contains("cannot write nowhere/own.jsonl"), "{nowhere:?}");
}

/// Writes a Parquet file as found on model hubs: snappy compression, conversations as lists of objects,
/// times as timestamps.
fn parquet_file(lab: &Lab) {
    let text = || Box::new(StringBuilder::new());
    let fields = vec![Field::new("content", DataType::Utf8, true), Field::new("role", DataType::Utf8, true)];
    let mut talks = ListBuilder::new(StructBuilder::new(fields, vec![text(), text()]));
    for (question, answer) in [("What is a fen?", "A wetland."), ("And a bog?", "An acid one.")] {
        for (content, role) in [(question, "user"), (answer, "assistant")] {
            talks.values().field_builder::<StringBuilder>(0).unwrap().append_value(content);
            talks.values().field_builder::<StringBuilder>(1).unwrap().append_value(role);
            talks.values().append(true);
        }
        talks.append(true);
    }
    let columns: [(&str, ArrayRef); 4] = [
        ("conversation_id", Arc::new(StringArray::from(vec!["one", "two"]))),
        ("conversation", Arc::new(talks.finish())),
        ("created", Arc::new(TimestampMicrosecondArray::from(vec![1_700_000_000_000_000, 1_700_000_000_250_000]))),
        ("score", Arc::new(Int64Array::from(vec![5, 6]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let snappy = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let file = std::fs::File::create(lab.path().join("hub.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(snappy)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn parquet_is_read_by_its_columns() {
    let lab = Lab::new();
    parquet_file(&lab);
    let map = ["--map", "messages=conversation,id=conversation_id,time=created"];
    let convert = |flags: &[&str]| {
        lab.run(&[&["dataset", "convert", "hub.parquet", "-o", "own.jsonl", "--force"], flags].concat())
    };
    assert_eq!(convert(&map).code, Some(0));
    let own = std::fs::read_to_string(lab.path().join("own.jsonl")).unwrap();
    let lines: Vec<Value> = own.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[1]["messages"][0], json!({ "role": "user", "content": "And a bog?" }));
    assert_eq!((&lines[1]["offset_ns"], &lines[1]["id"]), (&250_000_000.into(), &"two".into()));
    for (map, told) in [
        ("prompt=question", "it lacks the column question (it has conversation_id, conversation, created, score)"),
        ("prompt=score", "hub.parquet:row 1: `score` is `5`, not text"),
        (
            "messages=conversation,id=created,input_tokens=conversation_id",
            "row 1: `conversation_id` is `one`, not a number",
        ),
    ] {
        let refused = convert(&["--map", map]);
        assert!(refused.code == Some(2) && refused.stderr.contains(told), "{refused:?}");
    }
    let small = convert(&[&map[..], &["--max-entry", "39", "--skip-bad"]].concat());
    assert!(small.stderr.contains("skipped 1: longer than --max-entry (first at 1:"), "{small:?}");
    // A file that is truncated anywhere, or has any byte changed, gives an error or figures, never
    // a panic.
    let whole = std::fs::read(lab.path().join("hub.parquet")).unwrap();
    for at in (0..whole.len()).step_by(61) {
        let mut changed = whole.clone();
        changed[at] ^= 0x55;
        for bytes in [&whole[..at], &changed[..]] {
            std::fs::write(lab.path().join("damaged.parquet"), bytes).unwrap();
            let damaged = lab.run(&[&["dataset", "inspect", "damaged.parquet"], &map[..]].concat());
            assert!([Some(0), Some(2)].contains(&damaged.code), "{at}: {damaged:?}");
        }
    }
}

/// Returns a trace of `count` requests with varying rate, lengths and blocks.
fn trace(count: u64) -> String {
    let line = |at: u64| {
        let (input, output) = (600 + at % 7 * 400, 10 + at % 5 * 30);
        let own = (1..input.div_ceil(512)).map(|block| 1000 * (at + 1) + block);
        let blocks: Vec<u64> = std::iter::once(at % 4).chain(own).collect();
        let timestamp = at * 100 + at % 3 * 7;
        json!({ "timestamp": timestamp, "input_length": input, "output_length": output, "hash_ids": blocks })
    };
    (0..count).map(|at| format!("{}\n", line(at))).collect()
}

#[test]
fn a_sample_is_a_matter_of_its_seed() {
    let lab = Lab::new();
    lab.write("trace.jsonl", &trace(100));
    let lines = |flags: &[&str]| {
        lab.ok(&[&["dataset", "sample", "trace.jsonl", "--output", "some.jsonl", "--force"], flags].concat());
        let text = std::fs::read_to_string(lab.path().join("some.jsonl")).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let ten = lines(&["--n", "10", "--seed", "1"]);
    assert_eq!(ten.iter().collect::<BTreeSet<_>>().len(), 10, "none is repeated");
    assert_eq!(ten, lines(&["--n", "10", "--seed", "1"]));
    assert_ne!(ten, lines(&["--n", "10", "--seed", "2"]));
    let thirty = lines(&["--n", "30", "--seed", "1"]);
    assert!(ten.iter().all(|line| thirty.contains(line)), "a larger sample contains the smaller one");
    let all = lines(&["--n", "1000"]);
    let offsets: Vec<u64> =
        all.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["offset_ns"].as_u64().unwrap()).collect();
    assert_eq!(all.len(), 100);
    assert!(offsets.is_sorted(), "in the order of the file");
    let said = lab.ok(&["dataset", "sample", "trace.jsonl", "--n", "1000", "-o", "some.parquet"]).stderr;
    assert!(said.contains("100 of 100 records in some.parquet, all of the file"), "{said}");
}

#[test]
fn a_profile_is_made_of_ranges() {
    let lab = Lab::new();
    lab.write("trace.jsonl", &trace(400));
    lab.ok(&["dataset", "profile", "trace.jsonl", "--output", "profile.json"]);
    let text = std::fs::read_to_string(lab.path().join("profile.json")).unwrap();
    let profile: Value = serde_json::from_str(&text).unwrap();
    let schema = lab.ok(&["schema", "profile"]).json();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&profile), "{text}");
    let sum =
        |list: &Value, key: &str| list.as_array().unwrap().iter().map(|one| one[key].as_u64().unwrap()).sum::<u64>();
    let lengths = &profile["lengths"];
    assert_eq!(sum(&lengths["buckets"], "requests") + lengths["suppressed"].as_u64().unwrap(), 400);
    assert_eq!(sum(&profile["arrivals"]["stretches"], "requests"), 400);
    let seconds: f64 =
        profile["arrivals"]["stretches"].as_array().unwrap().iter().map(|one| one["seconds"].as_f64().unwrap()).sum();
    assert!((seconds - profile["arrivals"]["seconds"].as_f64().unwrap()).abs() < 0.01, "{text}");
    // Each of four first blocks is shared by a hundred requests, which share nothing else.
    let class = &profile["prefixes"]["classes"][0];
    assert_eq!((&class["groups"], &class["requests"], &class["shared_tokens"]), (&4.into(), &400.into(), &512.into()));
    for k in [2, 10, 50, 400] {
        let profile = lab.ok(&["dataset", "profile", "trace.jsonl", "--k", &k.to_string()]).json();
        let counts = |list: &Value| {
            list.as_array().unwrap().iter().map(|one| one["requests"].as_u64().unwrap()).collect::<Vec<_>>()
        };
        let all = [&profile["lengths"]["buckets"], &profile["arrivals"]["stretches"], &profile["prefixes"]["classes"]];
        assert!(all.into_iter().flat_map(counts).all(|count| count >= k), "k = {k}: {profile}");
    }
    let few = lab.run(&["dataset", "profile", "trace.jsonl", "--k", "401"]);
    assert!(few.code == Some(2) && few.stderr.contains("with k = 401 needs at least 401 requests"), "{few:?}");
    // Two rare requests that differ from all others leave no trace in the profile.
    let odd =
        trace(400) + &"{\"timestamp\":99999,\"input_length\":77777,\"output_length\":1,\"hash_ids\":[]}\n".repeat(2);
    lab.write("odd.jsonl", &odd);
    let profile = lab.ok(&["dataset", "profile", "odd.jsonl"]).json();
    assert_eq!(profile["lengths"]["suppressed"], 2, "{profile}");
    assert!(
        profile["lengths"]["buckets"].as_array().unwrap().iter().all(|one| one["prompt"][1].as_u64().unwrap() < 77_777)
    );
}

/// Collects all strings of a value, including keys.
fn strings(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => drop(found.insert(text.clone())),
        Value::Array(list) => list.iter().for_each(|one| strings(one, found)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            found.insert(key.clone());
            strings(value, found);
        }),
        _ => {}
    }
}

/// Returns the words with four or more letters.
fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= 4);
    words.map(str::to_lowercase).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// A profile does not contain any text of its log: no words, no names and no dates. Its only strings
    /// are those of its format. The log's numbers are longer than any length or count in the profile, so
    /// they cannot coincide by chance.
    #[test]
    fn no_word_of_the_input_is_in_a_profile(
        talks in prop::collection::vec((prop::collection::vec("[a-zA-Zäöü]{1,12}", 1..30), "[a-z]{4,9}-[0-9]{9,12}", 0u32..3), 3..40),
    ) {
        let folder = lab::folder();
        let file = folder.path().join("log.jsonl");
        let mut said = BTreeSet::new();
        let mut log = String::new();
        for (at, (talk, user, language)) in talks.iter().enumerate() {
            let text = talk.join(" ");
            let language = ["english", "deutsch", "français"][*language as usize];
            let line = json!({
                "id": format!("{user}-{at}"), "conversation": user, "language": language,
                "offset_ns": 1_731_234_567_000_000_000u64 + at as u64 * 1_000_000_007,
                "messages": [{ "role": "system", "content": text.repeat(200) }, { "role": "user", "content": text },
                             { "role": "assistant", "content": text.to_uppercase() }],
            });
            for part in [&text, &text.repeat(200), &text.to_uppercase(), user, language, "1731234567"] {
                said.extend(words(part));
            }
            log.push_str(&format!("{line}\n"));
        }
        std::fs::write(&file, log).unwrap();
        let mut profiler = sweepline::dataset::profile::Profiler::default();
        for record in sweepline::dataset::Dataset::open(&file, &Default::default()).unwrap() {
            profiler.add(&record.unwrap());
        }
        let profile = serde_json::to_value(profiler.finish(2).unwrap()).unwrap();
        let form: Value = serde_json::from_str(include_str!("../../schemas/profile.schema.json")).unwrap();
        let (mut of_form, mut of_profile) = (BTreeSet::new(), BTreeSet::new());
        strings(&form, &mut of_form);
        strings(&profile, &mut of_profile);
        prop_assert!(of_profile.is_subset(&of_form), "{:?}", of_profile.difference(&of_form).collect::<Vec<_>>());
        let own: BTreeSet<String> = of_profile.iter().flat_map(|text| words(text)).collect();
        let told = words(&profile.to_string());
        let leaked: Vec<_> = told.intersection(&said).filter(|word| !own.contains(*word)).collect();
        prop_assert!(leaked.is_empty(), "{leaked:?} of the input in {profile}");
    }
}
