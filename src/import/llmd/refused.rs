//! Files of llm-d-benchmark that say no load of a language model.

use crate::import::tree::Item;

/// Why a file is no workload; none where it may be one.
pub(super) fn why(tree: &Item) -> Option<&'static str> {
    let names = |key: &str, below: &str| tree.peek(key).is_some_and(|item| item.has(&[below]));
    let is_scenario = tree
        .peek("scenario")
        .is_some_and(|item| item.is_list() && item.children().iter().any(|one| one.has(&["name"])));
    if is_scenario {
        return Some(
            "this is a scenario: it deploys servers on Kubernetes, which a plan does not. Stand it up with llmdbenchmark, and give the \
             address of its gateway: `url` of an endpoint",
        );
    }
    if names("evaluation", "tasks") {
        return Some("this is a profile of lm-eval: it asks how good answers are, and sweepline how fast they come");
    }
    if tree.has(&["trafficClasses"]) {
        return Some(
            "this is a profile of priority-mix. Its classes are scenarios with `headers: { x-llm-d-inference-objective: … }` in a `mix`; \
             write them so",
        );
    }
    (tree.has(&["model_name", "pvc_name"])).then_some("this is a profile of the harness nop, which sends nothing")
}
