//! Facts of a run as columns: what the plan declares of the server, the model and the requests, and what was read back. Identity is
//! no matter of theirs: they are read from the run's record and the plan when the table is made.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::slo::Answer;
use crate::expand::RunSpec;
use crate::expand::launch::declared;
use crate::plan::model::axis::SERVER_PREFIX;
use crate::plan::model::content::Content;
use crate::plan::model::lengths::resolved::Lengths;
use crate::plan::{Plan, Scalar};
use crate::rows::{Environment, Fingerprint};

use super::runs::{GivenUpRow, RunRow, axes};
use super::{Cell, Column, Kind};

/// How a column of a declared fact of the server begins: `declared.flags.max_num_seqs`, `declared.tensor_parallel`.
const DECLARED: &str = "declared.";

/// How a column of a flag begins that the server told itself: `read_back.max_model_len`.
const READ_BACK: &str = "read_back.";

/// How a column begins that counts one kind of failure: `failed.http_500`.
const FAILED: &str = "failed.";

/// How a flag begins among the declared facts of a server.
const FLAGS: &str = "flags.";

/// The fact of a server that has a column of its own.
const VERSION: &str = "version";

/// Columns of facts that differ from run to run only where servers, models or requests do: what tells rows apart.
pub(crate) const TELLING: [&str; 18] = [
    "engine",
    "engine_version",
    "api",
    "gpu",
    "gpus",
    "model_id",
    "precision",
    "tokenizer",
    "prompt_length",
    "output_length",
    "price_per_hour",
    "objective_limits",
    "server_engine",
    "server_version",
    "served_model",
    "context_length",
    "client_gpus",
    "client_gpu_driver",
];

/// What a plan declares of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeclaredFacts {
    engine: Option<&'static str>,
    api: Option<&'static str>,
    gpu: Option<String>,
    gpus: Option<u32>,
    model_id: Option<String>,
    precision: Option<String>,
    tokenizer: Option<String>,
    prompt: Option<Length>,
    output: Option<Length>,
    price_per_hour: Option<f64>,
    limits: Option<String>,
    /// Facts of the server under one level of names, flags among them.
    server: BTreeMap<String, String>,
}

/// How long texts were meant to be.
#[derive(Debug, Clone, PartialEq)]
enum Length {
    /// All alike.
    Tokens(u32),
    /// By a rule, in its words.
    By(String),
}

impl Length {
    fn cell(&self) -> Cell {
        match self {
            Length::Tokens(tokens) => (*tokens).into(),
            Length::By(rule) => rule.clone().into(),
        }
    }

    /// Of prompts and of answers.
    fn of(spec: &RunSpec) -> [Length; 2] {
        if spec.mix.is_empty() {
            return Length::of_content(&spec.scenario);
        }
        let classes: Vec<[Length; 2]> = spec.mix.iter().map(|class| Length::of_content(&class.scenario)).collect();
        let names: Vec<&str> = spec.mix.iter().map(|class| &*class.name).collect();
        [0, 1].map(|side| match classes.iter().all(|class| class[side] == classes[0][side]) {
            true => classes[0][side].clone(),
            false => Length::By(format!("by class: {}", names.join(", "))),
        })
    }

    fn of_content(content: &Content) -> [Length; 2] {
        let both = |text: &str| [Length::By(text.to_owned()), Length::By(text.to_owned())];
        match &content.lengths {
            _ if content.trace.is_some() => both("as in the trace"),
            _ if content.data.is_some() => both("as in the data set"),
            Some(Lengths::Each { prompt, output }) => [prompt, output].map(|rule| Length::By(rule.to_string())),
            Some(joint @ Lengths::Joint(_)) => both(&joint.to_string()),
            None => [content.prompt_tokens, content.output_tokens].map(Length::Tokens),
        }
    }
}

impl DeclaredFacts {
    /// Of a run as it was asked for; prices and objectives are the plan's, `limits` the objective in words.
    pub(crate) fn of(spec: &RunSpec, plan: Option<&Plan>, limits: Option<String>) -> DeclaredFacts {
        let endpoint = plan.and_then(|plan| plan.endpoints.get(&spec.endpoint.name));
        let price = endpoint.and_then(|endpoint| declared(endpoint, spec.labels.axes.iter()).hardware.cost_per_hour());
        let has_tokens = spec.endpoint.api.generates();
        let [prompt, output] = Length::of(spec);
        let text = |(fact, value): (&String, &Scalar)| (fact.clone(), value.to_string());
        DeclaredFacts {
            engine: Some(spec.endpoint.engine.name()),
            api: Some(spec.endpoint.api.name()),
            gpu: spec.endpoint.gpu.clone(),
            gpus: spec.endpoint.gpus,
            model_id: Some(spec.model.id.clone()),
            precision: spec.model.precision.clone(),
            tokenizer: spec.model.tokenizer.clone(),
            prompt: Some(prompt),
            output: has_tokens.then_some(output),
            price_per_hour: price,
            limits,
            server: spec.endpoint.server.iter().map(text).collect(),
        }
    }

