//! How several series are combined into one value.

use super::canonical::Over;

/// Series of one page, or of several GPUs that are being combined into one value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gathered {
    pub(super) n: usize,
    /// The selectors of the rule that matched a series, with one bit for each.
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
        // A single NaN makes the result NaN.
        if value.is_nan() {
            self.value = f64::NAN;
        }
        self.n += 1;
    }

    /// Whether each of this many selectors matched a series.
    pub(super) fn has_all(self, selectors: usize) -> bool {
        self.selectors.count_ones() as usize == selectors
    }

    /// Returns the value; `None` if it is not a finite number.
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
