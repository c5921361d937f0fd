//! Loads a plan from a file: reads the tree, then the files that it names, and checks the result.

use std::path::Path;

use crate::plan::diagnostic::error::{Code, Diagnostic, PlanErrors};
use crate::plan::files::disk::{Disk, Files};
use crate::plan::files::find;
use crate::plan::files::length_tables;
use crate::plan::files::loader::{Loader, MOST_BYTES, Options, bad_line};
use crate::plan::loaded::Loaded;
use crate::plan::model::client::Workers;
use crate::plan::model::plan::Plan;
use crate::plan::read::recover;
use crate::plan::text::format::Format;
use crate::units::regular_file;

/// Reads and checks a plan file.
pub fn load(path: &Path) -> Result<Loaded, PlanErrors> {
    load_with(path, &Options::default())
}

/// Reads and checks a plan file with options from the command line.
pub fn load_with(path: &Path, options: &Options) -> Result<Loaded, PlanErrors> {
    let fail = |message: String, remedy: &str| {
        Err(PlanErrors::of_file(path, Diagnostic::new(Code::File, message).remedy(remedy)))
    };
    let Some(format) = Format::of(path) else {
        return fail(
            "a plan must be a .yaml, .yml or .toml file".to_owned(),
            "rename the file to one of these extensions",
        );
    };
    // Reads one byte more than allowed, to detect files that are too large.
    let bytes = match Disk.read(path, MOST_BYTES + 1) {
        Ok(bytes) => bytes,
        Err(error) => return fail(format!("the plan cannot be read: {error}"), regular_file::remedy(&error)),
    };
    if bytes.len() > MOST_BYTES {
        return Err(too_large(path));
    }
    match String::from_utf8(bytes) {
        Ok(text) => parse_with(path, &text, format, options, &Disk),
        Err(error) => fail(format!("line {} is not UTF-8 text", bad_line(&error)), "save the file as UTF-8"),
    }
}

/// Sets the number of processes that send the load of every run.
fn spread(plan: &mut Plan, count: u32) {
    plan.engine.workers.get_or_insert_with(Workers::alone).set_count(count);
    for workers in plan.sweeps.values_mut().filter_map(|sweep| sweep.engine.workers.as_mut()) {
        workers.set_count(count);
    }
}

fn too_large(name: &Path) -> PlanErrors {
    let message = format!("the file has more than {MOST_BYTES} bytes, too many for a plan");
    PlanErrors::of_file(name, Diagnostic::new(Code::TooLarge, message))
}

/// Reads and checks the text of a plan. Errors show `name` as the plan's file, and the paths of fragments are
/// relative to this file.
pub fn parse(name: &Path, text: &str, format: Format) -> Result<Loaded, PlanErrors> {
    parse_with(name, text, format, &Options::default(), &Disk)
}

/// Reads and checks the text of a plan, with fragments from any source and options from the command
/// line.
pub fn parse_with(
    name: &Path,
    text: &str,
    format: Format,
    options: &Options,
    files: &dyn Files,
) -> Result<Loaded, PlanErrors> {
    if text.len() > MOST_BYTES {
        return Err(too_large(name));
    }
    let mut loader = Loader::new(files, options);
    let Some(mut tree) = loader.tree(name, text, format) else {
        return Err(loader.into_errors());
    };
    length_tables::settle(&mut tree, &mut loader);
    let recovered = recover::recover(tree, loader.sources.text());
    loader.found.extend(recovered.found);
    let resolved = recovered.plan.map(|mut written| {
        if let Some(count) = options.workers {
            spread(&mut written, count);
        }
        let with_files = find::find(&written, &recovered.tree, &mut loader);
        let (resolved, found) = crate::plan::check::check(&with_files, &recovered.tree, options.allow_outside);
        loader.found.extend(found);
        resolved
    });
    match resolved {
        Some(plan) if loader.found.is_empty() => {
            Ok(Loaded { plan, sources: loader.sources, tree: recovered.tree, mask: loader.mask })
        }
        _ => Err(loader.into_errors()),
    }
}
