//! Results under one label that were measured on several servers; reported wherever their figures are shown
//! together.

use crate::expand::RunSpec;
use crate::rows::Fingerprint;
use crate::store::RunRecord;
use crate::units::text::{counted, plain};

/// Runs of one endpoint and model that recorded the same server.
struct Group<'r> {
    spec: &'r RunSpec,
    server: &'r Fingerprint,
    runs: usize,
}

/// Returns a note for each endpoint and model whose results come from several engines, releases or served
/// models. Results without a recorded server are ignored.
pub(crate) fn notes<'r>(records: impl IntoIterator<Item = &'r RunRecord>) -> Vec<String> {
    let mut groups: Vec<Group> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for record in records.into_iter().filter(|record| seen.insert(record.id.as_str())) {
        let (spec, server) = (&record.spec, &record.environment.fingerprint);
        if server.is_empty() {
            continue;
        }
        let is_alike = |group: &&mut Group| is_of(group.spec, spec) && group.server.changed(server).is_empty();
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.runs += 1,
            None => groups.push(Group { spec, server, runs: 1 }),
        }
    }
    let mut notes = Vec::new();
    while let Some(first) = groups.first().map(|group| group.spec) {
        let (of_one, others): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(|group| is_of(group.spec, first));
        groups = others;
        if of_one.len() > 1 {
            notes.push(note(&of_one));
        }
    }
    notes
}

/// Returns whether two runs use the same model of the same endpoint.
fn is_of(one: &RunSpec, other: &RunSpec) -> bool {
    one.endpoint.name == other.endpoint.name && one.model.id == other.model.id
}

fn note(groups: &[Group]) -> String {
    let name = plain(&groups[0].spec.endpoint.name);
    let are_of_one_program = groups.iter().all(|group| group.server.program() == groups[0].server.program());
    let one = |Group { server, runs, .. }: &Group| {
        let server = if are_of_one_program { server.in_words() } else { server.program() };
        format!("{} ({})", plain(&server.unwrap_or_default()), counted(*runs, "run"))
    };
    let servers: Vec<String> = groups.iter().map(one).collect();
    format!(
        "the results of {name} come from {} different servers: {}; do not combine them",
        groups.len(),
        servers.join(", ")
    )
}
