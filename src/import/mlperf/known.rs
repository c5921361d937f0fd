//! LoadGen's built-in settings of the MLPerf Inference benchmarks: `loadgen/mlperf.conf` of
//! github.com/mlcommons/inference at b66003e1 (August 2026), which every `user.conf` overrides.
//! Model IDs and output lengths are taken from the reference implementations and from
//! `tools/submission/submission_checker/constants.py` in the same repository.

/// The scenarios of LoadGen.
pub(super) const SCENARIOS: [&str; 4] = ["Server", "Offline", "SingleStream", "MultiStream"];

/// A benchmark of a language model.
#[derive(Debug)]
pub(super) struct Benchmark {
    /// The name of the benchmark in LoadGen.
    pub(super) name: &'static str,
    /// The model of the reference implementation.
    pub(super) id: &'static str,
    /// The data set of the benchmark, as text.
    pub(super) data: &'static str,
    /// The mean number of output tokens, if the rules specify it.
    pub(super) output: Option<u32>,
    /// `ttft_latency` and `tpot_latency` of the Server scenario, in ms.
    pub(super) latencies: Option<(u32, u32)>,
    /// `Offline.min_query_count`.
    pub(super) samples: Option<u32>,
}

const fn benchmark(
    name: &'static str,
    id: &'static str,
    data: &'static str,
    output: Option<u32>,
    latencies: Option<(u32, u32)>,
    samples: Option<u32>,
) -> Benchmark {
    Benchmark { name, id, data, output, latencies, samples }
}

const LLAMA2: &str = "meta-llama/Llama-2-70b-chat-hf";
const LLAMA3_405B: &str = "meta-llama/Llama-3.1-405B-Instruct";
const LLAMA3_8B: &str = "meta-llama/Llama-3.1-8B-Instruct";
const R1: &str = "deepseek-ai/DeepSeek-R1";
const OSS: &str = "openai/gpt-oss-120b";
const ORCA: &str = "OpenOrca, 24576 samples";
const LONG: &str = "its reference data set, 8313 samples";
const NEWS: &str = "CNN/DailyMail, 13368 samples";
const REASONING: &str = "AIME, MATH500, GPQA, MMLU-Pro and LiveCodeBench, 4388 samples";
const OSS_DATA: &str = "its reference data set, 6396 samples";

/// The benchmarks of language models.
pub(super) static BENCHMARKS: [Benchmark; 13] = [
    benchmark("llama2-70b", LLAMA2, ORCA, Some(294), Some((2000, 200)), Some(24_576)),
    benchmark("llama2-70b-interactive", LLAMA2, ORCA, Some(294), Some((450, 40)), None),
    benchmark(
        "mixtral-8x7b",
        "mistralai/Mixtral-8x7B-Instruct-v0.1",
        "OpenOrca, GSM8K and MBXP, 15000 samples",
        Some(145),
        Some((2000, 200)),
        Some(15_000),
    ),
    benchmark("llama3_1-405b", LLAMA3_405B, LONG, Some(685), Some((6000, 175)), Some(8_313)),
    benchmark("llama3_1-405b-interactive", LLAMA3_405B, LONG, Some(685), Some((4500, 80)), None),
    benchmark("llama3_1-8b", LLAMA3_8B, NEWS, None, Some((2000, 100)), Some(13_368)),
    benchmark("llama3_1-8b-edge", LLAMA3_8B, "CNN/DailyMail, 5000 samples", None, None, Some(5_000)),
    benchmark("llama3_1-8b-interactive", LLAMA3_8B, NEWS, None, Some((500, 30)), None),
    benchmark("deepseek-r1", R1, REASONING, Some(3886), Some((2000, 80)), Some(4_388)),
    benchmark("deepseek-r1-interactive", R1, REASONING, Some(3886), Some((1500, 15)), None),
    benchmark("gpt-oss-120b", OSS, OSS_DATA, None, Some((3000, 80)), None),
    benchmark("gpt-oss-120b-interactive", OSS, OSS_DATA, None, Some((2000, 15)), None),
    benchmark("gptj", "EleutherAI/gpt-j-6b", NEWS, None, None, Some(13_368)),
];

/// Benchmarks that the import does not support, each with the kind of data that it sends.
const OTHERS: [(&str, &str); 17] = [
    ("resnet50", "images"),
    ("ssd-mobilenet", "images"),
    ("retinanet", "images"),
    ("yolo", "images"),
    ("bert", "pairs of a question and a text, without output tokens"),
    ("dlrm", "click features"),
    ("dlrm-v2", "click features"),
    ("dlrm-v3", "click features"),
    ("rnnt", "sound"),
    ("whisper", "sound"),
    ("3d-unet", "scans"),
    ("stable-diffusion-xl", "texts that become images"),
    ("wan-2.2-t2v-a14b", "texts that become videos"),
    ("rgat", "graph nodes"),
    ("pointpainting", "images and lidar points"),
    ("qwen3-vl-235b-a22b", "images with questions"),
    ("ssd-resnet34", "images"),
];

