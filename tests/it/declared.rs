//! Tests that runs measure what the plan declares: its only scenario, and lengths as counted by the
//! model's own tokenizer.

use std::collections::BTreeMap;

use serde_json::Value;
use tokenizers::Tokenizer as Library;

use lab::exact_prompts::{bpe, folder};
use lab::mock::Mock;
use lab::{Ended, Lab, Run};

/// Returns a plan with these scenarios, whose only sweep has this matrix.
fn plan(scenarios: &str, matrix: &str) -> String {
    format!(
        "sweepline: 1\nname: declared\nendpoints: {{ demo: {{ engine: mock, mock: {{ ttft: 1ms, itl: 1ms }} }} }}\n\
         models: {{ m: {{ id: m }} }}\nphases: {{ fill: 0s, stabilize: 0s, measure: 100ms, drain: 10s }}\n\
         {scenarios}\nsweeps: {{ s: {{ matrix: {{ {matrix} }} }} }}\n"
    )
}

const LONG: &str = "scenarios:\n  long: { prompt_tokens: 300, output_tokens: 3 }";
const BOTH: &str =
    "scenarios:\n  long: { prompt_tokens: 300, output_tokens: 3 }\n  short: { prompt_tokens: 30, output_tokens: 3 }";

/// A run may be invalid on a busy machine.
fn is_run(ended: &Ended) {
    assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn the_only_scenario_is_what_the_server_is_sent() {
    let (lab, mut mock) = (Lab::new(), Mock::start(&[]));
    let on_mock = |plan: String| {
        plan.replace("mock: { ttft: 1ms, itl: 1ms }", &format!("url: \"http://127.0.0.1:{}/v1\"", mock.port))
    };
    lab.write("plan.yaml", &on_mock(plan(LONG, "batch_size: 1")));
    is_run(&lab.run(&["run", "plan.yaml"]));
    let run = lab.only_run();
    assert_eq!(run.json["spec"]["labels"]["scenario"], "long");
    assert_eq!(run.json["spec"]["scenario"]["prompt_tokens"], 300);
    // Every command shows the scenario's name.
    let preview = lab.ok(&["preview", "plan.yaml", "--format", "json"]).json();
    assert_eq!(preview["runs"][0]["cell"]["scenario"], "long");
    for command in
        [&["preview", "plan.yaml"][..], &["graph", "plan.yaml"], &["why", "repeat == 0", "--plan", "plan.yaml"]]
    {
        let told = lab.ok(command).stdout;
        assert!(told.contains("long"), "{command:?}: {told}");
    }
    let frozen = lab.ok(&["freeze", "plan.yaml"]).stdout;
    let line = frozen.lines().find(|line| line.trim_start().starts_with("scenario:")).expect("an axis");
    assert!(line.contains("[long]") && line.contains("# the only one, plan.yaml:"), "{line}");
    mock.terminate();
    let (mut bodies, mut told) = (0, 0);
    for line in mock.log_now() {
        let Some(body) = line["request"].as_str() else { continue };
        let body: Value = serde_json::from_str(body).unwrap();
        if body["max_tokens"] == 3 {
            let text = body["messages"][0]["content"].as_str().unwrap();
            assert!((1_100..1_250).contains(&text.len()), "{} characters: {text}", text.len());
            bodies += 1;
        }
        told += 1;
    }
    assert!(bodies > 0 && told > 0, "{bodies} of {told}");
}

#[test]
fn several_scenarios_and_no_axis_are_a_mistake() {
    let lab = Lab::new();
    let refused = |text: &str, wanted: &[&str]| {
        lab.write("plan.yaml", text);
        let ended = lab.run(&["check", "plan.yaml"]);
        assert_eq!(ended.code, Some(2), "{}", ended.stdout);
        let told = format!("{}{}", ended.stdout, ended.stderr);
        assert!(wanted.iter().all(|wanted| told.contains(wanted)), "{told}");
    };
    let wanted =
        ["error[E018]", "specifies no scenario", "defines 2 of them", "add scenario: [long, short] to its matrix"];
    refused(&plan(BOTH, "batch_size: 1"), &wanted);
    let added = plan(BOTH, "scenario: long, batch_size: 1")
        .replace("} } }\n", "}, add: [{ endpoint: demo, model: m, batch_size: 4 }] } }\n");
    refused(&added, &["error[E018]", "this cell of `add` specifies no scenario"]);
    let some = plan(BOTH, "scenario: { value: long, when: { batch_size: 1 } }, batch_size: [1, 2]");
    refused(&some, &["error[E018]", "have no scenario, such as { batch_size: 2 }"]);
    // One scenario on the axis is enough, even if it comes from the command line.
    lab.write("plan.yaml", &plan(BOTH, "batch_size: 1"));
    let set = lab.ok(&["preview", "plan.yaml", "--format", "json", "--set", "sweeps.s.matrix.scenario=short"]).json();
    assert_eq!(set["runs"][0]["cell"]["scenario"], "short");
    // A plan without its own scenarios still sends B1.
    lab.write("none.yaml", &plan("", "batch_size: 1"));
    let none = lab.ok(&["preview", "none.yaml", "--format", "json"]).json();
    assert_eq!(none["runs"][0]["cell"]["scenario"], "B1");
}

#[test]
fn what_is_declared_and_never_used_is_told() {
    let lab = Lab::new();
    lab.write("plan.yaml", &plan(BOTH, "scenario: short, batch_size: 1"));
    let told = lab.ok(&["check", "plan.yaml"]).stdout;
    assert!(told.contains("scenario `long`") && told.contains("warning[M022]"), "{told}");
    assert!(told.contains("the scenario is declared, but no sweep uses it"), "{told}");
    assert!(!told.contains("M023"), "a mock has no tokenizer: {told}");
    // A fragment may serve several plans.
    lab.write("shared.yaml", BOTH);
    lab.write("plan.yaml", &plan("use: shared.yaml", "scenario: short, batch_size: 1"));
    let told = lab.ok(&["check", "plan.yaml"]).stdout;
    assert!(!told.contains("M022"), "{told}");
    // How accurate lengths are if the model's tokenizer is unknown.
    let real =
        plan("", "batch_size: 1").replace("engine: mock, mock: { ttft: 1ms, itl: 1ms }", "url: \"http://node:1/v1\"");
    lab.write("plan.yaml", &real);
    let told = lab.ok(&["check", "plan.yaml"]).stdout;
    for part in ["warning[M023]", "12-18 % shorter than declared", "36 %", "tokenizer: server"] {
        assert!(told.contains(part), "{told}");
    }
    lab.write("plan.yaml", &real.replace("id: m }", "id: m, tokenizer: server }"));
    assert!(!lab.ok(&["check", "plan.yaml"]).stdout.contains("M023"));
}

/// Returns the results of a plan for a server that is not a mock and counts words.
fn measured(lab: &Lab, tokenizer: &str, scenario: &str, load: &str) -> (BTreeMap<String, Run>, Vec<Value>) {
    let mut mock = Mock::start(&["--tokenize", "vllm", "--itl", "1ms"]);
    let text = format!(
        "sweepline: 1\nname: lengths\nendpoints:\n  chat: {{ url: \"http://127.0.0.1:{port}/v1\", resource: one }}\n  \
         text: {{ url: \"http://127.0.0.1:{port}/v1\", api: completions, resource: one }}\n\
         models: {{ m: {{ id: m{tokenizer} }} }}\nphases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 300ms, min_requests: 24, at_most: 60s }}, drain: 60s }}\n\
         validity: {{ client_late: {{ suspect: 99%, invalid: 100% }}, unsteady: {{ suspect: 99% }} }}\n\
         scenarios: {{ it: {scenario} }}\nsweeps: {{ s: {{ matrix: {{ endpoint: [chat, text], {load} }} }} }}\n",
        port = mock.port
    );
    lab.write("plan.yaml", &text.replace(", , ", ", ").replace(",  }", " }"));
    is_run(&lab.run(&["run", "plan.yaml"]));
    mock.terminate();
    let mut log = mock.log_now();
    log.retain(|line| line["request_id"].as_str().is_some_and(|id| !id.starts_with("sweepline")));
    (lab.runs(), log)
}

/// Returns the text of a body as a server with the tests' chat template renders it, and whether it is a
/// chat.
fn rendered(body: &Value) -> (String, bool) {
    let Some(messages) = body["messages"].as_array() else {
        return (body["prompt"].as_str().unwrap().to_owned(), false);
    };
    let said = |message: &Value| {
        let part = |name: &str| message[name].as_str().unwrap().to_owned();
        format!("<|im_start|>{}\n{}<|im_end|>\n", part("role"), part("content"))
    };
    (messages.iter().map(said).collect::<String>() + "<|im_start|>assistant\n", true)
}

fn ids(library: &Library, body: &Value) -> Vec<u32> {
    let (text, is_chat) = rendered(body);
    library.encode_fast(text, !is_chat).unwrap().get_ids().to_vec()
}

/// Returns the requests of a run by number, each with its body.
fn bodies<'l>(run: &Run, log: &'l [Value]) -> BTreeMap<u64, Value> {
    let prefix = format!("{}-{}-", &run.json["id"].as_str().unwrap()[..16], run.json["attempt"]);
    let number = |line: &'l Value| line["request_id"].as_str()?.strip_prefix(&prefix)?.parse::<u64>().ok();
    let body = |line: &Value| serde_json::from_str(line["request"].as_str().unwrap()).unwrap();
    log.iter().filter_map(|line| Some((number(line)?, body(line)))).collect()
}

