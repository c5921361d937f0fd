//! The tokens that the plan's commands have printed in this process. A token is kept until it is no longer valid
//! or the server rejects it, and is then printed again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::engine::{Secret, Target};
use crate::plan::TokenCommand;
use crate::server::{TokenError, print_token};
use crate::units::{Nanos, patience};

/// Time limit of a token command, as a multiple of [`patience`].
const PATIENCE: u64 = 3;

/// The tokens of this process. They are shared by all sweeps and endpoints, because several endpoints may use the
/// same command.
pub(super) static TOKENS: LazyLock<Tokens> = LazyLock::new(Tokens::default);

/// A command and the folder in which it runs.
type Key = (Vec<String>, PathBuf);

/// Tokens, and the values that must not be shown.
#[derive(Default)]
pub(super) struct Tokens {
    /// The last token of each command. A command's own lock is held while it runs, so that it never runs twice
    /// at the same time.
    slots: Mutex<HashMap<Key, Arc<Mutex<Option<Held>>>>>,
    /// Every token that was printed, and every secret that has changed.
    known: Mutex<Vec<Secret>>,
}

/// The last token of a command.
struct Held {
    token: Secret,
    /// When the command that printed it was started.
    since: Instant,
    /// Whether the server has rejected it.
    is_rejected: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tokens {
    /// Returns the token of a command; runs the command in `folder` if there is no token yet, or it is no longer
    /// valid, or it was rejected.
    pub(super) fn get(
        &self,
        TokenCommand { command, valid }: &TokenCommand,
        folder: &Path,
        stop: &watch::Receiver<bool>,
    ) -> Result<Secret, TokenError> {
        let slot = Arc::clone(locked(&self.slots).entry((command.0.clone(), folder.to_owned())).or_default());
        let mut held = locked(&slot);
        let is_usable = |held: &&Held| !held.is_rejected && held.since.elapsed() < Duration::from(*valid);
        if let Some(held) = held.as_ref().filter(is_usable) {
            return Ok(held.token.clone());
        }
        let since = Instant::now();
        let within = Nanos(patience().0.saturating_mul(PATIENCE));
        let known: Vec<String> = self.known().iter().map(|secret| secret.reveal().to_owned()).collect();
        let token = Secret::new(print_token(&command.0, folder, within, &known, stop)?);
        self.remember(&token);
        *held = Some(Held { token: token.clone(), since, is_rejected: false });
        Ok(token)
    }

    /// Records that the server has rejected the tokens of a target, so that they are not used again. Returns
    /// whether one of them was printed before `since`.
    pub(super) fn reject(&self, target: &Target, since: Instant) -> bool {
        let rejected: Vec<&Secret> = target.api_key.iter().chain(target.secrets.values()).collect();
        let slots: Vec<_> = locked(&self.slots).values().cloned().collect();
        let mut is_older = false;
        for slot in slots {
            // If a command is running, its token is being replaced.
            let Ok(mut held) = slot.try_lock() else { continue };
            if let Some(held) = held.as_mut().filter(|held| rejected.contains(&&held.token)) {
                held.is_rejected = true;
                is_older |= held.since < since;
            }
        }
        is_older
    }

    /// Records a secret that must not be shown although it may be used no longer.
    pub(super) fn remember(&self, secret: &Secret) {
        let mut known = locked(&self.known);
        if !known.contains(secret) {
            known.push(secret.clone());
        }
    }

    /// Returns every token that was printed, and every secret that has changed.
    pub(super) fn known(&self) -> Vec<Secret> {
        locked(&self.known).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a command that prints another token each time.
    fn command(folder: &Path, valid: Nanos) -> TokenCommand {
        let count = folder.join("count");
        let script = format!("echo x >> {0}; echo token-$(wc -l < {0})", count.display());
        let value = serde_json::json!({ "command": ["sh", "-c", script], "valid": valid.to_string() });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_token_is_printed_again_when_it_is_no_longer_valid_or_was_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let (_sender, stop) = watch::channel(false);
        let tokens = Tokens::default();
        let get = |valid| tokens.get(&command(dir.path(), valid), dir.path(), &stop).unwrap();
        let (long, short) = (Nanos::from_secs(3600), Nanos(1));
        let first = get(long);
        assert_eq!((first.reveal(), get(long).reveal()), ("token-1", "token-1"));
        assert_eq!(get(short).reveal(), "token-2");
        let mut target = Target::parse("http://127.0.0.1:1/v1").unwrap();
        target.api_key = Some(first);
        assert!(!tokens.reject(&target, Instant::now()), "it was replaced before");
        assert_eq!(get(long).reveal(), "token-2");
        target.api_key = Some(get(long));
        assert!(tokens.reject(&target, Instant::now()));
        assert_eq!(get(long).reveal(), "token-3");
        let known: Vec<String> = tokens.known().iter().map(|secret| secret.reveal().to_owned()).collect();
        assert_eq!(known, ["token-1", "token-2", "token-3"]);
    }
}
