//! Comparisons that cannot show what they are for.

use super::super::view::{SweepView, View};
use super::super::{Finding, Scope};
use super::listed;
use crate::plan::scenario::Resolved;
use crate::plan::{Compare, Endpoint, Engine, Model, Scalar};

use super::equal::facts;

/// The fewest repeats that a comparison rests on.
const REPEATS: u32 = 3;

/// M007: a comparison is declared, and cells have fewer than 3 runs.
pub fn no_repeats(view: &View) -> Vec<Finding> {
    let finding = |sweep: &SweepView| {
        let compare = sweep.compare.filter(|_| sweep.sweep.repeats < REPEATS)?;
        let times = if sweep.sweep.repeats == 1 { "once" } else { "twice" };
        Some(Finding {
            scope: Scope::Sweep(sweep.name.to_owned()),
            at: [&sweep.path()[..], &[crate::plan::Step::from("repeats")]].concat(),
            message: format!("cells are compared by {}, and each is run {times}", compare.by),
            remedy: format!("write repeats: {REPEATS}, better 5, in the sweep"),
        })
    };
    view.sweeps.iter().filter_map(finding).collect()
}

/// M008: what is compared differs in more than the axis it is compared by.
pub fn several_variables(view: &View) -> Vec<Finding> {
    let finding = |sweep: &SweepView| {
        let compare = sweep.compare?;
        let (other, variables) = differing(sweep, compare)?;
        Some(Finding {
            scope: Scope::Sweep(sweep.name.to_owned()),
            at: sweep.path().into_iter().chain(super::super::view::steps!["matrix", compare.by.as_str()]).collect(),
            message: format!("`{other}` differs from the baseline `{}` in {}", compare.baseline, listed(&variables)),
            remedy: "change one at a time: give each step between the two a value of its own, and compare neighbours"
                .to_owned(),
        })
    };
    view.sweeps.iter().filter_map(finding).collect()
}

/// The first value that differs from the baseline in several variables, and these.
fn differing(sweep: &SweepView, compare: &Compare) -> Option<(Scalar, Vec<String>)> {
    let together = sweep.together_with(&compare.by);
    let baseline = compare.baseline.to_string();
    let mut others = sweep.values(&compare.by).into_iter().filter(|value| *value != compare.baseline);
    let several = |value: Scalar| {
        let mut variables = match compare.by.as_str() {
            "endpoint" => endpoints(named(&sweep.endpoints, &baseline)?, named(&sweep.endpoints, &value.to_string())?),
            "model" => models(named(&sweep.models, &baseline)?, named(&sweep.models, &value.to_string())?),
            "scenario" => scenarios(scenario(sweep, &baseline)?, scenario(sweep, &value.to_string())?),
            by => vec![by.to_owned()],
        };
        variables.extend(together.iter().map(|field| (*field).to_owned()));
        (variables.len() > 1).then_some((value, variables))
    };
    others.find_map(several)
}

fn named<'p, T>(entries: &[(&'p str, &'p T)], name: &str) -> Option<&'p T> {
    entries.iter().find(|(known, _)| *known == name).map(|(_, entry)| *entry)
}

fn scenario<'v>(sweep: &'v SweepView, name: &str) -> Option<&'v Resolved> {
    sweep.scenarios.iter().find(|(known, _)| known == name).map(|(_, scenario)| scenario)
}

/// Things that two endpoints differ in, each named once: what follows from another engine or another number of
/// accelerators is no variable of its own.
fn endpoints(a: &Endpoint, b: &Endpoint) -> Vec<String> {
    let mut variables: Vec<String> = Vec::new();
    // A mock's figures are all there is to it.
    if a.engine == Engine::Mock && b.engine == Engine::Mock {
        return variables;
    }
    let mut differs = |is: bool, name: &str| {
        if is {
            variables.push(name.to_owned());
        }
    };
    differs(a.engine != b.engine, "engine");
    differs(a.api != b.api, "api");
    let hardware = |endpoint: &Endpoint| endpoint.hardware.clone().unwrap_or_default();
    let (left, right) = (hardware(a), hardware(b));
    // What one does not say is not known to differ.
    let gpu = |a: &Option<String>, b: &Option<String>| a.is_some() && b.is_some() && a != b;
    differs(gpu(&left.gpu, &right.gpu), "gpu");
    differs(left.gpus.is_some() && right.gpus.is_some() && left.gpus != right.gpus, "gpus");
    let scaled = left.gpus != right.gpus;
    let (left, right) = (facts(a), facts(b));
    for (name, value) in left {
        let follows_count = scaled && matches!(name.as_str(), "tensor_parallel" | "pipeline_parallel");
        let is_parallel = matches!(name.as_str(), "tensor_parallel" | "pipeline_parallel");
        let follows_engine = a.engine != b.engine && !is_parallel;
        let other = right.iter().find(|(known, _)| *known == name);
        let is_other = other.is_some_and(|(_, other)| *other != value);
        differs(is_other && !follows_count && !follows_engine, &name);
    }
    variables
}

/// Things that two models differ in beside their weights.
fn models(a: &Model, b: &Model) -> Vec<String> {
    let both = |known: bool, differ: bool, name: &str| (known && differ).then(|| name.to_owned());
    let size = both(a.parameters.is_some() && b.parameters.is_some(), a.parameters != b.parameters, "parameters");
    let precision = both(a.precision.is_some() && b.precision.is_some(), a.precision != b.precision, "precision");
    size.into_iter().chain(precision).collect()
}

/// Things that two scenarios differ in.
fn scenarios(a: &Resolved, b: &Resolved) -> Vec<String> {
    let (left, right) = (&a.content, &b.content);
    // A system prompt or turns are how text is shared.
    let shared = |content: &crate::plan::scenario::Content| (content.reuse, content.system_tokens, content.turns);
    let differ = [
        (shared(left) != shared(right), "what requests share"),
        (left.prompt_tokens != right.prompt_tokens, "prompt_tokens"),
        (left.output_tokens != right.output_tokens, "output_tokens"),
        (a.stream != b.stream, "stream"),
        (a.ignore_eos != b.ignore_eos, "ignore_eos"),
        (a.temperature != b.temperature, "temperature"),
        (a.top_p != b.top_p, "top_p"),
        (a.presence_penalty != b.presence_penalty, "presence_penalty"),
        (a.frequency_penalty != b.frequency_penalty, "frequency_penalty"),
    ];
    differ.into_iter().filter(|(differ, _)| *differ).map(|(_, name)| name.to_owned()).collect()
}
