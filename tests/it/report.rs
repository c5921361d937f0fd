//! Tests `report`: one HTML file that sends no requests, with the numbers of `curves`, `compare`,
//! `capacity` and `export`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::given_up::give_up_saying;
use lab::Lab;
use lab::report::{Page, in_a_browser, is_sound, json, measured, unescaped};
use lab::sweeps::honest;

/// A plan with two arms under closed and open loops, with an objective, a comparison and prices.
const PLAN: &str = "\
sweepline: 1
name: which
hypothesis: The quick one is quicker.
seed: 7
endpoints:
  slow: { engine: mock, mock: { ttft: 20ms, itl: 2ms, jitter: 30% }, hardware: { gpu: G, gpus: 1, price_per_hour: 2 } }
  quick: { engine: mock, mock: { ttft: 10ms, itl: 1ms, jitter: 30% }, hardware: { gpu: G, gpus: 1, price_per_hour: 1 } }
models: { m: { id: tiny, precision: bf16 } }
scenarios: { short: { base: B1, output_tokens: 6 } }
phases: { fill: 100ms, stabilize: 100ms, measure: 1s, drain: 5s }
slo: { ttft: { p50: 100ms } }
compare: { by: endpoint, baseline: slow, metrics: [ttft_p50, output_throughput] }
# A busy machine sends late; what is asked here is not how exact the client is.
validity: { client_late: { suspect: 100%, invalid: 100% }, unsteady: { suspect: 99% } }
sweeps:
  closed: { matrix: { endpoint: [slow, quick], model: [m], scenario: [short], batch_size: [1, 4] }, repeats: 3 }
  rates:
    matrix: { endpoint: [slow, quick], model: [m], scenario: [short], qps: [40] }
    phases: { measure: 4s }
";

/// Asserts that every figure of the loads equals that of `curves`.
fn loads_are_those_of_curves(page: &Page, curves: &Value) -> usize {
    let mut compared = 0;
    for table in page.tables("loads") {
        let axis = if table.at("qps").is_some() { "qps" } else { "batch_size" };
        let key = &table.headings[4];
        for row in 0..table.rows.len() {
            let (name, load) = (table.text(row, "configuration"), table.number(row, axis).unwrap());
            let is_meant = |curve: &&Value| curve["load"] == axis && name.contains(curve["endpoint"].as_str().unwrap());
            let mut found = curves["curves"].as_array().unwrap().iter().filter(is_meant);
            let rungs = found.next().unwrap_or_else(|| panic!("no curve {name}"))["rungs"].as_array().unwrap();
            let rung = rungs.iter().find(|rung| rung["load"] == load).unwrap();
            let figure = &rung["figures"][key.as_str()];
            assert_eq!(table.number(row, key), figure["value"].as_f64(), "{name} {load} {key}: {figure}");
            assert_eq!(table.number(row, "low"), figure["low"].as_f64(), "{name} {load} {key}");
            assert_eq!(table.number(row, "high"), figure["high"].as_f64(), "{name} {load} {key}");
            assert_eq!(table.number(row, "runs"), Some(rung["runs"].as_array().unwrap().len() as f64));
            compared += 1;
        }
    }
    compared
}

/// Every run equals the run in `export`.
fn runs_are_those_of_exports(page: &Page, export: &Value) {
    let tables = page.tables("runs");
    let table = &tables[0];
    let rows = export.as_array().unwrap();
    assert_eq!(table.rows.len(), rows.len());
    for row in 0..table.rows.len() {
        let id = table.text(row, "run");
        let run = rows.iter().find(|run| run["run_id"].as_str().unwrap().starts_with(id)).unwrap();
        assert_eq!(table.text(row, "state"), run["verdict"], "{id}");
        for key in ["requests", "failed", "ttft_p50_ms", "ttft_p99_ms", "tpot_p50_ms", "output_throughput_tokens_per_s"]
        {
            assert_eq!(table.number(row, key), run[key].as_f64(), "{id} {key}: {}", run[key]);
        }
    }
}

fn percentiles_are_those_of_exports(page: &Page, export: &Value) -> usize {
    let mut compared = 0;
    for table in page.tables("distributions") {
        let key = table.headings[5].trim_end_matches("_ms").to_owned();
        for row in 0..table.rows.len() {
            let id = table.text(row, "id");
            let run =
                export.as_array().unwrap().iter().find(|run| run["run_id"].as_str().unwrap().starts_with(id)).unwrap();
            let percentile = table.text(row, "percentile").replace('.', "");
            let wanted = &run[format!("{key}_{percentile}_ms")];
            assert_eq!(table.number(row, &table.headings[5]), wanted.as_f64(), "{id} {key} {percentile}");
            compared += 1;
        }
    }
    compared
}

