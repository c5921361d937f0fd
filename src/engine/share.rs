//! The part of a run's load that one process sends. A run that one process sends alone is one whole share.

/// Every request, slot or conversation whose number modulo `count` is `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    index: u32,
    count: u32,
}

impl Share {
    /// The whole load.
    pub const WHOLE: Share = Share { index: 0, count: 1 };

    /// Creates the share number `index` of `count`; `None` without such a share.
    pub fn new(index: u32, count: u32) -> Option<Share> {
        (index < count).then_some(Share { index, count })
    }

    /// Returns the number of shares of the load.
    pub fn count(self) -> u32 {
        self.count
    }

    /// Returns its number among the shares, from 0.
    pub fn index(self) -> u32 {
        self.index
    }

    /// Whether this is the whole load.
    pub fn is_whole(self) -> bool {
        self.count == 1
    }

    /// Returns the number in the whole run of the share's own number `local`.
    pub fn number(self, local: u64) -> u64 {
        local * u64::from(self.count) + u64::from(self.index)
    }

    /// Returns the share's own number of `number` in the whole run, if it belongs to the share.
    pub fn local(self, number: u64) -> Option<u64> {
        let count = u64::from(self.count);
        (number % count == u64::from(self.index)).then_some(number / count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_every_number_once() {
        for count in [1, 2, 7] {
            let shares: Vec<Share> = (0..count).filter_map(|index| Share::new(index, count)).collect();
            for number in 0..50u64 {
                let owners: Vec<u64> = shares.iter().filter_map(|share| share.local(number)).collect();
                assert_eq!(owners, [number / u64::from(count)], "{number} of {count}");
            }
            assert!(shares.iter().all(|share| (0..9).all(|local| share.local(share.number(local)) == Some(local))));
        }
        assert_eq!(Share::new(2, 2), None);
    }
}
