//! Finds results of one endpoint and model that were measured on different servers. These are reported
//! wherever their figures are shown together.

use std::collections::HashSet;

use crate::rows::{Fingerprint, READER};
use crate::store::RunRecord;
use crate::units::text::{counted, plain};

/// Runs of one endpoint and model for which the same server was recorded.
struct Group {
    endpoint: String,
    model: String,
    server: Fingerprint,
    runs: usize,
}

/// The servers that produced the results.
#[derive(Default)]
pub(crate) struct Servers {
    groups: Vec<Group>,
    /// The ids of the runs that have been added so far.
    seen: HashSet<String>,
}

impl Servers {
    /// Adds a result, unless it has already been added or has no recorded server.
    pub(crate) fn add(&mut self, record: &RunRecord) {
        let (spec, server) = (&record.spec, &record.environment.fingerprint);
        if server.is_empty() || !self.seen.insert(record.id.clone()) {
            return;
        }
        let (endpoint, model) = (&spec.endpoint.name, &spec.model.id);
        let is_alike = |group: &&mut Group| is_of(group, (endpoint, model)) && group.server.changed(server).is_empty();
        match self.groups.iter_mut().find(is_alike) {
            Some(group) => group.runs += 1,
            None => {
                let (endpoint, model, server) = (endpoint.clone(), model.clone(), server.clone());
                self.groups.push(Group { endpoint, model, server, runs: 1 });
            }
        }
    }

    /// Returns a note for each endpoint and model whose results come from several engines, releases or served
    /// models.
    pub(crate) fn notes(self) -> Vec<String> {
        let mut groups = self.groups;
        let mut notes = Vec::new();
        while let Some((endpoint, model)) = groups.first().map(|group| (group.endpoint.clone(), group.model.clone())) {
            let is_of_one = |group: &Group| is_of(group, (&endpoint, &model));
            let (of_one, others): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(is_of_one);
            groups = others;
            if of_one.len() > 1 {
                notes.push(note(&of_one));
            }
        }
        notes
    }
}

/// Returns the notes on the servers of the results in `records`, see [`Servers::notes`].
pub(crate) fn notes<'r>(records: impl IntoIterator<Item = &'r RunRecord>) -> Vec<String> {
    let mut servers = Servers::default();
    let mut readers = [0, 0];
    for record in records {
        servers.add(record);
        readers[usize::from(record.facts.reader >= READER)] += 1;
    }
    let mut notes = servers.notes();
    notes.extend(mixed_readers(readers));
    notes
}

/// Returns a note if earlier versions of sweepline read the responses of some of the results; `readers` contains the
/// number of results that they read, and of the others.
fn mixed_readers([earlier, today]: [usize; 2]) -> Option<String> {
    let text = || {
        format!(
            "the responses of {} were read by an earlier version of sweepline, and those of {} by this one; `why RUN` says \
             what differs",
            counted(earlier, "run"),
            counted(today, "run")
        )
    };
    (earlier > 0 && today > 0).then(text)
}

/// Whether the runs of a group use this model at this endpoint.
fn is_of(group: &Group, (endpoint, model): (&str, &str)) -> bool {
    group.endpoint == endpoint && group.model == model
}

fn note(groups: &[Group]) -> String {
    let name = plain(&groups[0].endpoint);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_of_readers_is_noted() {
        assert_eq!([[0, 3], [3, 0], [0, 0]].map(mixed_readers), [None, None, None]);
        let text = "the responses of 1 run were read by an earlier version of sweepline, and those of 2 runs by this one; \
                    `why RUN` says what differs";
        assert_eq!(mixed_readers([1, 2]).as_deref(), Some(text));
    }
}
