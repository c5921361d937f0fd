//! Texts that fit into a cell of Excel.

/// Maximum number of characters in a cell of Excel.
const MOST_CHARACTERS: usize = 32_767;

/// Truncates a text to the size of a cell.
pub(super) fn cut(text: &str) -> String {
    // Excel counts UTF-16 units, and no character has more than two.
    if text.len() <= MOST_CHARACTERS {
        return text.to_owned();
    }
    let mut units = 0;
    let fits = |c: &char| {
        units += c.len_utf16();
        units < MOST_CHARACTERS
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_is_cut() {
        let long: String = "𝄞".repeat(20_000);
        let cut = cut(&long);
        assert!(cut.ends_with('…') && cut.encode_utf16().count() <= MOST_CHARACTERS);
        assert_eq!(super::cut("short"), "short");
    }
}
