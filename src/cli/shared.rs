//! `--results URL` selects results on object storage, with a copy in a folder on this machine.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ArgMatches;
use clap::parser::ValueSource;
use sha2::{Digest as _, Sha256};

use crate::cli::copies::ADDRESS;
use crate::cli::failure::Failure;
use crate::plan::load;
use crate::store::object::ObjectResults;
use crate::store::{Store, StoreError};
use crate::units::regular_file;

/// Maximum size of a plan, in bytes. Larger plans are rejected when they are loaded.
const MOST_BYTES: u64 = 1 << 20;

/// Returns the address in `--results`; `None` for a folder.
pub(super) fn address(results: &Path) -> Option<&str> {
    results.to_str().filter(|text| text.contains("://"))
}

/// Returns the results at `url`, with their local copy. Does not send a request yet.
pub(super) fn open(url: &str) -> Result<Store, Failure> {
    let objects = ObjectResults::open(url)?;
    let dir = copies()?.join(name_of(url));
    let path = dir.join(ADDRESS);
    let is_new = !path.exists();
    if is_new {
        fs::create_dir_all(&dir).map_err(|error| StoreError::cannot_write(&dir, error))?;
        fs::write(&path, format!("{url}\n")).map_err(|error| StoreError::cannot_write(&path, error))?;
    }
    Ok(Store::shared(dir, Arc::new(objects)))
}

/// If a command takes a plan and `--results`, and `--results` was not given, returns the value of `results`
/// in the plan. If the plan cannot be read, the command reports the error when it reads the plan itself.
pub(super) fn of_plan(matches: &ArgMatches) -> Option<String> {
    let (name, matches) = matches.subcommand()?;
    let is_named = |id: &str| matches.ids().any(|known| known.as_str() == id);
    // `push` and `pull` always use a folder, whatever the plan specifies.
    if ["push", "pull"].contains(&name) || !is_named("results") || !is_named("plan") {
        return None;
    }
    if matches.value_source("results") != Some(ValueSource::DefaultValue) {
        return None;
    }
    let plan = matches.try_get_one::<PathBuf>("plan").ok()??;
    let has_key = |line: &str| line.trim_start_matches(['"', '\'']).starts_with("results");
    // Most plans do not set `results`; these are parsed only once, by the command itself.
    let text = regular_file::read_text(plan, MOST_BYTES).ok().filter(|text| text.lines().any(has_key))?;
    drop(text);
    load(plan).ok()?.plan.results.clone()
}

/// Returns the folder for copies: `SWEEPLINE_CACHE`, or else a folder in the user's cache.
fn copies() -> Result<PathBuf, Failure> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(dir) = set("SWEEPLINE_CACHE") {
        return Ok(dir);
    }
    // The XDG specification requires relative paths to be ignored.
    let cache = set("XDG_CACHE_HOME").filter(|dir| dir.is_absolute()).or_else(|| Some(set("HOME")?.join(".cache")));
    cache.map(|cache| cache.join("sweepline")).ok_or_else(|| {
        let why =
            "neither HOME nor XDG_CACHE_HOME is set: set SWEEPLINE_CACHE to a folder for copies of shared results";
        Failure::Usage(why.to_owned())
    })
}

/// Returns the folder name for the copy of the results at `url`.
fn name_of(url: &str) -> String {
    let digest = Sha256::digest(url.trim_end_matches('/'));
    digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
