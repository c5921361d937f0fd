//! Checks of references to secrets: files outside the plan's folder, and commands that print tokens.

use std::path::{Component, Path};

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::text::secret::{SecretRef, mount_of};
use crate::plan::text::token_command::{CommandLine, TokenCommand};
use crate::plan::text::tree::Step;
use crate::units::Nanos;
use crate::units::secrecy::holds_key;

impl Checker<'_> {
    /// Checks the reference at path `at`.
    pub(super) fn secret(&mut self, at: &[Step], secret: &SecretRef) {
        match secret {
            SecretRef::Env(_) => {}
            SecretRef::File(file) => self.secret_file(at, file),
            SecretRef::Command(command) => self.token_command(at, command),
        }
    }

    /// Checks the reference at path `at` of a variable, which a launched server receives once, at its start.
    pub(super) fn lasting_secret(&mut self, at: &[Step], secret: &SecretRef) {
        self.secret(at, secret);
        if secret.command().is_some() {
            let message = "a launched server receives its variables at its start, so a token cannot be renewed there";
            let remedy = "use env:NAME or file:PATH here; token commands are for `api_key` and `headers`";
            self.report(at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }

    /// Reports a file that is neither in the plan's folder nor a mounted secret.
    fn secret_file(&mut self, at: &[Step], file: &str) {
        let is_inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        let is_allowed = Path::new(file).components().all(is_inside) || mount_of(file).is_some() || self.allow_outside;
        if !is_allowed {
            let message = format!("`{file}` is outside the plan's folder");
            let remedy = "move the file to the plan's folder and list it in .gitignore, use env:NAME, mount it below \
                          /run/secrets or /var/run/secrets, or allow it with --allow-outside";
            self.report(at, Diagnostic::new(Code::PathOutside, message).remedy(remedy));
        }
    }

    fn token_command(&mut self, at: &[Step], TokenCommand { command: CommandLine(command), valid }: &TokenCommand) {
        let command_at = [at, &steps!["command"]].concat();
        match &command[..] {
            [] => self.no_program(&command_at),
            [program, ..] if program.trim().is_empty() => self.no_program(&command_at),
            [line] if line.contains(char::is_whitespace) => {
                let message = format!("`{line}` is one element, so it is the name of the program, with its blanks");
                let list = if holds_key(line) { "[PROGRAM, ARGUMENT]".to_owned() } else { CommandLine::list_of(line) };
                let remedy = format!("write one element for each word: command: {list}");
                self.report(&command_at, Diagnostic::new(Code::WrongValue, message).remedy(remedy));
            }
            _ => {}
        }
        for (index, _) in command.iter().enumerate().filter(|(_, word)| holds_key(word)) {
            let message = format!("argument {index} of the command looks like a secret and would end up in results");
            let remedy = "let the program read the secret from an environment variable, which it inherits";
            let at = [&command_at[..], &steps![index]].concat();
            self.report(&at, Diagnostic::new(Code::Secret, message).remedy(remedy));
        }
        if *valid == Nanos::ZERO {
            let message = "`valid` must be above 0s: with 0s, no token could ever be used";
            let remedy = "write how long a token may be used after it was printed, like valid: 50m";
            let at = [at, &steps!["valid"]].concat();
            self.report(&at, Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
        }
    }

    fn no_program(&mut self, at: &[Step]) {
        let message = "the token command has no program: `command` is empty";
        let remedy = "write the program and its arguments, like command: [gcloud, auth, print-access-token]";
        self.empty(at, message, remedy);
    }
}
