//! Runs those tests of the plain suite again that draw only a part of their samples there, or that check a
//! page or a workbook only without a browser and LibreOffice.

use std::process::Command;

/// Runs the tests whose names contain one of the filters, with every sample and program. `targets` selects what
/// cargo runs; packages are not selected, because cargo would then build them with other features.
fn run(targets: &[&str], filters: &[&str]) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.arg("test").args(targets).arg("--").args(filters).current_dir(lab::root());
    let output = cargo.env("SWEEPLINE_WHOLE", "1").output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{stdout}{stderr}");
    let passed = stdout.lines().filter(|line| line.starts_with("test ") && line.ends_with(" ... ok")).count();
    assert!(passed > 0, "no test is named so: {stdout}{stderr}");
}

fn imports_of_every_changed_field() {
    run(&["--lib"], &["import::tests::mutations"]);
}

fn every_change_of_a_plan_and_every_cut_of_a_journal() {
    run(&["--lib"], &["the_schema_and_the_check", "a_cut_journal", "extreme_rows"]);
}

fn every_simulation_of_the_analysis() {
    run(&["--lib"], &["simulations", "clean_run", "false_alarm"]);
}

fn every_combination_of_results() {
    let filters = ["no_combination_of_results", "never_contradict_each_other", "whatever_the_long_runs_show"];
    run(&["--lib"], &filters);
}

fn pages_in_a_browser() {
    run(&["--test", "it"], &["report::", "report_figures::", "run_parts::", "watch::"]);
}

fn workbooks_in_libreoffice() {
    run(&["--test", "it"], &["export::a_workbook"]);
}

fn figures_that_two_ways_of_sending_share() {
    run(&["--test", "it"], &["http2::both_versions", "workers::four_workers"]);
}

fn samples_that_take_long() {
    let filters = [
        "arrivals::arrivals_reach",
        "bad::",
        "extremes::",
        "fingerprint::",
        "fuzz_smoke::",
        "gpus::",
        "identity::",
        "import::hostile",
        "import_cells::",
        "launch::much_output",
        "narrow::",
        "optimize::settings_that_are_worse",
        "otlp::",
        "search_answers::a_search_",
        "telemetry::what_the_mock_says",
    ];
    run(&["--test", "it"], &filters);
}

/// The ratio of the engine's CPU time to that of a bare reader (`benches/ingest`), so that a lost optimization
/// is detected.
fn the_engine_costs_little_more_than_a_bare_reader() {
    let mut cargo = Command::new(env!("CARGO"));
    let output = cargo.args(["test", "--bench", "ingest"]).current_dir(lab::root()).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
}

lab::measured_tests![
    imports_of_every_changed_field,
    every_change_of_a_plan_and_every_cut_of_a_journal,
    every_simulation_of_the_analysis,
    every_combination_of_results,
    pages_in_a_browser,
    workbooks_in_libreoffice,
    figures_that_two_ways_of_sending_share,
    samples_that_take_long,
    the_engine_costs_little_more_than_a_bare_reader,
];
