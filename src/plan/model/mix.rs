//! A mix: several scenarios in one run, each with a share of the requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Decimal;

/// One scenario of a mix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixPart {
    /// The scenario: a built-in or one of the plan's, but not another mix.
    #[schemars(example = &"B1")]
    pub scenario: String,
    /// Share of the requests. Shares add up to 1, or are whole numbers: 3 and 1 mean three quarters and
    /// one quarter.
    #[schemars(extend("exclusiveMinimum" = 0))]
    #[schemars(example = 0.8)]
    pub share: Decimal,
}

/// The maximum number of scenarios in a mix; with more, results would be unreadable.
pub const MOST_PARTS: usize = 64;

/// The shares as the smallest whole numbers in the same proportion; `None` if a share is not above 0 or
/// is too large.
pub fn weights(parts: &[MixPart]) -> Option<Vec<u64>> {
    let scale = parts.iter().map(|part| part.share.parts().1).max()?;
    let widened = |part: &MixPart| {
        let (mantissa, own) = part.share.parts();
        let factor = 10u64.checked_pow(u32::from(scale - own))?;
        u64::try_from(mantissa).ok().filter(|mantissa| *mantissa > 0)?.checked_mul(factor)
    };
    let all: Vec<u64> = parts.iter().map(widened).collect::<Option<_>>()?;
    all.iter().try_fold(0u64, |sum, weight| sum.checked_add(*weight))?;
    let divisor = all.iter().fold(0, |a, b| divisor(a, *b));
    Some(all.iter().map(|weight| weight / divisor).collect())
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_in_one_proportion_are_one_mix() {
        let of = |shares: &[&str]| {
            let part = |share: &&str| MixPart { scenario: "B1".into(), share: share.parse().expect("a number") };
            weights(&shares.iter().map(part).collect::<Vec<_>>())
        };
        assert_eq!(of(&["0.8", "0.2"]), Some(vec![4, 1]));
        assert_eq!(of(&["8", "2"]), Some(vec![4, 1]));
        assert_eq!(of(&["0.25", "0.5", "0.25"]), Some(vec![1, 2, 1]));
        assert_eq!(of(&["1", "1", "1"]), Some(vec![1, 1, 1]));
        assert_eq!([of(&["0", "1"]), of(&["-1", "2"]), of(&[])], [None, None, None]);
        assert_eq!(of(&["0.0000000000000000000000001", "1"]), None);
    }
}
