//! `sweepline compare PLAN` shows which arm is better, by how much, and which differences would
//! have been detected. Sends no requests.

pub(super) mod arms;
pub(super) mod notes;
pub(super) mod samples;

use std::path::PathBuf;

use arms::{Arms, Declared, Picked, Results, arms};
use clap::{Args, ValueEnum};
use samples::{Absent, Earlier, Lacking, Sample};

use super::changes::Changes;
use super::class::OneClass;
use super::counting::Explain;
use super::given_up::GivenUpRuns;
use super::left_out::LeftOut;
use super::replace::{Overwrite, begins_with_key};
use super::results::{Readings, no_results};
use super::selection::Selection;
use super::workspace::Workspace;
use crate::analysis::comparison::{
    Adjusted, CellAnswer, Comparison, Declaration, Family, Gate, Guardrail, Launches, Outcome, Rules, Sides, Test,
    expand, guardrail,
};
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::Folder;
use crate::cli::{lints, output, stderr};
use crate::expand::{Expansion, PlannedRun};
use crate::lint::Lint;
use crate::plan::model::compare::{axis_name, is_margin};
use crate::plan::{Compare, MetricName, Plan, Scalar};
use crate::report::{answers, comparison as page};
use crate::store::Store;
use crate::units::{Share, UnitError};

/// The arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The plan, YAML or TOML
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    class: OneClass,
    /// The axis whose values are compared; by default, the comparison in the plan's `compare` is used
    #[arg(long, value_name = "AXIS", requires = "baseline")]
    by: Option<String>,
    /// The value of the --by axis with which all other values are compared
    #[arg(long, value_name = "VALUE", requires = "by")]
    baseline: Option<String>,
    /// Metrics to compare, by their names in docs/METRICS.md, like ttft_p99,output_throughput
    #[arg(long, value_name = "METRIC", value_delimiter = ',')]
    metrics: Vec<MetricName>,
    /// Instead of comparing the values of an axis, compare the results with earlier ones: a results
    /// folder, or a file written by --write-baseline
    #[arg(long, value_name = "EARLIER", conflicts_with = "by")]
    against: Option<PathBuf>,
    /// Write the plan's results to FILE as a baseline for --against, without comparing anything
    #[arg(long, value_name = "FILE", conflicts_with_all = ["against", "by", "gate"])]
    write_baseline: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Non-inferiority margin, like 2%: report whether each arm is shown not to be worse than its baseline
    /// by more than this margin
    #[arg(long, value_name = "SHARE", value_parser = margin, allow_hyphen_values = true)]
    margin: Option<Share>,
    /// Exit with 4 if an arm is worse than its baseline, or if more of its requests fail, and otherwise with 2
    /// if a test could not be made. With a margin, exit with 0 if every arm is shown to be within the margin,
    /// with 4 if an arm is shown to be outside it, and otherwise with 2
    #[arg(long)]
    gate: bool,
    /// Adjust p-values by the method of Benjamini and Hochberg instead of Holm's. This detects more
    /// differences, but on average up to 5 % of the differences found are false. Cannot be combined with --gate
    #[arg(long, conflicts_with = "gate")]
    explore: bool,
    /// Include invalid runs in the comparison
    #[arg(long)]
    include_invalid: bool,
    /// Compute how many repeats are needed to detect a difference of this many percent
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = percent, allow_hyphen_values = true)]
    see: f64,
    /// Text for people, Markdown for a pull request, or JSON for programs (schemas/compare.schema.json)
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    explain: Explain,
    #[command(flatten)]
    folder: Folder,
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// For people.
    Text,
    /// For a pull request.
    Markdown,
    /// For programs.
    Json,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
    number.filter(|number| *number > 0.0 && *number <= 1000.0).ok_or_else(|| "write a number like 5, in percent".into())
}

/// Parses a margin in the same form as in plans. The percent sign is required, because without it 0.02
/// could mean 2 % or 0.02 %.
fn margin(text: &str) -> Result<Share, String> {
    let share: Option<Share> = match text.trim().ends_with('%') {
        // The remedy is the same for text that is not a number and for values outside 0 to 100 %.
        true => text.parse().ok(),
        false => Some(text.parse().map_err(|error: UnitError| error.to_string())?),
    };
    share.filter(|share| is_margin(*share)).ok_or_else(|| "write a share above 0% and below 100%, like 2%".into())
}

