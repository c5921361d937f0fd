//! The hooks of an endpoint in a cell: which of them are part of a run's identity, and what each of them does
//! on this host.

use std::collections::BTreeMap;

use crate::plan::template::cell::{CellMistake, CellNames, fill};
use crate::plan::{Endpoint, Hook, HookAction, HookPoint, OnFailure};
use crate::units::Nanos;

use super::launch::{names, names_of};
use super::{EndpointSpec, Mistake, RunSpec};

/// The hooks that are part of the identity of a run with this `spec`, keyed by the point at which they run.
pub(super) fn hashed(
    endpoint: &Endpoint,
    spec: &EndpointSpec,
    model: (&str, &str),
) -> Result<BTreeMap<HookPoint, Vec<HookAction>>, Mistake> {
    let mut made: BTreeMap<HookPoint, Vec<HookAction>> = BTreeMap::new();
    if endpoint.hooks.is_empty() {
        return Ok(made);
    }
    let names = names((&spec.name, spec.engine), model, &spec.server);
    for point in HookPoint::ALL {
        for hook in endpoint.hooks.at(point) {
            let wrong = |mistake: CellMistake| Mistake::OfCell {
                endpoint: spec.name.as_str().into(),
                field: format!("hooks.{}", point.name()).into(),
                mistake: mistake.into(),
            };
            let action = hook.action().map(|action| filled(&action, &names)).transpose().map_err(wrong)?;
            if hook.is_hashed(point) {
                made.entry(point).or_default().extend(action);
            }
        }
    }
    Ok(made)
}

fn filled(action: &HookAction, names: &CellNames) -> Result<HookAction, CellMistake> {
    let fill = |text: &String| fill(text, names).map(|value| value.to_string());
    Ok(match action {
        HookAction::Request(request) => HookAction::Request(fill(request)?),
        HookAction::Command(command) => HookAction::Command(command.iter().map(fill).collect::<Result<_, _>>()?),
    })
}

/// A hook in the form in which it runs on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConcreteHook {
    /// The action, with the port inserted.
    pub action: HookAction,
    /// The action as written in the plan.
    pub written: HookAction,
    /// The time within which the hook must end.
    pub within: Nanos,
    /// What happens if the hook fails.
    pub on_failure: OnFailure,
}

/// The hooks of one point for a run like `spec`, whose server listens on `port`.
pub fn concrete_hooks(
    endpoint: &Endpoint,
    spec: &RunSpec,
    point: HookPoint,
    port: Option<u16>,
) -> Result<Vec<ConcreteHook>, CellMistake> {
    let names = CellNames { port, ..names_of(spec) };
    let concrete = |hook: &Hook| {
        let written = hook.action()?;
        let made = |action| ConcreteHook {
            action,
            written: written.clone(),
            within: hook.within(),
            on_failure: hook.on_failure(point),
        };
        Some(filled(&written, &names).map(made))
    };
    endpoint.hooks.at(point).iter().filter_map(concrete).collect()
}
