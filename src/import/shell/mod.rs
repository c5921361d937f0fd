//! Parses a shell script as far as is needed to list its benchmark commands: continued lines, quotes,
//! comments, assignments, arrays, `for` loops over known values, `if`, `case`, `&&`, `$(( … ))`, `$(seq …)`.
//! The script is only read, never executed. Values that are known only at run time are replaced by their
//! names.

mod arithmetic;
mod branch;
#[cfg(test)]
mod branch_tests;
mod collect;
mod expand;
mod lex;
mod mark;
mod truth;
mod variable;
mod waiting;
mod words;
mod wrapped;

pub(super) use branch::Runs;
pub(super) use mark::{marks, shown, without_mark_names};
pub(super) use wrapped::wrappers;

use super::draft::Listed;
use super::error::ImportError;
use super::secrets::Secrets;
use super::text::is_no_key;
use crate::units::secrecy::names_secret;
use crate::units::text::is_variable;
use branch::Branches;
use collect::collect;
use expand::expand;
use lex::{After, Statement};
use mark::{mark, without_marks};
use truth::{Truth, fits, reads_arguments, truth};
use variable::{Variable, Variables, assignment};
use waiting::{STEERING, is_waiting};
use words::{braces, evaluated, without_documents, without_redirections};

/// Maximum number of commands, with loops unrolled, which is more than any real script of benchmarks has.
const MOST_COMMANDS: usize = 10_000;
/// The maximum depth of nested loops.
const DEEPEST: usize = 16;
/// The reason that is listed for a loop that only waits for a server, which the plan does not need.
const WAITS: &str = "it waits for a server: `ready` of the endpoint does so";

/// One command with its variables replaced.
#[derive(Debug, Clone, Default)]
pub(super) struct Command {
    /// The words of the command, without the assignments before it.
    pub words: Vec<String>,
    /// The line in which the command begins, from 1.
    pub line: usize,
    /// The names of environment variables with a secret that the script sets for the command.
    pub secrets: Vec<String>,
    /// The other environment variables that the script sets for the command, by name.
    pub env: Vec<(String, String)>,
    /// If a shell runs the command from a text, the words before that shell: `ssh`, `docker run …`.
    pub behind: Vec<String>,
    /// Whether the command runs.
    pub runs: Runs,
    /// Whether the command runs in the background (`&`) while the script continues.
    pub is_behind: bool,
}

/// The content of a script.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// The commands in execution order.
    pub commands: Vec<Command>,
    /// The parts that could not be parsed.
    pub listed: Vec<Listed>,
    /// Variables that are set in a branch that may or may not run, each with the line of the condition.
    pub branched: Vec<(String, usize)>,
}

/// A statement, or a loop over statements.
enum Node {
    One(Statement),
    For { line: usize, variable: String, values: String, body: Vec<Node> },
}

/// Reads the commands of a script; its secrets are added to `secrets`.
pub(super) fn read(name: &str, text: &str, secrets: &Secrets) -> Result<Script, ImportError> {
    let text = without_marks(text.trim_start_matches('\u{feff}'));
    let mut statements = without_documents(lex::statements(name, &text)?).into_iter();
    let mut walker = Walker::new(name, secrets);
    let nodes = walker.nodes(&mut statements, None, 0)?;
    walker.walk(&nodes)?;
    Ok(walker.script)
}

/// Returns a command whose words a shell has already split.
pub(super) fn command(words: &[String], secrets: &Secrets) -> Command {
    let words: Vec<String> = words.iter().map(|word| without_marks(word)).collect();
    let own = words.iter().take_while(|word| assignment(word).is_some()).count();
    let mut walker = Walker::new("", secrets);
    let assigned: Vec<(&str, &str)> = words[..own].iter().filter_map(|word| assignment(word)).collect();
    for (name, value) in &assigned {
        walker.assign(name, value);
    }
    collect(&words[own..], secrets);
    let (words, more) = walker.given(words[own..].to_vec());
    let env = plain(&assigned).into_iter().chain(more).collect();
    Command { words, line: 0, secrets: walker.keys, env, ..Command::default() }
}

