//! Command lines of SGLang, guidellm, genai-bench and llmperf, in addition to the public examples: every
//! option, including rejected options and options that have their own name in a plan.

use super::made;
use crate::import::{ImportError, Imported, genai_bench, guidellm, llmperf, sglang};

const SGLANG: &str =
    "python3 -m sglang.bench_serving --model m --dataset-name random --random-range-ratio 1 --max-concurrency 4";
const GUIDELLM: &str = "guidellm benchmark --target http://h:1 --model m --profile poisson --rate 3 --max-seconds \
                        60 --data prompt_tokens=100,output_tokens=10";
const GENAI: &str = "genai-bench benchmark --api-backend vllm --api-base http://h:1 --api-model-name m \
                     --model-tokenizer m --task text-to-text --max-time-per-run 1 --max-requests-per-run 10 \
                     --num-concurrency 2 --traffic-scenario D(100,10)";
const LLMPERF: &str = "OPENAI_API_BASE=http://h:1/v1 python token_benchmark_ray.py --model m";

fn of(command: &str) -> Result<Imported, ImportError> {
    made("the command line", None, &shlex::split(command).unwrap())
}

fn plan(command: &str) -> String {
    of(command).unwrap_or_else(|error| panic!("{command}: {error}")).plan
}

fn has(command: &str, parts: &[&str]) {
    let plan = plan(command);
    parts.iter().for_each(|part| assert!(plan.contains(part), "`{part}` of `{command}` is not in:\n{plan}"));
}

