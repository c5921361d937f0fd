//! Tests exported tables in other programs: workbooks in openpyxl and LibreOffice, selected columns,
//! pivots, token events.

use std::process::Command;

use serde_json::Value;

use lab::sweeps::{honest, lab};
use lab::workbooks::{python, recalculated};
use lab::{Ended, Lab};

/// A plan with names that a spreadsheet would execute if they were not texts, a mix, varying
/// lengths, and an axis.
const PLAN: &str = "
sweepline: 1
name: '=cmd|calc'
seed: 8
endpoints:
  '@demo': { engine: mock, mock: { ttft: 2ms, itl: 1ms, slots: 4 } }
models: { '=1+1': { id: tiny } }
scenarios:
  '+short': { base: B1, prompt_tokens: 30, output_tokens: 6 }
  '-long': { base: B1, prompt_tokens: 200, output_tokens: 12 }
  both: { mix: [{ scenario: '+short', share: 0.5 }, { scenario: '-long', share: 0.5 }] }
phases: { fill: 20ms, stabilize: 50ms, measure: 400ms, drain: 5s }
sweeps:
  closed: { matrix: { endpoint: ['@demo'], model: ['=1+1'], scenario: ['+short'], temperature: [0, 0.5], batch_size: [1, 2] } }
  mixed: { matrix: { endpoint: ['@demo'], model: ['=1+1'], scenario: [both], qps: [40] } }
";

/// Returns LibreOffice; `None` in the plain suite, because it takes seconds to open a workbook, or, with a
/// message, if it is not installed.
fn office() -> Option<&'static str> {
    if lab::is_whole() { lab::workbooks::office() } else { None }
}

#[test]
fn a_workbook_is_read_by_others() {
    let Some(python) = python() else { return };
    let lab = Lab::new();
    lab.write("plan.yaml", PLAN);
    honest(&lab.run(&["run", "plan.yaml"]));
    lab.ok(&["export", "plan.yaml", "--columns", "all", "-o", "all.xlsx"]);
    for rows in ["runs", "classes", "lengths", "curves", "requests"] {
        let file = format!("{rows}.json");
        let ended = lab.ok(&["export", "plan.yaml", "--rows", rows, "--format", "json", "-o", &file]);
        let count = serde_json::from_slice::<Value>(&std::fs::read(lab.path().join(&file)).unwrap()).unwrap();
        let count = count.as_array().unwrap().len();
        let noun = if count == 1 { "row" } else { "rows" };
        assert!(ended.stderr.contains(&format!("{file}: {count} {noun} of {rows}\n")), "{}", ended.stderr);
    }
    let mut books = vec![lab.path().join("all.xlsx")];
    books.extend(office().map(|office| recalculated(&lab, office, "all.xlsx")));
    for book in books {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/workbook.py");
        let mut command = Command::new(&python);
        let read = Ended::from(command.arg(script).arg(lab.path()).arg(&book).output().unwrap());
        assert_eq!(read.code, Some(0), "{}: {}{}", book.display(), read.stdout, read.stderr);
        let told = read.json();
        assert!(told["cells"].as_u64() > Some(1_000), "{told}");
    }
}

