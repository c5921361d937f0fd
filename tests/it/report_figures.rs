//! Tests the figures of `report` other than those about loads: heat maps, evenness, classes, fronts
//! and the generator, each with the numbers of the command that computes it; and figures as images.

use std::path::Path;
use std::process::Command;

use resvg::tiny_skia::Pixmap;
use serde_json::Value;

use lab::Lab;
use lab::report::{Page, Table, is_sound, json, measured};

/// A plan with two servers, one of which misses the objective, three scenarios including a mix, and
/// two loads.
const PLAN: &str = "\
sweepline: 1
name: figures
seed: 7
endpoints:
  slow: { engine: mock, mock: { ttft: 30ms, itl: 2ms, jitter: 40% }, hardware: { gpu: G, gpus: 2, price_per_hour: 2 } }
  quick: { engine: mock, mock: { ttft: 4ms, itl: 1ms, jitter: 40% }, hardware: { gpu: G, gpus: 1, price_per_hour: 1 } }
models: { m: { id: tiny } }
scenarios:
  short: { base: B1, output_tokens: 6 }
  long: { base: B1, output_tokens: 16 }
  both: { mix: [{ scenario: short, share: 3 }, { scenario: long, share: 1 }] }
phases: { fill: 100ms, stabilize: 100ms, measure: 900ms, drain: 5s }
slo: { ttft: { p50: 15ms } }
# A busy machine sends late; what is asked here is not how exact the client is.
validity: { client_late: { suspect: 100%, invalid: 100% }, unsteady: { suspect: 99% } }
sweeps:
  s: { matrix: { endpoint: [slow, quick], model: [m], scenario: [short, long, both], batch_size: [2, 6] } }
";

/// Returns the figure for a load of a curve, by endpoint, scenario and load.
fn figure<'j>(curves: &'j Value, (endpoint, scenario, load): (&str, &str, f64), key: &str) -> &'j Value {
    &rung(curves, (endpoint, scenario, load))["figures"][key]
}

fn rung<'j>(curves: &'j Value, (endpoint, scenario, load): (&str, &str, f64)) -> &'j Value {
    let is_meant = |curve: &&Value| curve["endpoint"] == endpoint && curve["scenario"] == scenario;
    let curve = curves["curves"].as_array().unwrap().iter().find(is_meant);
    let curve = curve.unwrap_or_else(|| panic!("no curve of {endpoint} and {scenario}"));
    curve["rungs"].as_array().unwrap().iter().find(|rung| rung["load"] == load).unwrap()
}

/// Returns the figures in a section, each with its table.
fn figures<'p>(page: &'p Page, section: &str) -> Vec<(&'p str, Table)> {
    let section = page.section(section).unwrap_or_else(|| panic!("no section {section}"));
    let of = |figure: &'p str| {
        let table = Page::between(figure, "<table>", "</table>")[0];
        (figure, Table::of(table))
    };
    Page::between(section, "<figure", "</figure>").into_iter().map(of).collect()
}

/// Returns the number of values that a figure shows on hover.
fn marks(figure: &str) -> usize {
    figure.matches("<title>").count()
}

fn is_of(table: &Table, row: usize, keys: [&str; 3], wanted: &Value) {
    for (key, end) in keys.into_iter().zip(["value", "low", "high"]) {
        assert_eq!(table.number(row, key), wanted[end].as_f64(), "row {row}: {key}, expected {wanted}");
    }
}

fn heat_maps_are_those_of_curves(page: &Page, curves: &Value) -> usize {
    let mut compared = 0;
    for (figure, table) in figures(page, "heatmaps") {
        let key = table.headings[5].clone();
        for row in 0..table.rows.len() {
            let load = table.number(row, "batch_size").unwrap();
            let at = (table.text(row, "configuration"), table.text(row, "scenario"), load);
            is_of(&table, row, [&key, "low", "high"], self::figure(curves, at, &key));
            compared += usize::from(table.number(row, &key).is_some());
        }
        assert_eq!(marks(figure), table.rows.len(), "each measured cell shows its value");
        // Frames and crosses are drawn as three strokes in the objective's color in each cell that
        // misses.
        let missed = (0..table.rows.len()).filter(|row| table.text(*row, "objective").contains("misses")).count();
        assert_eq!(figure.matches("stroke=\"#B42318\"").count(), 3 * missed, "{figure}");
        assert_eq!(figure.matches("<figcaption>").count(), 1);
        assert_eq!(figure.contains("Framed and crossed"), missed > 0);
    }
    compared
}

