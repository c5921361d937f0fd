//! The table of all series that are measured on a server and its hardware, independent of the names that
//! exporters use. Plans use the canonical names in `map`, and `samples.parquet` stores values under them.
//! The tables of the exporters (`engines`) specify which metric of a page provides each series.
//! `docs/TELEMETRY.md` lists the canonical names.

/// One canonical series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Canonical {
    /// The name of the series in plans, rows and tables.
    pub key: &'static str,
    /// The unit of the values.
    pub unit: Unit,
    /// The kind of the series.
    pub kind: Kind,
    /// How several series of one page (ranks, models, GPUs) are combined into one value.
    pub over: Over,
    /// What the series describes (server, GPU or host): the value of `source` in rows.
    pub source: &'static str,
    /// The meaning of the series.
    pub doc: &'static str,
}

/// The unit of a canonical series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Requests.
    Requests,
    /// Tokens.
    Tokens,
    /// A share, from 0 to 1.
    Share,
    /// A number of events.
    Events,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Watts.
    Watts,
    /// Joules.
    Joules,
    /// Tokens per joule.
    TokensPerJoule,
    /// Degrees Celsius.
    Celsius,
    /// Hertz.
    Hertz,
    /// A mask of bits.
    Bits,
}

impl Unit {
    /// Returns the symbol or name of the unit.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Requests => "requests",
            Unit::Tokens => "tokens",
            Unit::Share => "share",
            Unit::Events => "events",
            Unit::Seconds => "s",
            Unit::Bytes => "bytes",
            Unit::Watts => "W",
            Unit::Joules => "J",
            Unit::TokensPerJoule => "tokens/J",
            Unit::Celsius => "°C",
            Unit::Hertz => "Hz",
            Unit::Bits => "bits",
        }
    }
}

/// The kind of a series, which determines how its values are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A current value. Its mean and maximum over a window are used.
    Gauge,
    /// A running total. Its increase over a window is used.
    Counter,
    /// A running sum and a running count, from which the mean over a window is computed.
    Histogram,
}

impl Kind {
    /// Returns the name used in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        }
    }
}

/// How the values of several series, of one or several pages, are combined into one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The sum of the values.
    Sum,
    /// The mean of the values.
    Mean,
    /// The maximum of the values.
    Max,
    /// All bits that are set in any of the values.
    AnyBit,
}

const fn gauge(key: &'static str, unit: Unit, over: Over, source: &'static str, doc: &'static str) -> Canonical {
    Canonical { key, unit, kind: Kind::Gauge, over, source, doc }
}

const fn counter(key: &'static str, unit: Unit, source: &'static str, doc: &'static str) -> Canonical {
    Canonical { key, unit, kind: Kind::Counter, over: Over::Sum, source, doc }
}

const fn histogram(key: &'static str, doc: &'static str) -> Canonical {
    Canonical { key, unit: Unit::Seconds, kind: Kind::Histogram, over: Over::Sum, source: SERVER, doc }
}

const SERVER: &str = "server";
const GPU: &str = "gpu";
const HOST: &str = "host";

