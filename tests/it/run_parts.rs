//! Tests the part of `report` for each run, and its timeline of the runs, with the numbers of `export`
//! and `show`.

use serde_json::Value;

use super::given_up::give_up_saying;
use lab::report::{Page, Table, browser, dom_of, is_sound};
use lab::sweeps::honest;
use lab::{Lab, Server};

const PLAN: &str = "\
sweepline: 1
name: parts
seed: 3
endpoints:
  one: { engine: openai, url: URL, hardware: { gpus: 1, price_per_hour: 2 } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 6 } }
phases: { fill: 200ms, stabilize: 200ms, measure: 1s, drain: 5s }
# A busy machine sends late, and some requests fail: what is asked here is not whether the runs are good ones.
validity: { client_late: { suspect: 100%, invalid: 100% }, unsteady: { suspect: 99% }, errors: { suspect: 90%, invalid: 95% } }
sweeps:
  closed: { matrix: { endpoint: [one], model: [m], scenario: [short], batch_size: [2, 4, 8] } }
  rates: { matrix: { endpoint: [one], model: [m], scenario: [short], qps: [60] } }
";

/// Returns the points of a path, which consists of absolute starting points followed by steps.
fn points(path: &str) -> Vec<Vec<(i64, i64)>> {
    let mut parts: Vec<Vec<(i64, i64)>> = Vec::new();
    let mut pen = (0, 0);
    let mut rest = path;
    while let Some(command) = rest.chars().next() {
        let end = rest[1..].find(|c: char| c.is_ascii_alphabetic()).map_or(rest.len(), |at| at + 1);
        let numbers: Vec<i64> =
            rest[1..end].replace('-', " -").split_whitespace().map(|number| number.parse().unwrap()).collect();
        pen = match (command, numbers.as_slice()) {
            ('M', [x, y]) => {
                parts.push(Vec::new());
                (*x, *y)
            }
            ('l', [x, y]) => (pen.0 + x, pen.1 + y),
            ('h', [x]) => (pen.0 + x, pen.1),
            ('v', [y]) => (pen.0, pen.1 + y),
            other => panic!("{other:?} in {path}"),
        };
        parts.last_mut().unwrap().push(pen);
        rest = &rest[end..];
    }
    parts
}

/// Returns the heights of values above the bottom of a strip.
fn heights(values: &[f64]) -> Vec<i64> {
    let most = values.iter().copied().fold(0.0, f64::max);
    values.iter().map(|value| (value / most * 70.0).round() as i64).collect()
}

