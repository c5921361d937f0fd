//! The committed runs of a plan, each of which is read once. They are the input of all commands that answer
//! questions about several runs.

use std::path::{Path, PathBuf};

use clap::Args;

use super::answers::{self, Answered};
use super::changes::Changes;
use super::given_up::{Entry, GivenUpRuns, labels};
use super::left_out::LeftOut;
use super::mixed_servers;
use super::selection::Selection;
use super::variant;
use super::workspace::Workspace;
use crate::analysis::PlanMetrics;
use crate::analysis::curve::{self, Point, Run};
use crate::cli::failure::Failure;
use crate::cli::options::{Folder, TextOrJson};
use crate::expand::PlannedRun;
use crate::plan::{Plan, Slo};
use crate::report::Trail;
use crate::report::format::{counts, fill, plain};
use crate::rows::{GivenUp, RunLabels};
use crate::store::{GivenUpRun, RunRecord, run_labels};
use crate::units::text::quoted;

/// A plan and its selected runs.
#[derive(Debug, Args)]
pub(crate) struct PlanRuns {
    /// The plan
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    selection: Selection,
}

/// The arguments of every command that computes answers from a plan's results.
#[derive(Debug, Args)]
pub(crate) struct ResultsArgs {
    #[command(flatten)]
    runs: PlanRuns,
    /// Include invalid runs in the figures
    #[arg(long)]
    pub(crate) include_invalid: bool,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    pub format: TextOrJson,
    #[command(flatten)]
    folder: Folder,
}

/// One run of the plan that has a result.
pub(crate) struct RunResult {
    /// The name of the sweep in the plan.
    pub sweep: String,
    /// The committed record of the run.
    pub record: RunRecord,
    /// The metrics and the verdict of the run under the plan.
    pub answered: Answered,
}

/// One run of the plan that was given up.
pub(crate) struct Abandoned {
    /// The number of runs with results that precede this run in the plan.
    at: usize,
    sweep: String,
    labels: RunLabels,
    /// The classes of the run's mix.
    classes: Vec<String>,
    given_up: GivenUp,
}

/// One run of the plan that has no result.
pub(crate) struct Without {
    /// The name of the sweep in the plan.
    pub(super) sweep: String,
    /// The labels of the run.
    pub(super) labels: RunLabels,
    /// `not measured`, `given up` or `unreadable`.
    pub(super) state: &'static str,
    /// Why the run has no result.
    pub(super) reason: String,
}

/// The runs of a plan that have results.
pub(crate) struct Readings {
    /// The plan.
    pub plan: Plan,
    /// The runs with results, in plan order. A run that belongs to two sweeps is listed twice.
    pub runs: Vec<RunResult>,
    /// The runs that were given up, in plan order.
    pub given_up: Vec<Abandoned>,
    /// The runs without a result, in plan order.
    pub(super) without: Vec<Without>,
    /// The number of the plan's runs that have no result and were not given up.
    pub missing: usize,
    /// The command that measures the missing runs and retries those that were given up.
    retry: String,
    /// For each endpoint and scenario: the name, the number of missing runs, and the number of all runs.
    absent: Vec<(String, usize, usize)>,
    /// The decisions of the searches and ladders that requested any of the runs.
    pub trails: Vec<Trail>,
    /// Runs whose result cannot be used; they count as runs without a result.
    pub left_out: LeftOut,
}

impl ResultsArgs {
    /// Reads the results. A plan with neither a result nor a given-up run is a usage error.
    pub(super) fn read(&self) -> Result<Readings, Failure> {
        let workspace = self.runs.open(&self.folder)?;
        self.runs.read(&workspace, &self.folder)
    }
}

impl PlanRuns {
    /// Returns the plan, its runs and their state on disk.
    pub(super) fn open(&self, folder: &Folder) -> Result<Workspace, Failure> {
        Workspace::open(&self.plan, &self.changes, folder)
    }

    /// Returns the plan's file, as named on the command line.
    pub(super) fn plan(&self) -> &Path {
        &self.plan
    }

    /// Returns the changes that the call makes to the plan.
    pub(super) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Returns the selection of runs.
    pub(super) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Returns which of the plan's runs are selected, in the order of its expansion.
    pub(super) fn picked(&self, workspace: &Workspace) -> Result<Vec<bool>, Failure> {
        self.selection.pick_runs(workspace.plan(), &workspace.expansion)
    }

