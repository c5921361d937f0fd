//! Filler words that can be used anywhere in a text.

/// Short words that fill the remaining tokens if the next word of the prose has too many tokens.
/// The last ones are for tokenizers with few words in their vocabulary.
pub(super) const FILLERS: &[&str] =
    &["and", "so", "then", "but", "now", "the", "or", "for", "also", "yet", "a", "I", "-"];
