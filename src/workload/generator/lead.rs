//! The lead: everything before the user's first message, as one text.

use std::sync::Arc;

/// Everything before the user's first message.
pub(super) struct Lead {
    /// The text; `None` if nothing precedes the user's first message.
    pub(super) text: Option<Arc<str>>,
    /// The number of tokens of the text.
    pub(super) tokens: u32,
    /// Number of leading bytes of the text that other items may also begin with.
    pub(super) common: usize,
}

impl Lead {
    /// Appends another text; `is_common` is true if other items may share it.
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

    /// Whether other items may share the whole text.
    pub(super) fn is_common(&self) -> bool {
        self.text.as_ref().is_none_or(|text| self.common == text.len())
    }
}
