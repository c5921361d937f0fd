//! Merges the facts of all workers into the facts of the run.

use crate::rows::{ClockOffset, Facts, Lingering, Pauses, Standstill, Windows, Worker};

/// The data about one worker at the end of a run.
pub(super) struct Told {
    pub(super) name: String,
    pub(super) host: String,
    pub(super) clock: ClockOffset,
    pub(super) requests: u64,
    pub(super) started_late_ns: u64,
    pub(super) facts: Facts,
}

/// Merges the facts of all workers. The run started when the coordinator's monotonic clock read `origin`
/// nanoseconds. Returns `None` if there are no workers.
pub(super) fn merge(told: Vec<Told>, origin: u64, max_in_flight: u64) -> Option<Facts> {
    let first = told.first()?.facts.clone();
    let sum = |of: fn(&Facts) -> u64| told.iter().map(|worker| of(&worker.facts)).sum();
    let end_ns = told.iter().map(|worker| worker.facts.windows.end_ns).max().unwrap_or(0);
    let cpu = told.iter().map(|worker| worker.facts.client_cpu_ns).sum::<Option<u64>>();
    let longest = told.iter().max_by_key(|worker| worker.facts.monotonic_ns)?.facts.clone();
    Some(Facts {
        windows: Windows { end_ns, ..first.windows },
        start_monotonic_ns: origin,
        scheduled: sum(|facts| facts.scheduled),
        scheduled_in_window: sum(|facts| facts.scheduled_in_window),
        never_sent: sum(|facts| facts.never_sent),
        monotonic_ns: longest.monotonic_ns,
        wall_ns: longest.wall_ns,
        boottime_ns: longest.boottime_ns,
        client_cpu_ns: cpu,
        client_cores: cores(&told),
        max_in_flight,
        lingering: told.iter().filter_map(|worker| worker.facts.lingering).reduce(together),
        // Observations are stored for each worker, because those of one process do not apply to the others.
        observed: None,
        pauses: told.iter().map(|worker| worker.facts.pauses).collect::<Option<Vec<_>>>().map(worst),
        workers: told.iter().map(worker).collect(),
        ..first
    })
}

/// Adds up the streams that the server held open. The maximum is an upper bound, because the maxima of workers need not
/// coincide.
fn together(one: Lingering, other: Lingering) -> Lingering {
    Lingering { responses: one.responses + other.responses, most: one.most + other.most }
}

/// Returns the number of cores of all machines, counting each machine once.
fn cores(told: &[Told]) -> u32 {
    let mut hosts: Vec<(&str, u32)> = told.iter().map(|one| (one.host.as_str(), one.facts.client_cores)).collect();
    hosts.sort_unstable();
    hosts.dedup_by_key(|(host, _)| *host);
    hosts.iter().map(|(_, cores)| cores).sum()
}

/// Returns, for each kind of pause, the pauses of the worker that paused longest.
fn worst(all: Vec<Pauses>) -> Pauses {
    let of = |kind: fn(&Pauses) -> Standstill| {
        all.iter().map(kind).max_by_key(|stood| (stood.in_window_ns, stood.longest_ns)).unwrap_or_default()
    };
    Pauses { stopped: of(|pauses| pauses.stopped), starved: of(|pauses| pauses.starved) }
}

fn worker(told: &Told) -> Worker {
    let Told { name, host, clock, requests, started_late_ns, facts } = told;
    Worker {
        name: name.clone(),
        host: host.clone(),
        requests: *requests,
        clock: *clock,
        started_late_ns: *started_late_ns,
        monotonic_ns: facts.monotonic_ns,
        wall_ns: facts.wall_ns,
        boottime_ns: facts.boottime_ns,
        cpu_ns: facts.client_cpu_ns,
        cores: facts.client_cores,
        observed: facts.observed.clone(),
        pauses: facts.pauses,
    }
}
