//! `sweepline why RUN` explains one decision.
//!
//! For a run, it explains the planned action; for a sweep with searches or ladders, which loads it requested
//! and why; for a cell without runs (yet), the findings on which it depends.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::asked_by::AskedBy;
use super::attempts::Tried;
use super::changes::Changes;
use super::selection::{matching_cells, matching_records};
use super::sweep_cell::SweepCell;
use super::variant;
use super::waiting::WaitingCell;
use super::workspace::{Workspace, warn_of_no_inventory};
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Folder, TextOrJson};
use crate::cli::output;
use crate::cli::preview::reason;
use crate::cli::preview::reason::{Changed, Places, changes};
use crate::expand::{Pending, PlannedRun, RunSpec, canonical};
use crate::report::Trail;
use crate::report::format::{fill, plain};
use crate::rows::{Fingerprint, Measured, READER, Replay, SpoilCause, TokenSource};
use crate::store::{
    AttemptState, Deleted, How, INTERRUPTED, LastTry, Listed, ListedAttempt, Moment, Replaced, RunRecord, ShortId,
    State, Store, StoreError, Tries,
};
use crate::sweep::event::{name, planned_name};
use crate::sweep::resume::{Action, Wishes, explain, or_pending, tries_words};
use crate::units::clock;

/// The state of a run that was given up, as in `preview --format json`.
const GIVEN_UP: &str = "given_up";

/// The arguments of `why`.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The run to explain: any unambiguous prefix of its id (`preview` and `list` show ids), or an expression
    /// as for --only, like "qps == 5 and repeat == 0". The name of a sweep explains the decisions of its
    /// searches and ladders; SWEEP/CELL explains the decisions for one cell, or why the cell has no run yet
    #[arg(value_name = "RUN")]
    run: String,
    /// The plan that contains the run; without it, only the results folder is used
    #[arg(long, value_name = "PLAN")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    changes: Changes,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
    #[command(flatten)]
    folder: Folder,
}

/// The explanation of the requested run, or of each of several runs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Document<'a> {
    /// The explanation of one run.
    One(&'a ExplainedRun),
    /// The explanations of all runs that match the expression, or of a sweep that declares its loads.
    Several {
        /// The runs, in plan order; without a plan, in the order of the results folder.
        runs: &'a [ExplainedRun],
        /// Cells without runs (yet); absent if there are none.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        waiting: &'a [WaitingCell],
    },
    /// The explanation of the searches or ladders of a sweep.
    Sweep {
        /// The decisions of each search or ladder.
        choices: Vec<&'a Trail>,
        /// The sweep's cells without runs (yet); absent if there are none.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        waiting: &'a [WaitingCell],
    },
}

/// The explanations of runs, and of cells without runs.
#[derive(Debug, Default)]
struct Explained {
    runs: Vec<ExplainedRun>,
    waiting: Vec<WaitingCell>,
}

/// The explanation of one run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ExplainedRun {
    /// The full id of the run, or a prefix if its run.json cannot be read.
    id: String,
    #[serde(skip)]
    name: String,
    /// With a plan: the action for the run, as in `preview`, or orphan if the run is not part of the plan.
    /// Without a plan: committed, corrupt, unreadable, deleted, given_up or new. A run that a ladder skips
    /// is pruned, and a run that a search does not request is not_asked.
    state: &'static str,
    /// The reason for the state, as text.
    reason: String,
    /// The search or ladder to which the run belongs; null if the sweep declares its loads, or if there
    /// is no plan.
    asked_by: Option<AskedBy>,
    /// The fields in which the run differs from the closest result; empty if differences do not explain the
    /// action.
    changed: Vec<Changed>,
    /// The result that the run's result replaced; null if there was none.
    replaced: Option<Replaced>,
    /// The self-description of the server on which the result was measured; null if unknown.
    server: Option<Fingerprint>,
    /// Names of the engine variables that the launched server inherited; absent if there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inherited_variables: Vec<String>,
    /// Why today's rules cannot judge all responses of the result, which an earlier version of sweepline read; null if
    /// they can, or if there is no result.
    reader: Option<String>,
    /// The outcomes of attempts that did not become results.
    attempts: Vec<String>,
    /// The outcome of the attempts since the last commit, in machine-readable form; null if there are none.
    tries: Option<Tried>,
    /// The run's identity: the entries from which its id is computed. Absent if only the run's folder is
    /// known.
    #[serde(skip_serializing_if = "Map::is_empty")]
    identity: Map<String, Value>,
}