    /// Returns the command line that measures the runs without a result.
    pub(super) fn run_again(&self, folder: &Folder) -> String {
        format!("sweepline run {}", typed(&self.plan, &self.changes, folder))
    }

    /// Returns the plan with its changes and the folder, as arguments of a command line.
    pub(super) fn typed(&self, folder: &Folder) -> String {
        typed(&self.plan, &self.changes, folder)
    }

    /// Returns the command line that shows a run of the plan in full, without the run's id.
    pub(super) fn show(&self, folder: &Folder) -> String {
        let (plan, changes) = (quoted(&self.plan.to_string_lossy()), self.changes.typed(quoted));
        format!("sweepline show --plan {plan}{changes}{}", folder.typed())
    }

    /// Returns the command line that calibrates the client for the plan's loads.
    pub(super) fn calibrate(&self, folder: &Folder) -> String {
        format!("sweepline calibrate {}", typed(&self.plan, &self.changes, folder))
    }

    /// Reads the results. A plan with neither a result nor a given-up run is a usage error.
    pub(super) fn read(&self, workspace: &Workspace, folder: &Folder) -> Result<Readings, Failure> {
        self.read_knowing(workspace, folder, None)
    }

    /// Returns the file of the plan.
    pub(super) fn plan_file(&self) -> &Path {
        &self.plan
    }

    /// Reads the results again, based on an earlier read. Runs that have not been replaced since are not
    /// read again, unless the plan has changed.
    pub(super) fn read_knowing(
        &self,
        workspace: &Workspace,
        folder: &Folder,
        before: Option<Readings>,
    ) -> Result<Readings, Failure> {
        let mut before = before.filter(|before| is_same_plan(&before.plan, workspace.plan()));
        let mut known = |run: &PlannedRun| {
            let known = &mut before.as_mut()?.runs;
            let said = workspace.disk.said(&run.id)?;
            let is_same = |record: &RunRecord| record.attempt == said.attempt && record.ended == said.ended;
            let is_known = |one: &RunResult| {
                one.sweep == *run.sweep && one.record.id == run.id.to_string() && is_same(&one.record)
            };
            let at = known.iter().position(is_known)?;
            let RunResult { record, answered, .. } = known.swap_remove(at);
            Some((record, answered))
        };
        let wanted = workspace.picked(&self.selection)?;
        let mut readings = Readings {
            plan: workspace.plan().clone(),
            runs: Vec::new(),
            given_up: Vec::new(),
            without: Vec::new(),
            missing: 0,
            retry: format!("{} --redo given-up", self.run_again(folder)),
            absent: Vec::new(),
            trails: Vec::new(),
            left_out: LeftOut::default(),
        };
        let given_up = GivenUpRuns::of(&workspace.store, Some(workspace.plan()), &readings.left_out);
        for run in answers::in_plan_order(workspace.plan(), &wanted) {
            let of = readings.of(&format!("{} · {}", run.spec.endpoint.name, run.spec.labels.scenario));
            readings.absent[of].2 += 1;
            let answer = match known(run) {
                Some(known) => Ok(Some(known)),
                None => answers::answer(&workspace.store, run, workspace.plan()),
            };
            let unreadable = answer.as_ref().err().map(|error| error.to_string());
            match readings.left_out.take(answer).flatten() {
                Some((record, answered)) => {
                    readings.runs.push(RunResult { sweep: run.sweep.to_string(), record, answered });
                }
                None => match given_up.get(run) {
                    Some(found) => readings.give_up(run, found),
                    None => readings.lack(run, of, unreadable),
                },
            }
        }
        readings.trails = readings.behind(&workspace.trails);
        if readings.runs.is_empty() && readings.given_up.is_empty() {
            readings.left_out.nothing_left()?;
            return Err(no_results(&self.plan, &self.changes, folder));
        }
        Ok(readings)
    }
}

/// Whether two plans are equal, which means that they judge runs alike.
fn is_same_plan(one: &Plan, other: &Plan) -> bool {
    let text = |plan: &Plan| serde_json::to_string(plan).ok();
    text(one).is_some_and(|one| text(other) == Some(one))
}

