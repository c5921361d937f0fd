//! `sweepline verify` checks every file of every committed run against its digest, and the runs
//! against the inventory.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Folder, TextOrJson};
use crate::cli::{output, shared};
use crate::report::format::plain;
use crate::store::{Deleted, Entered, Entry, FileReport, Moment, RunReport, State, Store, Verified, short};
use crate::units::text::counted;

/// The arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Forget the run with this id (or unambiguous prefix) after its folder was deleted on purpose; other
    /// runs are not checked
    #[arg(long, value_name = "ID", conflicts_with = "format")]
    forget: Option<String>,
    #[command(flatten)]
    folder: Folder,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
}

/// Every committed run with the results of its digest check, and the problems of the inventory.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Document<'a> {
    /// Each run of the folder.
    runs: Vec<OneRun<'a>>,
    /// Number of undamaged runs that are not covered, because their run.json was written by an
    /// earlier version of sweepline and has no digest.
    not_covered: usize,
    /// Runs that were committed and whose folders are gone.
    deleted: Vec<OneDeleted<'a>>,
    /// The problem of the inventory as a whole; null if there is none.
    inventory: Option<&'a str>,
    /// For results on object storage: the packs (`packs/DIGEST.json`) whose content does not match their
    /// name. Readers skip these packs.
    damaged_packs: &'a [String],
    /// For results on object storage: the runs of the local copy whose commits are missing in the store, because they
    /// were removed there.
    vanished: &'a [String],
}

/// The problems of results on object storage; empty for a results folder.
struct OfStore {
    /// The damaged packs.
    packs: Vec<String>,
    /// The runs of the local copy whose commits are missing in the store.
    vanished: Vec<String>,
}

impl OfStore {
    fn of(store: &Store) -> Result<OfStore, Failure> {
        let packs = store.remote().map_or(Ok(Vec::new()), |remote| remote.damaged())?;
        Ok(OfStore { packs, vanished: store.vanished(None)? })
    }

    fn is_good(&self) -> bool {
        self.packs.is_empty() && self.vanished.is_empty()
    }
}

/// One run, and the results of its checks.
#[derive(Debug, Serialize, JsonSchema)]
struct OneRun<'a> {
    /// The name of the run's folder, which is the beginning of the run's id.
    id: &'a str,
    /// Whether all files of the run are intact.
    whole: bool,
    /// Whether the run's run.json contains its own digest; null if it cannot be read.
    covered: Option<bool>,
    /// The files of the run.
    files: &'a [FileReport],
    /// The problem of the run's entry in the inventory; null if there is none.
    inventory: Option<&'a str>,
}

/// A run that was committed and whose folder is gone.
#[derive(Debug, Serialize, JsonSchema)]
struct OneDeleted<'a> {
    /// The beginning of the run's id.
    id: &'a str,
    /// When the run ended, in UTC; null if its entry is damaged.
    ended: Option<Moment>,
    /// The name of the run: endpoint, model, scenario, load, repeat; null if its entry is damaged.
    name: Option<String>,
    /// The problem of the run's entry in the inventory; null if there is none.
    inventory: Option<&'a str>,
}

impl<'a> Document<'a> {
    fn of(verified: &'a Verified, of_store: &'a OfStore) -> Document<'a> {
        Document {
            runs: verified.runs.iter().map(OneRun::of).collect(),
            not_covered: not_covered(verified),
            deleted: verified.deleted.iter().map(OneDeleted::of).collect(),
            inventory: verified.inventory.as_deref(),
            damaged_packs: &of_store.packs,
            vanished: &of_store.vanished,
        }
    }
}

