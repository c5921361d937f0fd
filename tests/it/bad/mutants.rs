//! Streams whose events change shape from one to the next, compared with the content that the test
//! generated: a reader that takes one event for another of a similar shape gets the digest or the counts
//! wrong.

use std::io::Write;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sweepline::rows::Outcome;

use super::{MB, watched};
use lab::Lab;
use lab::plans::{by_number, one_by_one};
use lab::server::{Server, stream_of};

const STREAMS: usize = 40;
const EVENTS: usize = 80;

/// A small random number generator (Knuth's MMIX constants), so that test and server thread generate the
/// same stream.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// A stream and its content.
#[derive(Default)]
struct Made {
    wire: String,
    content: String,
    reasoning: String,
    /// Bytes of the arguments of tool calls.
    arguments: usize,
    /// Events with text of any kind.
    events: u32,
    /// The last reported token count.
    tokens: Option<u32>,
}

/// Texts that look like plain ones, need decoding, or look like their surroundings.
const TEXTS: [&str; 15] = [
    " word",
    " word",
    " word",
    "a",
    " more than one",
    "Grüße",
    "東京",
    "😀",
    "line\nbreak",
    "tab\t",
    "\"quoted\"",
    "back\\slash",
    "a/b",
    "\"},\"finish_reason\":null}]}",
    "\u{7f}\u{2028}",
];

