//! Tests `sweepline import`: common configurations and commands become a plan that passes `check` and gives
//! the origin of every value, and the settings that are not in the plan are listed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lab::{DEADLINE, Ended, Lab, Server};

/// The imported fixtures, with the other arguments. All other files are referenced by these.
const FIXTURES: [(&str, &[&str]); 18] = [
    ("closed_loop.json", &[]),
    ("closed_loop_objects.json", &[]),
    ("bench_serve.sh", &[]),
    ("rates.sh", &[]),
    ("concurrency.sh", &[]),
    ("sharegpt.sh", &[]),
    ("burst.sh", &[]),
    ("shapes.sh", &[]),
    ("repeats.sh", &[]),
    ("sweep.sh", &[]),
    ("sla.sh", &[]),
    ("six_settings.sh", &[]),
    ("named_settings.sh", &[]),
    ("started.sh", &[]),
    ("bench_hparams.json", &["--", "vllm", "bench", "serve", "--model", "m", "--request-rate", "3"]),
    ("named_params.json", &["--model", "facebook/opt-125m", "--url", "http://gpu-7:8000/v1"]),
    ("serve_hparams.json", &["--", "vllm", "bench", "serve", "--model", "m", "--max-concurrency", "16"]),
    ("documented_options.sh", &[]),
];

/// Secrets in the fixtures.
const SECRETS: [&str; 3] = ["sk-proj-verysecret0123456789", "abcdef0123456789", "sk-live-0123456789abcdef0123"];

/// The program, as a server that a plan starts.
const SWEEPLINE: &str = "sweepline";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import")
}

/// Returns a lab with all fixtures in its folder.
fn lab() -> Lab {
    let lab = Lab::new();
    for entry in std::fs::read_dir(fixtures()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        std::fs::copy(&path, lab.path().join(path.file_name().unwrap())).unwrap();
    }
    lab
}

fn import(lab: &Lab, args: &[&str]) -> Ended {
    lab.run(&[&["import"], args].concat())
}

#[test]
fn every_fixture_becomes_a_plan_that_says_where_it_came_from() {
    let lab = lab();
    for (file, more) in FIXTURES {
        let ended = import(&lab, &[&[file], more].concat());
        assert_eq!(ended.code, Some(0), "{file}: {}", ended.stderr);
        lab.write("plan.yaml", &ended.stdout);
        lab.ok(&["preview", "plan.yaml", "--format", "json"]);
        for text in [&ended.stdout, &ended.stderr] {
            assert!(SECRETS.iter().all(|secret| !text.contains(secret)), "{file} shows a secret");
        }
        if lab::is_whole() {
            lab.ok(&["check", "plan.yaml"]);
            let again = import(&lab, &[&[file], more].concat());
            assert_eq!((again.stdout, again.stderr), (ended.stdout.clone(), ended.stderr.clone()), "{file}");
        }
        every_value_has_an_origin(file, &ended.stdout);
        if file != "documented_options.sh" {
            let name = format!("import_{}", file.replace('.', "_"));
            insta::assert_snapshot!(name, format!("{}---- stderr\n{}", ended.stdout, ended.stderr));
        }
    }
}

/// Every value is followed by a comment, except for the names of the plan's own entries.
fn every_value_has_an_origin(file: &str, plan: &str) {
    let body = plan.split("sweepline: 1\n").nth(1).unwrap();
    for line in body.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')) {
        let (key, value) = line.split_once(':').unwrap();
        let own = ["endpoint", "model", "scenario"].contains(&key.trim());
        let is_table = value.split("  #").next().unwrap().trim().is_empty();
        assert!(own || is_table || line.contains("  # "), "{file}: no origin in `{line}`");
    }
}

#[test]
fn every_fixture_file_is_used() {
    let scripts: String = FIXTURES.map(|(file, _)| std::fs::read_to_string(fixtures().join(file)).unwrap()).concat();
    for entry in std::fs::read_dir(fixtures()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        // The examples of each tool have their own test.
        let is_folder = entry.file_type().unwrap().is_dir();
        assert!(
            is_folder || FIXTURES.iter().any(|(file, _)| *file == name) || scripts.contains(&name),
            "{name} is in no test"
        );
    }
}

