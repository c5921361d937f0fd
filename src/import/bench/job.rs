//! What one command measures, and what the script said before it.

use std::path::PathBuf;

use serde_json::Value;

use super::arguments::Said;
use super::load::Load;
use super::serve::Serve;
use crate::import::draft::Field;
use crate::import::text::table;

/// What one command measures.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// The endpoint: a hint for its name, and its fields.
    pub endpoint: (String, Vec<Field>),
    /// The model: a hint for its name, and its fields.
    pub model: (String, Vec<Field>),
    /// With which flags its server is started, of those that are varied.
    pub setting: Option<Setting>,
    /// The scenario: a hint for its name, and its fields.
    pub scenario: (String, Vec<Field>),
    /// The load.
    pub load: Load,
    /// Which load is searched, in the place of its own.
    pub search: Option<Searched>,
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

/// A load that is searched.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Searched {
    /// Its axis in the plan: `qps` or `batch_size`.
    pub axis: &'static str,
    /// The words that asked for it.
    pub origin: String,
}

/// One value of the `server` axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    /// The flags by name, each value in YAML.
    pub flags: Vec<(String, String)>,
    /// What it is called, where it has a name.
    pub name: Option<String>,
    /// The words that named the parameters.
    pub origin: String,
}

impl Setting {
    /// It as a map of YAML.
    pub(crate) fn value(&self) -> String {
        table(self.flags.iter().map(|(name, value)| (name, value)))
    }
}

/// What a script said before the command.
#[derive(Debug, Default, Clone)]
pub(crate) struct Around {
    /// Facts of the server that the script started, as a field of an endpoint that is not launched.
    pub facts: Option<Field>,
    /// How that server is started.
    pub serve: Option<Serve>,
    /// With which flags, of those that are varied.
    pub setting: Option<Setting>,
    /// What happens between two runs, as a field of an endpoint.
    pub between: Option<Field>,
    /// How long each start is waited for, as a field of an endpoint.
    pub ready: Option<Field>,
    /// The model that the server was started with.
    pub model: Option<(String, String)>,
    /// Where it is, in place of the command's default.
    pub url: Option<(String, String)>,
    /// What to call the scenario.
    pub name: Option<String>,
    /// What a parameter file puts in place of the command's options.
    pub(crate) instead: Vec<(String, Value)>,
    /// Which load is searched.
    pub search: Option<Searched>,
    /// How often each command runs.
    pub repeats: Option<Field>,
    /// What the plan says once besides.
    pub once: Vec<(&'static str, Field)>,
    /// The folder that the plan will lie in.
    pub folder: PathBuf,
}
