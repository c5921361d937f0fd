//! What stands before the user's first message, as one text.

use std::sync::Arc;

/// What stands before the user's first message.
pub(super) struct Lead {
    /// The text; none where nothing stands there.
    pub(super) text: Option<Arc<str>>,
    /// Its tokens.
    pub(super) tokens: u32,
    /// Bytes of it, from the front, that other items may open with too.
    pub(super) common: usize,
}

impl Lead {
    /// Puts another text behind it, which other items may have too or not.
    pub(super) fn and(&mut self, (text, tokens): (Arc<str>, u32), is_common: bool) {
        self.tokens += tokens;
        let text = match self.text.take() {
            Some(before) => format!("{before}\n\n{text}").into(),
            None => text,
        };
        if is_common {
            self.common = text.len();
        }
        self.text = Some(text);
    }

    /// Whether other items may have all of it too.
    pub(super) fn is_common(&self) -> bool {
        self.text.as_ref().is_none_or(|text| self.common == text.len())
    }
}
