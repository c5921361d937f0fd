//! A scenario as the protocol of an endpoint carries it: what a request says of several texts, and nothing of an answer's tokens
//! where there are none.

use crate::plan::model::content::{Content, Resolved, Reuse};
use crate::plan::model::length_field::LengthField;
use crate::plan::model::request_fields::RequestFields;
use crate::plan::model::sampling::Sampling;
use crate::protocol::Task;

/// Texts of a request, where nobody says otherwise.
const INPUTS: u32 = 1;
/// Documents of a request, where nobody says otherwise.
const DOCUMENTS: u32 = 10;
/// Tokens of a query, where nobody says otherwise.
const QUERY_TOKENS: u32 = 32;

/// What a scenario asks for that a protocol does not do, and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misfit {
    /// What it asks for, as it goes on from its name.
    pub what: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

impl Resolved {
    /// What this scenario, or a class of the mix that it is, asks for and a protocol of this task does not do.
    pub(crate) fn misfit(&self, task: Task) -> Option<Misfit> {
        self.classes().find_map(|class| misfit(task, class))
    }

    /// Fits it to a protocol of this task: without what asks for tokens where there are none, and explicit in how many texts a
    /// request says.
    pub fn fit(&mut self, task: Task) {
        if task != Task::Generate {
            self.mix.iter_mut().map(|member| &mut member.scenario).for_each(|class| without_tokens(task, class));
            without_tokens(task, self);
        }
    }
}

/// What a scenario asks for that is not this task, and what to do.
fn misfit(task: Task, scenario: &Resolved) -> Option<Misfit> {
    let RequestFields { inputs, documents, query_tokens, .. } = &scenario.fields;
    let Content { reuse, data, trace, .. } = &scenario.content;
    let misfit = |what, remedy| Some(Misfit { what, remedy });
    let says_several = task == Task::Rank || inputs.is_some_and(|inputs| inputs > 1);
    match task {
        Task::Generate | Task::Rank if inputs.is_some() => {
            misfit("has `inputs`", "leave them out there, or measure it on an endpoint with `api: embeddings`")
        }
        Task::Generate | Task::Embed if documents.is_some() || query_tokens.is_some() => {
            misfit("has `documents`", "leave them out there, or measure it on an endpoint with `api: rerank`")
        }
        Task::Generate => None,
        _ if *reuse == Reuse::Conversation => {
            misfit("is a conversation", "use a scenario without turns there, like B1: nothing is said in answer")
        }
        _ if says_several && (data.is_some() || trace.is_some()) => {
            let remedy = "use a scenario there whose texts are written, like B1";
            misfit("takes its texts from a file, one for each request", remedy)
        }
        _ => None,
    }
}

/// Leaves out what asks for tokens, and makes explicit how many texts there are.
fn without_tokens(task: Task, scenario: &mut Resolved) {
    let fields = &mut scenario.fields;
    match task {
        Task::Generate => return,
        Task::Embed => fields.inputs = fields.inputs.or(Some(INPUTS)),
        Task::Rank => {
            fields.documents = fields.documents.or(Some(DOCUMENTS));
            fields.query_tokens = fields.query_tokens.or(Some(QUERY_TOKENS));
        }
    }
    (fields.sampling, fields.length_field) = (Sampling::nothing(), LengthField::default());
    fields.stop.clear();
    (scenario.stream, scenario.ignore_eos) = (Some(false), Some(false));
    let content = &mut scenario.content;
    content.output_tokens = 0;
    let lengths = content.lengths.take().map(|lengths| lengths.with_output(0));
    content.lengths = lengths.filter(|lengths| !lengths.is_constant());
}
