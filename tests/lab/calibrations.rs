//! What the output of `calibrate` must satisfy on any machine.

use serde_json::Value;

/// Returns a number of the output.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// Asserts properties that every load has on any machine.
pub fn is_consistent(measured: &Value) {
    let errors = &measured["errors"];
    let requests = errors["requests"].as_u64().unwrap();
    assert!(requests > 0, "{measured}");
    for none in ["failed", "unseen", "unknown"] {
        assert_eq!(errors[none], 0, "{none}: {measured}");
    }
    for name in ["ttft", "lateness", "late", "server_delay"] {
        let spread = &errors[name];
        assert_eq!(spread["n"], requests, "every request has its line: {name} in {measured}");
        let parts = ["p50_ms", "p99_ms", "max_ms"].map(|part| spread[part].as_f64());
        assert!(parts.iter().flatten().is_sorted(), "{name} in {measured}");
        assert_eq!((parts[0].is_some(), parts[1].is_some()), (requests >= 6, requests >= 368), "{measured}");
        assert!(parts[2].unwrap() >= number(&spread["mean_ms"]).abs(), "{name} in {measured}");
    }
    // A request is sent before it arrives, and its first token is written before it is received, with
    // a tolerance because the kernel's timestamps are converted between two clocks.
    assert!(number(&errors["lateness"]["mean_ms"]) < 0.1 && number(&errors["late"]["mean_ms"]) > -0.1, "{measured}");
    assert!(number(&errors["ttft"]["mean_ms"]) > -0.1, "{measured}");
    for part in ["in_flight", "requests_per_second", "events_per_second"] {
        assert!(number(&measured["pressure"][part]) > 0.0, "{part} in {measured}");
    }
    assert!(number(&measured["cost"]["cpu_s_per_1000_requests"]) > 0.0 && number(&measured["cost"]["cores"]) > 0.0);
    assert_eq!(measured["stamps"]["client"], requests, "{measured}");
}
