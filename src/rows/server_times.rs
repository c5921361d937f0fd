//! The times that a server reports for a request, and the check that these times are plausible.

use super::schema::RequestRow;

/// Tolerance for the difference between the server's clock and ours over one request, in nanoseconds.
const ROOM_NS: u64 = 1_000_000;

/// The times that the server reports for one request and its parts, in nanoseconds. A time is `None` if the
/// server does not report it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerTimes {
    /// Time in the server's queue.
    pub queue_ns: Option<u64>,
    /// Prefill time.
    pub prefill_ns: Option<u64>,
    /// Time from the first token to the last.
    pub decode_ns: Option<u64>,
    /// Total time.
    pub total_ns: Option<u64>,
}

impl ServerTimes {
    /// Returns these times, with missing times filled in from `other`.
    pub fn or(self, other: ServerTimes) -> ServerTimes {
        ServerTimes {
            queue_ns: self.queue_ns.or(other.queue_ns),
            prefill_ns: self.prefill_ns.or(other.prefill_ns),
            decode_ns: self.decode_ns.or(other.decode_ns),
            total_ns: self.total_ns.or(other.total_ns),
        }
    }

    /// Whether no time is reported.
    pub fn is_empty(&self) -> bool {
        *self == ServerTimes::default()
    }

    /// Whether these times are possible for a request that took `seen_ns` at the client: neither the total
    /// nor the sum of the parts may be longer.
    fn can_be(&self, seen_ns: u64) -> bool {
        let parts = [self.queue_ns, self.prefill_ns, self.decode_ns].into_iter().flatten();
        let most = parts.fold(0, u64::saturating_add).max(self.total_ns.unwrap_or(0));
        most <= seen_ns.saturating_add(ROOM_NS)
    }
}

impl RequestRow {
    /// Returns the server's own times.
    pub fn server_times(&self) -> ServerTimes {
        ServerTimes {
            queue_ns: self.server_queue_ns,
            prefill_ns: self.server_prefill_ns,
            decode_ns: self.server_decode_ns,
            total_ns: self.server_total_ns,
        }
    }

    /// Records the server's own times. If they are longer than the time from sending the request to its
    /// end, which is impossible, all of them are discarded, because they must have another unit or meaning.
    pub(crate) fn tell_times(&mut self, times: ServerTimes) {
        let seen = self.sent_ns.zip(self.ended_ns).map_or(0, |(sent, ended)| ended.saturating_sub(sent));
        let times = if times.can_be(seen) { times } else { ServerTimes::default() };
        (self.server_queue_ns, self.server_prefill_ns) = (times.queue_ns, times.prefill_ns);
        (self.server_decode_ns, self.server_total_ns) = (times.decode_ns, times.total_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Phase;

    const MS: u64 = 1_000_000;

    /// Returns the recorded times of a request that took 100 ms.
    fn told(queue: u64, prefill: u64, decode: u64, total: Option<u64>) -> ServerTimes {
        let (sent_ns, ended_ns) = (Some(5 * MS), Some(105 * MS));
        let mut row = RequestRow { sent_ns, ended_ns, ..RequestRow::wanted(0, Phase::Measure, 0) };
        let [queue_ns, prefill_ns, decode_ns] = [queue, prefill, decode].map(|ms| Some(ms * MS));
        row.tell_times(ServerTimes { queue_ns, prefill_ns, decode_ns, total_ns: total.map(|ms| ms * MS) });
        row.server_times()
    }

    #[test]
    fn times_are_believed_within_what_the_client_saw() {
        assert_eq!(told(10, 20, 60, Some(95)).decode_ns, Some(60 * MS));
        assert_eq!(told(10, 31, 60, None).queue_ns, Some(10 * MS), "a millisecond is within the clocks' accuracy");
        for times in [told(10, 32, 60, None), told(1, 1, 1, Some(102)), told(u64::MAX / MS, 20, 60, None)] {
            assert!(times.is_empty(), "{times:?}");
        }
    }

    #[test]
    fn nothing_is_believed_of_a_request_that_was_not_sent() {
        let mut row = RequestRow::wanted(0, Phase::Measure, 0);
        row.tell_times(ServerTimes { total_ns: Some(2 * MS), ..ServerTimes::default() });
        assert!(row.server_times().is_empty());
    }
}
