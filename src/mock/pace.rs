//! Computes when each token is due, from planned instants only.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::config::Config;
use super::random::random;

/// The timing model of one request. All times are in nanoseconds.
pub(super) struct Pace {
    ttft: f64,
    prefill: f64,
    itl: f64,
    load: f64,
    /// The jitter and its random stream; `None` without jitter.
    jitter: Option<(f64, ChaCha8Rng)>,
}

impl Pace {
    /// Creates the pace of request `number`. Every configured time is multiplied by `factor`.
    pub(super) fn new(config: &Config, number: u64, factor: f64) -> Pace {
        let jitter = config.jitter.to_f64();
        Pace {
            ttft: config.ttft.0 as f64 * factor,
            prefill: config.prefill.0.0 as f64 * factor,
            itl: config.itl.0 as f64 * factor,
            load: config.load.to_f64(),
            jitter: (jitter > 0.0).then(|| (jitter, random(config.seed, b"pace", number))),
        }
    }

    /// Returns the time at which the first token is due if the request got its slot at `slot` and must
    /// compute `computed` tokens of its prompt.
    pub(super) fn first(&mut self, slot: u64, computed: u64) -> u64 {
        slot + self.spread(self.ttft + self.prefill * computed as f64)
    }

    /// Returns the time at which the token after the one planned for `planned` is due, if `busy` slots are
    /// busy. It is relative to the previous token's planned time, not to its actual write, so that lateness
    /// does not accumulate.
    pub(super) fn next(&mut self, planned: u64, busy: usize) -> u64 {
        if self.itl == 0.0 {
            return planned;
        }
        planned + self.spread(self.itl * (1.0 + self.load * busy.saturating_sub(1) as f64))
    }

    fn spread(&mut self, time: f64) -> u64 {
        match &mut self.jitter {
            None => time.round() as u64,
            Some((jitter, random)) => (time * (1.0 + *jitter * (2.0 * random.random::<f64>() - 1.0))).round() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Decimal, Nanos, Share};

    fn config() -> Config {
        Config {
            ttft: Nanos::from_millis(50),
            itl: Nanos::from_millis(10),
            prefill: "0.1ms/token".parse().unwrap(),
            load: Decimal::new(2, 2),
            ..Config::default()
        }
    }

    #[test]
    fn first_token_waits_for_prefill_and_the_next_for_the_others() {
        let mut pace = Pace::new(&config(), 1, 1.0);
        assert_eq!(pace.first(1_000, 100), 60_001_000);
        assert_eq!(pace.next(5, 1), 10_000_005);
        assert_eq!(pace.next(5, 8), 11_400_005);
        assert_eq!(Pace::new(&config(), 1, 3.0).first(0, 0), 150_000_000);
    }

    #[test]
    fn jitter_is_bounded_seeded_and_per_request() {
        let jittered = |seed, number| {
            let config = Config { jitter: Share::percent(5), seed, ..config() };
            let mut pace = Pace::new(&config, number, 1.0);
            (0..100).map(|_| pace.next(0, 1)).collect::<Vec<_>>()
        };
        let times = jittered(7, 1);
        assert!(times.iter().all(|time| (9_500_000..=10_500_000).contains(time)));
        assert!(times.iter().any(|time| *time < 9_700_000) && times.iter().any(|time| *time > 10_300_000));
        assert_eq!(times, jittered(7, 1));
        assert_ne!(times, jittered(7, 2));
        assert_ne!(times, jittered(8, 1));
    }
}
