//! The frozen plan as a file: a plan in YAML, with the ids of its runs in comments at the end.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::super::replace::begins_with;
use super::write::{Comment, table};
use crate::cli::failure::Failure;
use crate::expand::{Expansion, Pending, RunId};
use crate::plan::{self, Disk, Format, Loaded, Options, Plan, Step};
use crate::report::format::plain;
use crate::sweep::event::name;
use crate::units::regular_file;

/// Maximum size of a lock, in bytes.
const MOST_BYTES: u64 = 64 << 20;
/// Start of the line that names the sweepline version of a lock.
const VERSION: &str = "# frozen by sweepline ";
/// Start of a line that lists a run.
const RUN: &str = "# run ";
/// Start of a line that lists runs whose load will be found by an earlier sweep.
const PENDING: &str = "# pending ";

/// A lock that was read from a file.
pub(crate) struct Lock {
    /// The plan in the lock.
    pub loaded: Loaded,
    /// The ids of the runs that the lock lists.
    pub ids: BTreeSet<RunId>,
    /// The listed runs whose load will be found by an earlier sweep.
    pub pending: BTreeSet<String>,
    /// The version of the program that wrote the lock.
    pub version: String,
}

impl Lock {
    /// Reads and checks a lock.
    pub(crate) fn read(path: &Path, allow_outside: bool) -> Result<Lock, Failure> {
        let shown = path.display();
        let text = regular_file::read_text(path, MOST_BYTES).map_err(|error| {
            let remedy = regular_file::remedy(&error);
            Failure::Usage(format!("cannot read the frozen plan {shown}: {error}; {remedy}"))
        })?;
        let version = text.lines().find_map(|line| line.strip_prefix(VERSION)?.split_whitespace().next());
        let Some(version) = version.map(|version| version.trim_end_matches(',').to_owned()) else {
            return Err(Failure::Usage(format!(
                "{shown} is not a frozen plan: `sweepline freeze PLAN -o {shown}` writes one"
            )));
        };
        let id = |line: &str| line.strip_prefix(RUN)?.split_whitespace().next()?.parse().ok();
        let ids = text.lines().filter_map(id).collect();
        let pending = text.lines().filter_map(|line| line.strip_prefix(PENDING)).map(str::to_owned).collect();
        let options = Options { allow_outside, ..Options::default() };
        Ok(Lock { loaded: plan::parse_with(path, &text, Format::Yaml, &options, &Disk)?, ids, pending, version })
    }
}

/// Whether the file at `path` is a lock.
pub(crate) fn is_lock(path: &Path) -> bool {
    begins_with(path, |text| text.starts_with(VERSION))
}

/// Returns the ids of all runs, without duplicates. For searches and ladders, this includes all runs
/// that they may request.
pub(crate) fn ids(expansion: &Expansion) -> BTreeSet<RunId> {
    expansion.possible().map(|run| run.id).collect()
}

/// Returns the runs whose load will be found by an earlier sweep, as listed in a lock: `sustained × 2:
/// vllm · llama · chat · 0.8 × limit.max_qps_under_slo`.
pub(crate) fn pending(expansion: &Expansion) -> BTreeSet<String> {
    let one = |pending: &Pending| {
        let values: Vec<String> = pending.cell.iter().map(|(_, value)| value.to_string()).collect();
        plain(&format!("{} × {}: {}", pending.sweep, pending.repeats, values.join(" · ")))
    };
    expansion.pending.iter().map(one).collect()
}

/// Returns the text of a lock of `plan`, the loaded plan with every default resolved.
pub(crate) fn text(loaded: &Loaded, plan: &Plan, expansion: &Expansion) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let file = plain(&loaded.file().display().to_string());
    let mut text = format!(
        "{VERSION}{version}, from {file}: every value with its origin, the ids of the runs at the end.\n# `sweepline \
         run --frozen FILE PLAN` refuses a plan with other runs.\n"
    );
    let plan = serde_json::to_value(plan).unwrap_or(Value::Null);
    if let Value::Object(plan) = plan {
        table(&plan, &mut Vec::new(), &|path| origin(loaded, path), &mut text);
    }
    let ids = ids(expansion);
    let chosen = if expansion.pools.is_empty() { "" } else { ", including all that searches and ladders may request" };
    text.push_str(&format!("\n# {} runs{chosen}:\n", ids.len()));
    let mut told = BTreeSet::new();
    for run in expansion.possible().filter(|run| told.insert(run.id)) {
        text.push_str(&format!("{RUN}{} {} {}\n", run.id, plain(&run.sweep), plain(&name(&run.spec))));
    }
    let pending = pending(expansion);
    if !pending.is_empty() {
        text.push_str("\n# Runs whose load an earlier sweep finds; they get ids once it is known:\n");
        pending.iter().for_each(|line| text.push_str(&format!("{PENDING}{line}\n")));
    }
    text
}

/// Returns the origin of a value: its place in the plan's files, or `default`. If the plan omits a name
/// because only one entry is declared, the origin is the place of that entry.
fn origin(loaded: &Loaded, path: &[Step]) -> Comment {
    let of = |place: &plan::Place| match place.file.to_str() {
        Some("--set") => format!("--set:{}", place.line),
        _ => format!("{}:{}", plain(&place.file.display().to_string()), place.line),
    };
    match loaded.written(path) {
        Some(origin) => {
            let vars = origin.vars.iter().map(|(name, place)| format!(", {name} at {}", of(place)));
            Comment(of(&origin.place) + &vars.collect::<String>())
        }
        None => match loaded.implied(path).and_then(|declared| loaded.place(&declared)) {
            Some(place) => Comment(format!("the only one, {}", of(&place))),
            None => Comment("default".to_owned()),
        },
    }
}
