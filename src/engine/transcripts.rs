//! The texts of prompts and responses, if the plan records them. They are kept with their request, and the
//! writer thread converts them to rows. If texts are not recorded, a request only has a null pointer in
//! their place.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use crate::protocol::{Api, CallPiece, Protocol};
use crate::rows::{RequestRow, TextRow};

use super::sink::{SinkError, TextSink};
use crate::units::SecretMask;

/// Maximum size of a recorded text, in bytes; longer texts are truncated.
const MOST_BYTES: usize = 1 << 20;
/// Size of the waiting texts at which they are written to the file, in bytes.
const WRITE_AT: usize = 4 << 20;

/// The texts of one request and its response.
#[derive(Debug, Default)]
pub(crate) struct RequestTexts {
    body: Bytes,
    calls: Vec<Call>,
    answer: String,
    reasoning: String,
}

/// One tool call of a response, or the part of it that has arrived.
#[derive(Debug, Serialize)]
struct Call {
    #[serde(skip)]
    index: Option<u64>,
    name: String,
    arguments: String,
}

impl RequestTexts {
    /// Creates the texts of the request with this body, before its response begins.
    pub(crate) fn new(body: Bytes) -> RequestTexts {
        RequestTexts { body, ..RequestTexts::default() }
    }

    /// Returns the size of the texts in bytes.
    pub(crate) fn size(&self) -> usize {
        let calls: usize = self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        self.body.len() + self.answer.len() + self.reasoning.len() + calls
    }

    /// Adds the tool calls in `data`, a part of the response, if it contains any.
    pub(crate) fn take_calls(&mut self, protocol: &dyn Protocol, data: &[u8]) {
        let Ok(part) = serde_json::from_slice::<Value>(data) else { return };
        for CallPiece { index, name, arguments } in protocol.calls(&part) {
            let known = match index {
                Some(_) => self.calls.iter().position(|call| call.index == index),
                None => self.calls.len().checked_sub(1).filter(|_| name.is_none()),
            };
            let at = known.unwrap_or_else(|| {
                self.calls.push(Call { index, name: String::new(), arguments: String::new() });
                self.calls.len() - 1
            });
            self.calls[at].name.push_str(&name.unwrap_or_default());
            self.calls[at].arguments.push_str(&arguments.unwrap_or_default());
        }
    }

    /// Sets the text and the reasoning of the completed response.
    pub(crate) fn answered(&mut self, answer: &str, reasoning: String) {
        answer.clone_into(&mut self.answer);
        self.reasoning = reasoning;
    }

    /// Converts the texts to a row for the file, with secrets removed and every text truncated
    /// to the size limit.
    fn into_row(self, row: &RequestRow, mask: &SecretMask) -> TextRow {
        let mut truncated = false;
        let mut fit = |text: String| {
            let text = if mask.is_empty() { text } else { mask.hide(&text) };
            truncated |= text.len() > MOST_BYTES;
            cut(text)
        };
        let calls =
            (!self.calls.is_empty()).then(|| serde_json::to_string(&self.calls).expect("calls are plain texts"));
        let body: Value = serde_json::from_slice(&self.body).expect("we encoded it");
        let said = Api::said_in(&body);
        let some = |text: String| (!text.is_empty()).then_some(text);
        TextRow {
            request: row.request,
            conversation: row.conversation,
            turn: row.turn,
            prompt: fit(said),
            answer: some(self.answer).map(&mut fit),
            reasoning: some(self.reasoning).map(&mut fit),
            tool_calls: calls.map(&mut fit),
            truncated,
        }
    }
}

/// Truncates a text to the size limit.
fn cut(mut text: String) -> String {
    let end = (0..=MOST_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or_default());
    text
}

/// Buffers the texts until they are written to the file.
pub(crate) struct Texts {
    sink: Box<dyn TextSink>,
    mask: Arc<SecretMask>,
    rows: Vec<TextRow>,
    bytes: usize,
}

impl Texts {
    /// Creates an empty buffer of texts for `sink`; `mask` removes secrets from all texts.
    pub(crate) fn new(sink: Box<dyn TextSink>, mask: Arc<SecretMask>) -> Texts {
        Texts { sink, mask, rows: Vec::new(), bytes: 0 }
    }

    /// Adds the texts of a request with this row.
    pub(crate) fn add(&mut self, row: &RequestRow, words: RequestTexts) -> Result<(), SinkError> {
        self.bytes += words.size();
        self.rows.push(words.into_row(row, &self.mask));
        if self.bytes >= WRITE_AT { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), SinkError> {
        self.sink.append(&self.rows)?;
        self.rows.clear();
        self.bytes = 0;
        Ok(())
    }

    /// Writes the remaining texts. Returns the total number of rows.
    pub(crate) fn finish(mut self) -> Result<u64, SinkError> {
        self.write()?;
        self.sink.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Phase;

    fn row_of(words: RequestTexts, key: Option<&str>) -> TextRow {
        words.into_row(&RequestRow::wanted(7, Phase::Measure, 0), &SecretMask::new(key, "[secret]"))
    }

    #[test]
    fn prompts_are_messages_or_a_text() {
        let messages = r#"[{"role":"user","content":"a \"b\"\n\u0001é"}]"#;
        let chat = format!(r#"{{"model":"m","messages":{messages},"max_tokens":5}}"#);
        assert_eq!(row_of(RequestTexts::new(chat.into()), None).prompt, messages);
        let row = row_of(RequestTexts::new(r#"{"model":"m","prompt":"a \"b\"\n"}"#.into()), None);
        assert_eq!((row.request, row.prompt.as_str(), row.answer, row.truncated), (7, "a \"b\"\n", None, false));
    }

    #[test]
    fn tool_calls_are_put_together() {
        let mut words = RequestTexts::new(r#"{"prompt":""}"#.into());
        for part in [
            r#"{"index":0,"id":"x","function":{"name":"f","arguments":""}}"#,
            r#"{"index":0,"function":{"arguments":"{\"a\""}},{"index":1,"function":{"name":"g","arguments":"{}"}}"#,
            r#"{"index":0,"function":{"arguments":":1}"}}"#,
        ] {
            words.take_calls(
                Api::Chat.protocol(),
                format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{part}]}}}}]}}"#).as_bytes(),
            );
        }
        let wanted = r#"[{"name":"f","arguments":"{\"a\":1}"},{"name":"g","arguments":"{}"}]"#;
        assert_eq!(row_of(words, None).tool_calls.as_deref(), Some(wanted));
        let mut words = RequestTexts::new(r#"{"prompt":""}"#.into());
        words.take_calls(
            Api::Chat.protocol(),
            br#"{"choices":[{"message":{"tool_calls":[{"function":{"name":"f"}},{"function":{"name":"f"}}]}}]}"#,
        );
        assert_eq!(words.calls.len(), 2, "a complete response does not number its calls");
    }

    #[test]
    fn what_is_too_long_is_cut_after_the_secret_is_out() {
        let mut words = RequestTexts::new(r#"{"prompt":"the key"}"#.into());
        // The limit falls inside the secret, and inside a two-byte character.
        words.answered(&format!("{}kanary{}", "a".repeat(MOST_BYTES - 4), "é"), "é".repeat(MOST_BYTES));
        let row = row_of(words, Some("kanary"));
        assert!(row.truncated && !row.answer.as_ref().unwrap().contains("kan"), "{:?}", row.answer);
        assert!(row.reasoning.unwrap().len() <= MOST_BYTES && row.prompt == "the key");
    }
}
