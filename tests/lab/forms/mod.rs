//! Forms of responses that servers send, and what is true of each: events with the time between them, how
//! the connection ends, and what a reader must find. [`server`] plays them. They share no code with the
//! program.

mod answers;
mod cases;
mod completions;
mod ends;
mod held;
mod reasons;
mod responses;
mod rows;
pub mod server;
mod shapes;
mod tokens;
mod truth;
mod wire;

use std::time::Duration;

pub use cases::cases;
pub use rows::{Row, column, counts, plan, rows};
pub use truth::{Output, Truth};

/// The wait before the first event of a response.
const LEAD: Duration = Duration::from_millis(5);
/// The wait before each further event with text.
const GAP: Duration = Duration::from_millis(2);

/// The text that most forms stream. Each word is one token.
pub const WORDS: [&str; 10] = ["the", " quick", " brown", " fox", " jumps", " over", " a", " lazy", " dog", " again"];

/// The API that a form belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    Chat,
    Completions,
    Responses,
}

impl Api {
    /// All APIs that have forms.
    pub const ALL: [Api; 3] = [Api::Chat, Api::Completions, Api::Responses];

    /// Returns the name in plans.
    pub fn name(self) -> &'static str {
        match self {
            Api::Chat => "chat",
            Api::Completions => "completions",
            Api::Responses => "responses",
        }
    }

    /// Returns the API of a request by its first line in lower case; `None` for other requests.
    fn of_request(line: &str) -> Option<Api> {
        let path = line.strip_prefix("post ")?.split([' ', '?']).next()?;
        match path.rsplit_once("/v1/")?.1 {
            "chat/completions" => Some(Api::Chat),
            "completions" => Some(Api::Completions),
            "responses" => Some(Api::Responses),
            _ => None,
        }
    }
}

/// What a piece of a response is to a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Text of the response, or a part of a tool call.
    Output,
    /// Reasoning.
    Reasoning,
    /// `[DONE]`, or the last event of the protocol.
    Done,
    /// Anything else.
    Other,
}

/// Bytes that are written at once.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The wait before it is written.
    pub wait: Duration,
    /// What is written; if it is empty, the server only waits.
    pub bytes: Vec<u8>,
    pub role: Role,
}

/// How the server ends a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It closes the connection. A chunked body has its last chunk before that.
    Close,
    /// It closes the connection; a chunked body lacks its last chunk.
    Cut,
    /// It resets the connection.
    Reset,
}

/// One form, and what is true of it.
#[derive(Debug, Clone)]
pub struct Form {
    pub name: String,
    pub api: Api,
    /// Fields of the head, in addition to `connection: close`.
    pub fields: Vec<String>,
    /// Whether the body is sent in chunks. Otherwise, it ends with the connection.
    pub chunked: bool,
    pub pieces: Vec<Piece>,
    pub ending: Ending,
    pub truth: Truth,
}

/// Returns all forms of an API. The first is a usual response, which takes little time.
pub fn all(api: Api) -> Vec<Form> {
    match api {
        Api::Chat => {
            let groups = [ends::forms(), reasons::forms(), tokens::forms(), shapes::forms(), answers::forms()];
            groups.into_iter().flatten().chain(held::forms()).collect()
        }
        Api::Completions => completions::forms(),
        Api::Responses => responses::forms(),
    }
}

impl Form {
    /// Creates a stream of an API without any event. It is complete and has no text until its builder says
    /// otherwise.
    fn of(api: Api, name: impl Into<String>) -> Form {
        Form {
            name: name.into(),
            api,
            fields: vec!["content-type: text/event-stream".to_owned()],
            chunked: false,
            pieces: Vec::new(),
            ending: Ending::Close,
            truth: Truth::default(),
        }
    }

    /// Creates a stream of chat completions.
    fn chat(name: impl Into<String>) -> Form {
        Form::of(Api::Chat, name)
    }

