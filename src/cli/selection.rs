//! `--only EXPR` and `--skip EXPR` select the runs of a plan that a command uses.
//!
//! EXPR is a minijinja expression over the cell's axes, `sweep`, `repeat` (from 0, as in the rows) and
//! `id`, like `endpoint == 'vllm' and batch_size >= 8`. A run that does not have an axis named in the
//! expression does not match.

use std::collections::HashSet;

use clap::Args;
use indexmap::{IndexMap, IndexSet};
use minijinja::{Environment, UndefinedBehavior, Value};

use crate::cli::failure::Failure;
use crate::expand::{Expansion, Pending, PlannedRun};
use crate::plan::model::axis::server_flag;
use crate::plan::{Plan, Scalar, Sweep};
use crate::report::format::plain;
use crate::store::RunRecord;
use crate::units::Decimal;
use crate::units::text::counted;

/// The flags that select runs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Selection {
    /// Select only runs that match this expression, like "endpoint == 'vllm' and batch_size >= 8"; it may use
    /// `sweep`, `repeat` (from 0), `id` and the plan's axes
    #[arg(long, value_name = "EXPR")]
    pub only: Option<String>,
    /// Exclude runs that match this expression
    #[arg(long, value_name = "EXPR")]
    pub skip: Option<String>,
}

/// Names that every run has.
const ALWAYS: [&str; 3] = ["sweep", "repeat", "id"];

/// The selected part of a plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Picked {
    /// For each run, in order, whether it is selected.
    pub(crate) runs: Vec<bool>,
    /// For each cell without runs (yet), in order, the number of its repeats that are selected. These
    /// repeats have no ids, and an unknown load does not match anything.
    pub(crate) waiting: Vec<u32>,
}

impl Picked {
    /// Splits a list that states whether each run is selected and, after all runs, whether each repeat of
    /// the waiting cells is selected.
    fn of(holds: &[bool], runs: usize, pending: &[Pending]) -> Picked {
        let (runs, mut rest) = holds.split_at(runs);
        let mut waiting = Vec::with_capacity(pending.len());
        for cell in pending {
            let (own, others) = rest.split_at(cell.repeats as usize);
            waiting.push(own.iter().filter(|holds| **holds).count() as u32);
            rest = others;
        }
        Picked { runs: runs.to_vec(), waiting }
    }

    /// Returns the selected cells without runs (yet), with their selected repeats.
    pub(crate) fn cells(&self, pending: &[Pending]) -> Vec<Pending> {
        let cells = pending.iter().zip(&self.waiting).filter(|(_, repeats)| **repeats > 0);
        cells.map(|(cell, repeats)| Pending { repeats: *repeats, ..cell.clone() }).collect()
    }
}

impl Selection {
    /// Also excludes everything that `expression` does not match.
    pub(crate) fn narrow(&mut self, expression: &str) {
        self.only = Some(match &self.only {
            None => expression.to_owned(),
            Some(only) => format!("({expression}) and ({only})"),
        });
    }

    /// Whether the selection excludes nothing.
    pub(crate) fn is_everything(&self) -> bool {
        self.only.is_none() && self.skip.is_none()
    }

    /// Returns the selected runs, and the selected cells that wait for an earlier sweep. An empty selection
    /// is a usage error.
    pub(super) fn pick(&self, plan: &Plan, expansion: &Expansion) -> Result<Picked, Failure> {
        let Expansion { runs, pending, .. } = expansion;
        let of = Of::plan(plan, runs, pending);
        let all = runs.len() + pending.iter().map(|cell| cell.repeats as usize).sum::<usize>();
        let every = |holds: bool| vec![holds; all];
        let only = self.only.as_ref().map_or_else(
            || Ok(every(true)),
            |text| Filter::new(format!("--only \"{text}\""), text, &of)?.matching_some(),
        )?;
        let skip = self.skip.as_ref().map_or_else(
            || Ok(every(false)),
            |text| Filter::new(format!("--skip \"{text}\""), text, &of)?.matching(),
        )?;
        let picked: Vec<bool> = only.into_iter().zip(skip).map(|(only, skip)| only && !skip).collect();
        match self.skip.is_some() && !picked.contains(&true) {
            true => Err(self.skips_all()),
            false => Ok(Picked::of(&picked, runs.len(), pending)),
        }
    }