#[test]
fn a_workbook_has_the_sheets_that_are_asked_for() {
    let Some(python) = python() else { return };
    let lab = lab();
    honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size < 3"]));
    let sheets = |args: &[&str]| {
        lab.ok(&[&["export", "plan.yaml", "-o", "book.xlsx"], args].concat());
        let script = "import openpyxl, sys; print(' '.join(openpyxl.load_workbook(sys.argv[1]).sheetnames))";
        let output = Command::new(&python).args(["-c", script, "book.xlsx"]).current_dir(lab.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    // There is no mix, and only one length.
    assert_eq!(sheets(&[]), "runs curves requests charts chart_data definitions about");
    assert_eq!(sheets(&["--rows", "events,runs"]), "runs events definitions about");
    assert_eq!(sheets(&["--columns", "run_id,ttft_p50_ms"]), "runs curves requests definitions about");
    assert_eq!(sheets(&["--columns", "load,started"]), "runs curves definitions about");
    assert_eq!(sheets(&["--wide"]), "runs definitions about");
    for (args, told) in [
        (&["export", "--format", "xlsx"] as &[&str], "-o FILE"),
        (&["export", "--rows", "runs,requests"], "--format xlsx"),
        (&["export", "--rows", "events", "--format", "parquet"], "-o FILE"),
        (&["export", "--wide", "--rows", "requests"], "--wide"),
        (&["export", "--wide", "-o", "x.parquet"], "Parquet"),
        (&["export", "--columns", "ttft_p50_ms", "-o", "x.parquet"], "all columns"),
    ] {
        let ended = lab.run(args);
        assert!(ended.code == Some(2) && ended.stderr.contains(told), "{args:?}: {ended:?}");
    }
}

#[test]
fn columns_are_chosen_by_name_and_pattern() {
    let lab = lab();
    honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size < 3"]));
    let header = |args: &[&str]| {
        let ended = lab.ok(&[&["export"], args].concat());
        ended.stdout.lines().next().unwrap().to_owned()
    };
    assert_eq!(
        header(&["--columns", "repeat,ttft_p50*,endpoint"]),
        "repeat,ttft_p50_ms,ttft_p50_low_ms,ttft_p50_high_ms,endpoint"
    );
    assert_eq!(
        header(&["--rows", "requests", "--columns", "request,*_from_schedule_ms"]),
        "request,ttft_from_schedule_ms,e2e_from_schedule_ms"
    );
    assert_eq!(header(&["--format", "markdown", "--columns", "run_id"]).split_whitespace().nth(1), Some("run_id"));
    let rows = lab.ok(&["export", "--format", "json", "--columns", "batch_size,ttft_p50_ms"]).json();
    let row = rows[0].as_object().unwrap();
    assert_eq!(row.keys().collect::<Vec<_>>(), ["batch_size", "ttft_p50_ms"]);
    for (columns, told) in [
        ("ttft_p50ms", "did you mean `ttft_p50_ms`?"),
        ("run_id,nothing_like_it", "`nothing_like_it`: `sweepline schema export`"),
    ] {
        for format in ["csv", "xlsx"] {
            let ended = lab.run(&["export", "--columns", columns, "--format", format, "-o", "out"]);
            assert!(ended.code == Some(2) && ended.stderr.contains(told), "{columns}: {ended:?}");
            assert!(!lab.path().join("out").exists());
        }
    }
}

#[test]
fn a_pivot_has_loads_across_and_metrics_down() {
    let lab = lab();
    honest(&lab.run(&["run", "plan.yaml"]));
    let wide =
        lab.ok(&["export", "plan.yaml", "--wide", "--format", "json", "--columns", "requests,e2e_p50_ms"]).json();
    let long = lab.ok(&["export", "plan.yaml", "--format", "json"]).json();
    let rows = wide.as_array().unwrap();
    let names: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
    let head = ["plan", "sweep", "endpoint", "model", "scenario", "repeat", "analysis", "metric", "unit"];
    let loads = ["batch_1", "batch_2", "batch_3", "qps_40", "qps_60"];
    assert_eq!(names, [&head[..], &loads].concat());
    assert_eq!(rows.len(), 4, "two metrics of two sweeps");
    let mut values = 0;
    for run in long.as_array().unwrap() {
        let load = match run["qps"].as_f64() {
            Some(qps) => format!("qps_{qps}"),
            None => format!("batch_{}", run["batch_size"]),
        };
        for metric in ["requests", "e2e_p50_ms"] {
            let row = rows.iter().find(|row| row["sweep"] == run["sweep"] && row["metric"] == metric).unwrap();
            assert_eq!(row[&load], run[metric], "{load} {metric}");
            values += usize::from(row[&load] != Value::Null);
        }
    }
    assert_eq!(values, 10);
    // Without the plan, a run with a different window length has the same name.
    let text = std::fs::read_to_string(lab.path().join("plan.yaml")).unwrap();
    lab.write("again.yaml", &text.replace("measure: 200ms", "measure: 201ms"));
    honest(&lab.run(&["run", "again.yaml", "--only", "batch_size == 1"]));
    let ended = lab.run(&["export", "--wide"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("give a PLAN"), "{ended:?}");
    lab.ok(&["export", "again.yaml", "--wide"]);
}

#[test]
fn token_events_are_those_of_the_rows() {
    let lab = lab();
    honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size == 2"]));
    let run = lab.only_run();
    let rows = lab.ok(&["export", "--rows", "events", "--format", "json"]).json();
    let mut rows = rows.as_array().unwrap().iter();
    for record in &run.records {
        let Some(first) = record.row.first_token_ns else { continue };
        let mut offset = 0;
        for event in 0..=record.gaps_ns.len() {
            let row = rows.next().unwrap();
            let gap = event.checked_sub(1).map(|before| record.gaps_ns[before]);
            offset += gap.unwrap_or(0);
            assert_eq!((&row["request"], &row["event"]), (&record.row.request.into(), &event.into()));
            assert_eq!((&row["gap_ns"], &row["offset_ns"]), (&gap.into(), &offset.into()));
            assert_eq!(row["at_ns"], first + offset);
        }
    }
    assert!(rows.next().is_none());
}

#[test]
fn chosen_runs_are_exported() {
    let lab = lab();
    honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size < 3"]));
    let rows = |flags: &[&str]| {
        let rows = lab.ok(&[&["export", "plan.yaml", "--format", "json"], flags].concat()).json();
        rows.as_array().unwrap().iter().map(|row| row["batch_size"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let all = rows(&["--only", "batch_size < 3"]);
    assert!(all.contains(&1) && all.contains(&2), "{all:?}");
    let ones = rows(&["--only", "batch_size == 1"]);
    assert!(!ones.is_empty() && ones.iter().all(|batch| *batch == 1) && ones.len() < all.len(), "{ones:?}");
    assert_eq!(rows(&["--only", "batch_size < 3", "--skip", "batch_size == 2"]), ones);
    for (flags, told) in [
        (&["--only", "batch_size == 1"] as &[&str], "name the PLAN"),
        (&["plan.yaml", "--format", "parquet", "--skip", "batch_size == 1"], "contains every run"),
        (&["plan.yaml", "--only", "batch_size == 77"], "--only"),
    ] {
        let wrong = lab.run(&[&["export"], flags].concat());
        assert!(wrong.code == Some(2) && wrong.stderr.contains(told), "{flags:?}: {}", wrong.stderr);
    }
}

/// Two servers that differ only in a flag and a version, under closed loops, with an objective and a price.
const TWINS: &str = "
sweepline: 1
name: twins
seed: 4
slo: { ttft: { p50: 9ms } }
validity: { client_late: { suspect: 100%, invalid: 100% } }
endpoints:
  one: &one
    engine: mock
    mock: { ttft: 2ms, itl: 1ms, slots: 4 }
    hardware: { gpu: H100, gpus: 2, price_per_hour: 4.5 }
    server: { version: 0.33.0, tensor_parallel: 2, flags: { max_num_seqs: 64 } }
  two: { <<: *one, server: { version: 0.33.1, tensor_parallel: 2, flags: { max_num_seqs: 128 } } }
models: { m: { id: tiny, precision: fp8 } }
phases: { fill: 20ms, stabilize: 50ms, measure: 400ms, drain: 5s }
sweeps:
  closed: { matrix: { endpoint: [one, two], model: [m], scenario: [B1], prompt_tokens: [40], output_tokens: [6], batch_size: [1, 2] }, repeats: 2 }
";

#[test]
fn facts_of_servers_are_columns_and_those_that_differ_are_shown() {
    let lab = Lab::new();
    lab.write("plan.yaml", TWINS);
    honest(&lab.run(&["run", "plan.yaml"]));
    let text = lab.ok(&["export", "plan.yaml"]).stdout;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let at = |name: &str| header.iter().position(|column| column == name);
    let first: Vec<&str> = header.iter().take(8).map(String::as_str).collect();
    let told = ["output_tokens", "prompt_tokens", "engine_version", "declared.flags.max_num_seqs"];
    assert_eq!(first[..4], ["sweep", "endpoint", "engine", "model"], "{header:?}");
    assert!((20..=40).contains(&header.len()) && header.last().unwrap() == "run_id", "{header:?}");
    for name in told {
        assert!(at(name).is_some(), "{name} distinguishes rows: {header:?}");
    }
    // Columns with equal values in all rows, or only nulls, are omitted by default.
    for name in ["gpu", "precision", "declared.tensor_parallel", "qps", "errors", "given_up", "ttft_p999_ms"] {
        assert!(at(name).is_none(), "{name}: {header:?}");
    }
    let flags = |endpoint: &str| -> Vec<&str> {
        let of = rows.iter().filter(|row| &row[at("endpoint").unwrap()] == endpoint);
        of.map(|row| &row[at("declared.flags.max_num_seqs").unwrap()]).collect()
    };
    assert_eq!((flags("one"), flags("two")), (vec!["64"; 4], vec!["128"; 4]));

    let all = lab.ok(&["export", "plan.yaml", "--columns", "all"]).stdout;
    let json = lab.ok(&["export", "plan.yaml", "--format", "json"]).json();
    let row = json[0].as_object().unwrap();
    let names: Vec<&str> = row.keys().map(String::as_str).collect();
    assert_eq!(all.lines().next().unwrap(), names.join(","));
    assert!(names.len() > 350, "JSON has them all: {}", names.len());
    let facts = [
        ("engine", "mock".into()),
        ("engine_version", "0.33.0".into()),
        ("api", "chat".into()),
        ("gpu", "H100".into()),
        ("gpus", 2.into()),
        ("model_id", "tiny".into()),
        ("precision", "fp8".into()),
        ("tokenizer", Value::Null),
        ("prompt_length", 40.into()),
        ("output_length", 6.into()),
        ("price_per_hour", 4.5.into()),
        ("objective_limits", "ttft p50 ≤ 9ms".into()),
        ("declared.tensor_parallel", "2".into()),
        ("server_address", Value::Null),
    ];
    for (name, value) in facts {
        assert_eq!(row[name], value, "{name}");
    }
    assert!(row["window_s"].as_f64().is_some_and(|window| window >= 0.4), "{}", row["window_s"]);
    // This is the answer of `curves` for a load that has only this run.
    assert!(["holds", "misses", "undecided"].contains(&row["objective"].as_str().unwrap()), "{row:?}");

    // Values in the record do not need a plan; values that only a plan contains are null.
    let planless = lab.ok(&["export", "--format", "json"]).json();
    assert_eq!((&planless[0]["gpu"], &planless[0]["price_per_hour"]), (&"H100".into(), &Value::Null));
    assert_eq!((&planless[0]["objective"], &planless[0]["objective_limits"]), (&Value::Null, &Value::Null));

    let markdown = lab.ok(&["export", "plan.yaml", "--format", "markdown"]).stdout;
    let shown =
        markdown.lines().next().unwrap().trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().join(",");
    assert_eq!(shown, header.join(","));
    // An export may replace the file of an earlier one, whatever columns it has.
    lab.ok(&["export", "plan.yaml", "-o", "runs.csv"]);
    lab.ok(&["export", "plan.yaml", "--columns", "all", "-o", "runs.csv"]);
    lab.ok(&["export", "plan.yaml", "-o", "runs.csv"]);
}

#[test]
fn a_workbook_has_charts_of_its_own_numbers() {
    let Some(python) = python() else { return };
    let lab = Lab::new();
    lab.write("plan.yaml", TWINS);
    honest(&lab.run(&["run", "plan.yaml"]));
    lab.ok(&["export", "plan.yaml", "-o", "book.xlsx"]);
    lab.ok(&["export", "plan.yaml", "--rows", "curves", "--format", "json", "-o", "curves.json"]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/charts.py");
    let read = |book: &std::path::Path| {
        let mut command = Command::new(&python);
        let ended = Ended::from(command.arg(script).arg(book).arg(lab.path().join("curves.json")).output().unwrap());
        assert_eq!(ended.code, Some(0), "{}: {}{}", book.display(), ended.stdout, ended.stderr);
        ended.json()
    };
    let told = read(&lab.path().join("book.xlsx"));
    // There are two curves with two loads each, for throughput, TTFT and TPOT. With two repeats, each
    // load has an interval.
    assert!(told["compared"].as_u64() >= Some(12) && told["charts"].as_u64() >= Some(3), "{told}");
    assert!(told["errors"].as_u64() >= Some(6) && told["limits"] == 1, "{told}");
    // If columns are named, the table has only these columns.
    lab.ok(&["export", "plan.yaml", "--columns", "endpoint,load", "-o", "few.xlsx"]);
    let names = "import openpyxl, sys; print(' '.join(openpyxl.load_workbook(sys.argv[1]).sheetnames))";
    let output = Command::new(&python).args(["-c", names, "few.xlsx"]).current_dir(lab.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "runs curves requests definitions about");
    if let Some(office) = office() {
        recalculated(&lab, office, "book.xlsx");
    }
}

#[test]
fn a_table_that_is_longer_than_a_sheet_is_refused_before_a_workbook_is_written() {
    let lab = lab();
    honest(&lab.run(&["run", "plan.yaml"]));
    let limited = |args: &[&str]| {
        let mut command = lab.command(&[&["export", "plan.yaml"], args].concat());
        Ended::from(command.env("SWEEPLINE_XLSX_ROWS", "4").output().unwrap())
    };
    // The plan has five runs, and each of them several requests and many token events.
    for rows in ["runs", "requests", "events", "runs,requests"] {
        let refused = limited(&["--rows", rows, "-o", "long.xlsx"]);
        assert_eq!(refused.code, Some(2), "{rows}: {}", refused.stderr);
        for word in ["(4)", ".csv", ".parquet"] {
            assert!(refused.stderr.contains(word), "{rows}: {word}: {}", refused.stderr);
        }
        assert!(!lab.path().join("long.xlsx").exists(), "{rows}: no file is written");
    }
    // An earlier workbook stays as it is, and fewer rows fit.
    let written = limited(&["--only", "sweep == 'open'", "-o", "book.xlsx"]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    assert!(written.stderr.contains("requests do not fit in a sheet"), "{}", written.stderr);
    let book = std::fs::read(lab.path().join("book.xlsx")).unwrap();
    assert_eq!(limited(&["--rows", "requests", "-o", "book.xlsx"]).code, Some(2));
    assert_eq!(std::fs::read(lab.path().join("book.xlsx")).unwrap(), book);
    for file in ["long.csv", "long.parquet"] {
        assert_eq!(limited(&["--rows", "requests", "-o", file]).code, Some(0), "{file} has no such limit");
    }
}