/// Returns requests 15 ms apart: sessions that grow by a block, some that end inside a block, and some
/// without blocks.
fn trace() -> Vec<(u64, Vec<u64>)> {
    let request = |at: u64| match at % 4 {
        0 => (512 * (1 + at / 4 % 3) - 37 * (at % 3), (0..=at / 4 % 3).collect()),
        1 => (700, vec![0, 900 + at]),
        2 => (1_500, vec![0, 1]),
        _ => (90 + at, vec![]),
    };
    (0..24).map(request).collect()
}

fn trace_file() -> String {
    let line = |(at, (tokens, blocks)): (usize, (u64, Vec<u64>))| {
        let at = at * 15;
        format!("{{\"timestamp\": {at}, \"input_length\": {tokens}, \"output_length\": 3, \"hash_ids\": {blocks:?}}}\n")
    };
    trace().into_iter().enumerate().map(line).collect()
}

#[test]
fn a_trace_is_as_long_as_the_models_tokenizer_counts() {
    let (lab, library) = (Lab::new(), bpe());
    folder(&lab, &library);
    lab.write("trace.jsonl", &trace_file());
    let (runs, log) =
        measured(&lab, ", tokenizer: model", "{ trace: { file: trace.jsonl, as: mooncake } }", "scenario: it");
    assert_eq!(runs.len(), 2);
    let wanted = trace();
    for run in runs.values() {
        let rows: BTreeMap<u64, _> = run.records.iter().map(|record| (record.row.request, &record.row)).collect();
        let sent: BTreeMap<u64, Vec<u32>> =
            bodies(run, &log).iter().map(|(number, body)| (*number, ids(&library, body))).collect();
        assert_eq!(sent.len(), wanted.len());
        for (number, ids) in &sent {
            let (tokens, _) = &wanted[*number as usize];
            assert_eq!(ids.len() as u64, *tokens, "request {number}");
            assert_eq!(u64::from(rows[number].intended_prompt_tokens), *tokens, "request {number}");
        }
        // Equal blocks have equal tokens, as many as the trace lists, except for the last words of a
        // text that ends inside a block.
        let blocks = |at: u64| &wanted[at as usize].1;
        for (a, b) in (0..24).flat_map(|a| (a + 1..24).map(move |b| (a, b))) {
            let same = blocks(a).iter().zip(blocks(b)).take_while(|(a, b)| a == b).count() as u64;
            let least = (512 * same).min(wanted[a as usize].0).min(wanted[b as usize].0);
            let common = sent[&a].iter().zip(&sent[&b]).take_while(|(a, b)| a == b).count() as u64;
            let cut = least < 512 * same || wanted[a as usize].0.min(wanted[b as usize].0) < 512 * same + 64;
            let slack = if cut { 64 } else { 8 };
            assert!(common + slack >= least, "{a} and {b}: {common} of {least}");
            assert!(same > 0 || common < 30, "{a} and {b} share no block, but {common} tokens");
        }
    }
}