    /// Returns, for each run, whether it is selected; used by commands that read results. It is an error if
    /// everything selected waits for an earlier sweep.
    pub(super) fn pick_runs(&self, plan: &Plan, expansion: &Expansion) -> Result<Vec<bool>, Failure> {
        let picked = self.pick(plan, expansion)?;
        match picked.cells(&expansion.pending).as_slice() {
            waiting @ [first, ..] if !picked.runs.contains(&true) => {
                let count = counted(waiting.iter().map(|cell| cell.repeats as usize).sum::<usize>(), "run");
                let (state, why) = (first.state.words(), plain(&first.why));
                let ids = first.state.when_ids_come();
                let typed = self.typed(|text| format!("\"{text}\""));
                Err(Failure::Usage(format!("{}: {count} of the plan, {state}: {why}; {ids}", typed.trim_start())))
            }
            _ => Ok(picked.runs),
        }
    }

    fn skips_all(&self) -> Failure {
        let of = if self.only.is_some() { "the runs that --only selects" } else { "the plan's runs" };
        Failure::Usage(format!("--skip \"{}\" excludes all of {of}", self.skip.as_deref().unwrap_or_default()))
    }

    /// Returns the flags on a command line, each with a leading blank; `quoted` quotes a text for the shell.
    pub(super) fn typed(&self, quoted: impl Fn(&str) -> String) -> String {
        let flags = [("--only", &self.only), ("--skip", &self.skip)];
        let typed = flags.into_iter().filter_map(|(flag, text)| Some(format!(" {flag} {}", quoted(text.as_ref()?))));
        typed.collect()
    }
}

/// Maximum number of values of an axis listed when an expression selects nothing.
const MOST_VALUES: usize = 12;

/// Returns, for each run of the plan, whether it matches the expression `text`, which was not given with a
/// flag.
pub(crate) fn matching_runs(text: &str, plan: &Plan, runs: &[PlannedRun]) -> Result<Vec<bool>, Failure> {
    matching_cells(text, plan, (runs, &[])).map(|picked| picked.runs)
}

/// Returns the same information as [`matching_runs`], also for cells without runs (yet).
pub(super) fn matching_cells(
    text: &str,
    plan: &Plan,
    (runs, pending): (&[PlannedRun], &[Pending]),
) -> Result<Picked, Failure> {
    let holds = Filter::new(format!("\"{text}\""), text, &Of::plan(plan, runs, pending))?.matching_some()?;
    Ok(Picked::of(&holds, runs.len(), pending))
}

/// The values of one run by name.
type Context<'a> = IndexMap<&'a str, Value>;

/// Returns the structure that expressions use: `server.max_num_seqs` is a field of `server`.
fn nested(context: Context) -> Value {
    let (flags, others): (Vec<_>, Vec<_>) = context.into_iter().partition(|(name, _)| server_flag(name).is_some());
    let flags = flags.into_iter().filter_map(|(name, value)| Some((server_flag(name)?, value)));
    let server = Value::from_pairs(flags);
    Value::from_pairs(others.into_iter().chain([("server", server)]))
}

/// The runs to which an expression applies, and the axes that it may name.
struct Of<'a> {
    axes: HashSet<&'a str>,
    whole: &'static str,
    runs: Box<dyn Fn() -> Box<dyn Iterator<Item = Context<'a>> + 'a> + 'a>,
}