fn jitter_is_that_of_curves(page: &Page, curves: &Value) -> usize {
    let mut compared = 0;
    for (figure, table) in figures(page, "jitter") {
        let scenario =
            ["short", "long", "both"].into_iter().find(|name| figure.contains(&format!("{name} (model m): "))).unwrap();
        for row in 0..table.rows.len() {
            let at = (table.text(row, "configuration"), scenario, table.number(row, "batch_size").unwrap());
            is_of(&table, row, ["jitter_ratio", "low", "high"], self::figure(curves, at, "jitter_ratio"));
            compared += usize::from(table.number(row, "jitter_ratio").is_some());
        }
        let known = (0..table.rows.len()).filter(|row| table.number(*row, "jitter_ratio").is_some()).count();
        assert_eq!(marks(figure), known, "unknown values are not drawn");
        for word in ["smooth", "noticeable", "choppy"] {
            assert!(figure.contains(&format!("\n{word}\n</text>")), "{word} is next to the plane: {figure}");
        }
        assert!(figure.contains("near 1 smooth, 2 noticeable, above 3 choppy"), "the definition's text: {figure}");
    }
    compared
}

fn classes_are_those_of_curves_and_exports(page: &Page, lab: &Lab) -> usize {
    let mut compared = 0;
    let of_class = ["short", "long"].map(|class| json(lab, &["curves", "plan.yaml", "--class", class]));
    let section = page.section("classes").unwrap();
    let parts: Vec<&str> = section.split("<h3>").skip(1).collect();
    for part in parts.iter().filter(|part| part.contains("<figure")) {
        let endpoint =
            ["slow", "quick"].into_iter().find(|name| part.starts_with(&format!("s: {name}, both (model m)"))).unwrap();
        for figure in Page::between(part, "<figure", "</figure>") {
            let table = Table::of(Page::between(figure, "<table>", "</table>")[0]);
            let key = table.headings[4].clone();
            for row in 0..table.rows.len() {
                let curves = &of_class[usize::from(table.text(row, "configuration") == "long")];
                let at = (endpoint, "both", table.number(row, "batch_size").unwrap());
                is_of(&table, row, [&key, "low", "high"], self::figure(curves, at, &key));
                compared += usize::from(table.number(row, &key).is_some());
            }
            assert!(!figure.contains("objective ≤"), "the objective does not apply to a class");
        }
    }
    let export = json(lab, &["export", "plan.yaml", "--rows", "classes"]);
    let tables = page.tables("classes");
    let table = tables.last().unwrap();
    assert_eq!(table.rows.len(), export.as_array().unwrap().len());
    for row in 0..table.rows.len() {
        let (id, class) = (table.text(row, "run"), table.text(row, "class"));
        let is_meant = |one: &&Value| one["run_id"].as_str().unwrap().starts_with(id) && one["class"] == class;
        let wanted = export.as_array().unwrap().iter().find(is_meant).unwrap();
        for key in [
            "requests",
            "failed",
            "ttft_p50_ms",
            "ttft_p99_ms",
            "tpot_p50_ms",
            "e2e_p50_ms",
            "e2e_p99_ms",
            "goodput_share",
        ] {
            assert_eq!(table.number(row, key), wanted[key].as_f64(), "{id} {class} {key}");
        }
        compared += 1;
    }
    compared
}

/// Returns the heading for a value in a figure, with its unit.
fn heading(table: &Table, key: &str) -> String {
    table.headings.iter().find(|heading| heading.starts_with(key)).unwrap().clone()
}