#[test]
fn a_scripted_history_is_as_long_as_the_models_tokenizer_counts() {
    let (lab, library) = (Lab::new(), bpe());
    folder(&lab, &library);
    let talk = "{ base: D, history: scripted, turns: 4, system_tokens: 40, prompt_tokens: 60, output_tokens: 20 }";
    let (runs, log) = measured(&lab, ", tokenizer: model", talk, "batch_size: 2");
    assert_eq!(runs.len(), 2);
    for run in runs.values() {
        let bodies = bodies(run, &log);
        let mut later = 0;
        for row in run.records.iter().map(|record| &record.row) {
            let Some(body) = bodies.get(&row.request) else { continue };
            let turn = row.turn.expect("a turn");
            let declared = 40 + 60 + turn * (60 + 20);
            assert_eq!(ids(&library, body).len() as u32, declared, "turn {turn}: {body}");
            assert_eq!(row.intended_prompt_tokens, declared, "turn {turn}");
            later += u32::from(turn > 0);
        }
        assert!(later > 3, "{later} later turns");
    }
}

/// If the server counts, its usage equals the lengths of the trace and of the script.
#[test]
fn traces_and_histories_are_as_long_as_the_server_counts() {
    let lab = Lab::new();
    lab.write("trace.jsonl", &trace_file());
    let talk = "{ base: D, history: scripted, turns: 3, prompt_tokens: 60, output_tokens: 20 }";
    for (scenario, load) in
        [("{ trace: { file: trace.jsonl, as: mooncake } }", "scenario: it"), (talk, "batch_size: 2")]
    {
        let (runs, _) = measured(&lab, ", tokenizer: server", scenario, load);
        for run in
            runs.values().filter(|run| run.json["spec"]["scenario"]["trace"].is_object() == scenario.contains("trace"))
        {
            assert_eq!(run.json["facts"]["prompt_count"], "server");
            let mut counted = 0;
            for row in run.records.iter().map(|record| &record.row).filter(|row| row.prompt_tokens.is_some()) {
                let declared = match row.turn {
                    Some(turn) => 60 + turn * 80,
                    None => trace()[row.request as usize].0 as u32,
                };
                assert_eq!(row.prompt_tokens, Some(declared), "{row:?}");
                counted += 1;
            }
            assert!(counted > 5, "{counted}");
        }
    }
}

