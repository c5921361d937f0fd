//! The gaps between the token events of one request, stored compactly, because every request in flight holds
//! its gaps until its row is written.

/// The gaps between successive events in nanoseconds, each stored as a LEB128 number (seven bits per byte,
/// lowest first). Events that arrived together take one byte, and gaps of up to 268 ms take four.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    bytes: Vec<u8>,
    len: usize,
    /// Bytes to reserve when the first gap is added.
    room: usize,
}

impl Gaps {
    /// Creates an empty list with room for about `expected` gaps.
    pub(crate) fn with_room(expected: usize) -> Gaps {
        /// Maximum number of bytes reserved. For longer responses the list grows as they arrive, because
        /// most of ten thousand concurrent responses may never become that long.
        const MOST: usize = 1024;
        Gaps { bytes: Vec::new(), len: 0, room: (expected * 2).min(MOST) }
    }

    /// Adds one gap.
    pub(crate) fn push(&mut self, mut gap: u64) {
        if self.bytes.is_empty() {
            self.bytes.reserve(self.room);
        }
        while gap >= 0x80 {
            self.bytes.push(gap as u8 | 0x80);
            gap >>= 7;
        }
        self.bytes.push(gap as u8);
        self.len += 1;
    }

    /// Returns the size of the stored gaps, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns all gaps, in nanoseconds.
    pub(crate) fn to_vec(&self) -> Vec<u64> {
        let mut gaps = Vec::with_capacity(self.len);
        let (mut gap, mut shift) = (0, 0);
        for byte in &self.bytes {
            gap |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if *byte < 0x80 {
                gaps.push(gap);
                (gap, shift) = (0, 0);
            }
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out(gaps in prop::collection::vec(prop_oneof![0..200u64, any::<u64>(), Just(u64::MAX)], 0..40)) {
            let mut compact = Gaps::with_room(gaps.len());
            gaps.iter().for_each(|gap| compact.push(*gap));
            prop_assert_eq!(compact.to_vec(), gaps);
        }
    }

    #[test]
    fn they_are_small() {
        let mut gaps = Gaps::with_room(128);
        (0..128).for_each(|_| gaps.push(0));
        (0..128).for_each(|_| gaps.push(10_000_000));
        assert_eq!(gaps.size(), 128 + 4 * 128);
    }
}
