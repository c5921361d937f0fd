use std::collections::{BTreeMap, BTreeSet, HashSet};

use petgraph::graph::NodeIndex;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::drawing::drawing;
use super::drawn::{PoolState, PrunedLoad, RunState, States};
use super::render::{dot, json, mermaid, text};
use super::{Graph, GraphError, Node, Outcome, SkipReason, Walk, build};
use crate::expand::{Expansion, Pending, RunId, Waits, expand};

/// Returns the runs of a plan with the embedded mock `demo` and the endpoints `a`, `b` and `c`, of which
/// `a` and `b` share a resource.
fn runs(sweeps: Value) -> Expansion {
    let plan = json!({
        "sweepline": 1,
        "name": "test",
        "endpoints": {
            "demo": { "engine": "mock" },
            "a": { "url": "http://127.0.0.1:1/v1", "resource": "node" },
            "b": { "url": "http://127.0.0.1:2/v1", "resource": "node" },
            "c": { "url": "http://127.0.0.1:3/v1" },
        },
        "models": { "m": { "id": "m" } },
        "sweeps": sweeps,
    });
    expand(&serde_json::from_value(plan).expect("a plan")).expect("expands")
}

fn sweep(endpoints: &[&str], batches: &[u32], after: &[&str]) -> Value {
    json!({ "matrix": { "endpoint": endpoints, "model": "m", "batch_size": batches }, "after": after })
}

fn whole(sweeps: Value) -> (Graph, Expansion) {
    let expansion = runs(sweeps);
    (build(&expansion, &|_| true).expect("no cycle"), expansion)
}

fn name(graph: &Graph, expansion: &Expansion, at: NodeIndex) -> String {
    match graph.node(at) {
        Node::Serve { endpoint, .. } => format!("serve {endpoint}"),
        Node::Probe { endpoint, .. } => format!("probe {endpoint}"),
        Node::Gate { sweep } => format!("gate {sweep}"),
        Node::Run(run) => format!("run {} {}", expansion.runs[*run].sweep, expansion.runs[*run].spec.endpoint.name),
    }
}

/// Returns the names of the nodes in the order of a walk with one job, and a description of each skipped
/// node. All nodes succeed except the node called `fails`.
fn walked(graph: &Graph, expansion: &Expansion, fails: &str) -> (Vec<String>, Vec<String>) {
    let (mut walk, mut order, mut skipped) = (Walk::new(graph, 1), Vec::new(), Vec::new());
    while let Some(at) = walk.next_node() {
        let name_of = |at| name(graph, expansion, at);
        order.push(name_of(at));
        let outcome = if name_of(at) == fails { Outcome::Failed } else { Outcome::Ok };
        let lost = walk.done(at, outcome);
        skipped.extend(lost.into_iter().map(|lost| format!("{}: {}", name_of(lost.node), lost.reason)));
    }
    assert!(walk.is_finished() && walk.left().is_empty());
    (order, skipped)
}

#[test]
fn a_server_starts_before_its_probe_and_its_runs() {
    let (graph, expansion) = whole(json!({ "s": sweep(&["demo"], &[1, 2], &[]) }));
    let (order, _) = walked(&graph, &expansion, "");
    assert_eq!(order, ["serve demo", "probe demo", "run s demo", "run s demo"]);
}

#[test]
fn a_finished_plan_has_no_probe() {
    let expansion = runs(json!({ "s": sweep(&["demo", "c"], &[1, 2], &[]) }));
    assert!(build(&expansion, &|_| false).expect("no cycle").is_empty());
    let only_c = |at: usize| expansion.runs[at].spec.endpoint.name == "c";
    let graph = build(&expansion, &only_c).expect("no cycle");
    let (order, _) = walked(&graph, &expansion, "");
    assert_eq!(order, ["probe c", "run s c", "run s c"]);
}

#[test]
fn a_later_sweep_waits_at_the_gate_whatever_the_runs_did() {
    let sweeps = json!({ "late": sweep(&["c"], &[9], &["early"]), "early": sweep(&["c"], &[1], &[]) });
    let (graph, expansion) = whole(sweeps);
    let expected = ["probe c", "run early c", "gate early", "run late c"];
    assert_eq!(walked(&graph, &expansion, "").0, expected);
    assert_eq!(walked(&graph, &expansion, "run early c").0, expected);
}

