//! Tests the output that users see: progress bars with a terminal, plain lines without one, and the text
//! that the README quotes.

use lab::tmux::Terminal;
use lab::{Lab, wait_for};

/// Returns the quickstart with windows short enough for a test.
fn quickstart() -> String {
    let plan = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/plans/quickstart.yaml")).unwrap();
    assert!(plan.contains("fill: 300ms, stabilize: 400ms, measure: 3s,"), "the windows of the quickstart were changed");
    // The effects of a busy machine on the figures are not tested here.
    let mild = "validity: { client_late: { suspect: 100%, invalid: 100% }, unsteady: { suspect: 100% } }";
    let plan =
        plan.replace("fill: 300ms, stabilize: 400ms, measure: 3s,", "fill: 20ms, stabilize: 20ms, measure: 400ms,");
    plan.replace("\nsweeps:\n", &format!("\n{mild}\nsweeps:\n"))
}

#[test]
fn a_terminal_shows_bars_then_the_table() {
    let lab = Lab::real_time();
    // The runs take a few seconds, so that their live line can be read.
    let plan = quickstart().replace("measure: 400ms", "measure: 4s");
    lab.write("plan.yaml", &plan);
    let only = "\"endpoint == 'lean' and batch_size == 8\"";
    let Some(terminal) = Terminal::start(&lab, &["run", "plan.yaml", "--only", only], 100) else { return };
    let live = wait_for("a live line with latencies", || {
        let screen = terminal.screen(false);
        let at = screen.lines().position(|line| line.contains(" · measure "))?;
        let (line, figures) = (screen.lines().nth(at)?.to_owned(), screen.lines().nth(at + 1)?.to_owned());
        let bar = screen.lines().find(|line| line.contains(" runs ["))?.to_owned();
        (figures.split(" · ").count() == 6).then_some((line, figures, bar))
    });
    let (line, figures, bar) = live;
    let parts: Vec<&str> = line.trim().split(" · ").collect();
    assert!(line.contains("lean · ") && parts.len() == 4, "{line}");
    assert!(parts[3].starts_with("measure ") && parts[3].ends_with("s of 4s"), "{line}");
    let parts: Vec<&str> = figures.trim().split(" · ").collect();
    assert_eq!(parts.len(), 6, "{figures}");
    assert!(parts[0].ends_with(" in flight") && parts[1].ends_with(" req/s"), "{figures}");
    assert!(parts[2].starts_with("TTFT ") && parts[3].starts_with("TPOT "), "{figures}");
    assert!(parts[4].ends_with(" tok/s") && parts[5].ends_with(" done"), "{figures}");
    assert!(bar.contains("/2 runs [") && bar.contains("] about ") && bar.trim_end().ends_with("s left"), "{bar}");
    let end = wait_for("the end", || Some(terminal.screen(false)).filter(|screen| screen.contains("ended with ")));
    // A stalled client makes a run invalid, which does not affect the table.
    assert!(end.contains("ended with 0") || end.contains("ended with 3"), "{end}");
    assert!(!end.contains(" runs [") && !end.contains("in flight"), "the bars are gone: {end}");
    let table: Vec<&str> = end.lines().skip_while(|line| !line.starts_with("endpoint scenario")).collect();
    assert!(table[2].starts_with("lean ") && table[3].starts_with("lean "), "{end}");
    assert!(end.contains("[1/2] lean · ") && end.contains("next:\n"), "{end}");
    let painted = terminal.screen(true);
    let colours = ["\u{1b}[32mvalid", "\u{1b}[33msuspect", "\u{1b}[31minvalid"];
    assert!(colours.iter().any(|verdict| painted.contains(verdict)), "a terminal gets color: {painted}");
}

#[test]
fn a_narrow_terminal_cuts_what_matters_least() {
    let lab = Lab::real_time();
    lab.write("plan.yaml", &quickstart().replace("measure: 400ms", "measure: 2s"));
    let only = "\"endpoint == 'lean' and scenario == 'short' and batch_size == 2\"";
    let Some(terminal) = Terminal::start(&lab, &["run", "plan.yaml", "--only", only], 60) else { return };
    let screen = wait_for("a live line", || {
        Some(terminal.screen(false)).filter(|screen| screen.contains(" · measure ") && screen.contains("TTFT "))
    });
    let at = screen.lines().position(|line| line.contains(" · measure ")).unwrap();
    let line = |behind: usize| screen.lines().nth(at + behind).unwrap();
    assert!(line(1).contains(" in flight · "), "{screen}");
    assert!(line(1).chars().count() <= 60, "text that does not fit is omitted: {screen}");
    assert!(line(2).contains("runs ["), "two lines, not three: {screen}");
}

