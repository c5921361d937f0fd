//! Creates the JSON of stream events. Most of it is created once per request; for each token, only the text
//! is inserted between two prepared pieces.

use super::config::{Config, ReasoningField};
use super::messages;
use super::part::{Field, Usage};
use super::request::{Api, Request};
use super::responses;

/// The parts that all events of one response have in common.
pub(super) struct Envelope {
    api: Api,
    /// The beginning of each event, from `data: ` up to `"choices"`.
    head: String,
    /// The end of each event: `}` and the blank line.
    tail: String,
    /// The line end that the stream uses.
    pub(super) line_end: &'static str,
    reasoning: &'static str,
    /// The prepared parts of an ordinary event: before a text of content (`content`), before a text of
    /// reasoning (`thought`), and after the text (`plain`).
    content: Vec<u8>,
    thought: Vec<u8>,
    plain: Vec<u8>,
    /// The events of APIs whose events have names; `None` for other APIs.
    events: Option<NamedEvents>,
}

/// The writer of a stream whose events have names.
pub(super) enum NamedEvents {
    Responses(responses::Events),
    Messages(messages::Events),
}

impl NamedEvents {
    /// Returns the events that begin a response. `counts` is `None` if the usage is not reported.
    pub(super) fn opening(&mut self, counts: Option<Usage>) -> String {
        match self {
            NamedEvents::Responses(events) => events.opening(),
            NamedEvents::Messages(events) => events.opening(counts),
        }
    }

    /// Returns the two pieces around the text of the next event.
    fn around(&mut self, field: Field) -> (&[u8], &[u8]) {
        match self {
            NamedEvents::Responses(events) => events.around(field),
            NamedEvents::Messages(events) => events.around(field),
        }
    }

    /// Returns the events after the last text.
    pub(super) fn closing(&mut self, finish: &str, counts: Option<Usage>) -> String {
        match self {
            NamedEvents::Responses(events) => events.closing(finish, counts),
            NamedEvents::Messages(events) => events.closing(finish, counts),
        }
    }

    /// Returns the event for an error during the stream.
    pub(super) fn failure(&mut self, message: &str) -> String {
        match self {
            NamedEvents::Responses(events) => events.failure(message),
            NamedEvents::Messages(events) => events.failure(message),
        }
    }
}

