//! Tests varying lengths in plans, requests and results, and which runs are equal.

use std::collections::BTreeMap;

use sweepline::rows::{Phase, RequestRow};

use lab::sweeps::honest;
use lab::{Lab, Run};

/// Returns a plan over `scenarios` (one line each), on two embedded mocks.
fn plan(scenarios: &str, values: &str) -> String {
    let mock = "{ engine: mock, mock: { ttft: 1ms, itl: 200us, slots: 8 } }";
    format!(
        "sweepline: 1\nname: lengths\nseed: 5\nmodels: {{ m: {{ id: tiny }} }}\nendpoints: {{ a: {mock}, b: {mock} }}\n\
         phases: {{ fill: 0s, stabilize: 100ms, measure: 500ms, drain: 30s }}\nscenarios:\n{scenarios}\n\
         sweeps: {{ s: {{ matrix: {{ endpoint: [a, b], scenario: [{values}], batch_size: [4] }} }} }}\n"
    )
}

/// Returns the sent rows by number.
fn rows(run: &Run) -> BTreeMap<u64, &RequestRow> {
    let sent = run.records.iter().map(|record| &record.row).filter(|row| row.sent_ns.is_some());
    sent.map(|row| (row.request, row)).collect()
}

fn scenario(run: &Run) -> &str {
    run.json["spec"]["labels"]["scenario"].as_str().unwrap()
}

/// The largest error of a generated text's length, in tokens.
const OFF: u32 = 2;

#[test]
fn requests_are_as_long_as_the_plan_says() {
    let lab = Lab::new();
    let scenarios = "  drawn: { lengths: { prompt: { lognormal: { mean: 200, sd: 120, min: 20, max: 900 } }, output: { uniform: { min: 2, max: 30 } } } }\n  \
                     paired: { lengths: { pairs: [[100, 4], [400, 12, 0.5], [900, 24]] } }\n  \
                     talk: { base: D, turns: 2, lengths: { prompt: { uniform: { min: 20, max: 60 } }, output: 8 } }";
    lab.write("plan.yaml", &plan(scenarios, "drawn, paired, talk"));
    honest(&lab.run(&["run", "plan.yaml"]));
    let runs = lab.runs();
    assert_eq!(runs.len(), 6);
    for run in runs.values() {
        let (name, rows) = (scenario(run), rows(run));
        assert!(rows.len() > 20, "{name}: {}", rows.len());
        for row in rows.values().filter(|row| row.outcome.is_ok()) {
            assert_eq!(
                row.output_tokens,
                Some(row.requested_tokens),
                "{name}: the mock generates the requested tokens"
            );
        }
        let asked: Vec<u32> = rows.values().map(|row| row.requested_tokens).collect();
        let prompts: Vec<u32> = rows.values().map(|row| row.intended_prompt_tokens).collect();
        match name {
            "drawn" => {
                assert!(asked.iter().all(|tokens| (2..=30).contains(tokens)), "{asked:?}");
                assert!(prompts.iter().all(|tokens| (20 - OFF..=900 + OFF).contains(tokens)), "{prompts:?}");
                let different: std::collections::BTreeSet<_> = prompts.iter().collect();
                assert!(different.len() > rows.len() / 4, "{} of {}", different.len(), rows.len());
            }
            "paired" => {
                for (prompt, asked) in prompts.iter().zip(&asked) {
                    let pair = [(100u32, 4), (400, 12), (900, 24)].into_iter().find(|(_, output)| output == asked);
                    let (wanted, _) = pair.unwrap_or_else(|| panic!("{asked} is in no pair"));
                    assert!(prompt.abs_diff(wanted) <= OFF, "{prompt} prompt tokens with {asked} output tokens");
                }
            }
            _ => assert!(asked.iter().all(|tokens| *tokens == 8), "{asked:?}"),
        }
        let shown = lab.ok(&["show", run.json["id"].as_str().unwrap(), "--format", "json"]).json();
        assert!(!shown["verdict"]["reasons"].to_string().contains("output_length"), "{shown}");
    }
    are_the_same_on_both_endpoints(runs.values());
    buckets_add_up(&lab, runs.values());
    turns_add_up(&lab, runs.values());
}

