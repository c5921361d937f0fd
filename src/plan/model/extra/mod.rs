//! Additional fields of a request's body: engine-specific sampling parameters, and any other field that
//! a server accepts.

pub mod dialect;
pub mod json;
pub mod schema;

use std::collections::BTreeMap;

use crate::plan::model::engine::Engine;
use crate::plan::model::table::Table;

pub use crate::plan::model::extra::json::Json;

/// The additional fields of a request to a server of `engine`, by name: the endpoint's fields,
/// overridden by the scenario's fields for all engines, overridden by the scenario's fields for this
/// engine.
pub fn fields(endpoint: &Table<Json>, scenario: &Table<Json>, engine: Engine) -> BTreeMap<String, Json> {
    let mut fields = BTreeMap::new();
    let mut put = |name: &String, value: &Json| drop(fields.insert(name.clone(), value.clone()));
    endpoint.iter().for_each(|(name, value)| put(name, value));
    scenario.iter().filter(|(name, _)| of_engine(name).is_none()).for_each(|(name, value)| put(name, value));
    if let Some(Json::Table(own)) = scenario.get(engine.name()) {
        own.iter().for_each(|(name, value)| put(name, value));
    }
    fields
}

/// The engine to which an entry of a scenario's `extra` belongs, if the entry contains fields for a
/// single engine.
pub fn of_engine(name: &str) -> Option<Engine> {
    Engine::ALL.into_iter().find(|engine| engine.name() == name)
}

/// Applies the fields of `over` on top of the fields of `under`. The table of an engine is merged field
/// by field.
pub fn lay(under: &mut Table<Json>, over: &Table<Json>) {
    for (name, value) in over {
        match (of_engine(name), under.get_mut(name), value) {
            (Some(_), Some(Json::Table(below)), Json::Table(above)) => {
                below.extend(above.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
            _ => drop(under.insert(name.clone(), value.clone())),
        }
    }
}
