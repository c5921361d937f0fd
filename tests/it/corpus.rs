//! Kept results: what every command that reads results says of `tests/corpus`.
//!
//! Each folder there has a plan, the results of its runs, and the expected output of each command. The
//! program wrote the results (`tests/corpus/make` writes them anew), so they contain what runs of each kind
//! leave behind. `SWEEPLINE_BLESS=1 cargo test --test it corpus` writes the expected files anew.
//!
//! - Text and JSON are compared byte by byte, with the exit code and stderr.
//! - Exported tables (CSV, Parquet, workbooks, JSON) are compared by column name: the order of columns may
//!   change. A column of more than [`SHOWN`] values is written as its ends and a digest. The JSON of a table
//!   has no other content: a row is one line.
//! - A report is compared as its text and a digest of its HTML.
//!
//! Whatever depends on the day is replaced. Nothing else may depend on the day, the machine or the folder,
//! except the last digits of numbers: the logarithm of another C library or processor may differ from ours by
//! a rounding.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;
use sha2::{Digest, Sha256};

use lab::{Ended, Lab};

/// A column of at most this many values is written in full.
const SHOWN: usize = 20;

/// All folders of the corpus.
const NAMES: [&str; 13] = [
    "capacity",
    "compare",
    "conversations",
    "failures",
    "launch",
    "loops",
    "mix",
    "prefix",
    "protocols",
    "replays",
    "search",
    "telemetry",
    "workers",
];

/// Commands for every folder; `RUN` is a run of its first sweep by name. Each command has
/// the name of its expected file.
const OF_ALL: [(&str, &str); 10] = [
    ("check", "check plan.yaml"),
    ("list", "list --attempts"),
    ("list-json", "list --attempts --format json"),
    ("preview", "preview plan.yaml --all"),
    ("graph-json", "graph plan.yaml --format json"),
    ("show-json", "show RUN --format json"),
    ("curves-json", "curves plan.yaml --format json"),
    ("export-runs-json", "export plan.yaml --rows runs --format json"),
    ("export-requests-json", "export plan.yaml --rows requests --format json"),
    ("report", "report plan.yaml -o report.html"),
];

