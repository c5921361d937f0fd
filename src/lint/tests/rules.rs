//! Tests every rule on both sides of its threshold.

use super::*;
use crate::analysis::calibration::Pressure;
use crate::expand::LoadEngine;

/// Returns whether a code is reported for a plan.
fn said(code: &str, text: &str) -> bool {
    one(text, code).is_some()
}

/// Returns the message and remedy reported for a plan under a code.
fn words(code: &str, text: &str) -> (String, String) {
    let lint = one(text, code).unwrap_or_else(|| panic!("{code} is not reported for\n{text}"));
    (lint.message, lint.remedy)
}

/// Returns a server that is not a mock, with these fields.
fn real(fields: &str) -> String {
    format!("endpoints: {{ vllm: {{ url: \"http://node:8000/v1\", engine: vllm{fields} }} }}\n")
}

/// Returns two servers that are not mocks, in one sweep with repeats.
fn pair(a: &str, b: &str) -> String {
    format!(
        "endpoints:\n  a: {{ url: \"http://a:8000/v1\", {a} }}\n  b: {{ url: \"http://b:8000/v1\", {b} }}\n\
         sweeps: {{ load: {{ matrix: {{ endpoint: [a, b], scenario: [B1, B2], qps: [5, 10] }}, repeats: 3 }} }}\n"
    )
}

fn with_load(load: &str, phases: &str) -> String {
    format!("phases: {{ {phases} }}\nsweeps: {{ load: {{ matrix: {{ scenario: [B1, B2], {load} }} }} }}\n")
}

#[test]
fn warm_up() {
    let warm = |load: &str, phases: &str| with_load(load, &format!("{phases}, measure: 400s"));
    assert!(!said("M001", &warm("qps: [5, 10]", "fill: 10s, stabilize: 20s")));
    let (message, _) = words("M001", &warm("qps: [5, 10]", "fill: 10s, stabilize: 19999ms"));
    assert_eq!(message, "`fill` and `stabilize` together last 29999ms, less than 30s");
    assert!(said("M001", &warm("qps: [5, 10]", "fill: 0s, stabilize: 0s")));
    // At 1 qps, the rate rises from zero during fill, so there are 10 requests in the 20 s of fill, and 40
    // requests in the 40 s of stabilize.
    assert!(!said("M001", &warm("qps: [1, 10]", "fill: 20s, stabilize: 40s")));
    let (message, remedy) = words("M001", &warm("qps: [1, 10]", "fill: 20s, stabilize: 39s"));
    assert_eq!(message, "`qps: 1` sends 49 requests before its measure window, fewer than 50");
    assert_eq!(remedy, "write `phases: { stabilize: 40s }`, or remove the lowest load");
    let closed = format!("{}{}", real(""), warm("batch_size: [1, 8]", "fill: 30s, stabilize: 60s"));
    let (message, _) = words("M001", &closed);
    let expected =
        "`batch_size: 1` sends 14 requests before its measure window, fewer than 50 (assuming 20ms per output token)";
    assert_eq!(message, expected);
    // The mock's speed is known: 1.04 s per response.
    assert!(!said("M001", &warm("batch_size: [1, 8]", "fill: 30s, stabilize: 60s")));
}

#[test]
fn closed_loop_only() {
    let closed = "sweeps: { load: { matrix: { scenario: [B1, B2], batch_size: [8, 32] } } }\n";
    for claim in ["slo: { ttft: { p99: 1s } }", "slo: { e2e: { p50: 1s } }", "goodput: { tpot: 50ms }"] {
        assert!(said("M002", &format!("{claim}\n{closed}")), "{claim}");
        assert!(!said("M002", claim), "the sweep has an open loop: {claim}");
    }
    assert!(said("M002", &format!("compare: {{ by: batch_size, baseline: 8, metrics: ttft_p99 }}\n{closed}")));
    assert!(!said(
        "M002",
        &format!("compare: {{ by: batch_size, baseline: 8, metrics: output_throughput }}\n{closed}")
    ));
    assert!(!said("M002", &format!("slo: {{ cost_per_million: 2 }}\n{closed}")));
    assert!(!said("M002", closed));
}

#[test]
fn one_load() {
    let sweeps = |sweeps: &str| format!("sweeps: {{ {sweeps} }}\n");
    let (message, remedy) = words("M003", &sweeps("a: { matrix: { scenario: [B1, B2], qps: 3 } }"));
    assert_eq!(message, "the endpoint is measured at a single load, `qps: 3`");
    assert_eq!(remedy, "measure several loads, for example with `qps: [1.5, 3, 6]`");
    assert!(!said("M003", &sweeps("a: { matrix: { qps: [3, 4] } }")));
    let two = "a: { matrix: { qps: 3 } }, b: { matrix: { batch_size: 8 } }";
    assert!(!said("M003", &sweeps(two)), "the runs of several sweeps are added");
    let endpoints = "endpoints: { x: { engine: mock }, y: { engine: mock }, z: { engine: mock } }\n";
    let each = "a: { matrix: { endpoint: [x, y], batch_size: 8 } }, b: { matrix: { endpoint: y, batch_size: 4 } }";
    let lint = one(&format!("{endpoints}{}", sweeps(each)), "M003").unwrap();
    assert_eq!(lint.scopes, [Scope::Endpoint("x".to_owned())], "an unused endpoint does not count");
    assert_eq!(lint.remedy, "measure several loads, for example with `batch_size: [2, 4, 8, 16]`");
}

#[test]
fn one_length() {
    let axes = |axes: &str| format!("sweeps: {{ a: {{ matrix: {{ qps: [5, 10], {axes} }} }} }}\n");
    let (message, _) = words("M004", &axes("scenario: B1"));
    assert_eq!(message, "every request has 50 prompt tokens and 256 output tokens");
    for other in
        ["scenario: [B1, B2]", "prompt_tokens: [50, 51]", "output_tokens: [1, 2]", "scenario: D", "scenario: [B1, C]"]
    {
        assert!(!said("M004", &axes(other)), "{other}");
    }
    assert!(said("M004", &axes("scenario: [B1, B2], prompt_tokens: 100")), "the axis makes them equal");
}