impl<'a> Of<'a> {
    fn plan(plan: &'a Plan, runs: &'a [PlannedRun], pending: &'a [Pending]) -> Of<'a> {
        let axes = plan.sweeps.values().flat_map(Sweep::fields).collect();
        let repeats = |cell: &'a Pending| (0..cell.repeats).map(move |repeat| context_of_waiting(cell, repeat));
        let all = move || Box::new(runs.iter().map(context).chain(pending.iter().flat_map(repeats))) as Box<_>;
        Of { axes, whole: "plan", runs: Box::new(all) }
    }

    /// Returns the remedy for an unknown name: it may be a value without quotes.
    fn unknown(&self, unknown: &str) -> String {
        let whole = self.whole;
        let axis_of = |context: Context<'a>| {
            context.into_iter().find(|(_, value)| value.as_str() == Some(unknown)).map(|(axis, _)| axis)
        };
        if let Some(axis) = (self.runs)().find_map(axis_of) {
            return format!(
                "`{unknown}` is a value, not an axis of this {whole}: put quotes around it, {axis} == '{unknown}'"
            );
        }
        let mut known: Vec<&str> = self.axes.iter().copied().chain(ALWAYS).collect();
        known.sort_unstable();
        format!("`{unknown}` is not an axis of this {whole}; the axes are {}", known.join(", "))
    }
}

/// A parsed expression.
struct Filter<'t, 'o, 'a> {
    environment: Environment<'t>,
    text: &'t str,
    /// The expression with its flag, with which error messages begin.
    what: String,
    /// The names in the expression.
    used: Vec<String>,
    of: &'o Of<'a>,
}

impl<'t, 'o, 'a> Filter<'t, 'o, 'a> {
    fn new(what: String, text: &'t str, of: &'o Of<'a>) -> Result<Self, Failure> {
        let wrong = |reason: String| Failure::Usage(format!("{what}: {reason}"));
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(100_000));
        let names = environment.compile_expression(text).map(|expression| expression.undeclared_variables(true));
        let hint = match has_single_equals(text) {
            true => "; write == to compare",
            false => "; write an expression like \"endpoint == 'vllm' and batch_size >= 8\"",
        };
        let names = names.map_err(|error| wrong(format!("{error}{hint}")))?;
        // Only server flags have names with a dot; for other names, minijinja evaluates the rest.
        let name_of = |dotted: String| match of.axes.contains(dotted.as_str()) {
            true => dotted,
            false if server_flag(&dotted).is_some() => dotted,
            false => dotted.split('.').next().unwrap_or_default().to_owned(),
        };
        let mut used: Vec<String> = names.into_iter().map(name_of).collect();
        used.sort_unstable();
        used.dedup();
        let is_known = |name: &String| of.axes.contains(name.as_str()) || ALWAYS.contains(&name.as_str());
        if let Some(unknown) = used.iter().find(|name| !is_known(name)) {
            return Err(wrong(of.unknown(unknown)));
        }
        Ok(Filter { environment, text, what, used, of })
    }

    /// Returns, for each run, whether the expression matches it.
    fn matching(&self) -> Result<Vec<bool>, Failure> {
        let wrong = |error: minijinja::Error| Failure::Usage(format!("{}: {error}", self.what));
        let expression = self.environment.compile_expression(self.text).map_err(wrong)?;
        let holds = |context: Context<'a>| {
            if self.used.iter().any(|name| !context.contains_key(name.as_str())) {
                return Ok(false);
            }
            expression.eval(nested(context)).map(|value| value.is_true()).map_err(wrong)
        };
        (self.of.runs)().map(holds).collect()
    }

    /// Returns, for each run, whether the expression matches it; fails if it matches none.
    fn matching_some(&self) -> Result<Vec<bool>, Failure> {
        let holds = self.matching()?;
        if holds.contains(&true) { Ok(holds) } else { Err(self.none()) }
    }

    /// Returns the error that the expression matches no run, with the available values of the names
    /// that it uses.
    fn none(&self) -> Failure {
        let mut there: Vec<(&String, IndexSet<String>)> =
            self.used.iter().filter(|name| *name != "id").map(|name| (name, IndexSet::new())).collect();
        for context in (self.of.runs)() {
            for (name, values) in &mut there {
                let value = context.get(name.as_str());
                values.extend(value.map(|value| value.as_str().map_or(value.to_string(), |text| format!("'{text}'"))));
            }
        }
        let told = there.iter().map(|(name, values)| {
            let mut shown: Vec<&str> = values.iter().take(MOST_VALUES).map(String::as_str).collect();
            shown.extend((values.len() > MOST_VALUES).then_some("…"));
            format!("; the values of {name} are {}", shown.join(", "))
        });
        let told: String = told.collect();
        Failure::Usage(format!("{}: no run of this {} matches{told}", self.what, self.of.whole))
    }
}