/// Without a tokenizer, the server's count shows the error of the estimate.
#[test]
fn an_estimate_that_is_far_off_is_told() {
    let lab = Lab::new();
    let (runs, _) = measured(&lab, "", "{ prompt_tokens: 800, output_tokens: 2 }", "batch_size: 2");
    assert_eq!(runs.len(), 2);
    for (id, run) in &runs {
        let probe = &run.json["facts"]["probe_prompt"];
        assert!(probe["ours"].is_u64() && probe["server"].is_u64(), "{probe}");
        let shown = lab.run(&["show", id]).stdout;
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains("prompt_length (suspect): the server counts"), "{shown}");
        assert!(shown.contains("the estimate is") && shown.contains("% apart; set tokenizer: FILE"), "{shown}");
    }
    // A mock without a tokenizer counts words, which cannot contradict an estimate.
    lab.write("mock.yaml", &plan(LONG, "batch_size: 1"));
    let ended = lab.run(&["run", "mock.yaml", "--results", "of-mock"]);
    is_run(&ended);
    assert!(!format!("{}{}", ended.stdout, ended.stderr).contains("prompt_length"), "{}", ended.stdout);
}

/// Texts of a data set are sent verbatim, so a wrong estimate of their length does not count against the
/// run.
#[test]
fn an_estimate_of_a_data_set_is_not_held_against_it() {
    let lab = Lab::new();
    let record = |k: usize| format!("{{\"prompt\": \"{}\", \"output_tokens\": 2}}\n", "a bc de ".repeat(60 + k));
    lab.write("asked.jsonl", &(0..9).map(record).collect::<String>());
    let (runs, _) = measured(&lab, "", "{ data: { file: asked.jsonl }, output_tokens: 2 }", "batch_size: 2");
    assert_eq!(runs.len(), 2);
    for (id, run) in &runs {
        assert!(run.json["facts"]["probe_prompt"].is_object(), "the server counted: {}", run.json["facts"]);
        assert_eq!(run.json["facts"]["recorded_texts"], true);
        let shown = lab.run(&["show", id]).stdout;
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let told = "not checked: prompt_length: lengths of a data set are estimates, and no lengths were declared";
        assert!(shown.contains(told) && !shown.contains("prompt_length (suspect)"), "{shown}");
    }
}

