//! The commands that print tokens for the runs to do.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::super::workspace::Workspace;
use crate::plan::{Endpoint, SecretRef, TokenCommand};
use crate::sweep::secrets_of;
use crate::units::Nanos;

/// A command that prints a token.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TokenCommandUse {
    /// The name of the endpoint.
    pub endpoint: String,
    /// The command, quoted for a shell.
    pub command: String,
    /// How long a token is used after it was printed.
    pub valid: Nanos,
}

impl TokenCommandUse {
    /// Describes the command in one line.
    pub(super) fn words(&self) -> String {
        let TokenCommandUse { endpoint, command, valid } = self;
        format!("{endpoint}: `{command}` prints a token before a run, unless the last one is younger than {valid}")
    }
}

/// Returns the token commands of the runs at these positions of the expansion, ordered by endpoint as in the plan.
pub(super) fn token_commands(workspace: &Workspace, todo: &HashSet<usize>) -> Vec<TokenCommandUse> {
    let of_endpoint = |(name, endpoint): (&String, &Endpoint)| {
        let specs = todo.iter().map(|at| &workspace.expansion.runs[*at].spec);
        let specs: Vec<_> = specs.filter(|spec| spec.endpoint.name == *name).collect();
        let of_headers = secrets_of(specs.iter().copied());
        let of_key = endpoint.api_key.iter().filter(|_| !specs.is_empty());
        let commands = of_key.chain(&of_headers).filter_map(SecretRef::command);
        let used = |command: &TokenCommand| TokenCommandUse {
            endpoint: name.clone(),
            command: command.to_string(),
            valid: command.valid,
        };
        commands.map(used).collect::<Vec<_>>()
    };
    workspace.plan().endpoints.iter().flat_map(of_endpoint).collect()
}
