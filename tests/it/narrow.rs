//! Tests tables and paragraphs on a narrow screen: no line is wider than the screen, no name is split,
//! and no part of a table is lost.

use lab::Lab;
use lab::sweeps::honest;

/// Names of realistic length, one of them with wide characters.
const NAMES: [&str; 5] = [
    "vllm-on-node-a-with-tensor-parallel-8-and-chunked-prefill",
    "sglang-on-node-b-with-tensor-parallel-8-and-radix-cache",
    "meta-llama-3.1-70b-instruct-fp8-dynamic",
    "模型-的-名字-很-长-因为-有人-想要",
    "support-conversations-of-the-second-quarter",
];

fn plan() -> String {
    let [vllm, sglang, llama, wide, chat] = NAMES;
    format!(
        "
sweepline: 1
name: a-plan-with-a-long-name-that-somebody-thought-of
seed: 8
slo: {{ ttft: {{ p50: 40ms }} }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}
endpoints:
  {vllm}: {{ engine: mock, mock: {{ ttft: 3ms, itl: 1ms, slots: 8 }}, hardware: {{ gpus: 8, price_per_hour: 31.2 }} }}
  {sglang}: {{ engine: mock, mock: {{ ttft: 9ms, itl: 1ms, slots: 8 }}, hardware: {{ gpus: 8, price_per_hour: 28 }} }}
models: {{ {llama}: {{ id: tiny }}, {wide}: {{ id: other }} }}
scenarios: {{ {chat}: {{ base: B1, prompt_tokens: 30, output_tokens: 6 }} }}
phases: {{ fill: 20ms, stabilize: 50ms, measure: 400ms, drain: 5s }}
sweeps:
  closed:
    matrix: {{ endpoint: [{vllm}, {sglang}], model: [{llama}, {wide}], scenario: [{chat}], temperature: [0], batch_size: [1, 4] }}
    repeats: 2
    compare: {{ by: endpoint, baseline: {sglang} }}
  open:
    matrix: {{ endpoint: [{vllm}, {sglang}], model: [{llama}], scenario: [{chat}], qps: [20, 40] }}
"
    )
}

