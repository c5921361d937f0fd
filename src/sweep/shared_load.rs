//! Prepares a run whose load is sent by several processes: creates their start commands and the order that
//! they receive.

use std::path::Path;

use crate::engine::Target;
use crate::expand::PlannedRun;
use crate::expand::resolve::workers as workers_of;
use crate::plan::{Endpoint, Plan};
use crate::store::Attempt;
use crate::workers::{Order, StartCommand};

use super::tokenizers::Tokenizers;

/// Returns the start commands of a run's workers; empty if this process sends the load alone.
pub(super) fn starts(plan: &Plan, run: &PlannedRun) -> Vec<StartCommand> {
    let count = run.spec.engine.workers;
    if count <= 1 {
        return Vec::new();
    }
    let declared = plan.sweeps.get(&*run.sweep).and_then(|sweep| workers_of(plan, sweep));
    let command = |index| declared.and_then(|workers| workers.command(index)).map(str::to_owned);
    (0..count).map(|index| command(index).map_or(StartCommand::Here, StartCommand::Shell)).collect()
}

/// Returns the order for the workers of a run.
pub(super) fn order(
    (run, attempt): (&PlannedRun, &Attempt),
    (endpoint, target, folder): (&Endpoint, &Target, &Path),
    ready: Option<String>,
    tokenizers: &Tokenizers,
) -> Result<Order, String> {
    Ok(Order {
        spec: (*run.spec).clone(),
        url: target.route.address().to_string(),
        access: endpoint.access(),
        ready,
        api_key: endpoint.api_key.clone(),
        headers: target.of_endpoint.clone(),
        folder: std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()),
        id_prefix: id_prefix(run, attempt),
        nonce_seed: attempt.nonce_seed(),
        tokenizer: tokenizers.texts(&run.spec)?,
        share: (0, 1),
    })
}

/// Returns the prefix of every `x-request-id` that is sent in an attempt.
pub(super) fn id_prefix(run: &PlannedRun, attempt: &Attempt) -> String {
    format!("{}-{}", run.id.short(), attempt.number())
}
