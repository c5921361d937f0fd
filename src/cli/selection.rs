//! `--only EXPR` and `--skip EXPR`: which runs of a plan a command looks at.
//!
//! An expression of minijinja over the cell's axes, `sweep`, `repeat` (from 0, as in the rows) and `id`, like
//! `endpoint == 'vllm' and batch_size >= 8`. A run that lacks an axis named in the expression does not match.

use std::collections::HashSet;

use clap::Args;
use indexmap::IndexMap;
use minijinja::{Environment, UndefinedBehavior, Value};

use crate::expand::PlannedRun;
use crate::plan::{Plan, Scalar, Sweep};
use crate::store::RunRecord;
use crate::units::Decimal;

use super::Failure;

/// Which runs.
#[derive(Debug, Clone, Default, Args)]
pub struct Selection {
    /// Only runs for which this holds, like "endpoint == 'vllm' and batch_size >= 8": axes of the plan, sweep, repeat
    /// (from 0) and id
    #[arg(long, value_name = "EXPR")]
    pub only: Option<String>,
    /// Not the runs for which this holds
    #[arg(long, value_name = "EXPR")]
    pub skip: Option<String>,
}

/// Names that every run has.
const ALWAYS: [&str; 3] = ["sweep", "repeat", "id"];

impl Selection {
    /// Whether nothing is left out.
    pub fn is_everything(&self) -> bool {
        self.only.is_none() && self.skip.is_none()
    }

    /// For each run, in order, whether it is selected.
    pub fn pick(&self, plan: &Plan, runs: &[PlannedRun]) -> Result<Vec<bool>, Failure> {
        let matches = |text: &Option<String>, flag: &str| match text {
            None => Ok(None),
            Some(text) => evaluate(text, flag, plan, runs).map(Some),
        };
        let only = matches(&self.only, "--only")?;
        let skip = matches(&self.skip, "--skip")?;
        let holds = |list: &Option<Vec<bool>>, at: usize, none: bool| list.as_ref().map_or(none, |list| list[at]);
        Ok((0..runs.len()).map(|at| holds(&only, at, true) && !holds(&skip, at, false)).collect())
    }
}

fn evaluate(text: &str, flag: &str, plan: &Plan, runs: &[PlannedRun]) -> Result<Vec<bool>, Failure> {
    let axes: HashSet<&str> = plan.sweeps.values().flat_map(Sweep::fields).collect();
    matching(&format!("{flag} \"{text}\""), text, (axes, "plan"), runs.iter().map(context))
}

/// For which of the `contexts`, the values of one run each, the expression `text` holds. `axes` are those of the `whole`
/// that they belong to; a mistake is told after `what`.
fn matching<'a>(
    what: &str,
    text: &str,
    (axes, whole): (HashSet<&str>, &str),
    contexts: impl Iterator<Item = IndexMap<&'a str, Value>>,
) -> Result<Vec<bool>, Failure> {
    let wrong = |reason: String| Failure::Usage(format!("{what}: {reason}"));
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(100_000));
    let expression = environment.compile_expression(text).map_err(|error| wrong(error.to_string()))?;
    let used = expression.undeclared_variables(false);
    if let Some(unknown) = used.iter().find(|name| !axes.contains(name.as_str()) && !ALWAYS.contains(&name.as_str())) {
        let mut known: Vec<&str> = axes.into_iter().chain(ALWAYS).collect();
        known.sort_unstable();
        return Err(wrong(format!("`{unknown}` is no axis of this {whole}; there are {}", known.join(", "))));
    }
    let holds = |context: IndexMap<&str, Value>| {
        if used.iter().any(|name| !context.contains_key(name.as_str())) {
            return Ok(false);
        }
        expression
            .eval(Value::from_pairs(context))
            .map(|value| value.is_true())
            .map_err(|error| wrong(error.to_string()))
    };
    contexts.map(holds).collect()
}

/// The results for which the expression holds, over what a record knows of its cell: no sweep, and the values of further
/// axes as their text says them.
pub fn matching_records<'a>(text: &str, records: &[&'a RunRecord]) -> Result<Vec<&'a RunRecord>, Failure> {
    let own = ["endpoint", "model", "scenario", "batch_size", "qps"];
    let further = records.iter().flat_map(|record| record.spec.labels.axes.iter()).map(|(axis, _)| axis);
    let axes = own.into_iter().chain(further).collect();
    let contexts = records.iter().map(|record| context_of_record(record));
    let holds = matching(&format!("\"{text}\""), text, (axes, "results folder"), contexts)?;
    Ok(records.iter().zip(holds).filter(|(_, holds)| *holds).map(|(record, _)| *record).collect())
}

