//! Rules about loads that show too little: only closed loops, a single load point or a single length, or
//! one number for two kinds of work (prefill and decode).

use std::collections::BTreeSet;

use super::super::finding::{Finding, Scope};
use super::super::view::{Rung, SweepView, View, steps};
use super::rate_above;
use crate::expand::Load;
use crate::plan::model::content::Content;
use crate::plan::{Plan, Slo, Step};

/// M002: the plan makes a claim about latency, but no sweep is an open loop.
pub(crate) fn closed_loop_only(view: &View) -> Vec<Finding> {
    let open = |rung: &Rung| matches!(rung.load, Load::Open { .. });
    let Some((at, claim)) = latency_claim(view.plan) else { return Vec::new() };
    if view.sweeps.iter().flat_map(|sweep| &sweep.rungs).any(open) {
        return Vec::new();
    }
    vec![Finding {
        scope: Scope::Plan,
        at,
        message: format!("`{claim}` refers to latency, but no sweep runs an open loop"),
        remedy: "add a sweep of rates, like `rates: { matrix: { qps: [1, 2, 5, 10] } }`".to_owned(),
        undisclosed: Vec::new(),
    }]
}

/// The place and name of the first field that makes a claim about latency.
fn latency_claim(plan: &Plan) -> Option<(Vec<Step>, &'static str)> {
    let limits = |slo: &Slo| [&slo.ttft, &slo.itl, &slo.tpot, &slo.e2e].iter().any(|limits| !limits.is_empty());
    if plan.slo.as_ref().is_some_and(limits) {
        return Some((steps!["slo"], "slo"));
    }
    if plan.goodput.is_some() {
        return Some((steps!["goodput"], "goodput"));
    }
    let latency = |metric: &crate::plan::MetricName| {
        ["ttft", "ttft_from_schedule", "ttfo", "e2e", "e2e_from_schedule", "tpot", "itl"].contains(&metric.key)
    };
    let compares = |compare: &Option<crate::plan::Compare>| {
        compare.as_ref().is_some_and(|compare| compare.metrics.0.iter().any(latency))
    };
    if compares(&plan.compare) {
        return Some((steps!["compare"], "compare"));
    }
    let (name, _) = plan.sweeps.iter().find(|(_, sweep)| compares(&sweep.compare))?;
    Some((steps!["sweeps", name.as_str(), "compare"], "compare"))
}

/// M003: an endpoint is measured at one load only.
pub(crate) fn one_load(view: &View) -> Vec<Finding> {
    let mut found = Vec::new();
    for name in view.plan.endpoints.keys() {
        let on = view.sweeps.iter().filter(|sweep| sweep.endpoints.iter().any(|(used, _)| used == name));
        let mut rungs = on.flat_map(|sweep| &sweep.rungs);
        let Some(first) = rungs.next() else { continue };
        if rungs.any(|rung| rung.load != first.load) {
            continue;
        }
        found.push(Finding {
            scope: Scope::Endpoint(name.clone()),
            at: first.at.clone(),
            message: format!("the endpoint is measured at a single load, `{}`", first.written()),
            remedy: format!("measure several loads, for example with {}", around(first)),
            undisclosed: Vec::new(),
        });
    }
    found
}

/// Describes what to write in the plan to add loads below and above the load of a rung.
fn around(rung: &Rung) -> String {
    if rung.speed.is_some() {
        return "another scenario that replays the trace at a different speed, like `speed: 2`".to_owned();
    }
    match &rung.load {
        Load::Closed { batch_size } => {
            let batch_size = *batch_size;
            let sizes: BTreeSet<u32> =
                [batch_size / 4, batch_size / 2, batch_size, batch_size.saturating_mul(2)].into();
            let sizes: Vec<String> = sizes.iter().filter(|size| **size > 0).map(u32::to_string).collect();
            format!("`batch_size: [{}]`", sizes.join(", "))
        }
        Load::Open { arrivals, .. } if arrivals.own_rate().is_some() => {
            "`qps: [1, 2, 4]`, and write the profile's rates as shares of `qps`, like 50%".to_owned()
        }
        Load::Open { qps, .. } => {
            let half = rate_above(qps.to_f64() / 2.0);
            format!("`qps: [{half}, {qps}, {}]`", rate_above(qps.to_f64() * 2.0))
        }
    }
}

