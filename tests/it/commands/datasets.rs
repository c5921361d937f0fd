//! Cases of the commands that read data sets. The four of them read files alike, and have the same flags for this.

use std::path::Path;

use lab::Lab;

use super::cases::Effect::{Omits, Prints, Writes};
use super::cases::{Case, Prepared, case};

const INSPECT: &[Case] = &[
    case("dataset inspect questions.csv", "--map prompt=question", Prints("2 records")),
    case("dataset inspect timed.csv --map time=at,input_tokens=length", "--time-unit ms", Prints("times: 120 s")),
    case("dataset inspect sharegpt_broken.json", "--skip-bad", Prints("2 records")),
    case("dataset inspect sharegpt.json", "--max-entry 250", Prints("longer than 250 bytes")).ends(2),
    case("dataset inspect burstgpt.csv", "--as azure", Prints("it lacks the column TIMESTAMP")).ends(2),
    case("dataset inspect burstgpt.csv", "--prompt-tokens 400..1100", Prints("3 records")),
    case("dataset inspect sharegpt.json", "--prompt-chars ..20", Prints("1 record")),
    case("dataset inspect burstgpt.csv", "--output-tokens ..60", Prints("2 records with")),
    case("dataset inspect sharegpt.json", "--turns 2..", Prints("1 record")),
    case("dataset inspect oasst.trees.jsonl", "--language de", Prints("1 record")),
    case("dataset inspect burstgpt.csv", "--format json", Prints("\"records\": 4")),
];

const CONVERT: &[Case] = &[
    case("dataset convert questions.csv -o new", "--map prompt=question", Writes("new", "Plain and short?")),
    case(
        "dataset convert timed.csv --map time=at,input_tokens=length -o new",
        "--time-unit ms",
        Writes("new", "\"offset_ns\":120000000000}"),
    ),
    case("dataset convert sharegpt_broken.json -o new", "--skip-bad", Writes("new", "Another that is well.")),
    case("dataset convert sharegpt.json -o new", "--max-entry 250", Prints("longer than 250 bytes")).ends(2),
    case("dataset convert burstgpt.csv -o new", "--as azure", Prints("it lacks the column TIMESTAMP")).ends(2),
    case("dataset convert burstgpt.csv -o new", "--prompt-tokens 400..1100", Prints("3 records of")),
    case("dataset convert sharegpt.json -o new", "--prompt-chars ..20", Prints("1 records of")),
    case("dataset convert burstgpt.csv -o new", "--output-tokens ..60", Prints("2 records of")),
    case("dataset convert sharegpt.json -o new", "--turns 2..", Prints("1 records of")),
    case("dataset convert oasst.trees.jsonl -o new", "--language de", Prints("1 records of")),
    case("dataset convert burstgpt.csv", "--output new", Writes("new", "input_tokens")),
    case("dataset convert burstgpt.csv -o taken", "--force", Writes("taken", "input_tokens")),
];

const SAMPLE: &[Case] = &[
    case("dataset sample questions.csv --n 9 -o new", "--map prompt=question", Writes("new", "Plain and short?")),
    case(
        "dataset sample timed.csv --map time=at,input_tokens=length --n 9 -o new",
        "--time-unit ms",
        Writes("new", "\"offset_ns\":120000000000}"),
    ),
    case("dataset sample sharegpt_broken.json --n 9 -o new", "--skip-bad", Writes("new", "Another that is well.")),
    case("dataset sample sharegpt.json --n 9 -o new", "--max-entry 250", Prints("longer than 250 bytes")).ends(2),
    case("dataset sample burstgpt.csv --n 9 -o new", "--as azure", Prints("it lacks the column TIMESTAMP")).ends(2),
    case("dataset sample burstgpt.csv --n 9 -o new", "--prompt-tokens 400..1100", Prints("3 of 3 records")),
    case("dataset sample sharegpt.json --n 9 -o new", "--prompt-chars ..20", Prints("1 of 1 record")),
    case("dataset sample burstgpt.csv --n 9 -o new", "--output-tokens ..60", Prints("2 of 2 records")),
    case("dataset sample sharegpt.json --n 9 -o new", "--turns 2..", Prints("1 of 1 record")),
    case("dataset sample oasst.trees.jsonl --n 9 -o new", "--language de", Prints("1 of 1 record")),
    case("dataset sample burstgpt.csv -o new", "--n 2", Prints("2 of 4 records")),
    case("dataset sample burstgpt.csv --n 2 -o new", "--seed 7", Writes("new", "\"input_tokens\":1087")),
    case("dataset sample burstgpt.csv --n 2", "--output new", Writes("new", "input_tokens")),
    case("dataset sample burstgpt.csv --n 2 -o taken", "--force", Writes("taken", "input_tokens")),
];

const PROFILE: &[Case] = &[
    case("dataset profile questions.csv --k 2", "--map prompt=question", Prints("\"requests\": 2")),
    case(
        "dataset profile timed.csv --map time=at,input_tokens=length --k 2",
        "--time-unit ms",
        Prints("\"seconds\": 120.0"),
    ),
    case("dataset profile sharegpt_broken.json --k 2", "--skip-bad", Prints("\"requests\": 2")),
    case("dataset profile sharegpt.json --k 2", "--max-entry 250", Prints("longer than 250 bytes")).ends(2),
    case("dataset profile burstgpt.csv --k 2", "--as azure", Prints("it lacks the column TIMESTAMP")).ends(2),
    case("dataset profile burstgpt.csv --k 2", "--prompt-tokens 400..1100", Prints("\"requests\": 3")),
    case("dataset profile sharegpt.json --k 2", "--prompt-chars ..20", Prints("there are only 1")).ends(2),
    case("dataset profile burstgpt.csv --k 2", "--output-tokens ..60", Omits("\"requests\": 4")),
    case("dataset profile sharegpt.json --k 2", "--turns 2..", Omits("\"requests\": 4")),
    case("dataset profile oasst.trees.jsonl --k 2", "--language de", Prints("there are only 1")).ends(2),
    case("dataset profile burstgpt.csv", "--k 2", Prints("\"k\": 2")),
    case("dataset profile burstgpt.csv --k 2", "--output new", Writes("new", "\"sweepline_profile\": 1")),
    case("dataset profile burstgpt.csv --k 2 -o taken", "--force", Writes("taken", "\"sweepline_profile\": 1")),
];

/// The cases of this file.
pub const CASES: &[&[Case]] = &[INSPECT, CONVERT, SAMPLE, PROFILE];

#[test]
fn flags_change_what_is_read_from_a_file() {
    let lab = Lab::new();
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dataset");
    for name in ["burstgpt.csv", "oasst.trees.jsonl", "questions.csv", "sharegpt.json", "sharegpt_broken.json"] {
        std::fs::copy(files.join(name), lab.path().join(name)).unwrap();
    }
    lab.write("timed.csv", "at,length\n1000,20\n61000,30\n121000,40\n");
    lab.write("taken", "Mine.\n");
    let prepared = Prepared::new(lab);
    for cases in CASES {
        prepared.show(cases);
    }
}
