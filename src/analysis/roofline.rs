//! The upper bound on decode speed that memory bandwidth alone sets: decoding reads every weight, and
//! every running request's KV cache, once per step.
//!
//! The time of one decode step is at least the bytes it reads over the bandwidth (the memory side of the
//! roofline model: Williams, Waterman and Patterson, CACM 52(4), 2009; for transformer decoding: Pope et
//! al., "Efficiently scaling transformer inference", MLSys 2023). The measured speed lies below this
//! bound, and its distance from the bound indicates the regime in which the server works.

/// Declared properties of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// Number of weights.
    pub parameters: f64,
    /// Number of weights that one token uses, if this is less than all weights, as in a mixture of
    /// experts.
    pub active: Option<f64>,
    /// Bytes per weight.
    pub bytes: f64,
    /// Bytes of KV cache per token of one request; `None` if the model's shape is not declared.
    pub kv_bytes: Option<f64>,
}

/// Declared properties of the hardware.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Memory {
    /// Bytes per second of one accelerator's memory.
    pub bandwidth: f64,
    /// Number of accelerators.
    pub gpus: u32,
    /// Number of accelerators that share each layer.
    pub tensor_parallel: Option<u32>,
    /// Number of groups of layers that run one after the other.
    pub pipeline_parallel: Option<u32>,
}

/// The mean load of a server over a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Mean number of requests in flight.
    pub concurrency: f64,
    /// Length of a request's context halfway through its response, in tokens; `None` if unknown.
    pub context_tokens: Option<f64>,
}

/// The bound set by bandwidth alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Decode tokens per second of one stream, reading only weights.
    pub by_weights: f64,
    /// Decode tokens per second of one stream, reading weights and the KV cache of all streams; `None`
    /// without the model's shape or the length of contexts.
    pub with_kv: Option<f64>,
}

impl Prediction {
    /// Returns the tighter of the two bounds.
    pub fn best(&self) -> f64 {
        self.with_kv.unwrap_or(self.by_weights)
    }
}

/// Returns the maximum decode tokens per second of one stream. `None` if the declared figures are
/// inconsistent because a group has more accelerators than the endpoint.
pub fn predict(weights: Weights, memory: Memory, work: Work) -> Option<Prediction> {
    let Memory { bandwidth, gpus, tensor_parallel, pipeline_parallel } = memory;
    let stages = pipeline_parallel.unwrap_or(1).max(1);
    let together = tensor_parallel.unwrap_or(gpus / stages).max(1);
    let replicas = gpus / (together.checked_mul(stages)?);
    if replicas == 0 || bandwidth <= 0.0 {
        return None;
    }
    // Stages read their parts of the weights one after the other, so a token waits for all weights to be
    // read at the speed of one group.
    let bytes_per_s = bandwidth * f64::from(together);
    // Requests are spread over the replicas, and over the stages of each replica.
    let batch = (work.concurrency / f64::from(replicas) / f64::from(stages)).max(1.0);
    let read = weights.active.map_or(weights.parameters, |active| (active * batch).min(weights.parameters));
    let weight_bytes = read * weights.bytes;
    let with_kv = weights.kv_bytes.zip(work.context_tokens).map(|(kv, context)| {
        let step = weight_bytes + batch * context * kv;
        bytes_per_s / step
    });
    Some(Prediction { by_weights: bytes_per_s / weight_bytes, with_kv })
}

/// Returns the number of bytes per weight in a number format, given its name; `None` for an unknown
/// name. Four-bit formats add an eighth for their scales: 16 bits for each group of about 32 weights.
pub fn bytes_of(precision: &str) -> Option<f64> {
    let name = precision.to_ascii_lowercase();
    let is = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if is(&["fp32", "float32", "f32"]) {
        Some(4.0)
    } else if is(&["bf16", "fp16", "float16", "bfloat16", "f16"]) {
        Some(2.0)
    } else if is(&["fp8", "int8", "w8a", "q8", "f8"]) {
        Some(1.0)
    } else if is(&["fp4", "int4", "nf4", "w4a", "q4", "mxfp4", "nvfp4", "awq", "gptq"]) {
        Some(0.5 * 1.125)
    } else {
        None
    }
}

