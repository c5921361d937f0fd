//! Facts of a run as columns: what the plan declares about the server, the model and the requests, and what
//! the server and the machine reported. They are read from the run's record and the plan when the table is
//! created.

use std::collections::BTreeMap;

use crate::expand::RunSpec;
use crate::expand::launch::declared;
use crate::plan::model::content::Content;
use crate::plan::model::lengths::resolved::Lengths;
use crate::plan::{Plan, Scalar};
use crate::rows::{Environment, Fingerprint};
use crate::units::Currency;

use super::{Cell, Column, Kind};

/// The declared server fact that has its own column, `engine_version`.
pub(super) const VERSION: &str = "version";

/// The facts that a plan declares about a run.
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
    currency: Option<Currency>,
    limits: Option<String>,
    /// Facts of the server, including its flags, flattened to one level of names.
    pub(super) server: BTreeMap<String, String>,
}

/// The intended lengths of texts.
#[derive(Debug, Clone, PartialEq)]
enum Length {
    /// All lengths are equal.
    Tokens(u32),
    /// The lengths follow a rule, which is described in words.
    By(String),
}

impl Length {
    fn cell(&self) -> Cell {
        match self {
            Length::Tokens(tokens) => (*tokens).into(),
            Length::By(rule) => rule.clone().into(),
        }
    }

    /// Returns the lengths of prompts and of responses.
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
    /// Returns the facts of a run according to its spec. The price and the currency come from `plan`, and
    /// `limits` is the plan's objective in words.
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
            currency: plan.and_then(|plan| plan.currency),
            limits,
            server: spec.endpoint.server.iter().map(text).collect(),
        }
    }

    pub(super) fn columns() -> [Column; 13] {
        let text = |name, doc| Column::new(name, Kind::Text, doc);
        let (undeclared, planless) = ("not declared", "not declared, or exported without a plan");
        let length = |name, doc| Column { unit: "tokens", ..Column::new(name, Kind::Any, doc) };
        [
            text("engine", "The engine as the plan declares it; `server_engine` is the detected one."),
            text("api", "The API that was called."),
            text(
                "engine_version",
                "Version of the engine as the plan declares it; `server_version` is the one read back.",
            )
            .null(undeclared),
            text("gpu", "The accelerator as the plan declares it.").null(undeclared),
            Column::new("gpus", Kind::Int, "Number of accelerators that serve the endpoint, as the plan declares it.")
                .null(undeclared),
            text("model_id", "The model's id as sent."),
            text("precision", "Number format of the model as the plan declares it.").null(undeclared),
            text(
                "tokenizer",
                "SHA-256 of the files of the tokenizer that counted tokens; `server` if the server was to count.",
            )
            .null("no tokenizer: lengths are estimates"),
            length(
                "prompt_length",
                "Intended number of tokens of a request's user text: a number, or the rule by which they differ.",
            ),
            length("output_length", "Requested number of output tokens: a number, or the rule by which they differ.")
                .null("the API returns no tokens"),
            Column {
                unit: "money",
                ..Column::new(
                    "price_per_hour",
                    Kind::Float,
                    "Cost of the whole endpoint per hour, as the plan declares it, in `currency`.",
                )
                .null(planless)
            },
            text("currency", "Currency of the plan's prices (ISO 4217).")
                .null("the plan sets none, or exported without a plan"),
            text("objective_limits", "The plan's objective.").null("the plan has none, or exported without a plan"),
        ]
    }

    pub(super) fn cells(&self) -> [Cell; 13] {
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
            self.currency.map(|currency| currency.to_string()).into(),
            self.limits.clone().into(),
        ]
    }
}

/// The facts in a run's record about the server, and about the GPUs of the machine that sweepline ran on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundHosts {
    /// Host and port of the endpoint's URL.
    pub address: Option<String>,
    /// The facts that the server reported about itself.
    pub server: Fingerprint,
    /// GPUs of the client's machine.
    pub client_gpus: Vec<String>,
    /// The version of the driver of the GPUs in `client_gpus`.
    pub client_gpu_driver: Option<String>,
}

impl FoundHosts {
    /// Returns the facts from the environment that was recorded with a run.
    pub(crate) fn of(environment: &Environment) -> FoundHosts {
        let Environment { host, fingerprint, client_gpus, client_gpu_driver, .. } = environment;
        FoundHosts {
            address: host.clone(),
            server: fingerprint.clone(),
            client_gpus: client_gpus.clone(),
            client_gpu_driver: client_gpu_driver.clone(),
        }
    }

    pub(super) fn columns() -> [Column; 7] {
        let text = |name, doc| Column::new(name, Kind::Text, doc);
        let (unsaid, absent) = ("not reported by the server", "nvidia-smi did not list any");
        [
            text("server_engine", "The detected engine of the server.").null(unsaid),
            text("server_version", "The version that the server reported.").null(unsaid),
            text("served_model", "Name or path of the model behind the id, as the server reported it.").null(unsaid),
            Column::new(
                "context_length",
                Kind::Int,
                "Maximum number of tokens of a prompt and its response, as \
                the server reported it.",
            )
            .null(unsaid),
            text("client_gpus", "GPUs of the machine that sweepline ran on: the server's only if it runs there.")
                .null(absent),
            text("client_gpu_driver", "Version of the driver of those GPUs.").null(absent),
            text("server_address", "Host and port that requests were sent to.")
                .null("the embedded mock, or the run was given up"),
        ]
    }

    pub(super) fn cells(&self) -> [Cell; 7] {
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
