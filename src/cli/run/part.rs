//! `--part NAME` restricts a sweep to one part of the plan, while other processes measure other parts and
//! write to the same results folder.

use std::collections::HashSet;

use super::super::workspace::Workspace;
use super::args::RunArgs;
use crate::cli::failure::Failure;
use crate::cli::options;
use crate::store::{self, Writer};
use crate::submit::{Part, parts};

/// Returns the part that `--part` names, and restricts the selection to the runs of that part; `None`
/// without `--part`.
pub(super) fn select(args: &mut RunArgs, workspace: &Workspace) -> Result<Option<Part>, Failure> {
    let Some(name) = &args.part else { return Ok(None) };
    let mut parts = parts(workspace.plan(), &workspace.expansion);
    let Some(at) = parts.iter().position(|part| part.name == *name) else {
        let names: Vec<String> = parts.iter().map(|part| format!("`{}`", part.name)).collect();
        return Err(Failure::Usage(format!(
            "--part {name}: unknown part; the plan has the parts {}",
            names.join(", ")
        )));
    };
    let part = parts.swap_remove(at);
    args.selection.narrow(&part.expression());
    Ok(Some(part))
}

/// Opens the results for writing: all of them, or the runs of a part.
pub(super) fn lock(workspace: &Workspace, part: Option<&Part>) -> Result<Writer, Failure> {
    let Some(part) = part else { return options::writer(workspace.store.clone(), None) };
    let own = workspace.expansion.possible().filter(|run| part.has(&run.spec.endpoint.name));
    let ids: HashSet<String> = own.map(|run| run.id.short()).collect();
    let part = store::Part { name: &part.name, has: &|id| ids.contains(id) };
    options::writer(workspace.store.clone(), Some(part))
}
