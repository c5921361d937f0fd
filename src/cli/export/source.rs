//! The runs of an export and their tables. Small tables are read once; requests and token events are
//! decoded while they are written.

use std::cell::{Cell, OnceCell};

use super::super::answers::{self, Answered, in_plan_order};
use super::super::given_up::{GivenUpRuns, as_planned, labels};
use super::super::left_out::LeftOut;
use super::super::workspace::Workspace;
use crate::analysis::curve::{self, GivenUpRun, Point, Run};
use crate::analysis::lengths::{Bucket, buckets, measure_bucket};
use crate::analysis::slo;
use crate::analysis::turns::{measure_turn, turns};
use crate::analysis::{MeanTokens, OfClass, PlanMetrics, RunMetrics};
use crate::cli::export::kind::Rows;
use crate::cli::failure::Failure;
use crate::cli::mixed_servers::Servers;
use crate::cli::options::Folder;
use crate::cli::stderr;
use crate::expand::PlannedRun;
use crate::export::breakdown::{self, Named, Part, PartsOfRun, Turn};
use crate::export::charts::Charts;
use crate::export::facts::{DeclaredFacts, FoundHosts};
use crate::export::further::{Further, TELLING};
use crate::export::run_row::{self, GivenUpRow, RunRow};
use crate::export::runs;
use crate::export::runs_parquet::StoredRun;
use crate::export::shown::{self, Choice, Values};
use crate::export::{Sheet, curves, events, most_rows, requests};
use crate::plan::{Plan, Slo};
use crate::report::objective;
use crate::rows::{Facts, HookRun, Replay, RowsError, RunLabels, RunReader, Table};
use crate::store::{self, Listed, RunRecord, ShortId, State, Store, StoreError};

/// A committed run with the names under which it is exported. The run's record is read later, together with
/// its rows.
struct Chosen {
    sweep: Option<String>,
    /// The full id of the run.
    id: String,
    attempt: u32,
    /// Number of requests of the run, if recorded.
    requests: Option<u64>,
    labels: RunLabels,
}

impl Chosen {
    fn of(sweep: Option<String>, labels: RunLabels, record: &RunRecord) -> Chosen {
        let requests = record.files.get(Table::Requests.file()).map(|file| file.rows);
        Chosen { sweep, id: record.id.clone(), attempt: record.attempt, requests, labels }
    }

    fn record(&self, store: &Store) -> Result<RunRecord, StoreError> {
        store.record_of(&self.id, self.attempt)
    }

    fn named(&self) -> Named {
        (self.sweep.clone(), self.labels.clone())
    }
}

/// The runs of an export.
pub(crate) struct Source<'a> {
    store: &'a Store,
    plan: Option<&'a Plan>,
    chosen: Vec<Chosen>,
    /// Runs that were given up, in plan order.
    given_up: Vec<GivenUpRow>,
    axes: Vec<String>,
    /// The rows of the runs and of their classes.
    rows: OnceCell<(Vec<RunRow>, Vec<RunRow>)>,
    /// Results that could not be read.
    pub left_out: LeftOut,
    /// Whether reading the rows of a run failed midway. If so, nothing more is written, so that an incomplete
    /// table does not look complete.
    broke_off: Cell<bool>,
}

impl<'a> Source<'a> {
    /// Creates the source from the selected runs of a plan, in plan order, or from all runs of the
    /// folder.
    pub(crate) fn of(
        store: &'a Store,
        planned: Option<(&'a Workspace, &[&PlannedRun])>,
        folder: &Folder,
    ) -> Result<Source<'a>, Failure> {
        folder.must_exist()?;
        let left_out = LeftOut::default();
        let mut servers = Servers::default();
        let chosen = match planned {
            Some((workspace, picked)) => of_plan(workspace, picked, (folder, &left_out), &mut servers),
            None => of_folder(store.stream()?, (folder, &left_out), &mut servers),
        };
        let known = GivenUpRuns::of(store, planned.map(|(workspace, _)| workspace.plan()), &left_out);
        let given_up = match planned {
            Some((workspace, picked)) => given_up_of_plan(workspace, picked, &known),
            None => given_up_of_folder(&known, &chosen),
        };
        servers.notes().iter().for_each(|note| stderr::complain(&format!("note: {note}")));
        let axes = run_row::axes(chosen.iter().map(|run| &run.labels).chain(given_up.iter().map(|run| &run.labels)));
        let plan = planned.map(|(workspace, _)| workspace.plan());
        Ok(Source { store, plan, chosen, given_up, axes, rows: OnceCell::new(), left_out, broke_off: Cell::new(false) })
    }

