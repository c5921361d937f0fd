//! Connections that stay open after the end of the response. The response is over, and its slot is free, at
//! `[DONE]`.

use super::{Ending, Form};

/// How long a connection is held, in milliseconds.
const HOLD: u64 = 600;

pub(super) fn forms() -> Vec<Form> {
    let ended = |name: &str| Form::chat(name).words().ends();
    let pinged = (0..6).fold(ended("held_with_comments"), |form, _| form.waits(HOLD / 6).sends(": ping\n\n"));
    let behind = |name: &str| Form::chat(name).words().finish("stop").done();
    vec![
        ended("held").waits(HOLD),
        ended("held_in_chunks").in_chunks().waits(HOLD),
        ended("held_in_chunks_then_cut").in_chunks().waits(HOLD).ending(Ending::Cut),
        ended("held_then_reset").waits(HOLD / 6).ending(Ending::Reset),
        ended("reset_behind_done").ending(Ending::Reset),
        pinged,
        behind("held_until_the_usage").waits(HOLD / 3).usage(10),
        behind("held_behind_the_usage").usage(10).waits(HOLD),
        behind("held_without_usage").waits(HOLD),
    ]
}