impl Made {
    /// Generates stream number `seed`.
    fn new(seed: usize) -> Made {
        let mut numbers = Numbers(seed as u64 + 1);
        let mut made = Made::default();
        // Half of the streams keep their identity, like those of servers; the others change it with every
        // event.
        let steady = seed.is_multiple_of(2);
        let mut kind = 0;
        for at in 0..EVENTS {
            // Series of the same kind, so that a shape can be learned before it changes.
            if numbers.below(3) == 0 {
                kind = numbers.below(14);
            }
            let mut event = json!({ "id": "chat-1", "object": "chat.completion.chunk", "created": 7, "model": "m" });
            if !steady {
                event["id"] = json!(format!("chat-{at}"));
                event["created"] = json!(1_000 + at);
            }
            let text = numbers.pick(&TEXTS);
            made.add(event, kind, text, &mut numbers);
        }
        let last = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "length" }] });
        made.wire += &format!("data: {last}\n\ndata: [DONE]\n\n");
        made
    }

    fn add(&mut self, mut event: Value, kind: usize, text: &str, numbers: &mut Numbers) {
        let delta = match kind {
            0..=3 => self.said(json!({ "content": text }), text, ""),
            4 => self.said(json!({ "reasoning_content": text }), "", text),
            5 => self.said(json!({ "reasoning": text }), "", text),
            6 => self.said(json!({ "content": text, "reasoning_content": "and why" }), text, "and why"),
            7 => self.said(json!({ "role": "assistant", "content": text, "tool_calls": null }), text, ""),
            8 => json!({ "role": "assistant", "content": "" }),
            9 => json!({ "role": text, "content": null }),
            10 => {
                self.events += 1;
                self.arguments += text.len();
                json!({ "tool_calls": [{ "index": 0, "function": { "arguments": text } }] })
            }
            11 => {
                // The prefix of a plain event, followed by more.
                event["choices"] = json!([]);
                let tokens = numbers.below(1_000) as u32;
                event["usage"] = json!({ "prompt_tokens": 9, "completion_tokens": tokens });
                self.tokens = Some(tokens);
                Value::Null
            }
            12 => {
                self.said(Value::Null, text, "");
                event["choices"] = json!([{ "index": 0, "text": text, "logprobs": null, "finish_reason": null }]);
                Value::Null
            }
            _ => {
                let tokens = numbers.below(1_000) as u32;
                event["usage"] = json!({ "prompt_tokens": 9, "completion_tokens": tokens });
                self.tokens = Some(tokens);
                self.said(json!({ "content": text }), text, "")
            }
        };
        if !delta.is_null() {
            event["choices"] = json!([{ "index": 0, "delta": delta, "finish_reason": null }]);
            if numbers.below(6) == 0 {
                // The same names elsewhere, with other text.
                event["choices"][0]["logprobs"] = json!({ "content": [{ "token": "decoy", "content": "decoy" }] });
                event["delta"] = json!({ "content": "decoy" });
            }
        }
        self.write(&event, numbers);
    }

    fn said(&mut self, delta: Value, content: &str, reasoning: &str) -> Value {
        self.content += content;
        self.reasoning += reasoning;
        self.events += 1;
        delta
    }

    /// Writes an event in one of the notations that JSON and SSE allow.
    fn write(&mut self, event: &Value, numbers: &mut Numbers) {
        let mut json = event.to_string();
        match numbers.below(8) {
            0 => json = json.replace(":{", ": {"),
            // Every character beyond ASCII by its number, as in Python.
            1 => json = escaped(&json),
            2 => json = json.replace("word", "w\\u006frd"),
            3 => json = json.replace('/', "\\/"),
            _ => {}
        }
        match numbers.below(10) {
            0 => self.wire += &format!(": a comment\ndata: {json}\n\n"),
            1 => self.wire += &format!("id: 5\nevent: message\nretry: 10\ndata:{json}\r\n\r\n"),
            // Line feeds inside an event are whitespace of its JSON.
            2 => self.wire += &format!("data: {}\n\n", json.replacen(',', ",\ndata: ", 1)),
            3 => self.wire += &format!("data: {json}\n\nevent: other\ndata: {{\"choices\":\"of another kind\"}}\n\n"),
            _ => self.wire += &format!("data: {json}\n\n"),
        }
    }

    fn digest(&self) -> String {
        let hash = Sha256::new().chain_update(&self.content).chain_update(&self.reasoning).finalize();
        hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn escaped(json: &str) -> String {
    let mut units = [0; 2];
    let escape = |c: char| match c.is_ascii() {
        true => c.to_string(),
        false => c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    };
    json.chars().map(escape).collect()
}

#[test]
fn whatever_shape_comes_next_is_read_as_what_it_is() {
    let server = Server::start(|number, stream| {
        let mut numbers = Numbers(number as u64);
        let wire = stream_of(&Made::new(number).wire);
        // At once, or in pieces of any size.
        let most = [wire.len(), 700, 40][number % 3];
        let mut rest = &wire[..];
        while !rest.is_empty() {
            let (piece, later) = rest.split_at((1 + numbers.below(most)).min(rest.len()));
            if stream.write_all(piece).is_err() {
                return;
            }
            rest = later;
        }
    });
    let lab = Lab::new();
    watched(&lab, &one_by_one(server.port, STREAMS, "stall: 30s")).is_committed_within(200 * MB);
    let records = by_number(lab.only_run());
    assert!(records.len() >= STREAMS);
    for (number, record) in records.iter().enumerate().take(STREAMS) {
        let (made, row) = (Made::new(number), &record.row);
        assert_eq!(row.outcome, Outcome::Ok, "{number}: {:?}", row.error);
        assert_eq!((row.events, record.gaps_ns.len() as u32), (made.events, made.events - 1), "{number}");
        assert_eq!(row.text_digest.as_deref(), Some(made.digest().as_str()), "{number}");
        // An impossible count is ignored: eight tokens were requested, and one more may be the end token.
        let most = made.events.max(8) + 1;
        let bytes = (made.content.len() + made.reasoning.len() + made.arguments) as u32;
        let is_possible = |tokens: &u32| (1..=most).contains(tokens) && bytes <= tokens * 16 + 24;
        let believed = made.tokens.filter(is_possible);
        let are_tokens = (2.0..=8.0).contains(&(f64::from(bytes) / f64::from(made.events)));
        let by_events = (made.tokens.is_none() && are_tokens).then_some(made.events);
        assert_eq!(row.output_tokens, believed.or(by_events), "{number}: {bytes} bytes, {:?}", row.tokens_unknown);
        assert_eq!(row.usage_doubt.is_some(), made.tokens.is_some() && believed.is_none(), "{number}");
        assert_eq!(row.finish_reason.as_deref(), Some("length"), "{number}");
    }
}