/// Returns plan, changes and folder as arguments of a command line.
fn typed(plan: &Path, changes: &Changes, folder: &Folder) -> String {
    format!("{}{}{}", quoted(&plan.to_string_lossy()), changes.typed(quoted), folder.typed())
}

/// Returns the error that a plan has no result in a folder, with the command that measures the plan. If there
/// are results of the plan with other values, the flags for them are named; for other results, the command
/// that shows why they do not match.
pub(crate) fn no_results(plan: &Path, changes: &Changes, folder: &Folder) -> Failure {
    let asked = typed(plan, changes, folder);
    let others = folder.store().is_ok_and(|store| store.has_runs().is_ok_and(|has_runs| has_runs));
    let why = match variant::of_folder(plan, changes, folder) {
        Some(variant) => format!("; there are results {variant}"),
        None if others => format!("; `sweepline preview {asked}` shows how the results there differ from the plan"),
        None => String::new(),
    };
    let shown = folder.results.display();
    Failure::Usage(format!("no results of this plan in {shown}: run `sweepline run {asked}`{why}"))
}

impl Readings {
    /// Adds a run that was given up.
    fn give_up(&mut self, run: &PlannedRun, found: &GivenUpRun) {
        let (sweep, labels) = (run.sweep.to_string(), labels(found, run));
        let said = plain(&found.given_up.spoiled.detail);
        let reason = format!("{}: {said}", found.given_up.reason());
        self.without.push(Without { sweep: sweep.clone(), labels: labels.clone(), state: "given up", reason });
        self.given_up.push(Abandoned {
            at: self.runs.len(),
            sweep,
            labels,
            classes: run.spec.mix.iter().map(|class| class.name.to_string()).collect(),
            given_up: found.given_up.clone(),
        });
    }

    /// Adds a run without a result; `of` is the index of the run's endpoint and scenario in `absent`.
    fn lack(&mut self, run: &PlannedRun, of: usize, unreadable: Option<String>) {
        self.missing += 1;
        self.absent[of].1 += 1;
        let (sweep, labels) = (run.sweep.to_string(), run_labels(&run.id.to_string(), 0, &run.spec));
        let (state, reason) = match unreadable {
            Some(why) => ("unreadable", why),
            None => ("not measured", "it has no result yet".to_owned()),
        };
        self.without.push(Without { sweep, labels, state, reason });
    }

    /// Returns the elements of `trails` that requested any of the runs that were read.
    fn behind(&self, trails: &[Trail]) -> Vec<Trail> {
        let is_here = |sweep: &str, id: &String| {
            let measured = self.runs.iter().any(|run| run.sweep == sweep && run.record.id == *id);
            measured || self.given_up.iter().any(|run| run.sweep == sweep && run.labels.run_id == *id)
        };
        let asked = |trail: &&Trail| trail.runs().any(|id| is_here(&trail.sweep, id));
        trails.iter().filter(asked).cloned().collect()
    }

    /// Returns the number of the plan's runs without a result, given up or not.
    pub(super) fn without_result(&self) -> usize {
        self.without.len()
    }