#[test]
fn few_requests() {
    let at = |measure: &str| with_load("qps: [1, 10]", &format!("measure: {measure}"));
    assert!(!said("M005", &at("368s")));
    let (message, remedy) = words("M005", &at("367s"));
    assert_eq!(message, "p99 needs 368 requests, but only 367 are expected at `qps: 1` in 367s");
    assert_eq!(remedy, "write `phases: { measure: 368s }`, or `qps: 1.1`, or more");
    let (message, remedy) = words("M005", &with_load("qps: [1, 2, 3]", "measure: 120s"));
    assert_eq!(
        message,
        "p99 needs 368 requests, but only 120 are expected at `qps: 1` in 2m; too few are expected at each of the 3 loads"
    );
    assert_eq!(remedy, "write `phases: { measure: 368s }`, or `qps: 3.1`, or more");
    // The window is extended, at most fivefold unless the plan sets another limit.
    assert!(!said("M005", &at("{ for: 120s, min_requests: 368 }")));
    assert!(said("M005", &at("{ for: 120s, min_requests: 368, at_most: 5m }")));
    assert!(said("M005", &at("{ for: 60s, min_requests: 368 }")));
    // The requested percentile determines the required number of requests.
    let slo = |slo: &str, measure: &str| format!("slo: {{ ttft: {{ {slo} }} }}\n{}", at(measure));
    assert!(!said("M005", &slo("p90: 1s", "60s")));
    assert!(said("M005", &slo("p90: 1s", "35s")) && !said("M005", &slo("p90: 1s", "36s")));
    let compare = "compare: { by: qps, baseline: 1, metrics: [output_throughput, ttft_p999] }\n";
    assert!(words("M005", &format!("{compare}{}", at("1h"))).0.starts_with("p99.9 needs 3688 requests"));
    assert!(!said("M005", &format!("{compare}{}", at("3688s"))));
    // If `compare` names no percentile, it reads p50 and p99, even if another percentile is named
    // elsewhere.
    let compared = |metrics: &str, slo: &str| {
        let compare = format!("compare: {{ by: qps, baseline: 1{metrics} }}\n{slo}");
        said("M005", &format!("{compare}{}", with_load("qps: [1, 2]", "measure: 100s")))
    };
    assert!(!compared(", metrics: [ttft_p50]", ""));
    assert!(compared(", metrics: [ttft, tpot_p50]", ""));
    assert!(compared(", metrics: ttft", "slo: { ttft: { p90: 1s } }\n"));
    assert!(!compared(", metrics: output_throughput", "slo: { ttft: { p90: 1s } }\n"));
    assert!(compared("", "slo: { ttft: { p90: 1s } }\n"));
    // Each problem is reported once: below 299 requests, the SLO itself cannot be decided, which M019
    // reports.
    assert!(said("M005", &slo("p99: 1s", "299s")) && !said("M005", &slo("p99: 1s", "298s")));
    let closed = format!("{}{}", real(""), with_load("batch_size: [1, 64]", "measure: 120s"));
    let (message, remedy) = words("M005", &closed);
    let expected =
        "p99 needs 368 requests, but only 23 are expected at `batch_size: 1` in 2m (assuming 20ms per output token)";
    assert_eq!(message, expected);
    assert_eq!(remedy, "write `phases: { measure: { for: 2m, min_requests: 368, at_most: 63m } }`");
}

#[test]
fn short_window() {
    assert!(!said("M006", &with_load("qps: [5, 10]", "measure: 60s")));
    let (message, _) = words("M006", &with_load("qps: [5, 10]", "measure: 59s"));
    assert_eq!(message, "`measure` is 59s, less than 1m");
    assert!(!said("M006", "phases: {}\n"), "the default is long enough");
}

#[test]
fn narrow_margins() {
    let plan = |margin: &str, repeats: u32| {
        let sweep =
            format!("sweeps: {{ load: {{ matrix: {{ scenario: [B1, B2], qps: [5, 10] }}, repeats: {repeats} }} }}\n");
        format!("{sweep}compare: {{ by: scenario, baseline: B1{margin} }}\n")
    };
    let (message, remedy) = words("M025", &plan(", margin: 1%", 3));
    assert!(
        message.starts_with("3 repeats can confirm a margin of 1 % only if rounds differ by less than 0."),
        "{message}"
    );
    let enough: u32 = remedy.split(&[' ', '`'][..]).nth(3).unwrap().parse().unwrap();
    assert!(
        said("M025", &plan(", margin: 1%", enough - 1)) && !said("M025", &plan(", margin: 1%", enough)),
        "{remedy}"
    );
    assert!(!said("M025", &plan(", margin: 5%", 3)) && !said("M025", &plan("", 3)));
    assert!(!said("M025", &plan(", margin: 1%", 2)), "M007 is reported for these");
    assert_eq!(words("M025", &plan(", margin: 0.01%", 3)).1, "write a wider margin");
}

#[test]
fn no_repeats() {
    let repeats = |repeats: u32, compare: &str| {
        format!(
            "{compare}sweeps: {{ load: {{ matrix: {{ scenario: [B1, B2], qps: [5, 10] }}, repeats: {repeats} }} }}\n"
        )
    };
    let compare = "compare: { by: scenario, baseline: B1 }\n";
    assert!(!said("M007", &repeats(3, compare)) && !said("M007", &repeats(1, "")));
    assert_eq!(words("M007", &repeats(1, compare)).0, "cells are compared by scenario, but each is run only once");
    assert!(said("M007", &repeats(2, compare)));
    let other = "compare: { by: endpoint, baseline: mock }\n";
    let two = "endpoints: { mock: { engine: mock }, other: { engine: mock } }\n\
               sweeps: { a: { matrix: { endpoint: [mock, other], qps: 1 }, repeats: 3 }, b: { matrix: { endpoint: mock, qps: 1 } } }\n";
    assert!(!said("M007", &format!("{other}{two}")), "nothing is compared in the other sweep");
}

#[test]
fn several_variables() {
    let compared = |a: &str, b: &str| format!("compare: {{ by: endpoint, baseline: a }}\n{}", pair(a, b));
    let vllm = "engine: vllm, server: { version: 1, flags: { x: 1 } }";
    for (b, variables) in [
        ("engine: vllm, server: { version: 2, flags: { x: 1 } }", None),
        ("engine: vllm, server: { version: 2, flags: { x: 2 } }", Some("version and x")),
        ("engine: vllm, api: completions, server: { version: 1, flags: { x: 2 } }", Some("api and x")),
        // Another engine has different settings, so they are not counted as further variables.
        ("engine: sglang, server: { version: 9, flags: { y: 2 } }", None),
        ("engine: sglang, api: completions", Some("engine and api")),
    ] {
        let found = one(&compared(vllm, b), "M008").map(|lint| lint.message);
        let expected = variables.map(|variables| format!("`b` differs from the baseline `a` in {variables}"));
        assert_eq!(found, expected, "{b}");
    }
    let gpus = |gpu: &str, gpus: u32| {
        format!("engine: vllm, hardware: {{ gpu: {gpu}, gpus: {gpus} }}, server: {{ tensor_parallel: {gpus} }}")
    };
    assert!(!said("M008", &compared(&gpus("H100", 4), &gpus("H100", 8))), "parallelism follows the accelerators");
    assert!(said("M008", &compared(&gpus("H100", 4), &gpus("H200", 8))));
    assert!(!said("M008", &pair(&gpus("H100", 4), &gpus("H200", 8))), "nothing is compared");
    let scenarios = |a: &str, b: &str| {
        format!(
            "compare: {{ by: scenario, baseline: {a} }}\nsweeps: {{ s: {{ matrix: {{ scenario: [{a}, {b}], qps: [5, \
             10] }} }} }}\n"
        )
    };
    assert!(!said("M008", &scenarios("A1", "B1")) && !said("M008", &scenarios("B1", "B2")));
    assert!(words("M008", &scenarios("A1", "B2")).0.ends_with(" in shared text and prompt_tokens"));
    let models = |large: &str| {
        format!(
            "compare: {{ by: model, baseline: s }}\nmodels: {{ s: {{ id: s, parameters: 8e9, precision: bf16 }}, l: {{ id: l, {large} }} }}\n\
             sweeps: {{ s: {{ matrix: {{ model: [s, l], qps: [5, 10] }} }} }}\n"
        )
    };
    assert!(!said("M008", &models("parameters: 70e9, precision: bf16")));
    assert!(!said("M008", &models("precision: fp8")), "unset values are unknown");
    assert!(said("M008", &models("parameters: 70e9, precision: fp8")));
}