#[test]
fn after_holds_across_a_sweep_that_has_nothing_to_do() {
    let expansion = runs(json!({
        "x": sweep(&["c"], &[1], &[]), "y": sweep(&["c"], &[2], &["x"]), "z": sweep(&["c"], &[3], &["y"]),
    }));
    let graph = build(&expansion, &|at| &*expansion.runs[at].sweep != "y").expect("no cycle");
    assert_eq!(walked(&graph, &expansion, "").0, ["probe c", "run x c", "gate x", "gate y", "run z c"]);
}

#[test]
fn a_dead_endpoint_loses_its_runs_and_no_others() {
    let (graph, expansion) = whole(json!({ "s": sweep(&["a", "demo"], &[1], &[]) }));
    let (order, skipped) = walked(&graph, &expansion, "probe a");
    assert!(order.contains(&"run s demo".to_owned()) && !order.contains(&"run s a".to_owned()));
    assert_eq!(skipped, ["run s a: endpoint `a` is not ready"]);
    let (order, skipped) = walked(&graph, &expansion, "serve demo");
    assert_eq!(order.iter().filter(|name| name.ends_with("demo")).collect::<Vec<_>>(), ["serve demo"]);
    let reason = SkipReason::NotStarted { endpoint: "demo".to_owned() };
    assert_eq!(skipped, [format!("probe demo: {reason}"), format!("run s demo: {reason}")]);
}

#[test]
fn a_shared_run_is_one_node_and_both_gates_wait_for_it() {
    let (graph, expansion) = whole(json!({
        "x": sweep(&["c"], &[1, 2], &[]), "y": sweep(&["c"], &[2, 3], &["x"]), "z": sweep(&["c"], &[4], &["x", "y"]),
    }));
    let runs = graph.nodes().into_iter().filter(|at| matches!(graph.node(*at), Node::Run(_))).count();
    assert_eq!((expansion.runs.len(), runs), (5, 4));
    let gates: Vec<NodeIndex> =
        graph.nodes().into_iter().filter(|at| matches!(graph.node(*at), Node::Gate { .. })).collect();
    let shared = expansion.runs.iter().position(|run| &*run.sweep == "x" && run.spec.load.batch_size() == Some(2));
    for gate in gates {
        assert!(graph.before(gate).any(|at| graph.node(at) == &Node::Run(shared.expect("a run"))));
    }
    assert_eq!(walked(&graph, &expansion, "").0.last().expect("nodes"), "run z c");
}

#[test]
fn circles_are_shown() {
    let sweeps = json!({
        "x": sweep(&["c"], &[1], &[]), "p": sweep(&["c"], &[1], &["x", "q"]),
        "q": sweep(&["c"], &[2], &["r"]), "r": sweep(&["c"], &[3], &["p"]),
    });
    let expansion = runs(sweeps);
    let error = build(&expansion, &|_| true).expect_err("a cycle");
    assert_eq!(error.to_string(), "dependency cycle: p → q → r → p; remove one `after`");
    let expansion = self::runs(json!({ "x": sweep(&["c"], &[1], &["nobody"]) }));
    let error = build(&expansion, &|_| true).expect_err("unknown");
    assert_eq!(error, GraphError::UnknownSweep { sweep: "x".into(), after: "nobody".into() });
}