    /// Returns the inputs for the default choice of columns; `None` for kinds with few columns.
    pub(crate) fn shown(&self, rows: Rows) -> Option<Choice<'_>> {
        let names: &[&str] = match rows {
            Rows::Runs | Rows::Classes => &shown::RUNS,
            Rows::Curves => &shown::CURVES,
            Rows::Lengths | Rows::Turns => &shown::PARTS,
            Rows::Requests => &shown::REQUESTS,
            Rows::Events => return None,
        };
        let (telling, values) = match rows {
            Rows::Runs | Rows::Classes => {
                let further = Further::of(self.rows(rows), &self.given_up);
                let telling = TELLING.map(str::to_owned).into_iter().chain(further.telling()).collect();
                (telling, Some(Values::of(self.table(rows))))
            }
            Rows::Curves => (Vec::new(), Some(Values::of(self.table(rows)))),
            // The rows of these kinds are created only while they are written.
            Rows::Lengths | Rows::Turns | Rows::Requests | Rows::Events => (Vec::new(), None),
        };
        let limited = shown::limited(self.plan.and_then(|plan| plan.slo.as_ref()));
        Some(Choice { names, axes: &self.axes, limited, telling, values })
    }

    /// Returns the number of runs that were given up.
    pub(crate) fn given_up(&self) -> usize {
        self.given_up.len()
    }

    /// Returns the name of the plan; `None` if there is no plan.
    pub(crate) fn plan_name(&self) -> Option<&str> {
        self.plan.map(|plan| plan.name.as_str())
    }

    /// Returns the note on runs that were given up; `None` if there are none.
    pub(crate) fn said_of_given_up(&self, rows: Rows, wide: bool) -> Option<String> {
        let first = self.given_up.first()?;
        let count = self.given_up.len();
        let runs = if count == 1 { "1 run was given up".to_owned() } else { format!("{count} runs were given up") };
        let there = match rows {
            Rows::Runs if !wide => "verdict given_up, no numbers",
            Rows::Curves => "reason in given_up_reason, no figures",
            _ => "no rows",
        };
        let like = if count == 1 { "" } else { "like " };
        Some(format!("note: {runs} ({like}{}): {there}", first.given_up.reason()))
    }

    /// Returns the number of runs.
    pub(crate) fn runs(&self) -> usize {
        self.chosen.len()
    }

    /// Returns the note on why an export has no rows of this kind; `None` if there are no runs, and for kinds
    /// of rows that every run has.
    pub(crate) fn why_none(&self, rows: Rows) -> Option<String> {
        let why = match (rows, self.runs()) {
            (_, 0) => return None,
            (Rows::Classes, n) => format!("none of the {n} runs uses a mix"),
            (Rows::Lengths, n) => format!("in each of the {n} runs, all requests have the same length"),
            (Rows::Turns, n) => format!("none of the {n} runs has conversations"),
            _ => return None,
        };
        Some(format!("note: {} has no rows: {why}", rows.name()))
    }

    /// Whether a workbook includes rows of this kind by default.
    pub(crate) fn belongs(&self, rows: Rows, wide: bool) -> bool {
        match rows {
            Rows::Runs => true,
            Rows::Classes => !self.rows(rows).is_empty(),
            Rows::Lengths | Rows::Turns => !wide && self.table(rows).rows.next().is_some(),
            Rows::Curves => !wide && self.curves().iter().any(|curve| curve.rungs.len() > 1),
            Rows::Requests => {
                let fits = self.fits_in_a_sheet(rows);
                if !fits && !wide {
                    let requests = self.requests();
                    stderr::complain(&format!(
                        "{requests} requests do not fit in a sheet and are omitted; export them with `--rows requests` \
                         to a .csv or .parquet file"
                    ));
                }
                !wide && fits
            }
            Rows::Events => false,
        }
    }

    /// Whether a sheet of a workbook can hold the rows of this kind. Only the number of requests is known before rows
    /// are read.
    pub(crate) fn fits_in_a_sheet(&self, rows: Rows) -> bool {
        rows != Rows::Requests || self.requests() <= u64::from(most_rows())
    }

    fn requests(&self) -> u64 {
        self.chosen.iter().filter_map(|run| run.requests).sum()
    }

    /// Returns the rows of runs or of classes.
    pub(crate) fn rows(&self, rows: Rows) -> &[RunRow] {
        let (runs, classes) = self.rows.get_or_init(|| {
            let (mut runs, mut classes) = (Vec::new(), Vec::new());
            for run in &self.chosen {
                let read = run.record(self.store).and_then(|record| {
                    let answered = answers::read(self.store, &record, self.plan)?;
                    Ok((record, answered))
                });
                let Some((record, mut answered)) = self.left_out.take(read) else { continue };
                answered.labels = run.labels.clone();
                let sweep = run.sweep.clone();
                classes.extend(class_rows((self.plan, sweep.clone()), &record, &answered));
                runs.push(run_row((self.plan, sweep), &record, answered));
            }
            (runs, classes)
        });
        if rows == Rows::Classes { classes } else { runs }
    }

    /// Returns the curves of the runs; invalid runs are excluded from the figures.
    fn curves(&self) -> Vec<curve::Curve<'_>> {
        let objective = self.objective().is_some();
        let given_up = self.given_up.iter().map(|GivenUpRow { sweep, labels, given_up, .. }| {
            let sweep = sweep.as_deref().unwrap_or_default();
            Point::GivenUp(GivenUpRun { sweep, labels, given_up, objective })
        });
        let measured = self.rows(Rows::Runs).iter().map(|row| Point::Measured(point(row)));
        let points: Vec<Point> = measured.chain(given_up).collect();
        curve::curves(&points, false)
    }

    /// Returns the charts of the curves.
    pub(crate) fn charts(&self) -> Charts {
        Charts::of(&self.curves(), self.objective())
    }

    /// Returns the plan's objective; `None` if there is none, or if it has no limit.
    fn objective(&self) -> Option<&Slo> {
        self.plan.and_then(|plan| plan.slo.as_ref()).filter(|slo| !Slo::is_empty(slo))
    }

    /// Returns the table of one kind of rows.
    pub(crate) fn table(&self, rows: Rows) -> Sheet<'_> {
        match rows {
            Rows::Runs => runs::with_given_up(self.rows(rows), &self.given_up),
            Rows::Classes => runs::sheet(self.rows(rows), &Further::of(self.rows(rows), &[]), true),
            Rows::Curves => curves::sheet(&self.axes, self.plan_name(), &self.curves(), self.objective()),
            Rows::Lengths => self.in_parts(by_length),
            Rows::Turns => self.in_parts(by_turn),
            Rows::Requests => requests::sheet(
                &self.axes,
                self.plan_name(),
                self.of_each(|run| {
                    let record = run.record(self.store)?;
                    let rows = self.store.stream_requests(&record)?.map_while(|row| self.row(row));
                    let events = self.store.stream_events(&record)?.map_while(|row| self.row(row));
                    // Both files are written from the same journal, so their rows have the same order.
                    let rows = rows.zip(events).map(|(row, events)| (row, events.gaps_ns));
                    Ok((run.named(), record.facts, rows))
                }),
            ),
            Rows::Events => events::sheet(self.of_each(|run| {
                let rows = self.store.stream_events(&run.record(self.store)?)?;
                Ok((run.named(), rows.map_while(|row| self.row(row))))
            })),
        }
    }

    fn in_parts<'s, P: Part + 's>(&'s self, measure: Measure<P>) -> Sheet<'s> {
        breakdown::sheet(&self.axes, self.plan_name(), self.of_each(move |run| self.parts(run, measure)))
    }

    /// Applies `read` to each run, and returns the results of those that could be read.
    fn of_each<'s, T>(
        &'s self,
        read: impl Fn(&'s Chosen) -> Result<T, StoreError> + 's,
    ) -> impl Iterator<Item = T> + 's {
        self.chosen.iter().take_while(|_| !self.broke_off.get()).filter_map(move |run| self.left_out.take(read(run)))
    }

    /// Returns the parts of a run, with their metrics.
    fn parts<P>(&self, run: &Chosen, measure: Measure<P>) -> Result<PartsOfRun<P>, StoreError> {
        let record = run.record(self.store)?;
        let read = self.store.read(&record)?;
        Ok((run.named(), measure(&read, &record.facts)?))
    }

    /// Returns a row that was read from a file with a correct digest; `None` if the row cannot be read, in
    /// which case nothing more is written.
    fn row<T>(&self, read: Result<T, StoreError>) -> Option<T> {
        let row = self.left_out.take(read);
        self.broke_off.set(self.broke_off.get() || row.is_none());
        row
    }

    /// Returns the runs as in runs.parquet, without duplicates.
    pub(crate) fn stored(&self) -> Vec<StoredRun> {
        let mut seen = std::collections::HashSet::new();
        let runs = self.chosen.iter().filter(|run| seen.insert(run.id.clone()));
        let stored = |run: &Chosen| {
            let record = self.left_out.take(run.record(self.store))?;
            let answered = self.left_out.take(answers::read(self.store, &record, None))?;
            let started = record.started.to_string();
            Some(StoredRun { labels: record.labels(), started, metrics: answered.metrics })
        };
        runs.filter_map(stored).collect()
    }
}