fn changes_are_those_of_compare(page: &Page, comparison: &Value) -> usize {
    let mut compared = 0;
    let cells = comparison["families"][0]["cells"].as_array().unwrap();
    for table in page.tables("comparison").into_iter().filter(|table| table.at("p adjusted").is_some()) {
        for row in 0..table.rows.len() {
            let (cell, value) = (table.text(row, "cell").to_owned(), table.number(row, "baseline"));
            let of_cell =
                |one: &&Value| cell == format!("{}: {}", one["sweep"].as_str().unwrap(), one["name"].as_str().unwrap());
            let tests = cells.iter().find(of_cell).unwrap_or_else(|| panic!("no {cell}"))["tests"].as_array().unwrap();
            let test = tests.iter().find(|test| test["baseline"]["value"].as_f64() == value).unwrap();
            assert_eq!(table.number(row, "arm's value"), test["arm"]["value"].as_f64(), "{cell}");
            for (heading, key) in [("change", "value"), ("low", "low"), ("high", "high")] {
                assert_eq!(table.number(row, heading), test["change"][key].as_f64(), "{cell} {heading}: {test:#}");
            }
            assert_eq!(table.number(row, "p"), test["p"].as_f64(), "{cell}");
            assert_eq!(table.number(row, "p adjusted"), test["p_adjusted"].as_f64(), "{cell}");
            compared += 1;
        }
    }
    compared
}

fn capacity_is_that_of_capacity(page: &Page, capacity: &Value) {
    let tables = page.tables("capacity");
    let Some(table) = tables.iter().find(|table| table.at("cheapest").is_some()) else {
        assert!(capacity["configurations"].as_array().unwrap().iter().all(|one| one["instance"].is_null()));
        return;
    };
    for row in 0..table.rows.len() {
        let name = table.text(row, "configuration");
        let is_meant = |one: &&Value| !one["instance"].is_null() && name.contains(one["endpoint"].as_str().unwrap());
        let one = capacity["configurations"].as_array().unwrap().iter().find(is_meant).unwrap();
        assert_eq!(table.number(row, "shown, qps"), one["max_qps"]["holds"].as_f64());
        let instance = &one["instance"];
        assert_eq!(table.number(row, "output, tokens/s"), instance["output_throughput_tokens_per_s"].as_f64());
        let money = "money per million output tokens";
        assert_eq!(table.number(row, money), instance["cost_per_million_output_tokens"].as_f64());
        assert_eq!(table.text(row, "cheapest") == "yes", one["cheapest"] == true);
        // The values in the figures are the same.
        let others = tables.iter().filter(|other| other.at("cheapest").is_none());
        for heading in others.flat_map(|other| other.at(money).map(|_| other.number(row, money))) {
            assert_eq!(heading, table.number(row, money));
        }
    }
}