impl<'a> OneRun<'a> {
    fn of(report: &'a RunReport) -> OneRun<'a> {
        OneRun {
            id: &report.id,
            whole: report.is_whole(),
            covered: report.covered,
            files: &report.files,
            inventory: report.entered.problem(),
        }
    }
}

impl<'a> OneDeleted<'a> {
    fn of(deleted: &'a Deleted) -> OneDeleted<'a> {
        let entry = deleted.entry.as_ref();
        OneDeleted {
            id: &deleted.id,
            ended: entry.ok().map(|entry| entry.ended),
            name: entry.ok().map(Entry::name),
            inventory: entry.err().map(String::as_str),
        }
    }
}

fn not_covered(verified: &Verified) -> usize {
    // A run whose run.json has lost its digest counts as damaged, not as uncovered.
    verified.runs.iter().filter(|report| report.is_whole() && report.covered == Some(false)).count()
}

/// Reads every file, reports problems, and exits with 5 if there are any.
pub(super) fn run(args: VerifyArgs) -> Result<Exit, Failure> {
    args.folder.must_exist()?;
    if let Some(id) = &args.forget {
        args.folder.must_be_own("--forget")?;
        let forgotten = args.folder.writer()?.forget(id)?;
        let name = forgotten.entry.as_ref().map(|entry| format!(" {}", plain(&entry.name()))).unwrap_or_default();
        output::print(&format!("forgot run {}{name}", forgotten.id))?;
        return Ok(Exit::Done);
    }
    let store = args.folder.whole_store()?;
    let verified = store.verify()?;
    let of_store = OfStore::of(&store)?;
    match args.format {
        TextOrJson::Text => output::print(&text(&store, (&verified, &of_store), &args.folder)?)?,
        TextOrJson::Json => output::json(&Document::of(&verified, &of_store))?,
    }
    let is_good = |report: &RunReport| report.is_whole() && report.entered.problem().is_none();
    let all_good = verified.inventory.is_none() && verified.deleted.is_empty() && verified.runs.iter().all(is_good);
    Ok(if all_good && of_store.is_good() { Exit::Done } else { Exit::Store })
}

/// Returns the problems, line by line, and their remedies.
fn text(store: &Store, (verified, of_store): (&Verified, &OfStore), folder: &Folder) -> Result<String, Failure> {
    let mut lines = Vec::new();
    for report in &verified.runs {
        let of_files = report.files.iter().filter_map(|file| Some((file.name.as_str(), file.problem.as_ref()?)));
        lines.extend(of_files.map(|(name, problem)| format!("{} {name}: {}", report.id, plain(problem))));
        lines.extend(report.entered.problem().map(|why| format!("{} inventory: {}", report.id, plain(why))));
    }
    for deleted in &verified.deleted {
        let name = deleted.entry.as_ref().map(|entry| format!("{}: ", plain(&entry.name()))).unwrap_or_default();
        lines.push(format!("{} {name}{}", deleted.id, plain(&deleted.said())));
    }
    lines.extend(verified.inventory.as_deref().map(plain));
    let no_pack = "its content does not match its name; remove it; its runs are then read one by one";
    lines.extend(of_store.packs.iter().map(|key| format!("{}: {no_pack}", plain(key))));
    let bad = verified.runs.iter().filter(|report| report.is_damaged()).count();
    let closed = verified.runs.iter().filter(|report| report.is_closed()).count();
    let entries = verified.runs.iter().filter(|report| report.entered.problem().is_some()).count();
    let vanished = of_store.vanished.len();
    let mut parts = match (bad, closed) {
        (0, 0) if vanished == 0 => vec!["all whole".to_owned()],
        (0, _) => Vec::new(),
        _ => vec![format!("{bad} damaged")],
    };
    if vanished > 0 {
        parts.push(format!("{vanished} missing there"));
    }
    if closed > 0 {
        parts.push(format!("{closed} cannot be read"));
    }
    if entries > 0 {
        parts.push(format!("{entries} with a bad entry in the inventory"));
    }
    match verified.deleted.len() {
        0 => {}
        1 => parts.push("1 more was deleted".to_owned()),
        count => parts.push(format!("{count} more were deleted")),
    }
    match not_covered(verified) {
        0 => {}
        count => parts.push(format!("{count} not covered: an earlier sweepline wrote run.json without a digest")),
    }
    lines.push(format!(
        "{} in {}: {}",
        counted(verified.runs.len(), "run"),
        folder.results.display(),
        parts.join("; ")
    ));
    lines.extend(remedies(store, verified, &folder.typed())?);
    if vanished > 0 {
        lines.push(shared::vanished(store, &of_store.vanished, ""));
    }
    Ok(lines.join("\n"))
}

/// Returns the remedies for damaged runs and for the inventory. A sweep checks only `run.json` and file
/// sizes, so other damage requires --force.
fn remedies(store: &Store, verified: &Verified, folder: &str) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    let mut hidden = Vec::new();
    let mut others = Vec::new();
    let (mut plain, mut closed) = (0, 0);
    for report in verified.runs.iter().filter(|report| !report.is_whole()) {
        if report.is_closed() {
            closed += 1;
            continue;
        }
        let listed = store.run(&report.id)?;
        let named = listed.as_ref().and_then(|listed| listed.record.as_ref()).map(|record| short(&record.id));
        if named.is_some_and(|named| named != report.id) {
            others.push(format!("runs/{}", report.id));
            continue;
        }
        match listed.map(|listed| listed.state) {
            Some(State::Whole | State::Unreadable(_)) => hidden.push(format!("'{}'", report.id)),
            Some(State::Corrupt(_)) | None => plain += 1,
        }
    }
    if plain > 0 {
        lines.push(format!(
            "`sweepline run PLAN{folder}` measures {plain} of them again, because their run.json or sizes are wrong"
        ));
    }
    if !hidden.is_empty() {
        let (count, ids) = (hidden.len(), hidden.join(", "));
        lines.push(format!(
            "`sweepline run PLAN{folder} --force --only \"id[:16] in [{ids}]\"` measures {count} of them again"
        ));
    }
    if !others.is_empty() {
        lines.push(format!(
            "move away the folders that have the name of another run: {}; `sweepline run PLAN{folder}` then measures \
             missing runs again",
            others.join(", ")
        ));
    }
    if closed > 0 {
        lines.push(format!(
            "{closed} cannot be read by this user or this sweepline, which is not damage; `run` leaves them as they \
             are without --force: make them readable, or use a newer sweepline"
        ));
    }
    lines.extend(remedies_of_entries(verified, folder));
    Ok(lines)
}

/// Returns the remedies for the inventory, both for its entries and for runs that are gone.
fn remedies_of_entries(verified: &Verified, folder: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let has = |is: fn(&Entered) -> bool| verified.runs.iter().any(|report| is(&report.entered));
    if has(|entered| matches!(entered, Entered::Damaged(_))) {
        lines.push(format!("the next `sweepline run PLAN{folder}` rewrites damaged entries of whole runs"));
    }
    if has(|entered| matches!(entered, Entered::Other(_))) {
        lines.push(format!("`sweepline verify{folder} --forget ID` removes an entry that belongs to another commit"));
    }
    if has(|entered| matches!(entered, Entered::Unreadable(_))) {
        lines.push(
            "an entry that cannot be read, or that a newer sweepline wrote, is left as it is: make it readable, use \
             a newer sweepline, or move the entry away, and the next run rewrites it"
                .to_owned(),
        );
    }
    if let Some(deleted) = verified.deleted.first() {
        lines.push(format!(
            "`sweepline run PLAN{folder}` measures deleted runs again; `sweepline verify{folder} --forget {}` forgets one \
             that was deleted on purpose",
            deleted.id
        ));
    }
    lines
}
