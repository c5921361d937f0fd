//! The facts that a result must disclose about the system under test. Mocks have nothing to disclose.

use super::super::finding::{Finding, Scope};
use super::super::view::View;
use super::differ::is_unknown;
use super::equal::facts;
use super::listed;
use crate::plan::{Endpoint, Engine, Model};

/// An example value for each field of `hardware`, as a user would type it.
const HARDWARE: [(&str, &str); 6] = [
    ("gpu", "H100-SXM-80GB"),
    ("gpus", "8"),
    ("memory", "80GB HBM3"),
    ("interconnect", "nvlink"),
    ("network", "25GbE"),
    ("storage", "NVMe"),
];

/// An example value for each fact of `server`.
const SERVER: [(&str, &str); 6] = [
    ("version", "0.33.0"),
    ("tensor_parallel", "8"),
    ("pipeline_parallel", "1"),
    ("attention_backend", "flashinfer"),
    ("scheduler", "chunked_prefill"),
    ("flags", "{ max_num_seqs: 256 }"),
];

/// Aliases under which engines accept the settings that must be disclosed.
const ALIASES: [(&str, &[&str]); 4] = [
    ("tensor_parallel", &["tensor_parallel_size", "tp", "tp_size", "num_shard", "tensor_split"]),
    ("pipeline_parallel", &["pipeline_parallel_size", "pp", "pp_size"]),
    ("attention_backend", &["attention_config.backend", "flash_attn"]),
    ("scheduler", &["scheduling_policy", "schedule_policy"]),
];

/// M011: the hardware of an endpoint is not disclosed.
pub(crate) fn hardware(name: &str, endpoint: &Endpoint) -> Option<Finding> {
    let hardware = endpoint.hardware.clone().unwrap_or_default();
    let given = |field: &str| match field {
        "gpu" => hardware.gpu.is_some(),
        "gpus" => hardware.gpus.is_some(),
        "memory" => hardware.memory.is_some(),
        // A single accelerator has no interconnect.
        "interconnect" => hardware.interconnect.is_some() || hardware.gpus() == Some(1),
        "network" => hardware.network.is_some(),
        _ => hardware.storage.is_some(),
    };
    missing(name, "hardware", &HARDWARE, given)
}

/// M012: the server configuration is not disclosed.
pub(crate) fn server(name: &str, endpoint: &Endpoint) -> Option<Finding> {
    let facts = facts(endpoint);
    let said = |wanted: &str| facts.iter().any(|(fact, _)| fact == wanted);
    let given = |field: &str| {
        let aliases = ALIASES.iter().find(|(first, _)| *first == field).map_or(&[][..], |(_, others)| others);
        endpoint.server.contains_key(field) || said(field) || aliases.iter().any(|alias| said(alias))
    };
    missing(name, "server", &SERVER, given)
}

/// Reports the fields that a table of an endpoint omits.
fn missing(
    endpoint: &str,
    table: &str,
    fields: &[(&'static str, &'static str)],
    given: impl Fn(&str) -> bool,
) -> Option<Finding> {
    let missing: Vec<&(&str, &str)> = fields.iter().filter(|(field, _)| !given(field)).collect();
    let names: Vec<&str> = missing.iter().map(|(field, _)| *field).collect();
    let example: Vec<String> = missing.iter().map(|(field, example)| format!("{field}: {example}")).collect();
    let message = format!("`{table}` does not specify {}", listed(&names));
    let remedy = format!("write the actual values, like `{table}: {{ {} }}`, or `unknown`", example.join(", "));
    let names = names.into_iter().map(str::to_owned);
    let finding = || Finding::of(Scope::Endpoint(endpoint.to_owned()), &[table], message, remedy);
    (!missing.is_empty()).then(|| finding().undisclosed(names))
}

/// Reports the fields of an endpoint's table that are `unknown`. Such fields are disclosed, but it is unknown
/// whether their values equal those of other endpoints.
fn unknown(endpoint: &str, table: &str, names: &[String]) -> Option<Finding> {
    let verb = if names.len() == 1 { "is" } else { "are" };
    let message = format!("{} of `{table}` {verb} unknown", listed(names));
    let finding = || Finding::of(Scope::Endpoint(endpoint.to_owned()), &[table], message, UNKNOWN);
    (!names.is_empty()).then(|| finding().undisclosed(names.iter().cloned()))
}

const UNKNOWN: &str = "find out these values before you compare results, because unknown values may differ";

/// M011, as a note: hardware that is marked as unknown.
pub(crate) fn unknown_hardware(name: &str, endpoint: &Endpoint) -> Option<Finding> {
    let hardware = endpoint.hardware.as_ref()?;
    let fields = [
        ("gpu", &hardware.gpu),
        ("memory", &hardware.memory),
        ("memory_bandwidth", &hardware.memory_bandwidth),
        ("interconnect", &hardware.interconnect),
        ("network", &hardware.network),
        ("storage", &hardware.storage),
    ];
    let named = fields.into_iter().filter(|(_, value)| value.as_deref().is_some_and(is_unknown));
    unknown(name, "hardware", &named.map(|(field, _)| field.to_owned()).collect::<Vec<_>>())
}

/// M012, as a note: server facts that are marked as unknown.
pub(crate) fn unknown_server(name: &str, endpoint: &Endpoint) -> Option<Finding> {
    let named = facts(endpoint).into_iter().filter(|(_, value)| is_unknown(&value.to_string()));
    unknown(name, "server", &named.map(|(fact, _)| fact).collect::<Vec<_>>())
}

/// M013: the number format of a model's weights is not disclosed.
pub(crate) fn precision(view: &View) -> Vec<Finding> {
    let missing = |model: &Model| model.precision.is_none();
    of_models(
        view,
        missing,
        "the model's precision is not specified",
        "write `precision: bf16` (or fp8, int4, …), or `unknown`",
    )
}

/// M013, as a note: a precision that is marked as unknown.
pub(crate) fn unknown_precision(view: &View) -> Vec<Finding> {
    let unknown = |model: &Model| model.precision.as_deref().is_some_and(is_unknown);
    of_models(view, unknown, "its precision is unknown", UNKNOWN)
}

/// Returns a finding for each model that satisfies `is_meant` and is measured on an endpoint other than a
/// mock.
fn of_models(view: &View, is_meant: impl Fn(&Model) -> bool, message: &str, remedy: &str) -> Vec<Finding> {
    let measured = |name: &str| {
        view.sweeps.iter().any(|sweep| {
            sweep.models.iter().any(|(used, _)| *used == name)
                && sweep.endpoints.iter().any(|(_, endpoint)| endpoint.engine != Engine::Mock)
        })
    };
    let meant = view.plan.models.iter().filter(|(name, model)| is_meant(model) && measured(name));
    let finding = |(name, _): (&String, &Model)| {
        Finding::of(Scope::Model(name.clone()), &[], message, remedy).undisclosed(["precision".to_owned()])
    };
    meant.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::model::disclosure::SERVER_FACTS;

    #[test]
    fn every_well_known_fact_is_asked_for() {
        assert_eq!(SERVER.map(|(name, _)| name), SERVER_FACTS.map(|(name, _)| name));
    }
}