#[test]
fn a_terminal_of_80_columns_shows_what_goes_on_without_broken_words() {
    let mock = lab::mock::Mock::start(&["--ttft", "20ms", "--itl", "4ms", "--fault", "http:503@every:5"]);
    let lab = Lab::new();
    lab.write(
        "plan.yaml",
        &format!(
            "sweepline: 1
name: screen
endpoints: {{ first-candidate-of-the-evening: {{ url: 'http://127.0.0.1:{}/v1', engine: mock, errors: measured }} }}
models: {{ m: {{ id: tiny }} }}
scenarios: {{ short-questions: {{ base: B1, output_tokens: 16 }} }}
phases: {{ fill: 0s, stabilize: 100ms, measure: {{ for: 300ms, min_requests: 60, at_most: 20s }}, drain: 5s }}
sweeps: {{ s: {{ matrix: {{ scenario: short-questions, qps: 10 }} }} }}
",
            mock.port
        ),
    );
    let Some(terminal) = Terminal::start(&lab, &["run", "plan.yaml"], 80) else { return };
    let screen = wait_for("errors on a live screen", || {
        let screen = terminal.screen(false);
        let shown = ["waiting for 60 requests: ", " of 10.0 req/s", "TTFT ", "TPOT ", "last: http_503"];
        shown.iter().all(|text| screen.contains(text)).then_some(screen)
    });
    assert!(screen.contains(", at most 20s"), "{screen}");
    let end = wait_for("the end", || Some(terminal.screen(false)).filter(|screen| screen.contains("ended with ")));
    let at = end.lines().position(|line| line.contains("[1/1] ")).unwrap();
    let lines: Vec<&str> = end.lines().skip(at).take(3).collect();
    assert!(lines[0].starts_with(|c: char| c.is_ascii_digit()) && lines[1].starts_with("  "), "{end}");
    assert!(lines[0].ends_with([' ', '·']) || lines[0].split(' ').all(|word| !word.is_empty()), "{end}");
    let whole = lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    assert!(whole.contains("first-candidate-of-the-evening · short-questions · 10 qps · "), "{end}");
    assert!(whole.contains(" requests · ") && whole.contains("TTFT p50 "), "no word is split: {end}");
}

/// Returns the text with machine-dependent parts replaced.
fn stable(lab: &Lab, text: &str) -> String {
    let runs = lab.runs();
    let mut text = text.to_owned();
    for id in runs.keys() {
        text = text.replace(&id[..8], "<run>");
    }
    text
}