    /// Creates a response with this content type whose body is written at once.
    fn whole(api: Api, name: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Form {
        let mut form = Form::of(api, name);
        form.fields = vec![format!("content-type: {content_type}")];
        form.piece(LEAD, body.into(), Role::Other)
    }

    /// Appends bytes after a wait.
    fn piece(mut self, wait: Duration, bytes: impl Into<Vec<u8>>, role: Role) -> Form {
        self.pieces.push(Piece { wait, bytes: bytes.into(), role });
        self
    }

    /// Returns the wait before the next event with text.
    fn next_wait(&self) -> Duration {
        if self.pieces.iter().all(|piece| piece.role == Role::Other) { LEAD } else { GAP }
    }

    /// Appends an event with `text`, as it is written to the wire.
    fn says(mut self, text: &str, event: String) -> Form {
        let wait = self.next_wait();
        self.truth.content.push_str(text);
        self.piece(wait, event, Role::Output)
    }

    /// Appends an event with reasoning.
    fn thinks(mut self, text: &str, event: String) -> Form {
        let wait = self.next_wait();
        self.truth.reasoning.push_str(text);
        self.piece(wait, event, Role::Reasoning)
    }

    /// Appends an event with a part of a tool call.
    fn calls(self, event: String) -> Form {
        let wait = self.next_wait();
        self.piece(wait, event, Role::Output)
    }

    /// Appends an event without text.
    fn sends(self, event: impl Into<Vec<u8>>) -> Form {
        let event = event.into();
        let is_done = event.windows(6).any(|bytes| bytes == b"[DONE]");
        self.piece(Duration::ZERO, event, if is_done { Role::Done } else { Role::Other })
    }

    /// Appends a wait.
    fn waits(self, millis: u64) -> Form {
        self.piece(Duration::from_millis(millis), Vec::new(), Role::Other)
    }

    /// Appends an event for each of `words`.
    fn each(self, words: &[&str], event: impl Fn(&str) -> String) -> Form {
        words.iter().fold(self, |form, word| form.says(word, event(word)))
    }

    /// Appends an event of the usual form for each of `words`.
    fn tokens(self, words: &[&str]) -> Form {
        self.each(words, wire::token)
    }

    /// Appends the ten words.
    fn words(self) -> Form {
        self.tokens(&WORDS)
    }

    /// Appends an event of reasoning of the usual form for each of `words`.
    fn thoughts(self, words: &[&str]) -> Form {
        words.iter().fold(self, |form, word| form.thinks(word, wire::thought(word)))
    }

    /// Appends an event that has this finish reason.
    fn finish(self, reason: &'static str) -> Form {
        self.sends(wire::finish(&reason.into())).finish_is(Some(reason))
    }

    /// Appends the usage in an event without choices: 30 prompt tokens, and these output tokens, which are
    /// the truth.
    fn usage(self, tokens: u32) -> Form {
        self.sends(wire::usage(&wire::counts(30, tokens))).counted(tokens, "usage")
    }

    /// Appends `[DONE]`.
    fn done(self) -> Form {
        self.sends("data: [DONE]\n\n")
    }

    /// Appends the usual end: finish reason `stop`, a usage of ten tokens, `[DONE]`.
    fn ends(self) -> Form {
        self.finish("stop").usage(10).done()
    }

    /// Sends the body in chunks.
    fn in_chunks(self) -> Form {
        Form { chunked: true, ..self }
    }

    /// Ends the response this way.
    fn ending(self, ending: Ending) -> Form {
        Form { ending, ..self }
    }

    /// Returns the number of events with text.
    pub fn text_events(&self) -> u32 {
        let has_text = |piece: &&Piece| matches!(piece.role, Role::Output | Role::Reasoning);
        self.pieces.iter().filter(has_text).count() as u32
    }

    /// Returns how long the connection stays open after the end of the response; zero if the end is not
    /// marked.
    pub fn held(&self) -> Duration {
        let done = self.pieces.iter().position(|piece| piece.role == Role::Done);
        done.map_or(Duration::ZERO, |done| self.pieces[done + 1..].iter().map(|piece| piece.wait).sum())
    }
}