struct Walker<'a> {
    name: &'a str,
    variables: Variables,
    /// The names of secret variables that have been set so far.
    keys: Vec<String>,
    /// Other variables that have been exported so far.
    exported: Vec<(String, String)>,
    /// The words before each shell around the commands.
    behind: Vec<String>,
    /// The number of shells around the commands.
    depth: usize,
    /// The current branches.
    branches: Branches,
    /// Number of open `{` of functions and groups.
    braces: usize,
    /// Set if the current iteration of a loop has ended early: true for `break`, false for `continue`.
    turn: Option<bool>,
    /// Number of loops that are being processed.
    loops: usize,
    /// Number of statements that have been processed.
    steps: usize,
    script: Script,
    secrets: &'a Secrets,
}

impl<'a> Walker<'a> {
    fn new(name: &'a str, secrets: &'a Secrets) -> Walker<'a> {
        Walker {
            name,
            variables: Variables::new(),
            keys: Vec::new(),
            exported: Vec::new(),
            behind: Vec::new(),
            depth: 0,
            branches: Branches::default(),
            braces: 0,
            turn: None,
            loops: 0,
            steps: 0,
            script: Script::default(),
            secrets,
        }
    }

    /// Parses the nodes up to the end, or up to the `done` of the loop that began in line `inside`.
    fn nodes(
        &mut self,
        statements: &mut std::vec::IntoIter<Statement>,
        inside: Option<usize>,
        depth: usize,
    ) -> Result<Vec<Node>, ImportError> {
        if depth > DEEPEST {
            return Err(self.too_many("nested loops", DEEPEST, inside.unwrap_or(1)));
        }
        let mut nodes = Vec::new();
        while let Some(Statement { line, mut raw, after, is_behind }) = statements.next() {
            while let Some(rest) = raw.strip_prefix("do").filter(|rest| rest.starts_with(char::is_whitespace)) {
                raw = rest.trim_start().to_owned();
            }
            let first = raw.split_whitespace().next().unwrap_or_default();
            match first {
                "done" if inside.is_some() => return Ok(nodes),
                "do" | "done" => {}
                "for" => {
                    let (variable, values) = self.loop_over(&raw, line);
                    let body = self.nodes(statements, Some(line), depth + 1)?;
                    nodes.push(Node::For { line, variable, values, body });
                }
                "while" | "until" if reads_arguments(&raw) => {
                    let why = "it depends on the script's arguments; import reads the script as started without \
                        arguments";
                    self.script.listed.push(Listed::needless(first, why, line));
                    self.nodes(statements, Some(line), depth + 1)?;
                }
                "while" | "until" | "select" => {
                    let body = self.nodes(statements, Some(line), depth + 1)?;
                    if raws(&raw, &body).is_some_and(|raws| is_waiting(&raws)) {
                        self.script.listed.push(Listed::needless(first, WAITS, line));
                    } else {
                        self.list(line, first, "not unrolled: its body is read once");
                        nodes.push(Node::For { line, variable: String::new(), values: "once".to_owned(), body });
                    }
                }
                _ => nodes.push(Node::One(Statement { line, raw, after, is_behind })),
            }
        }
        match inside {
            Some(line) => Err(ImportError::Unclosed { name: self.name.to_owned(), line, what: "the loop".to_owned() }),
            None => Ok(nodes),
        }
    }

    /// Returns the variable and the values of a loop `for NAME in …`. The body of any other `for` loop is
    /// read once.
    fn loop_over(&mut self, raw: &str, line: usize) -> (String, String) {
        let mut words = raw.splitn(4, char::is_whitespace).skip(1);
        match (words.next(), words.next(), words.next()) {
            (Some(variable), Some("in"), Some(values)) => (variable.to_owned(), values.to_owned()),
            _ => {
                self.list(line, raw, "not unrolled: its body is read once");
                (String::new(), "once".to_owned())
            }
        }
    }

    /// Counts one more statement or iteration of a loop, and fails if there are too many.
    fn step(&mut self, line: usize) -> Result<(), ImportError> {
        self.steps += 1;
        if self.steps > MOST_COMMANDS {
            return Err(self.too_many("commands, with loops unrolled", MOST_COMMANDS, line));
        }
        Ok(())
    }

    fn walk(&mut self, nodes: &[Node]) -> Result<(), ImportError> {
        for node in nodes {
            if self.turn.is_some() {
                return Ok(());
            }
            match node {
                Node::One(statement) => {
                    self.step(statement.line)?;
                    self.statement(statement)?;
                }
                Node::For { line, variable, values, body } => {
                    self.branches.statement(After::Any, *line);
                    let depth = self.branches.depth();
                    self.loops += 1;
                    for value in self.words(values, *line)?.iter().flat_map(|word| braces(word)) {
                        self.step(*line)?;
                        self.variables.insert(variable.clone(), Variable::Text(value));
                        self.walk(body)?;
                        self.branches.back_to(depth, false);
                        if self.turn.take() == Some(true) {
                            break;
                        }
                    }
                    self.branches.back_to(depth, true);
                    self.loops -= 1;
                }
            }
        }
        Ok(())
    }

    /// Returns the words of a text, with its variables replaced.
    fn words(&self, raw: &str, line: usize) -> Result<Vec<String>, ImportError> {
        let expanded =
            expand(raw, &self.variables).ok_or_else(|| self.too_many("characters in a command", 64 << 10, line))?;
        let unclosed = ImportError::Unclosed { name: self.name.to_owned(), line, what: "a quote".to_owned() };
        shlex::split(&expanded).ok_or(unclosed)
    }

    /// Handles control words and tests. Returns the rest of the statement; `None` if nothing is left to run.
    fn steered<'s>(&mut self, statement: &'s Statement) -> Result<Option<&'s str>, ImportError> {
        let Statement { line, raw, .. } = statement;
        let mut after = statement.after;
        let mut raw = raw.as_str();
        loop {
            let first = raw.split_whitespace().next().unwrap_or_default();
            let mut rest = raw[first.len()..].trim_start();
            match first {
                "if" => self.branches.begin(*line),
                "elif" => self.branches.elif(),
                "then" => self.branches.then(),
                "else" => self.branches.arm(Truth::Known(true)),
                "fi" | "esac" => {
                    self.branches.end();
                    return Ok(None);
                }
                "case" => {
                    let (word, pattern) = rest.split_once(" in").unwrap_or((rest, ""));
                    let word = self.words(word, *line)?.concat();
                    self.branches.begin_case(word, *line);
                    rest = pattern.trim_start();
                }
                _ => break,
            }
            (after, raw) = (After::Any, rest);
            if raw.is_empty() {
                return Ok(None);
            }
        }
        if let Some(word) = self.branches.word().filter(|_| raw.ends_with(')') && !raw.contains('(')) {
            let holds = fits(word, raw, after);
            self.branches.arm(holds);
            return Ok(None);
        }
        self.branches.statement(after, *line);
        let truth = truth(raw, &self.variables, &self.keys);
        if self.branches.is_condition() {
            self.branches.add(truth.unwrap_or(Truth::Unknown), after);
        }
        self.branches.held(truth);
        Ok(if truth.is_some() { None } else { Some(raw) })
    }

    /// Handles `exit`, `continue` and `break`; returns false for any other command.
    fn leaves(&mut self, word: &str, runs: Runs) -> bool {
        match (word, runs) {
            ("exit", Runs::Surely) => {
                // If the script exits only because a variable is unset, reading continues, as if the variable
                // were set.
                self.branches.has_ended |= self.braces == 0 && !self.branches.is_assumed();
            }
            ("continue" | "break", Runs::Surely) => self.turn = Some(word == "break").filter(|_| self.loops > 0),
            ("continue" | "break", Runs::Unsure(line)) => self.branches.doubt(line, word == "break"),
            ("exit" | "continue" | "break", _) => {}
            _ => return false,
        }
        true
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), ImportError> {
        let Some(raw) = self.steered(statement)? else { return Ok(()) };
        let Statement { line, is_behind, .. } = statement;
        for word in raw.split_whitespace() {
            self.braces = match word {
                "{" => self.braces + 1,
                "}" => self.braces.saturating_sub(1),
                _ => self.braces,
            };
        }
        let runs = self.branches.runs();
        if let Some((name, inner)) = array(raw) {
            let values = self.words(inner, *line)?;
            self.set(name, Variable::List(values), runs);
            return Ok(());
        }
        let mut words = self.words(raw, *line)?;
        let steering = words.iter().take_while(|word| STEERING.contains(&word.as_str())).count();
        if words[..steering].iter().any(|word| word == "[" || word == "[[") {
            // A condition does not start a benchmark.
            return Ok(());
        }
        words.drain(..steering);
        if words.first().is_some_and(|word| self.leaves(word, runs)) {
            return Ok(());
        }
        let exported =
            words.first().is_some_and(|word| ["export", "local", "declare", "readonly"].contains(&word.as_str()));
        let begins = usize::from(exported);
        let assigned = words.iter().skip(begins).take_while(|word| assignment(word).is_some()).count();
        let command = words.split_off(begins + assigned);
        let before = self.keys.len();
        let assigned: Vec<(&str, &str)> = words.iter().filter_map(|word| assignment(word)).collect();
        for (name, value) in &assigned {
            self.assign_if(runs, name, value);
        }
        if command.is_empty() && !raw.contains(['`', '(']) {
            self.branches.held(Some(Truth::Known(true)));
        }
        if words.first().is_some_and(|word| word == "export") && !matches!(runs, Runs::Not | Runs::NotUnset(_)) {
            let unsure = |(name, value): (String, String)| {
                let value = if matches!(runs, Runs::Unsure(_)) { marked(&name) } else { value };
                (name, value)
            };
            self.export(plain(&assigned).into_iter().map(unsure).collect());
            // `export NAME` exports a variable that was set before.
            self.export(command.iter().filter_map(|name| self.known(name)).collect());
        }
        if !command.is_empty() && !exported {
            let command = evaluated(without_redirections(command));
            collect(&command, self.secrets);
            let (command, more) = self.given(command);
            let own: Vec<(String, String)> = plain(&assigned).into_iter().chain(more).collect();
            if !self.inside(&command, &own, *line)? {
                let env = self.exported.iter().cloned().chain(own).collect();
                let (secrets, behind, is_behind) = (self.keys.clone(), self.behind.clone(), *is_behind);
                let command = Command { words: command, line: *line, secrets, env, behind, runs, is_behind };
                self.script.commands.push(command);
            }
            // Variables that are assigned before a command are set only for this command.
            self.keys.truncate(before);
        }
        Ok(())
    }

    /// Returns the words of a command without the `env` before it, and the variables that `env` or a
    /// container sets.
    fn given(&mut self, words: Vec<String>) -> (Vec<String>, Vec<(String, String)>) {
        let (words, mut set) = wrapped::without_env(words);
        for (name, value) in wrapped::of_container(&words) {
            match value {
                Some(value) => set.push((name, value)),
                None if names_secret(&name) => self.key(&name),
                None => {}
            }
        }
        for (name, value) in set.iter().filter(|(name, _)| names_secret(name)) {
            self.assign(name, value);
        }
        set.retain(|(name, _)| !names_secret(name));
        (words, set)
    }

    /// Reads the commands in a shell's text argument; returns false if there is no such argument.
    fn inside(&mut self, words: &[String], own: &[(String, String)], line: usize) -> Result<bool, ImportError> {
        let Some((before, text)) = wrapped::inside(words).filter(|_| self.depth < DEEPEST) else { return Ok(false) };
        let Ok(statements) = lex::statements(self.name, &text) else { return Ok(false) };
        let statements: Vec<Statement> =
            without_documents(statements).into_iter().map(|one| Statement { line, ..one }).collect();
        let kept = (self.exported.clone(), self.behind.len());
        self.export(own.to_vec());
        self.behind.extend(before.iter().cloned());
        self.depth += 1;
        let nodes = self.nodes(&mut statements.into_iter(), None, 0)?;
        self.walk(&nodes)?;
        self.depth -= 1;
        self.exported = kept.0;
        self.behind.truncate(kept.1);
        Ok(true)
    }

    /// Exports variables to every later command.
    fn export(&mut self, variables: Vec<(String, String)>) {
        for (name, value) in variables {
            self.exported.retain(|(known, _)| *known != name);
            self.exported.push((name, value));
        }
    }

    /// Returns a variable with its value; `None` if its value is not a known text.
    fn known(&self, name: &str) -> Option<(String, String)> {
        match self.variables.get(name)? {
            Variable::Text(value) => Some((name.to_owned(), value.clone())),
            Variable::List(_) | Variable::Branched => None,
        }
    }

    /// Sets a variable, depending on whether the statement runs.
    fn set(&mut self, name: &str, value: Variable, runs: Runs) {
        match runs {
            Runs::Not | Runs::NotUnset(_) => {}
            Runs::Surely => drop(self.variables.insert(name.to_owned(), value)),
            Runs::Unsure(line) => {
                let same =
                    |known: &Variable| matches!((known, &value), (Variable::Text(a), Variable::Text(b)) if a == b);
                if !self.variables.get(name).is_some_and(same) {
                    self.variables.insert(name.to_owned(), Variable::Branched);
                    self.script.branched.push((name.to_owned(), line));
                }
            }
        }
    }

    /// Handles an assignment, depending on whether the statement runs. A secret that may be set counts as
    /// set.
    fn assign_if(&mut self, runs: Runs, name: &str, value: &str) {
        match names_secret(name) {
            true => self.assign(name, value),
            false => self.set(name, Variable::Text(value.to_owned()), runs),
        }
    }

    /// Handles an assignment. For a secret, only the fact that it exists is kept.
    fn assign(&mut self, name: &str, value: &str) {
        if !names_secret(name) {
            self.variables.insert(name.to_owned(), Variable::Text(value.to_owned()));
        } else if !is_no_key(value) {
            if marks(value).is_empty() {
                self.secrets.add(value);
            }
            self.key(name);
        }
    }

    /// Notes that a variable contains a secret.
    fn key(&mut self, name: &str) {
        if !self.keys.iter().any(|known| known == name) {
            self.keys.push(name.to_owned());
        }
    }

    fn list(&mut self, line: usize, what: &str, why: &str) {
        self.script.listed.push(Listed::missing(what, why, line));
    }

    fn too_many(&self, what: &'static str, most: usize, line: usize) -> ImportError {
        let place = format!("{}:{line}", self.name);
        ImportError::TooMany { place, what, most, remedy: "import only the benchmark commands" }
    }
}

