//! Further fields of a request's body: sampling parameters that are an engine's own, and whatever else a server takes.

pub mod dialect;
pub mod json;
pub mod schema;

use std::collections::BTreeMap;

use crate::plan::model::engine::Engine;
use crate::plan::model::table::Table;

pub use crate::plan::model::extra::json::Json;

/// The fields that a request to a server of `engine` carries besides sweepline's own, by name: those of the endpoint,
/// over them those of the scenario for every engine, over them the scenario's for this one.
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

/// The engine whose own fields an entry of a scenario's `extra` holds.
pub fn of_engine(name: &str) -> Option<Engine> {
    Engine::ALL.into_iter().find(|engine| engine.name() == name)
}

/// Lays the fields of `over` over those of `under`, an engine's own field by field too.
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