/// Whether a text has a `=` outside quotes that is not part of `==`, `!=`, `<=` or `>=`.
fn has_single_equals(text: &str) -> bool {
    let mut quote = None;
    let bytes = text.as_bytes();
    (0..bytes.len()).any(|at| match (bytes[at], quote) {
        (byte, Some(open)) => {
            quote = (byte != open).then_some(open);
            false
        }
        (byte @ (b'"' | b'\''), None) => {
            quote = Some(byte);
            false
        }
        (b'=', None) => {
            let before = at.checked_sub(1).map(|before| bytes[before]);
            bytes.get(at + 1) != Some(&b'=') && !before.is_some_and(|before| b"=!<>".contains(&before))
        }
        _ => false,
    })
}

/// Returns the results that match the expression, based on the information in their records. Records do not
/// contain the sweep, and they store values on further axes as text, which is parsed.
pub(crate) fn matching_records<'a>(text: &str, records: &[&'a RunRecord]) -> Result<Vec<&'a RunRecord>, Failure> {
    let own = ["endpoint", "model", "scenario", "batch_size", "qps"];
    let further = records.iter().flat_map(|record| record.spec.labels.axes.iter()).map(|(axis, _)| axis);
    let axes = own.into_iter().chain(further).collect();
    let of = Of {
        axes,
        whole: "results folder",
        runs: Box::new(|| Box::new(records.iter().map(|record| context_of_record(record)))),
    };
    let holds = Filter::new(format!("\"{text}\""), text, &of)?.matching_some()?;
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

/// Returns a value of an axis from its text: true or false, a number, or a text.
fn as_written(text: &str) -> Value {
    match (text, text.parse::<Decimal>()) {
        ("true" | "false", _) => Value::from(text == "true"),
        (_, Ok(number)) => scalar(&Scalar::Number(number)),
        _ => Value::from(text),
    }
}

fn context(run: &PlannedRun) -> IndexMap<&str, Value> {
    let mut context: IndexMap<&str, Value> = run.cell.iter().map(|(axis, value)| (axis, scalar(value))).collect();
    context.extend(run.of_arrivals().iter().map(|(axis, value)| (*axis, scalar(value))));
    context.insert("sweep", Value::from(run.sweep.to_string()));
    context.insert("repeat", Value::from(run.repeat));
    context.insert("id", Value::from(run.id.to_string()));
    context
}

