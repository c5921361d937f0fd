//! Formats the server's metrics in Prometheus' text format. Metrics that vLLM's V1 engine also has
//! use its names, labels and units (`vllm/v1/metrics/loggers.py`).

use std::fmt::Write;

use super::cache::Cache;
use super::config::Config;
use super::served::{Finish, Histogram, Served};

/// The content type of Prometheus' text format.
pub(super) const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page of metrics that is being written.
struct Page {
    text: String,
    labels: String,
}

impl Page {
    fn of(config: &Config) -> Page {
        let model = config.models.first().map_or("mock", String::as_str);
        let model = model.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
        Page { text: String::new(), labels: format!(r#"engine="0",model_name="{model}""#) }
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Writes the line of a value; `more` contains labels that precede the common ones.
    fn line(&mut self, name: &str, more: &str, value: f64) {
        let labels = &self.labels;
        // `{:?}` writes every value with a decimal point, as Python's Prometheus client does.
        writeln!(self.text, "{name}{{{more}{labels}}} {value:?}").expect("a string accepts any text");
    }

    fn put(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.head(name, kind, help);
        self.line(name, "", value);
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        for (border, count) in histogram.buckets() {
            let border = if border.is_finite() { format!("{border:?}") } else { "+Inf".to_owned() };
            self.line(&format!("{name}_bucket"), &format!("le=\"{border}\","), count as f64);
        }
        self.line(&format!("{name}_count"), "", histogram.count() as f64);
        self.line(&format!("{name}_sum"), "", histogram.seconds());
    }
}

/// Returns the metrics of a server. Without a prefix cache, the figures of the cache are 0. `load` contains
/// the numbers of running and waiting requests; `None` if they are not reported.
pub(super) fn text(config: &Config, cache: Option<&Cache>, load: Option<(u64, u64)>, served: &Served) -> String {
    let mut page = Page::of(config);
    if let Some((running, waiting)) = load {
        page.put("vllm:num_requests_running", "gauge", "Requests that have a slot.", running as f64);
        page.put("vllm:num_requests_waiting", "gauge", "Requests that wait for a slot.", waiting as f64);
    }
    of_cache(&mut page, config, cache, served);
    page.put("vllm:num_preemptions_total", "counter", "Preempted requests: always 0.", 0.0);
    page.put(
        "vllm:prompt_tokens_total",
        "counter",
        "Prompt tokens that were computed or found in the prefix cache.",
        served.prompt_tokens() as f64,
    );
    page.put(
        "vllm:generation_tokens_total",
        "counter",
        "Tokens that were generated.",
        served.generation_tokens() as f64,
    );
    page.head("vllm:request_success_total", "counter", "Finished requests by reason.");
    for finish in Finish::ALL {
        let label = format!("finished_reason=\"{}\",", finish.name());
        page.line("vllm:request_success_total", &label, served.finished(finish) as f64);
    }
    let times = served.times();
    for (name, help, histogram) in [
        ("vllm:time_to_first_token_seconds", "Time from a request's arrival to its first token.", &times.ttft),
        ("vllm:e2e_request_latency_seconds", "Time from a request's arrival to its end.", &times.e2e),
        ("vllm:request_queue_time_seconds", "Time from a request's arrival until it got a slot.", &times.queue),
        (
            "vllm:request_prefill_time_seconds",
            "Time from when a request got a slot to its first token.",
            &times.prefill,
        ),
        ("vllm:request_decode_time_seconds", "Time from a request's first token to its last.", &times.decode),
    ] {
        page.histogram(name, help, histogram);
    }
    page.text
}

/// Writes the metrics of the prefix cache and of the tokens that running requests occupy.
fn of_cache(page: &mut Page, config: &Config, cache: Option<&Cache>, served: &Served) {
    let counters = cache.map(Cache::counters).unwrap_or_default();
    if let Some(tokens) = config.prefix_cache {
        let used = (served.held() as f64 / f64::from(tokens)).min(1.0);
        page.put(
            "vllm:kv_cache_usage_perc",
            "gauge",
            "Tokens of requests that have a slot, as a share of the cache.",
            used,
        );
    }
    for (name, kind, help, value) in [
        (
            "vllm:prefix_cache_queries_total",
            "counter",
            "Prompt tokens looked up in the prefix cache.",
            counters.queries,
        ),
        ("vllm:prefix_cache_hits_total", "counter", "Prompt tokens found in the prefix cache.", counters.hits),
        (
            "sweepline_mock:prefix_cache_blocks",
            "gauge",
            "Blocks in the prefix cache.",
            cache.map_or(0, Cache::len) as u64,
        ),
        (
            "sweepline_mock:prefix_cache_capacity_blocks",
            "gauge",
            "Maximum number of blocks in the prefix cache.",
            cache.map_or(0, Cache::capacity) as u64,
        ),
        (
            "sweepline_mock:prefix_cache_evictions_total",
            "counter",
            "Blocks evicted from the prefix cache.",
            counters.evictions,
        ),
    ] {
        page.put(name, kind, help, value as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let config = Config { models: vec!["a\"b\\c".to_owned()], ..Config::default() };
        let text = text(&config, None, None, &Served::new());
        let line = text.lines().find(|line| line.starts_with("vllm:prefix_cache_hits_total")).unwrap();
        assert_eq!(line, r#"vllm:prefix_cache_hits_total{engine="0",model_name="a\"b\\c"} 0.0"#);
    }

    #[test]
    fn the_page_has_the_forms_of_vllm() {
        let config = Config { prefix_cache: Some(160), ..Config::default() };
        let text = text(&config, None, Some((1, 2)), &Served::new());
        for line in [
            "vllm:num_requests_running{engine=\"0\",model_name=\"mock\"} 1.0",
            "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"mock\"} 0.0",
            "vllm:request_success_total{finished_reason=\"length\",engine=\"0\",model_name=\"mock\"} 0.0",
            "vllm:request_queue_time_seconds_bucket{le=\"0.3\",engine=\"0\",model_name=\"mock\"} 0.0",
            "vllm:request_queue_time_seconds_bucket{le=\"+Inf\",engine=\"0\",model_name=\"mock\"} 0.0",
            "vllm:request_queue_time_seconds_sum{engine=\"0\",model_name=\"mock\"} 0.0",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
        }
        // Every metric has its header exactly once, and there are no other comments.
        let heads = text.lines().filter(|line| line.starts_with("# TYPE ")).count();
        assert_eq!((heads, text.lines().filter(|line| line.starts_with('#')).count()), (17, 34));
    }
}
