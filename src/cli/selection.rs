//! `--only EXPR` and `--skip EXPR`: which runs of a plan a command looks at.
//!
//! An expression of minijinja over the cell's axes, `sweep`, `repeat` (from 0, as in the rows) and `id`, like
//! `endpoint == 'vllm' and batch_size >= 8`. A run that lacks an axis named in the expression does not match.

use std::collections::HashSet;

use clap::Args;
use indexmap::IndexMap;
use minijinja::{Environment, UndefinedBehavior, Value};

use crate::expand::PlannedRun;
use crate::plan::{Plan, Scalar};

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
    let wrong = |reason: String| Failure::Usage(format!("{flag} \"{text}\": {reason}"));
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(100_000));
    let expression = environment.compile_expression(text).map_err(|error| wrong(error.to_string()))?;
    let used = expression.undeclared_variables(false);
    let axes: HashSet<&str> = plan.sweeps.values().flat_map(|sweep| sweep.matrix.keys()).map(String::as_str).collect();
    if let Some(unknown) = used.iter().find(|name| !axes.contains(name.as_str()) && !ALWAYS.contains(&name.as_str())) {
        let mut known: Vec<&str> = axes.into_iter().chain(ALWAYS).collect();
        known.sort_unstable();
        return Err(wrong(format!("`{unknown}` is no axis of this plan; there are {}", known.join(", "))));
    }
    let holds = |run: &PlannedRun| {
        let context = context(run);
        if used.iter().any(|name| !context.contains_key(name.as_str())) {
            return Ok(false);
        }
        expression
            .eval(Value::from_pairs(context))
            .map(|value| value.is_true())
            .map_err(|error| wrong(error.to_string()))
    };
    runs.iter().map(holds).collect()
}

fn context(run: &PlannedRun) -> IndexMap<&str, Value> {
    let mut context: IndexMap<&str, Value> =
        run.cell.iter().map(|(axis, value)| (axis.as_str(), scalar(value))).collect();
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
