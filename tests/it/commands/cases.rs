//! Cases: command lines that are run with and without a flag, to show what the flag does.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use lab::{Ended, Lab};

/// A command line, and what it does. Unless `flag` is empty, the line is also run without the flag, and the
/// effect must then be absent.
pub struct Case {
    /// The command line without the flag. Words with spaces are in double quotes. A name in braces stands for
    /// a value of [`Prepared::values`].
    pub line: &'static str,
    /// The flag, with its value.
    pub flag: &'static str,
    /// The exit code with the flag.
    pub code: i32,
    pub effect: Effect,
}

#[derive(Debug, Clone, Copy)]
pub enum Effect {
    /// This text is on stdout or stderr; or on the page, if the command serves one.
    Prints(&'static str),
    /// This text is on neither of them.
    Omits(&'static str),
    /// A file contains this text, or a folder exists. `*` is any folder.
    Writes(&'static str, &'static str),
    /// The program ends with the exit code of the case.
    Ends,
}

/// A folder in which cases are run, each in its own copy.
pub struct Prepared {
    pub lab: Lab,
    /// Creates the folder of a copy.
    pub new_lab: fn() -> Lab,
    /// Values for the names in braces. `{lab}` is the folder of the copy.
    pub values: Vec<(&'static str, String)>,
    /// A command line that is run first in each copy.
    pub first: Option<&'static str>,
    /// A folder of the copy that `PATH` begins with.
    pub programs: Option<&'static str>,
}

/// What a command printed, and the folder in which it was run.
struct Outcome {
    ended: Ended,
    lab: Lab,
}

/// Returns a case that succeeds.
pub const fn case(line: &'static str, flag: &'static str, effect: Effect) -> Case {
    Case { line, flag, code: 0, effect }
}

impl Case {
    /// Returns the case with another exit code.
    pub const fn ends(mut self, code: i32) -> Case {
        self.code = code;
        self
    }
}

/// Whether a file contains this text, or a folder exists. `*` in the path is any folder.
fn contains(folder: &Path, path: &str, text: &str) -> bool {
    if let Some((parent, rest)) = path.split_once("/*/") {
        let mut folders = std::fs::read_dir(folder.join(parent)).into_iter().flatten();
        return folders.any(|entry| contains(&entry.unwrap().path(), rest, text));
    }
    let path = folder.join(path);
    match std::fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).contains(text),
        Err(_) => path.is_dir(),
    }
}

/// Returns the page at an address.
pub fn page(address: &str) -> std::io::Result<String> {
    let rest = address.strip_prefix("http://").unwrap_or_else(|| panic!("not an address: {address:?}"));
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host)?;
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}

/// Runs a command that serves pages until it is killed, and returns its first line, an address, and the page there.
fn served(command: &mut Command) -> Ended {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let page = page(line.trim());
    child.kill().unwrap();
    child.wait().unwrap();
    Ended { code: Some(0), stdout: line + &page.unwrap(), stderr: String::new(), log: String::new() }
}

/// Splits a command line at spaces that are not between double quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('"').enumerate() {
        if at % 2 == 0 {
            words.extend(part.split_whitespace().map(str::to_owned));
        } else {
            words.push(part.to_owned());
        }
    }
    words
}

impl Prepared {
    pub fn new(lab: Lab) -> Prepared {
        Prepared { lab, new_lab: Lab::new, values: Vec::new(), first: None, programs: None }
    }

    /// Replaces the names in braces.
    fn fill(&self, text: &str, lab: &Lab) -> String {
        let mut text = text.replace("{lab}", lab.path().to_str().unwrap());
        for (name, value) in &self.values {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }

    /// Returns the command for a line.
    fn command(&self, line: &str, lab: &Lab) -> Command {
        let words = words(&self.fill(line, lab));
        let args: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = lab.command(&args);
        if let Some(folder) = self.programs {
            let path = std::env::var("PATH").unwrap();
            command.env("PATH", format!("{}:{path}", lab.path().join(folder).display()));
        }
        command
    }

    /// Runs a command line in a copy of the folder.
    fn run(&self, line: &str) -> Outcome {
        let lab = (self.new_lab)();
        copy(self.lab.path(), lab.path());
        if let Some(first) = self.first {
            let status = self.command(first, &lab).stdout(Stdio::null()).status().unwrap();
            assert!(status.success(), "{first}");
        }
        let mut command = self.command(line, &lab);
        let serves = line.contains("--watch");
        let ended = if serves { served(&mut command) } else { Ended::from(command.output().unwrap()) };
        Outcome { ended, lab }
    }

    /// Whether a command had this effect.
    fn is_seen(&self, effect: Effect, code: i32, outcome: &Outcome) -> bool {
        let Ended { stdout, stderr, .. } = &outcome.ended;
        let prints = |text: &str| {
            let text = self.fill(text, &outcome.lab);
            stdout.contains(&text) || stderr.contains(&text)
        };
        match effect {
            Effect::Prints(text) => prints(text),
            Effect::Omits(text) => !prints(text),
            Effect::Writes(path, text) => contains(outcome.lab.path(), path, text),
            Effect::Ends => outcome.ended.code == Some(code),
        }
    }

    /// Runs cases and asserts that each of them has its effect, and only with its flag.
    pub fn show(&self, cases: &[Case]) {
        let mut without_flag: BTreeMap<&str, Outcome> = BTreeMap::new();
        let mut wrong = Vec::new();
        for case in cases {
            let line = with_flag(case.line, case.flag);
            let outcome = self.run(&line);
            let output = || format!("{}{}", outcome.ended.stdout, outcome.ended.stderr);
            if outcome.ended.code != Some(case.code) {
                wrong.push(format!("`{line}` ends with {:?}, not {}:\n{}", outcome.ended.code, case.code, output()));
            }
            if !self.is_seen(case.effect, case.code, &outcome) {
                wrong.push(format!("`{line}` does not show {:?}:\n{}", case.effect, output()));
            }
            if case.flag.is_empty() {
                continue;
            }
            let plain = without_flag.entry(case.line).or_insert_with(|| self.run(case.line));
            if self.is_seen(case.effect, case.code, plain) {
                wrong.push(format!("`{}` shows {:?} without {}", case.line, case.effect, case.flag));
            }
        }
        assert!(wrong.is_empty(), "{} cases are wrong:\n{}", wrong.len(), wrong.join("\n\n"));
    }
}

/// Returns a command line with a flag at its end, but before `--`, which ends the flags.
fn with_flag(line: &str, flag: &str) -> String {
    match line.split_once(" -- ") {
        Some((line, rest)) => format!("{line} {flag} -- {rest}"),
        None => format!("{line} {flag}"),
    }
}

/// Copies the files of a folder, with their permissions. The files of committed runs are never changed, so they are linked.
fn copy(from: &Path, to: &Path) {
    let is_of_run = from.parent().is_some_and(|parent| parent.ends_with("runs"));
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            std::fs::create_dir_all(&to).unwrap();
            copy(&from, &to);
        } else if !is_of_run || std::fs::hard_link(&from, &to).is_err() {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}
