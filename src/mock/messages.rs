//! Creates responses in the form of Anthropic's Messages API: named events, with text and thinking in content
//! blocks of their own.

use serde_json::json;

use super::part::{Field, Usage};

/// Formats the counts of the prompt with the names of this API, which counts tokens from the prefix cache apart.
fn prompt_counts(Usage { prompt, cached, .. }: Usage) -> String {
    let Some(read) = cached else { return format!(r#""input_tokens":{prompt}"#) };
    let input = prompt - read;
    format!(r#""input_tokens":{input},"cache_creation_input_tokens":0,"cache_read_input_tokens":{read}"#)
}

/// Returns the stop reason of a finished response.
fn stop_reason(finish: &str) -> &'static str {
    match finish {
        "length" => "max_tokens",
        _ => "end_turn",
    }
}

/// Returns an error body in Anthropic's format.
pub(super) fn error(status: u16, message: &str) -> String {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    json!({ "type": "error", "error": { "type": kind, "message": message } }).to_string()
}

/// Returns the JSON members of a complete response after those of `identity`. The texts of thinking and content
/// must be escaped as in JSON strings.
pub(super) fn members(finish: &str, thought: &[u8], text: &[u8], counts: Usage) -> Vec<u8> {
    let mut members = br#""content":["#.to_vec();
    if !thought.is_empty() {
        members.extend_from_slice(br#"{"type":"thinking","thinking":""#);
        members.extend_from_slice(thought);
        members.extend_from_slice(br#"","signature":"mock"},"#);
    }
    members.extend_from_slice(br#"{"type":"text","text":""#);
    members.extend_from_slice(text);
    let (reason, prompt, output) = (stop_reason(finish), prompt_counts(counts), counts.completion);
    let end =
        format!(r#""}}],"stop_reason":"{reason}","stop_sequence":null,"usage":{{{prompt},"output_tokens":{output}}}"#);
    members.extend_from_slice(end.as_bytes());
    members
}

/// Writes the events of one stream.
pub(super) struct Events {
    /// The JSON members with which the message begins.
    identity: String,
    line_end: &'static str,
    /// The kind of the open content block; `None` if no block is open.
    open: Option<Field>,
    /// Index of the open block, or of the next one.
    index: u32,
    /// The parts before and after the text of the next delta.
    around: [Vec<u8>; 2],
}

impl Events {
    /// Creates the writer of a stream's events, before the first event.
    pub(super) fn new(identity: String, line_end: &'static str) -> Events {
        Events { identity, line_end, open: None, index: 0, around: [Vec::new(), Vec::new()] }
    }

    fn event(&self, kind: &str, members: &str) -> String {
        let end = self.line_end;
        let comma = if members.is_empty() { "" } else { "," };
        format!(r#"event: {kind}{end}data: {{"type":"{kind}"{comma}{members}}}{end}{end}"#)
    }

    /// Returns the events that begin a response, with the counts of the prompt unless the usage is not reported.
    pub(super) fn opening(&self, counts: Option<Usage>) -> String {
        let usage = counts
            .map_or_else(String::new, |counts| format!(r#","usage":{{{},"output_tokens":1}}"#, prompt_counts(counts)));
        let message =
            format!(r#""message":{{{},"content":[],"stop_reason":null,"stop_sequence":null{usage}}}"#, self.identity);
        self.event("message_start", &message) + &self.event("ping", "")
    }

    /// Closes the open content block, if there is one, and returns the event.
    fn close_block(&mut self) -> String {
        if self.open.take().is_none() {
            return String::new();
        }
        let stop = self.event("content_block_stop", &format!(r#""index":{}"#, self.index));
        self.index += 1;
        stop
    }

    /// Returns the two pieces around the text of the next delta event. If the text begins a content block, the
    /// first piece also has the events before the delta.
    pub(super) fn around(&mut self, field: Field) -> (&[u8], &[u8]) {
        let mut before = String::new();
        let (block, delta) = match field {
            Field::Content => (r#"{"type":"text","text":""}"#, r#"{"type":"text_delta","text":""#),
            Field::Reasoning => {
                (r#"{"type":"thinking","thinking":"","signature":""}"#, r#"{"type":"thinking_delta","thinking":""#)
            }
        };
        if self.open != Some(field) {
            before = self.close_block();
            let announced = format!(r#""index":{},"content_block":{block}"#, self.index);
            before += &self.event("content_block_start", &announced);
            self.open = Some(field);
        }
        let (kind, end, index) = ("content_block_delta", self.line_end, self.index);
        before += &format!(r#"event: {kind}{end}data: {{"type":"{kind}","index":{index},"delta":{delta}"#);
        self.around = [before.into_bytes(), format!(r#""}}}}{end}{end}"#).into_bytes()];
        let [before, after] = &self.around;
        (before, after)
    }

    /// Returns the events after the last text.
    pub(super) fn closing(&mut self, finish: &str, counts: Option<Usage>) -> String {
        let usage =
            counts.map_or_else(String::new, |counts| format!(r#","usage":{{"output_tokens":{}}}"#, counts.completion));
        let reason = stop_reason(finish);
        let end = format!(r#""delta":{{"stop_reason":"{reason}","stop_sequence":null}}{usage}"#);
        self.close_block() + &self.event("message_delta", &end) + &self.event("message_stop", "")
    }

    /// Returns the event for an error during the stream.
    pub(super) fn failure(&self, message: &str) -> String {
        let end = self.line_end;
        format!("event: error{end}data: {}{end}{end}", error(500, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Returns the data of each event; panics if the name of an event differs from its type.
    fn data(events: &str) -> Vec<Value> {
        let parse = |event: &str| {
            let (name, data) = event.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
            let data: Value = serde_json::from_str(data).unwrap();
            assert_eq!(data["type"], name);
            data
        };
        events.split("\n\n").filter(|event| !event.is_empty()).map(parse).collect()
    }

    #[test]
    fn blocks_are_opened_and_closed_around_their_texts() {
        let counts = Usage { prompt: 9, cached: Some(4), completion: 3, reasoning: 1 };
        let mut events = Events::new(r#""id":"msg_1","type":"message""#.to_owned(), "\n");
        let mut stream = events.opening(Some(counts));
        for (field, text) in [(Field::Reasoning, "hm"), (Field::Content, " a"), (Field::Content, " b")] {
            let (before, after) = events.around(field);
            stream += &String::from_utf8([before, text.as_bytes(), after].concat()).unwrap();
        }
        stream += &events.closing("length", Some(counts));
        let data = data(&stream);
        let told: Vec<(&str, &Value)> =
            data.iter().map(|event| (event["type"].as_str().unwrap(), &event["index"])).collect();
        let (none, zero, one) = (Value::Null, Value::from(0), Value::from(1));
        assert_eq!(
            told,
            [
                ("message_start", &none),
                ("ping", &none),
                ("content_block_start", &zero),
                ("content_block_delta", &zero),
                ("content_block_stop", &zero),
                ("content_block_start", &one),
                ("content_block_delta", &one),
                ("content_block_delta", &one),
                ("content_block_stop", &one),
                ("message_delta", &none),
                ("message_stop", &none),
            ]
        );
        let usage = json!({ "input_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 4, "output_tokens": 1 });
        assert_eq!(data[0]["message"]["usage"], usage);
        assert_eq!(data[3]["delta"], json!({ "type": "thinking_delta", "thinking": "hm" }));
        assert_eq!(data[7]["delta"], json!({ "type": "text_delta", "text": " b" }));
        assert_eq!(data[9]["delta"]["stop_reason"], "max_tokens");
        assert_eq!(data[9]["usage"], json!({ "output_tokens": 3 }));
    }
}