/// All canonical series, in the order in which they are documented.
pub const CANONICAL: [Canonical; 32] = [
    gauge("requests_running", Unit::Requests, Over::Sum, SERVER, "Requests that the server is processing."),
    gauge("requests_waiting", Unit::Requests, Over::Sum, SERVER, "Requests that wait in the server's queue."),
    gauge("kv_cache_usage", Unit::Share, Over::Mean, SERVER, "Share of the KV cache that is in use."),
    counter("prefix_cache_queries", Unit::Tokens, SERVER, "Prompt tokens that were looked up in the prefix cache."),
    counter("prefix_cache_hits", Unit::Tokens, SERVER, "Prompt tokens that were found in the prefix cache."),
    counter("preemptions", Unit::Events, SERVER, "Requests that were preempted to make room for others."),
    counter("prompt_tokens", Unit::Tokens, SERVER, "Prompt tokens that were processed."),
    counter("generation_tokens", Unit::Tokens, SERVER, "Tokens that were generated."),
    counter("spec_drafts", Unit::Tokens, SERVER, "Tokens that speculative decoding proposed."),
    counter("spec_accepted", Unit::Tokens, SERVER, "Proposed tokens that were accepted."),
    counter("requests_succeeded", Unit::Requests, SERVER, "Requests that the server completed."),
    histogram("queue_seconds", "Time that requests waited in the server's queue."),
    histogram("prefill_seconds", "Time from scheduling a request in the server to its first token."),
    histogram("decode_seconds", "Time from a request's first token to its last."),
    histogram("ttft_seconds", "Time to first token, as measured by the server."),
    histogram("e2e_seconds", "Time from a request's arrival to its end, as measured by the server."),
    gauge(
        "gpu_utilization",
        Unit::Share,
        Over::Mean,
        GPU,
        "Share of the time in which a kernel ran; the mean of all GPUs.",
    ),
    gauge("gpu_memory_used", Unit::Bytes, Over::Sum, GPU, "Memory in use on all GPUs."),
    gauge("gpu_memory_total", Unit::Bytes, Over::Sum, GPU, "Memory of all GPUs."),
    gauge(
        "gpu_memory_bandwidth_utilization",
        Unit::Share,
        Over::Mean,
        GPU,
        "Share of the time in which the memory moved data; the mean of all GPUs.",
    ),
    gauge("gpu_power_watts", Unit::Watts, Over::Sum, GPU, "Power draw of all GPUs."),
    counter("gpu_energy_joules", Unit::Joules, GPU, "Energy consumption of all GPUs."),
    gauge("gpu_temperature", Unit::Celsius, Over::Max, GPU, "Temperature of the hottest GPU."),
    gauge("gpu_sm_clock", Unit::Hertz, Over::Mean, GPU, "Clock of the multiprocessors; the mean of all GPUs."),
    gauge(
        "gpu_throttle_reasons",
        Unit::Bits,
        Over::AnyBit,
        GPU,
        "Reasons for lowered clocks, as NVML's bit mask; the union over all GPUs.",
    ),
    gauge("cpu_utilization", Unit::Share, Over::Mean, HOST, "Share of the host's CPU time that was used."),
    counter("cpu_seconds", Unit::Seconds, HOST, "CPU time of all cores of the host, idle time included."),
    counter("cpu_idle_seconds", Unit::Seconds, HOST, "Idle CPU time of all cores of the host."),
    gauge("host_memory_available", Unit::Bytes, Over::Sum, HOST, "Memory of the host that is available to programs."),
    gauge("host_memory_total", Unit::Bytes, Over::Sum, HOST, "Memory of the host."),
    counter("requests_failed", Unit::Requests, SERVER, "Requests that the server or their clients aborted."),
    gauge(
        "process_start_time",
        Unit::Seconds,
        Over::Max,
        SERVER,
        "When the process behind the page was started, in seconds since 1970.",
    ),
];

/// Returns the series with this name; `None` if the name is unknown.
pub fn canonical(key: &str) -> Option<&'static Canonical> {
    CANONICAL.iter().find(|canonical| canonical.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_each_and_tell_their_unit() {
        let mut keys: Vec<&str> = CANONICAL.iter().map(|canonical| canonical.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), CANONICAL.len());
        for Canonical { key, unit, kind, doc, .. } in CANONICAL {
            assert!(
                doc.ends_with('.') && key.bytes().all(|byte| byte.is_ascii_lowercase() || b"_2".contains(&byte)),
                "{key}"
            );
            assert_eq!(kind == Kind::Histogram, key.ends_with("_seconds") && !key.starts_with("cpu"), "{key}");
            assert!(!key.ends_with("_watts") || unit == Unit::Watts, "{key}");
        }
        assert_eq!(canonical("kv_cache_usage").map(|found| found.kind), Some(Kind::Gauge));
        assert_eq!(canonical("kv_cache"), None);
    }
}
