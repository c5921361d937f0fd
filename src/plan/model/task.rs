//! Adapts a scenario to the protocol of an endpoint: sets the number of texts per request, and removes
//! settings for output tokens if the protocol has none.

use std::borrow::Cow;

use crate::plan::model::content::{Content, Resolved, Reuse};
use crate::plan::model::length_field::LengthField;
use crate::plan::model::request_fields::RequestFields;
use crate::plan::model::sampling::Sampling;
use crate::protocol::{Api, Task};

/// Default number of texts per embeddings request.
const INPUTS: u32 = 1;
/// Default number of documents per rerank request.
const DOCUMENTS: u32 = 10;
/// Default number of query tokens per rerank request.
const QUERY_TOKENS: u32 = 32;

/// A property of a scenario that a protocol does not support, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// A phrase that describes the property and follows the scenario's name.
    pub what: Cow<'static, str>,
    /// The remedy.
    pub remedy: &'static str,
}

impl Resolved {
    /// The property of this scenario, or of a member of its mix, that an API does not support; `None` if the
    /// scenario fits.
    pub(crate) fn misfit(&self, api: Api) -> Option<Misfit> {
        self.classes().find_map(|class| misfit(api.protocol().task(), class).or_else(|| lacking(api, class)))
    }

    /// Adapts the scenario to a protocol of this task: removes settings for output tokens if the
    /// protocol has none, and makes the number of texts per request explicit.
    pub fn fit(&mut self, task: Task) {
        if task != Task::Generate {
            self.mix.iter_mut().map(|member| &mut member.scenario).for_each(|class| without_tokens(task, class));
            without_tokens(task, self);
        }
    }
}

/// The property of a single scenario that does not fit this task, and the remedy; `None` if it fits.
fn misfit(task: Task, scenario: &Resolved) -> Option<Misfit> {
    let RequestFields { inputs, documents, query_tokens, .. } = &scenario.fields;
    let Content { reuse, data, trace, .. } = &scenario.content;
    let misfit = |what: &'static str, remedy| Some(Misfit { what: what.into(), remedy });
    let says_several = task == Task::Rank || inputs.is_some_and(|inputs| inputs > 1);
    match task {
        Task::Generate | Task::Rank if inputs.is_some() => {
            misfit("has `inputs`", "remove them there, or use an endpoint with `api: embeddings`")
        }
        Task::Generate | Task::Embed if documents.is_some() || query_tokens.is_some() => {
            misfit("has `documents`", "remove them there, or use an endpoint with `api: rerank`")
        }
        Task::Generate => None,
        _ if *reuse == Reuse::Conversation => {
            misfit("is a conversation", "use a scenario without turns there, like B1: this API returns no text")
        }
        _ if says_several && (data.is_some() || trace.is_some()) => {
            let remedy = "use a scenario there whose texts are generated, like B1";
            misfit("takes its texts from a file, one for each request", remedy)
        }
        _ => None,
    }
}

/// A parameter that a single scenario sets but requests of this API do not have, and the remedy; `None` if there
/// is none.
fn lacking(api: Api, scenario: &Resolved) -> Option<Misfit> {
    let sampling = scenario.fields.sampling.sent().map(|(name, _)| name);
    let continues = (scenario.ignore_eos == Some(true)).then_some("ignore_eos");
    let name = sampling.chain(continues).find(|name| !api.has(name))?;
    let what = Cow::Owned(format!("sets `{name}`, which this API does not have"));
    Some(Misfit { what, remedy: "remove it there, or use an endpoint with another API" })
}

/// Removes settings for output tokens and makes the number of texts explicit.
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