#[test]
fn a_report_has_the_numbers_of_every_answer() {
    let lab = measured(PLAN);
    let ended = lab.ok(&["report", "plan.yaml", "-o", "report.html"]);
    assert!(ended.stdout.is_empty() && ended.stderr.contains("report.html: "), "{}{}", ended.stdout, ended.stderr);
    let page = Page::of(&lab, "report.html");
    is_sound(&page);
    let curves = json(&lab, &["curves", "plan.yaml"]);
    let export = json(&lab, &["export", "plan.yaml"]);
    assert!(loads_are_those_of_curves(&page, &curves) >= 20);
    runs_are_those_of_exports(&page, &export);
    assert!(percentiles_are_those_of_exports(&page, &export) >= 36);
    assert!(changes_are_those_of_compare(&page, &json(&lab, &["compare", "plan.yaml"])) >= 4);
    capacity_is_that_of_capacity(&page, &json(&lab, &["capacity", "plan.yaml"]));
    let words = page.words();
    // Every load meets the objective, so only the heaviest is drawn as the result.
    for (said, times) in [
        ("at the highest load that meets the objective", 2),
        ("at the first load that misses the objective", 0),
        ("at the heaviest load", 0),
        ("Thick: the repeats of a load together. Thin, in the same colour: each repeat.", 3),
    ] {
        let section = page.section("distributions").unwrap();
        assert_eq!(section.matches(said).count(), times, "{said}\n{section}");
    }
    for said in [
        "Hypothesis: The quick one is quicker.",
        "quick against slow: ",
        "ttft p50 ≤ 100ms",
        "sweepline-mock",
        "first_token − sent",
        "The vertical axis begins at 0.",
        "bf16",
    ] {
        assert!(words.contains(said), "{said} is not in\n{words}");
    }
    // The interval of the comparison is on the first screen.
    let answer = page.section("answer").unwrap();
    assert!(answer.contains("class=\"answer\"") && unescaped(answer).contains('['), "{answer}");

    // The figures are written alone, each as a standalone file.
    lab.ok(&["report", "plan.yaml", "--figures", "figures"]);
    let files: Vec<_> =
        std::fs::read_dir(lab.path().join("figures")).unwrap().map(|file| file.unwrap().path()).collect();
    let files: Vec<_> = files.into_iter().filter(|path| path.extension().unwrap() == "svg").collect();
    assert_eq!(files.len(), page.text.matches("<figure id").count());
    for file in &files {
        let svg = std::fs::read_to_string(file).unwrap();
        assert!(
            svg.starts_with("<!-- figure of a sweepline report -->\n<svg xmlns=") && svg.contains("<title id="),
            "{svg}"
        );
        assert!(svg.trim_end().ends_with("</svg>") && svg.matches("<svg").count() == 1, "{svg}");
    }
    std::fs::write(&files[0], "<svg>mine</svg>").unwrap();
    let refused = lab.run(&["report", "plan.yaml", "--figures", "figures"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("is not a figure of a report"), "{}", refused.stderr);
    lab.ok(&["report", "plan.yaml", "--figures", "figures", "--force"]);

    // The command overwrites only its own files.
    lab.ok(&["report", "plan.yaml", "-o", "report.html"]);
    lab.write("notes.html", "<!doctype html><p>mine</p>");
    let refused = lab.run(&["report", "plan.yaml", "-o", "notes.html"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("notes.html already exists and is not a report of sweepline"),
        "{}",
        refused.stderr
    );
    lab.ok(&["report", "plan.yaml", "-o", "notes.html", "--force"]);
    in_a_browser(&lab.path().join("report.html"));
    lab::browser::is_sound(&lab.path().join("report.html"));
}

#[test]
fn a_report_names_what_it_does_not_have() {
    let lab = Lab::new();
    let plan = "\
sweepline: 1
name: small
endpoints: { demo: { engine: mock, mock: { ttft: 1ms, itl: 1ms } } }
models: { m: { id: tiny } }
scenarios: { s: { base: B1, output_tokens: 4 } }
phases: { fill: 20ms, stabilize: 20ms, measure: 150ms, drain: 2s }
validity: { client_late: { suspect: 99%, invalid: 100% }, unsteady: { suspect: 99% } }
sweeps:
  s: { matrix: { endpoint: [demo], model: [m], scenario: [s], batch_size: [1, 2, 3] } }
";
    lab.write("plan.yaml", plan);
    let nothing = lab.run(&["report", "plan.yaml"]);
    assert_eq!(nothing.code, Some(2), "{}", nothing.stderr);
    assert!(
        nothing.stderr.contains("no results of this plan in results: run `sweepline run plan.yaml`"),
        "{}",
        nothing.stderr
    );
    assert!(!lab.path().join("report.html").exists());

    honest(&lab.run(&["run", "plan.yaml", "-q", "--only", "batch_size < 3"]));
    lab.ok(&["report", "plan.yaml"]);
    let page = Page::of(&lab, "report.html");
    is_sound(&page);
    let words = page.words();
    let missing = words.split("Not in this report").last().unwrap();
    for said in [
        "Comparison the plan declares no comparison",
        "Where the time went no counted run has scraped metrics of its server",
        "Capacity and money capacity needs an objective",
    ] {
        assert!(missing.contains(said), "{said}: {missing}");
    }
    assert!(page.section("capacity").is_none() && page.section("comparison").is_none());
    assert!(words.contains("No hypothesis is stated"), "{words}");
    assert!(words.contains("The plan declares no objective and no comparison, so nothing was judged"), "{words}");
    assert!(words.contains("1 not measured"), "{words}");
    let tables = page.tables("runs");
    let states: BTreeMap<&str, usize> = (0..3).fold(BTreeMap::new(), |mut states, row| {
        *states.entry(tables[0].text(row, "state")).or_default() += 1;
        states
    });
    assert_eq!(states.get("not measured"), Some(&1), "{states:?}");

    // Tests selected runs of a changed plan, from any folder.
    let of_one = ["report", "plan.yaml", "--only", "batch_size == 1", "-o", "one.html"];
    lab.ok(&of_one);
    assert_eq!(Page::of(&lab, "one.html").tables("runs")[0].rows.len(), 1);
    lab.ok(&["report", "plan.yaml", "--skip", "batch_size == 1", "-o", "others.html"]);
    assert_eq!(Page::of(&lab, "others.html").tables("runs")[0].rows.len(), 2);
    lab.ok(&["report", "plan.yaml", "--set", "slo={ ttft: { p50: 1s } }", "-o", "judged.html"]);
    assert!(Page::of(&lab, "judged.html").words().contains("ttft p50 ≤ 1s"));
    std::fs::rename(lab.results(), lab.path().join("elsewhere")).unwrap();
    lab.ok(&["report", "plan.yaml", "--results", "elsewhere", "-o", "elsewhere.html"]);
    lab.write("parts/m.yaml", "models: { m: { id: tiny } }\n");
    lab.write("inner/plan.yaml", &plan.replace("models: { m: { id: tiny } }", "use: ../parts/m.yaml"));
    let outside = lab.run(&["report", "inner/plan.yaml", "--results", "elsewhere"]);
    assert!(outside.code == Some(2) && outside.stderr.contains("--allow-outside"), "{}", outside.stderr);
    lab.ok(&["report", "inner/plan.yaml", "--results", "elsewhere", "--allow-outside", "-o", "inner.html"]);
}

#[test]
fn nothing_that_others_wrote_is_obeyed() {
    const EVIL: &str = "<script>alert(1)</script>\\\"><img src=x onerror=alert(2)>'{{ 7 * 7 }}&";
    const SAID: &str = "busy</title></svg><script>alert(3)</script>";
    let plan = format!(
        "\
sweepline: 1
name: \"name {EVIL}\"
hypothesis: \"hypothesis {0}\"
notes: \"notes {0}\"
endpoints: {{ \"end<b>point\": {{ engine: mock, mock: {{ ttft: 1ms, itl: 1ms }}, hardware: {{ gpu: \"gpu<i>\" }} }} }}
models: {{ \"mo<u>del\": {{ id: \"id<s>\" }} }}
scenarios: {{ \"sce<q>nario\": {{ base: B1, output_tokens: 4 }} }}
phases: {{ fill: 20ms, stabilize: 20ms, measure: 300ms, drain: 2s }}
validity: {{ client_late: {{ suspect: 99%, invalid: 100% }}, unsteady: {{ suspect: 99% }} }}
slo: {{ ttft: {{ p50: 1s }} }}
sweeps:
  \"swe<p>ep\":
    matrix: {{ endpoint: [\"end<b>point\"], model: [\"mo<u>del\"], scenario: [\"sce<q>nario\"], batch_size: [1, 2] }}
",
        EVIL.replace("{{ 7 * 7 }}", "")
    )
    .replace("{{ 7 * 7 }}", "");
    let lab = measured(&plan);
    let run = lab.runs().into_values().next().unwrap();
    give_up_saying(&lab, &run, "rate_limited", SAID);
    lab.ok(&["report", "plan.yaml"]);
    let page = Page::of(&lab, "report.html");
    is_sound(&page);
    for tag in ["<img", "<b>", "<i>", "<u>", "<s>", "<q>", "onerror=alert(2)>\"", "<script>alert"] {
        assert!(!page.text.contains(tag), "{tag}");
    }
    let words = page.words();
    for said in ["<script>alert(1)</script>", "end<b>point", "mo<u>del", "sce<q>nario", "swe<p>ep", "gpu<i>", SAID] {
        assert!(words.contains(said), "{said} is not shown:\n{words}");
    }
    lab.ok(&["report", "plan.yaml", "--figures", "figures"]);
    let files = std::fs::read_dir(lab.path().join("figures")).unwrap().map(|file| file.unwrap().path());
    for file in files.filter(|path| path.extension().unwrap() == "svg") {
        let svg = std::fs::read_to_string(file).unwrap();
        assert!(!svg.contains("<b>") && !svg.contains("<script") && svg.contains("end&lt;b&gt;point"), "{svg}");
    }
    assert!(words.contains("1 given up") && words.contains("429 (3 of 3)"), "{words}");
}