/// Whether a text contains the name of an option rather than only a longer name that includes it.
fn names(text: &str, option: &str) -> bool {
    let ends = |at: usize| !text[at..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
    text.match_indices(option).any(|(at, _)| ends(at + option.len()))
}

#[test]
fn every_option_of_every_tool_is_in_the_plan_or_in_the_list() {
    let tools = [
        (SGLANG, sglang::option_names()),
        (GUIDELLM, guidellm::option_names()),
        (GENAI, genai_bench::option_names()),
        (LLMPERF, llmperf::option_names()),
    ];
    for (base, names_of) in tools {
        for name in names_of {
            let option = format!("--{name}");
            let value = match name {
                "config" | "scenario" => "chat",
                "override" => "profile.rate 5",
                "backend-kwargs" | "backend-args" => "'{\"timeout\": 5}'",
                "processor-args" | "data-args" => "'{\"a\": 5}'",
                "data" => "prompt_tokens=90,output_tokens=10",
                "rate-type" | "profile" if base == GUIDELLM => "constant",
                "task" => "text-to-text",
                "traffic-scenario" => "'D(90,10)'",
                "api-backend" => "vllm",
                "backend" if base == SGLANG => "sglang-oai",
                "llm-api" => "openai",
                "extra-request-body" | "additional-sampling-params" | "additional-request-params" => {
                    "'{\"top_p\": 0.5}'"
                }
                "base-url" | "api-base" | "target" => "http://g:2",
                _ => "5",
            };
            let command = format!("{base} {option} {value}");
            match of(&command) {
                Ok(made) => assert!(names(&made.plan, &option), "{option} is nowhere in:\n{}", made.plan),
                Err(error) => assert!(error.to_string().contains(&option), "{command}: {error}"),
            }
        }
    }
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_reason() {
    for (command, reason) in [
        ("python3 -m sglang.bench_serving --backend trt --model m", "neither OpenAI's API nor SGLang's"),
        ("python3 -m sglang.bench_serving --model m --dataset-name mmmu", "`data: { file: FILE }`"),
        ("python3 -m sglang.bench_serving --model m --dataset-name mooncake", "`trace: { file: FILE, as: mooncake }`"),
        ("python3 -m sglang.bench_one_batch --model-path m --batch 1", "without a server"),
        ("python3 -m sglang.bench_offline_throughput --model-path m", "without a server"),
        ("python3 -m sglang.bench_serving --backend sglang", "--model ID"),
        (
            "guidellm run --backend kind=vllm_python,model=m --data kind=synthetic_text,prompt_tokens=9",
            "in its own process",
        ),
        ("guidellm run --backend kind=openai_http,model=m --data kind=huggingface,source=a/b", "nothing is downloaded"),
        (
            "guidellm run --backend model=m --profile kind=odd --data kind=synthetic_text,prompt_tokens=90",
            "unknown profile",
        ),
        ("guidellm run --backend model=m --profile kind=constant --data prompt_tokens=90", "it has no `rate`"),
        ("genai-bench benchmark --api-backend oci-cohere --task text-to-text", "the provider has no OpenAI API"),
        ("genai-bench benchmark --api-backend openai --api-base http://h --task text-to-image", "not images or speech"),
        (
            "genai-bench benchmark --api-backend vllm --api-base http://h --api-model-name m --task text-to-text \
             --traffic-scenario D(1",
            "D(IN,OUT)",
        ),
        ("python token_benchmark_ray.py --model m --llm-api vertexai", "neither OpenAI's nor Anthropic's API"),
        ("python token_benchmark_ray.py --model m", "the source does not set OPENAI_API_BASE"),
        ("OPENAI_API_BASE='http://a/v1;http://b/v1' python token_benchmark_ray.py --model m", "several addresses"),
    ] {
        let error = of(command).map(|made| made.plan).unwrap_err().to_string();
        assert!(error.contains(reason), "`{reason}` is not in: {error}");
    }
}

#[test]
fn words_of_sglang_have_words_of_the_plan() {
    has(
        &format!("{SGLANG} --flush-cache --disable-stream --lora-name a --tag night"),
        &["reset: prefix_cache", "stream: false", "extra: { lora_path: a }", "  night:"],
    );
    has(&format!("{SGLANG} --backend sglang-oai-chat --lora-name a"), &["model: a", "api: chat"]);
    has(
        "python3 -m sglang.bench_serving --model m --dataset-name random --multi --request-rate-range 2,9,3",
        &["qps: [2, 5, 8]"],
    );
    has(
        "python3 -m sglang.bench_serving --model m --dataset-name generated-shared-prefix --gsp-num-turns 3 \
         --gsp-group-distribution zipf --gsp-zipf-alpha 1 --max-concurrency 8",
        &["prefix: { tokens: 2048, groups: 64, order: zipf }", "turns: 3", "base: D"],
    );
    has(
        "python3 -m sglang.bench_serving --model m --dataset-name sharegpt --apply-chat-template --max-concurrency 8",
        &["api: chat", "prompt_tokens: 161"],
    );
    has(
        "python -m sglang.bench_one_batch_server --model None --base-url http://h:3 --batch-size 2 4 --input-len 64 \
         --served-model-name n1",
        &["batch_size: [2, 4]", "url: http://h:3/v1", "id: n1"],
    );
}

#[test]
fn a_server_of_sglang_is_launched() {
    let script = "sglang serve --model-path a/b --port 31000 --tp 2 --api-key secretword1 &\npython3 -m \
                  sglang.bench_serving --dataset-name random --max-concurrency 8\n";
    let made = made("x.sh", Some(script), &[]).unwrap_or_else(|error| panic!("{error}"));
    for part in [
        "command: [sglang, serve, --model-path, \"{{ model.id }}\", --port, \"{{ port }}\", \"{{ server.args }}\"]",
        "url: http://127.0.0.1:31000/v1",
        "server: { flags: { tp: 2 } }",
        "id: a/b",
    ] {
        assert!(made.plan.contains(part), "{part} is not in:\n{}", made.plan);
    }
    assert!(
        !made.plan.contains("secretword1") && made.missing.iter().any(|one| one.contains("--api-key ***")),
        "{:?}",
        made.missing
    );
}

#[test]
fn words_of_guidellm_have_words_of_the_plan() {
    let base = "guidellm run --backend kind=openai_http,target=https://h,model=m,http2=true,verify=false,timeout=30 \
                --data kind=synthetic_text,prompt_tokens=100,prompt_tokens_stdev=10,output_tokens=20";
    has(
        &format!("{base} --profile kind=poisson --override profile.rate 2,4 --constraint kind=over_saturation"),
        &[
            "stop: saturated",
            "qps: [2, 4]",
            "http: 2",
            "insecure_tls: true",
            "request: 30s",
            "normal: { mean: 100, sd: 10, min: 50, max: 150 }",
        ],
    );
    has(
        &format!(
            "{base} --profile kind=concurrent --override profile.streams 2,4 --constraint kind=max_errors,count=3"
        ),
        &["stop: errors", "batch_size: [2, 4]"],
    );
    has(&format!("{base} --profile kind=sweep,sweep_size=4,max_concurrency=64"), &["batch_size: [1, 4, 16, 64]"]);
    has(&format!("{base},turns=2,delay=3 --profile kind=synchronous"), &["turns: 2", "think: 3s", "batch_size: [1]"]);
    let of_variables = "GUIDELLM_TARGET=http://h:9 GUIDELLM_RATE_TYPE=concurrent GUIDELLM_RATE=7 \
                        GUIDELLM_DATA=prompt_tokens=50,output_tokens=5 guidellm benchmark --model m";
    has(of_variables, &["url: http://h:9/v1", "batch_size: [7]", "prompt_tokens: 50"]);
    has("guidellm run -c rag --backend target=http://h:9,model=m", &["mean: 4096", "512]"]);
    let headers = base.replace("timeout=30", "extras.headers.X-Tenant=opensesame77");
    let headers = plan(&format!("{headers} --profile kind=synchronous"));
    assert!(
        headers.contains("headers: { X-Tenant: { secret: env:X_TENANT } }") && !headers.contains("opensesame77"),
        "{headers}"
    );
    let secret = plan(&format!("{} --profile kind=synchronous", base.replace("timeout=30", "api_key=opensesame77")));
    assert!(!secret.contains("opensesame77") && secret.contains("api_key: { secret: env:OPENAI_API_KEY }"), "{secret}");
}

#[test]
fn words_of_genai_bench_and_llmperf_have_words_of_the_plan() {
    let rank = "genai-bench benchmark --api-backend vllm --api-base http://h:1 --api-model-name m --task \
                text-to-rerank --batch-size 4 --traffic-scenario 'R(64,100)' --api-key $RANK_KEY";
    has(rank, &["api: rerank", "documents: 4", "query_tokens: 100", "prompt_tokens: 64", "batch_size: [1]"]);
    has(&format!("{GENAI} --api-key opensesame77"), &["api_key: { secret: env:OPENAI_API_KEY }"]);
    assert!(!plan(&format!("{GENAI} --api-key opensesame77")).contains("opensesame77"));
    has(
        &format!("{GENAI} --additional-request-params '{{\"temperature\": 0.5, \"top_k\": 4}}'"),
        &["temperature: 0.5", "top_k: 4"],
    );
    has(
        &format!("{LLMPERF} --additional-sampling-params '{{\"max_tokens\": 64, \"top_k\": 4}}'"),
        &["output: 64", "top_k: 4"],
    );
    has("OPENAI_API_BASE=http://h:1/v1 python token_benchmark_ray.py --model openai/m --llm-api litellm", &["id: m"]);
    let anthropic = "ANTHROPIC_API_KEY=$KEY python token_benchmark_ray.py --llm-api anthropic --model claude-2 \
                     --additional-sampling-params '{\"top_k\": 4, \"seed\": 7, \"stop_sequences\": [\"###\"]}'";
    has(
        anthropic,
        &["url: https://api.anthropic.com/v1", "api: messages", "env:ANTHROPIC_API_KEY", "top_k: 4", "stop: ["],
    );
    assert!(!plan(anthropic).contains("seed: 7"), "this API has no seed");
    has(
        "ANTHROPIC_API_BASE=http://h:1 python token_benchmark_ray.py --model anthropic/c --llm-api litellm",
        &["url: http://h:1/v1", "id: c"],
    );
}
