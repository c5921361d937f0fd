//! The known formats, in the order in which a file is tested for them. To add one, add an entry here.

use super::importer::Importer;
use super::{
    aiperf, closed_loop, genai_bench, guidellm, inference_perf, inferencex, llmd, llmperf, mlperf, params, sglang,
    suite,
};

/// The importer for command lines of vLLM. The module `commands` reads these itself, because the server that
/// a command starts is used by later commands.
pub(super) const VLLM: Importer = Importer {
    name: "vllm-bench",
    title: "vllm bench",
    takes: "command lines of `vllm bench serve`, `benchmark_serving.py`, `vllm bench sweep` and `vllm bench startup`",
    file: None,
    command: None,
};

/// All formats.
pub(super) const FORMATS: &[&Importer] = &[
    &VLLM,
    // This format comes before the other file formats, because its profiles are files of other tools with
    // placeholders in them.
    &llmd::IMPORTER,
    &inferencex::IMPORTER,
    &mlperf::IMPORTER,
    &sglang::IMPORTER,
    &guidellm::IMPORTER,
    &genai_bench::IMPORTER,
    &llmperf::IMPORTER,
    &aiperf::IMPORTER,
    &aiperf::GENAI_PERF,
    &inference_perf::IMPORTER,
    &suite::IMPORTER,
    &params::IMPORTER,
    &closed_loop::IMPORTER,
];

/// Formats whose files are read together with a command after `--`.
const WITH_COMMAND: [&str; 3] = ["guidellm", "llm-d", "vllm-sweep-params"];
/// Formats whose files have several entries to choose from.
const WITH_ENTRIES: [&str; 2] = ["inferencex", "mlperf"];

/// Whether a command after `--` belongs to a file of this format.
pub(super) fn takes_command(name: &str) -> bool {
    WITH_COMMAND.contains(&name)
}

/// Whether `--entry` selects from a file of this format.
pub(super) fn takes_entries(name: &str) -> bool {
    WITH_ENTRIES.contains(&name)
}

/// Returns the format of this name; `None` if it is unknown.
pub(super) fn named(name: &str) -> Option<&'static Importer> {
    FORMATS.iter().copied().find(|importer| importer.name == name)
}

/// Returns the accepted values of `--format`.
pub(crate) fn names() -> Vec<&'static str> {
    std::iter::once("auto").chain(FORMATS.iter().map(|importer| importer.name)).collect()
}

/// Returns the accepted formats as text.
pub(super) fn takes() -> String {
    FORMATS.iter().map(|importer| importer.takes).collect::<Vec<_>>().join("; ")
}