/// Returns the number of terminal columns that a text takes.
fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// Returns the output of a command on a screen with this many columns.
fn on(lab: &Lab, columns: usize, args: &[&str]) -> String {
    let output = lab.command(args).env("COLUMNS", columns.to_string()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_table_fits_the_screen() {
    let lab = Lab::new();
    lab.write("plan.yaml", &plan());
    lab.write("other.yaml", &plan().replace("seed: 8", "seed: 9").replace("price_per_hour: 28", "price_per_hour: 29"));
    honest(&lab.run(&["run", "plan.yaml"]));
    let (id, _) = lab.runs().pop_first().unwrap();
    let commands: [&[&str]; 12] = [
        &["run", "plan.yaml"],
        &["curves", "plan.yaml"],
        &["curves", "plan.yaml", "--plot"],
        &["capacity", "plan.yaml"],
        &["capacity", "plan.yaml", "--target-qps", "500"],
        &["compare", "plan.yaml"],
        &["diagnose", "plan.yaml"],
        &["show", &id, "--plan", "plan.yaml"],
        &["list"],
        &["preview", "plan.yaml"],
        &["preview", "plan.yaml", "--all"],
        &["diff", "plan.yaml", "other.yaml"],
    ];
    for (at, command) in commands.into_iter().enumerate() {
        let screens = [60, 80, 100];
        // The plain suite checks each command on one of the screens.
        let screens = if lab::is_whole() { &screens[..] } else { &screens[at % 3..][..1] };
        for &columns in screens {
            let text = on(&lab, columns, command);
            assert!(text.lines().count() > 3, "{command:?}: {text}");
            for line in text.lines() {
                assert!(width(line) <= columns, "{command:?} at {columns}: {} columns: {line}\n{text}", width(line));
            }
            // A part of a name appears only together with the whole name.
            for name in NAMES {
                let pieces = text.matches(name.split_at(name.char_indices().nth(12).unwrap().0).0).count();
                assert_eq!(pieces, text.matches(name).count(), "{command:?} at {columns}: {name} is broken:\n{text}");
            }
        }
    }
    // Columns that do not fit are named, and every value is shown somewhere.
    let narrow = on(&lab, 80, &["curves", "plan.yaml"]);
    assert!(narrow.contains("no room for requests/s"), "{narrow}");
    let stacked = on(&lab, 60, &["show", &id, "--plan", "plan.yaml"]);
    for percentile in ["p50", "p95", "p99"] {
        assert!(stacked.contains(percentile), "{stacked}");
    }
    // In a pipe, without COLUMNS, each run is on one line, however long its names.
    let piped = lab.ok(&["list"]).stdout;
    assert_eq!(piped.lines().count(), 1 + lab.runs().len(), "{piped}");
}

#[test]
fn curves_are_drawn_with_what_was_measured_and_no_more() {
    let lab = Lab::new();
    lab.write("plan.yaml", &plan());
    honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size"]));
    let plot = |locale: &str| {
        let args = ["curves", "plan.yaml", "--plot"];
        let output = lab.command(&args).env("COLUMNS", "80").env("LC_ALL", locale).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = plot("C.UTF-8");
    for (title, count) in [("output throughput, tok/s\n", 2), ("TTFT p50, ms\n", 2), ("TPOT p50, ms\n", 2)] {
        assert_eq!(text.matches(title).count(), count, "{title}: {text}");
    }
    assert!(
        text.contains("batch size: requests in flight") && text.contains("┄┄ objective ≤ 40ms")
            || text.contains("objective ≤ 40ms: above the chart"),
        "{text}"
    );
    assert!(text.contains(&format!("● {}", NAMES[0])) && text.contains(&format!("○ {}", NAMES[1])), "{text}");
    // Each chart has two curves with two points each, one for each load, at the heights of their
    // values.
    let chart: Vec<&str> =
        text.split("TTFT p50, ms\n").nth(1).unwrap().lines().take_while(|line| line.contains('│')).collect();
    let rows = |marker: char| -> Vec<usize> {
        let hits = |line: &str| line.split_once('│').unwrap().1.matches(marker).count();
        chart.iter().enumerate().flat_map(|(row, line)| vec![row; hits(line)]).collect()
    };
    assert_eq!((rows('●').len(), rows('○').len()), (2, 2), "{text}");
    assert!(rows('●').iter().min() > rows('○').iter().max(), "3 ms are below 9 ms: {text}");
    // With about four requests, there is no p99. It is not drawn, not even at 0.
    assert!(!text.contains("TTFT p99"), "{text}");

    let plain = plot("C");
    let charts = plain.split("closed:").next().unwrap_or_default().to_owned() + &plain;
    assert!(charts.contains("o ") && !plain.contains('●') && !plain.contains('│') && !plain.contains('┄'), "{plain}");
    let refused = lab.run(&["curves", "plan.yaml", "--plot", "--format", "json"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("--plot"), "{refused:?}");
}

#[test]
fn a_comparison_opens_with_what_was_shown() {
    let lab = Lab::new();
    lab.write("plan.yaml", &plan());
    honest(&lab.run(&["run", "plan.yaml", "--only", "batch_size"]));
    let json = lab.ok(&["compare", "plan.yaml", "--format", "json"]).json();
    lab.follows("compare", &json);
    let answers: Vec<&str> =
        json["answers"].as_array().unwrap().iter().map(|answer| answer.as_str().unwrap()).collect();
    let [answer] = answers[..] else { panic!("expected one sentence for one arm: {answers:?}") };
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = lab.ok(&["compare", "plan.yaml"]).stdout;
    assert!(one_line(&text).starts_with(answer), "{text}");
    let markdown = lab.ok(&["compare", "plan.yaml", "--format", "markdown"]).stdout;
    assert!(markdown.lines().next().unwrap().starts_with(&format!("`{}` against", NAMES[0])), "{markdown}");
    // The sentence counts the loads for which the tests below the sentence agree.
    let cells = json["families"][0]["cells"].as_array().unwrap();
    let tests = |metric: &str| {
        cells
            .iter()
            .flat_map(|cell| cell["tests"].as_array().unwrap())
            .filter(|test| test["metric"] == metric)
            .collect::<Vec<_>>()
    };
    let shown = tests("e2e_p50").iter().filter(|test| test["outcome"] == "better").count();
    match shown {
        // What was only observed is named as such.
        0 => assert!(!answer.split("observed, not proven").next().unwrap().contains("faster"), "{answer}"),
        count => assert!(
            answer.contains("faster (E2E p50, shown in") && answer.contains(&format!("in {count} of {}", cells.len())),
            "{answer}"
        ),
    }
    // One repeat decides nothing, and the sentence does not claim more.
    let few = plan().replace("repeats: 2", "repeats: 1").replace("seed: 8", "seed: 10");
    lab.write("few.yaml", &few);
    honest(&lab.run(&["run", "few.yaml", "--only", "batch_size"]));
    let answer = lab.ok(&["compare", "few.yaml", "--format", "json"]).json()["answers"][0].as_str().unwrap().to_owned();
    let claimed = answer.split("observed, not proven").next().unwrap();
    assert!(claimed.contains("undecided: ") && !claimed.contains("faster"), "{answer}");
}
