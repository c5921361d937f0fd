//! Descriptions of values of the jitter ratio. The definition, figures and captions share this wording.

/// A mark on the scale of a metric, with a description of values near it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScaleMark {
    /// The value at the mark.
    pub at: f64,
    /// How values relate to the mark, in words, like `near 1`.
    pub near: &'static str,
    /// The description, in one word.
    pub word: &'static str,
}

impl ScaleMark {
    /// Returns the mark as text: `near 1 smooth`.
    pub fn said(&self) -> String {
        format!("{} {}", self.near, self.word)
    }
}

/// The marks of the jitter ratio, in ascending order.
pub static JITTER_MARKS: [ScaleMark; 3] = [
    ScaleMark { at: 1.0, near: "near 1", word: "smooth" },
    ScaleMark { at: 2.0, near: "2", word: "noticeable" },
    ScaleMark { at: 3.0, near: "above 3", word: "choppy" },
];

/// The definition of the jitter ratio.
pub(super) const DEFINITION: &str = "p99(ITL) / p50(ITL): near 1 smooth, 2 noticeable, above 3 choppy";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_has_the_words_of_the_marks() {
        let said: Vec<String> = JITTER_MARKS.iter().map(ScaleMark::said).collect();
        assert!(DEFINITION.ends_with(&format!(": {}", said.join(", "))), "{said:?}");
    }
}
