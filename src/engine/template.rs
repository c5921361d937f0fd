//! Reads events by the shape that the events of one stream share. After one full parse of an event, the
//! bytes before and after its text are kept. A later event with the same bytes around another plain text is
//! the same JSON, except for the text.
//!
//! The result is always the same as with a full parse. The bytes in between must be a non-empty piece of a
//! JSON string that needs no decoding (no quote, backslash or control character, valid UTF-8), so a full
//! parse would find exactly this text and no other difference. Any other event is parsed in full.

use crate::protocol::Channel;

/// Size of the largest event whose shape is learned, in bytes. A larger event is not a token event, and
/// would only cost memory.
const MAX_EVENT: usize = 4096;

/// The bytes around the text of the last event whose shape was learned.
#[derive(Debug, Default)]
pub(crate) struct Template {
    /// The bytes before the text, followed by the bytes after it.
    around: Vec<u8>,
    /// Where the bytes after the text begin in `around`; `None` if no shape has been learned yet.
    split: Option<usize>,
    channel: Channel,
}

impl Template {
    /// Learns the shape of an event `data` in which a full parse found exactly one non-empty text, and
    /// nothing else to record. `text` must be borrowed from `data`.
    pub(crate) fn learn(&mut self, data: &[u8], text: &str, channel: Channel) {
        let Some(start) = (text.as_ptr() as usize).checked_sub(data.as_ptr() as usize) else { return };
        let end = start + text.len();
        // A text that had to be decoded is not borrowed from the event, so its shape is not learned.
        if end > data.len() || data.len() > MAX_EVENT {
            return;
        }
        self.around.clear();
        self.around.extend_from_slice(&data[..start]);
        self.around.extend_from_slice(&data[end..]);
        self.split = Some(start);
        self.channel = channel;
    }

    /// Returns the text of an event of the learned shape, and its channel. Returns `None` if the
    /// event must be parsed in full.
    pub(crate) fn read<'a>(&self, data: &'a [u8]) -> Option<(&'a str, Channel)> {
        let (before, after) = self.around.split_at(self.split?);
        let middle = data.strip_prefix(before)?.strip_suffix(after)?;
        let needs_parsing = |byte: &u8| *byte == b'"' || *byte == b'\\' || *byte < b' ';
        if middle.is_empty() || middle.iter().any(needs_parsing) {
            return None;
        }
        Some((std::str::from_utf8(middle).ok()?, self.channel))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::{Api, Part, Wrong};

    fn parse(data: &[u8]) -> Result<Part<'_>, Wrong> {
        Api::Chat.protocol().event(data)
    }

    /// Returns the text of an event and its channel, using only the full parse; `None` if the event contains
    /// anything else.
    fn parsed(data: &[u8]) -> Option<(String, Channel)> {
        let body = parse(data).ok()?;
        let (text, channel) = body.only_text()?;
        Some((text.to_owned(), channel))
    }

    fn learned(data: &[u8]) -> Template {
        let mut template = Template::default();
        let body = parse(data).unwrap();
        if let Some((text, channel)) = body.only_text() {
            template.learn(data, text, channel);
        }
        template
    }

    #[test]
    fn the_same_shape_with_another_text() {
        let event = |text: &str| format!(r#"{{"id":"c-1","choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
        let template = learned(event(" a").as_bytes());
        let read = |text: &str| template.read(event(text).as_bytes()).map(|(text, _)| text.to_owned());
        assert_eq!(read(" longer text"), Some(" longer text".to_owned()));
        assert_eq!(read("ü"), Some("ü".to_owned()));
        for other in ["", "a\\n", "a\"b", "a\",\"role\":\"x", "\t"] {
            assert_eq!(read(other), None, "{other:?}");
        }
        assert_eq!(template.read(event("a").replace("c-1", "c-2").as_bytes()), None);
    }

    #[test]
    fn an_escaped_text_teaches_nothing() {
        let template = learned(br#"{"choices":[{"delta":{"content":"a\n"}}]}"#);
        assert_eq!(template.split, None);
        let usage = br#"{"choices":[{"delta":{"content":"a"}}],"usage":{"completion_tokens":1}}"#;
        assert_eq!(learned(usage).split, None, "what also counts tokens is parsed each time");
    }

    /// Generates texts as models write them, and texts that break careless parsers.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[ a-zäöü😀]{0,6}",
            Just("\\n".to_owned()),
            Just("\\\"".to_owned()),
            Just("\",\"content\":\"".to_owned()),
            Just("\"}}],\"usage\":{\"completion_tokens\":7},\"x\":[{\"y\":{\"z\":\"".to_owned()),
            Just("\\u0041".to_owned()),
            Just("\u{7f}".to_owned()),
        ]
    }

    fn event() -> impl Strategy<Value = Vec<u8>> {
        let shape = prop::sample::select(vec![
            r#"{"id":"1","choices":[{"index":0,"delta":{"content":"@"},"finish_reason":null}]}"#,
            r#"{"id":"1","choices":[{"index":0,"delta":{"content":"@"},"finish_reason":"stop"}]}"#,
            r#"{"id":"1","choices":[{"index":0,"delta":{"reasoning_content":"@"}}]}"#,
            r#"{"id":"1","choices":[{"index":0,"delta":{"content":"@","reasoning":"@"}}]}"#,
            r#"{"id":"1","choices":[{"text":"@"}],"usage":null}"#,
            r#"{"id":"1","choices":[{"text":"@"}],"usage":{"completion_tokens":2}}"#,
            r#"{"id":"1","note":"@","choices":[{"text":"a"}]}"#,
            r#"{"id":"1","choices":[{"delta":{"content":"@"}},{"delta":{"content":"b"}}]}"#,
            r#"{"id":"1","choices":[{"delta":{"tool_calls":[{"function":{"arguments":"@"}}]}}]}"#,
            r#"{"id":"1","error":null,"choices":[{"delta":{"content":"@"}}]}"#,
            r#"{"id":"1","error":"@","choices":[{"delta":{"content":"a"}}]}"#,
        ]);
        (shape, text()).prop_map(|(shape, text)| shape.replace('@', &text).into_bytes())
    }

    /// Returns an event with some bytes changed, removed or duplicated.
    fn mutated() -> impl Strategy<Value = Vec<u8>> {
        (event(), prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 0..3)).prop_map(
            |(mut data, changes)| {
                for (place, byte, how) in changes {
                    let at = place.index(data.len().max(1));
                    match how {
                        0 if at < data.len() => data[at] = byte,
                        1 if at < data.len() => drop(data.remove(at)),
                        2 => data.insert(at, byte),
                        _ => data.truncate(at.max(1)),
                    }
                }
                data
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// The template and a full parse give the same result for every event, whatever was learned
        /// before.
        #[test]
        fn it_never_lies(stream in prop::collection::vec(prop_oneof![event(), mutated()], 1..12)) {
            let mut template = Template::default();
            for data in &stream {
                if let Some((text, channel)) = template.read(data) {
                    prop_assert_eq!(Some((text.to_owned(), channel)), parsed(data));
                } else if let Ok(body) = parse(data)
                    && let Some((text, channel)) = body.only_text()
                {
                    template.learn(data, text, channel);
                }
            }
        }
    }
}
