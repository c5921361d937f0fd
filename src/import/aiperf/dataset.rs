//! The scenario of a data set, independent of the source of its texts.

use super::lengths::Length;
use crate::import::draft::Field;
use crate::protocol::Task;

/// A scenario under construction.
pub(super) struct Content {
    pub hint: String,
    pub fields: Vec<Field>,
    /// Number of requests in a conversation.
    pub turns: f64,
    /// Whether a trace sets the send times.
    pub is_trace: bool,
}

/// The context of a data set.
pub(super) struct Around<'a> {
    pub file: &'a str,
    pub folder: &'a std::path::Path,
    pub task: Task,
    /// Whether the load replays the times in the file.
    pub is_schedule: bool,
}

/// Returns both lengths as fields.
pub(super) fn both(prompt: Length, output: Length) -> Vec<Field> {
    if prompt.is_fixed && output.is_fixed {
        let prompt = Field::new("prompt_tokens", prompt.value, prompt.origin);
        return vec![prompt, Field::new("output_tokens", output.value, output.origin)];
    }
    let value = format!("{{ prompt: {}, output: {} }}", prompt.value, output.value);
    vec![Field::new("lengths", value, format!("{}; {}", prompt.origin, output.origin))]
}
