//! What the server tells of itself in Prometheus' text format, under vLLM's names where vLLM has one.

use std::fmt::Write;

use super::cache::Cache;
use super::config::Config;

/// The content type of the text format.
pub(super) const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of a server; without a prefix cache its figures are 0. `load` is how many requests run and wait, where that is told.
pub(super) fn text(config: &Config, cache: Option<&Cache>, load: Option<(u64, u64)>) -> String {
    let counters = cache.map(Cache::counters).unwrap_or_default();
    let blocks = cache.map_or(0, Cache::len) as u64;
    let capacity = cache.map_or(0, Cache::capacity) as u64;
    let model = config.models.first().map_or("mock", String::as_str);
    let model = model.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
    let mut text = String::new();
    let mut put = |name, kind, help, value: u64| {
        let labels = format_args!(r#"engine="0",model_name="{model}""#);
        write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{{{labels}}} {value}\n")
            .expect("a string takes any text");
    };
    if let Some((running, waiting)) = load {
        put("vllm:num_requests_running", "gauge", "Requests that have a slot.", running);
        put("vllm:num_requests_waiting", "gauge", "Requests that wait for a slot.", waiting);
    }
    put(
        "vllm:prefix_cache_queries_total",
        "counter",
        "Prompt tokens looked for in the prefix cache.",
        counters.queries,
    );
    put("vllm:prefix_cache_hits_total", "counter", "Prompt tokens found in the prefix cache.", counters.hits);
    put("sweepline_mock:prefix_cache_blocks", "gauge", "Blocks in the prefix cache.", blocks);
    put("sweepline_mock:prefix_cache_capacity_blocks", "gauge", "Most blocks in the prefix cache.", capacity);
    let help = "Blocks that made room for others in the prefix cache.";
    put("sweepline_mock:prefix_cache_evictions_total", "counter", help, counters.evictions);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let config = Config { models: vec!["a\"b\\c".to_owned()], ..Config::default() };
        let text = text(&config, None, None);
        let line = text.lines().find(|line| line.starts_with("vllm:prefix_cache_hits_total")).unwrap();
        assert_eq!(line, r#"vllm:prefix_cache_hits_total{engine="0",model_name="a\"b\\c"} 0"#);
        assert_eq!(text.lines().count(), 15);
    }
}
