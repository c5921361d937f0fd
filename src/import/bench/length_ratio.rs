//! Lengths that vary: `--random-range-ratio`.
//!
//! vLLM draws each length uniformly from ⌊(1 − r) × length⌋ to ⌈(1 + r) × length⌉, with one r for prompts and
//! responses or, as JSON, one r for each (`vllm/benchmarks/datasets.py`).

use crate::import::arguments::Arguments;
use crate::import::draft::Field;
use crate::import::said::Said;

/// The range around the requested lengths, as shares of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ratio {
    /// The range for prompts.
    prompt: f64,
    /// The range for responses.
    output: f64,
    origin: String,
}

impl Ratio {
    /// Returns the command's ratio; `None` if lengths do not vary.
    pub(super) fn of(arguments: &Arguments) -> Option<Ratio> {
        let Said { value, origin } = arguments.text("random-range-ratio")?;
        let both = value.parse::<f64>().ok().map(|ratio| (ratio, ratio));
        let Some((prompt, output)) = both.or_else(|| each(&value)).filter(|(a, b)| is_ratio(*a) && is_ratio(*b)) else {
            arguments.missing(
                &origin,
                "expected a number from 0 to below 1, or {\"input\": …, \"output\": …} of such numbers: lengths do \
                 not vary",
            );
            return None;
        };
        if prompt == 0.0 && output == 0.0 {
            arguments.needless(&origin, "every request has the requested lengths, as here without `lengths`");
            return None;
        }
        Some(Ratio { prompt, output, origin })
    }

    /// Returns the field `lengths` around these lengths, with no length below the minimum of a
    /// scenario.
    pub(super) fn lengths(&self, prompt: (&Said<u32>, u32), output: (&Said<u32>, Option<&Field>)) -> Field {
        let side = |ratio: f64, length: u32, least: u32| {
            let length = f64::from(length);
            let [min, max] = [(length * (1.0 - ratio)).floor(), (length * (1.0 + ratio)).ceil()];
            let [min, max] = [min, max].map(|length| (length as u32).max(least));
            if min == max { min.to_string() } else { format!("{{ uniform: {{ min: {min}, max: {max} }} }}") }
        };
        let ((prompt, least), (output, fixed)) = (prompt, output);
        let answers = fixed.map_or_else(|| side(self.output, output.value, 1), |field| field.value.clone());
        let value = format!("{{ prompt: {}, output: {answers} }}", side(self.prompt, prompt.value, least));
        let of_output = fixed.map_or(&output.origin, |field| &field.origin);
        Field::new("lengths", value, format!("{}, {of_output}, {}", prompt.origin, self.origin))
    }
}

fn each(text: &str) -> Option<(f64, f64)> {
    let json: serde_json::Value = serde_json::from_str(text).ok()?;
    Some((json["input"].as_f64()?, json["output"].as_f64()?))
}

fn is_ratio(ratio: f64) -> bool {
    (0.0..1.0).contains(&ratio)
}
