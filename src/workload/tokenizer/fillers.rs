//! Short words that may stand anywhere in a text.

/// Short words that fill the remaining space if the next word of the prose is too long. The last
/// ones are for tokenizers with few words in their vocabulary.
pub(super) const FILLERS: &[&str] =
    &["and", "so", "then", "but", "now", "the", "or", "for", "also", "yet", "a", "I", "-"];