#[test]
fn what_one_side_of_a_comparison_has_alone() {
    let found = |endpoints: &str, sweep: &str| {
        let text = format!(
            "endpoints:\n  vllm: {{ url: \"http://a:8000/v1\", engine: vllm }}\n  sglang: {{ url: \"http://b:8000/v1\", engine: sglang }}\n\
             compare: {{ by: endpoint, baseline: vllm }}\n{endpoints}sweeps: {{ load: {{ repeats: 3, {sweep} }} }}\n"
        );
        let message = one(&text, "M008").map(|lint| lint.message);
        message.map(|message| message.replace("`sglang` differs from the baseline `vllm` in ", ""))
    };
    let two = "endpoint: [vllm, sglang], scenario: [B1, B2]";
    let matrix = |axes: &str| found("", &format!("matrix: {{ {two}, {axes} }}"));
    let extended = |with: &str, when: &str| {
        found("", &format!("matrix: {{ {two}, qps: [5, 10] }}, extend: [{{ when: {{ {when} }}, with: {{ {with} }} }}]"))
    };
    assert_eq!(matrix("qps: [5, 10]"), None);
    assert_eq!(
        extended("connections: cold", "endpoint: vllm").as_deref(),
        Some("engine and connections (cold and warm)")
    );
    assert_eq!(extended("connections: warm", "endpoint: vllm"), None, "equal to the default");
    assert_eq!(extended("connections: cold", "qps: 5"), None, "both sides have it");
    assert_eq!(
        matrix("qps: [5, 10], ignore_eos: { value: false, when: { endpoint: vllm } }").as_deref(),
        Some("engine and ignore_eos (false and true)")
    );
    assert_eq!(
        matrix("qps: [5, { value: 10, when: { endpoint: vllm } }, 20]").as_deref(),
        Some("engine and qps (10 occurs only with `vllm`)")
    );
    assert_eq!(matrix("qps: [5, { value: 10, when: { scenario: B1 } }, 20]"), None, "both sides have it");
    let zip = |endpoints: &str, qps: &str| {
        found("", &format!("matrix: {{ pair: {{ zip: {{ endpoint: [{endpoints}], qps: [{qps}] }} }} }}"))
    };
    assert_eq!(zip("vllm, sglang", "5, 10").as_deref(), Some("engine and qps (5 and 10)"));
    assert_eq!(zip("vllm, vllm, sglang, sglang", "5, 10, 5, 10"), None, "the same pairs on both sides");
    let models = "models: { m: { id: org/m, precision: bf16 }, m8: { id: org/m8, precision: fp8 } }\n";
    let model = format!("matrix: {{ {two}, qps: [5, 10], model: [m, {{ value: m8, when: {{ endpoint: sglang }} }}] }}");
    assert_eq!(found(models, &model).as_deref(), Some("engine and model (m8 occurs only with `sglang`)"));
    let id = |sglang: &str| {
        let models = format!("models: {{ m: {{ id: {{ vllm: org/Some-8B, sglang: {sglang} }}, precision: bf16 }} }}\n");
        found(&models, &format!("matrix: {{ {two}, qps: [5, 10] }}"))
    };
    assert_eq!(id("other/fp8-model").as_deref(), Some("engine and the id of model `m`"));
    assert_eq!(id("other/some-8b"), None, "owner and case are ignored");
    let wide = found(
        "",
        &format!(
            "matrix: {{ {two}, qps: {{ from: 1, to: 9000, step: 1 }}, batch_size: {{ from: 1, to: 9, step: 1 }} }}"
        ),
    );
    assert_eq!(wide, None, "axes that cause no difference are not searched");
}

#[test]
fn facts_of_two_engines_side_by_side() {
    let found = |a: &str, b: &str| {
        let text = pair(&format!("engine: vllm, {a}"), &format!("engine: sglang, {b}"));
        let lint = one(&format!("compare: {{ by: endpoint, baseline: a }}\n{text}"), "M008");
        lint.map(|lint| lint.message.replace("`b` differs from the baseline `a` in ", ""))
    };
    let hardware = |fields: &str| format!("hardware: {{ gpu: H100, {fields} }}");
    assert_eq!(found(&hardware("network: 25GbE"), &hardware("network: 25gbe")), None);
    assert_eq!(found(&hardware("network: 25GbE"), &hardware("network: 1GbE")).as_deref(), Some("engine and network"));
    assert_eq!(
        found(&hardware("network: 25GbE"), &hardware("network: unknown")),
        None,
        "a note reports the unknown value"
    );
    assert_eq!(
        found(&hardware("memory: 80GB, storage: NVMe"), &hardware("memory: 96GB, storage: NFS")).as_deref(),
        Some("engine, memory and storage")
    );
    let flags = |flags: &str| format!("server: {{ version: 1, flags: {flags} }}");
    for (a, b, variable) in [
        ("unknown", "{ quantization: fp8 }", Some("engine and quantization")),
        ("{ quantization: fp8 }", "{}", Some("engine and quantization")),
        ("{ quantization: none }", "{}", None),
        ("{ --quantization: fp8 }", "{ quantize: fp8 }", None),
        ("{ tensor_parallel_size: 2 }", "{ tp-size: 4 }", Some("engine and tensor_parallel")),
        ("{ max_num_seqs: 2 }", "{ max_num_seqs: 4 }", None),
    ] {
        assert_eq!(found(&flags(a), &flags(b)).as_deref(), variable, "{a} and {b}");
    }
}

#[test]
fn caches() {
    let scenarios = |nonce: &str, names: &str| {
        format!("nonce: {nonce}\nsweeps: {{ s: {{ matrix: {{ scenario: [{names}], qps: [5, 10] }} }} }}\n")
    };
    assert!(!said("M009", &scenarios("on", "B1, B2")) && !said("M009", &scenarios("on", "A1, C, D")));
    let (message, _) = words("M009", &scenarios("on", "A2, B1, C"));
    assert_eq!(
        message,
        "`A2` and `C` run against a warm prefix cache and `B1` runs against a cold one, in the same sweep"
    );
    assert!(!said("M010", &scenarios("on", "B1, B2")) && !said("M010", &scenarios("off", "A1, A2")));
    assert!(said("M010", &scenarios("off", "A1, B1")) && said("M010", &scenarios("off", "D")));
    // With one nonce per run, prompts differ between runs. A nonce of a scenario or an axis overrides the
    // plan's.
    assert!(!said("M010", &scenarios("run", "B1, C, D")));
    let own = |plan: &str, own: &str, axis: &str| {
        format!(
            "nonce: {plan}\nscenarios: {{ s: {{ nonce: {own} }}, t: {{ base: s }} }}\n\
             sweeps: {{ s: {{ matrix: {{ scenario: [t], qps: [5, 10]{axis} }} }} }}\n"
        )
    };
    assert!(!said("M010", &own("off", "run", "")) && said("M010", &own("on", "off", "")));
    assert!(said("M010", &own("on", "on", ", nonce: [run, off]")) && !said("M010", &own("off", "off", ", nonce: run")));
}

