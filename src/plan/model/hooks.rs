//! Hooks of an endpoint: requests to its server and commands on this host, before and after runs and
//! cells.
//!
//! Texts may contain `{{ … }}` expressions that each cell evaluates, as in `launch`. Actions before a
//! run affect its measurements, so `before_*` hooks are part of a run's identity; later hooks are not.
//! The field `hash` of a hook overrides this.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::shorthand::OneOrMany;
use crate::plan::text::tree::Step;
use crate::units::Nanos;
use crate::units::text::quoted;

/// The hooks of an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hooks {
    /// Before the first run of a cell in an invocation, ahead of `before_run`.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(example = serde_json::json!({ "command": ["./set-clocks.sh", "{{ model.id }}"] }))]
    pub before_cell: OneOrMany<Hook>,
    /// Before every run, when its server is idle and the run's clock has not started.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(example = serde_json::json!({ "request": "POST /reset_prefix_cache" }))]
    pub before_run: OneOrMany<Hook>,
    /// After every run, when its drain has ended and it is not yet committed.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(example = serde_json::json!({ "command": ["./collect.sh"], "within": "2m" }))]
    pub after_run: OneOrMany<Hook>,
    /// After the last run of a cell in an invocation, following `after_run`.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(example = serde_json::json!({ "command": ["./collect.sh", "{{ model.id }}"] }))]
    pub after_cell: OneOrMany<Hook>,
}

impl Hooks {
    /// Whether there are no hooks.
    pub fn is_empty(&self) -> bool {
        HookPoint::ALL.into_iter().all(|point| self.at(point).is_empty())
    }

    /// The hooks of one point, in order.
    pub fn at(&self, point: HookPoint) -> &[Hook] {
        let Hooks { before_cell, before_run, after_run, after_cell } = self;
        let hooks = match point {
            HookPoint::BeforeCell => before_cell,
            HookPoint::BeforeRun => before_run,
            HookPoint::AfterRun => after_run,
            HookPoint::AfterCell => after_cell,
        };
        &hooks.0
    }
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum HookPoint {
    /// Before the first run of a cell in an invocation.
    BeforeCell,
    /// Before every run.
    BeforeRun,
    /// After every run.
    AfterRun,
    /// After the last run of a cell in an invocation.
    AfterCell,
}

impl HookPoint {
    /// All points, in execution order.
    pub const ALL: [HookPoint; 4] =
        [HookPoint::BeforeCell, HookPoint::BeforeRun, HookPoint::AfterRun, HookPoint::AfterCell];

    /// The name in plans and records.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it happens once per cell, regardless of the number of runs.
    pub fn is_of_cell(self) -> bool {
        matches!(self, HookPoint::BeforeCell | HookPoint::AfterCell)
    }

    /// Whether it precedes the measurement.
    pub fn is_before(self) -> bool {
        matches!(self, HookPoint::BeforeCell | HookPoint::BeforeRun)
    }
}

/// A request to the endpoint's server, or a command on this host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// Method and path, from the server's root, sent with the endpoint's key and headers: `POST
    /// /reset_prefix_cache`. A 2xx response is a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Z]+ /|\{\{"), example = "POST /reset_prefix_cache")]
    pub request: Option<String>,
    /// The program and its arguments, one element each, without a shell. It runs in the plan's folder,
    /// and exit code 0 is a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), example = serde_json::json!(["./collect.sh", "{{ model.id }}"]))]
    pub command: Option<Vec<String>>,
    /// Time limit; when it expires, the hook is given up, and a command is killed with its process
    /// group. Default 60s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "60s"), example = "5m")]
    pub within: Option<Nanos>,
    /// The effect of a failure: `end` fails the attempt, `note` makes the run suspect. Default: end
    /// before a run, note after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"note")]
    pub on_failure: Option<OnFailure>,
    /// Whether the hook is part of a run's identity. Default: true before a run, false after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = false)]
    pub hash: Option<bool>,
}

/// The effect of a failed hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The attempt fails, and none of it is committed.
    End,
    /// The run is committed and suspect: `hook_failed`.
    Note,
}

/// The action of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookAction {
    /// A request: `METHOD /path`.
    Request(String),
    /// A program and its arguments.
    Command(Vec<String>),
}

impl fmt::Display for HookAction {
    /// Formats it as a user would type it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HookAction::Request(request) => f.write_str(request),
            HookAction::Command(command) => {
                let parts: Vec<_> = command.iter().map(|part| quoted(part)).collect();
                f.write_str(&parts.join(" "))
            }
        }
    }
}

impl Hook {
    /// Default time limit of a hook.
    pub const WITHIN: Nanos = Nanos::from_secs(60);

    /// The action as written; `None` if the hook has neither or both.
    pub fn action(&self) -> Option<HookAction> {
        match (&self.request, &self.command) {
            (Some(request), None) => Some(HookAction::Request(request.clone())),
            (None, Some(command)) => Some(HookAction::Command(command.clone())),
            _ => None,
        }
    }

    /// The time limit of the hook.
    pub fn within(&self) -> Nanos {
        self.within.unwrap_or(Hook::WITHIN)
    }

    /// The effect of a failure at this point.
    pub fn on_failure(&self, point: HookPoint) -> OnFailure {
        let default = if point.is_before() { OnFailure::End } else { OnFailure::Note };
        self.on_failure.unwrap_or(default)
    }

    /// Whether the hook is part of a run's identity.
    pub fn is_hashed(&self, point: HookPoint) -> bool {
        self.hash.unwrap_or(point.is_before())
    }

    /// Every text that may contain a template, each with its path from the hook.
    pub(crate) fn texts(&self) -> Vec<(Vec<Step>, &str)> {
        let request = self.request.iter().map(|text| (vec![Step::from("request")], text.as_str()));
        let command = self.command.iter().flatten().enumerate();
        request.chain(command.map(|(index, text)| (vec!["command".into(), index.into()], text.as_str()))).collect()
    }
}

impl HookAction {
    /// The action in its hashed form: a program is given by its base name, because its location is
    /// specific to this host.
    pub(crate) fn hashed(&self) -> HookAction {
        match self {
            HookAction::Request(request) => HookAction::Request(request.clone()),
            HookAction::Command(command) => {
                let mut command = command.clone();
                if let Some(program) = command.first_mut() {
                    *program = program.rsplit('/').next().unwrap_or(program).to_owned();
                }
                HookAction::Command(command)
            }
        }
    }
}

/// Method and path of a request, if it has the form `METHOD /path`.
pub fn method_and_path(request: &str) -> Option<(&str, &str)> {
    let (method, path) = request.trim().split_once(' ')?;
    let path = path.trim_start();
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    (is_method && path.starts_with('/')).then_some((method, path))
}

/// State of a server to reset before every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Reset {
    /// The prefix cache, by the engine's own request (vLLM, SGLang).
    PrefixCache,
    /// Everything: a launched server is stopped and started again.
    Restart,
}

impl Reset {
    /// The name in plans and records.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
