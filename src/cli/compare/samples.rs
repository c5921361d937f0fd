//! Measured runs as inputs of a comparison: from a results folder, or from a file written by an earlier `compare`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::analysis::comparison::{RunValue, all_names, read, read_class};
use crate::analysis::verdict::State;
use crate::analysis::{ANALYSIS, FailureCount, Verdict};
use crate::cli::answers::{self, Answered};
use crate::cli::failure::Failure;
use crate::cli::options::Folder;
use crate::cli::replace::{cannot_write, replace};
use crate::cli::shared::address;
use crate::expand::{PlannedRun, RunSpec};
use crate::plan::{MetricName, Plan};
use crate::rows::{Environment, Fingerprint, GivenUp, RunLabels};
use crate::store::{GivenUpRun, Listed, RunRecord, Store, StoreError, run_labels};
use crate::units::regular_file;

/// Maximum size of a baseline, in bytes. The numbers of a run take about 2 KB.
const MOST_BYTES: u64 = 1 << 30;

/// The names that identify a run in addition to its id. A run of a changed plan has a different id, but
/// may have the same names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Names {
    endpoint: String,
    model: String,
    scenario: String,
    batch_size: Option<u32>,
    qps: Option<f64>,
    axes: BTreeMap<String, String>,
    repeat: u32,
}

impl Names {
    /// Returns the names from the labels of a run.
    pub(crate) fn of(labels: &RunLabels) -> Names {
        Names {
            endpoint: labels.endpoint.clone(),
            model: labels.model.clone(),
            scenario: labels.scenario.clone(),
            batch_size: labels.batch_size,
            qps: labels.qps,
            axes: labels.axes.clone(),
            repeat: labels.repeat,
        }
    }

    /// Returns the names of a planned run.
    fn planned(run: &PlannedRun) -> Names {
        Names::of(&run_labels(&run.id.to_string(), 0, &run.spec))
    }
}

/// One measured run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// The full RunId.
    pub id: String,
    /// The names of the run.
    pub names: Names,
    /// Why the run is invalid; `None` if it is valid.
    pub invalid: Option<String>,
    /// Whether the run is invalid only because of its errors.
    #[serde(default)]
    pub failed: bool,
    /// Why the run is suspect; `None` if it is not suspect.
    pub suspect: Option<String>,
    /// Digest of the requests that the generator sent, without nonces.
    pub sent: String,
    /// The circumstances of the measurement by name, like `client host`.
    pub circumstances: BTreeMap<String, String>,
    /// The launch of the server on which the run was measured; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) launch: Option<String>,
    /// All metrics of the run, by name.
    pub readings: BTreeMap<String, RunValue>,
    /// The metrics of each class of a mix.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, BTreeMap<String, RunValue>>,
    /// The failed requests of the run.
    #[serde(default)]
    pub failing: FailureCount,
    /// The failed requests of each class of a mix.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) failing_classes: BTreeMap<String, FailureCount>,
}

impl Sample {
    /// Creates a sample from a run that was read.
    pub(super) fn of(record: &RunRecord, answered: &Answered) -> Sample {
        let verdict = &answered.verdict;
        let every = |of: &dyn Fn(MetricName) -> RunValue| -> BTreeMap<String, RunValue> {
            all_names().into_iter().map(|name| (name.to_string(), of(name))).collect()
        };
        let classes =
            answered.classes.iter().map(|one| (one.class.clone(), every(&|name| read_class(name, &one.metrics))));
        Sample {
            id: record.id.clone(),
            names: Names::of(&answered.labels),
            invalid: (verdict.state == State::Invalid).then(|| verdict.to_string()),
            failed: has_failed(verdict),
            suspect: (verdict.state == State::Suspect).then(|| verdict.to_string()),
            sent: record.generator_digest.clone(),
            circumstances: circumstances(&record.spec, &record.environment),
            launch: launch(record, answered),
            readings: every(&|name| read(name, &answered.metrics, &answered.plan_metrics)),
            classes: classes.collect(),
            failing: answered.metrics.failures_compared,
            failing_classes: answered
                .classes
                .iter()
                .map(|one| (one.class.clone(), one.metrics.failures_compared))
                .collect(),
        }
    }

    /// Returns a metric of the run or of one of its classes, by name; `None` if the run does not have the
    /// class.
    pub(crate) fn reading(&self, class: Option<&str>, name: &str) -> Option<&RunValue> {
        class.map_or(Some(&self.readings), |class| self.classes.get(class))?.get(name)
    }

    /// Returns the failed requests of the run or of one of its classes; `None` if the run does not
    /// have the class, or is invalid for a reason other than errors.
    pub(crate) fn failing(&self, class: Option<&str>, with_invalid: bool) -> Option<FailureCount> {
        let counts = self.invalid.is_none() || self.failed || with_invalid;
        let failing = class.map_or(Some(&self.failing), |class| self.failing_classes.get(class));
        failing.filter(|_| counts).copied()
    }