/// Runs the command.
pub(super) fn run(args: CompareArgs) -> Result<Exit, Failure> {
    args.explain.check(args.format == OutputFormat::Text)?;
    let workspace = Workspace::open(&args.plan, &args.changes, &args.folder)?;
    let plan = workspace.plan();
    let mut picked = args.selection.pick_runs(plan, &workspace.expansion)?;
    args.class.check(workspace.expansion.runs.iter().flat_map(|run| &run.spec.mix).map(|class| &*class.name))?;
    let class = args.class.name.as_deref();
    let has_class = |run: &PlannedRun| class.is_none_or(|class| run.spec.mix.iter().any(|own| &*own.name == class));
    picked.iter_mut().zip(&workspace.expansion.runs).for_each(|(picked, run)| *picked &= has_class(run));
    let picked: Picked = (&workspace.expansion, &picked);
    let left_out = LeftOut::default();
    if let Some(path) = &args.write_baseline {
        args.overwrite.check(path, "a baseline", |path| begins_with_key(path, samples::BASELINE))?;
        return write_baseline(path, &workspace, picked, &left_out);
    }
    let earlier = args.against.as_deref().map(|path| earlier(path, &args.folder)).transpose()?;
    let declared = match (&args.by, &args.against) {
        (Some(by), _) => vec![of_flags(plan, by, args.baseline.as_deref().unwrap_or_default())?],
        (None, Some(path)) => vec![of_earlier(plan, path.display().to_string())],
        (None, None) => of_plan(plan),
    };
    if declared.is_empty() {
        return Err(Failure::Usage(format!(
            "{} declares no comparison: add `compare: {{ by: AXIS, baseline: VALUE }}` to it, or use --by AXIS \
             --baseline VALUE, or --against EARLIER",
            args.plan.display()
        )));
    }
    let declared = declared.into_iter().map(|mut one| {
        one.metrics = if args.metrics.is_empty() { one.metrics } else { args.metrics.clone() };
        one.margin = args.margin.or(one.margin);
        one
    });
    let given_up = GivenUpRuns::of(&workspace.store, Some(plan), &left_out);
    let has_outcome = |run: &PlannedRun| workspace.disk.is_whole(&run.id) || given_up.get(run).is_some();
    if !workspace.expansion.runs.iter().any(has_outcome) {
        let there = workspace.expansion.runs.iter().filter_map(|run| workspace.disk.unusable(&run.id));
        there.for_each(|error| left_out.name(error));
        left_out.nothing_left()?;
        return Err(no_results(&args.plan, &args.changes, &args.folder));
    }
    let asked = ComparisonRequest {
        earlier: earlier.as_ref(),
        class,
        with_invalid: args.include_invalid,
        see: args.see / 100.0,
        adjusted: if args.explore { Adjusted::BenjaminiHochberg } else { Adjusted::Holm },
    };
    let results = Results::new(&workspace.store, plan, &left_out);
    let mut comparison = compare(plan, picked, results, (declared.collect(), asked));
    if (class.is_some() || !args.selection.is_everything())
        && comparison.families.iter().all(|family| family.cells.is_empty())
    {
        let text = "nothing to compare: --only, --skip and --class must keep both the baseline and the values compared \
                    with it";
        return Err(Failure::Usage(text.to_owned()));
    }
    note_unequal(&mut comparison, &lints::of(&workspace.loaded, &args.folder));
    match args.format {
        OutputFormat::Text => output::print_fitted(&page::text(&comparison))?,
        OutputFormat::Markdown => output::print(&page::markdown(&comparison))?,
        OutputFormat::Json => output::json(&comparison)?,
    }
    args.explain.below()?;
    match comparison.gate {
        _ if !args.gate => Ok(left_out.exit(Exit::Done)),
        Gate::Fails { .. } => Ok(Exit::Gate),
        Gate::Unanswered { .. } if left_out.any() => Ok(Exit::Store),
        Gate::Unanswered { why } => Err(Failure::Usage(format!("--gate: {why}"))),
        Gate::Passes => Ok(left_out.exit(Exit::Done)),
    }
}

