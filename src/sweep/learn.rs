//! Creates a model's tokenizer from the token counts of its server, which are requested before the first
//! run that needs them.

use crate::protocol::Framing;
use crate::server::{Counter, PROMPT, ProbeError, Question};
use crate::workload::Tokenizer;
use crate::workload::tokenizer::{Frames, Lesson, Table};

/// The token counts that a server returned for the words of prompts.
pub(crate) struct Learned {
    counter: Counter,
    lesson: Lesson,
    table: Table,
}

impl Learned {
    /// Requests the token count of every word that prompts contain; `None` if the server does not count
    /// tokens.
    pub(super) fn from(question: &Question) -> Result<Option<Learned>, ProbeError> {
        let Some(counter) = Counter::find(question)? else { return Ok(None) };
        let lesson = Lesson::new(&[PROMPT]);
        let counts = counter.texts(&lesson.texts(), false)?;
        let table = lesson.clone().learned(&counts);
        Ok(Some(Learned { counter, lesson, table }))
    }

    /// Creates the tokenizer for prompts with this framing: chats or plain texts.
    pub(super) fn tokenizer(&self, framing: Framing) -> Result<Tokenizer, ProbeError> {
        let (sample, lead) = (self.lesson.sample(), self.lesson.lead());
        let frames = match framing {
            Framing::Chat => Frames {
                alone: self.counter.chat(&[("user", sample)])?,
                // The server rejects a system message if the model's chat template does not support it.
                led: match self.counter.chat(&[("system", lead), ("user", sample)]) {
                    Ok(tokens) => Some(tokens),
                    Err(ProbeError::Refused { .. }) => None,
                    Err(error) => return Err(error),
                },
                again: match self.counter.chat(&[("user", sample), ("assistant", lead), ("user", sample)]) {
                    Ok(tokens) => Some(tokens),
                    Err(ProbeError::Refused { .. }) => None,
                    Err(error) => return Err(error),
                },
            },
            Framing::Text => {
                let counts = self.counter.texts(&[sample.to_owned()], true)?;
                Frames { alone: counts.first().copied().unwrap_or_default(), led: None, again: None }
            }
        };
        Ok(Tokenizer::learned(&self.table, frames))
    }
}
