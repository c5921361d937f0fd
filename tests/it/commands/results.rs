//! Cases of the commands that read results.

use lab::{Lab, Server};

use super::cases::Effect::{Ends, Omits, Prints, Writes};
use super::cases::{Case, Prepared, case};

/// Two servers, one of which is slower, in a part that other plans can use too.
const SITE: &str = "endpoints:
  a: { engine: mock, mock: { ttft: 5ms, itl: 1ms, jitter: 20% }, hardware: { gpus: 1, price_per_hour: 3 } }
  b: { engine: mock, mock: { ttft: 8ms, itl: 1ms, jitter: 20% } }
";

/// The rest of the plan: five repeats of a closed loop on both servers, and two rates on one.
const REST: &str = "models: { m: { id: tiny } }
scenarios:
  brief: { prompt_tokens: 20, output_tokens: 2 }
  long: { prompt_tokens: 20, output_tokens: 12 }
  mixed: { mix: [{ scenario: brief, share: 3 }, { scenario: long, share: 1 }] }
phases: { fill: 0s, stabilize: 0s, measure: { for: 300ms, min_requests: 30, at_most: 60s }, drain: 10s }
slo: { ttft: { p50: 6ms } }
compare: { by: endpoint, baseline: a, metrics: [ttft_p50, tpot_p50] }
sweeps:
  closed: { matrix: { endpoint: [a, b], model: [m], scenario: mixed, batch_size: [2] }, repeats: 5 }
  open:
    matrix: { endpoint: [a], model: [m], scenario: brief, qps: [50, 80] }
    phases: { measure: { for: 1s, min_requests: 100, at_most: 60s } }
";

/// Two runs without a single request, which are invalid.
const EMPTY: &str = "models: { m: { id: tiny } }
scenarios: { brief: { prompt_tokens: 20, output_tokens: 2 } }
phases: { fill: 0s, stabilize: 0s, measure: 10ms, drain: 10ms }
slo: { ttft: { p50: 6ms } }
compare: { by: endpoint, baseline: a, metrics: [ttft_p50] }
sweeps:
  idle: { matrix: { endpoint: [a, b], model: [m], scenario: brief, qps: [0.01] } }
";

/// Returns a folder with these results: `results` has all runs, and `other` only the two rates.
fn prepared() -> Prepared {
    let lab = Lab::new();
    let head = "sweepline: 1\nseed: 5\n";
    lab.write("site.yaml", SITE);
    lab.write("plan.yaml", &format!("{head}name: cases\n{SITE}{REST}"));
    lab.write("inside/plan.yaml", &format!("{head}name: cases\nuse: [../site.yaml]\n{REST}"));
    lab.write("empty.yaml", &format!("{head}name: empty\n{SITE}{EMPTY}"));
    lab.write("taken", "Mine.\n");
    lab.ok(&["run", "plan.yaml", "-q"]);
    lab.ok(&["run", "plan.yaml", "-q", "--only", "sweep == 'open'", "--results", "other"]);
    assert_eq!(lab.run(&["run", "empty.yaml", "-q"]).code, Some(3), "its runs are invalid");
    lab.ok(&["decide", "plan.yaml", "--accept", "qps == 80", "--because", "quick"]);
    lab.ok(&["push", &format!("file://{}/shared", lab.path().display())]);
    fail(&lab);
    let shown = lab.ok(&["why", "qps == 80", "--plan", "plan.yaml", "--format", "json"]).json();
    let run = shown["id"].as_str().unwrap().to_owned();
    let port = super::dead_address().trim_end_matches("/v1").rsplit(':').next().unwrap().to_owned();
    Prepared { values: vec![("run", run), ("port", port)], ..Prepared::new(lab) }
}