/// Opens earlier results, which must not be the same as the current ones.
fn earlier(path: &std::path::Path, folder: &Folder) -> Result<Earlier, Failure> {
    let is_same =
        path.canonicalize().ok().zip(folder.results.canonicalize().ok()).is_some_and(|(then, now)| then == now);
    if is_same {
        let shown = path.display();
        let text = format!(
            "--against {shown}: these results would be compared with themselves; name earlier ones, or use --results \
             NEW"
        );
        return Err(Failure::Usage(text));
    }
    Earlier::open(path)
}

/// Returns the message of a lint about endpoints that were not treated alike; `None` for other lints.
fn unequal(lint: &Lint) -> Option<String> {
    let code = lint.code.to_string();
    ["M014", "M015"].contains(&code.as_str()).then(|| format!("{} ({code})", lint.message))
}

/// The inputs of a comparison other than its declaration.
#[derive(Clone, Copy)]
struct ComparisonRequest<'a> {
    earlier: Option<&'a Earlier>,
    class: Option<&'a str>,
    with_invalid: bool,
    see: f64,
    adjusted: Adjusted,
}

/// Returns the comparison that the plan declares; `None` if it declares none. Used by `run --gate`.
pub(super) fn declared(plan: &Plan, expansion: &Expansion, store: &Store, left_out: &LeftOut) -> Option<Comparison> {
    let declared = of_plan(plan);
    let adjusted = Adjusted::Holm;
    let asked = ComparisonRequest { earlier: None, class: None, with_invalid: false, see: 0.05, adjusted };
    let every = vec![true; expansion.runs.len()];
    if declared.is_empty() {
        return None;
    }
    Some(compare(plan, (expansion, &every), Results::new(store, plan, left_out), (declared, asked)))
}

/// Returns the comparison that the plan declares, computed from results that were already read; `None` if the
/// plan declares none. Used by `report`. `picked` marks the selected runs.
pub(super) fn of_readings(
    workspace: &Workspace,
    picked: &[bool],
    readings: &Readings,
    lints: &[Lint],
) -> Option<Comparison> {
    let plan = workspace.plan();
    let declared = of_plan(plan);
    if declared.is_empty() {
        return None;
    }
    let adjusted = Adjusted::Holm;
    let asked = ComparisonRequest { earlier: None, class: None, with_invalid: false, see: 0.05, adjusted };
    let mut results = Results::new(&workspace.store, plan, &readings.left_out);
    readings.runs.iter().for_each(|run| results.know(&run.record, &run.answered));
    let mut comparison = compare(plan, (&workspace.expansion, picked), results, (declared, asked));
    note_unequal(&mut comparison, lints);
    Some(comparison)
}

/// Adds the messages of lints about endpoints that were not treated alike to the notes of comparisons by
/// endpoint.
fn note_unequal(comparison: &mut Comparison, lints: &[Lint]) {
    for family in comparison.families.iter_mut().filter(|family| family.by == "endpoint") {
        family.notes.extend(lints.iter().filter_map(unequal));
    }
}

fn compare(
    plan: &Plan,
    picked: Picked,
    mut results: Results,
    (declared, asked): (Vec<Declared>, ComparisonRequest),
) -> Comparison {
    let mut families = Vec::new();
    for one in &declared {
        let arms = arms(&mut results, picked, one, asked.earlier);
        families.push(family(one, arms, asked));
    }
    let tests = families.iter().flat_map(|family| &family.cells).flat_map(|cell| &cell.tests);
    let over_cells = families.iter().flat_map(|family| &family.pooled).map(|one| one.outcome);
    let outcomes = tests.map(|test| test.outcome).chain(over_cells);
    let regressions = outcomes.filter(|outcome| *outcome == Outcome::Worse).count() as u32;
    let cells = families.iter().flat_map(|family| &family.cells);
    let worse_errors = cells.filter(|cell| cell.guardrail.outcome == Outcome::Worse).count() as u32;
    Comparison {
        plan: plan.name.clone(),
        answers: answers(&families),
        class: asked.class.map(str::to_owned),
        see: asked.see,
        adjusted_by: asked.adjusted,
        regressions,
        worse_errors,
        gate: Gate::of(&families),
        families,
    }
}