/// Further commands for a folder.
fn asked_of(name: &str) -> &'static [(&'static str, &'static str)] {
    match name {
        "capacity" => &[
            ("curves", "curves plan.yaml"),
            ("capacity", "capacity plan.yaml"),
            ("capacity-target", "capacity plan.yaml --target-qps 100 --headroom 20% --explain"),
            ("capacity-json", "capacity plan.yaml --target-qps 100 --headroom 20% --format json"),
            ("curves-plot", "curves plan.yaml --plot"),
            ("curves-explain", "curves plan.yaml --explain"),
            ("curves-only", "curves plan.yaml --only endpoint=='two' --set slo.ttft.p90=60ms"),
            ("diagnose", "diagnose plan.yaml"),
            ("diagnose-json", "diagnose plan.yaml --format json"),
            ("decide", "decide plan.yaml --accept sweep=='rates'~and~endpoint=='eight' --because cheap"),
            ("export-runs-csv", "export plan.yaml --rows runs --format csv --columns all"),
            ("export-curves-csv", "export plan.yaml --rows curves --format csv --columns all"),
            ("export-curves-json", "export plan.yaml --rows curves --format json"),
            ("export-wide", "export plan.yaml --wide --format csv"),
        ],
        "compare" => &[
            ("curves", "curves plan.yaml"),
            ("compare", "compare plan.yaml"),
            ("compare-json", "compare plan.yaml --format json"),
            ("compare-markdown", "compare plan.yaml --format markdown"),
            ("compare-gate", "compare plan.yaml --gate --only sweep=='closed'"),
            (
                "compare-by",
                "compare plan.yaml --by endpoint --baseline worse --metrics ttft_p90,error_share --explore --explain",
            ),
            ("compare-write-baseline", "compare plan.yaml --write-baseline baseline.json"),
            ("compare-against", "compare plan.yaml --against baseline.json --margin 2%"),
            ("compare-against-json", "compare plan.yaml --against baseline.json --format json"),
            ("decide", "decide plan.yaml --accept endpoint=='new' --because equal --by someone"),
            ("decide-json", "decide plan.yaml --accept endpoint=='new' --because equal --by someone --format json"),
            ("decide-check", "decide plan.yaml --check"),
            ("diff", "diff plan.yaml --set phases.measure=2s --set sweeps.open.repeats=4"),
            ("diff-json", "diff plan.yaml --set phases.measure=2s --set sweeps.open.repeats=4 --format json"),
            ("diff-markdown", "diff plan.yaml --set phases.measure=2s --set sweeps.open.repeats=4 --format markdown"),
            ("preview-changed", "preview plan.yaml --set sweeps.open.phases.measure=2s"),
            ("preview-force", "preview plan.yaml --force --only endpoint=='new' --format json"),
        ],
        "conversations" => &[
            ("curves", "curves plan.yaml"),
            ("diagnose", "diagnose plan.yaml"),
            ("export-turns-json", "export plan.yaml --rows turns --format json"),
            ("export-turns-csv", "export plan.yaml --rows turns --format csv --columns all"),
            ("export-turns-parquet", "export plan.yaml --rows turns -o turns.parquet"),
            ("export-events-json", "export plan.yaml --rows events --format json"),
            ("export-workbook", "export plan.yaml -o all.xlsx"),
        ],
        "failures" => &[
            ("curves", "curves plan.yaml"),
            ("check-json", "check plan.yaml --format json"),
            ("verify", "verify"),
            ("verify-json", "verify --format json"),
            ("graph", "graph plan.yaml --format text"),
            ("curves-invalid", "curves plan.yaml --include-invalid"),
            ("export-requests-csv", "export plan.yaml --rows requests --format csv --columns all"),
            ("export-requests-parquet", "export plan.yaml --rows requests -o requests.parquet"),
            ("export-events-csv", "export plan.yaml --rows events --format csv --columns all"),
            ("export-events-parquet", "export plan.yaml --rows events -o events.parquet"),
            ("export-runs-csv", "export plan.yaml --rows runs --format csv --columns all"),
            ("export-runs-parquet", "export plan.yaml --rows runs -o runs.parquet"),
            ("export-runs-markdown", "export plan.yaml --rows runs --format markdown"),
            ("export-workbook", "export plan.yaml -o all.xlsx"),
            ("export-no-turns", "export plan.yaml --rows turns --format json"),
            ("preview-redo", "preview plan.yaml --redo invalid,given-up"),
            ("why-run", "why sweep=='refused' --plan plan.yaml"),
            ("why-run-json", "why sweep=='refused' --plan plan.yaml --format json"),
        ],
        "launch" => &[
            ("compare", "compare plan.yaml"),
            ("compare-json", "compare plan.yaml --format json"),
            ("export-runs-csv", "export --rows runs --format csv --columns all"),
            ("verify-json", "verify --format json"),
        ],
        "loops" => &[
            ("curves", "curves plan.yaml"),
            ("graph-dot", "graph plan.yaml"),
            ("graph-mermaid", "graph plan.yaml --format mermaid"),
            ("why-json", "why closed --plan plan.yaml --format json"),
            ("capacity", "capacity plan.yaml"),
            ("diagnose-json", "diagnose plan.yaml --format json"),
            ("export-lengths-json", "export plan.yaml --rows lengths --format json"),
            ("export-lengths-csv", "export plan.yaml --rows lengths --format csv --columns all"),
            ("export-chosen-columns", "export plan.yaml --columns sweep,qps,ttft_*_ms,arrivals --format csv"),
        ],
        "mix" => &[
            ("curves", "curves plan.yaml"),
            ("curves-class", "curves plan.yaml --class chat"),
            ("curves-class-json", "curves plan.yaml --class summary --format json"),
            ("compare-class", "compare plan.yaml --by qps --baseline 20 --class chat --only sweep=='open'"),
            ("export-classes-json", "export plan.yaml --rows classes --format json"),
            ("export-classes-csv", "export plan.yaml --rows classes --format csv --columns all"),
            ("export-classes-parquet", "export plan.yaml --rows classes -o classes.parquet"),
            ("export-lengths-parquet", "export plan.yaml --rows lengths -o lengths.parquet"),
            ("export-curves-parquet", "export plan.yaml --rows curves -o curves.parquet"),
            ("export-workbook", "export plan.yaml -o all.xlsx"),
        ],
        "prefix" => &[
            ("compare", "compare plan.yaml"),
            ("compare-json", "compare plan.yaml --format json"),
            ("diagnose", "diagnose plan.yaml"),
            ("show-definitions", "show RUN --definitions"),
        ],
        "protocols" => &[
            ("export-events-json", "export plan.yaml --rows events --format json"),
            ("export-runs-parquet", "export plan.yaml --rows runs -o runs.parquet"),
        ],
        "replays" => &[
            ("diagnose-json", "diagnose plan.yaml --format json"),
            ("export-events-json", "export plan.yaml --rows events --format json --only sweep=='trace'"),
        ],
        "search" => &[
            ("curves", "curves plan.yaml"),
            ("graph", "graph plan.yaml --format text"),
            ("capacity-json", "capacity plan.yaml --format json"),
            ("why-limit-json", "why limit --plan plan.yaml --format json"),
        ],
        "telemetry" => &[
            ("curves", "curves plan.yaml"),
            ("diagnose", "diagnose plan.yaml"),
            ("diagnose-json", "diagnose plan.yaml --format json"),
            ("export-runs-csv", "export plan.yaml --rows runs --format csv --columns all"),
        ],
        "workers" => &[("export-events-json", "export plan.yaml --rows events --format json")],
        _ => &[],
    }
}