#[test]
fn disclosure() {
    let whole = ", hardware: { gpu: g, gpus: 2, memory: m, interconnect: i, network: n, storage: s }, server: { version: 1, \
                 tensor_parallel: 2, pipeline_parallel: 1, attention_backend: a, scheduler: s, flags: {} }";
    let codes_of = |fields: &str| codes(&lints(&real(fields)));
    assert_eq!(codes_of(whole), Vec::<&str>::new());
    for field in ["gpu: g, ", "gpus: 2, ", "memory: m, ", "interconnect: i, ", "network: n, ", ", storage: s"] {
        assert_eq!(codes_of(&whole.replacen(field, "", 1)), ["M011"], "{field}");
    }
    assert!(codes_of(&whole.replace("gpus: 2", "gpus: 1").replace("interconnect: i, ", "")).is_empty());
    for field in
        ["version: 1, ", "tensor_parallel: 2, ", "pipeline_parallel: 1, ", "attention_backend: a, ", ", flags: {}"]
    {
        assert_eq!(codes_of(&whole.replacen(field, "", 1)), ["M012"], "{field}");
    }
    let own_names =
        whole.replace("tensor_parallel: 2, ", "").replace("flags: {}", "flags: { --tensor-parallel-size: 2 }");
    assert!(codes_of(&own_names).is_empty(), "the engine's own flag names count");
    let (message, remedy) = words("M011", &real(", hardware: { gpu: g, gpus: 1, memory: m }"));
    assert_eq!(message, "`hardware` does not specify network and storage");
    assert_eq!(remedy, "write the actual values, like `hardware: { network: 25GbE, storage: NVMe }`, or `unknown`");
    let model =
        |precision: &str| format!("{}models: {{ m: {{ id: m, tokenizer: server{precision} }} }}\n", real(whole));
    assert_eq!(codes(&lints(&model(""))), ["M013"]);
    assert_eq!(words("M013", &model("")).1, "write `precision: bf16` (or fp8, int4, …), or `unknown`");
    // An unknown value counts as disclosed, with a note.
    let noted = |text: &str, code: &str, message: &str| {
        let found = lints(text);
        assert_eq!(codes(&found), [code], "{text}");
        assert_eq!((found[0].severity, found[0].message.as_str()), (Severity::Note, message));
    };
    noted(&model(", precision: unknown"), "M013", "its precision is unknown");
    noted(&real(&whole.replace("network: n", "network: Unknown")), "M011", "network of `hardware` is unknown");
    let server = whole.replace("scheduler: s", "scheduler: unknown").replace("flags: {}", "flags: unknown");
    noted(&real(&server), "M012", "scheduler and flags of `server` are unknown");
    let allowed = format!("{}allow: [{{ code: M012, because: rented }}]\n", real(&server));
    assert!(codes(&lints(&allowed)).is_empty());
    // Mocks, and anything that is not measured, are exempt from disclosure.
    let mock = "endpoints: { mock: { engine: mock, url: \"http://127.0.0.1:1/v1\" }, vllm: { url: \"http://node:8000/v1\" } }\n\
                models: { m: { id: m } }\nsweeps: { s: { matrix: { endpoint: mock, scenario: [B1, B2], qps: [5, 10] } } }\n";
    assert_eq!(codes(&lints(mock)), ["M022"], "the only finding: no sweep measures it");
}

#[test]
fn unequal_endpoints() {
    let flags = |flags: &str| format!("engine: vllm, server: {{ version: 1, flags: {{ {flags} }} }}");
    let (message, _) = words("M014", &pair(&flags("x: 1, y: 2"), &flags("x: 9")));
    assert_eq!(message, "`a` specifies y, but `b` does not");
    assert!(!said("M014", &pair(&flags("x: 1"), &flags("--X: 9"))), "one name in all spellings");
    assert!(
        !said("M014", &pair(&flags("x: 1"), "engine: sglang, server: { flags: { z: 1 } }")),
        "each engine has its own flags"
    );
    assert!(said("M014", &pair(&flags("x: 1"), "engine: sglang")));
    assert!(
        !said("M014", &pair(&flags("x: 1"), "engine: sglang, server: { flags: {} }")),
        "an empty map is a disclosure too"
    );
    assert!(!said("M014", &pair("engine: mock", &flags("x: 1"))));

    let gpus = |gpus: u32| format!("engine: vllm, hardware: {{ gpus: {gpus} }}");
    let unequal = pair(&gpus(8), &gpus(4));
    assert_eq!(words("M015", &unequal).0, "`a` and `b` have 8 and 4 accelerators");
    assert!(!said("M015", &pair(&gpus(8), &gpus(8))) && !said("M015", &pair(&gpus(8), "engine: vllm")));
    let compare = |metrics: &str| format!("{unequal}compare: {{ by: endpoint, baseline: a{metrics} }}\n");
    assert!(said("M015", &compare(", metrics: [output_throughput]")));
    assert!(!said("M015", &compare(", metrics: [ttft, output_throughput_per_gpu]")) && !said("M015", &compare("")));
}

#[test]
fn verbose_logs() {
    let server = |server: &str| real(&format!(", server: {{ {server} }}"));
    for loud in [
        "version: 0.33.0, flags: { enable_log_requests: true }",
        "flags: { --uvicorn-log-level: debug }",
        "env: { VLLM_LOGGING_LEVEL: DEBUG }",
        "log_level: trace",
        "flags: { log-requests: 1 }",
        "flags: { disable_log_requests: false }",
        "version: 0.9.2",
        "version: v0.6.3.post1, flags: { max_num_seqs: 8 }",
    ] {
        assert!(said("M016", &server(loud)), "{loud}");
    }
    for quiet in [
        "version: 0.33.0",
        "version: 0.10.0",
        "version: '1.0'",
        "version: nightly",
        "version: 0.9.2, flags: { disable_log_requests: true }",
        "flags: { enable_log_requests: false, log_level: warning }",
    ] {
        assert!(!said("M016", &server(quiet)), "{quiet}");
    }
    assert!(!said(
        "M016",
        "endpoints: { s: { url: \"http://n:1/v1\", engine: sglang, server: { version: 0.4.0 } } }\n"
    ));
}