fn context_of_record(record: &RunRecord) -> IndexMap<&str, Value> {
    let spec = &record.spec;
    let mut context: IndexMap<&str, Value> =
        spec.labels.axes.iter().map(|(axis, value)| (axis, as_written(value))).collect();
    context.insert("endpoint", Value::from(spec.endpoint.name.as_str()));
    context.insert("model", Value::from(&*spec.labels.model));
    context.insert("scenario", Value::from(&*spec.labels.scenario));
    context.extend(spec.load.batch_size().map(|size| ("batch_size", Value::from(size))));
    context.extend(spec.load.qps().map(|qps| ("qps", scalar(&Scalar::Number(qps)))));
    context.insert("repeat", Value::from(record.spec.repeat));
    context.insert("id", Value::from(record.id.as_str()));
    context
}

/// A value of an axis from its text: true and false, a number, or the text.
fn as_written(text: &str) -> Value {
    match (text, text.parse::<Decimal>()) {
        ("true" | "false", _) => Value::from(text == "true"),
        (_, Ok(number)) => scalar(&Scalar::Number(number)),
        _ => Value::from(text),
    }
}

fn context(run: &PlannedRun) -> IndexMap<&str, Value> {
    let mut context: IndexMap<&str, Value> = run.cell.iter().map(|(axis, value)| (axis, scalar(value))).collect();
    context.insert("sweep", Value::from(run.sweep.to_string()));
    context.insert("repeat", Value::from(run.repeat));
    context.insert("id", Value::from(run.id.to_string()));
    context
}

fn scalar(value: &Scalar) -> Value {
    match value {
        Scalar::Bool(flag) => Value::from(*flag),
        Scalar::Text(text) => Value::from(text.as_str()),
        Scalar::Number(number) => match number.to_string().parse::<i64>() {
            Ok(whole) => Value::from(whole),
            Err(_) => Value::from(number.to_f64()),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::expand::expand;

    fn plan() -> Plan {
        serde_json::from_value(json!({
            "sweepline": 1, "name": "t", "endpoints": { "e": { "engine": "mock" } }, "models": { "m": { "id": "x" } },
            "sweeps": {
                "closed": { "matrix": { "endpoint": "e", "model": "m", "batch_size": [1, 2, 8], "stream": [true, false] } },
                "open": { "matrix": { "endpoint": "e", "model": "m", "qps": [0.5, 5] }, "repeats": 2 },
            },
        }))
        .expect("a plan")
    }

    fn picked(only: Option<&str>, skip: Option<&str>) -> Result<Vec<bool>, Failure> {
        let plan = plan();
        let runs = expand(&plan).expect("expands").runs;
        let selection = Selection { only: only.map(str::to_owned), skip: skip.map(str::to_owned) };
        selection.pick(&plan, &runs)
    }

    fn count(only: &str) -> usize {
        picked(Some(only), None).expect("an expression").into_iter().filter(|picked| *picked).count()
    }

    #[test]
    fn axes_keep_their_types() {
        for (only, expected) in [
            ("qps == 0.5", 2),
            ("qps >= 1", 2),
            ("batch_size > 1", 4),
            ("batch_size == '2'", 0),
            ("stream", 3),
            ("not stream", 3),
            ("sweep == 'open' and repeat == 0", 2),
            ("repeat == 1", 2),
            ("model == 'm'", 10),
            ("true", 10),
            // A run that lacks an axis matches neither way.
            ("qps == 5 or batch_size == 8", 0),
        ] {
            assert_eq!(count(only), expected, "{only}");
        }
    }

    #[test]
    fn mistakes_name_the_flag_and_the_remedy() {
        let Err(Failure::Usage(text)) = picked(None, Some("bach_size == 1")) else { panic!("an unknown axis") };
        assert!(text.starts_with("--skip \"bach_size == 1\": `bach_size` is no axis"), "{text}");
        assert!(text.ends_with("batch_size, endpoint, id, model, qps, repeat, stream, sweep"), "{text}");
        assert!(picked(Some("qps =="), None).is_err());
    }

    proptest! {
        /// Whatever is written, it is an answer for every run or an error; skipping what only would choose leaves the
        /// rest.
        #[test]
        fn only_and_skip_are_opposites(text in "(batch_size|qps|stream|sweep|repeat|[a-z]{1,3}|[0-9]{1,2}| |==|<|and|not|\\(|\\)|'){1,12}") {
            let (only, skip) = (picked(Some(&text), None), picked(None, Some(&text)));
            prop_assert_eq!(only.is_ok(), skip.is_ok());
            if let (Ok(only), Ok(skip)) = (only, skip) {
                prop_assert!(only.iter().zip(&skip).all(|(only, skip)| only != skip));
            }
        }
    }
}
