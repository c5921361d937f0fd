//! Compares the clock of a worker with the coordinator's.

/// One ping and its reply: when the coordinator sent the ping (`asked`), the time of the worker's clock when
/// the worker received the ping (`answered`), and when the reply arrived (`arrived`). All times are in
/// nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange {
    pub(super) asked: u64,
    pub(super) answered: u64,
    pub(super) arrived: u64,
}

/// The worker's clock minus the coordinator's, and the uncertainty of that offset, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Estimate {
    pub(super) offset_ns: i64,
    pub(super) uncertainty_ns: u64,
}

/// Number of pings to each worker before a run, and again after it.
pub(super) const PINGS: u32 = 32;

/// Estimates the offset from the fastest exchange, as NTP does (RFC 5905): the ping reached the worker at
/// some instant between its sending and the reply's arrival. Returns `None` if there was no exchange.
pub(super) fn estimate(exchanges: &[Exchange]) -> Option<Estimate> {
    let best = exchanges.iter().min_by_key(|one| one.arrived.saturating_sub(one.asked))?;
    let took = best.arrived.saturating_sub(best.asked);
    let middle = best.asked + took / 2;
    Some(Estimate { offset_ns: best.answered as i64 - middle as i64, uncertainty_ns: took.div_ceil(2) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_exchange_tells_the_offset() {
        let slow = Exchange { asked: 0, answered: 5_900, arrived: 1_000 };
        let fast = Exchange { asked: 2_000, answered: 7_020, arrived: 2_100 };
        let found = estimate(&[slow, fast]).unwrap();
        assert_eq!(found, Estimate { offset_ns: 4_970, uncertainty_ns: 50 });
        assert_eq!(estimate(&[]), None);
    }

    #[test]
    fn the_true_offset_lies_within_the_uncertainty() {
        for (there, back) in [(0, 700), (350, 350), (700, 0), (10, 90)] {
            for offset in [-1_000_000i64, 0, 42] {
                let asked = 5_000_000u64;
                let answered = (asked + there) as i64 + offset;
                let one = Exchange { asked, answered: answered as u64, arrived: asked + there + back };
                let found = estimate(&[one]).unwrap();
                assert!(found.offset_ns.abs_diff(offset) <= found.uncertainty_ns, "{there} {back}: {found:?}");
            }
        }
    }
}
