//! How several series become one value.

use super::canonical::Over;

/// Series of one page, or of several GPUs, on their way to one value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gathered {
    pub(super) n: usize,
    /// Which selectors of its rule had a series, a bit each.
    selectors: u32,
    value: f64,
    bits: u64,
}

impl Gathered {
    pub(super) fn add(&mut self, value: f64, over: Over, selector: usize) {
        self.selectors |= 1 << selector;
        self.bits |= value as u64;
        self.value = match over {
            Over::Max if self.n > 0 => self.value.max(value),
            _ => self.value + value,
        };
        // One that is no number makes all of it none.
        if value.is_nan() {
            self.value = f64::NAN;
        }
        self.n += 1;
    }

    /// Whether each of so many selectors had a series.
    pub(super) fn has_all(self, selectors: usize) -> bool {
        self.selectors.count_ones() as usize == selectors
    }

    /// None where it is no finite number.
    pub(super) fn result(self, over: Over) -> Option<f64> {
        let value = match over {
            Over::Sum | Over::Max => self.value,
            Over::Mean => self.value / self.n as f64,
            Over::AnyBit if self.value.is_finite() => self.bits as f64,
            Over::AnyBit => f64::NAN,
        };
        value.is_finite().then_some(value)
    }
}