#[test]
fn capacity() {
    read_as_expected("capacity");
}

#[test]
fn compare() {
    read_as_expected("compare");
}

#[test]
fn conversations() {
    read_as_expected("conversations");
}

#[test]
fn failures() {
    read_as_expected("failures");
}

#[test]
fn launch() {
    read_as_expected("launch");
}

#[test]
fn loops() {
    read_as_expected("loops");
}

#[test]
fn mix() {
    read_as_expected("mix");
}

#[test]
fn prefix() {
    read_as_expected("prefix");
}

#[test]
fn protocols() {
    read_as_expected("protocols");
}

#[test]
fn replays() {
    read_as_expected("replays");
}

#[test]
fn search() {
    read_as_expected("search");
}

#[test]
fn telemetry() {
    read_as_expected("telemetry");
}

#[test]
fn workers() {
    read_as_expected("workers");
}

/// Asks every command about a copy of the folder, and compares the answers with the expected files.
fn read_as_expected(name: &str) {
    let lab = copy(name);
    let mut found = BTreeMap::new();
    let ended = run(&lab, "preview plan.yaml --format json");
    let preview = ended.json();
    found.insert("preview-json.txt".to_owned(), as_text(&ended, &ended.stdout));
    // Of each sweep, `why` explains all runs, and `show` shows the first one that has a result.
    let mut shown: BTreeMap<&str, &str> = BTreeMap::new();
    for run in preview["runs"].as_array().unwrap() {
        if let (Some(id), true) = (run["id"].as_str(), run["state"] == "cached") {
            shown.entry(run["sweep"].as_str().unwrap()).or_insert(id);
        }
    }
    for (sweep, id) in &shown {
        found.insert(format!("show-{sweep}.txt"), answer(&lab, &format!("show {id} --plan plan.yaml")));
    }
    for sweep in preview["sweeps"].as_array().unwrap() {
        let sweep = sweep["sweep"].as_str().unwrap();
        found.insert(format!("why-{sweep}.txt"), answer(&lab, &format!("why {sweep} --plan plan.yaml")));
    }
    for (file, command) in OF_ALL.iter().chain(asked_of(name)) {
        let command = command.replace("RUN", shown.values().next().unwrap());
        found.insert(format!("{file}.txt"), answer(&lab, &command));
    }
    compare_with_expected(name, &found);
}