#[test]
fn foreign_metrics() {
    let at = |engine: &str, telemetry: &str| {
        format!("endpoints: {{ e: {{ url: \"http://gate:8000/v1\", engine: {engine}, telemetry: {telemetry} }} }}\n")
    };
    let (message, _) = words("M033", &at("openai", "\"http://node-7:9400/metrics\""));
    assert!(message.starts_with("`http://node-7:9400/metrics` is on a different host than the endpoint"), "{message}");
    assert!(said("M033", &at("openai", "{ prometheus: [\"http://gate:1/metrics\", \"http://node-7:9400/metrics\"] }")));
    assert!(!said("M033", &at("openai", "\"http://gate:9400/metrics\"")), "the same host");
    assert!(!said("M033", &at("vllm", "{ prometheus: [on, \"http://node-7:9400/metrics\"] }")), "a known engine");
}

#[test]
fn one_host() {
    let at = |url: &str, network: &str| {
        said("M017", &format!("endpoints: {{ e: {{ url: \"{url}\", engine: vllm{network} }} }}\n"))
    };
    for here in ["http://localhost:8000/v1", "http://127.0.0.2/v1", "http://[::1]:8000/v1", "https://LOCALHOST/v1"] {
        assert!(at(here, ""), "{here}");
        assert!(at(here, ", hardware: { network: 25GbE }"), "{here}");
        for said_so in ["loopback", "ssh tunnel to node-a", "kubectl port-forward", "the same host, pinned cores"] {
            assert!(!at(here, &format!(", hardware: {{ network: \"{said_so}\" }}")), "{said_so}");
        }
    }
    for there in ["http://node-a:8000/v1", "http://10.0.0.1/v1", "https://localhost.example.com/v1"] {
        assert!(!at(there, ""), "{there}");
    }
}

#[test]
fn beyond_calibration() {
    let pressure = |in_flight, requests_per_second, events_per_second| Held {
        pressure: Pressure { in_flight, requests_per_second, events_per_second },
        engine: LoadEngine::default(),
        opens_connections: false,
    };
    let held = Calibrated { held: vec![pressure(64.0, 500.0, 20_000.0), pressure(8.0, 2_000.0, 2_000.0)] };
    let found = |load: &str, calibrated: Option<&Calibrated>| {
        let lints = lint(&plan(&with_load(load, "measure: 400s")), calibrated);
        lints.into_iter().find(|lint| lint.code == LintCode::BeyondCalibration)
    };
    assert!(found("batch_size: [1, 64]", Some(&held)).is_none());
    let beyond = found("batch_size: [1, 70, 68]", Some(&held)).unwrap();
    let expected =
        "`batch_size: 70` exceeds the highest load that this host sustained in its last calibration: 64 in flight";
    assert_eq!(beyond.message, expected);
    assert!(beyond.remedy.contains("sweepline calibrate --batch-size 70 --output-tokens 256"), "{}", beyond.remedy);
    assert!(found("batch_size: [1, 70]", None).is_none(), "without a calibration the limit is unknown");
    // With 256 tokens per request, 78 qps stay just below the sustained 20 000 events per second. A sustained
    // load covers another load only if it is at least as high in every quantity.
    assert!(found("qps: [10, 78]", Some(&held)).is_none());
    assert!(found("qps: [10, 90]", Some(&held)).is_some());
    assert!(found("qps: [10, 1900], output_tokens: 1", Some(&held)).is_none());
    assert!(found("qps: [10, 490], output_tokens: 10, ignore_eos: false", Some(&held)).is_none());
    let other = Calibrated { held: vec![Held { opens_connections: true, ..pressure(64.0, 500.0, 20_000.0) }] };
    assert!(found("batch_size: [1, 2]", Some(&other)).is_some());
    assert!(found("batch_size: [1, 2], connections: per_request", Some(&other)).is_none());
}

#[test]
fn undecidable_slo() {
    let at = |slo: &str, measure: &str| {
        format!("slo: {{ {slo} }}\n{}", with_load("qps: [1, 10]", &format!("measure: {measure}")))
    };
    assert!(!said("M019", &at("e2e: { p99: 1s }", "299s")));
    let (message, remedy) = words("M019", &at("ttft: { p50: 1s }, e2e: { p99: 1s }", "298s"));
    let expected =
        "e2e p99 needs at least 299 requests to be shown to hold, but only 298 are expected at `qps: 1` in 298s";
    assert_eq!(message, expected);
    assert_eq!(remedy, "write `phases: { measure: 368s }`, or `qps: 1.3`, or more");
    assert!(!said("M019", &at("ttft: { p95: 1s }", "59s")) && said("M019", &at("ttft: { p95: 1s }", "58s")));
    assert!(!said("M019", &with_load("qps: [1, 10]", "measure: 1s")), "there is no objective");
    // M005 and M019 of one plan give the same remedy, which resolves both.
    let text = |measure: &str| {
        format!(
            "slo: {{ ttft: {{ p99: 1s }} }}\nphases: {{ measure: {measure} }}\nsweeps:\n  a: {{ matrix: {{ scenario: [B1, B2], qps: [1, 30] }} }}\n  \
             b: {{ matrix: {{ scenario: [B1, B2], qps: [2, 300] }} }}\n"
        )
    };
    let found: Vec<Lint> =
        lints(&text("10s")).into_iter().filter(|lint| ["M005", "M019"].contains(&lint.code.name())).collect();
    assert_eq!(codes(&found), ["M019", "M019", "M005"], "threats to the verdict are listed first");
    let remedies: Vec<&str> = found.iter().map(|lint| lint.remedy.as_str()).collect();
    assert_eq!(remedies, ["write `phases: { measure: 368s }`, or `qps: 37`, or more"; 3]);
    assert!(!said("M005", &text("368s")) && lints(&text("368s")).is_empty());
}

#[test]
fn total_tokens() {
    for text in [
        "The node serves 40 000 total tokens per second.",
        "Total token throughput doubles",
        "highest total throughput (tok/s)",
        "capacity in total prompt and output tokens",
    ] {
        assert!(said("M020", &format!("hypothesis: {text}\n")), "{text}");
        let sweep =
            format!("sweeps: {{ s: {{ notes: \"{text}\", matrix: {{ scenario: [B1, B2], qps: [5, 10] }} }} }}\n");
        assert_eq!(one(&sweep, "M020").unwrap().scopes, [Scope::Sweep("s".to_owned())]);
    }
    for text in
        ["Output throughput doubles.", "8 000 total tokens of context", "a total of 5 runs", "totally token-bound"]
    {
        assert!(!said("M020", &format!("notes: {text}\n")), "{text}");
    }
}

