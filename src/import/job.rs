//! The measurement of one command, and the context in which the command runs.

use std::path::PathBuf;

use serde_json::Value;

use super::draft::Field;
use super::said::Said;
use super::serve::Serve;
use super::text::table;
use crate::units::Decimal;

/// The measurement of one command.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// The endpoint: a hint for its name, and its fields.
    pub endpoint: (String, Vec<Field>),
    /// The model: a hint for its name, and its fields.
    pub model: (String, Vec<Field>),
    /// The varied flags with which the job's server is started; `None` if no flags are varied.
    pub setting: Option<Setting>,
    /// The scenario: a hint for its name, and its fields.
    pub scenario: (String, Vec<Field>),
    /// The load.
    pub load: Load,
    /// The load to search for; if set, it replaces `load`.
    pub search: Option<Searched>,
    /// The duration of the measurement.
    pub lasts: Lasts,
    /// `fill`, `stabilize` and `drain`, if the source contains them.
    pub phases: Vec<Field>,
    /// Other fields next to the matrix of the job's sweep: `stop`, `after`, `measure: start`, …
    pub fields: Vec<Field>,
    /// The label in the command, which names the sweep if all jobs of the sweep have this label.
    pub label: Option<String>,
    /// Whether the job is one of several workloads that are listed together. Scenarios and loads that
    /// change together become one axis.
    pub is_listed: bool,
    /// The name of the job's sweep. Jobs with different names stay in separate sweeps.
    pub apart: Option<Said<String>>,
    /// The number of repeats, if set.
    pub repeats: Option<Field>,
    /// Settings that a plan contains once: `seed` and `notes`, or a field of a table (`goodput`, `slo`,
    /// `phases`, `between`, …).
    pub once: Vec<(&'static str, Field)>,
    /// The line where the command begins.
    pub line: usize,
}

impl Job {
    /// Returns a job with this endpoint, model and scenario, without a load.
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

    /// Whether the job only measures how long the server takes to start.
    pub(super) fn is_start(&self) -> bool {
        self.fields.iter().any(|field| field.key == "measure")
    }
}

/// The load of one job. An empty load means that a search, or a scenario with a `trace`, determines the load.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Load {
    /// Requests in flight: a closed loop if given alone, a cap if given with rates.
    pub batch_size: Option<Said<u32>>,
    /// Requests per second, one cell for each.
    pub qps: Vec<Said<Decimal>>,
    /// The field `arrivals` of the sweep, unless arrivals are Poisson.
    pub arrivals: Option<Said<String>>,
    /// Whether the rate is determined by `arrivals` or by the scenario's trace. If so, `qps` is
    /// empty, and `batch_size` is a cap.
    pub is_own: bool,
}

/// The duration of a job's measurement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Lasts {
    /// Until this number of requests has been sent.
    Requests(Said<u32>),
    /// For this number of seconds.
    Seconds(Said<f64>),
    /// Until this time has passed or this number of requests has ended, whichever comes first.
    First(Said<f64>, Said<u32>),
    /// Not specified, so the plan's window applies.
    Unsaid,
}

/// A load that is searched for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Searched {
    /// The axis of the load in the plan: `qps` or `batch_size`.
    pub axis: &'static str,
    /// The range and resolution of the search, as in the plan: `from: 1, to: 1000, within: 5%`.
    pub range: String,
    /// The words that request the search.
    pub origin: String,
}

/// One value of the `server` axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    /// The flags by name, each value in YAML.
    pub flags: Vec<(String, String)>,
    /// The name of the value, if it has one.
    pub name: Option<String>,
    /// The words that specify the parameters.
    pub origin: String,
}

impl Setting {
    /// Returns the value as a YAML map.
    pub(crate) fn value(&self) -> String {
        table(self.flags.iter().map(|(name, value)| (name, value)))
    }
}

impl Around {
    /// Whether the address comes from `import --url`, which overrides addresses in commands.
    pub(super) fn is_given_url(&self) -> bool {
        is_given(self.url.as_ref())
    }

    /// Whether the model comes from `import --model`, which overrides models in commands.
    pub(super) fn is_given_model(&self) -> bool {
        is_given(self.model.as_ref())
    }
}

fn is_given(value: Option<&(String, String)>) -> bool {
    value.is_some_and(|(_, origin)| origin.starts_with("import --"))
}

/// The context of a command: settings from `import`, from the script before the command, and from a parameter
/// file.
#[derive(Debug, Default, Clone)]
pub(crate) struct Around {
    /// Facts of the server that the script started, as a field of an endpoint without `launch`.
    pub facts: Option<Field>,
    /// The launch of the server that the script started.
    pub serve: Option<Serve>,
    /// The varied flags of the server that the script started.
    pub setting: Option<Setting>,
    /// The actions between two runs, as a field of an endpoint.
    pub between: Option<Field>,
    /// The time limit for each start, as a field of an endpoint.
    pub ready: Option<Field>,
    /// The model with which the server was started, and its origin.
    pub model: Option<(String, String)>,
    /// The address of the server that the script started, which replaces the command's default, and
    /// the origin of the address.
    pub url: Option<(String, String)>,
    /// The name of the scenario.
    pub name: Option<String>,
    /// The values in the parameter file that replace the command's options.
    pub(crate) instead: Vec<(String, Value)>,
    /// The load that is searched for.
    pub search: Option<Searched>,
    /// The number of runs per command.
    pub repeats: Option<Field>,
    /// Other settings that a plan contains once.
    pub once: Vec<(&'static str, Field)>,
    /// The fields next to the matrix of the sweep.
    pub fields: Vec<Field>,
    /// The folder of the plan.
    pub folder: PathBuf,
}
