//! Converts lengths that vary between requests, in the notations of other tools, to `lengths` or to the two
//! lengths of a scenario.

use super::draft::Field;
use super::said::Said;

/// The length of the shortest prompt of a scenario, in which its nonce has to fit.
pub(super) const SHORTEST: u32 = 16;
/// The maximum length in a scenario.
pub(super) const LONGEST: u32 = 4_000_000;

/// The lengths of texts, in tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Spread {
    /// All lengths are equal.
    One(u32),
    /// Any length from the first to the second, both inclusive.
    Even(u32, u32),
    /// Lengths around a mean, within bounds.
    Normal {
        /// The mean.
        mean: u32,
        /// The standard deviation.
        sd: u32,
        /// The shortest length.
        min: u32,
        /// The longest length.
        max: u32,
    },
}

impl Spread {
    /// Returns lengths around a mean, up to five standard deviations away; values beyond that do
    /// not occur in a run.
    pub(super) fn around(mean: u32, sd: u32, least: u32) -> Spread {
        let far = sd.saturating_mul(5);
        Spread::Normal { mean, sd, min: mean.saturating_sub(far).max(least), max: mean.saturating_add(far) }
    }

    /// Returns the same lengths within the bounds of a scenario, and a description of the resulting
    /// changes.
    pub(super) fn fitted(self, least: u32) -> (Spread, Option<String>) {
        let within = |length: u32| length.clamp(least, LONGEST);
        let fitted = match self {
            Spread::One(length) => Spread::One(within(length)),
            Spread::Even(min, max) if within(min) >= within(max) => Spread::One(within(max)),
            Spread::Even(min, max) => Spread::Even(within(min), within(max)),
            Spread::Normal { mean, sd, min, max } => {
                let (low, high) = (within(min), within(max));
                let mean = mean.clamp(low, high.max(low));
                if sd == 0 || low >= high {
                    Spread::One(mean)
                } else {
                    Spread::Normal { mean, sd, min: low, max: high }
                }
            }
        };
        let ((low, high), (new_low, new_high)) = (self.bounds(), fitted.bounds());
        let changed = if new_low != low && low < least {
            Some(format!("the shortest length is {new_low} tokens here, and {low} in the source"))
        } else if new_high != high && high > LONGEST {
            Some(format!("the longest length is {new_high} tokens here, and {high} in the source"))
        } else {
            None
        };
        (fitted, changed)
    }

    /// Returns the shortest and the longest length.
    fn bounds(self) -> (u32, u32) {
        match self {
            Spread::One(length) => (length, length),
            Spread::Even(min, max) | Spread::Normal { min, max, .. } => (min, max),
        }
    }

    /// Returns lengths reduced by the tokens of a shared text.
    pub(super) fn less(self, tokens: u32) -> Spread {
        let less = |length: u32| length.saturating_sub(tokens);
        match self {
            Spread::One(length) => Spread::One(less(length)),
            Spread::Even(min, max) => Spread::Even(less(min), less(max)),
            Spread::Normal { mean, sd, min, max } => {
                Spread::Normal { mean: less(mean), sd, min: less(min), max: less(max) }
            }
        }
    }

    /// Returns the lengths as a value of a plan.
    fn value(self) -> String {
        match self {
            Spread::One(length) => length.to_string(),
            Spread::Even(min, max) => format!("{{ uniform: {{ min: {min}, max: {max} }} }}"),
            Spread::Normal { mean, sd, min, max } => {
                format!("{{ normal: {{ mean: {mean}, sd: {sd}, min: {min}, max: {max} }} }}")
            }
        }
    }
}

/// Returns the fields of a scenario with these lengths, and the notes, each with the words of the
/// source and the reason.
pub(super) fn lengths(prompt: Said<Spread>, output: Option<Said<Spread>>) -> (Vec<Field>, Vec<(String, String)>) {
    let mut told = Vec::new();
    let mut fit = |said: Said<Spread>, least: u32| {
        let (spread, changed) = said.value.fitted(least);
        told.extend(changed.map(|why| (said.origin.clone(), why)));
        Said { value: spread, origin: said.origin }
    };
    let (prompt, output) = (fit(prompt, SHORTEST), output.map(|output| fit(output, 1)));
    let field = |key: &str, said: &Said<Spread>| Field::new(key, said.value.value(), &said.origin);
    let fields = match (&prompt.value, output) {
        (Spread::One(_), None) => vec![field("prompt_tokens", &prompt)],
        (Spread::One(_), Some(output)) if matches!(output.value, Spread::One(_)) => {
            vec![field("prompt_tokens", &prompt), field("output_tokens", &output)]
        }
        (_, None) => {
            vec![Field::new("lengths", format!("{{ prompt: {}, output: 1 }}", prompt.value.value()), prompt.origin)]
        }
        (_, Some(output)) => {
            let value = format!("{{ prompt: {}, output: {} }}", prompt.value.value(), output.value.value());
            let origin = if prompt.origin == output.origin {
                prompt.origin
            } else {
                format!("{}, {}", prompt.origin, output.origin)
            };
            vec![Field::new("lengths", value, origin)]
        }
    };
    (fields, told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_a_plan() {
        assert_eq!(Spread::around(550, 150, 1), Spread::Normal { mean: 550, sd: 150, min: 1, max: 1300 });
        let (fitted, told) = Spread::Even(1, 1024).fitted(SHORTEST);
        assert_eq!(fitted, Spread::Even(16, 1024));
        assert!(told.unwrap().contains("is 16 tokens here, and 1 in the source"));
        assert_eq!(Spread::Even(1, 8).fitted(SHORTEST).0, Spread::One(16));
        assert_eq!(Spread::around(100, 0, 1).fitted(1).0, Spread::One(100));
        let said = |spread| Said { value: spread, origin: "x".to_owned() };
        let (fields, _) = lengths(said(Spread::One(100)), Some(said(Spread::One(5))));
        assert_eq!(
            fields.iter().map(|field| field.key.as_str()).collect::<Vec<_>>(),
            ["prompt_tokens", "output_tokens"]
        );
        let (fields, _) = lengths(said(Spread::Even(20, 30)), Some(said(Spread::One(5))));
        assert_eq!(fields[0].value, "{ prompt: { uniform: { min: 20, max: 30 } }, output: 5 }");
    }
}