/// Returns the number of bytes of KV cache per token: a key and a value for each layer and key-value
/// head (Pope et al., section 2).
pub fn kv_bytes(layers: u32, kv_heads: u32, head_dim: u32, bytes: f64) -> f64 {
    2.0 * f64::from(layers) * f64::from(kv_heads) * f64::from(head_dim) * bytes
}

/// Parses bytes per second like `3.35TB/s` or `900 GB/s`: decimal prefixes, as in data sheets; `GiB/s`
/// is binary.
pub fn bandwidth(text: &str) -> Option<f64> {
    let text = text.trim().strip_suffix("/s")?.trim_end();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "TB" => 1e12,
        "GB" => 1e9,
        "MB" => 1e6,
        "TiB" => (1u64 << 40) as f64,
        "GiB" => (1u64 << 30) as f64,
        "MiB" => (1u64 << 20) as f64,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|number| number * factor).filter(|value| value.is_finite() && *value > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const H100: Memory = Memory { bandwidth: 3.35e12, gpus: 8, tensor_parallel: Some(8), pipeline_parallel: None };
    const LLAMA_70B: Weights = Weights { parameters: 70.6e9, active: None, bytes: 2.0, kv_bytes: None };
    const ONE: Work = Work { concurrency: 1.0, context_tokens: None };

    #[test]
    fn one_stream_reads_all_weights_for_each_token() {
        // At 26.8 TB/s, 141.2 GB are read 190 times per second, so at most 190 tokens per second are
        // possible.
        let found = predict(LLAMA_70B, H100, ONE).unwrap();
        assert!((found.by_weights - 26.8e12 / 141.2e9).abs() < 1e-9);
        assert_eq!((found.with_kv, found.best()), (None, found.by_weights));
        // In groups of four, the eight accelerators form two replicas, each of which is half as fast.
        let halves = Memory { tensor_parallel: Some(4), ..H100 };
        assert!((predict(LLAMA_70B, halves, ONE).unwrap().by_weights * 2.0 - found.by_weights).abs() < 1e-9);
        // Two stages of four accelerators are as fast as four accelerators.
        let stages = Memory { tensor_parallel: None, pipeline_parallel: Some(2), ..H100 };
        assert_eq!(predict(LLAMA_70B, stages, ONE), predict(LLAMA_70B, halves, ONE));
        let too_many = Memory { tensor_parallel: Some(16), ..H100 };
        assert_eq!(predict(LLAMA_70B, too_many, ONE), None);
    }

    #[test]
    fn the_cache_of_every_stream_is_read_too() {
        // Llama 3.1 70B: 80 layers, 8 key-value heads of 128: 327 680 bytes per token.
        let kv = kv_bytes(80, 8, 128, 2.0);
        assert_eq!(kv, 327_680.0);
        let weights = Weights { kv_bytes: Some(kv), ..LLAMA_70B };
        let work = Work { concurrency: 64.0, context_tokens: Some(4_000.0) };
        let found = predict(weights, H100, work).unwrap();
        assert!((found.with_kv.unwrap() - 26.8e12 / (141.2e9 + 64.0 * 4_000.0 * 327_680.0)).abs() < 1e-9);
        assert!(found.best() < found.by_weights);
    }

    #[test]
    fn experts_are_read_as_far_as_tokens_use_them() {
        let experts = Weights { active: Some(10e9), ..LLAMA_70B };
        let at = |concurrency| predict(experts, H100, Work { concurrency, ..ONE }).unwrap().by_weights;
        assert!((at(1.0) - 26.8e12 / 20e9).abs() < 1e-9);
        assert!((at(64.0) - 26.8e12 / 141.2e9).abs() < 1e-9);
    }

    #[test]
    fn what_is_declared_in_words_is_read() {
        assert_eq!(bandwidth("3.35TB/s"), Some(3.35e12));
        assert_eq!(bandwidth(" 900 GB/s"), Some(9e11));
        assert_eq!(["fast", "3.35TB", "0GB/s", "1.2.3GB/s", "/s"].map(bandwidth), [None; 5]);
        let formats = ["bf16", "FP8", "fp32", "AWQ", "q4_K_M", "ternary"].map(bytes_of);
        assert_eq!(formats, [Some(2.0), Some(1.0), Some(4.0), Some(0.5625), Some(0.5625), None]);
    }
}