    fn columns() -> [Column; 12] {
        let text = |name, doc| Column::new(name, Kind::Text, doc);
        let (undeclared, planless) = ("not declared", "not declared, or exported without a plan");
        let length = |name, doc| Column { unit: "tokens", ..Column::new(name, Kind::Any, doc) };
        [
            text("engine", "The engine as the plan declares it; `server_engine` is what the server showed itself to be."),
            text("api", "The API that was called."),
            text("engine_version", "Version of the engine as the plan declares it; `server_version` is what was read back.")
                .null(undeclared),
            text("gpu", "The accelerator as the plan declares it.").null(undeclared),
            Column::new("gpus", Kind::Int, "How many accelerators serve the endpoint, as the plan declares it.")
                .null(undeclared),
            text("model_id", "The model's id as it was sent."),
            text("precision", "Number format of the model as the plan declares it.").null(undeclared),
            text("tokenizer", "SHA-256 of the tokenizer's files that counted tokens; `server` where the server was to count.")
                .null("nobody was to count: lengths are estimates"),
            length(
                "prompt_length",
                "Tokens that the user's text of a request was meant to have: a number, or the rule by which they differ.",
            ),
            length("output_length", "Tokens that were asked for: a number, or the rule by which they differ.")
                .null("the API answers with no tokens"),
            Column {
                unit: "money",
                ..Column::new(
                    "price_per_hour",
                    Kind::Float,
                    "What the whole endpoint costs per hour, as the plan declares it: in the currency of its prices, which plans do not name.",
                )
                .null(planless)
            },
            text("objective_limits", "The plan's objective.").null("the plan has none, or exported without a plan"),
        ]
    }

    fn cells(&self) -> [Cell; 12] {
        [
            self.engine.map(str::to_owned).into(),
            self.api.map(str::to_owned).into(),
            self.server.get(VERSION).cloned().into(),
            self.gpu.clone().into(),
            self.gpus.into(),
            self.model_id.clone().into(),
            self.precision.clone().into(),
            self.tokenizer.clone().into(),
            self.prompt.as_ref().map_or(Cell::Null, Length::cell),
            self.output.as_ref().map_or(Cell::Null, Length::cell),
            self.price_per_hour.into(),
            self.limits.clone().into(),
        ]
    }
}

/// What a run's record says of the server, and of the GPUs of the machine that sweepline ran on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundHosts {
    /// Host and port of the endpoint's URL.
    pub address: Option<String>,
    /// The server, by its own words.
    pub server: Fingerprint,
    /// GPUs of the client's machine.
    pub client_gpus: Vec<String>,
    /// The version of their driver.
    pub client_gpu_driver: Option<String>,
}

impl FoundHosts {
    /// As a run recorded them.
    pub(crate) fn of(environment: &Environment) -> FoundHosts {
        let Environment { host, fingerprint, client_gpus, client_gpu_driver, .. } = environment;
        FoundHosts {
            address: host.clone(),
            server: fingerprint.clone(),
            client_gpus: client_gpus.clone(),
            client_gpu_driver: client_gpu_driver.clone(),
        }
    }

    fn columns() -> [Column; 7] {
        let text = |name, doc| Column::new(name, Kind::Text, doc);
        let (unsaid, absent) = ("the server did not say", "nvidia-smi did not list any");
        [
            text("server_engine", "The engine that the server showed itself to be.").null(unsaid),
            text("server_version", "The version that the server said.").null(unsaid),
            text("served_model", "Name or path of the model behind the id, as the server told it.").null(unsaid),
            Column::new("context_length", Kind::Int, "Most tokens of a prompt with its answer, as the server told it.")
                .null(unsaid),
            text("client_gpus", "GPUs of the machine that sweepline ran on: the server's only where it stands there.")
                .null(absent),
            text("client_gpu_driver", "Version of the driver of those GPUs.").null(absent),
            text("server_address", "Host and port that requests went to.")
                .null("the embedded mock, or the run was given up"),
        ]
    }

    fn cells(&self) -> [Cell; 7] {
        let FoundHosts { address, server, client_gpus, client_gpu_driver } = self;
        [
            server.engine.clone().into(),
            server.version.clone().into(),
            server.model.clone().into(),
            server.context_length.into(),
            (!client_gpus.is_empty()).then(|| client_gpus.join("; ")).into(),
            client_gpu_driver.clone().into(),
            address.clone().into(),
        ]
    }
}

/// What some runs have a column of and others do not: further axes, facts of servers, kinds of failures. All by name, sorted.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Further {
    /// Further axes of the cells.
    pub(crate) axes: Vec<String>,
    declared: Vec<String>,
    read_back: Vec<String>,
    failures: Vec<String>,
}

