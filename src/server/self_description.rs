//! A server's description of itself, and its fingerprint for the runs of one model.

use std::collections::BTreeMap;

use crate::plan::model::dialect::Page;
use crate::plan::{Dialect, Engine};
use crate::rows::Fingerprint;

/// A server's description of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SelfDescription {
    /// The detected engine, and how it was recognized; `None` if it was not recognized.
    pub engine: Option<(Engine, String)>,
    /// The version of the engine; `None` if unknown.
    pub version: Option<String>,
    /// The page that contained the version; `None` if no page did.
    pub(super) page: Option<Page>,
    /// The model that the server serves, if the server reports it on a page other than the list of
    /// models.
    pub(super) model: Option<String>,
    /// The maximum number of tokens of a prompt and its response together; `None` if unknown.
    pub(super) context_length: Option<u64>,
    /// Flags that the server reports.
    pub(super) flags: BTreeMap<String, String>,
    /// The description of each model in the server's list of models.
    pub(super) listed: Vec<ListedModel>,
}

/// An entry of a list of models.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ListedModel {
    /// The id of the model.
    pub(super) id: String,
    /// The name or path of the model that is served under the id; `None` if the list does not contain it.
    pub(super) root: Option<String>,
    /// The maximum number of tokens of a prompt and its response together; `None` if unknown.
    pub(super) context_length: Option<u64>,
}

impl SelfDescription {
    /// Whether the detected engine differs from the engine in the plan. If the plan declares NIM, vLLM is
    /// not a different engine, because NIM is based on vLLM.
    pub fn is_another_than(&self, declared: Engine) -> bool {
        let is_alike = |shown: Engine| shown == declared || (declared, shown) == (Engine::Nim, Engine::Vllm);
        declared != Engine::Openai && self.engine.as_ref().is_some_and(|(shown, _)| !is_alike(*shown))
    }

    /// Returns a hint for the user if the plan declares no engine or a different one; `None` if the
    /// declaration is right, or if the engine is unknown.
    pub fn hint(&self, declared: Engine) -> Option<String> {
        let (engine, by) = self.engine.as_ref()?;
        let title = Dialect::of(*engine).title;
        match declared {
            Engine::Openai => Some(format!("this looks like {title} ({by}); write `engine: {}`", engine.name())),
            _ if self.is_another_than(declared) => {
                Some(format!("this looks like {title} ({by}), but the plan sets `engine: {}`", declared.name()))
            }
            _ => None,
        }
    }

    /// Returns the fingerprint for runs with the model `id`.
    pub fn of_model(&self, id: &str) -> Fingerprint {
        let listed = self.listed.iter().find(|model| model.id == id);
        // SGLang repeats the id in `root`, and reports the path of the model on another page.
        let root = listed.and_then(|model| model.root.clone()).filter(|root| root != id);
        Fingerprint {
            engine: self.engine.as_ref().map(|(engine, _)| engine.name().to_owned()),
            version: self.version.clone(),
            model: root.or_else(|| self.model.clone()).or_else(|| listed.map(|model| model.id.clone())),
            context_length: listed.and_then(|model| model.context_length).or(self.context_length),
            flags: self.flags.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(engine: Engine) -> SelfDescription {
        SelfDescription { engine: Some((engine, "self-reported".to_owned())), ..SelfDescription::default() }
    }

    #[test]
    fn another_engine_is_told_and_nim_serves_with_vllm() {
        assert!(shown(Engine::Sglang).is_another_than(Engine::Vllm));
        assert!(
            !shown(Engine::Vllm).is_another_than(Engine::Vllm) && !shown(Engine::Vllm).is_another_than(Engine::Nim)
        );
        assert!(shown(Engine::Nim).is_another_than(Engine::Vllm));
        assert!(
            !SelfDescription::default().is_another_than(Engine::Vllm),
            "without evidence, the declared engine is assumed"
        );
        assert_eq!(shown(Engine::Vllm).hint(Engine::Nim), None);
        let hint = "this looks like vLLM (self-reported); write `engine: vllm`";
        assert_eq!(shown(Engine::Vllm).hint(Engine::Openai).as_deref(), Some(hint));
        assert_eq!(SelfDescription::default().hint(Engine::Openai), None);
    }
}
