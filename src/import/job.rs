//! What one command measures, and what the script said before it.

use std::path::PathBuf;

use serde_json::Value;

use super::draft::Field;
use super::said::Said;
use super::serve::Serve;
use super::text::table;
use crate::units::Decimal;

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
    /// How long it measures.
    pub lasts: Lasts,
    /// `fill`, `stabilize` and `drain`, where the source says them.
    pub phases: Vec<Field>,
    /// What else stands beside the matrix of its sweep: `stop`, `after`, `measure: start`, …
    pub fields: Vec<Field>,
    /// What the sweep is called.
    pub label: Option<String>,
    /// Whether it is one of several workloads that were listed together: scenarios and loads that change together become one
    /// axis.
    pub is_listed: bool,
    /// The name of the sweep that it is in, where sweeps of other names stay apart from it.
    pub apart: Option<Said<String>>,
    /// How often it runs, where that was said.
    pub repeats: Option<Field>,
    /// What the plan says once: `seed` and `notes`, or a field of a table (`goodput`, `slo`, `phases`, `between`, …).
    pub once: Vec<(&'static str, Field)>,
    /// Where the command begins.
    pub line: usize,
}

impl Job {
    /// A job of these three, without a load.
    pub(crate) fn new(
        endpoint: (String, Vec<Field>),
        model: (String, Vec<Field>),
        scenario: (String, Vec<Field>),
    ) -> Job {
        Job {
            endpoint,
            model,
            setting: None,
            scenario,
            load: Load::default(),
            search: None,
            lasts: Lasts::Unsaid,
            phases: Vec::new(),
            fields: Vec::new(),
            label: None,
            is_listed: false,
            apart: None,
            repeats: None,
            once: Vec::new(),
            line: 0,
        }
    }

    /// Whether it measures how long the server takes to start, and nothing else.
    pub(super) fn is_start(&self) -> bool {
        self.fields.iter().any(|field| field.key == "measure")
    }
}

/// The load of one job. With nothing in it, it comes from elsewhere: from a search, or a scenario with a `trace`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Load {
    /// Requests in flight: alone a closed loop, with rates a cap.
    pub batch_size: Option<Said<u32>>,
    /// Requests per second, each a cell.
    pub qps: Vec<Said<Decimal>>,
    /// The field `arrivals` of the sweep, where it is not Poisson's way.
    pub arrivals: Option<Said<String>>,
    /// Whether the rate is that of `arrivals` or of the scenario's trace: then `qps` is empty, and `batch_size` a cap.
    pub is_own: bool,
}

/// How long a job measures.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Lasts {
    /// Until so many requests were sent.
    Requests(Said<u32>),
    /// So many seconds.
    Seconds(Said<f64>),
    /// Until so many seconds are over or so many requests have ended, whichever comes first.
    First(Said<f64>, Said<u32>),
    /// Nothing says it: the plan's window.
    Unsaid,
}

/// A load that is searched.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Searched {
    /// Its axis in the plan: `qps` or `batch_size`.
    pub axis: &'static str,
    /// Its range and resolution, as in the plan: `from: 1, to: 1000, within: 5%`.
    pub range: String,
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

impl Around {
    /// Whether the address is that of `import --url`, which counts before any that a command names.
    pub(super) fn is_given_url(&self) -> bool {
        is_given(self.url.as_ref())
    }

    /// Whether the model is that of `import --model`, which counts before any that a command names.
    pub(super) fn is_given_model(&self) -> bool {
        is_given(self.model.as_ref())
    }
}

fn is_given(value: Option<&(String, String)>) -> bool {
    value.is_some_and(|(_, origin)| origin.starts_with("import --"))
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
    /// What stands beside the matrix of the sweep.
    pub fields: Vec<Field>,
    /// The folder that the plan will lie in.
    pub folder: PathBuf,
}