/// Lets the server of a run die, which leaves an attempt in the results folder `failed`.
fn fail(lab: &Lab) {
    let server = Server::start(lab, &["--fault", "exit@5"]);
    let endpoint = format!("endpoints: {{ a: {{ url: '{}', retries: {{ runs: 0 }} }} }}\n", server.url());
    let (before, sweeps) = (EMPTY.split("compare:").next().unwrap(), EMPTY.split("sweeps:").nth(1).unwrap());
    let rest = format!("{before}sweeps:{sweeps}")
        .replace("[a, b]", "[a]")
        .replace("qps: [0.01]", "batch_size: [2]")
        .replace("measure: 10ms", "measure: { for: 10ms, min_requests: 20, at_most: 60s }");
    lab.write("dying.yaml", &format!("sweepline: 1\nname: dying\n{endpoint}{rest}"));
    assert_eq!(lab.run(&["run", "dying.yaml", "-q", "--results", "failed"]).code, Some(6), "its server has died");
}

const COMPARE: &[Case] = &[
    case("compare plan.yaml", "--set compare.metrics=[e2e_p50]", Prints("E2E p50")),
    case("compare inside/plan.yaml", "--allow-outside", Prints("slower by")),
    case("compare plan.yaml", "--only repeat<3", Prints("b against a, 3 rounds")),
    case("compare plan.yaml", "--skip repeat==0", Prints("b against a, 4 rounds")),
    case("compare plan.yaml", "--class long", Prints("only requests of class `long`")),
    case("compare plan.yaml --baseline b", "--by endpoint", Prints("a against b, 5 rounds")),
    case("compare plan.yaml --by endpoint", "--baseline b", Prints("a against b, 5 rounds")),
    case("compare plan.yaml", "--metrics output_throughput", Prints("output throughput")),
    case("compare plan.yaml", "--against other", Prints("now against `other`")),
    case("compare plan.yaml", "--write-baseline earlier.csv", Writes("earlier.csv", "endpoint")),
    case("compare plan.yaml --write-baseline taken", "--force", Writes("taken", "endpoint")),
    case("compare plan.yaml", "--margin 2%", Prints("outside the margin of 2 %: shown")),
    case("compare plan.yaml", "--gate", Ends).ends(4),
    case("compare plan.yaml", "--explore", Prints("Benjamini–Hochberg")),
    case("compare empty.yaml", "--include-invalid", Omits("excluded: repeat 0 of a: invalid")),
    case("compare plan.yaml", "--see 0.1", Prints("0.1 %")),
    case("compare plan.yaml", "--format markdown", Prints("**closed: m · mixed · batch 2: b against a, 5 rounds**")),
    case("compare plan.yaml", "--explain", Prints("counting: the rules for requests")),
    case("compare plan.yaml", "--results other", Prints("nothing could be tested")),
];

const CURVES: &[Case] = &[
    case("curves plan.yaml --results other", "--set slo.ttft.p50=1ms", Prints("no load is shown to hold")),
    case("curves inside/plan.yaml --results other", "--allow-outside", Prints("a · brief")),
    case("curves plan.yaml --results other", "--only qps==80", Omits("qps 50")),
    case("curves plan.yaml --results other", "--skip qps==50", Omits("qps 50")),
    case("curves empty.yaml", "--include-invalid", Omits("invalid excluded")),
    case("curves plan.yaml --results other", "--format json", Prints("\"curves\": [")),
    case("curves plan.yaml", "--results other", Omits("closed: a · mixed")),
    case("curves plan.yaml", "--class long", Prints("class long: figures cover only its requests")),
    case("curves plan.yaml --results other", "--plot", Prints("┄┄ objective ≤ 6ms")),
    case("curves plan.yaml --results other --set \"slo={ ttft: { p99: 1s } }\"", "--verbose", Prints("299 needed")),
    case("curves plan.yaml --results other", "--explain", Prints("counting: the rules for requests")),
];

const CAPACITY: &[Case] = &[
    case("capacity plan.yaml --results other", "--set slo.ttft.p50=20ms", Prints("ttft p50 ≤ 20ms")),
    case("capacity inside/plan.yaml --results other", "--allow-outside", Prints("a · brief")),
    case("capacity plan.yaml --results other", "--only qps==50", Prints("at qps 50")),
    case("capacity plan.yaml --results other", "--skip qps==80", Prints("at qps 50")),
    case("capacity empty.yaml", "--include-invalid", Omits("invalid excluded")),
    case("capacity plan.yaml --results other", "--format json", Prints("\"target\": null")),
    case("capacity plan.yaml", "--results other", Omits("closed: a · mixed")),
    case("capacity plan.yaml --results other", "--target-qps 200", Prints("to serve 200 requests/s")),
    case("capacity plan.yaml --results other --target-qps 200", "--headroom 50%", Prints("50 %")),
    case("capacity plan.yaml --results other --set \"slo={ ttft: { p99: 1s } }\"", "--verbose", Prints("299 needed")),
    case("capacity plan.yaml --results other", "--explain", Prints("counting: the rules for requests")),
];