/// Explains why a run is done, skipped or done again.
pub(super) fn run(args: WhyArgs) -> Result<Exit, Failure> {
    args.changes.need(args.plan.as_deref())?;
    let by_id = !args.run.is_empty() && args.run.bytes().all(|byte| byte.is_ascii_hexdigit());
    let told = match &args.plan {
        Some(plan) => {
            let workspace = Workspace::open(plan, &args.changes, &args.folder)?;
            if !by_id {
                variant::note(&workspace, plan, &args.changes, &args.folder);
            }
            match SweepCell::named(&workspace, &args.run) {
                Some(named) => {
                    let choices = named.choices(&workspace);
                    let runs = if choices.is_empty() { named.runs(&workspace) } else { Vec::new() };
                    let told = explained(&workspace, &runs, &named.waiting(&workspace))?;
                    if !choices.is_empty() {
                        return tell_choices(args.format, choices, &told.waiting);
                    }
                    if told.runs.is_empty() && told.waiting.is_empty() {
                        return Err(named.none(&workspace));
                    }
                    told
                }
                None => in_plan(&args, &workspace, by_id)?,
            }
        }
        None => {
            let runs = in_folder(&args, &args.folder.whole_store()?, by_id)?;
            Explained { runs, waiting: Vec::new() }
        }
    };
    let Explained { runs, waiting } = &told;
    match (args.format, runs.as_slice(), waiting.as_slice()) {
        (TextOrJson::Text, [one], []) => output::print(&one.text(true))?,
        (TextOrJson::Text, all, waiting) => {
            output::print(&all.iter().map(|told| told.text(false)).collect::<String>())?;
            output::print_fitted(&waiting.iter().map(WaitingCell::text).collect::<String>())?;
        }
        (TextOrJson::Json, [one], []) => output::json(&Document::One(one))?,
        (TextOrJson::Json, runs, waiting) => output::json(&Document::Several { runs, waiting })?,
    }
    Ok(Exit::Done)
}

fn tell_choices(format: TextOrJson, choices: Vec<&Trail>, waiting: &[WaitingCell]) -> Result<Exit, Failure> {
    match format {
        TextOrJson::Text => {
            let texts = choices.iter().map(|trail| trail.text()).chain(waiting.iter().map(WaitingCell::text));
            output::print_fitted(&texts.collect::<Vec<_>>().join("\n"))?;
        }
        TextOrJson::Json => output::json(&Document::Sweep { choices, waiting })?,
    }
    Ok(Exit::Done)
}

fn in_plan(args: &WhyArgs, workspace: &Workspace, by_id: bool) -> Result<Explained, Failure> {
    if by_id {
        let (places, attempts) = (Places::new(workspace), Attempts::of(&workspace.store)?);
        let run = match find(workspace, &args.run)? {
            Some(run) => of_run(workspace, run, 1, &places, &attempts),
            None => of_other(args, workspace, workspace.store.find(&args.run)?, &attempts),
        };
        return Ok(Explained { runs: vec![run], waiting: Vec::new() });
    }
    let runs: Vec<PlannedRun> = workspace.expansion.runs.iter().chain(left_out(workspace)).cloned().collect();
    let pending = &workspace.expansion.pending;
    let picked = matching_cells(&args.run, workspace.plan(), (&runs, pending));
    let picked = picked.map_err(|failure| or_id(&args.run, "it is not a sweep of the plan", failure))?;
    let cells = picked.cells(pending);
    let meant: Vec<&PlannedRun> = runs.iter().zip(picked.runs).filter(|(_, is)| *is).map(|(run, _)| run).collect();
    explained(workspace, &meant, &cells)
}