/// A text that one class of a mix shares does not contradict the data set of another class.
#[test]
fn a_data_set_and_a_system_prompt_may_be_classes_of_one_mix() {
    let lab = Lab::new();
    let record = |k: usize| format!("{{\"prompt\": \"{}\", \"output_tokens\": 2}}\n", "some words ".repeat(9 + k));
    lab.write("asked.jsonl", &(0..9).map(record).collect::<String>());
    let scenarios = "scenarios:\n  asked: { data: { file: asked.jsonl }, output_tokens: 2 }\n  \
                     desk: { base: C, system_tokens: 200, output_tokens: 2 }\n  \
                     talk: { base: D, system_tokens: 90, turns: 2, output_tokens: 2 }\n  \
                     mx: { mix: [{ scenario: desk, share: 1 }, { scenario: asked, share: 2 }, { scenario: talk, share: 1 }] }";
    let text = plan(scenarios, "scenario: mx, batch_size: 2");
    lab.write("plan.yaml", &text);
    lab.ok(&["check", "plan.yaml"]);
    is_run(&lab.run(&["run", "plan.yaml"]));
    let run = lab.only_run();
    let classes: BTreeMap<&str, u32> = run.records.iter().fold(BTreeMap::new(), |mut sum, record| {
        *sum.entry(record.row.class.as_deref().unwrap()).or_default() += 1;
        sum
    });
    assert_eq!(classes.keys().copied().collect::<Vec<_>>(), ["asked", "desk", "talk"], "{classes:?}");
    // A class that contradicts itself is reported under its own name, and the keys of the mix also apply
    // to the data set.
    let refused = |text: String, wanted: &str| {
        lab.write("refused.yaml", &text);
        let ended = lab.run(&["check", "refused.yaml"]);
        let told = format!("{}{}", ended.stdout, ended.stderr);
        assert!(ended.code == Some(2) && told.matches("error[E025]").count() == 1 && told.contains(wanted), "{told}");
    };
    let wanted = "scenario `asked` sends a data set, but its base specifies the text that prompts share";
    refused(text.replace("asked: { data", "asked: { base: C, data"), wanted);
    let inside = text.replace("file: asked.jsonl }", "file: asked.jsonl, nonce: run }");
    lab.write("refused.yaml", &inside);
    let told = lab.run(&["check", "refused.yaml"]).stderr;
    assert!(told.contains("`nonce` is a key of the scenario: write it in `asked`, next to `data`"), "{told}");
    let wanted = "the data set of scenario `mx` already determines `system_tokens`";
    refused(text.replace("mx: { mix", "mx: { system_tokens: 50, mix"), wanted);
}

