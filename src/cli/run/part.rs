//! `--part NAME`: the runs of one part of the plan, beside processes that make those of other parts in the same results folder.

use std::collections::HashSet;

use super::super::workspace::Workspace;
use super::args::RunArgs;
use crate::cli::failure::Failure;
use crate::store::{self, Store, StoreError, Writer};
use crate::submit::{Part, parts};

/// The part that the call names; from here on its runs alone are selected.
pub(super) fn select(args: &mut RunArgs, workspace: &Workspace) -> Result<Option<Part>, Failure> {
    let Some(name) = &args.part else { return Ok(None) };
    let mut parts = parts(workspace.plan(), &workspace.expansion);
    let Some(at) = parts.iter().position(|part| part.name == *name) else {
        let names: Vec<String> = parts.iter().map(|part| format!("`{}`", part.name)).collect();
        return Err(Failure::Usage(format!(
            "--part {name}: the plan has no such part; its parts are {}",
            names.join(", ")
        )));
    };
    let part = parts.swap_remove(at);
    args.selection.narrow(&part.expression());
    Ok(Some(part))
}

/// Takes the results folder for writing: all of it, or the runs of a part.
pub(super) fn lock(args: &RunArgs, workspace: &Workspace, part: Option<&Part>) -> Result<Writer, StoreError> {
    let Some(part) = part else { return Store::lock(&args.folder.results) };
    let own = workspace.expansion.possible().filter(|run| part.has(&run.spec.endpoint.name));
    let ids: HashSet<String> = own.map(|run| run.id.short()).collect();
    Store::lock_part(&args.folder.results, store::Part { name: &part.name, has: &|id| ids.contains(id) })
}