/// A function that measures the parts of a run.
type Measure<P> = fn(&RunReader, &Facts) -> Result<Vec<(P, RunMetrics)>, RowsError>;

fn by_length(run: &RunReader, facts: &Facts) -> Result<Vec<(Bucket, RunMetrics)>, RowsError> {
    let buckets = buckets(run.rows(), facts).into_iter();
    buckets.map(|bucket| Ok((bucket, measure_bucket(run, bucket, facts)?))).collect()
}

fn by_turn(run: &RunReader, facts: &Facts) -> Result<Vec<(Turn, RunMetrics)>, RowsError> {
    turns(run.rows(), facts).into_iter().map(|turn| Ok((Turn(turn), measure_turn(run, turn, facts)?))).collect()
}

fn of_plan(
    workspace: &Workspace,
    picked: &[&PlannedRun],
    folder: (&Folder, &LeftOut),
    servers: &mut Servers,
) -> Vec<Chosen> {
    let named = |run: &PlannedRun| {
        let listed = workspace.disk.has(&run.id).then(|| workspace.disk.listed(ShortId::of(&run.id))).flatten()?;
        let record = usable(&listed, folder)?;
        servers.add(record);
        Some(Chosen::of(Some(run.sweep.to_string()), as_planned(record.labels(), run), record))
    };
    in_plan_order(workspace.plan(), picked).into_iter().filter_map(named).collect()
}