#[test]
fn the_quickstart_says_what_the_readme_quotes() {
    let run = || {
        let lab = Lab::new();
        lab.write("plans/quickstart.yaml", &quickstart());
        let ended = lab.run(&["run", "plans/quickstart.yaml"]);
        (lab, ended)
    };
    // A stalled client makes a run invalid, which changes the suggested commands.
    let (lab, ended) = (0..3).map(|_| run()).find(|(_, ended)| ended.code != Some(3)).unwrap_or_else(run);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let stderr = stable(&lab, &ended.stderr);
    let announce = stderr.lines().next().unwrap();
    insta::assert_snapshot!(announce, @"quickstart: 12 runs to do, about 6s; results go to results");
    let hints = &stderr[stderr.find("\nrows: ").unwrap()..];
    // A busy machine makes runs suspect, and the hint then names the first suspect run.
    let hints = hints.replace("why a run is not valid  ", "one run in full         ");
    insta::assert_snapshot!(hints.trim(), @r"
    rows: results/runs/*/requests.parquet (one row per request)
    next:
      charts and answers      sweepline report plans/quickstart.yaml
      one run in full         sweepline show <run> --plan plans/quickstart.yaml
      all runs as a table     sweepline export plans/quickstart.yaml -o runs.csv
      other values            edit plans/quickstart.yaml, then run it again
      the generator's error   sweepline calibrate plans/quickstart.yaml
    ");
    let started: Vec<&str> = stderr.lines().filter(|line| line.ends_with(" started, about 1s")).collect();
    assert_eq!(started.len(), 12, "{stderr}");
    assert!(!ended.stderr.contains(['\r', '\u{1b}']), "plain lines: {:?}", ended.stderr);

    let table: Vec<&str> = ended.stdout.trim_start_matches('\n').lines().collect();
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ended.stdout);
    assert_eq!(
        table[0].split_whitespace().collect::<Vec<_>>().join(" "),
        "endpoint scenario load requests TTFT p50 TTFT tail TPOT p50 output verdict"
    );
    assert_eq!(table[1].split_whitespace().collect::<Vec<_>>(), ["ms", "ms", "ms", "tok/s"]);
    // The rows are in the order of the plan, whatever the order of execution was.
    let rows: Vec<String> = table
        .iter()
        .skip(2)
        .filter(|line| line.starts_with("lean") || line.starts_with("heavy"))
        .map(|line| line.split_whitespace().take(4).collect::<Vec<_>>().join(" "))
        .collect();
    insta::assert_snapshot!(rows.join("\n"), @r"
    lean short batch 2
    lean short batch 8
    lean shared batch 2
    lean shared batch 8
    heavy short batch 2
    heavy short batch 8
    heavy shared batch 2
    heavy shared batch 8
    lean short 25 qps
    lean short 50 qps
    heavy short 25 qps
    heavy short 50 qps
    ");
    let again = lab.ok(&["run", "plans/quickstart.yaml"]);
    insta::assert_snapshot!(again.stderr.lines().next().unwrap(), @"quickstart: nothing to do; the results of all 12 runs are in results; no request was sent");
}

#[test]
fn repeats_are_summed_up_over_runs() {
    let lab = Lab::new();
    // The second sweep shares the cell of the first; the third has too few repeats for a summary.
    lab.write(
        "plan.yaml",
        "sweepline: 1
name: repeats
endpoints: { demo: { engine: mock, mock: { ttft: 5ms, itl: 1ms } } }
models: { m: { id: tiny } }
scenarios: { s: { base: B1, output_tokens: 4 } }
phases: { fill: 20ms, stabilize: 20ms, measure: { for: 200ms, min_requests: 40, at_most: 20s }, drain: 2s }
validity: { client_late: { suspect: 100%, invalid: 100% }, unsteady: { suspect: 100% } }
sweeps:
  a: { matrix: { endpoint: [demo], model: [m], scenario: [s], batch_size: [2] }, repeats: 3 }
  b: { matrix: { endpoint: [demo], model: [m], scenario: [s], batch_size: [2, 3] }, repeats: 3 }
  c: { matrix: { endpoint: [demo], model: [m], scenario: [s], batch_size: [4] }, repeats: 2 }
",
    );
    let shown = lab.ok(&["run", "plan.yaml"]).stdout;
    let (runs, over) = shown.split_once("\nover runs: ").unwrap_or_else(|| panic!("no second table: {shown}"));
    assert_eq!(runs.lines().filter(|line| line.starts_with("demo ")).count(), 3 + 3 + 2, "{shown}");
    let rows: Vec<Vec<&str>> =
        over.lines().filter(|line| line.starts_with("demo ")).map(|line| line.split_whitespace().collect()).collect();
    let loads: Vec<[&str; 2]> = rows.iter().map(|row| [row[3], row[4]]).collect();
    assert_eq!(loads, [["2", "3"], ["3", "3"]], "batch and runs of each cell: {shown}");

    let exported = lab.ok(&["export", "plan.yaml", "--format", "json"]).json();
    let runs: Vec<&serde_json::Value> =
        exported.as_array().unwrap().iter().filter(|run| run["batch_size"] == 3).collect();
    for (column, name) in [(5, "ttft_p50_ms"), (9, "output_throughput_tokens_per_s")] {
        let logarithms = runs.iter().map(|run| run[name].as_f64().unwrap().ln());
        let mean = (logarithms.sum::<f64>() / runs.len() as f64).exp();
        let printed: f64 = rows[1].get(column).or(rows[1].last()).unwrap().parse().unwrap();
        assert!((printed / mean - 1.0).abs() < 0.006, "{name}: {printed} printed, {mean} by hand\n{shown}");
    }
    assert_eq!(lab.ok(&["run", "plan.yaml"]).stdout, shown, "it is stored with the table");
    let few = lab.ok(&["run", "plan.yaml", "--only", "repeat < 2"]).stdout;
    assert!(!few.contains("over runs"), "{few}");
}
