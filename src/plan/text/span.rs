//! Ranges of bytes in the texts of a plan.

use std::ops::Range;

/// A range of bytes in the concatenated texts of a plan.
pub(crate) type Span = Range<usize>;

/// Clips a range to the text and to character boundaries.
pub(crate) fn clamp(span: Span, text: &str) -> Span {
    let border = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let start = border(span.start);
    start..border(span.end).max(start)
}

/// A span moved by `by` bytes.
pub(crate) fn shifted(span: Span, by: usize) -> Span {
    span.start + by..span.end + by
}
