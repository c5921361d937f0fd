//! Responses in the form of the Responses API: named events, each with its number, and a whole response
//! at the end.

use super::part::{Field, Usage};

/// Placeholder for the text of a delta.
const PLACE: char = '\u{0}';

/// Formats counts with the names of this API.
fn usage(Usage { prompt, cached, completion, reasoning }: Usage) -> String {
    let total = prompt + u64::from(completion);
    let cached = cached.unwrap_or(0);
    format!(
        concat!(
            r#"{{"input_tokens":{},"input_tokens_details":{{"cached_tokens":{}}},"output_tokens":{},"#,
            r#""output_tokens_details":{{"reasoning_tokens":{}}},"total_tokens":{}}}"#
        ),
        prompt, cached, completion, reasoning, total
    )
}

/// Returns how a response ended, in terms of this API.
fn ending(finish: &str) -> (&'static str, &'static str) {
    match finish {
        "length" => ("incomplete", r#"{"reason":"max_output_tokens"}"#),
        _ => ("completed", "null"),
    }
}

/// Returns the members of a whole response that are not part of every response. Texts are the contents
/// of JSON strings.
pub(super) fn members(finish: &str, (thought, text): (&[u8], &[u8]), counts: Usage) -> Vec<u8> {
    let (status, details) = ending(finish);
    let open = format!(r#""status":"{status}","error":null,"incomplete_details":{details},"output":["#);
    let reasoning = [
        br#"{"type":"reasoning","id":"rs","summary":[],"content":[{"type":"reasoning_text","text":""#,
        thought,
        br#""}]},"#,
    ];
    let message = [
        &br#"{"type":"message","id":"msg","role":"assistant","status":"completed","content":[{"type":"output_text","text":""#[..],
        text,
        br#"","annotations":[]}]}],"usage":"#,
    ];
    let reasoning = if thought.is_empty() { Vec::new() } else { reasoning.concat() };
    [open.into_bytes(), reasoning, message.concat(), usage(counts).into_bytes()].concat()
}

/// Writes the events of one stream.
pub(super) struct Events {
    /// Members that every response object of this response has.
    identity: String,
    line_end: &'static str,
    /// Number of the next event.
    next: u64,
    /// The parts before and after the text of the next delta.
    around: [Vec<u8>; 2],
}

impl Events {
    /// Creates the state before the first event.
    pub(super) fn new(identity: String, line_end: &'static str) -> Events {
        Events { identity, line_end, next: 0, around: [Vec::new(), Vec::new()] }
    }

    fn event(&mut self, kind: &str, members: &str) -> String {
        let (number, end) = (self.next, self.line_end);
        self.next += 1;
        format!(r#"event: {kind}{end}data: {{"type":"{kind}",{members},"sequence_number":{number}}}{end}{end}"#)
    }

    fn response(&mut self, kind: &str, members: &str) -> String {
        let members = format!(r#""response":{{{},{members}}}"#, self.identity);
        self.event(kind, &members)
    }

    /// Returns the events that announce a response.
    pub(super) fn opening(&mut self) -> String {
        let status = r#""status":"in_progress","error":null,"incomplete_details":null,"output":[],"usage":null"#;
        let item = r#""output_index":0,"item":{"id":"msg","type":"message","status":"in_progress","role":"assistant","content":[]}"#;
        let part = r#""item_id":"msg","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}"#;
        [
            self.response("response.created", status),
            self.response("response.in_progress", status),
            self.event("response.output_item.added", item),
            self.event("response.content_part.added", part),
        ]
        .concat()
    }

    /// Returns the two pieces around the text of the next event.
    pub(super) fn around(&mut self, field: Field) -> (&[u8], &[u8]) {
        let kind = match field {
            Field::Content => "response.output_text.delta",
            Field::Reasoning => "response.reasoning_text.delta",
        };
        let members = format!(r#""item_id":"msg","output_index":0,"content_index":0,"delta":"{PLACE}""#);
        let event = self.event(kind, &members);
        let (before, after) = event.split_once(PLACE).unwrap_or_default();
        self.around = [before.into(), after.into()];
        let [before, after] = &self.around;
        (before, after)
    }

    /// Returns the events after the last text.
    pub(super) fn closing(&mut self, finish: &str, counts: Option<Usage>) -> String {
        let (status, details) = ending(finish);
        let done = r#""item_id":"msg","output_index":0,"content_index":0,"text":"""#;
        let usage = counts.map_or_else(|| "null".to_owned(), usage);
        let members =
            format!(r#""status":"{status}","error":null,"incomplete_details":{details},"output":[],"usage":{usage}"#);
        let done = self.event("response.output_text.done", done);
        done + &self.response(&format!("response.{status}"), &members)
    }

    /// Returns a failure during the stream.
    pub(super) fn failure(&mut self, message: &str) -> String {
        self.event("error", &format!(r#""code":"server_error","message":"{message}","param":null"#))
    }
}