/// Asserts that every metric is available by turn of a conversation, and that the turns cover all requests;
/// other runs have no turns.
fn turns_add_up<'r>(lab: &Lab, runs: impl Iterator<Item = &'r Run>) {
    let table = lab.ok(&["export", "--rows", "turns", "--format", "json"]).json();
    let rows = table.as_array().unwrap();
    for run in runs {
        let turns: Vec<&serde_json::Value> = rows.iter().filter(|row| row["run_id"] == run.json["id"]).collect();
        if scenario(run) != "talk" {
            assert!(turns.is_empty(), "{turns:?}");
            continue;
        }
        let numbers: Vec<u64> = turns.iter().map(|row| row["turn"].as_u64().unwrap()).collect();
        assert!(numbers.len() > 1 && numbers.iter().copied().eq(0..numbers.len() as u64), "{numbers:?}");
        let measured = run.records.iter().filter(|record| record.row.phase == Phase::Measure).count();
        let requests: u64 = turns.iter().map(|row| row["requests"].as_u64().unwrap()).sum();
        assert_eq!(requests, measured as u64);
    }
    let markdown = lab.ok(&["export", "--rows", "turns", "--format", "markdown"]).stdout;
    assert!(markdown.lines().next().unwrap().contains("| turn |"), "{markdown}");
}

/// Asserts that every metric is available by bucket of length too, and that the buckets cover all requests.
fn buckets_add_up<'r>(lab: &Lab, runs: impl Iterator<Item = &'r Run>) {
    let table = lab.ok(&["export", "--rows", "lengths", "--format", "json"]).json();
    let rows = table.as_array().unwrap();
    for run in runs {
        let id = &run.json["id"];
        let of = |by: &str| -> Vec<&serde_json::Value> {
            rows.iter().filter(|row| row["run_id"] == *id && row["by"] == by).collect()
        };
        let measured = run.records.iter().filter(|record| record.row.phase == Phase::Measure).count();
        for by in ["prompt_tokens", "output_tokens"] {
            let buckets = of(by);
            if by == "output_tokens" && scenario(run) == "talk" {
                assert!(buckets.is_empty(), "responses of one length have no buckets: {buckets:?}");
                continue;
            }
            assert!(buckets.len() > 1, "{}: {buckets:?}", scenario(run));
            let requests: u64 = buckets.iter().map(|bucket| bucket["requests"].as_u64().unwrap()).sum();
            assert_eq!(requests, measured as u64, "{} by {by}", scenario(run));
        }
        if scenario(run) == "paired" {
            let names: Vec<&str> = of("output_tokens").iter().map(|row| row["tokens"].as_str().unwrap()).collect();
            assert_eq!(names, ["4-7", "8-15", "16-31"]);
        }
    }
}

/// Asserts that request k has the same lengths on both endpoints.
fn are_the_same_on_both_endpoints<'r>(runs: impl Iterator<Item = &'r Run>) {
    let mut by_scenario: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    // The conversation and turn of request k depend on when responses arrive.
    runs.filter(|run| scenario(run) != "talk").for_each(|run| by_scenario.entry(scenario(run)).or_default().push(run));
    for (name, runs) in by_scenario {
        let [one, other] = runs[..] else { panic!("expected two runs of {name}") };
        let (one, other) = (rows(one), rows(other));
        let mut common = 0;
        for (k, row) in &one {
            let Some(twin) = other.get(k) else { continue };
            let lengths = |row: &RequestRow| (row.intended_prompt_tokens, row.requested_tokens);
            assert_eq!(lengths(row), lengths(twin), "request {k} of {name}");
            common += 1;
        }
        assert!(common > 20, "{common} requests of {name} on both");
    }
}

/// Returns the ids of a plan's runs by scenario, on endpoint a.
fn ids(lab: &Lab, plan: &str) -> BTreeMap<String, String> {
    let preview = lab.ok(&["preview", plan, "--format", "json", "--only", "endpoint == 'a'"]).json();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let runs = preview["runs"].as_array().unwrap().iter();
    runs.map(|run| (text(&run["cell"]["scenario"]), text(&run["id"]))).collect()
}