/// Returns the folder of a part of the corpus.
fn folder(name: &str) -> PathBuf {
    lab::root().join("tests/corpus").join(name)
}

/// Returns a copy of a folder, without the expected files.
pub(super) fn copy(name: &str) -> Lab {
    let lab = Lab::new();
    let source = folder(name);
    for file in files(&source) {
        let path = file.strip_prefix(&source).unwrap();
        if path.starts_with("expected") {
            continue;
        }
        let target = lab.path().join(path);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&file, target).unwrap();
    }
    lab
}

/// Returns all files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Runs a command, whose arguments have `~` for spaces. Text is as wide as for a pipe and times are in UTC,
/// wherever the test runs.
fn run(lab: &Lab, command: &str) -> Ended {
    let args: Vec<String> = command.split(' ').map(|arg| arg.replace('~', " ")).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    Ended::from(lab.command(&args).env_remove("COLUMNS").env("TZ", "UTC").output().unwrap())
}

/// Runs a command and returns the text of its expected file: the exit code, stdout, stderr, and the file that
/// it wrote.
fn answer(lab: &Lab, command: &str) -> String {
    let args: Vec<&str> = command.split(' ').collect();
    let ended = run(lab, command);
    let is_table = args[0] == "export" && !command.contains("--wide");
    let stdout = match (is_table, value_after(&args, "--format")) {
        (true, Some("csv")) => of_columns(&csv_table(&ended.stdout)),
        (true, Some("json")) => of_columns(&json_table(&ended)),
        _ => ended.stdout.clone(),
    };
    let mut text = as_text(&ended, &stdout);
    let written = value_after(&args, "-o").or(value_after(&args, "--write-baseline"));
    let written = written.or((args[0] == "decide").then_some("plan.decision.md"));
    let Some(path) = written.map(|name| lab.path().join(name)).filter(|path| path.exists()) else { return text };
    text.push_str("--- file\n");
    let extension = path.extension().unwrap().to_str().unwrap();
    text.push_str(&match extension {
        "html" => of_report(&fs::read_to_string(&path).unwrap()),
        "parquet" => of_columns(&parquet_table(&path)),
        "xlsx" => of_workbook(&path),
        _ => fs::read_to_string(&path).unwrap(),
    });
    if args[0] == "decide" { without_day(&text) } else { text }
}

/// Returns the exit code, the output in the form in which it is kept, and stderr.
fn as_text(ended: &Ended, stdout: &str) -> String {
    let mut text = format!("exit {}\n{stdout}", ended.code.unwrap());
    if !ended.stderr.is_empty() {
        write!(text, "--- stderr\n{}", ended.stderr).unwrap();
    }
    text
}

/// Returns the argument after an option.
fn value_after<'a>(args: &[&'a str], option: &str) -> Option<&'a str> {
    let at = args.iter().position(|arg| *arg == option)?;
    args.get(at + 1).copied()
}

/// A table: the values of each column, in the order of the rows.
type Columns = BTreeMap<String, Vec<String>>;

/// Returns the lines of a table: one for each column, sorted by name.
fn of_columns(columns: &Columns) -> String {
    let rows = columns.values().map(Vec::len).max().unwrap_or_default();
    let mut text = format!("{rows} rows\n");
    for (name, values) in columns {
        let line = if values.len() <= SHOWN || values.iter().all(|value| *value == values[0]) {
            let is_constant = values.len() > 1 && values.iter().all(|value| *value == values[0]);
            if is_constant { format!("always {}", values[0]) } else { values.join(" | ") }
        } else {
            let empty = values.iter().filter(|value| value.is_empty()).count();
            let (first, last) = (&values[0], &values[values.len() - 1]);
            let rounded: Vec<String> = values.iter().map(|value| rounded(value)).collect();
            format!("{first} … {last}; {empty} empty; sha256 {}", digest(rounded.join("\n").as_bytes()))
        };
        writeln!(text, "{}", format!("{name}: {line}").trim_end()).unwrap();
    }
    text
}