/// M004: all requests have the same lengths.
pub(crate) fn one_length(view: &View) -> Vec<Finding> {
    let loads = || view.sweeps.iter().filter(|sweep| !sweep.sweep.measures_start());
    let mut shapes = loads().map(shape);
    let (Some(sweep), Some(first)) = (loads().next(), shapes.next()) else { return Vec::new() };
    let (prompt, output, turns) = first;
    if turns.1 > 1 || [prompt, output].iter().any(|(low, high)| low != high) || shapes.any(|shape| shape != first) {
        return Vec::new();
    }
    if view.sweeps.iter().any(SweepView::varies_lengths) {
        return Vec::new();
    }
    let (message, remedy) = match output.0 {
        // The requests do not generate text.
        0 => (format!("every text has {} tokens", prompt.0), "write several lengths, like `prompt_tokens: [64, 512]`"),
        output => (
            format!("every request has {} prompt tokens and {output} output tokens", prompt.0),
            "write several lengths, like `scenario: [B1, B2]` or `prompt_tokens: [256, 2048]`, or `lengths: chat` in a \
             scenario",
        ),
    };
    vec![Finding {
        scope: Scope::Plan,
        at: steps!["sweeps", sweep.name, "matrix", "scenario", 0],
        message,
        remedy: remedy.to_owned(),
        undisclosed: Vec::new(),
    }]
}

/// The smallest and largest number of prompt tokens, of output tokens and of turns in a sweep.
type Extents = ((u32, u32), (u32, u32), (u32, u32));

fn shape(sweep: &SweepView) -> Extents {
    let range = |axis: &str, of: fn(&Content) -> u32| sweep.tokens_of_classes(axis, |class| of(&class.content));
    let (system, prompt) = (range("system_tokens", |c| c.system_tokens), range("prompt_tokens", |c| c.prompt_tokens));
    let prefix = range("prefix", |c| c.prefix.map_or(0, |prefix| prefix.tokens));
    let sum = |end: fn((u32, u32)) -> u32| end(system).saturating_add(end(prefix)).saturating_add(end(prompt));
    let whole = (sum(|(low, _)| low), sum(|(_, high)| high));
    (whole, range("output_tokens", |c| c.output_tokens), range("turns", |c| c.turns))
}

/// M020: the hypothesis or the notes give capacity in total tokens, the sum of prompt and output tokens.
pub(crate) fn total_tokens(view: &View) -> Vec<Finding> {
    let plan = view.plan;
    let mut texts =
        vec![(Scope::Plan, steps!["hypothesis"], &plan.hypothesis), (Scope::Plan, steps!["notes"], &plan.notes)];
    for (name, sweep) in &plan.sweeps {
        let at = |field: &str| steps!["sweeps", name.as_str(), field];
        texts.push((Scope::Sweep(name.clone()), at("hypothesis"), &sweep.hypothesis));
        texts.push((Scope::Sweep(name.clone()), at("notes"), &sweep.notes));
    }
    let asked = texts.into_iter().filter(|(_, _, text)| text.as_deref().is_some_and(asks_for_total));
    let finding = |(scope, at, _): (Scope, Vec<Step>, _)| Finding {
        scope,
        message: "capacity is given in total tokens, the sum of prompt and output tokens".to_owned(),
        remedy: "give it as two figures instead: `output_throughput` (decode) and `prompt_throughput` (prefill)"
            .to_owned(),
        at,
        undisclosed: Vec::new(),
    };
    asked.map(finding).collect()
}

/// Whether a text mentions total tokens as a throughput: it contains "total" shortly before "tokens" or
/// "throughput", and a rate.
fn asks_for_total(text: &str) -> bool {
    let text = text.to_lowercase();
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric() && c != '/').filter(|word| !word.is_empty()).collect();
    let is_token = |word: &&str| word.starts_with("tok");
    let is_rate = |word: &&str| {
        ["throughput", "capacity", "tps", "second"].iter().any(|rate| word.starts_with(rate)) || word.ends_with("/s")
    };
    words.iter().enumerate().any(|(at, word)| {
        let next = &words[at + 1..words.len().min(at + 5)];
        let summed = *word == "total" && next.iter().any(|word| is_token(word) || word.starts_with("throughput"));
        summed && words.iter().any(is_rate)
    })
}
