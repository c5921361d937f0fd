//! Loops of a script that only wait for a server.

use super::variable::assignment;

/// Control words of a shell, which run nothing themselves.
pub(super) const STEERING: [&str; 16] =
    ["if", "then", "else", "elif", "fi", "case", "esac", "while", "until", "do", "{", "}", "function", "!", "[[", "["];
/// Programs that check a server.
const ASKING: [&str; 6] = ["curl", "wget", "nc", "grep", "lsof", "ss"];
/// Programs in a loop that waits for a server.
const WAITING: [&str; 24] = [
    "sleep", "echo", "printf", "break", "continue", "exit", "curl", "wget", "nc", "grep", "kill", "date", "true", ":",
    "tail", "docker", "lsof", "ss", "cat", "let", "test", "[", "[[", "((",
];

/// Whether a loop only waits for a server, that is, it checks a server and measures nothing. This is
/// judged by its condition and body.
pub(super) fn is_waiting(all: &[&str]) -> bool {
    let is_known = |raw: &&str| {
        let word = raw.split_whitespace().find(|word| !STEERING[..14].contains(word)).unwrap_or_default();
        word.is_empty() || assignment(word).is_some() || word.starts_with('(') || WAITING.contains(&word)
    };
    let asks = |raw: &&str| raw.split_whitespace().any(|word| ASKING.contains(&word));
    all.iter().all(is_known) && all.iter().any(asks)
}