/// Returns the explanations of `runs` and `cells`.
fn explained(workspace: &Workspace, runs: &[&PlannedRun], cells: &[Pending]) -> Result<Explained, Failure> {
    let (places, attempts) = (Places::new(workspace), Attempts::of(&workspace.store)?);
    Ok(Explained {
        runs: runs.iter().map(|run| of_run(workspace, run, runs.len(), &places, &attempts)).collect(),
        waiting: cells.iter().map(|cell| WaitingCell::of(workspace, cell)).collect(),
    })
}

/// Returns the runs that ladders skip.
fn left_out(workspace: &Workspace) -> Vec<&PlannedRun> {
    let pools = workspace.expansion.pools.iter().zip(&workspace.trails);
    let members = pools.flat_map(|(pool, trail)| pool.members.iter().map(move |member| (member, trail)));
    members.filter(|(member, trail)| trail.pruned.contains(&member.load)).map(|(member, _)| &member.run).collect()
}

/// Adds a hint for a single word, which may be meant as a prefix of an id.
fn or_id(asked: &str, no_sweep: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Usage(text) if asked.bytes().all(|byte| byte.is_ascii_alphanumeric()) => Failure::Usage(format!(
            "no run id begins with `{asked}`: ids consist of the digits 0 to 9 and a to f (`preview` and `list` show \
             them); {no_sweep}; read as an expression: {text}"
        )),
        other => other,
    }
}

/// Returns the plan's run whose id begins with `prefix`. This is a run that is requested, or else one
/// that a search or ladder might have requested.
fn find<'a>(workspace: &'a Workspace, prefix: &str) -> Result<Option<&'a PlannedRun>, Failure> {
    let wanted = prefix.to_ascii_lowercase();
    let is_meant = |run: &&PlannedRun| run.id.to_string().starts_with(&wanted);
    let mut found: Vec<&PlannedRun> = workspace.expansion.runs.iter().filter(is_meant).collect();
    if found.is_empty() {
        found.extend(workspace.expansion.possible().filter(is_meant));
    }
    found.sort_by_key(|run| run.id);
    found.dedup_by_key(|run| run.id);
    if found.len() > 1 {
        let ids: Vec<String> = found.iter().map(|run| run.id.short()).collect();
        return Err(Failure::Usage(format!(
            "`{prefix}` matches several run ids ({}): give more characters",
            ids.join(", ")
        )));
    }
    Ok(found.first().copied())
}

/// Returns the explanation of a run of the plan; `asked` is the total number of runs to explain.
fn of_run(workspace: &Workspace, run: &PlannedRun, asked: usize, places: &Places, attempts: &Attempts) -> ExplainedRun {
    let mut decision = workspace.decide(run, Wishes::default());
    or_pending(&mut decision, run, &workspace.disk);
    explain(&mut decision, run, &workspace.disk, asked);
    let changed = changes(&decision, run, places);
    let listed = workspace.disk.has(&run.id).then(|| workspace.disk.listed(ShortId::of(&run.id))).flatten();
    let record = listed.as_ref().and_then(|listed| listed.record.as_ref());
    let asked_by = AskedBy::of(workspace, run);
    let decided = match decision.action {
        Action::GivenUp => (GIVEN_UP, reason(&decision, &changed)),
        action => (action.name(), reason(&decision, &changed)),
    };
    let not_asked = asked_by.as_ref().and_then(|by| Some((by.not_asked()?, by.said().to_owned())));
    let (state, reason) = not_asked.unwrap_or(decided);
    ExplainedRun {
        id: run.id.to_string(),
        name: format!("{} · {}", run.sweep, planned_name(run)),
        state,
        reason,
        asked_by,
        changed,
        replaced: record.and_then(|record| record.replaced.clone()),
        server: record.and_then(server),
        inherited_variables: record.map(inherited_variables).unwrap_or_default(),
        reader: record.and_then(|record| earlier_reader(&workspace.store, record)),
        attempts: attempts.said_of(&run.id.short()),
        tries: attempts.tried(&run.id.short()),
        identity: identity(&run.spec),
    }
}

