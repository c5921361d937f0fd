//! Tests that the settings of a server can be compared: curves that differ only in the server's flags share figures and
//! Pareto fronts, and are labeled by what varies.

use std::collections::BTreeSet;
use std::io::Read;

use serde_json::Value;

use lab::report::Page;

use super::corpus::copy;

/// A load of a curve, with two figures of a front.
struct Point {
    name: String,
    per_gpu: f64,
    per_user: f64,
    is_on: bool,
}

fn points(curves: &Value) -> Vec<Point> {
    let mut points = Vec::new();
    for curve in curves["curves"].as_array().unwrap() {
        for rung in curve["rungs"].as_array().unwrap() {
            let value = |name: &str| rung["figures"][name]["value"].as_f64();
            let figures = (value("output_throughput_per_gpu_tokens_per_s"), value("user_throughput_mean_tokens_per_s"));
            let (Some(per_gpu), Some(per_user)) = figures else { continue };
            let name = format!("{}: {} at {}", curve["sweep"], curve["axes"], rung["load"]);
            points.push(Point { name, per_gpu, per_user, is_on: rung["pareto"]["user_over_gpu"] == true });
        }
    }
    points
}

#[test]
fn all_settings_share_one_front() {
    let lab = copy("launch");
    let curves = lab.ok(&["curves", "plan.yaml", "--format", "json"]).json();
    lab.follows("curves", &curves);
    let points = points(&curves);
    assert_eq!(points.len(), 4, "two settings in each of two sweeps");
    for point in &points {
        let beats = |other: &&Point| {
            let as_good = other.per_gpu >= point.per_gpu && other.per_user >= point.per_user;
            as_good && (other.per_gpu > point.per_gpu || other.per_user > point.per_user)
        };
        let better = points.iter().find(beats);
        assert_eq!(point.is_on, better.is_none(), "{}: {:?}", point.name, better.map(|other| &other.name));
    }
    assert!(points.iter().any(|point| !point.is_on), "some setting is worse than others");
    let all = curves["curves"].as_array().unwrap();
    let groups: BTreeSet<u64> = all.iter().map(|curve| curve["group"].as_u64().unwrap()).collect();
    assert_eq!(groups, BTreeSet::from([0]), "they serve the same requests");
    for curve in all {
        let slots = curve["axes"]["server.slots"].as_str().unwrap();
        assert_eq!(curve["label"], format!("server.slots={slots}"), "the endpoint is the same everywhere");
    }
    // The text has one table for each front, with settings of several curves.
    let text = lab.ok(&["curves", "plan.yaml"]).stdout;
    assert_eq!(text.matches("Pareto front: tokens/s per user").count(), 1, "{text}");
    // The export agrees.
    let rows = lab.ok(&["export", "plan.yaml", "--rows", "curves", "--format", "json"]).json();
    let on = |rows: &Value| rows.as_array().unwrap().iter().filter(|row| row["on_front_user_gpu"] == true).count();
    assert_eq!(on(&rows), points.iter().filter(|point| point.is_on).count());
}

#[test]
fn settings_of_a_sweep_share_figures() {
    let lab = copy("launch");
    let names = ["server.slots=1", "server.slots=8"];
    let plot = lab.ok(&["curves", "plan.yaml", "--plot"]).stdout;
    let charts: Vec<&str> = plot.split("\noutput throughput, tok/s\n").skip(1).collect();
    assert_eq!(charts.len(), 2, "one for each sweep with throughput: {plot}");
    // The legend ends before the next chart.
    let legend = charts[0].split("\n\n").next().unwrap();
    assert!(names.iter().all(|name| legend.contains(name)), "{legend}");

    lab.ok(&["report", "plan.yaml", "-o", "report.html", "--figures", "figures"]);
    let files = std::fs::read_dir(lab.path().join("figures")).unwrap().map(|file| file.unwrap().path());
    let drawings = files.filter(|path| path.extension().is_some_and(|ending| ending == "svg"));
    let together = |text: &String| names.iter().all(|name| text.contains(name));
    let texts: Vec<String> = drawings.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert!(texts.iter().filter(|text| together(text)).count() >= 3, "throughput, TTFT and TPOT of both settings");
    let page = Page::of(&lab, "report.html");
    let pareto = page.section("pareto").unwrap();
    let figures = Page::between(pareto, "<figure", "</figure>");
    assert_eq!(figures.len(), 2, "one for each front that has both figures");
    for figure in figures {
        assert!(names.iter().all(|name| figure.contains(name)), "{figure}");
        assert_eq!(figure.matches("<title>").count(), 4, "every load of every setting");
    }
}

#[test]
fn settings_of_a_sweep_share_charts_of_a_workbook() {
    let lab = copy("launch");
    lab.ok(&["export", "plan.yaml", "--rows", "runs,curves", "-o", "book.xlsx"]);
    let file = std::fs::File::open(lab.path().join("book.xlsx")).unwrap();
    let mut book = zip::ZipArchive::new(file).unwrap();
    let mut series = Vec::new();
    for at in 0..book.len() {
        let mut part = book.by_index(at).unwrap();
        if part.name().unwrap().starts_with("xl/charts/chart") {
            let mut text = String::new();
            part.read_to_string(&mut text).unwrap();
            series.push((text.matches("<c:ser>").count(), text.contains("output throughput")));
        }
    }
    // Each of the two sweeps has a chart of throughput, and a series for each of its settings.
    let of_throughput: Vec<usize> = series.iter().filter(|(_, is_it)| *is_it).map(|(count, _)| *count).collect();
    assert_eq!(of_throughput, [2, 2], "{series:?}");
}
