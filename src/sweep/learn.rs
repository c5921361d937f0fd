//! A model's tokenizer based on its server's counts, which are learned before the first run that
//! needs them.

use crate::protocol::Framing;
use crate::server::{Counter, PROMPT, ProbeError, Question};
use crate::workload::Tokenizer;
use crate::workload::tokenizer::{Frames, Lesson, Table};

/// The token counts that a server returned by its tokenizer.
pub(crate) struct Learned {
    counter: Counter,
    lesson: Lesson,
    table: Table,
}

impl Learned {
    /// Requests the token count of every word used in prompts; `None` if the server does not count.
    pub(super) fn from(question: &Question) -> Result<Option<Learned>, ProbeError> {
        let Some(counter) = Counter::find(question)? else { return Ok(None) };
        let lesson = Lesson::new(&[PROMPT]);
        let counts = counter.texts(&lesson.texts(), false)?;
        let table = lesson.clone().learned(&counts);
        Ok(Some(Learned { counter, lesson, table }))
    }

    /// Returns the tokenizer for prompts with this framing.
    pub(super) fn tokenizer(&self, framing: Framing) -> Result<Tokenizer, ProbeError> {
        let (sample, lead) = (self.lesson.sample(), self.lesson.lead());
        let frames = match framing {
            Framing::Chat => Frames {
                alone: self.counter.chat(&[("user", sample)])?,
                // A model whose chat template does not support system messages rejects them.
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