/// Returns the selected runs that were given up and have no result.
fn given_up_of_plan(workspace: &Workspace, picked: &[&PlannedRun], known: &GivenUpRuns) -> Vec<GivenUpRow> {
    let row = |run: &PlannedRun| {
        let found = known.get(run).filter(|_| !workspace.disk.is_whole(&run.id))?;
        let (plan, sweep) = (workspace.plan().name.clone(), run.sweep.to_string());
        Some(GivenUpRow {
            plan: Some(plan),
            sweep: Some(sweep),
            labels: labels(found, run),
            ..given_up_row(found, Some(workspace.plan()))
        })
    };
    in_plan_order(workspace.plan(), picked).into_iter().filter_map(row).collect()
}

/// Returns the folder's runs that were given up and have no result.
fn given_up_of_folder(known: &GivenUpRuns, chosen: &[Chosen]) -> Vec<GivenUpRow> {
    let has_result = |found: &store::GivenUpRun| chosen.iter().any(|run| run.id == found.id);
    known.all().into_iter().filter(|found| !has_result(found)).map(|found| given_up_row(found, None)).collect()
}

fn given_up_row(found: &store::GivenUpRun, plan: Option<&Plan>) -> GivenUpRow {
    GivenUpRow {
        plan: None,
        sweep: None,
        labels: found.labels(),
        started: found.started.to_string(),
        given_up: found.given_up.clone(),
        declared: DeclaredFacts::of(&found.spec, plan, plan.and_then(limits)),
    }
}

/// Returns the plan's objective as text; `None` if there is none.
fn limits(plan: &Plan) -> Option<String> {
    plan.slo.as_ref().filter(|slo| !Slo::is_empty(slo)).map(objective)
}