/// Returns a number with a fraction to twelve digits, and other values unchanged.
fn rounded(value: &str) -> String {
    match value.parse::<f64>() {
        Ok(number) if value.contains('.') => format!("{number:.11e}"),
        _ => value.to_owned(),
    }
}

/// Returns the first half of a SHA-256, which is enough to tell texts apart.
fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn csv_table(text: &str) -> Columns {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().unwrap().clone();
    let mut columns: Columns = names.iter().map(|name| (name.to_owned(), Vec::new())).collect();
    assert_eq!(columns.len(), names.len(), "each column has its own name");
    for record in reader.records() {
        for (name, value) in names.iter().zip(&record.unwrap()) {
            columns.get_mut(name).unwrap().push(value.to_owned());
        }
    }
    columns
}

/// Returns the columns of a list of objects with the same keys. Apart from them, the text is always the same.
fn json_table(ended: &Ended) -> Columns {
    let mut columns = Columns::new();
    let mut lines = Vec::new();
    for row in ended.json().as_array().unwrap() {
        lines.push(row.to_string());
        for (name, value) in row.as_object().unwrap() {
            let value = match value {
                Value::Null => String::new(),
                value => value.to_string(),
            };
            columns.entry(name.clone()).or_default().push(value);
        }
    }
    let begin = if lines.is_empty() { "[" } else { "[\n" };
    assert!(ended.stdout == format!("{begin}{}\n]\n", lines.join(",\n")), "the layout of JSON");
    columns
}

fn parquet_table(path: &Path) -> Columns {
    let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    let mut columns = Columns::new();
    for row in reader.get_row_iter(None).unwrap() {
        for (name, field) in row.unwrap().get_column_iter() {
            columns.entry(name.clone()).or_default().push(field.to_string());
        }
    }
    columns
}

/// Returns the values of a workbook's sheets. The sheet of definitions is the same for all results.
fn of_workbook(path: &Path) -> String {
    let mut book = zip::ZipArchive::new(fs::File::open(path).unwrap()).unwrap();
    // A workbook without charts has no shared strings.
    let mut part = |name: &str| {
        let mut text = String::new();
        if let Ok(mut file) = book.by_name(name) {
            std::io::Read::read_to_string(&mut file, &mut text).unwrap();
        }
        text
    };
    let shared: Vec<String> = inside(&part("xl/sharedStrings.xml"), "si").iter().map(|entry| text_of(entry)).collect();
    let list = part("xl/workbook.xml");
    let mut text = String::new();
    for (at, sheet) in list.split("<sheet name=\"").skip(1).enumerate() {
        let name = sheet.split('"').next().unwrap();
        writeln!(text, "sheet {name}").unwrap();
        let rows = sheet_rows(&part(&format!("xl/worksheets/sheet{}.xml", at + 1)), &shared);
        match name {
            "about" => {
                for row in rows.iter().filter(|row| row[0] != "made") {
                    writeln!(text, "{}", row.join(" | ")).unwrap();
                }
            }
            "definitions" => {
                writeln!(text, "{} rows; sha256 {}", rows.len(), digest(format!("{rows:?}").as_bytes())).unwrap()
            }
            _ => text.push_str(&of_columns(&sheet_table(&rows))),
        }
    }
    text
}

/// Returns the contents of all elements with this name.
fn inside<'a>(xml: &'a str, name: &str) -> Vec<&'a str> {
    let (begin, end) = (format!("<{name}"), format!("</{name}>"));
    let mut found = Vec::new();
    for rest in xml.split(&begin).skip(1) {
        // Another name may begin with this one, and an element may be empty: `<c r="A1" s="2"/>`.
        let Some((attributes, content)) = rest.split_once('>') else { continue };
        if attributes.is_empty() || attributes.starts_with(' ') && !attributes.ends_with('/') {
            found.push(content.split(&end).next().unwrap());
        }
    }
    found
}