/// Returns the JSON members with which every response begins: id, object, time and model.
pub(super) fn identity(request: &Request, number: u64, created: u64, streaming: bool) -> String {
    let (prefix, object) = match (request.api, streaming) {
        (Api::Chat, true) => ("chatcmpl", "chat.completion.chunk"),
        (Api::Chat, false) => ("chatcmpl", "chat.completion"),
        (Api::Completions, _) => ("cmpl", "text_completion"),
        (Api::Responses, _) => ("resp", "response"),
        (Api::Messages, _) => ("msg", "message"),
        (Api::Embeddings, _) => ("embd", "list"),
        (Api::Rerank, _) => ("rerank", "list"),
    };
    let model = serde_json::Value::from(request.model.as_str());
    if request.api == Api::Messages {
        return format!(r#""id":"{prefix}-mock-{number}","type":"{object}","role":"assistant","model":{model}"#);
    }
    let created_at = if request.api == Api::Responses { "created_at" } else { "created" };
    format!(r#""id":"{prefix}-mock-{number}","object":"{object}","{created_at}":{created},"model":{model}"#)
}

impl Envelope {
    /// Creates the envelope of response `number`, which was created at the Unix time `created`, in seconds.
    pub(super) fn new(config: &Config, request: &Request, number: u64, created: u64) -> Envelope {
        let line_end = if config.crlf { "\r\n" } else { "\n" };
        let reasoning = match config.reasoning_field {
            ReasoningField::ReasoningContent => "reasoning_content",
            ReasoningField::Reasoning => "reasoning",
        };
        let mut envelope = Envelope {
            api: request.api,
            head: format!("data: {{{},", identity(request, number, created, true)),
            tail: format!("}}{line_end}{line_end}"),
            line_end,
            reasoning,
            content: Vec::new(),
            thought: Vec::new(),
            plain: Vec::new(),
            events: None,
        };
        let identity = identity(request, number, created, true);
        envelope.events = match request.api {
            Api::Responses => Some(NamedEvents::Responses(responses::Events::new(identity, line_end))),
            Api::Messages => Some(NamedEvents::Messages(messages::Events::new(identity, line_end))),
            _ => None,
        };
        envelope.content = envelope.open(Field::Content, false).into_bytes();
        envelope.thought = envelope.open(Field::Reasoning, false).into_bytes();
        envelope.plain = envelope.close(None, None).into_bytes();
        envelope
    }

    /// Returns the two pieces around the text of an ordinary event.
    pub(super) fn around(&mut self, field: Field) -> (&[u8], &[u8]) {
        if let Some(events) = &mut self.events {
            return events.around(field);
        }
        let open = if field == Field::Content { &self.content } else { &self.thought };
        (open, &self.plain)
    }

    /// Returns the writer of named events; `None` for APIs whose events have no names.
    pub(super) fn events(&mut self) -> Option<&mut NamedEvents> {
        self.events.as_mut()
    }

    /// Returns the part of an event before its text, including the role if `role` is set.
    pub(super) fn open(&self, field: Field, role: bool) -> String {
        let head = &self.head;
        if self.api == Api::Completions {
            return format!(r#"{head}"choices":[{{"index":0,"text":""#);
        }
        let role = if role { r#""role":"assistant","# } else { "" };
        let name = if field == Field::Content { "content" } else { self.reasoning };
        format!(r#"{head}"choices":[{{"index":0,"delta":{{{role}"{name}":""#)
    }

    /// Returns the part of an event after its text, with the finish reason and the usage if there are any.
    pub(super) fn close(&self, finish: Option<&str>, usage: Option<Usage>) -> String {
        let brace = if self.api == Api::Chat { "}" } else { "" };
        format!("\"{brace}{}", self.rest(finish, usage))
    }

    /// Returns the first chunk of a chat, with the role and with `content`, which must be JSON.
    pub(super) fn role(&self, content: &str) -> String {
        let (head, rest) = (&self.head, self.rest(None, None));
        format!(r#"{head}"choices":[{{"index":0,"delta":{{"role":"assistant","content":{content}}}{rest}"#)
    }

    /// Returns an event with additional JSON members at its end; `more` must begin with a comma.
    pub(super) fn with(&self, event: &str, more: &str) -> String {
        match event.strip_suffix(self.tail.as_str()) {
            Some(open) => format!("{open}{more}{}", self.tail),
            None => event.to_owned(),
        }
    }

    /// Returns the chunk that contains the finish reason and no text.
    pub(super) fn finish(&self, finish: &str, usage: Option<Usage>) -> String {
        let (head, rest) = (&self.head, self.rest(Some(finish), usage));
        let nothing = if self.api == Api::Chat { r#""delta":{}"# } else { r#""text":"""# };
        format!(r#"{head}"choices":[{{"index":0,{nothing}{rest}"#)
    }

    /// Returns the chunk that contains only the usage.
    pub(super) fn usage(&self, usage: Usage) -> String {
        format!(r#"{}"choices":[],"usage":{}{}"#, self.head, usage.json(), self.tail)
    }

    /// Returns an event with this payload as its data.
    pub(super) fn data(&self, payload: &str) -> String {
        format!("data: {payload}{0}{0}", self.line_end)
    }

    /// Returns a comment line and the blank line after it.
    pub(super) fn comment(&self, text: &str) -> String {
        format!(": {text}{0}{0}", self.line_end)
    }

    fn rest(&self, finish: Option<&str>, usage: Option<Usage>) -> String {
        let finish = finish.map_or("null".to_owned(), |reason| format!("\"{reason}\""));
        let usage = usage.map_or(String::new(), |usage| format!(r#","usage":{}"#, usage.json()));
        format!(r#","logprobs":null,"finish_reason":{finish}}}]{usage}{}"#, self.tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn json(event: &str) -> Value {
        serde_json::from_str(event.strip_prefix("data: ").unwrap().trim_end()).unwrap()
    }

    #[test]
    fn every_event_is_json_of_the_dialect() {
        let usage = Usage { prompt: 7, cached: Some(4), completion: 3, reasoning: 1 };
        for (api, body) in
            [(Api::Chat, r#"{"model":"a\"b","messages":[{"content":"x"}]}"#), (Api::Completions, r#"{"prompt":"x"}"#)]
        {
            let request = Request::parse(api, body.as_bytes(), None).unwrap();
            let mut envelope = Envelope::new(&Config::default(), &request, 5, 99);
            let (open, close) = envelope.around(Field::Content);
            let token = json(&String::from_utf8([open, b" word", close].concat()).unwrap());
            let place = if api == Api::Chat { "/choices/0/delta/content" } else { "/choices/0/text" };
            assert_eq!(token.pointer(place), Some(&" word".into()));
            assert_eq!(token["created"], 99);
            let last = json(&(envelope.open(Field::Content, true) + "x" + &envelope.close(Some("stop"), Some(usage))));
            assert_eq!(last["choices"][0]["finish_reason"], "stop");
            assert_eq!(last["usage"]["total_tokens"], 10);
            assert_eq!(last["usage"]["prompt_tokens_details"]["cached_tokens"], 4);
            assert_eq!(json(&envelope.finish("length", None))["choices"][0]["finish_reason"], "length");
            assert_eq!(json(&envelope.usage(usage))["choices"], Value::Array(vec![]));
            if api == Api::Chat {
                assert_eq!(token["model"], "a\"b");
                assert_eq!(json(&envelope.role("null")).pointer("/choices/0/delta/content"), Some(&Value::Null));
            }
        }
    }
}