fn of_folder(listed: impl Iterator<Item = Listed>, folder: (&Folder, &LeftOut), servers: &mut Servers) -> Vec<Chosen> {
    let chosen = listed.filter_map(|listed| {
        let record = usable(&listed, folder)?;
        servers.add(record);
        Some(Chosen::of(None, record.labels(), record))
    });
    chosen.collect()
}

/// Returns the record of a run if the run can be exported; otherwise reports why it cannot. A run that the
/// next `run` measures again counts as not measured yet.
fn usable<'l>(listed: &'l Listed, (folder, left_out): (&Folder, &LeftOut)) -> Option<&'l RunRecord> {
    if let (State::Unreadable(_), Some(error)) = (&listed.state, listed.unusable()) {
        left_out.name(error);
        return None;
    }
    if let State::Corrupt(reason) = &listed.state {
        let folder = folder.typed();
        stderr::complain(&format!(
            "run {} is excluded: {reason} (`sweepline run PLAN{folder}` measures it again; `sweepline verify{folder}` \
             names every damaged file)",
            listed.id
        ));
        return None;
    }
    listed.record.as_ref()
}

/// Returns the rows of the classes of a run that was read. Their verdict is the verdict of the whole run.
pub(crate) fn class_rows(
    (plan, sweep): (Option<&Plan>, Option<String>),
    record: &RunRecord,
    answered: &Answered,
) -> Vec<RunRow> {
    let row = |one: &OfClass| RunRow {
        plan: plan.map(|plan| plan.name.clone()),
        sweep: sweep.clone(),
        labels: answered.labels.clone(),
        class: Some(one.class.clone()),
        started: record.started.to_string(),
        verdict: answered.verdict.clone(),
        metrics: one.metrics.clone(),
        plan_metrics: PlanMetrics { given: plan.is_some(), goodput: one.goodput, ..PlanMetrics::default() },
        slo: Vec::new(),
        cost: None,
        hooks_failed: None,
        tokens: MeanTokens::default(),
        found: FoundHosts::of(&record.environment),
        declared: DeclaredFacts::of(&record.spec, plan, plan.and_then(limits)),
        objective: None,
    };
    answered.classes.iter().map(row).collect()
}

/// Returns the row of a run that was read.
pub(crate) fn run_row(
    (plan, sweep): (Option<&Plan>, Option<String>),
    record: &RunRecord,
    answered: Answered,
) -> RunRow {
    let mut row = RunRow {
        plan: plan.map(|plan| plan.name.clone()),
        sweep,
        labels: answered.labels,
        class: None,
        started: record.started.to_string(),
        verdict: answered.verdict,
        metrics: answered.metrics,
        plan_metrics: answered.plan_metrics,
        slo: answered.slo,
        cost: answered.cost,
        hooks_failed: hooks_failed(&record.facts.hooks),
        tokens: answered.tokens,
        found: FoundHosts::of(&record.environment),
        declared: DeclaredFacts::of(&record.spec, plan, plan.and_then(limits)),
        objective: None,
    };
    // The outcome is determined as in `curves`, but for this run alone.
    row.objective = answer_of(&row);
    row
}

/// Whether one run meets the objective; `None` if there is no objective, or if the run shows nothing about
/// it.
fn answer_of(row: &RunRow) -> Option<slo::Answer> {
    let has_limits = !row.slo.is_empty() || row.cost.is_some();
    let points = [Point::Measured(point(row))];
    let curves = has_limits.then(|| curve::curves(&points, false))?;
    curves.first()?.rungs.first()?.answer()
}

fn hooks_failed(hooks: &[HookRun]) -> Option<u64> {
    (!hooks.is_empty()).then(|| hooks.iter().filter(|hook| !hook.is_ok()).count() as u64)
}

/// Returns a run as a point of a curve.
fn point(row: &RunRow) -> Run<'_> {
    let RunRow { sweep, labels, metrics, plan_metrics, verdict, slo, cost, tokens, .. } = row;
    let sweep = sweep.as_deref().unwrap_or_default();
    let saturation = metrics.saturation;
    Run { sweep, labels, metrics, plan_metrics, verdict, saturation, slo, cost: *cost, tokens: *tokens }
}