/// The note on a sequential comparison.
const SEQUENTIAL: &str = "group-sequential: the p-values and intervals of changes hold over all looks, whenever the \
                          rounds stopped; in a cell that stopped early, the change itself is overestimated on average";

/// Returns the result of one declared comparison.
fn family(declared: &Declared, arms: Vec<Arms>, asked: ComparisonRequest) -> Family {
    let mut cells: Vec<CellAnswer> = arms.into_iter().map(|arms| cell(declared, arms, asked)).collect();
    let margin = declared.margin.map(Share::to_f64);
    let rules = Rules { see: asked.see, adjusted: asked.adjusted, margin, named: !declared.metrics.is_empty() };
    guardrail::settle(&mut cells.iter_mut().map(|cell| &mut cell.guardrail).collect::<Vec<_>>());
    let mut notes = notes::common(&mut cells.iter_mut().map(|cell| &mut cell.notes).collect::<Vec<_>>());
    if declared.by.is_none() {
        let text = "measured at different times: any other change in between is confounded with the difference";
        notes.insert(0, text.to_owned());
    }
    notes.extend(cells.iter().any(|cell| cell.look().is_some()).then(|| SEQUENTIAL.to_owned()));
    let by = declared.by.clone().unwrap_or_else(|| "time".to_owned());
    Family::settled(Declaration { by, baseline: declared.baseline.clone(), notes }, cells, &rules)
}

fn cell(declared: &Declared, mut arms: Arms, asked: ComparisonRequest) -> CellAnswer {
    let guardrail = guardrail(&arms, asked);
    let mut notes = notes::of_given_up(&arms);
    let left_out = notes::leave_out(&mut arms, asked.with_invalid);
    notes.extend(notes::of_cell(&arms, declared.by.as_deref()));
    let tests = expand(&declared.metrics, arms.open).into_iter().map(|name| {
        let key = name.to_string();
        let side = |side: usize| {
            let readings = arms.runs[side].iter().filter_map(|(repeat, run)| Some((*repeat, run.as_ref().ok()?)));
            readings.filter_map(|(repeat, run)| Some((repeat, run.reading(asked.class, &key)?))).collect()
        };
        let sides = Sides { baseline: side(0), arm: side(1) };
        match arms.at_most {
            Some(at_most) => Test::in_sequence(name, &sides, at_most),
            None => Test::new(name, &sides),
        }
    });
    let tests = tests.collect();
    let launches = launches(&arms);
    let [_, arm] = arms.names;
    CellAnswer { sweep: arms.sweep, cell: arms.cell, name: arms.name, arm, left_out, notes, launches, guardrail, tests }
}

/// Counts the launches of the rounds that were measured on both sides.
fn launches(arms: &Arms) -> Launches {
    let [baseline, arm] = &arms.runs;
    let launch = |run: &Result<Sample, Absent>| run.as_ref().ok().map(|sample| sample.launch.clone());
    let round = |(repeat, run): (&u32, &Result<Sample, Absent>)| Some([launch(run)?, launch(arm.get(repeat)?)?]);
    let rounds: Vec<[Option<String>; 2]> = baseline.iter().filter_map(round).collect();
    Launches::of(&rounds.iter().map(|round| [round[0].as_deref(), round[1].as_deref()]).collect::<Vec<_>>())
}

/// Compares the numbers of failed requests of the two arms. Runs that are invalid only because of their
/// errors are included.
fn guardrail(arms: &Arms, asked: ComparisonRequest) -> Guardrail {
    let side = |side: usize| {
        let runs = arms.runs[side].iter().filter_map(|(repeat, run)| Some((*repeat, run.as_ref().ok()?)));
        runs.filter_map(|(repeat, run)| Some((repeat, run.failing(asked.class, asked.with_invalid)?))).collect()
    };
    Guardrail::of([&side(0), &side(1)])
}

