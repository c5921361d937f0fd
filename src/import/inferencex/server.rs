//! Creates the start commands of InferenceX's frameworks on one node, with the flags that its scripts
//! (`benchmarks/single_node/fixed_seq_len/*.sh`) derive from a row.

use super::row::{Drafts, Row};

/// Known frameworks.
pub(super) const KNOWN: [&str; 4] = ["vllm", "sglang", "trt", "atom"];

/// The start command of a framework.
pub(super) struct Framework {
    /// The engine in the plan.
    pub(super) engine: &'static str,
    /// The command.
    pub(super) command: &'static [&'static str],
    /// The flag that limits the tokens of prompt and output together.
    pub(super) longest: &'static str,
    /// Flags whose product is the number of accelerators.
    gpus: &'static [&'static str],
}

const MODEL: &str = "\"{{ model.id }}\"";
const PORT: &str = "\"{{ port }}\"";
const ARGS: &str = "\"{{ server.args }}\"";

/// vLLM's start command.
const VLLM: Framework = Framework {
    engine: "vllm",
    command: &["vllm", "serve", MODEL, "--port", PORT, ARGS],
    longest: "max_model_len",
    gpus: &["tensor_parallel_size", "data_parallel_size", "pipeline_parallel_size", "prefill_context_parallel_size"],
};
/// SGLang's start command.
const SGLANG: Framework = Framework {
    engine: "sglang",
    command: &["python3", "-m", "sglang.launch_server", "--model-path", MODEL, "--port", PORT, ARGS],
    longest: "context_length",
    gpus: &["tensor_parallel_size", "pipeline_parallel_size"],
};
/// TensorRT-LLM's start command.
const TRT: Framework = Framework {
    engine: "openai",
    command: &[
        "trtllm-serve",
        MODEL,
        "--port",
        PORT,
        "--tp_size",
        "\"{{ server.tp_size }}\"",
        "--ep_size",
        "\"{{ server.ep_size }}\"",
        "--pp_size",
        "\"{{ server.pp_size }}\"",
        "--max_seq_len",
        "\"{{ server.max_seq_len }}\"",
        "--config",
        "\"{{ server.config }}\"",
    ],
    longest: "max_seq_len",
    gpus: &["tp_size", "pp_size"],
};
/// ATOM's start command.
const ATOM: Framework = Framework {
    engine: "openai",
    command: &["python3", "-m", "atom.entrypoints.openai_server", "--model", MODEL, "--server-port", PORT, ARGS],
    longest: "max_model_len",
    gpus: &["tensor_parallel_size"],
};

/// Returns the start command of this framework.
pub(super) fn framework(name: &str) -> &'static Framework {
    match name {
        "sglang" => &SGLANG,
        "trt" => &TRT,
        "atom" => &ATOM,
        _ => &VLLM,
    }
}

/// Flags by name, with values in YAML.
pub(super) type Flags = Vec<(String, String)>;

/// Returns the flags of all rows of an entry. A parallelism flag that occurs in one row is set in
/// every row.
pub(super) fn settings(name: &str, rows: &[&Row]) -> Vec<Flags> {
    let mut all: Vec<Flags> = rows.iter().map(|row| flags(name, row)).collect();
    for spread in framework(name).gpus {
        let has = |flags: &Flags| flags.iter().any(|(known, _)| known == spread);
        if all.iter().any(has) {
            all.iter_mut()
                .filter(|flags| !has(flags))
                .for_each(|flags| flags.push(((*spread).to_owned(), "1".to_owned())));
        }
    }
    all
}

/// Returns a framework's flags for a row.
fn flags(framework: &str, row: &Row) -> Flags {
    let mut flags: Flags = Vec::new();
    let mut add = |name: &str, value: String| flags.push((name.to_owned(), value));
    let on = || "true".to_owned();
    match framework {
        "vllm" => {
            add("tensor_parallel_size", if row.dp_attn { 1 } else { row.tp }.to_string());
            if row.dp_attn {
                add("data_parallel_size", row.tp.to_string());
            }
            if row.dp_attn || row.ep > 1 {
                add("enable_expert_parallel", on());
            }
        }
        "trt" => {
            add("tp_size", row.tp.to_string());
            add("ep_size", row.ep.to_string());
            add("pp_size", row.pp.to_string());
            add("config", config(row));
            return flags;
        }
        "atom" => {
            add("tensor_parallel_size", row.tp.to_string());
            if row.ep > 1 {
                add("enable_expert_parallel", on());
            }
            if row.dp_attn {
                add("enable_dp_attention", on());
            }
        }
        _ => {
            add("tensor_parallel_size", row.tp.to_string());
            add("expert_parallel_size", row.ep.to_string());
            if row.dp_attn {
                add("enable_dp_attention", on());
                add("data_parallel_size", row.tp.to_string());
            }
        }
    }
    for (name, size) in [
        ("pipeline_parallel_size", row.pp),
        ("decode_context_parallel_size", row.dcp),
        ("prefill_context_parallel_size", row.pcp),
    ] {
        if size > 1 {
            add(name, size.to_string());
        }
    }
    if row.drafts == Drafts::Mtp {
        drafted(framework).iter().for_each(|(name, value)| add(name, (*value).to_owned()));
    }
    flags
}

/// Returns the flags for speculative decoding that most scripts use.
fn drafted(framework: &str) -> &'static [(&'static str, &'static str)] {
    match framework {
        "vllm" => &[("speculative_config", "'{\"method\": \"mtp\", \"num_speculative_tokens\": 2}'")],
        "atom" => &[("method", "mtp"), ("num_speculative_tokens", "3")],
        _ => &[
            ("speculative_algorithm", "EAGLE"),
            ("speculative_num_steps", "3"),
            ("speculative_eagle_topk", "1"),
            ("speculative_num_draft_tokens", "4"),
        ],
    }
}

/// Returns the name of the file from which TensorRT-LLM reads settings that have no flag.
pub(super) fn config(row: &Row) -> String {
    let parts = [(row.dp_attn, "-dp-attention"), (row.drafts == Drafts::Mtp, "-mtp")];
    let parts: String = parts.into_iter().filter(|(is_on, _)| *is_on).map(|(_, part)| part).collect();
    format!("trtllm{parts}.yaml")
}

impl Framework {
    /// Returns the number of accelerators: the product of the flags that every cell has.
    pub(super) fn gpus(&self, flags: &[Flags]) -> String {
        let is_in_all = |name: &&&str| flags.iter().all(|flags| flags.iter().any(|(known, _)| known == *name));
        let names: Vec<String> = self.gpus.iter().filter(is_in_all).map(|name| format!("server.{name}")).collect();
        format!("\"{{{{ {} }}}}\"", names.join(" * "))
    }
}
