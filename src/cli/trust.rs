//! What a plan makes sweepline execute on this machine, and to which servers it sends secrets. A plan may come from
//! another person, so this is shown before anything happens, and `--no-exec` refuses plans with commands.

use std::collections::BTreeSet;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::expand::resolve::workers;
use crate::expand::{Pending, PlannedRun, Waits};
use crate::plan::{Endpoint, HookPoint, Plan, SecretRef, TextOrSecret};
use crate::report::format::plain;
use crate::units::text::{counted, quoted};

/// Permission to execute the commands of a plan.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct NoExec {
    /// Refuse a plan that executes commands on this machine, and list them: those that start or stop servers or
    /// workers, hooks, and commands that print secrets
    #[arg(long)]
    pub no_exec: bool,
}

impl NoExec {
    /// Fails if there are `commands`, although the user does not permit to execute any.
    pub(crate) fn check(self, commands: impl FnOnce() -> Result<Vec<PlanCommand>, Failure>) -> Result<(), Failure> {
        let commands = if self.no_exec { commands()? } else { Vec::new() };
        if commands.is_empty() {
            return Ok(());
        }
        let listed: Vec<String> = commands.iter().map(|command| plain(&command.words())).collect();
        Err(Failure::Usage(format!(
            "--no-exec: {} would be executed on this machine: {}; read them, and omit --no-exec to permit them",
            counted(commands.len(), "command"),
            listed.join("; ")
        )))
    }
}

/// A command that is executed on this machine because the plan contains it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct PlanCommand {
    /// The name of the endpoint; null for commands that start workers.
    pub endpoint: Option<String>,
    /// The purpose: launch, stop, workers, secret, or the point of a hook (before_cell, before_run, after_run,
    /// after_cell).
    pub purpose: &'static str,
    /// The command as in the plan, quoted for a shell.
    pub command: String,
}

impl PlanCommand {
    pub(crate) fn new(endpoint: &str, purpose: &'static str, command: &[String]) -> PlanCommand {
        PlanCommand { endpoint: Some(endpoint.to_owned()), purpose, command: for_shell(command) }
    }

    /// Whether the command starts or stops processes that the load needs.
    pub(crate) fn is_of_processes(&self) -> bool {
        ["launch", "stop", "workers"].contains(&self.purpose)
    }

    /// Describes the command in a few words.
    pub(crate) fn words(&self) -> String {
        let PlanCommand { endpoint, purpose, command } = self;
        let is_hook = HookPoint::ALL.iter().any(|point| point.name() == *purpose);
        let hook = if is_hook { " hook" } else { "" };
        let of = endpoint.as_ref().map(|endpoint| format!(" of {endpoint}")).unwrap_or_default();
        format!("`{command}` ({purpose}{hook}{of})")
    }
}

/// A secret that the plan sends to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct SentSecret {
    /// The name of the endpoint.
    pub endpoint: String,
    /// The reference in the plan: env:NAME, file:PATH, or the command that prints the secret.
    pub secret: String,
    /// What the secret is used as: api_key, proxy, `header NAME` or `variable NAME`.
    pub used_as: String,
    /// Where the secret goes: host and port, or what else receives it.
    pub to: String,
}

impl SentSecret {
    /// Describes where the secret goes.
    pub(crate) fn words(&self) -> String {
        let SentSecret { endpoint, secret, used_as, to } = self;
        format!("{secret} to {to} ({used_as} of {endpoint})")
    }
}

/// The commands that a plan executes, and the secrets that it sends.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    /// The commands, ordered by endpoint as in the plan; those that start workers come last.
    pub commands: Vec<PlanCommand>,
    /// The secrets, ordered by endpoint as in the plan.
    pub secrets: Vec<SentSecret>,
}

/// The parts of a plan that some runs use.
#[derive(Default)]
struct Used<'a> {
    endpoints: BTreeSet<String>,
    sweeps: BTreeSet<&'a str>,
    /// The endpoint, the name and the reference of each header with a secret.
    headers: BTreeSet<(&'a str, String, &'a SecretRef)>,
}

