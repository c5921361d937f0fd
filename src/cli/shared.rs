//! `--results URL`: results on object storage, of which a folder on this machine keeps a copy.

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

/// The address in what was given as `--results`; none of a folder.
pub(super) fn address(results: &Path) -> Option<&str> {
    results.to_str().filter(|text| text.contains("://"))
}

/// The results at `url`, with their copy on this machine. Nothing is asked of them yet.
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

/// The results that the plan of a command names, where the command takes both and names no results itself. A plan that cannot be read is told
/// of by whoever reads it.
pub(super) fn of_plan(matches: &ArgMatches) -> Option<String> {
    let (name, matches) = matches.subcommand()?;
    let is_named = |id: &str| matches.ids().any(|known| known.as_str() == id);
    // What is sent and fetched lies in a folder, whatever the plan says.
    if ["push", "pull"].contains(&name) || !is_named("results") || !is_named("plan") {
        return None;
    }
    if matches.value_source("results") != Some(ValueSource::DefaultValue) {
        return None;
    }
    let plan = matches.try_get_one::<PathBuf>("plan").ok()??;
    let has_key = |line: &str| line.trim_start_matches(['"', '\'']).starts_with("results");
    // Most plans do not say, and are read once.
    let text = fs::read_to_string(plan).ok().filter(|text| text.lines().any(has_key))?;
    drop(text);
    load(plan).ok()?.plan.results.clone()
}

/// Where copies lie: `SWEEPLINE_CACHE`, else a folder in the user's cache.
fn copies() -> Result<PathBuf, Failure> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(dir) = set("SWEEPLINE_CACHE") {
        return Ok(dir);
    }
    // The specification has relative paths ignored.
    let cache = set("XDG_CACHE_HOME").filter(|dir| dir.is_absolute()).or_else(|| Some(set("HOME")?.join(".cache")));
    cache.map(|cache| cache.join("sweepline")).ok_or_else(|| {
        let why = "neither HOME nor XDG_CACHE_HOME is set: SWEEPLINE_CACHE names a folder for copies of shared results";
        Failure::Usage(why.to_owned())
    })
}

/// What the copy of the results at `url` is called.
fn name_of(url: &str) -> String {
    let digest = Sha256::digest(url.trim_end_matches('/'));
    digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
