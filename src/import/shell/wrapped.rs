//! Reads the words before a command: `env` and containers, which set variables, and shells, which run a
//! command that is given as a text.

use super::variable::assignment;

/// Programs that do not change what the command after them measures, such as `nohup`, `sudo` and `time`.
const LET_GO: [&str; 6] = ["nohup", "setsid", "exec", "command", "sudo", "time"];
/// Programs that run a command in a container.
const CONTAINERS: [&str; 3] = ["docker", "podman", "nerdctl"];
/// Shells, which take a command as a text after `-c`.
const SHELLS: [&str; 5] = ["bash", "sh", "zsh", "dash", "ksh"];
/// Programs before a command that the plan does not need; for each, whether the plan loses a setting of the
/// measurement, and the reason that is listed.
const KNOWN: [(&str, bool, &str); 14] = [
    ("ssh", true, ON_HOST),
    ("kubectl", true, ON_HOST),
    ("docker", false, IN_CONTAINER),
    ("podman", false, IN_CONTAINER),
    ("nerdctl", false, IN_CONTAINER),
    ("apptainer", false, IN_CONTAINER),
    ("singularity", false, IN_CONTAINER),
    ("numactl", false, CORES),
    ("taskset", false, CORES),
    ("chrt", false, CORES),
    ("nice", false, CORES),
    ("srun", false, "`sweepline run` runs where you start it: put `srun` before it"),
    ("timeout", false, "a run ends after its last phase"),
    ("stdbuf", false, "output is written immediately"),
];
const ON_HOST: &str = "the script runs the benchmark on another host: write the server's address, as seen from here, \
                       into `url` of the \
                       endpoint, or run sweepline on that host";
const IN_CONTAINER: &str = "sweepline sends the requests itself, without a container";
const CORES: &str = "`sweepline run` is not pinned: put this before it if the client's cores matter";

/// Returns the name of a program, without its folder.
fn file(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

/// Returns the programs before a benchmark that the plan does not need: the listed words, whether they have
/// no counterpart, and why.
pub(crate) fn wrappers(words: &[String]) -> Vec<(String, bool, &'static str)> {
    let known = |word: &String| KNOWN.iter().find(|(name, ..)| *name == file(word));
    let mut found: Vec<(String, bool, &'static str)> = Vec::new();
    for (name, is_lost, why) in words.iter().filter_map(known) {
        let what = format!("{name} before the command");
        if !found.iter().any(|(known, ..)| *known == what) {
            found.push((what, *is_lost, why));
        }
    }
    found
}

/// Returns the words without a preceding `env NAME=VALUE …`, and the variables that `env` sets.
pub(super) fn without_env(mut words: Vec<String>) -> (Vec<String>, Vec<(String, String)>) {
    let begin = words.iter().take_while(|word| LET_GO.contains(&file(word))).count();
    if words.get(begin).is_none_or(|word| file(word) != "env") {
        return (words, Vec::new());
    }
    let mut end = begin + 1;
    let mut set = Vec::new();
    while let Some(word) = words.get(end) {
        match (assignment(word), word.as_str()) {
            (Some((name, value)), _) => set.push((name.to_owned(), value.to_owned())),
            (None, "-u" | "--unset" | "-C" | "--chdir") => end += 1,
            (None, option) if option.starts_with('-') => {}
            (None, _) => break,
        }
        end += 1;
    }
    if end >= words.len() {
        return (words, Vec::new());
    }
    words.drain(begin..end);
    (words, set)
}

/// Returns the variables of a container: `-e NAME=VALUE`. Without a value (`None`), the container uses the
/// value in the outer environment.
pub(super) fn of_container(words: &[String]) -> Vec<(String, Option<String>)> {
    if !words.iter().take(LET_GO.len()).any(|word| CONTAINERS.contains(&file(word))) {
        return Vec::new();
    }
    let mut set = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let said = match word.as_str() {
            "-e" | "--env" => words.get(at + 1).map(String::as_str),
            word => word.strip_prefix("--env=").or_else(|| word.strip_prefix("-e").filter(|rest| rest.contains('='))),
        };
        let Some(said) = said else { continue };
        match assignment(said) {
            Some((name, value)) => set.push((name.to_owned(), Some(value.to_owned()))),
            None => set.push((said.to_owned(), None)),
        }
    }
    set
}

/// Returns the text argument of a shell in `bash -c '…'` and `ssh HOST '…'`, and the words before the shell;
/// `None` for other commands.
pub(super) fn inside(words: &[String]) -> Option<(&[String], String)> {
    let shell = words.iter().position(|word| SHELLS.contains(&file(word)));
    if let Some(at) = shell.filter(|at| *at == 0 || wraps(&words[..*at])) {
        let options = words[at + 1..].iter().take_while(|word| word.starts_with('-') && !word.ends_with('c')).count();
        let takes = words.get(at + 1 + options).is_some_and(|word| word.starts_with('-') && !word.starts_with("--"));
        if takes && let Some(text) = words.get(at + 2 + options) {
            return Some((&words[..at], text.clone()));
        }
    }
    if words.first().is_none_or(|word| file(word) != "ssh") {
        return None;
    }
    let mut at = 1;
    while let Some(option) = words.get(at).filter(|word| word.starts_with('-')) {
        let takes = ["-p", "-i", "-l", "-o", "-F", "-J", "-L", "-R", "-D"].contains(&option.as_str());
        at += 1 + usize::from(takes);
    }
    let text = words.get(at + 1..).filter(|text| text.iter().any(|word| word.contains(char::is_whitespace)))?;
    Some((&words[..1], text.join(" ")))
}

/// Whether words begin with a program that runs the words after it.
fn wraps(words: &[String]) -> bool {
    let first = words.first().map(|word| file(word)).unwrap_or_default();
    LET_GO.contains(&first) || first == "env" || KNOWN.iter().any(|(name, ..)| *name == first)
}