#[test]
fn what_is_allowed_is_not_said() {
    let short = "phases: { measure: 5s }\n";
    let because = "because: a first look";
    assert_eq!(codes(&lints(short)), ["M006", "M005"]);
    assert_eq!(codes(&lints(&format!("{short}allow: [{{ code: M006, {because} }}]\n"))), ["M005"]);
    let both = format!("{short}allow: [{{ code: M006, {because} }}, {{ code: M005, {because} }}]\n");
    assert_eq!(codes(&lints(&both)), Vec::<&str>::new());
    let idle = one(&format!("allow: [{{ code: M006, {because} }}]\n"), "M021").unwrap();
    assert_eq!(
        (idle.message.as_str(), idle.severity),
        ("this entry allows M006, but M006 finds nothing here", Severity::Note)
    );
    assert_eq!(idle.place.unwrap().to_string(), "plan.yaml:7:9");
    let twice = format!("{short}allow: [{{ code: M006, {because} }}, {{ code: M006, {because} }}]\n");
    assert_eq!(codes(&lints(&twice)), ["M005", "M021"], "one remedy is enough");
    // Without a calibration of the host, it is unknown whether a load exceeds what the host sustains, so the
    // entry is not reported as unneeded.
    assert!(lints(&format!("allow: [{{ code: M018, {because} }}]\n")).is_empty());
}

#[test]
fn a_sweep_allows_for_itself() {
    let sweeps = |allow: &str| {
        format!(
            "phases: {{ measure: 5s }}\nsweeps:\n  a: {{ matrix: {{ scenario: [B1, B2], qps: [100, 200] }}, allow: [{{ code: {allow}, because: x }}] }}\n  \
             b: {{ matrix: {{ scenario: [B1, B2], qps: [100, 200] }} }}\n"
        )
    };
    let left = lints(&sweeps("M006"));
    assert_eq!((codes(&left), &left[0].scopes), (vec!["M006"], &vec![Scope::Sweep("b".to_owned())]));
    let both = lints(&sweeps("M006").replace("b: {", "b: { allow: [{ code: M006, because: x }],"));
    assert!(both.is_empty(), "{both:#?}");
    // A sweep's entry does not allow a finding about an endpoint; only an entry of the plan does.
    let of_endpoint = lints(&format!("{}{}", real(""), sweeps("M011")));
    let idle = of_endpoint.iter().find(|lint| lint.code == LintCode::IdleAllow).unwrap();
    assert_eq!(idle.message, "this entry allows M011 for the sweep, but M011 is found outside the sweep");
}

#[test]
fn the_same_is_said_once() {
    let sweeps = "sweeps:\n  b: { matrix: { scenario: [B1, B2], qps: [100, 200] } }\n  a: { matrix: { scenario: [B1, B2], qps: [50, 300] } }\n";
    let found = lints(&format!("phases: {{ measure: 20s }}\n{sweeps}"));
    assert_eq!(codes(&found), ["M006"]);
    assert_eq!(found[0].scopes, ["b", "a"].map(|name| Scope::Sweep(name.to_owned())), "in the order of the plan");
    let shown = text(&found, false);
    let lines: Vec<&str> = shown.lines().take(2).collect();
    assert_eq!(lines[0], "the verdict: do these numbers hold?");
    assert!(
        lines[1].starts_with("  warning[M006] ") && lines[1].contains(": sweeps `b` and `a`: `measure` is"),
        "{shown}"
    );
    assert_eq!(counts(&found).as_deref(), Some("1 warning"));
    let own = sweeps.replace("] } }\n  a", "] }, phases: { measure: 30s } }\n  a");
    let found = lints(&format!("phases: {{ measure: 20s }}\n{own}"));
    assert_eq!(found.len(), 2);
    let lines: Vec<usize> = found.iter().map(|lint| lint.place.as_ref().unwrap().line).collect();
    assert_eq!(lines, [7, 5], "each at its own line");
}

#[test]
fn what_is_not_disclosed_is_one_line() {
    let endpoint = |more: &str| format!("{{ url: 'http://h:8000/v1', engine: vllm{more} }}");
    let endpoints = format!("endpoints:\n  a: {}\n  b: {}\n", endpoint(", hardware: { gpu: unknown }"), endpoint(""));
    let sweeps = "sweeps: { load: { matrix: { endpoint: [a, b], scenario: [B1, B2], qps: [5, 10] } } }\n";
    let models = "models: { llama: { id: llama, tokenizer: server } }\n";
    let found = lints(&format!("{endpoints}{models}phases: {{ measure: 5s }}\n{sweeps}"));
    let shown = text(&found, false);
    let disclosed = shown.split("the disclosure: ").nth(1).unwrap_or_else(|| panic!("{shown}"));
    let lines: Vec<&str> = disclosed.lines().skip(1).collect();
    assert_eq!(lines.len(), 4, "{shown}");
    assert!(lines[0].starts_with("  warning[M011, M012, M013] not disclosed: "), "{shown}");
    for part in [
        "version, tensor_parallel, pipeline_parallel, attention_backend, scheduler, flags of endpoints `a` and `b`",
        "gpu, gpus, memory, interconnect, network, storage of endpoint `b`",
        "precision of model `llama`",
    ] {
        assert!(lines[0].contains(part), "{part}\n{shown}");
    }
    assert!(lines[2].starts_with("  note[M011] unknown: gpu of endpoint `a`"), "{shown}");
    // The threat to the verdict is listed before disclosure, and its findings are not folded into one line.
    let above = &shown[..shown.len() - disclosed.len()];
    assert!(above.contains("the verdict: ") && above.contains("warning[M006]"), "{shown}");
    assert_eq!(
        found.iter().filter(|lint| !lint.undisclosed.is_empty()).count(),
        5,
        "each finding is kept for programs"
    );
}

#[test]
fn never_used() {
    let said_of = |text: &str| -> Vec<(String, Severity)> {
        let found = lints(text).into_iter().filter(|lint| lint.code == LintCode::NeverUsed);
        found.flat_map(|lint| lint.scopes.into_iter().map(move |scope| (scope.to_string(), lint.severity))).collect()
    };
    let plan = |scenarios: &str, matrix: &str| {
        format!("scenarios: {{ {scenarios} }}\nsweeps: {{ s: {{ matrix: {{ {matrix}, qps: [5, 10] }} }} }}\n")
    };
    let warned = |name: &str| vec![(format!("scenario {name}"), Severity::Warning)];
    let (short, long) = ("short: { prompt_tokens: 50 }", "long: { prompt_tokens: 900 }");
    assert_eq!(said_of(&plan(short, "prompt_tokens: [40, 60]")), [], "the only endpoint is the default");
    assert_eq!(said_of(&plan(&format!("{short}, {long}"), "scenario: [short, B1]")), warned("long"));
    assert_eq!(said_of(&plan(&format!("{short}, {long}"), "scenario: [short, long]")), []);
    // A base and the members of a mix are used if the scenario that refers to them is used.
    let based = format!("{short}, longer: {{ base: short, prompt_tokens: 900 }}");
    assert_eq!(said_of(&plan(&based, "scenario: longer")), []);
    assert_eq!(said_of(&plan(&based, "scenario: short")), warned("longer"));
    let mixed = format!(
        "{short}, {long}, both: {{ mix: [{{ scenario: short, share: 0.5 }}, {{ scenario: long, share: 0.5 }}] }}"
    );
    assert_eq!(said_of(&plan(&mixed, "scenario: both")), []);
    assert_eq!(said_of(&plan(&mixed, "scenario: [short, long]")), warned("both"));
    // A scenario is also used if only a cell of `add` uses it.
    let added = "scenarios: { short: { prompt_tokens: 50 }, long: { prompt_tokens: 900 } }\nsweeps: { s: { matrix: { scenario: short, qps: [5, 10] }, \
                 add: [{ endpoint: mock, model: llama, scenario: long, qps: 5 }] } }\n";
    assert_eq!(said_of(added), []);
    let two = "endpoints: { a: { engine: mock }, b: { engine: mock } }\nmodels: { m: { id: m }, n: { id: n } }\n\
               sweeps: { s: { matrix: { endpoint: a, model: m, scenario: [B1, B2], qps: [5, 10] } } }\n";
    let noted = [("endpoint b".to_owned(), Severity::Note), ("model n".to_owned(), Severity::Note)];
    assert_eq!(said_of(two), noted);
}