#[test]
fn every_documented_option_is_mapped_or_listed() {
    let lab = Lab::new();
    let documented = std::fs::read_to_string(fixtures().join("documented_options.sh")).unwrap();
    let lines: Vec<&str> = documented.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() > 90, "{}", lines.len());
    for (number, line) in lines.iter().enumerate() {
        let file = format!("{number}.sh");
        lab.write(&file, line);
        let plan = lab.ok(&["import", &file]).stdout;
        for option in line.split_whitespace().filter(|word| word.starts_with("--")) {
            let named = plan
                .match_indices(option)
                .any(|(at, _)| !plan[at + option.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-'));
            assert!(named, "{option} of `{line}` is nowhere in:\n{plan}");
        }
        assert!(!plan.contains("unknown option"), "{line}\n{plan}");
    }
}

#[test]
fn a_command_may_stand_on_the_command_line() {
    let lab = Lab::new();
    let command = "vllm bench serve --model m --request-rate 10 --num-prompts 1000 --random-input-len 100";
    let words: Vec<&str> = command.split(' ').collect();
    let typed = import(&lab, &[&["--"], &words[..]].concat());
    assert_eq!(typed.code, Some(0), "{}", typed.stderr);
    assert!(
        typed.stdout.contains("qps: [10]") && typed.stdout.contains("phases: { measure: 100s }"),
        "{}",
        typed.stdout
    );
    let secret = import(&lab, &[&["--", "OPENAI_API_KEY=opensesame1"], &words[..]].concat());
    assert!(secret.stdout.contains("api_key: { secret: env:OPENAI_API_KEY }"), "{}", secret.stdout);
    assert!(!secret.stdout.contains("opensesame1"));
}

#[test]
fn parameter_files_go_with_a_command_or_with_flags() {
    let lab = lab();
    let nameless = import(&lab, &["named_params.json"]);
    assert_eq!(nameless.code, Some(2));
    assert!(
        nameless.stderr.contains("names no model") && nameless.stderr.contains("--model ID"),
        "{}",
        nameless.stderr
    );
    let plan = import(&lab, &["named_params.json", "--model", "a/b", "--url", "http://h:1/v1"]).stdout;
    assert!(plan.contains("id: a/b") && plan.contains("url: http://h:1/v1"), "{plan}");
    lab.write("bare.json", "{\"batch_sizes\": [1], \"measure_seconds\": 9}");
    let bare = import(&lab, &["bare.json", "--model", "a/b", "--url", "http://h:1/v1"]).stdout;
    assert!(bare.contains("id: a/b") && bare.contains("url: http://h:1/v1"), "{bare}");
}

#[test]
fn what_is_wrong_is_named_with_its_place_and_remedy() {
    let lab = Lab::new();
    let bench = "vllm bench serve --model m";
    let cases: [(&str, &str, &[&str]); 17] = [
        ("a.json", "{\"endpoints\": [\"http://h/v1\"],\n \"models\": [\"m\"]]", &["a.json:2:", "invalid JSON"]),
        (
            "b.json",
            "{\"endpoints\": [], \"models\": [\"m\"], \"batch_sizes\": [1]}",
            &["b.json: endpoints", "there are none", "--url URL"],
        ),
        (
            "c.json",
            "{\"endpoints\": [\"http://h\"], \"models\": [\"m\"]}",
            &["c.json: batch_sizes", "no load", "[1, 2, 4, 8]"],
        ),
        (
            "d.json",
            "{\"endpoints\": [\"http://h\"], \"models\": [\"m\"], \"batch_sizes\": [1, -4]}",
            &["d.json: batch_sizes[1]", "`-4`", "from 1 to 100000"],
        ),
        (
            "e.json",
            "{\"endpoints\": [5], \"models\": [\"m\"], \"batch_sizes\": [1]}",
            &["e.json: endpoints[0]", "a URL, a name or an object"],
        ),
        (
            "f.json",
            "{\"endpoints\": [\"ftp://h:1\"], \"models\": [\"m\"], \"batch_sizes\": [1]}",
            &["f.json: endpoints[0]", "neither http nor https"],
        ),
        (
            "g.json",
            "{\"foo\": 1, \"bar\": 2}",
            &["g.json: unknown configuration or command", "the keys foo, bar", "`vllm bench serve`"],
        ),
        ("h.json", "[1, 2]", &["h.json: unknown configuration or command", "--format"]),
        (
            "i.json",
            "{\"endpoints\": [\"http://h\"], \"models\": [\"m\"], \"batch_sizes\": [1], \"measure_seconds\": \"soon\"}",
            &["i.json: measure_seconds", "number of seconds"],
        ),
        (
            "j.sh",
            "echo hi\nls -l\n",
            &["j.sh: unknown configuration or command", "no benchmark among 2 commands (echo, ls)"],
        ),
        ("k.sh", "x\nvllm bench serve --model 'm\n", &["k.sh:2: the quote is not closed"]),
        ("l.sh", "\nvllm bench serve --request-rate 3\n", &["l.sh:2: the command names no model", "--model ID"]),
        (
            "m.sh",
            &format!("{bench} --request-rate $QPS"),
            &["m.sh:1: `--request-rate $QPS`: `QPS` has no value", "write the value itself"],
        ),
        ("n.sh", &format!("{bench} --request-rate fast"), &["n.sh:1: --request-rate fast is not a rate", "or inf"]),
        (
            "o.sh",
            &format!("{bench} --base-url ftp://h"),
            &["o.sh:1: `ftp://h` is not a server's base URL", "--base-url http://HOST:PORT"],
        ),
        (
            "p.sh",
            "vllm bench sweep serve --serve-cmd 'vllm serve m' --bench-cmd 'vllm bench serve --model m' --bench-params no.json",
            &["p.sh:1: --bench-params: cannot read no.json"],
        ),
        ("q.sh", "for r in 1 2; do\n vllm bench serve --model m\n", &["q.sh:1: the loop is not closed"]),
    ];
    for (file, text, words) in cases {
        lab.write(file, text);
        let ended = import(&lab, &[file]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{file}: {}", ended.stderr);
        for word in words {
            assert!(ended.stderr.contains(word), "{file}: no `{word}` in: {}", ended.stderr);
        }
    }
    // With `--format`, a file is read as that format.
    let ended = import(&lab, &["g.json", "--format", "closed-loop", "--model", "m", "--url", "http://h"]);
    assert!(ended.stderr.contains("g.json: batch_sizes"), "{}", ended.stderr);
    let ended = import(&lab, &["j.sh", "--format", "vllm-sweep-params"]);
    assert!(ended.stderr.contains("j.sh:1:1: invalid JSON"), "{}", ended.stderr);
    assert_eq!(import(&lab, &["absent.sh"]).code, Some(2));
    assert_eq!(import(&lab, &[]).code, Some(2));
}

#[test]
fn hostile_files_are_refused_in_bounded_time_and_words() {
    let lab = Lab::new();
    // The plain suite makes those smaller that are not refused at once.
    let part = |count: usize| if lab::is_whole() { count } else { count / 16 };
    let mut garbage = String::new();
    let mut state = 7u64;
    while garbage.len() < 1 << 20 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        garbage.push(char::from(b' ' + (state >> 58) as u8 % 95));
    }
    let endpoints = |count: usize| {
        let all: Vec<String> = (0..count).map(|number| format!("\"http://h:{number}\"")).collect();
        format!("{{\"endpoints\": [{}], \"models\": [\"m\"], \"batch_sizes\": [1]}}", all.join(","))
    };
    let mut scenarios =
        String::from("{\"endpoints\": [\"http://h\"], \"models\": [\"m\"], \"batch_sizes\": [1], \"scenarios\": [");
    (0..part(9_999)).for_each(|number| write!(scenarios, "{{\"input_tokens\": {}}},", number + 16).unwrap());
    scenarios.push_str("\"B1\"]}");
    let bench = "vllm bench serve --model m";
    let cases = [
        ("garbage.sh", garbage[..part(1 << 20)].to_owned()),
        ("garbage.json", format!("{{{}", &garbage[..part(1 << 19)])),
        ("large.sh", "x".repeat((1 << 20) + 1)),
        ("deep.json", format!("{}{}", "[".repeat(part(200_000)), "]".repeat(part(200_000)))),
        (
            "deep_object.json",
            format!("{{\"endpoints\": {}1{}", "{\"a\":".repeat(part(100_000)), "}".repeat(part(100_000) + 1)),
        ),
        ("endpoints.json", endpoints(20_000)),
        ("scenarios.json", scenarios),
        (
            "sizes.json",
            format!(
                "{{\"endpoints\": [\"http://h\"], \"models\": [\"m\"], \"batch_sizes\": [{}1]}}",
                "1,".repeat(100_000)
            ),
        ),
        ("records.json", format!("[{}{{}}]", "{\"num_prompts\": 1},".repeat(part(40_000)))),
        ("loops.sh", format!("{}{bench}\n{}", "for a in {1..1000}; do\n".repeat(5), "done\n".repeat(5))),
        ("doubling.sh", format!("A=aaaaaaaaaaaaaaaa\n{}{bench} --label $A\n", "A=$A$A\n".repeat(60))),
        ("nested.sh", format!("{bench} {}", "$(".repeat(part(50_000)))),
        ("quote.sh", format!("{bench} '{}", "a\n".repeat(part(400_000)))),
        ("not_utf8.sh", "\u{0}\u{1}".repeat(1000)),
    ];
    for (file, text) in cases {
        lab.write(file, &text);
        let start = std::time::Instant::now();
        let ended = import(&lab, &[file]);
        assert!(
            matches!(ended.code, Some(0 | 2)),
            "{file}: {:?} {}",
            ended.code,
            &ended.stderr[..ended.stderr.len().min(2000)]
        );
        assert!(start.elapsed() < DEADLINE, "{file}");
        assert!(ended.stderr.len() < 100_000 && !ended.stderr.contains("panicked"), "{file}: {}", ended.stderr.len());
        println!("{file}: exit {:?} after {:?}", ended.code, start.elapsed());
    }
    std::fs::write(lab.path().join("bytes.sh"), [b'a', b'\n', 0xff]).unwrap();
    let bytes = import(&lab, &["bytes.sh"]);
    assert!(bytes.code == Some(2) && bytes.stderr.contains("bytes.sh:2: this line is not UTF-8"), "{}", bytes.stderr);
}

#[test]
fn no_secret_of_any_shape_gets_into_a_plan() {
    let lab = Lab::new();
    let key = "qwertz98765zxcvb";
    let bench = "vllm bench serve --model m --request-rate 1";
    let object = |field: &str| {
        format!("{{\"endpoints\": [{{\"url\": \"http://h\", {field}}}], \"models\": [\"m\"], \"batch_sizes\": [1]}}")
    };
    let cases = [
        ("a.sh", format!("export OPENAI_API_KEY={key}\n{bench}\n")),
        ("b.sh", format!("OPENAI_API_KEY='{key}' {bench} --label $OPENAI_API_KEY\n")),
        ("c.sh", format!("{bench} --header 'Authorization=Bearer {key}' --request-id-prefix {key}\n")),
        ("d.sh", format!("{bench} --header Authorization={key} api-key={key}\n")),
        ("e.sh", format!("{bench} --base-url https://me:{key}@host:1\n")),
        ("f.sh", format!("{bench} --base-url 'https://host/v1?api_key={key}'\n")),
        ("g.sh", format!("vllm serve m --api-key {key}\n{bench} --api-key {key}\n")),
        ("h.sh", format!("{bench} --metadata token={key} --extra-body '{{\"api_key\": \"{key}\"}}'\n")),
        ("i.json", object(&format!("\"api_key\": \"{key}\""))),
        ("j.json", object(&format!("\"api_key\": \"{key}\", \"note\": \"use {key}\""))),
        ("k.json", object(&format!("\"password\": \"{key}\", \"headers\": {{\"authorization\": \"{key}\"}}"))),
        (
            "l.json",
            format!(
                "{{\"endpoints\": [\"http://u:{key}@h/v1\"], \"models\": [\"m\"], \"batch_sizes\": [1], \"api_key\": \"{key}\"}}"
            ),
        ),
    ];
    for (file, text) in cases {
        lab.write(file, &text);
        let ended = import(&lab, &[file]);
        assert_eq!(ended.code, Some(0), "{file}: {}", ended.stderr);
        for said in [&ended.stdout, &ended.stderr] {
            assert!(!said.contains(key), "{file}: {said}");
        }
        if ["a.sh", "b.sh", "c.sh", "i.json"].contains(&file) {
            assert!(ended.stdout.contains("secret: env:"), "{file}: {}", ended.stdout);
        }
    }
}

/// Returns the import of a `vllm bench serve` command with these options: the plan and the lists, without
/// line breaks.
fn of_data(lab: &Lab, options: &str) -> (String, String) {
    let command = format!("vllm bench serve --model m --request-rate 5 --temperature 0 {options}");
    let words: Vec<&str> = command.split(' ').collect();
    let ended = import(lab, &[&["-o", "plan.yaml", "--force", "--"], &words[..]].concat());
    assert_eq!(ended.code, Some(0), "{options}: {}", ended.stderr);
    lab.ok(&["check", "plan.yaml"]);
    (std::fs::read_to_string(lab.path().join("plan.yaml")).unwrap(), ended.stderr)
}

#[test]
fn of_a_burstgpt_file_the_rows_that_vllm_takes_are_taken() {
    let lab = Lab::new();
    lab.write(
        "burst.csv",
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
         0,GPT-4,1000,200,1200,API log\n3,ChatGPT,400,18,418,API log\n6,GPT-4,900,0,900,API log\n9,GPT-4,50,7,57,API log\n",
    );
    let (plan, listed) = of_data(&lab, "--dataset-name burstgpt --dataset-path burst.csv");
    assert!(plan.contains("of GPT-4 with a response") && !listed.contains("burstgpt"), "{plan}{listed}");
    let read = lab.ok(&["check", "plan.yaml"]).stdout;
    assert!(read.contains("2 pairs of lengths of burst.csv") && read.contains("2 skipped"), "{read}");
    assert!(!plan.contains("nonce:"), "its prompts are sweepline's prose: {plan}");
}

#[test]
fn minus_one_asks_for_the_answers_that_records_declare() {
    let lab = Lab::new();
    lab.write(
        "own.jsonl",
        "{\"prompt\":\"What is a bog?\",\"output_tokens\":11}\n{\"prompt\":\"And a fen?\",\"output_tokens\":12}\n",
    );
    for option in ["--custom-output-len -1", "--output-len -1"] {
        let (plan, _) = of_data(&lab, &format!("--dataset-name custom --dataset-path own.jsonl {option}"));
        assert!(plan.contains("data: { file: own.jsonl,") && !plan.contains("output_tokens:"), "{option}: {plan}");
    }
    let (plan, _) = of_data(&lab, "--dataset-name custom --dataset-path own.jsonl");
    assert!(plan.contains("output_tokens: 256 "), "{plan}");
    // If records do not specify a length, vLLM has no length to request either.
    lab.write("bare.jsonl", "{\"prompt\":\"What is a bog?\"}\n");
    let (plan, listed) = of_data(&lab, "--dataset-name custom --dataset-path bare.jsonl --custom-output-len -1");
    assert!(plan.contains("with -1 each record specifies it"), "{plan}");
    assert!(listed.contains("1 no answer"), "{listed}");
}

#[test]
fn what_a_filter_keeps_of_sharegpt_is_said_as_it_is() {
    let lab = Lab::new();
    let record = |prompt: usize, answer: usize| {
        format!(
            r#"{{"conversations":[{{"from":"human","value":"{}"}},{{"from":"gpt","value":"{}"}}]}}"#,
            "abc ".repeat(prompt),
            "abc ".repeat(answer)
        )
    };
    let all = [record(20, 1), record(20, 20), record(20, 2_100), record(900, 1_500), record(1_500, 20)];
    lab.write("chats.json", &format!("[{}]", all.join(",")));
    let kept = || lab.ok(&["check", "plan.yaml"]).stdout;
    let (plan, listed) = of_data(&lab, "--dataset-name sharegpt --dataset-path chats.json");
    assert!(
        plan.contains("filter: { prompt_tokens: { min: 4, max: 1024 }, output_tokens: { min: 4, max: 2044 } }"),
        "{plan}"
    );
    // The list is about the record of 900 and 1500 tokens.
    assert!(kept().contains("2 records of chats.json"), "{}", kept());
    assert!(listed.contains("more than 2048 tokens of prompt and response together"), "{listed}");
    assert!(!plan.contains("of the lengths that vLLM keeps"), "{plan}");
    // With one length for all responses, the recorded lengths do not count, and prompts are bounded
    // by the remainder.
    let (plan, listed) = of_data(&lab, "--dataset-name sharegpt --dataset-path chats.json --sharegpt-output-len 1500");
    assert!(plan.contains("filter: { prompt_tokens: { min: 4, max: 548 } } }"), "{plan}");
    assert!(kept().contains("3 records of chats.json"), "{}", kept());
    assert!(!listed.contains("together") && listed.contains("four characters"), "{listed}");
}

#[test]
fn recorded_texts_keep_what_they_share() {
    let lab = Lab::new();
    lab.write("own.jsonl", "{\"prompt\":\"What is a bog?\"}\n");
    lab.write("chats.json", r#"[{"conversations":[{"from":"human","value":"What is a bog, and how is it made?"},{"from":"gpt","value":"Wet ground, made of moss over a long time."}]}]"#);
    for options in
        ["--dataset-name custom --dataset-path own.jsonl", "--dataset-name sharegpt --dataset-path chats.json"]
    {
        let (plan, _) = of_data(&lab, options);
        assert!(plan.contains("    nonce: run  ") && plan.contains("stays shared"), "{options}: {plan}");
    }
    let (plan, _) = of_data(&lab, "--dataset-name random");
    assert!(!plan.contains("nonce:"), "{plan}");
}

#[test]
fn a_chat_template_that_the_plan_does_not_apply_is_listed() {
    let lab = Lab::new();
    lab.write("own.jsonl", "{\"prompt\":\"What is a bog?\"}\n");
    let custom = "--dataset-name custom --dataset-path own.jsonl";
    let chat = "--backend openai-chat --endpoint /v1/chat/completions";
    let (_, completions) = of_data(&lab, custom);
    assert!(
        completions.contains("puts each prompt into the model's chat template") && completions.contains("`api: chat`"),
        "{completions}"
    );
    let (_, twice) = of_data(&lab, &format!("{custom} {chat}"));
    assert!(twice.contains("the plan leaves the template to the server"), "{twice}");
    for options in [format!("{custom} --skip-chat-template"), format!("{custom} {chat} --skip-chat-template")] {
        let (plan, listed) = of_data(&lab, &options);
        assert!(!listed.contains("template"), "{listed}");
        assert!(plan.contains("--skip-chat-template: texts as they are"), "{plan}");
    }
    let (_, listed) = of_data(&lab, &format!("{custom} --skip-chat-template --no-oversample"));
    assert!(listed.contains("--no-oversample: a run lasts for a set time"), "{listed}");
}

#[test]
fn what_a_plan_cannot_say_is_named_with_what_can() {
    let lab = Lab::new();
    lab.write("trace.jsonl", "{}\n");
    let (_, listed) = of_data(&lab, "--dataset-name timed_trace --dataset-path trace.jsonl");
    assert!(listed.contains("`trace: { file: FILE }`") && !listed.contains("`data: {"), "{listed}");
    let (_, listed) = of_data(&lab, "--tokenizer .");
    assert!(listed.contains("`.` is not a tokenizer"), "{listed}");
    let (_, listed) = of_data(&lab, "--dataset-name prefix_repetition --prefix-repetition-num-prefixes 0");
    assert!(listed.contains("--prefix-repetition-num-prefixes 0: vllm bench serve fails with an error"), "{listed}");
}

#[test]
fn an_imported_plan_runs() {
    let lab = Lab::new();
    let server = Server::start(&lab, &["--model", "tiny"]);
    let config = format!(
        "{{\"endpoints\": [{{\"name\": \"a\", \"url\": \"{}\", \"engine\": \"vllm\"}}], \"models\": [\"tiny\"], \"scenarios\": [\"B1\"], \
         \"batch_sizes\": [1, 2], \"fill_seconds\": 0.02, \"stabilize_seconds\": 0.02, \"measure_seconds\": 0.3, \
         \"drain_seconds\": 5, \"max_tokens\": 4}}",
        server.url()
    );
    lab.write("config.json", &config);
    lab.ok(&["import", "config.json", "-o", "closed.yaml"]);
    let script = "for r in 20 40; do\n  vllm bench serve --base-url URL --endpoint /v1/chat/completions --backend openai-chat \
                  --model tiny --random-input-len 40 --random-output-len 4 --request-rate $r --num-prompts 10\ndone\n";
    lab.write("script.sh", &script.replace("URL", server.url().trim_end_matches("/v1")));
    let plan = import(&lab, &["script.sh"]).stdout;
    // The tool's windows are long, so they are shortened for the test.
    let short = plan
        .replace("fill: 30s", "fill: 20ms")
        .replace("stabilize: 60s", "stabilize: 20ms")
        .replace("measure: 60s", "measure: 300ms");
    assert!(short.contains("qps: [20, 40]") && short.contains("measure: 300ms"), "{plan}");
    lab.write("open.yaml", &short);
    for plan in ["closed.yaml", "open.yaml"] {
        let ended = lab.run(&["run", plan]);
        // A run may be judged invalid on a busy machine.
        assert!(matches!(ended.code, Some(0 | 3)), "{plan}: {}{}", ended.stdout, ended.stderr);
    }
    let runs = lab.runs();
    assert_eq!(runs.len(), 4);
    for run in runs.values() {
        assert!(run.records.iter().any(|record| record.row.outcome.is_ok()), "{}", run.json["spec"]);
        assert_eq!(run.json["spec"]["scenario"]["output_tokens"], 4);
    }
}

#[test]
fn six_settings_three_times_are_eighteen_runs_that_start_six_servers() {
    let lab = lab();
    lab.ok(&["import", "six_settings.sh", "-o", "plan.yaml"]);
    let preview = lab.ok(&["preview", "plan.yaml"]).stdout;
    for part in ["in all: 18 new", "to do               18 runs", "6 starts of vllm"] {
        assert!(preview.contains(part), "{part}: {preview}");
    }
    let told: serde_json::Value =
        serde_json::from_str(&lab.ok(&["preview", "plan.yaml", "--format", "json"]).stdout).unwrap();
    assert_eq!(told["runs"].as_array().unwrap().len(), 18, "{told}");
    // Every setting starts its own server, with the words of the command and of the parameter file.
    let settings = std::fs::read_to_string(lab.path().join("six_settings.json")).unwrap();
    let settings: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(&settings).unwrap();
    let plan = std::fs::read_to_string(lab.path().join("plan.yaml")).unwrap();
    for setting in settings {
        let flags: Vec<String> = setting.iter().map(|(flag, value)| format!("{flag}: {value}")).collect();
        assert!(plan.contains(&format!("{{ {} }}", flags.join(", "))), "{flags:?}: {plan}");
    }
}

#[test]
fn an_imported_sweep_starts_its_servers() {
    let lab = Lab::new();
    lab.write("serve.json", r#"{ "few": { "slots": 2 }, "many": { "slots": 8, "itl": "2ms" } }"#);
    let serve = format!("nohup {SWEEPLINE} mock --model tiny --ttft 5ms --port 8000 --slots 4");
    let bench = "vllm bench serve --model tiny --backend openai-chat --endpoint /v1/chat/completions --port 8000 \
                 --random-input-len 40 --random-output-len 4 --max-concurrency 2 --num-prompts 10";
    let words = ["vllm", "bench", "sweep", "serve", "--serve-cmd", &serve, "--bench-cmd", bench];
    let more = ["--serve-params", "serve.json", "--num-runs", "2", "--server-ready-timeout", "60"];
    let ended = import(&lab, &[&["--"], &words[..], &more[..]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let plan = ended.stdout;
    let command = format!(
        "command: [{SWEEPLINE}, mock, --model, \"{{{{ model.id }}}}\", --ttft, \"5ms\", --port, \"{{{{ port }}}}\", \"{{{{ server.args }}}}\"]"
    );
    assert!(plan.contains(&command) && plan.contains("ready: { within: 60s }"), "{plan}");
    assert!(
        plan.contains("server: [{ slots: 2 }, { slots: 8, itl: \"2ms\" }]  # --serve-params serve.json: few, many"),
        "{plan}"
    );
    // The tool's windows are long, and its port may be taken, so the test uses short windows and a
    // free port.
    let short = plan
        .replace("url: http://127.0.0.1:8000/v1", "near: none")
        .lines()
        .filter(|line| !line.contains("near: none"))
        .map(|line| format!("{line}\n"))
        .collect::<String>()
        .replace("launch: { ", "launch: { port: auto, ")
        .replace("engine: vllm", "engine: mock")
        .replace("fill: 30s", "fill: 20ms")
        .replace("stabilize: 60s", "stabilize: 20ms")
        .replace("for: 120s, min_requests: 10, at_most: 600s", "for: 300ms");
    lab.write("plan.yaml", &short);
    let ended = lab.run(&["run", "plan.yaml"]);
    // A run may be judged invalid on a busy machine.
    assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.stderr.lines().filter(|line| line.contains(": starting ")).count(), 2, "{}", ended.stderr);
    let slots = |run: &lab::Run| run.json["spec"]["endpoint"]["server"]["flags.slots"].as_f64();
    let mut found: Vec<_> = lab.runs().values().map(|run| slots(run).unwrap()).collect();
    found.sort_by(f64::total_cmp);
    assert_eq!(found, [2.0, 2.0, 8.0, 8.0]);
    for run in lab.runs().values() {
        let command = run.json["spec"]["endpoint"]["launch"]["command"].to_string();
        assert!(command.matches("--slots").count() == 1 && command.contains("--ttft"), "{command}");
        assert!(run.records.iter().any(|record| record.row.outcome.is_ok()), "{command}");
    }
}

#[test]
fn a_setting_that_spreads_a_server_says_over_how_many_accelerators() {
    let lab = Lab::new();
    lab.write("serve.json", r#"[{ "tensor_parallel_size": 1 }, { "tensor-parallel-size": 4 }]"#);
    let bench = "vllm bench serve --model m --request-rate 5";
    let serve = "vllm serve m --pipeline-parallel-size 2";
    let words =
        ["vllm", "bench", "sweep", "serve", "--serve-cmd", serve, "--bench-cmd", bench, "--serve-params", "serve.json"];
    let plan = import(&lab, &[&["--"], &words[..]].concat()).stdout;
    let gpus = "hardware: { gpus: \"{{ server.tensor_parallel_size * server.pipeline_parallel_size }}\" }";
    assert!(plan.contains(gpus), "{plan}");
    lab.write("plan.yaml", &plan);
    assert!(!lab.ok(&["check", "plan.yaml"]).stdout.contains("M026"));
    lab.write("plan.yaml", &plan.replace(gpus, "hardware: { gpus: 8 }"));
    let check = lab.ok(&["check", "plan.yaml"]).stdout;
    assert!(check.contains("M026") && check.contains("`gpus: 8` is the same in every cell"), "{check}");
}

#[test]
fn of_two_servers_in_front_of_one_benchmark_the_first_is_listed() {
    let lab = Lab::new();
    let bench = "vllm bench serve --model m --port 8001 --request-rate 5";
    lab.write("two.sh", &format!("vllm serve a --port 8000 &\nvllm serve m --port 8001 &\n{bench}\n"));
    let ended = import(&lab, &["two.sh"]);
    assert!(ended.stderr.contains("vllm serve (line 1): another server is started"), "{}", ended.stderr);
    assert!(ended.stdout.contains("# vllm serve (line 2)"), "{}", ended.stdout);
    // If there is one server for each benchmark, both are started.
    lab.write("each.sh", &format!("vllm serve a --port 8001 &\n{bench}\nvllm serve m -tp 2 --port 8001 &\n{bench}\n"));
    let ended = import(&lab, &["each.sh"]);
    assert_eq!(ended.stdout.matches("launch: { command: [vllm, serve, ").count(), 2, "{}", ended.stdout);
    // A server is not started if the user states that it is already running.
    let there = import(&lab, &["each.sh", "--url", "http://gpu-7:8000/v1"]).stdout;
    assert!(!there.contains("    launch: ") && there.contains("`import --url` names a running server"), "{there}");
}

#[test]
fn files_are_not_overwritten_unasked() {
    let lab = lab();
    lab.write("mine.yaml", "mine");
    for command in [&["import", "rates.sh", "-o", "mine.yaml"][..], &["new", "--output", "mine.yaml"]] {
        let ended = lab.run(command);
        assert_eq!(ended.code, Some(2), "{command:?}");
        assert!(
            ended.stderr.contains("mine.yaml already exists") && ended.stderr.contains("--force"),
            "{}",
            ended.stderr
        );
        assert_eq!(std::fs::read_to_string(lab.path().join("mine.yaml")).unwrap(), "mine");
    }
    for command in [&["import", "rates.sh", "-o", "mine.yaml", "--force"][..], &["new", "-o", "mine.yaml", "--force"]] {
        let ended = lab.ok(command);
        assert!(ended.stdout.is_empty() && ended.stderr.contains("wrote mine.yaml"), "{ended:?}");
        lab.ok(&["check", "mine.yaml"]);
    }
}
