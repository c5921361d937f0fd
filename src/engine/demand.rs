//! Computes, before a run starts, the connections that it needs: how many at the same time, how many per
//! second, and how many are opened ahead. The result depends only on the spec.

use crate::expand::{Course, Http2, Load, RunSpec};
use crate::plan::Connections;

/// Maximum number of connections opened ahead in an open loop without an in-flight cap. The number of
/// connections that it will need is unknown before its responses arrive, so the run begins with a few.
/// During fill the rate rises from zero, so the other connections are opened before anything is measured.
const MOST_AHEAD_UNCAPPED: u32 = 64;
/// Number of file descriptors that a run needs in addition to its connections, for the journal, sealing,
/// content and timers.
const FILES_PER_RUN: u64 = 24;
/// Number of file descriptors that each thread of the load generator needs for its runtime and its timer.
const FILES_PER_THREAD: u64 = 8;

/// The connections and other file descriptors that one run needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Maximum number of concurrent connections. Over HTTP/1.1, there is one per request in flight; over
    /// HTTP/2, as few as can carry the requests in flight, provided that the server allows as many streams
    /// as the plan specifies. `None` in an open loop without a cap, which has no maximum.
    pub at_once: Option<u32>,
    /// Connections opened per second at the highest rate; `None` if connections are kept, or in a closed
    /// loop, where the number depends on the server's speed.
    pub per_second: Option<f64>,
    /// Number of file descriptors that the run needs in addition to its connections.
    pub files: u64,
}

/// Computes the connections and other file descriptors that a run of `spec` needs.
pub fn demand(spec: &RunSpec) -> Demand {
    let at_once = match &spec.load {
        Load::Closed { batch_size } => Some(*batch_size),
        Load::Open { cap: Some(cap), .. } => Some((*cap).min(arrivals(spec))),
        Load::Open { cap: None, .. } => None,
    };
    let per_request = spec.connections == Connections::PerRequest;
    Demand {
        at_once: at_once.map(|requests| connections(spec, requests)),
        per_second: Course::new(&spec.load, &spec.phases).filter(|_| per_request).map(|course| course.peak()),
        files: FILES_PER_RUN + FILES_PER_THREAD * u64::from(spec.engine.threads),
    }
}

/// Returns the number of connections that `requests` concurrent requests need, if they are spread over the
/// threads of `spec`.
fn connections(spec: &RunSpec, requests: u32) -> u32 {
    let (Some(Http2 { streams }), false) = (spec.endpoint.http, spec.connections == Connections::PerRequest) else {
        return requests;
    };
    let threads = spec.engine.threads.max(1);
    let of = |thread| share(requests, thread, threads).div_ceil(streams.max(1));
    (0..threads).map(of).sum()
}

/// Returns the part of `whole` that thread number `thread` of `threads` receives.
pub(crate) fn share(whole: u32, thread: u32, threads: u32) -> u32 {
    whole / threads + u32::from(thread < whole % threads)
}

/// Returns the number of concurrent requests for which connections are opened before the run's clock
/// starts.
pub(crate) fn ahead(spec: &RunSpec) -> u32 {
    match (spec.connections, &spec.load) {
        (Connections::Cold | Connections::PerRequest, _) => 0,
        (Connections::Warm, Load::Closed { batch_size }) => *batch_size,
        (Connections::Warm, Load::Open { cap: Some(cap), .. }) => (*cap).min(arrivals(spec)),
        (Connections::Warm, load) => {
            let peak = Course::new(load, &spec.phases).map_or(0.0, |course| course.peak());
            MOST_AHEAD_UNCAPPED.min(peak.ceil() as u32).min(arrivals(spec))
        }
    }
}