const DIAGNOSE: &[Case] = &[
    case(
        "diagnose plan.yaml --results other",
        "--set endpoints.a.hardware.memory_bandwidth=3TB/s",
        Omits("endpoint a declares no hardware: { memory_bandwidth"),
    ),
    case("diagnose inside/plan.yaml --results other", "--allow-outside", Prints("symptoms")),
    case("diagnose plan.yaml", "--only endpoint=='a'", Omits("endpoint b declares")),
    case("diagnose plan.yaml", "--skip endpoint=='b'", Omits("endpoint b declares")),
    case("diagnose empty.yaml", "--include-invalid", Omits("invalid excluded")),
    case("diagnose plan.yaml --results other", "--format json", Prints("\"symptoms\": [")),
    case("diagnose plan.yaml", "--results other", Omits("endpoint b declares")),
];

const DECIDE: &[Case] = &[
    case("decide plan.yaml --results other", "--set slo.ttft.p50=20ms", Writes("plan.decision.md", "ttft p50 ≤ 20ms")),
    case(
        "decide inside/plan.yaml --results other --accept qps==80 --because quick",
        "--allow-outside",
        Prints("accepted a · brief"),
    ),
    case("decide plan.yaml --results other", "--only qps==80", Writes("plan.decision.md", "those of `--only")),
    case("decide plan.yaml --results other", "--skip qps==50", Writes("plan.decision.md", "those of `--skip")),
    case(
        "decide plan.yaml --results other --because cheap",
        "--accept qps==50",
        Writes("plan.decision.md", "qps 50**"),
    ),
    case("decide plan.yaml --results other", "--because cheap", Writes("plan.decision.md", "> cheap")),
    case("decide plan.yaml --results other", "--by Ada", Writes("plan.decision.md", "by Ada")),
    case(
        "decide plan.yaml --results other --accept qps==80 --because quick",
        "--output new.md",
        Writes("new.md", "> quick"),
    ),
    case("decide plan.yaml --results other", "--check", Ends).ends(4),
    case("decide plan.yaml --results other", "--format json", Prints("\"accepted\": ")),
    case(
        "decide plan.yaml --results other --accept qps==80 --because quick -o taken",
        "--force",
        Writes("taken", "> quick"),
    ),
    case("decide plan.yaml --format json", "--results other", Omits("\"sweep\": \"closed\"")),
];

const RUNS: &[Case] = &[
    case("show {run}", "--plan plan.yaml", Prints("ttft_from_schedule p50 ≤ 6ms: holds")),
    case("show {run} --plan plan.yaml", "--set slo.ttft.p50=1ms", Prints("p50 ≤ 1ms: misses")),
    case("show {run} --plan inside/plan.yaml", "--allow-outside", Prints("verdict: valid")),
    case("show {run} --plan plan.yaml --set \"slo={ ttft: { p99: 1s } }\"", "--verbose", Prints(" with none above it")),
    case("show {run}", "--definitions", Prints("cap wait: released − scheduled")),
    case("show {run}", "--format json", Prints("\"metrics\": {")),
    case("show {run}", "--results nowhere", Ends).ends(2),
    case("show {run}", "--color always", Prints("\u{1b}[")),
    case("list --results failed", "--attempts", Prints("\nattempt ")),
    case("list", "--format json", Prints("\"state\": \"whole\"")),
    case("list", "--results other", Omits("batch 2")),
    case("why repeat==1", "--plan plan.yaml", Prints("cached")),
    case("why qps==80 --plan plan.yaml", "--set seed=6", Prints("seed: 5 → 6")),
    case("why qps==80 --plan inside/plan.yaml", "--allow-outside", Prints("cached: committed")),
    case("why {run}", "--format json", Prints("\"identity\": {")),
    case("why {run} --plan plan.yaml", "--results nowhere", Prints("never committed")),
    case("verify", "--forget {run}", Prints("still exists")).ends(2),
    case("verify", "--format json", Prints("\"whole\": true")),
    case("verify", "--results other", Prints("2 runs in other: all whole")),
];