#[test]
fn what_is_sent_is_what_a_run_is() {
    let lab = Lab::new();
    lab.write("tables/prompts.csv", "min,max,weight\n16,99,3\n100,199,0.5\n# nothing was longer\n200,299,0\n");
    lab.write("pairs.csv", "\u{feff}prompt,output,weight\n256,1024,1\n2048,128,2\n");
    let chat = "prompt: { lognormal: { mean: 500, sd: 300, min: 50, max: 4000 } }, output: { lognormal: { mean: 200, sd: 150, min: 10, max: 2000 } }";
    let groups = [
        format!(
            "  a1: {{ lengths: chat }}\n  a2: {{ lengths: {{ preset: chat, shape: lognormal }} }}\n  a3: {{ base: lengths, preset: chat }}\n  \
             a4: {{ lengths: {{ {chat} }} }}\n  a5: {{ base: B2, lengths: chat }}\n  a6: {{ base: a1 }}"
        ),
        "  b1: { base: lengths, preset: chat, shape: lognormal_sigma_0_8 }\n  b2: { lengths: { preset: chat, shape: lognormal_sigma_0_8 } }"
            .to_owned(),
        "  c1: { lengths: { prompt: 300, output: { constant: 64 } } }\n  c2: { prompt_tokens: 300, output_tokens: 64 }\n  \
         c3: { base: a1, prompt_tokens: 300, output_tokens: 64 }"
            .to_owned(),
        "  d1: { lengths: { prompt: { histogram: tables/prompts.csv }, output: 64 } }\n  \
         d2: { lengths: { prompt: { histogram: [{ min: 16, max: 99, weight: 3 }, { min: 100, max: 199, weight: 0.5 }] }, output: 64 } }\n  \
         d3: { base: d1 }"
            .to_owned(),
        "  e1: { lengths: { pairs: pairs.csv } }\n  e2: { lengths: { pairs: [[256, 1024], { prompt: 2048, output: 128, weight: 2 }] } }\n  \
         e3: { lengths: { histogram: [{ prompt_min: 256, prompt_max: 256, output_min: 1024, output_max: 1024, weight: 1 }, { prompt_min: 2048, prompt_max: 2048, output_min: 128, output_max: 128, weight: 2 }] } }"
            .to_owned(),
    ];
    let names = "a1, a2, a3, a4, a5, a6, b1, b2, c1, c2, c3, d1, d2, d3, e1, e2, e3";
    lab.write("plan.yaml", &plan(&groups.join("\n"), names));
    let first = ids(&lab, "plan.yaml");
    let mut by_group: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    first.iter().for_each(|(name, id)| by_group.entry(&name[..1]).or_default().push(id));
    for (group, ids) in &by_group {
        assert!(ids.iter().all(|id| *id == ids[0]), "{group} are notations of the same lengths: {first:?}");
    }
    let different: std::collections::BTreeSet<_> = by_group.values().map(|ids| ids[0]).collect();
    assert_eq!(different.len(), by_group.len(), "{first:?}");

    // A frozen plan is complete and needs no table next to it.
    lab.write("frozen/empty", "");
    lab.ok(&["freeze", "plan.yaml", "-o", "frozen/plan.lock"]);
    assert_eq!(ids(&lab, "frozen/plan.lock"), first);
    // The content of the table is part of a run's identity, but its path is not.
    lab.write("tables/prompts.csv", "min,max,weight\n16,99,3\n100,199,0.75\n");
    let second = ids(&lab, "plan.yaml");
    let changed: Vec<&String> = first.keys().filter(|name| first[*name] != second[*name]).collect();
    assert_eq!(changed, ["d1", "d3"]);
}

#[test]
fn presets_stand_on_an_axis() {
    let lab = Lab::new();
    let text = plan("  long: { base: C }", "long").replace("batch_size: [4]", "lengths: [chat, code], batch_size: [4]");
    lab.write("plan.yaml", &text);
    let preview = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
    let mut ids: Vec<&str> =
        preview["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4, "{preview}");
}