#[test]
fn estimated_lengths() {
    let model = |fields: &str| format!("{}models: {{ m: {{ id: m{fields} }} }}\n", real(""));
    let (message, remedy) = words("M023", &model(""));
    assert!(message.contains("12-18 % shorter") && message.contains("36 %"), "{message}");
    assert!(remedy.contains("`tokenizer: FILE`") && remedy.contains("`tokenizer: server`"), "{remedy}");
    assert!(!said("M023", &model(", tokenizer: server")));
    assert!(!said("M023", "models: { m: { id: m } }\n"), "a mock has no tokenizer");
}

#[test]
fn unshown_queue() {
    let plan = |measure: &str, slo: &str| format!("{slo}phases: {{ measure: {measure} }}\n");
    let slo = "slo: { ttft: { p50: 1s } }\n";
    // A response takes 20 ms plus 255 gaps of 4 ms, so 60 consecutive requests take 62.4 s.
    assert!(!said("M024", &plan("63s", slo)));
    assert!(!said("M024", &plan("62s", "")), "there is no objective");
    let (message, remedy) = words("M024", &plan("62s", slo));
    assert!(message.contains("shorter than 60 consecutive requests of 1.04s each, so it will"), "{message}");
    assert!(remedy.contains("measure: 63s"), "{remedy}");
    let one = "sweeps: { a: { matrix: { scenario: [B1, B2], qps: 5 } } }\n";
    assert!(!said("M024", &format!("{}{one}", plan("62s", slo))), "no ladder");
    let real = format!("{}{}", real(""), plan("300s", slo));
    assert!(words("M024", &real).0.contains("(assuming 20ms per output token)"));
}

#[test]
fn fixed_gpus() {
    let plan = |hardware: &str, axis: &str| {
        format!(
            "endpoints:\n  vllm:\n    engine: vllm\n    hardware: {{ {hardware} }}\n    \
             launch: {{ command: [vllm, --port, \"{{{{ port }}}}\", \"{{{{ server.args }}}}\"], port: auto }}\n\
             sweeps: {{ load: {{ matrix: {{ scenario: [B1, B2], qps: [5, 10], {axis} }} }} }}\n"
        )
    };
    let (message, remedy) = words("M026", &plan("gpus: 2", "server.tensor_parallel_size: [1, 2]"));
    assert_eq!(
        message,
        "`server.tensor_parallel_size` changes how many accelerators `vllm` uses, but `gpus: 2` is the same in \
         every cell"
    );
    assert_eq!(remedy, "write `gpus: \"{{ server.tensor_parallel_size }}\"`");
    // The flags may be in maps and have aliases, and the remedy covers the price too.
    let maps = "server: [{ tp-size: 1, dp_size: 1 }, { tp-size: 2, dp_size: 4 }]";
    let (message, remedy) = words("M026", &plan("gpus: 8, price_per_hour: 20", maps));
    assert!(message.starts_with("`server.tp-size` and `server.dp_size` change how many"), "{message}");
    assert!(remedy.contains("price_per_hour: \"{{ PRICE_OF_ONE * server"), "{remedy}");
    for flag in PARALLEL {
        assert!(said("M026", &plan("gpus: 2", &format!("server.{flag}: [1, 2]"))), "{flag}");
    }
    // No finding: a single value, a flag that does not change the number of accelerators, a declared number
    // that follows the flag, and no declared number.
    assert!(!said("M026", &plan("gpus: 2", "server.tensor_parallel_size: [2]")));
    assert!(!said("M026", &plan("gpus: 2", "server.max_num_seqs: [1, 2]")));
    let follows = "gpus: \"{{ server.tensor_parallel_size }}\"";
    assert!(!said("M026", &plan(follows, "server.tensor_parallel_size: [1, 2]")));
    assert!(!said("M026", &plan("gpu: H100", "server.tensor_parallel_size: [1, 2]")));
    // A flag also varies if one map sets it and the other leaves it at the server's default.
    assert!(said("M026", &plan("gpus: 2", "server: [{ max_num_seqs: 8 }, { tensor_parallel_size: 2 }]")));
}

/// Parallelism flags in their common spellings.
const PARALLEL: [&str; 7] =
    ["tensor-parallel-size", "tp", "tp_size", "pipeline_parallel_size", "data_parallel_size", "dp_size", "pp-size"];

/// Returns a plan with the given search on a real server; `measure` is the window of its runs.
fn searching(search: &str, measure: &str) -> String {
    format!(
        "{}slo: {{ ttft: {{ p90: 2s }} }}\nphases: {{ measure: {measure} }}\nsweeps: {{ limit: {{ matrix: {{ \
         scenario: B1 }}, search: {{ {search} }} }} }}\n",
        real("")
    )
}

#[test]
fn short_confirm() {
    let with = |confirm: &str, measure: &str| searching(&format!("qps: {{ from: 1, to: 50 }}{confirm}"), measure);
    assert!(said("M027", &with(", confirm: 60s", "60s")) && !said("M027", &with(", confirm: 61s", "60s")));
    assert!(said("M027", &with("", "300s")) && !said("M027", &with("", "299s")));
    assert!(!said("M027", &with(", confirm: 0s", "60s")), "disabled on purpose");
    let (message, remedy) = words("M027", &with(", confirm: 30s", "60s"));
    assert!(message.starts_with("`confirm: 30s` is not longer than the other runs of the search (1m"), "{message}");
    assert!(remedy.starts_with("write `confirm: 300s` ") || remedy.starts_with("write `confirm: 5m` "), "{remedy}");
}

#[test]
fn fine_resolution() {
    let with = |range: &str, measure: &str| searching(&format!("qps: {{ {range} }}"), measure);
    assert!(!said("M028", &with("from: 1, to: 40", "100s")), "4 000 requests, 5 %");
    let (message, remedy) = words("M028", &with("from: 1, to: 39", "100s"));
    assert_eq!(
        message,
        "a window has 3900 requests at the heaviest load, but distinguishing loads that differ by 5% takes about 4000 \
         requests"
    );
    assert_eq!(remedy, "write `within: 6%`, or `phases: { measure: 103s }`");
    assert!(!said("M028", &with("from: 1, to: 10, within: 10%", "100s")));
    assert!(said("M028", &with("from: 1, to: 40, within: 4%", "100s")));
    assert!(!said("M028", &with("from: 1, to: 10", "{ for: 100s, min_requests: 4000, at_most: 400s }")));
    // At one token every 20 ms, each of 128 users gets a response of 256 tokens every 5.12 s.
    let (message, _) = words("M028", &searching("batch_size: { from: 1, to: 128 }", "100s"));
    assert!(message.contains("(assuming 20ms per output token)"), "{message}");
}

