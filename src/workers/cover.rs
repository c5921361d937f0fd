//! Checks that the rows of all workers together contain every request of the run's schedule exactly
//! once.

use crate::engine::Share;
use crate::rows::RequestRow;

/// The requests of a run whose rows have arrived from the workers so far.
#[derive(Debug, Default)]
pub(super) struct Cover {
    /// The scheduled time of each request in nanoseconds, by worker and by the request's number within the
    /// worker's share; `MISSING` if the request's row has not arrived.
    scheduled: Vec<Vec<u64>>,
    /// When requests were sent (`began`) and when they ended (`ended`), in nanoseconds since the run's start.
    began: Vec<u64>,
    ended: Vec<u64>,
}

const MISSING: u64 = u64::MAX;

impl Cover {
    /// Creates the state for this many workers, without any requests.
    pub(super) fn new(workers: usize) -> Cover {
        Cover { scheduled: vec![Vec::new(); workers], ..Cover::default() }
    }

    /// Adds a row of worker number `worker` (counted from 0). Fails if the request does not belong to the
    /// worker, or has been recorded before.
    pub(super) fn take(&mut self, worker: usize, row: &RequestRow) -> Result<(), String> {
        let RequestRow { request, scheduled_ns, .. } = *row;
        let count = self.scheduled.len() as u32;
        let local = Share::new(worker as u32, count).and_then(|share| share.local(request));
        let local = local.ok_or_else(|| format!("request {request} was sent by worker {}", worker + 1))? as usize;
        let known = &mut self.scheduled[worker];
        if known.len() <= local {
            known.resize(local + 1, MISSING);
        }
        if std::mem::replace(&mut known[local], scheduled_ns) != MISSING {
            return Err(format!("request {request} was recorded twice"));
        }
        if let (Some(sent), Some(ended)) = (row.sent_ns, row.ended_ns) {
            self.began.push(sent);
            self.ended.push(ended);
        }
        Ok(())
    }

    /// Returns the number of requests of worker number `worker`.
    pub(super) fn requests(&self, worker: usize) -> u64 {
        self.scheduled[worker].len() as u64
    }

    /// Returns the largest number of requests that were in flight at the same time, over all workers.
    pub(super) fn max_in_flight(&mut self) -> u64 {
        self.began.sort_unstable();
        self.ended.sort_unstable();
        let (mut over, mut most) = (0, 0);
        for (before, at) in self.began.iter().enumerate() {
            while self.ended.get(over).is_some_and(|ended| ended <= at) {
                over += 1;
            }
            most = most.max(before + 1 - over);
        }
        most as u64
    }

    /// Checks that no request is missing. The request numbers of each worker must have no gaps. If
    /// `arrivals` are known, every request that was due before `end` must be present, at its scheduled
    /// instant.
    pub(super) fn check(&self, arrivals: Option<impl Iterator<Item = u64>>, end: u64) -> Result<(), String> {
        let count = self.scheduled.len();
        for (worker, known) in self.scheduled.iter().enumerate() {
            if let Some(local) = known.iter().position(|at| *at == MISSING) {
                return Err(format!("request {} is missing", local * count + worker));
            }
        }
        let Some(arrivals) = arrivals else { return Ok(()) };
        let found = |request: usize| self.scheduled[request % count].get(request / count).copied();
        let all: usize = self.scheduled.iter().map(Vec::len).sum();
        let mut due = 0;
        for (request, at) in arrivals.enumerate() {
            match found(request) {
                Some(scheduled) if scheduled == at => due += 1,
                Some(scheduled) => {
                    return Err(format!("request {request} was scheduled at {scheduled} ns, not at {at} ns"));
                }
                None if at < end => return Err(format!("request {request} is missing")),
                // Requests due after the end may be present: a worker may have sent such a request
                // before it learned when the run ends.
                None if due == all => return Ok(()),
                None => {}
            }
        }
        match due == all {
            true => Ok(()),
            false => Err(format!("{} requests are not part of the schedule", all - due)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(request: u64) -> RequestRow {
        RequestRow { request, scheduled_ns: 10 * request, ..RequestRow::default() }
    }

    fn cover(requests: &[u64]) -> Result<Cover, String> {
        let mut cover = Cover::new(3);
        requests.iter().try_for_each(|request| cover.take((*request % 3) as usize, &row(*request)))?;
        Ok(cover)
    }

    fn arrivals() -> Option<impl Iterator<Item = u64>> {
        Some((0..).map(|request| 10 * request))
    }

    #[test]
    fn every_request_once() {
        let order = [4, 0, 1, 3, 2, 6, 5];
        assert_eq!(cover(&order).unwrap().check(arrivals(), 61), Ok(()));
        assert_eq!(cover(&order).unwrap().requests(0), 3);
        assert_eq!(cover(&order).unwrap().check(arrivals(), 71), Err("request 7 is missing".to_owned()));
        assert_eq!(cover(&[0, 1, 2, 3, 5]).unwrap().check(arrivals(), 40), Ok(()), "5 was sent after the end");
    }

    #[test]
    fn gaps_and_doubles_are_found() {
        assert_eq!(cover(&[0, 1, 0]).unwrap_err(), "request 0 was recorded twice");
        assert_eq!(cover(&[0, 2, 4]).unwrap().check(arrivals(), 0), Err("request 1 is missing".to_owned()));
        let mut other = Cover::new(3);
        assert_eq!(other.take(1, &row(3)), Err("request 3 was sent by worker 2".to_owned()));
        let short = Some([0u64, 10].into_iter());
        let found = cover(&[0, 1, 2]).unwrap().check(short, 0);
        assert_eq!(found, Err("1 requests are not part of the schedule".to_owned()));
        let moved = Some([0u64, 11, 20].into_iter());
        assert!(cover(&[0, 1, 2]).unwrap().check(moved, 0).unwrap_err().contains("not at 11 ns"));
    }

    #[test]
    fn requests_in_flight_are_counted_across_workers() {
        let mut cover = Cover::new(2);
        for (request, sent, ended) in [(0, 0, 10), (1, 5, 20), (2, 10, 30), (3, 15, 16)] {
            let row = RequestRow { sent_ns: Some(sent), ended_ns: Some(ended), ..row(request) };
            cover.take((request % 2) as usize, &row).unwrap();
        }
        assert_eq!(cover.max_in_flight(), 3);
    }
}