fn fronts_are_those_of_curves(page: &Page, curves: &Value) -> usize {
    let (mut compared, mut of_money) = (0, 0);
    for (figure, table) in figures(page, "pareto") {
        const COST: &str = "cost_per_million_output_tokens";
        let (keys, flag) = if figure.contains("-output_throughput-e2e_p99\"") {
            (["output_throughput", "e2e_p99"], "throughput_over_p99")
        } else if figure.contains(&format!("-{COST}-ttft_p50\"")) {
            ([COST, "ttft_p50"], "cost_over_latency")
        } else {
            (["output_throughput_per_gpu", "user_throughput_mean"], "user_over_gpu")
        };
        let suffixes = keys.map(|key| match key {
            COST => "",
            key if key.starts_with("e2e") || key.starts_with("ttft") => "_ms",
            _ => "_tokens_per_s",
        });
        of_money += usize::from(flag == "cost_over_latency");
        let scenario =
            ["short", "long", "both"].into_iter().find(|name| figure.contains(&format!("{name} (model m), "))).unwrap();
        let mut on = 0;
        for row in 0..table.rows.len() {
            let at = (table.text(row, "configuration"), scenario, table.number(row, "load").unwrap());
            for (key, suffix) in keys.into_iter().zip(suffixes) {
                let columns = ["", "_low", "_high"].map(|end| format!("{key}{end}{suffix}"));
                let wanted = self::figure(curves, at, &columns[0]);
                is_of(&table, row, [&columns[0], &columns[1], &columns[2]], wanted);
            }
            let is_on = table.text(row, "on the front") == "yes";
            assert_eq!(is_on, rung(curves, at)["pareto"][flag] == true, "{at:?} {flag}");
            if flag == "cost_over_latency" {
                // Lower price and latency are better, so a point is dominated by any point that is at least
                // as good in both and better in one.
                let pair = |row| keys.map(|key| table.number(row, &heading(&table, key)).unwrap());
                let [cost, latency] = pair(row);
                let beats = |[c, l]: [f64; 2]| c <= cost && l <= latency && (c < cost || l < latency);
                assert_eq!(is_on, !(0..table.rows.len()).any(|other| beats(pair(other))), "{at:?}");
            }
            on += usize::from(is_on);
            compared += 1;
        }
        let known =
            (0..table.rows.len()).filter(|row| !table.text(*row, "on the front").starts_with("does not")).count();
        assert_eq!(marks(figure), known);
        assert!(figure.contains(&format!("{on} of {known} loads")), "{figure}");
    }
    assert_eq!(of_money, 3, "prices are known: each scenario has a front by cost");
    compared
}

fn the_generator_is_that_of_exports_and_calibrate(page: &Page, export: &Value, calibration: &Value) {
    let tables = page.tables("generator");
    let runs = tables.iter().find(|table| table.at("lateness_p50_ms").is_some()).unwrap();
    assert_eq!(runs.rows.len(), export.as_array().unwrap().len());
    for row in 0..runs.rows.len() {
        let id = runs.text(row, "run");
        let run =
            export.as_array().unwrap().iter().find(|run| run["run_id"].as_str().unwrap().starts_with(id)).unwrap();
        for key in ["lateness_p50_ms", "lateness_p99_ms", "lateness_max_ms"] {
            assert_eq!(runs.number(row, key), run[key].as_f64(), "{id} {key}");
        }
    }
    let loads = tables.iter().find(|table| table.at("TTFT error p50, ms").is_some()).unwrap();
    let measured = calibration["calibration"]["loads"].as_array().unwrap();
    assert_eq!(loads.rows.len(), measured.len());
    for (row, one) in measured.iter().enumerate() {
        let (ttft, late) = (&one["errors"]["ttft"], &one["errors"]["late"]);
        assert_eq!(loads.number(row, "n"), ttft["n"].as_f64());
        assert_eq!(loads.number(row, "TTFT error p50, ms"), ttft["p50_ms"].as_f64());
        assert_eq!(loads.number(row, "TTFT error max, ms"), ttft["max_ms"].as_f64());
        assert_eq!(loads.number(row, "late max, ms"), late["max_ms"].as_f64());
        assert_eq!(loads.number(row, "events/s"), one["pressure"]["events_per_second"].as_f64());
    }
}

/// Asserts that each figure has an image that is twice the size of its drawing, and white with dark
/// pixels where its title is.
fn pictures_are_those_of_drawings(folder: &Path) -> usize {
    let files = || std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let drawings: Vec<_> = files().filter(|path| path.extension().unwrap() == "svg").collect();
    for path in &drawings {
        let svg = std::fs::read_to_string(path).unwrap();
        let size = |name: &str| -> u32 {
            Page::between(&svg, &format!(" {name}=\""), "\"")[0].parse().unwrap_or_else(|_| panic!("{name}: {svg}"))
        };
        let picture = path.with_extension("png");
        let pixels = Pixmap::decode_png(&std::fs::read(&picture).unwrap()).unwrap();
        assert_eq!((pixels.width(), pixels.height()), (2 * size("width"), 2 * size("height")), "{}", picture.display());
        let title = &Page::between(&svg, "<title id=\"title\">", "</title>")[0];
        assert!(title.len() > 10, "{title}");
        // The first line of the title is between the top and its baseline.
        let base: u32 = Page::between(&svg, "<tspan x=\"12\" y=\"", "\"")[0].parse().unwrap();
        let dots = pixels.pixels().iter().zip(0u32..).filter(|(_, at)| at / pixels.width() < base);
        let dark = dots.filter(|(dot, _)| dot.red() < 110 && dot.green() < 110 && dot.blue() < 110).count();
        assert!(dark > 200, "{}: {dark} dark pixels where the title is", picture.display());
        let corner = pixels.pixel(pixels.width() - 1, pixels.height() - 1).unwrap();
        assert_eq!([corner.red(), corner.green(), corner.blue(), corner.alpha()], [255; 4]);
    }
    assert_eq!(files().count(), 2 * drawings.len());
    drawings.len()
}

