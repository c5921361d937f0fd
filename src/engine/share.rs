//! The part of a run's load that one process sends, which is the whole load if there is only one process.

/// A share of the load. It consists of every request, slot or conversation whose number modulo `count` is
/// `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    index: u32,
    count: u32,
}

impl Share {
    /// The whole load.
    pub const WHOLE: Share = Share { index: 0, count: 1 };

    /// Creates share number `index` (counted from 0) of `count`; `None` unless `index` is below `count`.
    pub fn new(index: u32, count: u32) -> Option<Share> {
        (index < count).then_some(Share { index, count })
    }

    /// Returns the number of shares into which the load is divided.
    pub fn count(self) -> u32 {
        self.count
    }

    /// Returns the index of this share, counted from 0.
    pub fn index(self) -> u32 {
        self.index
    }

    /// Whether this is the whole load.
    pub fn is_whole(self) -> bool {
        self.count == 1
    }

    /// Converts the number `local` within the share to a number in the whole run.
    pub fn number(self, local: u64) -> u64 {
        local * u64::from(self.count) + u64::from(self.index)
    }

    /// Converts `number` in the whole run to a number within the share; `None` if it does not belong to the share.
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