    /// Returns the result of a planned run; `None` if it was not measured.
    pub(crate) fn planned(store: &Store, run: &PlannedRun, plan: &Plan) -> Result<Option<Sample>, StoreError> {
        let answer = answers::answer(store, run, plan)?;
        Ok(answer.map(|(record, answered)| Sample::of(&record, &answered)))
    }
}

/// Returns the launch of the server on which a run was measured: sweepline's own, or the one that the server tells. A mock
/// that sweepline simulates has no launches that could differ, so each run counts as one.
fn launch(record: &RunRecord, answered: &Answered) -> Option<String> {
    if record.spec.endpoint.mock.is_some() {
        return Some(record.id.clone());
    }
    let own = record.environment.server_start.as_ref().map(|start| start.at.clone());
    own.or_else(|| answered.launch.clone())
}

/// Whether a run is invalid only because of its errors. Excluding such a run must not hide the
/// errors.
fn has_failed(verdict: &Verdict) -> bool {
    let mut invalid = verdict.reasons.iter().filter(|reason| reason.state == State::Invalid).peekable();
    invalid.peek().is_some() && invalid.all(|reason| reason.name == "errors")
}

/// Why a run has no result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Absent {
    /// The reason as text: `not measured`, or `given up: 429 (3 of 3)`.
    pub reason: String,
    /// Whether the run was given up because the server does not sustain the load.
    pub missed: bool,
}

impl Default for Absent {
    fn default() -> Absent {
        Absent { reason: NOT_MEASURED.to_owned(), missed: false }
    }
}

/// The text of [`Absent::reason`] for a run that was neither measured nor given up.
const NOT_MEASURED: &str = "not measured";

impl Absent {
    /// Creates the reason for a run that was given up.
    pub(crate) fn of(given_up: &GivenUp) -> Absent {
        Absent { reason: given_up.to_string(), missed: given_up.is_a_miss() }
    }

    /// Whether the run was given up.
    pub(crate) fn is_given_up(&self) -> bool {
        self.reason != NOT_MEASURED
    }
}

/// A run without a result, as recorded in a baseline file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lacking {
    /// The full RunId.
    id: String,
    /// The names of the run.
    names: Names,
    #[serde(flatten)]
    why: Absent,
}

impl Lacking {
    /// Creates the entry from a planned run.
    pub(crate) fn of(run: &PlannedRun, why: Absent) -> Lacking {
        Lacking { id: run.id.to_string(), names: Names::planned(run), why }
    }
}

/// Returns the circumstances of a run: the properties of the endpoint and model that the plan declares, and
/// the observed properties of the server, the client and sweepline.
fn circumstances(spec: &RunSpec, environment: &Environment) -> BTreeMap<String, String> {
    let Environment {
        host,
        server,
        models,
        // Connection times vary from one measurement to the next.
        connect_ns: _,
        tls_ns: _,
        round_trip_ns: _,
        fingerprint,
        sweepline,
        client_host,
        client_os,
        client_cpu,
        client_cores,
        server_start: _,
        client_gpus,
        client_gpu_driver,
    } = environment;
    let Fingerprint { engine, version, model, context_length, flags } = fingerprint;
    let told: Vec<String> = flags.iter().map(|(flag, value)| format!("{flag} {value}")).collect();
    let endpoint = &spec.endpoint;
    let known = [
        ("engine", Some(endpoint.engine.name().to_owned())),
        ("accelerator", endpoint.gpu.clone()),
        ("accelerators", endpoint.gpus.map(|gpus| gpus.to_string())),
        ("precision", spec.model.precision.clone()),
        ("model id", Some(spec.model.id.clone())),
        ("server address", host.clone()),
        ("server version", server.clone()),
        ("server engine", engine.clone()),
        ("server release", version.clone()),
        ("served model", model.clone()),
        ("context length", context_length.map(|tokens| tokens.to_string())),
        ("server flags", (!told.is_empty()).then(|| told.join(", "))),
        ("served models", (!models.is_empty()).then(|| models.join(", "))),
        ("sweepline", Some(sweepline.clone())),
        ("client host", Some(client_host.clone())),
        ("client system", Some(client_os.clone())),
        ("client processor", client_cpu.clone()),
        ("client cores", Some(client_cores.to_string())),
        ("client GPUs", (!client_gpus.is_empty()).then(|| client_gpus.join(", "))),
        ("client GPU driver", client_gpu_driver.clone()),
    ];
    let facts = endpoint.server.iter().map(|(name, value)| (format!("server.{name}"), value.to_string()));
    let known = known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    known.chain(facts).collect()
}

/// Earlier results with which new ones are compared.
pub(crate) enum Earlier {
    /// A results folder.
    Folder {
        /// The folder.
        store: Store,
        /// The runs in the folder.
        listed: Vec<Listed>,
        /// The runs that were given up.
        given_up: Vec<GivenUpRun>,
    },
    /// A baseline file.
    File {
        /// The runs with results.
        samples: Vec<Sample>,
        /// The runs that were given up.
        given_up: Vec<Lacking>,
    },
}