impl Trust {
    /// Returns what the runs do, and what the cells do that have no runs yet.
    pub(crate) fn of<'a>(plan: &'a Plan, runs: impl Iterator<Item = &'a PlannedRun>, waiting: &'a [Pending]) -> Trust {
        let used = Used::of(plan, runs, waiting);
        let mut trust = Trust::default();
        for (name, endpoint) in plan.endpoints.iter().filter(|(name, _)| used.endpoints.contains(*name)) {
            trust.add(name, endpoint, &used);
        }
        for (_, sweep) in plan.sweeps.iter().filter(|(name, _)| used.sweeps.contains(name.as_str())) {
            let several = workers(plan, sweep).filter(|workers| workers.count > 1);
            for command in several.iter().flat_map(|workers| &workers.start) {
                let command = PlanCommand { endpoint: None, purpose: "workers", command: command.clone() };
                trust.add_command(command);
            }
        }
        trust
    }

    /// Returns one line for each command and each secret.
    pub(crate) fn lines(&self) -> Vec<String> {
        let commands = self.commands.iter().map(|command| format!("  executes {}", command.words()));
        let secrets = self.secrets.iter().map(|secret| format!("  sends {}", secret.words()));
        commands.chain(secrets).map(|line| plain(&line)).collect()
    }

    fn add(&mut self, name: &str, endpoint: &Endpoint, used: &Used) {
        if let Some(launch) = &endpoint.launch {
            self.add_command(PlanCommand::new(name, "launch", &launch.command));
            let stop = launch.stop.as_ref().and_then(|stop| stop.command.as_ref());
            stop.iter().for_each(|stop| self.add_command(PlanCommand::new(name, "stop", stop)));
        }
        for point in HookPoint::ALL {
            let commands = endpoint.hooks.at(point).iter().filter_map(|hook| hook.command.as_ref());
            commands.for_each(|command| self.add_command(PlanCommand::new(name, point.name(), command)));
        }
        let to = destination(endpoint);
        if let Some(reference) = &endpoint.api_key {
            self.add_secret(name, reference, "api_key".to_owned(), &to);
        }
        for (_, header, reference) in used.headers.iter().filter(|(of, ..)| *of == name) {
            self.add_secret(name, reference, format!("header {header}"), &to);
        }
        if let Some(TextOrSecret::Secret(reference)) = &endpoint.proxy {
            self.add_secret(name, reference, "proxy".to_owned(), "the proxy that it names");
        }
        let variables = endpoint.launch.iter().flat_map(|launch| launch.env.iter().chain(&launch.host_env));
        for (variable, value) in variables {
            if let TextOrSecret::Secret(reference) = value {
                self.add_secret(name, reference, format!("variable {variable}"), "the launched server");
            }
        }
    }

    fn add_command(&mut self, command: PlanCommand) {
        if !self.commands.contains(&command) {
            self.commands.push(command);
        }
    }

    fn add_secret(&mut self, endpoint: &str, reference: &SecretRef, used_as: String, to: &str) {
        if let Some(command) = reference.command() {
            self.add_command(PlanCommand::new(endpoint, "secret", &command.command.0));
        }
        let secret = match reference {
            SecretRef::Env(_) | SecretRef::File(_) => reference.to_string(),
            SecretRef::Command(command) => format!("the output of `{command}`"),
        };
        let sent = SentSecret { endpoint: endpoint.to_owned(), secret, used_as, to: to.to_owned() };
        if !self.secrets.contains(&sent) {
            self.secrets.push(sent);
        }
    }
}

impl<'a> Used<'a> {
    fn of(plan: &'a Plan, runs: impl Iterator<Item = &'a PlannedRun>, waiting: &'a [Pending]) -> Used<'a> {
        let mut used = Used::default();
        for PlannedRun { spec, sweep, .. } in runs {
            let name = spec.endpoint.name.as_str();
            if !used.endpoints.contains(name) {
                used.endpoints.insert(name.to_owned());
            }
            used.sweeps.insert(&**sweep);
            let shapings = spec.mix.iter().map(|class| &class.shaping).chain([&spec.shaping]);
            let headers = shapings.flat_map(|shaping| shaping.fields.headers.iter());
            used.headers.extend(headers.filter_map(|(header, value)| Some((name, header.to_owned(), value.secret()?))));
        }
        let may_run = |cell: &&Pending| matches!(cell.state, Waits::Pending | Waits::Blocked | Waits::Undecided);
        for cell in waiting.iter().filter(may_run) {
            used.sweeps.insert(&*cell.sweep);
            let axis = cell.cell.get("endpoint").map(ToString::to_string);
            let Some((name, _)) = axis.and_then(|axis| plan.endpoints.get_key_value(&axis)) else { continue };
            used.endpoints.insert(name.clone());
            // The cell has no requests yet, so the headers of all scenarios are taken.
            let headers = plan.scenarios.values().flat_map(|scenario| &scenario.headers);
            used.headers.extend(secret_headers(name, headers));
        }
        for (name, endpoint) in plan.endpoints.iter().filter(|(name, _)| used.endpoints.contains(*name)) {
            used.headers.extend(secret_headers(name, &endpoint.headers));
        }
        used
    }
}

/// Returns the headers with secrets among the headers that requests to an endpoint carry.
fn secret_headers<'a>(
    endpoint: &'a str,
    headers: impl IntoIterator<Item = (&'a String, &'a TextOrSecret)>,
) -> Vec<(&'a str, String, &'a SecretRef)> {
    let mut found = Vec::new();
    for (name, value) in headers {
        if let TextOrSecret::Secret(reference) = value {
            found.push((endpoint, name.to_ascii_lowercase(), reference));
        }
    }
    found
}

/// Returns where the requests of an endpoint go.
fn destination(endpoint: &Endpoint) -> String {
    let Some(url) = endpoint.url.as_deref().filter(|_| endpoint.is_served_elsewhere()) else {
        return if endpoint.launch.is_some() { "the launched server" } else { "the embedded mock" }.to_owned();
    };
    let host = || {
        let url = reqwest::Url::parse(url).ok()?;
        Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
    };
    let server = match &endpoint.socket {
        Some(socket) => format!("the socket {socket}"),
        None => host().unwrap_or_else(|| url.to_owned()),
    };
    match &endpoint.proxy {
        Some(TextOrSecret::Text(proxy)) => format!("{server} through the proxy {proxy}"),
        Some(TextOrSecret::Secret(_)) => format!("{server} through a proxy"),
        None => server,
    }
}

/// Quotes a command for a shell.
fn for_shell(command: &[String]) -> String {
    command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}
