//! Renders chat templates as Hugging Face's library does. A chat template converts a list of messages to
//! the text that the model receives.
//!
//! A template is a program from an untrusted source. It cannot read files or a clock, and both the number
//! of its steps and the size of its output are limited. Intermediate texts are limited only by the number
//! of steps.

use std::io::{self, Write};

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Value, context};

use super::config::Config;
use super::error::{TokenizerError, short};
use super::message::Message;
use super::python;

/// The name under which the template is registered.
const NAME: &str = "chat";
/// Maximum size of a template in bytes. Templates of models with extensive tool support have about 20 000
/// bytes.
const MOST_SOURCE: usize = 1 << 20;
/// Maximum number of steps that a template may take to render a chat. Templates of real models take a few
/// hundred steps for each message.
const STEPS: u64 = 1_000_000;
/// Maximum number of bytes that a template may add to a chat.
const MOST_ADDED: usize = 1 << 20;
/// Maximum number of times that a template may output the chat's own text.
const MOST_TIMES: usize = 4;

/// A compiled chat template, with its inputs other than the messages.
pub(super) struct ChatTemplate {
    environment: Environment<'static>,
    /// The special tokens by name.
    tokens: Vec<(&'static str, String)>,
}

impl ChatTemplate {
    /// Compiles the template `source`; `config` provides the special tokens.
    pub(crate) fn new(source: String, config: &Config) -> Result<ChatTemplate, TokenizerError> {
        if source.len() > MOST_SOURCE {
            return Err(TokenizerError::Template(format!("it has more than {MOST_SOURCE} bytes")));
        }
        let fail = |error: minijinja::Error| TokenizerError::Template(words(&error));
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(fail)?;
        environment.set_syntax(syntax);
        environment.set_debug(false);
        environment.set_fuel(Some(STEPS));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", python::tojson);
        environment.add_function("raise_exception", python::raise_exception);
        environment.add_function("strftime_now", python::strftime_now);
        environment.add_template_owned(NAME, without_marks(&source)).map_err(fail)?;
        let tokens = config.special_tokens().map(|(name, text)| (name, text.to_owned())).collect();
        Ok(ChatTemplate { environment, tokens })
    }

    /// Returns the text into which a server converts `messages`, up to the beginning of the
    /// response.
    pub(crate) fn render(&self, messages: &[Message]) -> Result<String, TokenizerError> {
        let fail = |error: minijinja::Error| TokenizerError::Render(words(&error));
        let list: Vec<Value> =
            messages.iter().map(|said| context! { role => said.role, content => said.content }).collect();
        let none = Value::from(());
        let fixed = [
            ("messages", Value::from(list)),
            ("add_generation_prompt", Value::from(true)),
            ("tools", none.clone()),
            ("documents", none),
        ];
        let tokens = self.tokens.iter().map(|(name, text)| (*name, Value::from(text.as_str())));
        let own: usize = messages.iter().map(|message| message.content.len()).sum();
        let mut out = Limited { text: Vec::with_capacity(own + 1_024), most: own * MOST_TIMES + MOST_ADDED };
        let template = self.environment.get_template(NAME).map_err(fail)?;
        template.render_captured_to(Value::from_pairs(fixed.into_iter().chain(tokens)), &mut out).map_err(fail)?;
        String::from_utf8(out.text).map_err(|_| TokenizerError::Render("its output is not UTF-8 text".to_owned()))
    }
}

/// An output buffer with a size limit.
struct Limited {
    text: Vec<u8>,
    most: usize,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.text.len() + bytes.len() > self.most {
            return Err(io::Error::other(format!("it writes more than {} bytes", self.most)));
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Replaces the tag `{% generation %}` with a condition that is always true, which keeps the whitespace as it
/// is. Templates for training use this tag of Hugging Face's library to mark the model's text; it writes
/// nothing.
fn without_marks(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let inner = &rest[at + 2..];
        let Some(end) = inner.find("%}") else { break };
        let tag = &inner[..end];
        let word = tag.trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace());
        let tag = match word {
            "generation" => tag.replacen(word, "if true", 1),
            "endgeneration" => tag.replacen(word, "endif", 1),
            _ => tag.to_owned(),
        };
        out.push_str(&rest[..at + 2]);
        out.push_str(&tag);
        out.push_str("%}");
        rest = &inner[end + 2..];
    }
    out.push_str(rest);
    out
}

/// Formats the error of a template, using the template's own message if it raised one.
fn words(error: &minijinja::Error) -> String {
    let line = error.line().map_or_else(String::new, |line| format!(" in line {line}"));
    let cause = std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
    match error.detail() {
        Some(detail) => short(&format!("{detail}{line}{cause}")),
        None => short(&format!("{}{line}{cause}", error.kind())),
    }
}