/// Returns the explanation of a committed run that the plan does not request.
fn of_other(args: &WhyArgs, workspace: &Workspace, listed: Listed, attempts: &Attempts) -> ExplainedRun {
    let record = listed.record.as_slice();
    let variant = args.plan.as_ref().and_then(|plan| variant::of_records(plan, &args.changes, record));
    let variant = variant.map(|variant| format!("; it is a result {variant}")).unwrap_or_default();
    let file = workspace.loaded.file().display().to_string();
    let endpoint = listed.record.as_ref().map(|record| record.spec.endpoint.name.clone());
    let theirs = endpoint.filter(|endpoint| !workspace.plan().endpoints.contains_key(endpoint));
    let mut told = of_listed(&workspace.store, listed, attempts);
    told.state = "orphan";
    told.reason = match theirs {
        None => format!("{} is committed, but not part of {file}{variant}", &told.id[..16]),
        Some(endpoint) => {
            format!("{} is committed for a different plan: {file} has no endpoint `{endpoint}`", &told.id[..16])
        }
    };
    told
}

fn in_folder(args: &WhyArgs, store: &Store, by_id: bool) -> Result<Vec<ExplainedRun>, Failure> {
    warn_of_no_inventory(store);
    let attempts = Attempts::of(store)?;
    if !by_id {
        let listed = store.list()?;
        let records: Vec<&RunRecord> = listed.iter().filter_map(|listed| listed.record.as_ref()).collect();
        let ids: HashSet<String> = matching_records(&args.run, &records)
            .map_err(|failure| or_id(&args.run, "sweep names require --plan", failure))?
            .iter()
            .map(|record| record.id.clone())
            .collect();
        let is_meant = |listed: &Listed| listed.record.as_ref().is_some_and(|record| ids.contains(&record.id));
        return Ok(listed.into_iter().filter(is_meant).map(|listed| of_listed(store, listed, &attempts)).collect());
    }
    match store.find(&args.run) {
        Ok(listed) => Ok(vec![of_listed(store, listed, &attempts)]),
        Err(StoreError::Deleted { id, .. }) => {
            let deleted = store.deleted()?.into_iter().find(|deleted| deleted.id == id);
            Ok(deleted.map(|deleted| vec![of_deleted(&deleted, &attempts)]).unwrap_or_default())
        }
        Err(StoreError::NotFound { dir, prefix } | StoreError::OnlyTried { dir, id: prefix }) => {
            let wanted = prefix.to_ascii_lowercase();
            let tried = attempts.all.iter().find(|attempt| attempt.id.starts_with(&wanted[..wanted.len().min(16)]));
            let told = tried.map(|attempt| of_attempt(attempt, &attempts));
            told.map(|told| vec![told]).ok_or_else(|| StoreError::NotFound { dir, prefix }.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the explanation of a folder in `runs/`.
fn of_listed(store: &Store, listed: Listed, attempts: &Attempts) -> ExplainedRun {
    let record = listed.record.as_ref();
    let (state, reason) = match (&listed.state, record) {
        (State::Corrupt(reason), _) => ("corrupt", reason.clone()),
        (State::Unreadable(reason), _) => ("unreadable", reason.clone()),
        (State::Whole, Some(record)) => ("committed", format!("{:.19}Z", record.ended.to_string())),
        (State::Whole, None) => ("corrupt", "run.json cannot be read".to_owned()),
    };
    let known = record.map(|record| (record.id.as_str(), &record.spec));
    let replaced = record.and_then(|record| record.replaced.clone());
    let server = record.and_then(server);
    let inherited_variables = record.map(inherited_variables).unwrap_or_default();
    let reader = record.and_then(|record| earlier_reader(store, record));
    let told = ExplainedRun::of(&listed.id, known, (state, reason), attempts);
    ExplainedRun { replaced, server, inherited_variables, reader, ..told }
}

/// Returns why today's rules cannot judge all responses of a result that an earlier version read; `None` if they can.
fn earlier_reader(store: &Store, record: &RunRecord) -> Option<String> {
    if record.facts.reader >= READER {
        return None;
    }
    let run = store.read(record).ok()?;
    let streamed: Vec<&Measured> = run.rows().iter().filter(|row| row.outcome.is_ok() && row.events > 0).collect();
    let is_open = |row: &&&Measured| row.finish_reason().is_none() || row.token_source == Some(TokenSource::Events);
    let open = streamed.iter().filter(is_open).count();
    let text = || {
        format!(
            "read by an earlier version of sweepline; {open} of {} responses cannot be judged by today's rules from what \
             was recorded: `run --force` measures the run again",
            streamed.len()
        )
    };
    (open > 0).then(text)
}

/// Returns the self-description of a result's server.
fn server(record: &RunRecord) -> Option<Fingerprint> {
    Some(record.environment.fingerprint.clone()).filter(|server| !server.is_empty())
}

/// Returns the names of the engine variables that a result's launched server inherited.
fn inherited_variables(record: &RunRecord) -> Vec<String> {
    record.environment.server_start.as_ref().map(|start| start.inherited_variables.clone()).unwrap_or_default()
}

/// Returns the explanation of a run that was committed and whose folder is gone.
fn of_deleted(deleted: &Deleted, attempts: &Attempts) -> ExplainedRun {
    let told = ExplainedRun::of(&deleted.id, None, ("deleted", deleted.said()), attempts);
    match &deleted.entry {
        Ok(entry) => ExplainedRun { id: entry.id.clone(), name: entry.name(), ..told },
        Err(_) => told,
    }
}

/// Returns the explanation of a run that has attempts but no result.
fn of_attempt(attempt: &ListedAttempt, attempts: &Attempts) -> ExplainedRun {
    let tries = attempts.tries.get(&attempt.id);
    let state = if tries.is_some_and(|tries| tries.given_up.is_some()) { GIVEN_UP } else { "new" };
    let reason = tries.map_or_else(|| "never committed".to_owned(), tries_words);
    let known = attempt.record.as_ref().map(|record| (record.id.as_str(), &record.spec));
    ExplainedRun::of(&attempt.id, known, (state, reason), attempts)
}

/// The attempts of a results folder that did not become results.
struct Attempts {
    all: Vec<ListedAttempt>,
    tries: HashMap<String, Tries>,
}

impl Attempts {
    fn of(store: &Store) -> Result<Attempts, StoreError> {
        let mut all = store.attempts()?;
        all.sort_by(|a, b| (&a.id, a.number).cmp(&(&b.id, b.number)));
        Ok(Attempts { all, tries: store.tries()? })
    }

    fn tried(&self, id: &str) -> Option<Tried> {
        self.tries.get(id).and_then(Tried::of)
    }

    /// Returns the outcomes of the attempts at the run with the short id `id`.
    fn said_of(&self, id: &str) -> Vec<String> {
        let last = self.tries.get(id).and_then(|tries| tries.last.as_ref());
        let of_run = self.all.iter().filter(|attempt| attempt.id == id);
        of_run.map(|attempt| said(attempt, last.filter(|last| last.number == attempt.number))).collect()
    }
}

/// Returns the outcome of one attempt; `last` is set if it is the last attempt at its run.
fn said(attempt: &ListedAttempt, last: Option<&LastTry>) -> String {
    let number = attempt.number;
    let record = attempt.record.as_ref();
    let at = |moment: Option<Moment>| moment.map(|at| format!(" {}", clock::time_of(at.0))).unwrap_or_default();
    let afresh = record.filter(|record| record.afresh).map_or("", |_| "; it reset the retry count");
    let ended = record.and_then(|record| record.ended);
    match (&attempt.state, record.and_then(|record| record.spoiled.as_ref())) {
        (_, Some(what)) => {
            let given_up = record.and_then(|record| record.given_up);
            let given_up = given_up.map(|times| match what.cause {
                SpoilCause::NotStarted => "; given up".to_owned(),
                _ => format!("; given up after {times} of {times} retries"),
            });
            let (detail, given_up) = (what.in_one_line(), given_up.unwrap_or_default());
            format!("attempt {number} was spoiled{}: {detail}{given_up}{afresh}", at(ended))
        }
        (AttemptState::Failed(reason), None) if reason == INTERRUPTED => {
            format!("attempt {number} was interrupted{}{afresh}", at(ended))
        }
        (AttemptState::Failed(reason), None) => format!("attempt {number} failed{}: {reason}{afresh}", at(ended)),
        (AttemptState::Unfinished, None) => match last.map(|last| &last.how) {
            Some(How::UnderWay(pid)) => format!("attempt {number} is running in process {pid}{afresh}"),
            Some(How::Failed(reason)) => format!("attempt {number} failed: {reason}"),
            _ => {
                let ended = at(last.and_then(|last| last.ended));
                format!("attempt {number} was interrupted{ended}: its process was killed{afresh}")
            }
        },
    }
}

fn identity(spec: &RunSpec) -> Map<String, Value> {
    canonical(spec).entries().iter().map(|(field, value)| (field.clone(), value.to_string().into())).collect()
}

impl ExplainedRun {
    /// Returns the information that the results folder alone contains about the run with this short id: its
    /// full id and its identity, if known.
    fn of(
        short: &str,
        known: Option<(&str, &RunSpec)>,
        (state, reason): (&'static str, String),
        attempts: &Attempts,
    ) -> ExplainedRun {
        ExplainedRun {
            id: known.map_or(short, |(id, _)| id).to_owned(),
            name: known.map(|(_, spec)| name(spec)).unwrap_or_default(),
            state,
            reason,
            asked_by: None,
            changed: Vec::new(),
            replaced: None,
            server: None,
            inherited_variables: Vec::new(),
            reader: None,
            attempts: attempts.said_of(short),
            tries: attempts.tried(short),
            identity: known.map(|(_, spec)| identity(spec)).unwrap_or_default(),
        }
    }

    /// Returns the explanation as text: with the full identity if the run is `alone`, and in a few
    /// lines if there are others.
    fn text(&self, alone: bool) -> String {
        // The reason of a given-up run already begins with its state.
        let state = match self.state {
            GIVEN_UP => format!("{}\n", plain(&self.reason)),
            state => format!("{state}: {}\n", plain(&self.reason)),
        };
        let heading = format!("{} {}\n", self.id.get(..16).unwrap_or(&self.id), plain(&self.name));
        // An orphan is identified by its reason, because the plan has no name for it.
        let mut text = if self.state == "orphan" { state } else { format!("{heading}{state}") };
        if let Some(by) = self.asked_by.as_ref().filter(|by| by.not_asked().is_none()) {
            text.push_str(&fill("", 2, &plain(by.said())));
        }
        if let Some(Replaced { attempt, reason }) = &self.replaced {
            let attempt = attempt.map_or_else(|| "an earlier attempt".to_owned(), |number| format!("attempt {number}"));
            let reason = reason.as_deref().unwrap_or("no reason recorded");
            text.push_str(&format!("its result replaced {attempt}: {}\n", plain(reason)));
        }
        if let Some(words) = self.server.as_ref().and_then(Fingerprint::in_words) {
            text.push_str(&format!("measured on {}\n", plain(&words)));
        }
        if !self.inherited_variables.is_empty() {
            let names = self.inherited_variables.join(", ");
            text.push_str(&fill("", 2, &plain(&format!("its server inherited the variables {names}"))));
        }
        if let Some(reader) = &self.reader {
            text.push_str(&fill("", 2, reader));
        }
        text.extend(self.attempts.iter().map(|attempt| format!("{}\n", plain(attempt))));
        if alone && !self.identity.is_empty() {
            text.push_str("identity:\n");
            let line = |(field, value): (&String, &Value)| {
                format!("  {field} = {}\n", plain(value.as_str().unwrap_or_default()))
            };
            text.extend(self.identity.iter().map(line));
        }
        text
    }
}