/// Returns the text of all `<t>` elements.
fn text_of(xml: &str) -> String {
    let text = inside(xml, "t").concat();
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// Returns the rows of a sheet, each with an entry for every column from A to its last cell.
fn sheet_rows(xml: &str, shared: &[String]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for row in inside(xml, "row") {
        let mut values: Vec<String> = Vec::new();
        for cell in row.split("<c r=\"").skip(1) {
            let (place, cell) = cell.split_once('"').unwrap();
            let letters = place.bytes().take_while(u8::is_ascii_uppercase);
            let column = letters.fold(0, |column, letter| column * 26 + usize::from(letter - b'A') + 1);
            let (attributes, content) = cell.split_once('>').unwrap();
            let value = inside(content, "v").concat();
            let value = if attributes.contains("t=\"s\"") {
                shared[value.parse::<usize>().unwrap()].clone()
            } else if attributes.contains("t=\"inlineStr\"") {
                text_of(content)
            } else {
                value
            };
            values.resize(column, String::new());
            values[column - 1] = value;
        }
        rows.push(values);
    }
    rows
}

/// Returns the columns of a sheet whose first row has their names.
fn sheet_table(rows: &[Vec<String>]) -> Columns {
    let mut columns = Columns::new();
    let Some((names, rows)) = rows.split_first() else { return columns };
    for (at, name) in names.iter().enumerate() {
        let values = rows.iter().map(|row| row.get(at).cloned().unwrap_or_default()).collect();
        assert!(columns.insert(name.clone(), values).is_none(), "two columns are named {name}");
    }
    columns
}

/// Elements that begin a new line.
const BLOCKS: [&str; 27] = [
    "body",
    "caption",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "header",
    "html",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "section",
    "summary",
    "table",
    "title",
    "tr",
    "ul",
];

/// Returns the text of a report, a line for each paragraph and each row of a table, and a digest of its HTML.
/// The time at which the report was made is replaced, and so is the nonce of its script. The numbers of charts
/// are also in tables.
fn of_report(html: &str) -> String {
    let between = |begin: &str, end: &str| html.split_once(begin).unwrap().1.split_once(end).unwrap().0;
    let time = between("analysis version ", "\"").split_once(", ").unwrap().1;
    assert!(time.ends_with(" UTC"), "{time}");
    let html = html.replace(time, "TIME").replace(between("'nonce-", "'"), "NONCE");
    let mut text = String::new();
    let mut rest = html.as_str();
    while let Some((content, tag)) = rest.split_once('<') {
        text.push_str(&content.replace('\n', " "));
        let (tag, after) = tag.split_once('>').unwrap();
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap();
        rest = match name {
            "style" | "script" | "svg" if !tag.starts_with('/') => after.split_once(&format!("</{name}>")).unwrap().1,
            _ => after,
        };
        match name {
            "td" | "th" if !tag.starts_with('/') => text.push_str(" | "),
            _ if BLOCKS.contains(&name) => text.push('\n'),
            _ => {}
        }
    }
    let mut lines = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words.is_empty() {
            writeln!(lines, "{}", words.join(" ")).unwrap();
        }
    }
    // Next to a number that is shown, the page has the same number with all digits.
    let mut parts = html.split("<data value=\"");
    let mut exact = parts.next().unwrap().to_owned();
    for part in parts {
        let (number, rest) = part.split_once('"').unwrap();
        exact.push_str(&rounded(number));
        exact.push_str(rest);
    }
    format!("{lines}html: sha256 {}\n", digest(exact.as_bytes()))
}

/// Replaces the day of a decision, and the digest of the part of the record that contains it.
fn without_day(record: &str) -> String {
    let mut text = record.to_owned();
    let days = [("Decided on ", 10), ("begin decision sha256=", 16), ("\"decided\": \"", 10)];
    for (before, length) in days {
        if let Some(at) = text.find(before) {
            let from = at + before.len();
            text.replace_range(from..from + length, "…");
        }
    }
    for before in ["\"on\":\"", "\"on\": \""] {
        let mut from = 0;
        while let Some(at) = text[from..].find(before) {
            from += at + before.len();
            text.replace_range(from..from + "2026-01-01".len(), "…");
        }
    }
    text
}