#[test]
fn drawings_say_everything_and_escape_it() {
    let (graph, expansion) = whole(json!({ "a \"b\" <c>": sweep(&["demo"], &[1], &[]) }));
    let drawing = drawing(&graph, &expansion, &States::default());
    assert!(dot(&drawing).contains(r#"label="a \"b\" <c>: endpoint=demo model=m batch_size=1 repeat=0""#));
    assert!(mermaid(&drawing).contains("a #34;b#34; #60;c#62;: endpoint=demo"));
    assert_eq!(json(&drawing)["edges"], json!([[0, 1], [1, 2]]));
    assert_eq!(json(&drawing)["nodes"][0], json!({ "kind": "serve", "label": "start demo", "count": 1 }));
}

#[test]
fn a_large_sweep_is_drawn_as_one_node() {
    let batches: Vec<u32> = (1..=201).collect();
    let (graph, expansion) =
        whole(json!({ "big": sweep(&["c"], &batches, &[]), "s": sweep(&["c"], &[300], &["big"]) }));
    let drawing = drawing(&graph, &expansion, &States::default());
    let labels: Vec<&str> = drawing.nodes.iter().map(|node| node.label.as_str()).collect();
    assert_eq!(labels[..3], ["probe c", "big: 201 runs, drawn as one", "big has ended"]);
    assert_eq!(drawing.edges, BTreeSet::from([(0, 1), (0, 3), (1, 2), (2, 3)]));
}

#[test]
fn a_search_stands_behind_its_runs_and_before_the_gate() {
    let (graph, expansion) =
        whole(json!({ "find": sweep(&["c"], &[4, 8], &[]), "s": sweep(&["c"], &[300], &["find"]) }));
    let of = |batch: &str| expansion.runs.iter().find(|run| run.cell.get("batch_size").unwrap().to_string() == batch);
    let runs = ["8", "4"].map(|batch| (of(batch).expect("a run").id, format!("{batch} was asked for")));
    let pool = PoolState {
        sweep: "find".into(),
        kind: "ladder",
        title: "find · c".into(),
        state: "done",
        standing: "enough".into(),
        found: None,
        runs: runs.into(),
        pruned: vec![PrunedLoad { label: "16".into(), why: "8 is too much".into(), runs: 2 }],
    };
    let drawing = drawing(&graph, &expansion, &States { runs: vec![RunState::of("done"); 2], pools: vec![pool] });
    let at = |label: &str| drawing.nodes.iter().position(|node| node.label.contains(label)).expect(label);
    let [eight, four, find, gate, left] = ["batch_size=8", "batch_size=4", "find · c", "has ended", "16"].map(at);
    let chain = [(at("probe"), eight), (eight, four), (four, find), (find, gate), (find, left), (gate, at("=300"))];
    assert_eq!(drawing.edges, chain.into_iter().chain([(at("probe"), at("=300"))]).collect(), "{drawing:#?}");
    assert_eq!(drawing.nodes[four].asked_by, Some(find));
    insta::assert_snapshot!(text(&drawing), @r"
    probe     probe c
    done      find · c: enough
      done      find: endpoint=c model=m batch_size=8 repeat=0: 8 was asked for
      done      find: endpoint=c model=m batch_size=4 repeat=0: 4 was asked for
      pruned    16: 8 is too much
    gate      find has ended
    pending   s: endpoint=c model=m batch_size=300 repeat=0 (when find has ended)
    ");
}

#[test]
fn cells_that_wait_stand_between_the_sweep_that_they_ask_and_their_own_gate() {
    let sweeps = json!({
        "find": { "matrix": { "endpoint": "c", "model": "m", "batch_size": [4, 8] }, "stop": "saturated" },
        "hold": {
            "matrix": { "endpoint": "c", "model": "m", "batch_size": { "from": "find", "take": "max_batch_size_under_slo" } },
            "after": ["find"], "repeats": 3,
        },
        "last": sweep(&["c"], &[300], &["hold"]),
    });
    let (graph, mut expansion) = whole(sweeps);
    let drawn = drawing(&graph, &expansion, &States::default());
    let at = |label: &str| drawn.nodes.iter().position(|node| node.label.contains(label)).expect(label);
    let [find, cell, hold] = ["find has ended", "hold: endpoint=c", "hold has ended"].map(at);
    assert!(drawn.edges.contains(&(find, cell)) && drawn.edges.contains(&(cell, hold)), "{drawn:#?}");
    assert_eq!(
        (drawn.nodes[cell].kind, drawn.nodes[cell].count, drawn.nodes[cell].state),
        ("cell", 3, Some("pending"))
    );
    // If a sweep has many cells, all of its cells with the same state and reason are drawn as one node.
    let one = expansion.pending[0].clone();
    expansion.pending = vec![one.clone(); 200];
    expansion.pending.push(Pending { state: Waits::Blocked, why: "no answer".into(), ..one });
    let drawn = drawing(&graph, &expansion, &States::default());
    let cells: Vec<_> = drawn.nodes.iter().filter(|node| node.kind == "cell").collect();
    let told: Vec<_> = cells.iter().map(|node| (node.label.as_str(), node.count, node.state)).collect();
    assert_eq!(told[0], ("hold: 200 cells, drawn as one", 600, Some("pending")));
    assert!(told.len() == 2 && told[1].0.starts_with("hold: endpoint=c ") && told[1].2 == Some("blocked"), "{told:?}");
    assert!(mermaid(&drawn).contains("class n") && mermaid(&drawn).contains(" blocked"));
}

#[derive(Debug, Clone)]
struct Case {
    sweeps: Vec<(Vec<&'static str>, Vec<u32>, Vec<usize>)>,
    jobs: usize,
    /// The events: the index of a running or waiting node, and what happens to the node.
    steps: Vec<(usize, Step)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Ends,
    Fails,
    /// A running node begins to wait for its server.
    Waits,
    /// A waiting node returns to the queue.
    ComesBack,
    /// A waiting node fails.
    IsLost,
}

fn cases() -> impl Strategy<Value = Case> {
    let endpoints = proptest::sample::subsequence(vec!["demo", "a", "b", "c"], 1..=4);
    let batches = proptest::sample::subsequence(vec![1u32, 2, 3], 1..=3);
    let sweeps = proptest::collection::vec((endpoints, batches, proptest::collection::vec(0usize..6, 0..3)), 1..6);
    let step = prop_oneof![
        8 => Just(Step::Ends),
        2 => Just(Step::Fails),
        3 => Just(Step::Waits),
        3 => Just(Step::ComesBack),
        1 => Just(Step::IsLost),
    ];
    (sweeps, 1usize..4, proptest::collection::vec((0usize..4, step), 120)).prop_map(|(sweeps, jobs, steps)| Case {
        sweeps,
        jobs,
        steps,
    })
}

/// Returns the runs of a case. Each sweep comes after some of the previous sweeps, as chosen by the case,
/// and the sweeps are declared in reverse order.
fn case_runs(case: &Case) -> Expansion {
    let mut table = serde_json::Map::new();
    for (at, (endpoints, batches, after)) in case.sweeps.iter().enumerate().rev() {
        let after: BTreeSet<String> = after.iter().filter(|a| **a < at).map(|a| format!("s{a}")).collect();
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        table.insert(format!("s{at}"), sweep(endpoints, batches, &after));
    }
    runs(Value::Object(table))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_walk_keeps_the_rules(case in cases()) {
        let expansion = case_runs(&case);
            let graph = build(&expansion, &|_| true).expect("no cycle");
        prop_assert!(petgraph::algo::toposort(&graph.inner, None).is_ok());
        let mut walk = Walk::new(&graph, case.jobs);
        let (mut under_way, mut waiting) = (Vec::<NodeIndex>::new(), Vec::<NodeIndex>::new());
        let mut seen = BTreeMap::<NodeIndex, u32>::new();
        let (mut ended, mut back) = (HashSet::new(), HashSet::new());
        let mut steps = case.steps.iter().cycle();
        // After 400 turns, these steps end all nodes, so the walk terminates whatever events were drawn.
        let last = [(0, Step::Ends), (0, Step::ComesBack)];
        for turn in 0.. {
            if walk.is_finished() {
                break;
            }
            while let Some(at) = walk.next_node() {
                if !back.remove(&at) {
                    *seen.entry(at).or_default() += 1;
                }
                prop_assert!(graph.before(at).all(|before| ended.contains(&before)), "started too early");
                under_way.push(at);
                let taken: Vec<&str> = under_way.iter().filter_map(|at| graph.resource(*at)).collect();
                prop_assert!(taken.len() <= case.jobs);
                let kept: Vec<&str> = waiting.iter().filter_map(|at| graph.resource(*at)).chain(taken).collect();
                prop_assert_eq!(kept.iter().collect::<HashSet<_>>().len(), kept.len(), "one of a resource");
            }
            prop_assert!(!under_way.is_empty() || !waiting.is_empty(), "stuck");
            prop_assert_eq!(walk.under_way(), under_way.len() + waiting.len());
            let (which, step) = if turn < 400 { *steps.next().expect("a cycle") } else { last[turn % 2] };
            let those = if matches!(step, Step::ComesBack | Step::IsLost) { &mut waiting } else { &mut under_way };
            if those.is_empty() {
                continue;
            }
            let at = those.swap_remove(which % those.len());
            let outcome = match step {
                Step::Waits => {
                    walk.wait(at);
                    waiting.push(at);
                    continue;
                }
                Step::ComesBack => {
                    prop_assert!(walk.come_back(at) && !walk.come_back(at));
                    back.insert(at);
                    continue;
                }
                Step::Ends => Outcome::Ok,
                Step::Fails | Step::IsLost => Outcome::Failed,
            };
            let lost = walk.done(at, outcome);
            ended.insert(at);
            for skipped in lost {
                *seen.entry(skipped.node).or_default() += 1;
                ended.insert(skipped.node);
            }
        }
        prop_assert_eq!(seen.len(), graph.len());
        prop_assert!(seen.values().all(|times| *times == 1), "each node once");
        let runs: HashSet<RunId> = expansion.runs.iter().map(|run| run.id).collect();
        let nodes = seen.keys().filter(|at| matches!(graph.node(**at), Node::Run(_))).count();
        prop_assert_eq!(nodes, runs.len(), "one node per id");
    }
}
