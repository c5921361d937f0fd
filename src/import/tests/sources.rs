//! Tests that every setting of a source is counted, or gives an error with its place: addresses,
//! variables without a value, branches, invalid values, and commands for which there is nothing to
//! measure.

use super::*;

fn script(text: &str) -> Result<Imported, ImportError> {
    made("x.sh", Some(text), &[])
}

fn ok(text: &str) -> Imported {
    script(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> String {
    script(text).map(|made| made.plan).unwrap_err().to_string()
}

/// Imports with `--model`, `--url` and `--entry`.
fn with(
    name: &str,
    text: &str,
    model: Option<&str>,
    url: Option<&str>,
    entry: &[&str],
) -> Result<Imported, ImportError> {
    let read = |path: &str| Err(format!("{path} is not here"));
    import(&Wishes {
        name: name.to_owned(),
        text: Some(text.to_owned()),
        command: Vec::new(),
        format: "auto".to_owned(),
        quick: false,
        model: model.map(str::to_owned),
        url: url.map(str::to_owned),
        entries: entry.iter().map(|one| (*one).to_owned()).collect(),
        folder: PathBuf::new(),
        read: &read,
    })
}

fn lists(all: &[String], part: &str) {
    assert!(all.iter().any(|one| one.contains(part)), "`{part}` is not in {all:#?}");
}

/// A client whose address differs from that of the script's server measures its own address.
#[test]
fn a_client_keeps_its_address_beside_a_server_of_the_script() {
    for client in [
        "aiperf profile -m m -u http://router:8080 --concurrency 2 --isl 100 --osl 5",
        "genai-perf profile -m m -u http://router:8080 --concurrency 2 --output-tokens-mean 5",
        "export OPENAI_API_BASE=http://router:8080/v1\npython token_benchmark_ray.py --model m",
        "vllm bench serve --model m --base-url http://router:8080 --max-concurrency 2",
    ] {
        let made = ok(&format!("vllm serve m --port 8000 --max-num-seqs 7 &\n{client}\n"));
        assert!(made.plan.contains("url: http://router:8080/v1"), "{client}: {}", made.plan);
        lists(&made.missing, "this command starts a server on the local host");
    }
}

#[test]
fn import_url_and_model_count_before_what_a_source_names() {
    for client in [
        "vllm bench serve --model m --base-url http://old:1 --max-concurrency 2",
        "aiperf profile -m m -u http://old:1 --concurrency 2 --isl 100 --osl 5",
        "export OPENAI_API_BASE=http://old:1/v1\npython token_benchmark_ray.py --model m",
        "python3 -m sglang.bench_serving --model m --base-url http://old:1 --dataset-name random --max-concurrency 4",
        "guidellm benchmark --target http://old:1 --model m --rate-type concurrent --rate 3 --data prompt_tokens=100,output_tokens=10",
    ] {
        let made = with("x.sh", client, Some("other/n"), Some("http://gpu-7:8000"), &[]);
        let made = made.unwrap_or_else(|error| panic!("{client}: {error}"));
        assert!(made.plan.contains("url: http://gpu-7:8000/v1") && made.plan.contains("id: other/n"), "{}", made.plan);
        lists(&made.needless, "`import --url` sets the server's address");
        lists(&made.needless, "`import --model` sets the model");
    }
    let credentials = with("x.sh", "vllm bench serve --model m", None, Some("http://me:pass1234word@h"), &[]).unwrap();
    lists(&credentials.missing, "user name, password or query of --url");
    assert!(with("x.sh", "vllm bench serve --model m", None, Some("ftp://h"), &[]).is_err());
}

#[test]
fn a_variable_without_a_value_makes_no_plan() {
    for (text, parts) in [
        ("aiperf profile -m m -u http://h --concurrency $C --isl $I", &["x.sh:1", "$C", "and so on for I"][..]),
        ("\nvllm bench serve --model m --random-input-len ${p%,*}", &["x.sh:2", "--random-input-len"]),
        ("vllm bench serve --model m --num-prompts $N", &["x.sh:1", "`N` has no value"]),
    ] {
        let error = error(text);
        parts.iter().for_each(|part| assert!(error.contains(part), "`{part}` is not in: {error}"));
    }
    // An option that has no effect is listed with its unresolved value.
    assert!(ok("vllm bench serve --model m --max-concurrency 2 --result-dir $OUT").plan.contains("--result-dir"));
}

#[test]
fn a_branch_that_only_running_would_choose_makes_no_plan() {
    const BENCH: &str = "vllm bench serve --model m --max-concurrency 2 --random-input-len $LEN\n";
    let choice = "if [ \"$MODE\" = long ]; then LEN=4096; else LEN=128; fi\n";
    let text = error(&format!("{choice}{BENCH}"));
    for part in ["x.sh:2", "`LEN` is set under a condition (line 1)", "set the variables of the condition"] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert!(ok(&format!("MODE=long\n{choice}{BENCH}")).plan.contains("prompt_tokens: 4096"));
    let text = error("if grep -q H100 gpus; then\n  vllm bench serve --model m\nfi\n");
    assert!(text.starts_with("x.sh:1: ") && text.contains("`vllm bench serve` of line 2"), "{text}");
    let made = ok(
        "vllm bench serve --model m --max-concurrency 2\nif [ -n \"$MORE\" ]; then\n  vllm bench serve --model n\nfi\n",
    );
    lists(&made.missing, "it only runs if a variable in the condition of line 2 is set");
    assert!(!made.plan.contains("id: n"), "{}", made.plan);
    // A branch that measures nothing does not matter.
    let made = ok(&format!("LEN=64\nif [ ! -d logs ]; then mkdir logs; fi\ncd logs || exit 1\n{BENCH}"));
    assert_eq!(made.missing, Vec::<String>::new());
}

#[test]
fn a_value_that_cannot_be_read_makes_no_plan() {
    for (text, parts) in [
        (
            "guidellm run --backend target=http://h,model=m --profile kind=constant,rate=[1,2,5] --data prompt_tokens=9",
            &["x.sh:1", "--profile", "expected `name=value,…` or JSON"][..],
        ),
        ("\nvllm bench serve --model m --num-prompts many", &["x.sh:2", "--num-prompts many", "a whole number"]),
        ("vllm bench serve --model m --max-concurrency 0", &["--max-concurrency 0", "without a request in flight"]),
        (
            "vllm bench serve --model m --request-rate 3 --ramp-up-strategy linear --ramp-up-start-rps 1 --ramp-up-end-rps 2",
            &["--request-rate 3", "vLLM refuses it"],
        ),
        ("vllm bench serve --model m --ramp-up-strategy linear", &["--ramp-up-strategy linear", "--ramp-up-end-rps"]),
    ] {
        let error = error(text);
        parts.iter().for_each(|part| assert!(error.contains(part), "`{part}` is not in: {error}"));
    }
    let profile = "stages: 1\nload:\n  type: constant\n  stages: [{ rate: fast, duration: 60 }]\napi: { type: completion }\nserver: { \
                   type: vllm, model_name: m, base_url: 'http://h' }\ndata: { type: mock }\n";
    let error = made("x.yaml", Some(profile), &[]).map(|made| made.plan).unwrap_err().to_string();
    assert!(error.starts_with("x.yaml:4: load.stages[0]"), "{error}");
}

#[test]
fn what_is_typed_and_not_used_is_an_error() {
    let words = ["vllm", "bench", "serve", "--model", "x"].map(str::to_owned);
    let both = made("x.sh", Some("vllm bench serve --model m"), &words).map(|made| made.plan).unwrap_err().to_string();
    assert!(both.contains("this file cannot be combined with a command after `--`"), "{both}");
    let entry = with("x.sh", "vllm bench serve --model m", None, None, &["y"]).map(|made| made.plan).unwrap_err();
    assert!(entry.to_string().contains("--entry y: this source has no entries"), "{entry}");
}

#[test]
fn benchmarks_without_a_server_and_side_by_side_are_listed() {
    let made = ok(
        "vllm bench latency --model m\nvllm bench serve --model m --max-concurrency 2\neval \"vllm bench throughput --model m\"\n",
    );
    lists(&made.missing, "vllm bench latency (line 1): this command is skipped");
    lists(&made.missing, "vllm bench throughput (line 3): this command is skipped");
    let text = "vllm bench serve --model m --max-concurrency 2 &\nvllm bench serve --model m --max-concurrency 4 | tee l &\nwait\nvllm bench \
                serve --model m --max-concurrency 8\n";
    let made = ok(text);
    lists(&made.differs, "in parallel with the command of line 1");
    assert_eq!(made.differs.iter().filter(|one| one.contains("in parallel")).count(), 1, "{:?}", made.differs);
}

/// If an input is recognized but cannot be measured, the message contains only the reason.
#[test]
fn what_is_known_and_not_measured_says_why_alone() {
    for (text, reason) in [
        ("python3 -m sglang.bench_serving --model m --dataset-name mooncake", "trace: { file: FILE, as: mooncake }"),
        ("guidellm run --backend target=http://h,model=m --data kind=huggingface,source=a/b", "nothing is downloaded"),
        ("vllm bench latency --model m", "it sends no requests to a server"),
    ] {
        let error = error(text);
        assert!(error.contains(reason) && !error.contains("import accepts"), "{error}");
    }
    let made = ok(
        "guidellm run --backend target=http://h,model=m --profile kind=synchronous --data prompt_tokens=90,output_tokens=9\n\
                   guidellm run --backend target=http://h,model=m --profile kind=concurrent,streams=7 --constraint \
                   kind=max_requests,count=5 --data kind=huggingface,source=a/b\n",
    );
    assert!(!made.missing.iter().any(|one| one.contains("unknown option")), "{:?}", made.missing);
}

#[test]
fn several_numbers_of_requests_and_one_seed_are_told() {
    let text = "for n in 1 2 4; do vllm bench serve --model m --max-concurrency $n --num-prompts $((n * 100)); done\nvllm bench serve \
                --model m --max-concurrency 8 --num-prompts 100 --seed 7\n";
    let made = ok(text);
    lists(&made.differs, "here, at least 100 requests of each load, the smallest of these numbers");
    lists(&made.differs, "a plan has one seed");
    let even = ok("for n in 1 2; do vllm bench serve --model m --max-concurrency $n --num-prompts 100 --seed 7; done");
    assert!(!even.differs.iter().any(|one| one.contains("fewest") || one.contains("seed")), "{:?}", even.differs);
}

#[test]
fn loads_and_lengths_are_those_of_the_tools_source() {
    let sweep = |prompts: &str, iters: &str| {
        ok(&format!(
            "vllm bench sweep serve_workload --serve-cmd 'vllm serve m' --bench-cmd 'vllm bench serve --model m {prompts}' \
             --workload-var max_concurrency{iters}"
        ))
        .plan
    };
    assert!(sweep("--num-prompts 100", "").contains("batch_size: [1, 2, 3, 5, 8, 13, 22, 36, 60, 100]"));
    assert!(sweep("--num-prompts=64", " --workload-iters 4").contains("batch_size: [1, 4, 16, 64]"));
    let llmperf = |mean: u32| {
        ok(&format!("OPENAI_API_BASE=http://h:1/v1 python token_benchmark_ray.py --model m --mean-input-tokens {mean}"))
    };
    assert!(llmperf(550).plan.contains("prompt: { normal: { mean: 550, sd: 150, min: 41, max: 1300 } }"));
    let short = llmperf(10);
    assert!(short.plan.contains("prompt: { normal: { mean: 41, sd: 150, min: 41, max: 791 } }"), "{}", short.plan);
    lists(&short.differs, "redraws until a prompt fits its instruction");
}

#[test]
fn loadgens_queries_and_prompts_are_said() {
    let conf = "*.Offline.target_qps = 93\n*.Offline.min_duration = 240000\n*.Foo.bar = 3\n";
    let made = with("user.conf", conf, None, None, &["llama2-70b"]).unwrap();
    // 1.1 × 93 × 240 s are 24552 samples, fewer than the 24576 of the data set.
    assert!(made.plan.contains("batch_size: [24576]") && made.plan.contains("min_requests: 24576"), "{}", made.plan);
    let made = with("user.conf", &conf.replace("240000", "300000"), None, None, &["llama2-70b"]).unwrap();
    assert!(made.plan.contains("batch_size: [30690]") && made.plan.contains("min_requests: 30690"), "{}", made.plan);
    lists(&made.missing, "*.Foo.bar = 3 (line 3): unknown scenario in LoadGen");
    lists(&made.differs, "LoadGen's file does not contain OpenOrca");
    assert!(made.plan.contains("prompt_tokens: 50"), "{}", made.plan);
    let bert = with("language/bert/user.conf", conf, None, None, &[]).map(|made| made.plan).unwrap_err().to_string();
    assert!(bert.contains("bert sends pairs of a question and a text"), "{bert}");
}

/// The bounds of ShareGPT's texts are a filter for completions, but not for chats.
#[test]
fn inference_perf_filters_sharegpt_for_completions() {
    let config = |api: &str| {
        format!(
            "load: {{ type: constant, stages: [{{ rate: 2, duration: 60 }}] }}\napi: {{ type: {api} }}\nserver: {{ type: vllm, \
             model_name: m, base_url: 'http://h' }}\ndata:\n  type: shareGPT\n  input_distribution: {{ min: 20, max: 900 }}\n"
        )
    };
    let of = |api: &str| made("x.yaml", Some(&config(api)), &[]).unwrap_or_else(|error| panic!("{error}"));
    let completion = of("completion");
    lists(&completion.differs, "it bounds the data set's lengths");
    lists(&of("chat").needless, "sends whole conversations");
}

#[test]
fn suites_of_vllms_ci_keep_what_they_measure() {
    let test = |name: &str, client: &str| {
        format!(
            "{{\"test_name\": \"{name}\", \"qps_list\": [1, 4], \"max_concurrency_list\": [12, 16], \"server_parameters\": {{\"model\": \
             \"m\"}}, \"client_parameters\": {{\"model\": \"{client}\", \"dataset_name\": \"random\", \"num_prompts\": 200}}}}"
        )
    };
    let latency = "{\"test_name\": \"latency_m\", \"parameters\": {\"model\": \"m\"}}";
    let suite = format!("[{}, {}, {latency}]", test("a", "m"), test("b", "other"));
    let made = made("serving-tests.json", Some(&suite), &[]).unwrap_or_else(|error| panic!("{error}"));
    lists(&made.missing, "latency_m");
    assert_eq!(made.missing.len(), 1, "{:?}", made.missing);
    assert!(made.plan.contains("batch_size: [12, 16]") && !made.plan.contains("a-2:"), "{}", made.plan);
}

/// Constraints that differ between benchmarks become one window, and the difference is listed.
#[test]
fn guidellms_counts_of_each_benchmark_are_one_window() {
    let text = "spec:\n  backend: { kind: openai_http, target: 'http://h', model: m }\n  profile: { kind: concurrent }\n  data:\n  - { kind: \
                synthetic_text, prompt_tokens: 128, output_tokens: 128 }\n  constraints:\n  - kind: max_requests\nbenchmarks:\n- \
                { profile.streams: 32, 'constraints[0].count': 320 }\n- { profile.streams: 64, 'constraints[0].count': 640 }\n";
    let made = made("x.yaml", Some(text), &[]).unwrap_or_else(|error| panic!("{error}"));
    assert!(made.plan.contains("batch_size: [32, 64]") && made.plan.contains("min_requests: 320"), "{}", made.plan);
    lists(&made.differs, "all loads of a sweep share one window");
    assert_eq!(made.missing, Vec::<String>::new());
}

/// Two tools that run after the start of a server measure that server; if a tool runs before it, the import
/// fails.
#[test]
fn several_tools_measure_one_server_of_the_script() {
    let server = "python3 -m sglang.launch_server --model-path m --port 30000 &\n";
    let clients = [
        "guidellm benchmark --target http://localhost:30000 --model m --rate-type concurrent --rate 4 --data \
         prompt_tokens=256,output_tokens=128\n",
        "aiperf profile -m m -u localhost:30000 --concurrency 3 --isl 100 --osl 5\n",
    ];
    let made = ok(&format!("{server}{}", clients.concat()));
    assert_eq!(made.plan.matches("launch: {").count(), 2, "{}", made.plan);
    let text = error(&format!("{}{server}{}", clients[0], clients[1]).replace("localhost", "127.0.0.1"));
    assert!(
        text.starts_with("x.sh:1: ") && text.contains("the plan only starts the server for the benchmark of line 3"),
        "{text}"
    );
}

/// Lengths that form all combinations become two axes; other lengths stay scenarios.
#[test]
fn lengths_that_all_combine_are_axes() {
    let text = |pairs: &str| {
        format!(
            "for p in {pairs}; do vllm bench serve --model m --max-concurrency 4 --num-prompts 100 --random-input-len ${{p%,*}} \
             --random-output-len ${{p#*,}}; done"
        )
    };
    let crossed = "for i in 128 1024; do for o in 16 64 256; do vllm bench serve --model m --max-concurrency 4 --num-prompts 100 \
                   --random-input-len $i --random-output-len $o; done; done";
    let made = ok(crossed);
    assert!(
        made.plan.contains("prompt_tokens: [128, 1024]") && made.plan.contains("output_tokens: [16, 64, 256]"),
        "{}",
        made.plan
    );
    assert_eq!(made.plan.matches("base:").count(), 1, "{}", made.plan);
    let some = ok(&crossed.replace("for o in 16 64 256", "for o in $((i / 8)) 64 256"));
    assert!(!some.plan.contains("prompt_tokens: ["), "{}", some.plan);
    let pairs = ok(&text("128,16 1024,64")).plan;
    assert!(pairs.contains("prompt_tokens: 128") && pairs.contains("output_tokens: 64"), "{pairs}");
}