const EXPORT: &[Case] = &[
    case(
        "export plan.yaml --columns endpoint,price_per_hour",
        "--set endpoints.b.hardware.price_per_hour=2",
        Prints("b,2\n"),
    ),
    case("export inside/plan.yaml --results other", "--allow-outside", Prints("ttft_p50_ms")),
    case("export plan.yaml --columns endpoint", "--only sweep=='open'", Omits("b\n")),
    case("export plan.yaml --columns endpoint", "--skip endpoint=='b'", Omits("b\n")),
    case("export --results other", "--format markdown", Prints("| -------- |")),
    case("export --results other", "--rows requests", Prints("intended_prompt_tokens")),
    case("export --results other", "--columns endpoint,ttft_p50_ms", Prints("endpoint,ttft_p50_ms\n")),
    case("export --results other", "--wide", Prints("metric")),
    case("export --results other", "--output runs.csv", Writes("runs.csv", "ttft_p50_ms")),
    case("export --results other -o taken", "--force", Writes("taken", "ttft_p50_ms")),
    case("export --columns endpoint", "--results other", Omits("b\n")),
];

const REPORT: &[Case] = &[
    case("report plan.yaml --results other", "--set slo.ttft.p50=20ms", Writes("report.html", "≤ 20ms")),
    case("report inside/plan.yaml --results other", "--allow-outside", Writes("report.html", "<html")),
    case("report plan.yaml --results other", "--only qps==80", Prints("report.html: 1 run,")),
    case("report plan.yaml --results other", "--skip qps==80", Prints("report.html: 1 of 11 runs,")),
    case("report plan.yaml --results other", "--output page.html", Writes("page.html", "<html")),
    case("report plan.yaml --results other --only qps==80", "--figures pictures", Writes("pictures", "")),
    case("report plan.yaml --results other -o taken", "--force", Writes("taken", "<html")),
    case("report plan.yaml --results other", "--watch", Prints("<html")),
    case("report plan.yaml --results other --watch", "--port {port}", Prints("http://127.0.0.1:{port}/")),
    case("report plan.yaml --only repeat==0", "--results other", Prints("report.html: 2 of 4 runs,")),
];

const SHARED: &[Case] = &[
    case("push file://{lab}/new", "--plan plan.yaml", Prints("pushed 12 runs")),
    case("push file://{lab}/new --plan plan.yaml", "--set sweeps.open.matrix.qps=80", Prints("pushed 11 runs")),
    case("push file://{lab}/new --plan inside/plan.yaml", "--allow-outside", Prints("pushed 12 runs")),
    case("push file://{lab}/new", "--results other", Prints("pushed 2 runs")),
    case("push file://{lab}/shared", "--format json", Prints("\"outcome\": \"unchanged\"")),
    case("pull file://{lab}/shared --results new", "--plan plan.yaml", Prints("pulled 12 runs")),
    case(
        "pull file://{lab}/shared --results new --plan plan.yaml",
        "--set sweeps.open.matrix.qps=80",
        Prints("pulled 11 runs"),
    ),
    case("pull file://{lab}/shared --results new --plan inside/plan.yaml", "--allow-outside", Prints("pulled 12 runs")),
    case("pull file://{lab}/shared", "--results new", Writes("new/runs", "")),
    case("pull file://{lab}/shared", "--format json", Prints("\"outcome\": \"unchanged\"")),
];

/// The cases of this file.
pub const CASES: &[&[Case]] = &[COMPARE, CURVES, CAPACITY, DIAGNOSE, DECIDE, RUNS, EXPORT, REPORT, SHARED];

#[test]
fn flags_change_what_is_read_from_results() {
    let prepared = prepared();
    for cases in CASES {
        prepared.show(cases);
    }
    // The copies share the files of these runs.
    prepared.lab.ok(&["verify"]);
}