#[test]
fn no_headroom() {
    let with = |times: &str| {
        let limit = "limit: { matrix: { scenario: B1 }, search: { qps: { from: 1, to: 50 } } }";
        let hold =
            format!("hold: {{ matrix: {{ scenario: B1, qps: {{ from: limit, take: max_qps_under_slo{times} }} }} }}");
        format!("slo: {{ ttft: {{ p90: 2s }} }}\nsweeps: {{ {limit}, {hold} }}\n")
    };
    assert!(said("M029", &with("")) && said("M029", &with(", times: 1")) && !said("M029", &with(", times: 0.99")));
    let (message, _) = words("M029", &with(", times: 1.2"));
    assert_eq!(message, "`times: 1.2` sets a load above the highest one that meets the objective in `limit`");
}

#[test]
fn unreachable_until() {
    let with = |repeats: &str| {
        format!("sweeps: {{ load: {{ matrix: {{ scenario: [B1, B2], qps: [5, 10] }}, repeats: {repeats} }} }}\n")
    };
    // The half-width of the interval in standard deviations: t(0.975, 5) / √6 = 1.049 for 6 repeats, and
    // t(0.975, 6) / √7 = 0.925 for 7.
    let (message, remedy) = words("M030", &with("{ until: 1%, at_most: 6 }"));
    assert!(
        message.starts_with("if runs differ by 1%, 6 repeats determine a mean only to within 1.05%, not 1%"),
        "{message}"
    );
    assert_eq!(remedy, "write `at_most: 7` or more, or a wider `until`");
    assert!(!said("M030", &with("{ until: 1%, at_most: 7 }")) && !said("M030", &with("4")));
}

#[test]
fn nothing_optional() {
    let with = |budget: &str, optional: &str| {
        format!("{budget}sweeps: {{ load: {{ matrix: {{ scenario: [B1, B2], qps: [5, 10] }}{optional} }} }}\n")
    };
    assert!(said("M031", &with("budget: { time: 2h }\n", "")) && !said("M031", &with("", "")));
    assert!(!said("M031", &with("budget: { time: 2h }\n", ", optional: true")));
}

#[test]
fn undecidable_gate() {
    let with = |measure: &str, question: &str| {
        format!(
            "phases: {{ measure: {measure} }}\nsweeps: {{ smoke: {{ matrix: {{ scenario: [B1, B2], qps: [1, 5] }} }}, load: {{ \
             matrix: {{ scenario: [B1, B2], qps: [5, 10] }}, {question} }} }}\n"
        )
    };
    let gate = |metric: &str| format!("gate: {{ sweep: smoke, metric: {metric}, at_most: 1s }}");
    // p99 needs 368 requests, and at the lighter load one request arrives per second.
    let (message, remedy) = words("M032", &with("300s", &gate("ttft_p99")));
    assert_eq!(
        message,
        "`ttft_p99` of sweep `smoke` needs 368 requests in a run, but only 300 are expected at `qps: 1` in 5m"
    );
    assert!(remedy.starts_with("write `phases: { measure: 368s }`"), "{remedy}");
    assert!(!said("M032", &with("368s", &gate("ttft_p99"))) && !said("M032", &with("300s", &gate("ttft_p95"))));
    // A metric without a percentile means its median, which needs 6 requests. The gaps of 30 requests are
    // enough for p99 of ITL.
    assert!(said("M032", &with("5s", &gate("ttft"))) && !said("M032", &with("6s", &gate("ttft"))));
    assert!(said("M032", &with("29s", &gate("itl_p99"))) && !said("M032", &with("30s", &gate("itl_p99"))));
    assert!(said("M032", &with("300s", "skip_if: { sweep: smoke, metric: ttft_p99, above: 1s }")));
    assert!(!said("M032", &with("1s", "gate: { sweep: smoke, metric: error_share, at_most: 1% }")));
}

/// Returns a launched server with these fields, and a sweep with these fields.
fn launched(fields: &str, sweep: &str) -> String {
    format!(
        "endpoints:\n  s: {{ engine: vllm, launch: {{ command: [vllm, \"{{{{ server.args }}}}\"], port: 8000 }}{fields} }}\n\
         sweeps: {{ load: {{ {sweep} }} }}\n"
    )
}

#[test]
fn many_starts() {
    let compared = |matrix: &str, repeats: u32, by: &str| {
        format!("matrix: {{ {matrix} }}, repeats: {repeats}, compare: {{ by: {by}, baseline: 1 }}")
    };
    let arms = "server.slots: [1, 2, 3]";
    let several = compared(&format!("qps: [1, 2, 3, 4, 5], {arms}"), 2, "server.slots");
    let (message, _) = words("M034", &launched("", &several));
    assert!(message.ends_with("6 starts are enough for 3 arms in 2 repeats"), "{message}");
    // One cell of each arm never needs more than one start for each arm and repeat.
    for repeats in 1..=20 {
        let one = compared(&format!("qps: 1, {arms}"), repeats, "server.slots");
        assert!(!said("M034", &launched("", &one)), "{repeats} repeats");
    }
    let by_load = compared(&format!("qps: [1, 2, 3, 4, 5], {arms}"), 2, "qps");
    assert!(!said("M034", &launched("", &by_load)), "the compared cells share a server");
    assert!(!said("M034", &launched(", reset: restart", &several)), "restarts are requested");
    let starts =
        "measure: start, matrix: { server.slots: [1, 2] }, repeats: 9, compare: { by: server.slots, baseline: 1 }";
    assert!(!said("M034", &launched("", starts)), "each run is a start");
}

#[test]
fn text_flags() {
    let with = |flags: &str| launched(&format!(", server: {{ flags: {{ {flags} }} }}"), "matrix: { qps: [1, 2] }");
    let (message, remedy) = words("M035", &with("enforce_eager: yes"));
    assert_eq!(message, "`enforce_eager: yes` is a string, so the server gets `--enforce-eager yes`");
    assert_eq!(remedy, "write `true`, which passes `--enforce-eager`");
    let (_, remedy) = words("M035", &with("prefix: NO"));
    assert_eq!(remedy, "write `false`, which passes `--no-prefix`");
    let (_, remedy) = words("M035", &with("memory: '0,95'"));
    assert_eq!(remedy, "write `0.95`");
    for fine in ["x: true", "x: auto", "x: on", "x: 0.95", "x: '0,1,2'", "x: '1,000'", "x: 'yes, please'"] {
        assert!(!said("M035", &with(fine)), "{fine}");
    }
    let unlaunched = "endpoints: { s: { url: \"http://n:1/v1\", engine: vllm, server: { flags: { x: yes } } } }\n";
    assert!(!said("M035", unlaunched), "the server was started by somebody else");
}
