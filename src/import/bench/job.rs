//! What one command measures, and what the script said before it.

use std::path::PathBuf;

use serde_json::Value;

use super::arguments::Said;
use super::load::Load;
use crate::import::draft::Field;

/// What one command measures.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// The endpoint: a hint for its name, and its fields.
    pub endpoint: (String, Vec<Field>),
    /// The model: a hint for its name, and its fields.
    pub model: (String, Vec<Field>),
    /// The scenario: a hint for its name, and its fields.
    pub scenario: (String, Vec<Field>),
    /// The load.
    pub load: Load,
    /// How many requests it sends.
    pub prompts: Said<u32>,
    /// What the sweep is called.
    pub label: Option<String>,
    /// How often it runs, where that was said.
    pub repeats: Option<Field>,
    /// `seed`, `goodput`, `slo` and `notes`: what the plan says once.
    pub once: Vec<(&'static str, Field)>,
    /// Where the command begins.
    pub line: usize,
}

/// What a script said before the command.
#[derive(Debug, Default, Clone)]
pub(crate) struct Around {
    /// Facts of the server that the script started, as a field of an endpoint.
    pub facts: Option<Field>,
    /// The model that the server was started with.
    pub model: Option<(String, String)>,
    /// Where it is, in place of the command's default.
    pub url: Option<(String, String)>,
    /// What to call the scenario.
    pub name: Option<String>,
    /// What a parameter file puts in place of the command's options.
    pub(crate) instead: Vec<(String, Value)>,
    /// How often each command runs.
    pub repeats: Option<Field>,
    /// What the plan says once besides.
    pub once: Vec<(&'static str, Field)>,
    /// The folder that the plan will lie in.
    pub folder: PathBuf,
}