/// Returns an upper bound on the total number of requests of an open loop, because no run needs more
/// connections than it has requests. For random arrivals, the bound is the mean plus six standard
/// deviations, where the standard deviation of the count is the gaps' coefficient of variation times the
/// square root of the mean (renewal theory: Cox 1962).
fn arrivals(spec: &RunSpec) -> u32 {
    let (Load::Open { arrivals, .. }, phases) = (&spec.load, &spec.phases) else { return u32::MAX };
    let Some(course) = Course::new(&spec.load, phases) else { return u32::MAX };
    let window = phases.measure.at_most.unwrap_or(phases.measure.duration).0.max(phases.measure.duration.0);
    let end = [window, phases.drain.duration.0].into_iter().fold(phases.measure_start().0, u64::saturating_add);
    let mean = course.expected(end as f64 / 1e9);
    // Converting a float this large saturates at the largest integer.
    (mean + 6.0 * arrivals.process.cv().max(1.0) * mean.sqrt() + 1.0).ceil() as u32
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::expand::expand;
    use crate::plan::ResolvedPlan;

    /// Returns the spec of a run with these axes: two seconds of fill, one of measure and one of drain.
    fn spec(matrix: Value, connections: &str) -> RunSpec {
        let mut axes = json!({ "endpoint": "e", "model": "m" });
        axes.as_object_mut().unwrap().extend(matrix.as_object().unwrap().clone());
        let plan: ResolvedPlan = serde_json::from_value(json!({
            "sweepline": 1, "name": "t", "endpoints": { "e": { "engine": "mock" } }, "models": { "m": { "id": "x" } },
            "phases": { "fill": { "for": "2s" }, "stabilize": "0s", "measure": { "for": "1s" }, "drain": { "for": "1s" } }, "connections": connections,
            "sweeps": { "s": { "matrix": axes } },
        }))
        .unwrap();
        RunSpec::clone(&expand(&plan).unwrap().runs[0].spec)
    }

    fn needs(matrix: Value, connections: &str) -> (Option<u32>, Option<f64>, u32) {
        let spec = spec(matrix, connections);
        let Demand { at_once, per_second, .. } = demand(&spec);
        (at_once, per_second, ahead(&spec))
    }

    #[test]
    fn a_closed_loop_needs_one_for_each_slot() {
        let closed = json!({ "batch_size": 500 });
        assert_eq!(needs(closed.clone(), "warm"), (Some(500), None, 500));
        assert_eq!(needs(closed.clone(), "cold"), (Some(500), None, 0));
        assert_eq!(needs(closed, "per_request"), (Some(500), None, 0));
    }

    #[test]
    fn a_cap_bounds_an_open_loop_and_so_do_its_requests() {
        assert_eq!(needs(json!({ "qps": 1000, "batch_size": 50 }), "warm"), (Some(50), None, 50));
        // The mean is 30 requests (fill counts as one second at the full rate); six times its square root is
        // added.
        assert_eq!(needs(json!({ "qps": 10, "batch_size": 100_000 }), "warm"), (Some(64), None, 64));
        assert_eq!(needs(json!({ "qps": 10, "batch_size": 5 }), "per_request"), (Some(5), Some(10.0), 0));
    }

    #[test]
    fn over_http_2_a_connection_carries_many() {
        let of = |matrix: Value, connections: &str, threads: u32, streams: u32| {
            let mut spec = spec(matrix, connections);
            Arc::make_mut(&mut spec.endpoint).http = Some(Http2 { streams });
            spec.engine.threads = threads;
            (demand(&spec).at_once, ahead(&spec))
        };
        let closed = json!({ "batch_size": 500 });
        assert_eq!(of(closed.clone(), "warm", 1, 100), (Some(5), 500));
        assert_eq!(of(closed.clone(), "warm", 3, 100), (Some(6), 500), "each thread has its own connections");
        assert_eq!(of(closed.clone(), "warm", 1, 64), (Some(8), 500));
        assert_eq!(of(closed, "per_request", 1, 100), (Some(500), 0));
        assert_eq!(of(json!({ "qps": 1000, "batch_size": 50 }), "cold", 1, 100), (Some(1), 0));
    }

    #[test]
    fn without_a_cap_a_few_are_opened_ahead() {
        assert_eq!(needs(json!({ "qps": 2.5 }), "warm"), (None, None, 3));
        assert_eq!(needs(json!({ "qps": 1_000_000 }), "warm"), (None, None, 64));
        assert_eq!(needs(json!({ "qps": 2.5 }), "per_request"), (None, Some(2.5), 0));
    }
}