/// Returns the comparisons that the plan declares: the comparisons of single sweeps, and one comparison for
/// all sweeps that do not declare their own.
fn of_plan(plan: &Plan) -> Vec<Declared> {
    let mut all: Vec<Declared> = Vec::new();
    let declared = |compare: &Compare, sweeps: Vec<String>| Declared {
        by: Some(compare.by.clone()),
        baseline: compare.baseline.to_string(),
        metrics: compare.metrics.0.clone(),
        sweeps,
        margin: compare.margin,
    };
    let of_all = plan.sweeps.iter().filter(|(_, sweep)| sweep.compare.is_none() && plan.compared(sweep).is_some());
    let of_all: Vec<String> = of_all.map(|(name, _)| name.clone()).collect();
    if let Some(compare) = plan.compare.as_ref().filter(|_| !of_all.is_empty()) {
        all.push(declared(compare, of_all));
    }
    let own = plan.sweeps.iter().filter_map(|(name, sweep)| Some((name, sweep.compare.as_ref()?)));
    all.extend(own.map(|(name, compare)| declared(compare, vec![name.clone()])));
    all
}

/// Returns the comparison with earlier results. If the plan declares a comparison, its metrics and margin are
/// used.
fn of_earlier(plan: &Plan, baseline: String) -> Declared {
    let metrics = plan.compare.as_ref().map(|compare| compare.metrics.0.clone()).unwrap_or_default();
    let margin = plan.compare.as_ref().and_then(|compare| compare.margin);
    Declared { by: None, baseline, metrics, sweeps: plan.sweeps.keys().cloned().collect(), margin }
}

fn of_flags(plan: &Plan, by: &str, baseline: &str) -> Result<Declared, Failure> {
    let by = axis_name(by);
    let with = plan.sweeps.iter().filter(|(_, sweep)| !sweep.values(by).is_empty());
    let values: Vec<Scalar> = with.clone().flat_map(|(_, sweep)| sweep.values(by)).collect();
    let quoted = |names: Vec<String>| -> String {
        let mut seen = std::collections::BTreeSet::new();
        let names = names.into_iter().filter(|name| seen.insert(name.clone()));
        names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    if values.is_empty() {
        let axes = plan.sweeps.values().flat_map(|sweep| sweep.fields()).map(str::to_owned).collect();
        return Err(Failure::Usage(format!("--by {by}: unknown axis; the plan has {}", quoted(axes))));
    }
    let is_baseline = |value: &Scalar| value.to_string() == baseline;
    let shown = || quoted(values.iter().map(Scalar::to_string).collect());
    if !values.iter().any(is_baseline) {
        return Err(Failure::Usage(format!(
            "--baseline {baseline}: not a value of axis `{by}`, which has {}",
            shown()
        )));
    }
    let sweeps = with.filter(|(_, sweep)| sweep.values(by).len() > 1 && sweep.values(by).iter().any(is_baseline));
    let sweeps: Vec<String> = sweeps.map(|(name, _)| name.clone()).collect();
    if sweeps.is_empty() {
        let text =
            format!("--by {by}: nothing to compare with `{baseline}`: give the axis another value in the same sweep");
        return Err(Failure::Usage(text));
    }
    Ok(Declared { by: Some(by.to_owned()), baseline: baseline.to_owned(), metrics: Vec::new(), sweeps, margin: None })
}

fn write_baseline(
    path: &std::path::Path,
    workspace: &Workspace,
    picked: Picked,
    left_out: &LeftOut,
) -> Result<Exit, Failure> {
    let mut results = Results::new(&workspace.store, workspace.plan(), left_out);
    let mut seen = std::collections::HashSet::new();
    let (mut samples, mut given_up): (Vec<Sample>, Vec<Lacking>) = Default::default();
    let runs = picked.0.runs.iter().zip(picked.1).filter(|(_, is)| **is).map(|(run, _)| run);
    for run in runs.filter(|run| seen.insert(run.id)) {
        match results.of(run) {
            Ok(sample) => samples.push(sample),
            Err(why) => given_up.extend(why.is_given_up().then(|| Lacking::of(run, why))),
        }
    }
    if samples.is_empty() {
        left_out.nothing_left()?;
        return Err(Failure::Usage("no run of the plan has a result yet: there is nothing to write".to_owned()));
    }
    let count = samples.len();
    let lacking = match given_up.len() {
        0 => String::new(),
        count => format!(", {count} given up"),
    };
    samples::write(path, workspace.plan(), (samples, given_up))?;
    let path = path.display();
    stderr::complain(&format!("{path}: {count} of {} runs{lacking}; `--against {path}` compares with it", seen.len()));
    Ok(left_out.exit(Exit::Done))
}