    /// Returns the runs with results, as inputs of curves.
    pub(super) fn measured(&self) -> Vec<Run<'_>> {
        self.runs.iter().map(point).collect()
    }

    /// Returns the runs as points of curves.
    pub(super) fn points(&self) -> Vec<Point<'_>> {
        self.in_order(|reading| Some(point(reading)), |_| true)
    }

    /// Returns the runs that have the class, with figures of only the class's requests. Goodput and money
    /// belong to whole runs and are unknown here; the verdict and the objective are still those of the
    /// run.
    pub(crate) fn points_of(&self, class: &str) -> Vec<Point<'_>> {
        static UNKNOWN: PlanMetrics = PlanMetrics {
            given: true,
            goodput: None,
            cost_per_million_output_tokens: None,
            tokens_per_unit_of_money: None,
        };
        self.in_order(
            |reading| {
                let own = reading.answered.classes.iter().find(|own| own.class == class)?;
                Some(Run { metrics: &own.metrics, plan_metrics: &UNKNOWN, ..point(reading) })
            },
            |abandoned| abandoned.classes.iter().any(|own| own == class),
        )
    }

    /// Applies `measured` to the runs with results, and returns the points in plan order, interleaved with
    /// the given-up runs for which `wanted` returns true.
    fn in_order<'r>(
        &'r self,
        measured: impl Fn(&'r RunResult) -> Option<Run<'r>>,
        wanted: impl Fn(&Abandoned) -> bool,
    ) -> Vec<Point<'r>> {
        let objective = self.plan.slo.as_ref().is_some_and(|slo| !Slo::is_empty(slo));
        let given_up = |at: usize| {
            let there = self.given_up.iter().filter(move |one| one.at == at);
            there.filter(|one| wanted(one)).map(move |Abandoned { sweep, labels, given_up, .. }| {
                Point::GivenUp(curve::GivenUpRun { sweep, labels, given_up, objective })
            })
        };
        let mut points = Vec::new();
        for (at, reading) in self.runs.iter().enumerate() {
            points.extend(given_up(at));
            points.extend(measured(reading).map(Point::Measured));
        }
        points.extend(given_up(self.runs.len()));
        points
    }

    /// Returns the classes of all runs.
    pub(super) fn classes(&self) -> impl Iterator<Item = &str> {
        let measured = self.runs.iter().flat_map(|reading| &reading.answered.classes).map(|class| class.class.as_str());
        measured.chain(self.given_up.iter().flat_map(|one| &one.classes).map(String::as_str))
    }

    /// Returns the runs that were given up, as entries of a JSON document.
    pub(crate) fn given_up_entries(&self) -> Vec<Entry> {
        self.given_up.iter().map(|one| Entry::of(&one.sweep, &one.labels, &one.given_up)).collect()
    }

    /// Returns the notes on endpoints whose results come from several servers.
    pub(crate) fn mixed_servers(&self) -> Vec<String> {
        mixed_servers::notes(self.runs.iter().map(|reading| &reading.record))
    }

    /// Returns the index of a name in `absent`; adds the name if it is missing.
    fn of(&mut self, name: &str) -> usize {
        self.absent.iter().position(|(other, ..)| other == name).unwrap_or_else(|| {
            self.absent.push((name.to_owned(), 0, 0));
            self.absent.len() - 1
        })
    }

    /// Returns the text about runs without a result (by endpoint and scenario), given-up runs and excluded
    /// invalid runs; `None` if there are no such runs.
    pub(crate) fn said_of_missing(&self, left_out: &[String]) -> Option<String> {
        let parts = self.parts_missing(left_out, " (--include-invalid includes them)");
        (!parts.is_empty()).then(|| fill("", 2, &parts.join("; ")).trim_end().to_owned())
    }

    /// Returns the same information as [`Readings::said_of_missing`], as a list; `hint` follows the number
    /// of invalid runs.
    pub(super) fn parts_missing(&self, left_out: &[String], hint: &str) -> Vec<String> {
        const MOST: usize = 8;
        let mut parts = Vec::new();
        if self.missing > 0 {
            let absent: Vec<_> = self.absent.iter().filter(|(_, missing, _)| *missing > 0).collect();
            let names =
                absent.iter().take(MOST).map(|(name, missing, all)| format!("{} {missing} of {all}", plain(name)));
            let more = if absent.len() > MOST { ", …" } else { "" };
            let names = names.collect::<Vec<_>>().join(", ");
            parts.push(format!("{} of the plan's runs have no result yet: {names}{more}", self.missing));
        }
        if !self.given_up.is_empty() {
            let reasons = counts(self.given_up.iter().map(|one| one.given_up.reason()));
            let reasons: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} for {reason}")).collect();
            let (count, reasons) = (self.given_up.len(), reasons.join(", "));
            let were = if count == 1 { "was" } else { "were" };
            parts.push(format!("{count} of the plan's runs {were} given up: {reasons}; `{}` retries", self.retry));
        }
        if !left_out.is_empty() {
            let more = if left_out.len() > MOST { "; …" } else { "" };
            let names = left_out.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join("; ");
            parts.push(format!("{} invalid excluded{hint}: {names}{more}", left_out.len()));
        }
        parts.extend(self.mixed_servers());
        parts
    }
}

/// Returns a run as a point of a curve.
fn point(reading: &RunResult) -> Run<'_> {
    let RunResult { sweep, record: _, answered } = reading;
    answered.on_curve(sweep)
}