/// Returns the benchmark of a language model with this name; `None` if it is unknown.
pub(super) fn named(name: &str) -> Option<&'static Benchmark> {
    BENCHMARKS.iter().find(|one| one.name == name)
}

/// Returns the kind of data that an unsupported benchmark sends; `None` for supported benchmarks and unknown
/// names.
pub(super) fn sends(name: &str) -> Option<&'static str> {
    OTHERS.iter().find(|(known, _)| *known == name).map(|(_, sends)| *sends)
}

/// Returns the benchmark in a path: `…/llama2-70b-99/Server/user.conf`. The names of folders,
/// unlike LoadGen's names, contain the accuracy target, and dots in version numbers.
pub(super) fn of_path(path: &str) -> Option<&'static Benchmark> {
    let parts: Vec<String> = path.split(['/', '\\']).map(|part| part.replace("llama3.1", "llama3_1")).collect();
    let is_interactive = parts.iter().any(|part| part.eq_ignore_ascii_case("interactive"));
    let fits = |part: &str, name: &str| {
        let rest = part.strip_prefix(name)?;
        (rest.is_empty() || ["-99", "-99.9", ".conf"].contains(&rest)).then_some(())
    };
    let found = BENCHMARKS.iter().find(|one| parts.iter().any(|part| fits(part, one.name).is_some()))?;
    match is_interactive {
        true => named(&format!("{}-interactive", found.name)).or(Some(found)),
        false => Some(found),
    }
}

/// Folders of unsupported benchmarks whose names differ from LoadGen's names, each with the kind of data that
/// its benchmarks send.
const FOLDERS: [(&str, &str); 8] = [
    ("classification_and_detection", "images"),
    ("recommendation", "click features"),
    ("text_to_image", "texts that become images"),
    ("text_to_video", "texts that become videos"),
    ("speech2text", "sound"),
    ("medical_imaging", "scans"),
    ("automotive", "images and lidar points"),
    ("graph", "graph nodes"),
];

/// Returns the part of a path that names an unsupported benchmark, and the kind of data that this benchmark
/// sends.
pub(super) fn other_of_path(path: &str) -> Option<(&str, &'static str)> {
    let parts = || path.split(['/', '\\']);
    let is_named = |part: &str, name: &str| {
        let (part, name) = (part.to_ascii_lowercase().replace('_', "-"), name.replace('_', "-"));
        part == name || part.strip_prefix(&name).is_some_and(|rest| ["-99", "-99.9", ".conf"].contains(&rest))
    };
    let all = || OTHERS.iter().chain(&FOLDERS);
    parts().rev().find_map(|part| Some((part, all().find(|(name, _)| is_named(part, name))?.1)))
}

/// Returns the value of a setting in `mlperf.conf`; `None` if it is not set there.
pub(super) fn default(benchmark: Option<&Benchmark>, scenario: &str, name: &str) -> Option<f64> {
    let of_model = benchmark.and_then(|one| match (scenario, name) {
        (_, "use_token_latencies") => Some(f64::from(u8::from(one.name != "gptj"))),
        ("Server", "ttft_latency") => one.latencies.map(|(ttft, _)| f64::from(ttft)),
        ("Server", "tpot_latency") => one.latencies.map(|(_, tpot)| f64::from(tpot)),
        ("Server", "target_latency") if one.latencies.is_some() => Some(0.0),
        ("Server", "target_latency") if one.name == "gptj" => Some(20_000.0),
        ("Offline", "min_query_count") => one.samples.map(f64::from),
        _ => None,
    });
    of_model.or(match (scenario, name) {
        ("SingleStream" | "Offline", "target_latency_percentile") => Some(90.0),
        ("MultiStream" | "Server", "target_latency_percentile") => Some(99.0),
        ("MultiStream", "samples_per_query") => Some(8.0),
        ("MultiStream", "min_query_count") => Some(662.0),
        ("SingleStream" | "MultiStream" | "Server" | "Offline", "min_duration") => Some(600_000.0),
        ("Server" | "Offline", "target_qps") => Some(1.0),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_name_benchmarks() {
        for (path, name) in [
            ("closed/X/results/s/llama2-70b-99.9/Server/user.conf", Some("llama2-70b")),
            ("closed/X/results/s/llama2-70b-99/Interactive/user.conf", Some("llama2-70b-interactive")),
            ("language/llama3.1-405b/user.conf", Some("llama3_1-405b")),
            ("results/llama3.1-8b-edge/SingleStream/user.conf", Some("llama3_1-8b-edge")),
            ("user.conf", None),
        ] {
            assert_eq!(of_path(path).map(|one| one.name), name, "{path}");
        }
        for (path, sends) in [
            ("inference/language/bert/user.conf", true),
            ("recommendation/dlrm_v2/pytorch/user.conf", true),
            ("text_to_image/user.conf", true),
            ("results/bert-99.9/Server/user.conf", true),
            ("language/gpt-j/user.conf", false),
        ] {
            assert_eq!(other_of_path(path).is_some(), sends, "{path}");
        }
    }
}
