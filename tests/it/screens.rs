//! Tests terminal screens at 80, 100 and 140 columns, through tmux: a run, a resumed sweep, an outage and
//! a comparison. Figures are replaced, because they vary between machines; words, their order and line
//! breaks are as users see them.

use std::path::PathBuf;

use lab::front::{Front, Mood};
use lab::mock::Mock;
use lab::tmux::Terminal;
use lab::{Lab, wait_for};

/// Common terminal widths.
const COLUMNS: [u16; 3] = [80, 100, 140];

/// The effects of a busy machine on the client's figures are not tested here.
const MILD: &str = "validity: { client_late: { suspect: 100%, invalid: 100% }, unsteady: { suspect: 100% } }\n";

/// A plan with two settings of one server under two loads; the second setting generates tokens at
/// half the rate.
const TWO_SETTINGS: &str = "sweepline: 1
name: two settings
endpoints:
  base: { engine: mock, mock: { ttft: 40ms, itl: 10ms, jitter: 5% } }
  patched: { engine: mock, mock: { ttft: 40ms, itl: 20ms, jitter: 5% } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 8 } }
phases: { fill: 0s, stabilize: 100ms, measure: { for: 400ms, min_requests: 20, at_most: 60s }, drain: 10s }
compare: { by: endpoint, baseline: base, metrics: [tpot_p50, output_throughput] }
sweeps: { s: { matrix: { endpoint: [base, patched], scenario: short, batch_size: [4, 8] }, repeats: 4 } }
";

/// Returns a plan with one setting under two loads, each with a window of this length.
fn one_setting(endpoint: &str, measure: &str) -> String {
    format!(
        "sweepline: 1
name: evening
endpoints: {{ {endpoint} }}
models: {{ m: {{ id: tiny }} }}
scenarios: {{ short: {{ base: B1, output_tokens: 8 }} }}
phases: {{ fill: 0s, stabilize: 100ms, measure: {measure}, drain: 10s }}
{MILD}sweeps: {{ s: {{ matrix: {{ scenario: short, batch_size: [4, 8] }} }} }}
"
    )
}

fn embedded() -> String {
    one_setting("candidate: { engine: mock, mock: { ttft: 40ms, itl: 10ms } }", "1s")
}

/// Returns the screen after the program has ended. No line is longer than the terminal, that is, no line
/// was broken at its edge.
fn at_the_end(terminal: &Terminal) -> String {
    let has_ended = |screen: &String| screen.contains("ended with ");
    let screen = wait_for("the end", || Some(terminal.screen(false)).filter(has_ended));
    // The program does not wrap commands that users copy; the terminal wraps them, and copies them
    // as a whole.
    let without_commands = |text: &str| -> Vec<String> {
        let is_command = |line: &str| line.contains("sweepline ");
        text.lines().map(str::trim_end).filter(|line| !is_command(line)).map(str::to_owned).collect()
    };
    let unbroken = without_commands(&terminal.unbroken());
    let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
    let broken: Vec<&String> = unbroken.iter().filter(|line| !lines.contains(&line.as_str())).collect();
    assert!(broken.is_empty(), "broken at the terminal's edge: {broken:#?}");
    terminal.unbroken()
}

/// Rejoins the lines that the program wrapped between words, because line breaks depend on the number of
/// digits in figures.
fn rejoined(screen: &str, columns: usize) -> String {
    let mut whole: Vec<String> = Vec::new();
    let mut before = 0;
    for line in screen.lines() {
        let words = line.strip_prefix("  ").filter(|words| !words.starts_with(' '));
        let first = words.and_then(|words| words.split(' ').next()).map_or(0, |word| word.chars().count());
        match (words, whole.last_mut()) {
            (Some(words), Some(last)) if before + 1 + first > columns => *last = format!("{last} {words}"),
            _ => whole.push(line.to_owned()),
        }
        before = line.trim_end().chars().count();
    }
    whole.join("\n")
}

/// Compares a screen with the stored one.
#[track_caller]
fn keeps(lab: &Lab, what: &str, columns: u16, screen: &str) {
    let runs = lab.runs();
    // Tables and their sentences are at most 100 columns wide in any terminal.
    let whole = rejoined(screen.trim_end(), usize::from(columns.min(100)));
    let ids = runs.keys().fold(whole, |text, id| text.replace(&id[..8], "ID"));
    let text = ids;
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/snapshots"));
    let filters = [
        (r"(?m)^\d\d:\d\d:\d\d ", "hh:mm:ss "),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        // Matches a minute or a part of a minute, and a figure or a range.
        (r"\d+m\d+s", "#s"),
        (r"\d+(\.\d+)? to (\d+(\.\d+)? %)", "$2"),
        // Matches a number with its mark for few samples, and the spaces that align it with its
        // heading.
        (r"[+-]?\d+(\.\d+)?\*?", "#"),
        (r"(?m)(\S) {2,}", "$1  "),
        // An outage begins with responses that were cut off, or with none, if no request was in flight.
        (r"HTTP # # times in a row: ", "# requests in a row were refused, reset or failed with # or #; the last: "),
    ];
    insta::with_settings!({ snapshot_path => folder, prepend_module_to_snapshot => false, filters => filters }, {
        insta::assert_snapshot!(format!("screen_{what}_{columns}"), text);
    });
}

#[test]
fn a_run_is_read_at_any_width() {
    for columns in COLUMNS {
        let lab = Lab::new();
        lab.write("plan.yaml", &embedded());
        let Some(terminal) = Terminal::start(&lab, &["run", "plan.yaml"], columns) else { return };
        keeps(&lab, "run", columns, &at_the_end(&terminal));
    }
}

#[test]
fn a_resumed_sweep_is_read_at_any_width() {
    for columns in COLUMNS {
        let lab = Lab::new();
        lab.write("plan.yaml", &embedded());
        lab.run(&["run", "plan.yaml", "--only", "batch_size == 4"]);
        let Some(terminal) = Terminal::start(&lab, &["run", "plan.yaml"], columns) else { return };
        keeps(&lab, "resume", columns, &at_the_end(&terminal));
    }
}

#[test]
fn an_outage_is_read_at_any_width() {
    for columns in COLUMNS {
        let mock = Mock::start(&["--ttft", "40ms", "--itl", "10ms"]);
        let front = Front::start(mock.port, Mood::Passes);
        let lab = Lab::new();
        let endpoint = format!("candidate: {{ url: 'http://127.0.0.1:{}/v1', engine: mock }}", front.port);
        lab.write("plan.yaml", &one_setting(&endpoint, "2s"));
        let Some(terminal) = Terminal::start(&lab, &["run", "plan.yaml", "--only", "'batch_size == 4'"], columns)
        else {
            return;
        };
        wait_for("the load", || (mock.log_now().len() > 10).then_some(()));
        front.turn(Mood::loading());
        wait_for("the wait", || terminal.screen(false).contains("candidate: waiting").then_some(()));
        front.turn(Mood::Passes);
        keeps(&lab, "outage", columns, &at_the_end(&terminal));
    }
}

#[test]
fn a_comparison_is_read_at_any_width() {
    let lab = Lab::new();
    lab.write("plan.yaml", &(TWO_SETTINGS.to_owned() + MILD));
    lab.run(&["run", "plan.yaml"]);
    for columns in COLUMNS {
        let Some(terminal) = Terminal::start(&lab, &["compare", "plan.yaml"], columns) else { return };
        keeps(&lab, "comparison", columns, &at_the_end(&terminal));
    }
}