/// The contents of a baseline file.
#[derive(Debug, Serialize, Deserialize)]
struct Baseline {
    /// Version of the format.
    sweepline_baseline: u32,
    /// Version of the analysis that computed the numbers; 1 in files without this field.
    #[serde(default = "first_analysis")]
    analysis: u32,
    plan: String,
    runs: Vec<Sample>,
    /// Runs that were given up; files of earlier versions do not list them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    given_up: Vec<Lacking>,
}

/// Version of the file format.
const FORMAT: u32 = 1;

/// The first key of every baseline file.
pub(crate) const BASELINE: &str = "sweepline_baseline";

fn first_analysis() -> u32 {
    1
}

impl Earlier {
    /// Opens a results folder or a baseline file.
    pub(crate) fn open(path: &Path) -> Result<Earlier, Failure> {
        let shown = path.display();
        let of_folder = Folder { results: path.to_owned() };
        if path.is_dir() || address(path).is_some() {
            let store = of_folder.whole_store()?;
            let listed = store.list()?;
            if listed.is_empty() {
                return Err(Failure::Usage(format!("no results in {shown}: name a folder that contains results")));
            }
            let given_up = store.given_up()?;
            return Ok(Earlier::Folder { store, listed, given_up });
        }
        let text = regular_file::read(path, MOST_BYTES).map_err(|error| {
            Failure::Usage(format!(
                "cannot read {shown}: {error}; name a results folder, or a file written by --write-baseline"
            ))
        })?;
        let wrong = |why: String| {
            Failure::Usage(format!(
                "{shown} is not a baseline: {why}; `sweepline compare PLAN --write-baseline FILE` writes one"
            ))
        };
        let baseline: Baseline = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        match (baseline.sweepline_baseline, baseline.analysis) {
            (FORMAT, ANALYSIS) => Ok(Earlier::File { samples: baseline.runs, given_up: baseline.given_up }),
            (FORMAT, other) if other > ANALYSIS => Err(Failure::Usage(format!(
                "{shown} was written by a newer sweepline (analysis version {other}; this one has {ANALYSIS}): \
                 upgrade, or name the results folder that it was made from"
            ))),
            (FORMAT, other) => Err(Failure::Usage(format!(
                "{shown} was written with analysis version {other}; this sweepline has {ANALYSIS}, which may compute \
                 different numbers from the same requests; name the results folder that it was made from, or write the \
                 baseline again: sweepline compare PLAN --results FOLDER --write-baseline {shown}"
            ))),
            (other, _) => Err(wrong(format!("its format is {other}, and this sweepline reads {FORMAT}"))),
        }
    }

    /// Returns the earlier result of a run with the same id, or else with the same names; or why there is
    /// none.
    pub(crate) fn find(&self, run: &PlannedRun, plan: &Plan) -> Result<Result<Sample, Absent>, StoreError> {
        let (id, names) = (run.id.to_string(), Names::planned(run));
        let found = self.sample(&id, &names, plan)?;
        Ok(found.ok_or_else(|| self.why_absent(&id, &names).unwrap_or_default()))
    }

    fn sample(&self, id: &str, names: &Names, plan: &Plan) -> Result<Option<Sample>, StoreError> {
        match self {
            Earlier::File { samples, .. } => {
                let by_id = samples.iter().find(|sample| sample.id == id);
                Ok(by_id.or_else(|| samples.iter().find(|sample| sample.names == *names)).cloned())
            }
            Earlier::Folder { store, listed, .. } => {
                let by_id = listed.iter().find(|listed| id.starts_with(&listed.id));
                let is_named = |listed: &&Listed| {
                    listed.record.as_ref().is_some_and(|record| Names::of(&record.labels()) == *names)
                };
                let Some(found) = by_id.or_else(|| listed.iter().find(is_named)) else { return Ok(None) };
                if let Some(error) = found.unusable() {
                    return Err(error);
                }
                let Some(record) = &found.record else { return Ok(None) };
                Ok(Some(Sample::of(record, &answers::read(store, record, Some(plan))?)))
            }
        }
    }

    fn why_absent(&self, id: &str, names: &Names) -> Option<Absent> {
        match self {
            Earlier::File { given_up, .. } => {
                let by_id = given_up.iter().find(|lacking| lacking.id == id);
                let found = by_id.or_else(|| given_up.iter().find(|lacking| lacking.names == *names));
                found.map(|lacking| lacking.why.clone())
            }
            Earlier::Folder { given_up, .. } => {
                let by_id = given_up.iter().find(|run| run.id == id);
                let found = by_id.or_else(|| given_up.iter().find(|run| Names::of(&run.labels()) == *names));
                found.map(|run| Absent::of(&run.given_up))
            }
        }
    }
}

/// Writes samples and given-up runs to a file with which later results can be compared.
pub(crate) fn write(path: &Path, plan: &Plan, (runs, given_up): (Vec<Sample>, Vec<Lacking>)) -> Result<(), Failure> {
    let plan = plan.name.clone();
    let baseline = Baseline { sweepline_baseline: FORMAT, analysis: ANALYSIS, plan, runs, given_up };
    let text = serde_json::to_string_pretty(&baseline).map_err(|error| Failure::Unexpected(error.into()))?;
    replace(path, |out| writeln!(out, "{text}")).map_err(|error| cannot_write(Some(path), &error))
}