/// On a machine without fonts, the images are byte-identical. The test is skipped if a folder cannot be
/// hidden from a process.
fn no_font_of_the_machine_is_looked_at(lab: &Lab) {
    let program = lab.command(&[]).get_program().to_owned();
    let hide =
        "mount -t tmpfs none /usr/share/fonts && cd \"$1\" && exec \"$0\" report plan.yaml -o bare.html --figures bare";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", hide]).arg(program).arg(lab.path());
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            eprintln!("skipped: a folder cannot be hidden ({}), so fonts were not removed", said.trim());
            return;
        }
        Err(error) => {
            eprintln!("skipped: unshare does not run ({error}), so fonts were not removed");
            return;
        }
    }
    for file in std::fs::read_dir(lab.path().join("figures")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().unwrap() == "png" {
            let bare = lab.path().join("bare").join(path.file_name().unwrap());
            assert!(std::fs::read(&bare).unwrap() == std::fs::read(&path).unwrap(), "{}", bare.display());
        }
    }
}

#[test]
fn every_figure_has_the_numbers_of_the_command_that_answers_it() {
    let lab = measured(PLAN);
    let calibrate = ["calibrate", "--batch-size", "2", "--output-tokens", "4", "--no-search"];
    let calibration = json(&lab, &[&calibrate[..], &["--for", "150ms", "--within", "60s"]].concat());
    lab.ok(&["report", "plan.yaml", "--figures", "figures"]);
    let page = Page::of(&lab, "report.html");
    is_sound(&page);
    let curves = json(&lab, &["curves", "plan.yaml"]);
    // There are two servers × three scenarios × two loads, for a latency and for throughput.
    assert_eq!(heat_maps_are_those_of_curves(&page, &curves), 24);
    assert!(jitter_is_that_of_curves(&page, &curves) >= 2);
    assert!(classes_are_those_of_curves_and_exports(&page, &lab) >= 16);
    assert!(fronts_are_those_of_curves(&page, &curves) >= 12);
    let export = json(&lab, &["export", "plan.yaml"]);
    the_generator_is_that_of_exports_and_calibrate(&page, &export, &calibration);
    let words = page.words();
    assert!(words.contains("misses"), "the slow server is above 15 ms: {words}");

    let drawn = pictures_are_those_of_drawings(&lab.path().join("figures"));
    assert_eq!(drawn, page.text.matches("<figure id").count());
    no_font_of_the_machine_is_looked_at(&lab);
    // The command replaces only its own images.
    lab.ok(&["report", "plan.yaml", "--figures", "figures"]);
    let mine = std::fs::read_dir(lab.path().join("figures")).unwrap().map(|file| file.unwrap().path());
    let mine = mine.into_iter().find(|path| path.extension().unwrap() == "png").unwrap();
    std::fs::write(&mine, "a picture of mine").unwrap();
    let refused = lab.run(&["report", "plan.yaml", "--figures", "figures"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("is not a figure of a report"), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "a picture of mine");
}

#[test]
fn sections_without_data_are_named_with_the_reason() {
    let plan = PLAN
        .replace("scenario: [short, long, both], batch_size: [2, 6]", "scenario: [short], batch_size: [2]")
        .replace("endpoint: [slow, quick]", "endpoint: [quick]");
    let lab = measured(&plan);
    lab.ok(&["report", "plan.yaml"]);
    let page = Page::of(&lab, "report.html");
    is_sound(&page);
    let words = page.words();
    let missing = words.split("Not in this report").last().unwrap();
    for said in [
        "Scenarios over loads this needs a configuration with two scenarios",
        "Classes of mixes no run has a mix of scenarios",
        "Pareto fronts this needs two loads",
    ] {
        assert!(missing.contains(said), "{said}: {missing}");
    }
    for absent in ["heatmaps", "classes", "pareto"] {
        assert!(page.section(absent).is_none(), "{absent}");
    }
    assert!(page.section("generator").unwrap().contains("Not calibrated: no calibration of "));
    assert!(words.contains("sweepline calibrate plan.yaml"), "{words}");
}