impl Further {
    /// Of these runs.
    pub(crate) fn of(runs: &[RunRow], given_up: &[GivenUpRow]) -> Further {
        let labels = runs.iter().map(|run| &run.labels).chain(given_up.iter().map(|run| &run.labels));
        let declared = runs.iter().map(|run| &run.declared).chain(given_up.iter().map(|run| &run.declared));
        let declared = declared.flat_map(|facts| facts.server.keys()).filter(|fact| *fact != VERSION);
        let read_back = runs.iter().flat_map(|run| run.found.server.flags.keys());
        let failures = runs.iter().flat_map(|run| &run.metrics.failures.0).map(|failure| failure.outcome.to_string());
        Further {
            axes: axes(labels),
            declared: sorted(declared.cloned()),
            read_back: sorted(read_back.cloned()),
            failures: sorted(failures),
        }
    }

    /// The columns that tell servers apart: declared flags and those that were read back. A flag that is an axis has its column
    /// there.
    pub(crate) fn telling(&self) -> impl Iterator<Item = String> {
        let is_axis = |fact: &str| {
            fact.strip_prefix(FLAGS).is_some_and(|flag| self.axes.contains(&format!("{SERVER_PREFIX}{flag}")))
        };
        let declared = self.declared.iter().filter(move |fact| !is_axis(fact)).map(|fact| of_declared(fact));
        declared.chain(self.read_back.iter().map(|flag| of_read_back(flag)))
    }

    fn columns(&self) -> Vec<Column> {
        let text = |name, doc, null| Column { unit: "", ..Column::new(name, Kind::Text, doc).null(null) };
        let declared = self.declared.iter().map(|fact| {
            let doc = format!("`{fact}` of the server as the plan declares it, with what the cell makes of it.");
            text(of_declared(fact), doc, "not declared")
        });
        let read_back = self
            .read_back
            .iter()
            .map(|flag| text(of_read_back(flag), format!("`{flag}` as the server told it."), "the server did not say"));
        let failures = self.failures.iter().map(|kind| {
            let doc = format!("Failed requests of the window that ended as {kind}.");
            let column = Column::new(format!("{FAILED}{kind}"), Kind::Int, doc);
            Column { unit: "", ..column.null("the run was given up") }
        });
        declared.chain(read_back).chain(failures).collect()
    }

    fn cells(&self, declared: &DeclaredFacts, measured: Option<&RunRow>) -> Vec<Cell> {
        let flags = measured.map(|run| &run.found.server.flags);
        let facts = self.declared.iter().map(|fact| Cell::from(declared.server.get(fact).cloned()));
        let read_back = self.read_back.iter().map(|flag| Cell::from(flags.and_then(|flags| flags.get(flag)).cloned()));
        let failures = self.failures.iter().map(|kind| {
            let Some(run) = measured else { return Cell::Null };
            let failures = run.metrics.failures.0.iter().filter(|failure| failure.outcome.to_string() == *kind);
            Cell::from(failures.map(|failure| failure.count).sum::<u64>())
        });
        facts.chain(read_back).chain(failures).collect()
    }
}

fn of_declared(fact: &str) -> String {
    format!("{DECLARED}{fact}")
}

fn of_read_back(flag: &str) -> String {
    format!("{READ_BACK}{flag}")
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    names.collect::<BTreeSet<String>>().into_iter().collect()
}

/// Whether a column's name is one that only some exports have: a fact of a server, or a kind of failure.
pub(crate) fn is_of_some(name: &str) -> bool {
    [DECLARED, READ_BACK, FAILED].iter().any(|start| name.starts_with(start))
}

/// Whether a column says something of the run that is no metric: not for a pivot, where it is not named.
pub(crate) fn is_fact(name: &str) -> bool {
    let declared = DeclaredFacts::columns();
    declared.iter().any(|column| column.name == name) || name.starts_with(DECLARED) || name.starts_with(READ_BACK)
}

/// All columns of facts, those of `further` last.
pub(crate) fn columns(further: &Further) -> Vec<Column> {
    let mut columns: Vec<Column> = FoundHosts::columns().into();
    columns.extend(DeclaredFacts::columns());
    columns.push(Column {
        unit: "s",
        ..Column::new("window_s", Kind::Float, "Length of the window in which requests were measured, in seconds.")
            .null("nothing was measured")
    });
    let answer = "Whether the plan's objective holds in this run alone: holds, misses or undecided. Over repeats `curves` decides.";
    columns.push(
        Column::new("objective", Kind::Text, answer)
            .null("no objective, the run does not count, was given up, or is a class of one"),
    );
    columns.extend(further.columns());
    columns
}

/// Their cells for a run.
pub(crate) fn cells(run: &RunRow, further: &Further) -> Vec<Cell> {
    let mut cells: Vec<Cell> = run.found.cells().into();
    cells.extend(run.declared.cells());
    cells.push(run.metrics.flow.seconds.into());
    cells.push(run.objective.map(Answer::name).into());
    cells.extend(further.cells(&run.declared, Some(run)));
    cells
}

/// Their cells for a run that was given up: what was declared, and nothing that was seen.
pub(crate) fn cells_of_given_up(run: &GivenUpRow, further: &Further) -> Vec<Cell> {
    let mut cells: Vec<Cell> = FoundHosts::columns().iter().map(|_| Cell::Null).collect();
    cells.extend(run.declared.cells());
    cells.extend([Cell::Null, Cell::Null]);
    cells.extend(further.cells(&run.declared, None));
    cells
}
