//! Files of llm-d-benchmark without a load for a language model.

use crate::import::tree::Item;

/// Returns the reason why a file is not a workload; `None` if it may be one.
pub(super) fn why(tree: &Item) -> Option<&'static str> {
    let names = |key: &str, below: &str| tree.peek(key).is_some_and(|item| item.has(&[below]));
    let is_scenario = tree
        .peek("scenario")
        .is_some_and(|item| item.is_list() && item.children().iter().any(|one| one.has(&["name"])));
    if is_scenario {
        return Some(
            "this is a scenario: it deploys servers on Kubernetes, which a plan does not. Deploy it with \
             llmdbenchmark and use the address of its gateway as `url` of an endpoint",
        );
    }
    if names("evaluation", "tasks") {
        return Some("this is a profile of lm-eval: it measures the quality of responses, sweepline their speed");
    }
    if tree.has(&["trafficClasses"]) {
        return Some(
            "this is a profile of priority-mix. Write its classes as scenarios with `headers: { \
             x-llm-d-inference-objective: … }` in a `mix`",
        );
    }
    (tree.has(&["model_name", "pvc_name"])).then_some("this is a profile of the harness nop, which sends nothing")
}