/// Returns the names and values of a cell without runs (yet).
fn context_of_waiting(cell: &Pending, repeat: u32) -> IndexMap<&str, Value> {
    let mut context: IndexMap<&str, Value> = cell.cell.known().map(|(axis, value)| (axis, scalar(value))).collect();
    context.insert("sweep", Value::from(cell.sweep.to_string()));
    context.insert("repeat", Value::from(repeat));
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
    use crate::plan::{Format, ResolvedPlan, parse};

    fn plan() -> ResolvedPlan {
        let plan = json!({
            "sweepline": 1, "name": "t", "endpoints": { "e": { "engine": "mock" } }, "models": { "m": { "id": "x" } },
            "sweeps": {
                "closed": { "matrix": { "endpoint": "e", "model": "m", "batch_size": [1, 2, 8], "stream": [true, false] } },
                "open": { "matrix": { "endpoint": "e", "model": "m", "qps": [0.5, 5] }, "repeats": 2 },
            },
        });
        parse("plan.yaml".as_ref(), &plan.to_string(), Format::Yaml).expect("a plan").plan
    }

    /// Returns, for each run, whether the expression matches it. An expression that matches no run is not an
    /// error.
    fn holds(text: &str) -> Result<Vec<bool>, Failure> {
        let plan = plan();
        let runs = expand(&plan).expect("expands").runs;
        Filter::new(String::new(), text, &Of::plan(&plan, &runs, &[]))?.matching()
    }

    fn picked(only: Option<&str>, skip: Option<&str>) -> Result<Vec<bool>, Failure> {
        let plan = plan();
        let selection = Selection { only: only.map(str::to_owned), skip: skip.map(str::to_owned) };
        selection.pick(&plan, &expand(&plan).expect("expands")).map(|picked| picked.runs)
    }

    fn count(only: &str) -> usize {
        holds(only).expect("an expression").into_iter().filter(|picked| *picked).count()
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
            // A run that does not have an axis matches neither of the two expressions.
            ("qps == 5 or batch_size == 8", 0),
        ] {
            assert_eq!(count(only), expected, "{only}");
        }
    }

    #[test]
    fn mistakes_name_the_flag_and_the_remedy() {
        let Err(Failure::Usage(text)) = picked(None, Some("bach_size == 1")) else {
            panic!("expected an unknown axis")
        };
        assert!(text.starts_with("--skip \"bach_size == 1\": `bach_size` is not an axis"), "{text}");
        assert!(text.ends_with("batch_size, endpoint, id, model, qps, repeat, scenario, stream, sweep"), "{text}");
        for (only, skip, told) in [
            (Some("qps =="), None, "--only"),
            (Some("qps = 5"), None, "; write == to compare"),
            (Some("stream == true and endpoint = 'e'"), None, "; write == to compare"),
            (Some("turns == 5"), None, "the axes are batch_size, endpoint, id, model"),
            (
                Some("endpoint == e"),
                None,
                "`e` is a value, not an axis of this plan: put quotes around it, endpoint == 'e'",
            ),
            (Some("sweep == open"), None, "put quotes around it, sweep == 'open'"),
            (Some("qps == 999"), None, "no run of this plan matches; the values of qps are "),
            (Some("model == 'x' and id"), None, "matches; the values of model are 'm'"),
            (None, Some("true"), "--skip \"true\" excludes all of the plan's runs"),
            (Some("qps"), Some("qps"), "--skip \"qps\" excludes all of the runs that --only selects"),
        ] {
            let Err(Failure::Usage(text)) = picked(only, skip) else { panic!("{only:?} {skip:?}") };
            assert!(text.contains(told), "{text}");
        }
        assert!(!has_single_equals("a == '=' and b != 1 and c <= 2 and d >= 3"));
    }

    proptest! {
        /// Any expression yields either an answer for every run or an error. --skip keeps exactly the runs
        /// that --only would not select.
        #[test]
        fn only_and_skip_are_opposites(text in "(batch_size|qps|stream|sweep|repeat|[a-z]{1,3}|[0-9]{1,2}| |==|<|and|not|\\(|\\)|'){1,12}") {
            let (only, skip) = (picked(Some(&text), None), picked(None, Some(&text)));
            match holds(&text) {
                Err(_) => prop_assert!(only.is_err() && skip.is_err()),
                Ok(holds) => {
                    let not: Vec<bool> = holds.iter().map(|holds| !holds).collect();
                    prop_assert_eq!(only.ok(), Some(holds.clone()).filter(|holds| holds.contains(&true)));
                    prop_assert_eq!(skip.ok(), Some(not).filter(|not| not.contains(&true)));
                }
            }
        }
    }
}