/// Compares the answers with the expected files of a folder, or writes these files.
fn compare_with_expected(name: &str, found: &BTreeMap<String, String>) {
    let expected = folder(name).join("expected");
    if std::env::var_os("SWEEPLINE_BLESS").is_some() {
        fs::create_dir_all(&expected).unwrap();
        for file in files(&expected) {
            if !found.contains_key(file.file_name().unwrap().to_str().unwrap()) {
                fs::remove_file(file).unwrap();
            }
        }
        for (file, text) in found {
            // A file that differs only by roundings stays as it is.
            if !are_alike(&fs::read_to_string(expected.join(file)).unwrap_or_default(), text) {
                fs::write(expected.join(file), text).unwrap();
            }
        }
        return;
    }
    let mut wrong = String::new();
    for file in files(&expected) {
        let file = file.file_name().unwrap().to_str().unwrap().to_owned();
        if !found.contains_key(&file) {
            writeln!(wrong, "{file}: no command of the test has this answer").unwrap();
        }
    }
    for (file, text) in found {
        let kept = fs::read_to_string(expected.join(file)).unwrap_or_default();
        if !are_alike(&kept, text) {
            write!(wrong, "tests/corpus/{name}/expected/{file}:\n{}", difference(&kept, text)).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}\nIf this is intended: SWEEPLINE_BLESS=1 cargo test --test it corpus");
}

/// Returns whether two texts are equal, apart from the last digits of numbers with at least twelve digits.
fn are_alike(old: &str, new: &str) -> bool {
    if old == new {
        return true;
    }
    let words =
        |text: &str| -> Vec<String> { text.split_inclusive([' ', ',', '\n', ']', '}']).map(str::to_owned).collect() };
    let (old, new) = (words(old), words(new));
    old.len() == new.len() && old.iter().zip(&new).all(|(old, new)| old == new || is_rounding(old, new))
}

/// Returns whether two words are the same number with at least twelve digits, apart from a rounding.
fn is_rounding(old: &str, new: &str) -> bool {
    let number = |word: &str| {
        let word = word.trim_end_matches([' ', ',', '\n', ']', '}']).trim_start_matches('[');
        let is_long = word.len() > 12 && word.contains('.');
        word.parse::<f64>().ok().filter(|_| is_long)
    };
    match (number(old), number(new)) {
        (Some(old), Some(new)) => (old - new).abs() <= 1e-9 * old.abs(),
        _ => false,
    }
}

/// Returns the lines in which two texts differ, without what both have at their beginning and end.
fn difference(old: &str, new: &str) -> String {
    const MOST: usize = 20;
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[same..], &new[same..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let mut text = format!("from line {}:\n", same + 1);
    for (sign, rest) in [('-', old_rest), ('+', new_rest)] {
        let lines = &rest[..rest.len() - tail];
        for line in lines.iter().take(MOST) {
            writeln!(text, "{sign} {line}").unwrap();
        }
        if lines.len() > MOST {
            writeln!(text, "{sign} … and {} more lines", lines.len() - MOST).unwrap();
        }
    }
    text
}

/// Returns `run.json` of all committed runs of a folder.
fn records(name: &str) -> Vec<Value> {
    let mut records = Vec::new();
    for file in files(&folder(name).join("results/runs")) {
        if file.ends_with("run.json") {
            records.push(serde_json::from_slice(&fs::read(file).unwrap()).unwrap());
        }
    }
    records
}

#[test]
fn the_corpus_has_runs_of_all_kinds_and_is_small() {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(folder("")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    names.sort();
    assert_eq!(names, NAMES, "each folder has a test");

    let size: u64 = files(&folder("")).iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(size <= 10_000_000, "{size} bytes");

    let runs: Vec<Value> = NAMES.iter().flat_map(|name| records(name)).collect();
    assert!(runs.len() >= 40, "{} runs", runs.len());
    let count = |pointer: &str| runs.iter().filter(|run| run.pointer(pointer).is_some_and(|at| !at.is_null())).count();
    let kinds = [
        ("closed loops", "/spec/load/closed"),
        ("open loops", "/spec/load/open"),
        ("a limit of requests in flight", "/spec/load/open/cap"),
        ("gamma arrivals", "/spec/load/open/arrivals/gamma"),
        ("bursts", "/spec/load/open/arrivals/bursts"),
        ("a ramp", "/spec/load/open/arrivals/ramp"),
        ("mixes", "/spec/mix"),
        ("histories", "/spec/scenario/talk/history"),
        ("think times", "/spec/scenario/talk/think"),
        ("conversations that arrive", "/spec/scenario/talk/sessions"),
        ("prefixes", "/spec/scenario/prefix"),
        ("cold caches", "/spec/scenario/cache"),
        ("traces", "/spec/scenario/trace"),
        ("data sets", "/spec/scenario/data"),
        ("profiles", "/spec/scenario/sharing"),
        ("lengths", "/spec/scenario/lengths"),
        ("idle starts", "/spec/phases/idle"),
        ("HTTP/2", "/spec/endpoint/http"),
        ("launched servers", "/environment/server_start"),
        ("measured starts", "/spec/start"),
        ("hooks", "/facts/hooks"),
        ("loads that were taken", "/spec/taken"),
        ("telemetry", "/facts/telemetry/scrapes"),
        ("workers", "/facts/workers"),
        ("texts", "/files/texts.parquet"),
        ("measured errors", "/spec/errors"),
    ];
    for (kind, pointer) in kinds {
        assert!(count(pointer) > 0, "no run has {kind}");
    }
    for api in ["chat", "completions", "responses", "embeddings", "rerank"] {
        assert!(runs.iter().any(|run| run["spec"]["endpoint"]["api"] == api), "no run uses {api}");
    }
    assert!(runs.iter().any(|run| run["spec"]["shaping"]["stream"] == false), "no run without streaming");

    let list = copy("failures").ok(&["list", "--attempts", "--format", "json"]).stdout;
    assert!(list.contains("given up: 429"), "{list}");
    assert!(!files(&folder("failures").join("results/superseded")).is_empty(), "no run was measured twice");
    let searched = copy("search").ok(&["preview", "plan.yaml"]).stdout;
    for word in ["  search  ", "  ladder  ", "  pruned  ", "  repeats  "] {
        assert!(searched.contains(word), "{word}: {searched}");
    }
}

#[test]
fn a_changed_or_missing_file_is_found() {
    let lab = copy("mix");
    assert_eq!(lab.run(&["verify"]).code, Some(0));
    let run = fs::read_dir(lab.results().join("runs")).unwrap().next().unwrap().unwrap().path();
    let id = run.file_name().unwrap().to_str().unwrap().to_owned();

    let path = run.join("requests.parquet");
    let bytes = fs::read(&path).unwrap();
    let mut changed = bytes.clone();
    changed[bytes.len() / 2] ^= 1;
    fs::write(&path, changed).unwrap();
    let ended = lab.run(&["verify"]);
    assert!(
        ended.code != Some(0) && ended.stdout.contains(&id) && ended.stdout.contains("requests.parquet"),
        "{ended:?}"
    );

    fs::remove_file(&path).unwrap();
    let ended = lab.run(&["verify"]);
    assert!(
        ended.code != Some(0) && ended.stdout.contains(&id) && ended.stdout.contains("requests.parquet"),
        "{ended:?}"
    );

    fs::write(&path, bytes).unwrap();
    assert_eq!(lab.run(&["verify"]).code, Some(0), "the original file is whole again");
    fs::remove_dir_all(&run).unwrap();
    let ended = lab.run(&["verify"]);
    assert!(ended.code != Some(0) && ended.stdout.contains(&id), "{ended:?}");
}