/// Returns a word that represents a variable without a value.
fn marked(name: &str) -> String {
    let mut word = String::new();
    mark(name, &mut word);
    word
}

/// Returns the assignments whose names do not indicate a secret.
fn plain(assigned: &[(&str, &str)]) -> Vec<(String, String)> {
    let kept = assigned.iter().filter(|(name, _)| !names_secret(name));
    kept.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Returns the texts of a loop's condition and body; `None` if the body contains another loop.
fn raws<'a>(condition: &'a str, body: &'a [Node]) -> Option<Vec<&'a str>> {
    let of = |node: &'a Node| match node {
        Node::One(statement) => Some(statement.raw.as_str()),
        Node::For { .. } => None,
    };
    std::iter::once(Some(condition)).chain(body.iter().map(of)).collect()
}

/// Returns the name and the elements of an array assignment `NAME=(…)`; `None` for other statements.
fn array(raw: &str) -> Option<(&str, &str)> {
    let (name, rest) = raw.split_once('=')?;
    let name = name.rsplit(char::is_whitespace).next().unwrap_or(name);
    Some((name, rest.strip_prefix('(')?.strip_suffix(')')?)).filter(|(name, _)| is_variable(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::draft::Kind;

    fn commands(text: &str) -> Vec<String> {
        let script = read("x.sh", text, &Secrets::default()).unwrap();
        script.commands.iter().map(|one| format!("{}: {}", one.line, shown(&one.words.join(" ")))).collect()
    }

    #[test]
    fn loops_arrays_defaults_and_sums_are_what_a_shell_makes_of_them() {
        let text = "RATES=(1 \"5\" 10)\nT=${SECONDS_EACH:-60}\nfor r in \"${RATES[@]}\"; do\n  N=$((r * T))\n  run --n $N \\\n    --r \"$r\"\ndone\nfor i in {1..2}; do for j in $(seq 3 4)\ndo echo $i$j; done; done > log\n";
        let expected =
            ["5: run --n 60 --r 1", "5: run --n 300 --r 5", "5: run --n 600 --r 10", "9: echo 13", "9: echo 14"];
        let found = commands(text);
        assert_eq!(found[..5], expected.map(str::to_owned));
        assert_eq!(found.len(), 7);
    }

    #[test]
    fn quotes_in_a_value_are_no_quotes_and_words_of_a_value_are_words() {
        assert_eq!(commands("A='x y'\nB=\"it's\"\nf $A \"$A\" '$A' $B\\\"\n"), ["3: f x y x y $A it's\""]);
        let script = read("x.sh", "A='x y'\nf $A \"$A\"", &Secrets::default()).unwrap();
        assert_eq!(script.commands[0].words, ["f", "x", "y", "x y"]);
    }

    #[test]
    fn secrets_and_what_is_not_known_leave_their_names() {
        let secrets = Secrets::default();
        let text = "export OPENAI_API_KEY=sk-abc123\nHF_TOKEN=hf_x f --k $OPENAI_API_KEY --m $MODEL $(date +%s) 2>&1 | tee x\n";
        let script = read("x.sh", text, &secrets).unwrap();
        let command = &script.commands[0];
        assert_eq!(shown(&command.words.join(" ")), "f --k $OPENAI_API_KEY --m $MODEL $(date…)");
        assert_eq!(command.secrets, ["OPENAI_API_KEY", "HF_TOKEN"]);
        assert_eq!(secrets.hide("sk-abc123"), "***");
    }

    #[test]
    fn commands_inside_of_a_shell_are_commands() {
        let text = "A=3\nbash -c \"f --n $A && g\"\nssh -p 22 h 'f --x 1; g'\ndocker run -e K=1 i bash -lc 'f --n 4'\nf $'64' $'it\\'s' $\"y\"\nenv -u Z B=1 nohup f\necho bash -c 'h'\n";
        let expected = [
            "2: f --n 3",
            "2: g",
            "3: f --x 1",
            "3: g",
            "4: f --n 4",
            "5: f 64 it's y",
            "6: nohup f",
            "7: echo bash -c h",
        ];
        assert_eq!(commands(text), expected);
        let script = read("x.sh", text, &Secrets::default()).unwrap();
        assert_eq!(script.commands[2].behind, ["ssh"]);
        assert_eq!(script.commands[6].env, [("B".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn a_loop_that_waits_for_a_server_is_not_needed() {
        let waits = "until curl -s localhost:8000/health; do\n  echo wait\n  sleep 2\ndone\nwhile ! nc -z h 1; do sleep 1; done\nf\n";
        let script = read("x.sh", waits, &Secrets::default()).unwrap();
        assert_eq!(script.listed.iter().map(|one| one.kind).collect::<Vec<_>>(), [Kind::Needless; 2]);
        assert_eq!(script.commands.len(), 1);
        let counts = "i=1\nwhile [ $i -le 4 ]; do\n  f --n $i\ndone\n";
        let script = read("x.sh", counts, &Secrets::default()).unwrap();
        assert_eq!((script.listed[0].kind, script.commands.len()), (Kind::Missing, 1));
    }

    #[test]
    fn bombs_are_refused() {
        let doubling = format!("A=xxxxxxxxxxxxxxxx\n{}f $A", "A=$A$A\n".repeat(40));
        let nested = format!("{}f\n{}", "for a in 1 2 3 4 5 6 7 8 9 10; do\n".repeat(12), "done\n".repeat(12));
        for text in [doubling, nested, "for a in 1; do\n".repeat(100), "$(".repeat(1000), "x $((1".repeat(50)] {
            assert!(read("x.sh", &text, &Secrets::default()).is_err(), "{}", &text[..40]);
        }
    }
}