fn numbers(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

/// Asserts that the drawing of a run shows the values of `show`.
fn drawing_is_that_of_show(part: &str, load: &Value) {
    let feet: Vec<i64> =
        Page::between(part, "class=\"z\" d=\"M0 ", "H").iter().map(|foot| foot.parse().unwrap()).collect();
    assert_eq!(feet.len(), 3, "in flight, tokens and TTFT: {part}");
    let drawn: Vec<&str> = [("a", 0), ("b", 0), ("a", 1)]
        .iter()
        .map(|(class, at)| Page::between(part, &format!("class=\"{class}\" d=\""), "\"")[*at])
        .collect();
    for (at, key) in [(0, "in_flight"), (1, "tokens_per_s")] {
        let line = points(drawn[at]).concat();
        assert_eq!(line.len(), 60);
        let found: Vec<i64> = line.iter().map(|(_, y)| feet[at] - y).collect();
        assert_eq!(found, heights(&numbers(&load[key])), "{key}");
        assert!(line.iter().enumerate().all(|(part, (x, _))| *x == 5 + 10 * part as i64), "{key}: {line:?}");
    }
    // Each part has a minimum and a maximum; parts without a response are gaps.
    let band = load["ttft_ms"].as_array().unwrap();
    let most = band.iter().filter(|ends| !ends.is_null()).map(|ends| ends[1].as_f64().unwrap()).fold(0.0, f64::max);
    let height = |value: &Value| (value.as_f64().unwrap() / most * 70.0).round() as i64;
    let wanted: Vec<(i64, i64)> = band
        .iter()
        .enumerate()
        .filter(|(_, ends)| !ends.is_null())
        .flat_map(|(at, ends)| [0, 1].map(|end| (5 + 10 * at as i64, feet[2] - height(&ends[end]))))
        .collect();
    let pieces = band.split(Value::is_null).filter(|piece| !piece.is_empty()).count();
    let found = points(drawn[2]);
    assert_eq!((found.len(), found.concat()), (pieces, wanted));
    // Failures are drawn at the time when they ended.
    let failed = load["failed"].as_array().unwrap();
    let wanted: Vec<i64> = (0..60).filter(|at| failed[*at as usize] != 0).map(|at| 5 + 10 * at).collect();
    let marks = Page::between(part, "class=\"f\" d=\"", "\"").first().map(|path| points(path)).unwrap_or_default();
    assert_eq!(marks.iter().map(|mark| mark[0].0).collect::<Vec<_>>(), wanted);
}

/// The numbers below a drawing are those of `show`, part by part, and each of them is shown on
/// hover.
fn numbers_are_those_of_show(part: &str, load: &Value) {
    let table = Table::of(Page::between(part, "<table>", "</table>")[2]);
    assert_eq!(table.rows.len(), 60);
    let marks = Page::between(part, "<rect class=\"t\"", "</rect>");
    assert_eq!(marks.len(), 60);
    for row in 0..60 {
        let columns = [("in flight", "in_flight"), ("sent/s", "sent_per_s"), ("tokens/s", "tokens_per_s")];
        for (heading, key) in columns {
            assert_eq!(table.number(row, heading), load[key][row].as_f64(), "{key}");
        }
        for (heading, end) in [("shortest TTFT, ms", 0), ("longest TTFT, ms", 1)] {
            assert_eq!(table.number(row, heading), load["ttft_ms"][row][end].as_f64(), "{heading}");
        }
        assert_eq!(table.text(row, "failed"), load["failed"][row].to_string());
        assert!(marks[row].contains(" in flight, "), "{}", marks[row]);
    }
}

fn tables_are_those_of_export(part: &str, run: &Value) -> usize {
    let mut compared = 0;
    let tables: Vec<Table> = Page::between(part, "<table>", "</table>").into_iter().map(Table::of).collect();
    assert_eq!(tables.len(), 3, "distributions, single figures, and figures over time");
    for row in 0..tables[0].rows.len() {
        let metric = tables[0].text(row, "metric").trim_end_matches("_ms").to_owned();
        for (heading, key) in
            [("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p99.9", "p999"), ("mean", "mean"), ("max", "max")]
        {
            let column = format!("{metric}_{key}_ms");
            let wanted = run.get(&column).unwrap_or_else(|| panic!("export has no {column}: {run:#}"));
            assert_eq!(tables[0].number(row, heading), wanted.as_f64(), "{column}");
            compared += 1;
        }
    }
    for row in 0..tables[1].rows.len() {
        let column = tables[1].text(row, "metric");
        let wanted = run.get(column).unwrap_or_else(|| panic!("export has no {column}: {run:#}"));
        assert_eq!(tables[1].number(row, "value"), wanted.as_f64(), "{column}");
        compared += 1;
    }
    compared
}

#[test]
fn each_run_has_a_part_with_the_numbers_of_show_and_export() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--jitter", "30%", "--fault", "invalid-json@3%"]);
    lab.write("plan.yaml", &PLAN.replace("URL", &server.url()));
    honest(&lab.run(&["run", "plan.yaml", "-q"]));
    lab.ok(&["report", "plan.yaml"]);
    let page = Page::of(&lab, "report.html");
    is_sound(&page);
    let export = lab.ok(&["export", "plan.yaml", "--format", "json"]).json();
    let section = page.section("each-run").unwrap();
    let parts = Page::between(section, "<details class=\"run\">", "</details>");
    assert_eq!(parts.len(), 4);
    let mut compared = 0;
    for part in &parts {
        let short = Page::between(part, "<code>", "</code>")[0];
        let run =
            export.as_array().unwrap().iter().find(|run| run["run_id"].as_str().unwrap().starts_with(short)).unwrap();
        compared += tables_are_those_of_export(part, run);
        let show = lab.ok(&["show", short, "--plan", "plan.yaml", "--format", "json"]);
        let show = show.json();
        drawing_is_that_of_show(part, &show["load"]);
        numbers_are_those_of_show(part, &show["load"]);
        let words = Page { text: format!("<body>{part}<script") }.words();
        for said in [
            run["run_id"].as_str().unwrap().to_owned(),
            format!("{} in the window: {} completed, {} failed", run["requests"], run["completed"], run["failed"]),
            format!("sweepline show --plan plan.yaml {short}"),
        ] {
            assert!(words.contains(&said), "{said} is not in {words}");
        }
        for reason in
            show["verdict"]["reasons"].as_array().unwrap().iter().chain(show["verdict"]["labels"].as_array().unwrap())
        {
            assert!(words.contains(reason["text"].as_str().unwrap()), "{reason} is not in {words}");
        }
        // The table of runs links to the run's part.
        let anchor = Page::between(part, "<div id=\"", "\"")[0];
        let link = format!("<a href=\"#{anchor}\">{short}</a>");
        assert_eq!(page.section("runs").unwrap().matches(&link).count(), 1, "{link}");
    }
    assert!(compared >= 4 * 20, "{compared}");

    // The timeline shows the instants in run.json.
    let timeline = &page.tables("timeline")[0];
    assert_eq!(timeline.rows.len(), 4);
    let mut told: Vec<(String, f64)> = (0..4)
        .map(|row| (timeline.text(row, "from (UTC)").replace(' ', "T"), timeline.number(row, "seconds").unwrap()))
        .collect();
    let instant = |run: &Value, key: &str| run[key].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let mut wanted: Vec<(String, f64)> = lab
        .runs()
        .values()
        .map(|run| {
            let (started, ended) = (instant(&run.json, "started"), instant(&run.json, "ended"));
            let seconds = (ended.as_nanosecond() - started.as_nanosecond()) as f64 / 1e9;
            (started.strftime("%Y-%m-%dT%H:%M:%S%.3f").to_string(), seconds)
        })
        .collect();
    told.sort_by(|a, b| a.0.cmp(&b.0));
    wanted.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(told, wanted);

    opened_by_its_link(&lab, &page);

    // A run that was given up has a part with its reason, and its attempts are in the timeline.
    let run = lab.runs().into_values().next().unwrap();
    give_up_saying(&lab, &run, "rate_limited", "too <many> requests");
    lab.ok(&["report", "plan.yaml"]);
    let page = Page::of(&lab, "report.html");
    is_sound(&page);
    let section = page.section("each-run").unwrap();
    let lacking = Page::between(section, "<details class=\"run\">", "</details>");
    let lacking: Vec<&&str> = lacking.iter().filter(|part| part.contains("given up")).collect();
    assert!(
        lacking.len() == 1 && lacking[0].contains("too &lt;many&gt; requests") && !lacking[0].contains("<svg"),
        "{lacking:?}"
    );
    let timeline = &page.tables("timeline")[0];
    let spoiled = (0..timeline.rows.len()).filter(|row| timeline.text(*row, "what") == "spoiled").count();
    assert!(spoiled >= 1, "{timeline:?}");
}

/// A link to a run opens its part in a browser, without a click.
fn opened_by_its_link(lab: &Lab, page: &Page) {
    let Some(browser) = browser() else { return };
    let anchor = Page::between(page.section("each-run").unwrap(), "<div id=\"", "\"")[1];
    let url = format!("file://{}#{anchor}", lab.path().join("report.html").display());
    let Some(dom) = dom_of(browser, &url) else { return };
    let open = Page::between(&dom, "<details class=\"run\" open=\"\">", "</details>");
    assert!(open.len() == 1 && open[0].contains(&format!("id=\"{anchor}\"")), "{} are open", open.len());
}
