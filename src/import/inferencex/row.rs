//! One row of a search space: the server's parallelism and its loads.

use super::ladder::ladder;
use crate::import::error::ImportError;
use crate::import::said::Said;
use crate::import::tree::At;

/// The reason why a router is skipped.
pub(super) const ROUTER: &str =
    "a plan starts no router between client and server: start it and set `url` to its address";
/// For each field of a row with a default: its key, its default value, and the text that lists it.
const DEFAULTS: [(&str, &str, &str); 6] = [
    ("pp", "1", "pp = 1"),
    ("dcp-size", "1", "dcp-size = 1"),
    ("pcp-size", "1", "pcp-size = 1"),
    ("ep", "1", "ep = 1"),
    ("dp-attn", "false", "dp-attn = false"),
    ("spec-decoding", "none", "spec-decoding = none"),
];

/// The kind of speculative decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drafts {
    /// No speculative decoding.
    None,
    /// Drafts are made by the model's own head, or by a small model that the entry's script names.
    Mtp,
}

/// One row of a search space.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Degree of tensor parallelism.
    pub(super) tp: u32,
    /// Degree of pipeline parallelism.
    pub(super) pp: u32,
    /// Degree of context parallelism for decode.
    pub(super) dcp: u32,
    /// Degree of context parallelism for prefill.
    pub(super) pcp: u32,
    /// Degree of expert parallelism.
    pub(super) ep: u32,
    /// Whether attention is data-parallel.
    pub(super) dp_attn: bool,
    /// The kind of speculative decoding.
    pub(super) drafts: Drafts,
    /// Fields that repeat a default.
    pub(super) defaults: Vec<&'static str>,
    /// The loads of the row, in requests in flight.
    pub(super) loads: Vec<Said<u32>>,
    /// The origin, for comments.
    pub(super) origin: String,
    /// The line of the row.
    pub(super) line: usize,
}

impl Row {
    /// Reads a row. If it cannot be measured, lists the row and returns `None`.
    pub(super) fn of(at: At, file: &str) -> Result<Option<Row>, ImportError> {
        let (is_none, drafts) = drafts(at);
        if is_none {
            at.missing(
                "only the entry's script names the draft model: add a sweep with `speculative_config` in the \
                        server's flags",
            );
            return Ok(None);
        }
        let size = |key: &str| -> Result<u32, ImportError> {
            let Some(at) = at.get(key) else { return Ok(1) };
            let said = at.whole().filter(|said| (1..=4096).contains(&said.value));
            said.map(|said| said.value)
                .ok_or_else(|| at.wrong(file, &format!("`{key}` must be a whole number"), "write 1 or more"))
        };
        if at.get("tp").is_none() {
            return Err(at.wrong(file, "it has no `tp`", "write the number of accelerators"));
        }
        let dp_attn = at.get("dp-attn").and_then(At::flag).is_some_and(|said| said.value);
        if let Some(router) = at.get("router") {
            router.refused(ROUTER);
        }
        let row = Row {
            tp: size("tp")?,
            pp: size("pp")?,
            dcp: size("dcp-size")?,
            pcp: size("pcp-size")?,
            ep: size("ep")?,
            dp_attn,
            drafts,
            defaults: defaults(at),
            loads: ladder(at, file)?,
            origin: origin(at),
            line: at.line(),
        };
        Ok(Some(row))
    }
}

/// Returns the kind of speculative decoding, and whether the draft model is unknown.
fn drafts(at: At) -> (bool, Drafts) {
    let Some(said) = at.get("spec-decoding").and_then(At::text) else { return (false, Drafts::None) };
    match said.value.as_str() {
        "none" => (false, Drafts::None),
        "mtp" => (false, Drafts::Mtp),
        _ => (true, Drafts::None),
    }
}

/// Returns the fields of a row that repeat a default.
fn defaults(at: At) -> Vec<&'static str> {
    let is_said =
        |key: &str, value: &str| at.get(key).is_some_and(|at| at.peek().json().to_string().trim_matches('"') == value);
    DEFAULTS.iter().filter(|(key, value, _)| is_said(key, value)).map(|(.., words)| *words).collect()
}

/// Returns the row as text: its fields except the loads, and its line.
fn origin(at: At) -> String {
    let is_load = |key: &str| key.starts_with("conc-") || key == "router";
    let fields = at.entries().into_iter().filter(|(key, _)| !is_load(key));
    let fields: Vec<String> = fields.map(|(key, at)| format!("{key} {}", at.shown().trim_matches('"'))).collect();
    format!("{} (line {})", fields.join(", "), at.line())
}