/// The lints that `check` reports for a sweep's requests also apply to every class of a mix, as far as the
/// plan shows.
#[test]
fn what_is_said_of_a_mix_is_true_of_its_classes() {
    let lab = Lab::new();
    let record = |k: usize| format!("{{\"prompt\": \"{}\", \"output_tokens\": 2}}\n", "some words ".repeat(9 + k));
    lab.write("asked.jsonl", &(0..9).map(record).collect::<String>());
    let told = |scenarios: &str, matrix: &str| {
        lab.write("plan.yaml", &plan(&format!("scenarios:\n{scenarios}"), matrix));
        lab.ok(&["check", "plan.yaml"]).stdout
    };
    let mix = |of: [&str; 2]| {
        format!("  mx: {{ mix: [{{ scenario: {}, share: 1 }}, {{ scenario: {}, share: 1 }}] }}", of[0], of[1])
    };
    let table = "  asked: { data: { file: asked.jsonl }, output_tokens: 9 }\n  off: { data: { file: asked.jsonl }, nonce: off }\n  \
                 plain: { prompt_tokens: 321, output_tokens: 9 }\n  long: { prompt_tokens: 999, output_tokens: 9 }\n  \
                 alike: { prompt_tokens: 321, output_tokens: 9, temperature: 1 }\n";
    let of_mix = |of: [&str; 2], matrix: &str| told(&format!("{table}{}", mix(of)), &format!("scenario: mx, {matrix}"));
    // M004: a class may have other lengths.
    for of in [["plain", "asked"], ["asked", "plain"], ["plain", "long"]] {
        let told = of_mix(of, "batch_size: [1, 2]");
        assert!(!told.contains("M004"), "{told}");
    }
    let told_of_alike = of_mix(["plain", "alike"], "batch_size: [1, 2]");
    assert!(told_of_alike.contains("every request has 321 prompt tokens and 9 output tokens"), "{told_of_alike}");
    // M010: reports the class without a nonce, and the place that disables the nonce.
    let one = of_mix(["plain", "off"], "batch_size: [1, 2]");
    let line = one.lines().find(|line| line.contains("M010")).unwrap_or_else(|| panic!("{one}"));
    assert!(line.contains("prompts of `off` in `mx` should differ"), "{line}");
    let at = plan(&format!("scenarios:\n{table}"), "").lines().position(|line| line.contains("off: {")).unwrap() + 1;
    assert!(line.contains(&format!("plan.yaml:{at}:")), "line {at}: {line}");
    let every = of_mix(["plain", "asked"], "nonce: [on, off], batch_size: [1, 2]");
    assert!(every.contains("prompts of `mx` should differ"), "{every}");
    // M009: only the records show which beginnings they share if there is no nonce in front of
    // each.
    let beside = |nonce: &str| {
        told(&format!("{table}  talk: {{ base: D }}"), &format!("scenario: [asked, talk]{nonce}, batch_size: [1, 2]"))
    };
    for nonce in [", nonce: run", ", nonce: [on, run]", ", nonce: off"] {
        let told = beside(nonce);
        assert!(!told.contains("M009"), "{nonce}: {told}");
    }
    for nonce in ["", ", nonce: on"] {
        let told = beside(nonce);
        assert!(
            told.contains("`talk` runs against a warm prefix cache and `asked` runs against a cold one"),
            "{nonce}: {told}"
        );
    }
}
