//! Tests that the README is correct: its plan is valid, its commands exist, and its terminal screen shows
//! the output of the program.

use lab::pages::shape;
use lab::{Lab, without_time};

fn readme() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap()
}

/// Returns the block of the README that starts with `start`.
fn block(start: &str) -> Vec<String> {
    lab::pages::block("README.md", start).lines
}

#[test]
fn its_plan_is_a_plan() {
    let readme = readme();
    let plan = readme.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let lab = Lab::new();
    lab.write("plan.yaml", plan);
    assert_eq!(lab.ok(&["check", "--strict", "plan.yaml"]).stdout, "plan.yaml: ok\n", "and a valid one");
}

#[test]
fn it_is_short() {
    let lines = readme().lines().count();
    assert!(lines <= 150, "{lines} lines: move text to docs/");
}

#[test]
fn the_page_of_commands_lists_them() {
    let lab = Lab::new();
    let help = lab.ok(&["--help"]).stdout;
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/COMMANDS.md")).unwrap();
    let table = page.split("| command | does |").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")).collect::<Vec<_>>();
    assert!(rows.len() > 5, "{rows:?}");
    for row in rows {
        for command in format!("`{row}").split('|').next().unwrap().split('·') {
            let name = command.trim().trim_matches('`').split(' ').next().unwrap();
            assert!(help.contains(&format!("\n  {name} ")), "{name} is not in:\n{help}");
        }
    }
}

#[test]
fn its_picture_of_the_terminal_is_true() {
    let plan = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/plans/quickstart.yaml")).unwrap();
    let lab = Lab::new();
    lab.write("plans/quickstart.yaml", &plan.replace("measure: 3s", "measure: 400ms"));
    let ended = lab.run(&["run", "plans/quickstart.yaml"]);
    let said: Vec<String> = ended.stderr.lines().chain(ended.stdout.lines()).map(shape).collect();
    let picture = block("14:43:05 quickstart: ");
    let picture: Vec<&str> = picture.iter().map(|line| without_time(line)).collect();
    assert!(picture.len() > 12, "{picture:?}");
    for line in picture.iter().filter(|line| !line.contains(" · ") && **line != "…" && !line.is_empty()) {
        let first = line.split_whitespace().next().unwrap();
        // The figures and the verdict of a row depend on the machine, but the row's run must be
        // there.
        if first == "lean" || first == "heavy" {
            let run: Vec<&str> = line.split_whitespace().take(4).collect();
            let rows = ended.stdout.lines().map(|row| row.split_whitespace().take(4).collect::<Vec<_>>());
            assert!(rows.into_iter().any(|row| row == run), "{line}\n{}", ended.stdout);
        } else if first != "*" {
            // The screen comes from a machine that was not busy; hints about doubtful runs contain other
            // words.
            let doubtful = ["suspect: ", "invalid: "].iter().any(|verdict| ended.stderr.contains(verdict));
            let expected = match doubtful {
                true => line.replace("one run in full", "why a run is not valid"),
                false => (*line).to_owned(),
            };
            assert!(said.contains(&shape(&expected)), "{expected}\n{}\n{}", ended.stderr, ended.stdout);
        }
    }
}

#[test]
fn its_cause_of_a_slow_run_is_what_diagnose_says() {
    let readme = readme();
    for command in ["`sweepline run plans/slow.yaml`", "`sweepline diagnose plans/slow.yaml`"] {
        assert!(readme.contains(command), "{command}");
    }
    let plan = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/plans/slow.yaml")).unwrap();
    let short = "phases: { fill: 1s, stabilize: 1s, measure: 10s, drain: 10s }";
    assert!(plan.contains(short));
    let lab = Lab::real_time();
    lab.write("plans/slow.yaml", &plan.replace(short, "phases: { fill: 300ms, stabilize: 300ms, measure: 1500ms }"));
    lab.run(&["run", "plans/slow.yaml"]);
    // Lines wrap in other places if figures are shorter, so only the words are compared.
    let words = |text: &str| shape(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    let said = words(&lab.ok(&["diagnose", "plans/slow.yaml"]).stdout);
    let told = words(&block("seen: requests wait").join(" "));
    assert!(told.contains("in the server's queue (# %); # requests wait there; at most # run (run <id>"), "{told}");
    assert!(said.contains(&told), "{told}\n{said}");
}

#[test]
fn its_picture_is_made_by_the_commands_that_it_names() {
    let readme = readme();
    let picture = readme.split("](").find_map(|rest| rest.split(')').next().filter(|path| path.ends_with(".png")));
    let picture = picture.expect("the README opens with a picture");
    assert!(readme.find(picture).unwrap() < readme.find("## ").unwrap(), "before everything else");
    assert!(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(picture).is_file(), "{picture}");
    let commands: Vec<&str> = readme.split('`').filter(|code| code.contains("plans/demo.yaml")).collect();
    assert_eq!(commands, ["sweepline run plans/demo.yaml", "sweepline report plans/demo.yaml --figures docs/pictures"]);
    // The same two commands, with windows that are short enough for a test.
    let plan = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/plans/demo.yaml")).unwrap();
    let lab = Lab::new();
    let plan = plan.replace("fill: 1s, stabilize: 1s, measure: 15s", "fill: 20ms, stabilize: 20ms, measure: 300ms");
    lab.write("plans/demo.yaml", &plan);
    for command in commands {
        let args: Vec<&str> = command.split(' ').skip(1).collect();
        let ended = lab.run(&args);
        assert!(matches!(ended.code, Some(0 | 3)), "{command}: {ended:?}");
    }
    assert!(lab.path().join(picture).is_file(), "{picture} is one of the figures");
}
