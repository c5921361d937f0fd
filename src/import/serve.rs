//! Converts a command that starts a server to its launch in a plan, with its words, flags and variables.
//! The command is only read, never executed.

use indexmap::IndexMap;

use super::notes::Notes;
use super::program::{Program, program};
use super::shell::{Command, marks};
use super::text::{cell_text, is_no_key, scalar, secret};
use crate::units::Decimal;
use crate::units::secrecy::{is_secret_name, names_secret};
use crate::units::text::is_variable;

/// The default ports of the servers.
const VLLM_PORT: &str = "8000";
const SGLANG_PORT: &str = "30000";
/// The variable from which vLLM reads the key that it requires from clients.
pub(super) const SERVER_KEY: &str = "VLLM_API_KEY";
/// The variable from which clients read their key.
const CLIENT_KEY: &str = "OPENAI_API_KEY";
/// Programs before a server's command that the launch does not need, such as `nohup`, because a launched
/// server is detached from the terminal anyway.
const LET_GO: [&str; 5] = ["nohup", "setsid", "exec", "command", "env"];
/// Programs under which the server is not a child process of the command, or does not end with the
/// command.
const ELSEWHERE: [&str; 8] = ["docker", "podman", "nerdctl", "ssh", "kubectl", "tmux", "screen", "sbatch"];
/// Options of `vllm serve` without a value; the word after such an option may be the model.
const SWITCHES: [&str; 14] = [
    "async_scheduling",
    "disable_custom_all_reduce",
    "disable_log_requests",
    "disable_log_stats",
    "enable_auto_tool_choice",
    "enable_chunked_prefill",
    "enable_expert_parallel",
    "enable_lora",
    "enable_prefix_caching",
    "enable_request_id_headers",
    "enable_sleep_mode",
    "enforce_eager",
    "headless",
    "trust_remote_code",
];
/// Short options of `vllm serve`, and their long forms.
const SHORT: [(&str, &str); 4] = [
    ("-tp", "tensor_parallel_size"),
    ("-pp", "pipeline_parallel_size"),
    ("-dp", "data_parallel_size"),
    ("-q", "quantization"),
];
/// The reason why a word or a value that contains a secret is not in the plan.
const HOLDS: &str =
    "it contains a secret: pass it to the server as a variable, env: { NAME: { secret: env:NAME } } of `launch`";
/// Parts of variable names that refer to a place on a host.
const OF_HOST: [&str; 9] = ["DEVICES", "HOME", "PATH", "DIR", "CACHE", "ROOT", "TMP", "TEMP", "LOG"];

/// One word of a command.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    /// A word that stays unchanged.
    Text(String),
    /// The server's name for its model, or the model's location; empty for the model that the benchmark
    /// requests.
    Model(String),
    /// The port.
    Port(String),
}

/// A command that starts a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Serve {
    /// The words of the command, without the flags.
    pub(super) words: Vec<Word>,
    /// The flags by name, each value in YAML.
    pub(super) flags: IndexMap<String, String>,
    /// The variables that are set for the server, each value in YAML: first the variables that are part of a
    /// run's identity, then the variables that refer to places on the host.
    pub(crate) env: [IndexMap<String, String>; 2],
    /// The variable with the key that the server requires from clients.
    pub(super) key: Option<String>,
    /// The address on which the server listens, if specified.
    pub(super) host: Option<String>,
    /// Whether the command is `vllm serve`, whose options are known.
    pub(crate) is_vllm: bool,
    /// The default port; empty if unknown.
    pub(super) port: &'static str,
    /// A program before the command, such as `docker`, that prevents the plan from starting the command
    /// unchanged.
    pub(super) behind: Option<String>,
    /// Flags that an axis sets in every combination.
    pub varied: Vec<String>,
    /// The words of the command, for comments.
    pub(super) origin: String,
}

impl Serve {
    /// Returns the command that starts vLLM if the source does not specify a command.
    pub(crate) fn usual() -> Serve {
        let mut words: Vec<Word> = ["vllm", "serve"].map(str::to_owned).into_iter().map(Word::Text).collect();
        words.push(Word::Model(String::new()));
        Serve {
            words,
            is_vllm: true,
            port: VLLM_PORT,
            origin: "no command was specified: fix it".to_owned(),
            ..Serve::default()
        }
    }

    /// Returns the value of a flag, in YAML; `None` if the flag is not set.
    pub(crate) fn flag(&self, name: &str) -> Option<&str> {
        self.flags.get(name).map(String::as_str)
    }
}

/// Returns the name of a flag in the form of a plan: `max_num_seqs` for `max-num-seqs`. Keys inside
/// an option's value stay unchanged.
pub(crate) fn flag_name(key: &str) -> String {
    let (option, inner) = key.split_at(key.find('.').unwrap_or(key.len()));
    format!("{}{inner}", option.replace('-', "_"))
}

/// Returns a flag's value in YAML; `None` if no plan can express it.
pub(crate) fn flag_value(text: &str) -> Option<String> {
    let is_number = text.len() < 16 && text.parse::<Decimal>().is_ok_and(|number| number.to_string() == text);
    match text {
        "" | "none" => None,
        _ if is_number => Some(text.to_owned()),
        _ => Some(scalar(&cell_text(text))),
    }
}

/// Whether a plan can have an axis or a flag of this name.
pub(crate) fn is_flag_name(name: &str) -> bool {
    // These words are keywords of a matrix, so no axis can have such a name.
    let is_taken = ["when", "zip", "value"].contains(&name);
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !is_taken && name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_name)
}

/// Parses a command that starts a server. `varied` are the flags that parameters override.
pub(crate) fn serve(command: &Command, varied: &[String], origin: &str, notes: &Notes) -> Serve {
    let serve = Serve { origin: origin.to_owned(), ..Serve::default() };
    let mut reader = Reader { serve, line: command.line, notes };
    reader.variables(command);
    let words = reader.begin(&command.words);
    let rest = match program(words) {
        Program::Serve(rest) => rest,
        _ => &[],
    };
    let (before, options) = words.split_at(words.len() - rest.len());
    let is_known = matches!(program(words), Program::Serve(_));
    let is_sglang = is_known && is_sglang(before);
    reader.serve.is_vllm = is_known && !is_sglang;
    reader.serve.port = match is_known {
        true if is_sglang => SGLANG_PORT,
        true => VLLM_PORT,
        false => "",
    };
    let first = before.first().map(|word| word.rsplit('/').next().unwrap_or_default().to_owned());
    reader.serve.behind = first.filter(|first| ELSEWHERE.contains(&first.as_str()));
    match is_known {
        true => {
            before.iter().for_each(|word| reader.word(word));
            reader.options(options);
        }
        false => reader.verbatim(words, varied),
    }
    reader.serve
}

struct Reader<'a> {
    serve: Serve,
    line: usize,
    notes: &'a Notes<'a>,
}

impl Reader<'_> {
    fn missing(&self, what: &str, why: &str) {
        self.notes.missing(what, why, self.line);
    }

    fn needless(&self, what: &str, why: &str) {
        self.notes.needless(what, why, self.line);
    }

    /// Adds the variables that a script sets for the command.
    fn variables(&mut self, command: &Command) {
        for (name, value) in &command.env {
            self.variable(name, value);
        }
        for name in command.secrets.iter().filter(|name| *name != CLIENT_KEY) {
            self.secret(name, name);
        }
    }

    /// Adds a secret variable of the server, as a reference to `variable`.
    fn secret(&mut self, name: &str, variable: &str) {
        self.serve.env[0].insert(name.to_owned(), secret(variable));
        if name == SERVER_KEY {
            self.serve.key = Some(variable.to_owned());
        }
    }

    fn variable(&mut self, name: &str, value: &str) {
        if !is_variable(name) {
            return self.missing(&format!("variable {name}"), "not a variable name: expected letters, digits and `_`");
        }
        // A plan treats more names as secret than the import does.
        if names_secret(name) || is_secret_name(name) {
            match is_no_key(value) {
                true => self.needless(&format!("{name}="), "not a key"),
                false => self.secret(name, name),
            }
        } else if let Some(unset) = marks(value).first() {
            let why = format!("`{unset}` has no value in the imported text: write it into `env` of `launch`");
            self.missing(&format!("variable {name}"), &why);
        } else if self.notes.secrets.are_in(value) {
            self.secret(name, name);
        } else {
            let is_of_host = OF_HOST.iter().any(|part| name.contains(part));
            self.serve.env[usize::from(is_of_host)].insert(name.to_owned(), scalar(&cell_text(value)));
        }
    }

    /// Reads the words before the program, such as `HF_HOME=/data nohup …`, and returns the other words.
    fn begin<'w>(&mut self, words: &'w [String]) -> &'w [String] {
        let mut rest = words;
        while let Some((first, others)) = rest.split_first() {
            let program = first.rsplit('/').next().unwrap_or_default();
            match first.split_once('=') {
                Some((name, value)) if is_variable(name) => self.variable(name, value),
                _ if LET_GO.contains(&program) => {}
                _ => break,
            }
            rest = others;
        }
        rest
    }

    /// Adds a literal word; a word that has no known value, or contains a secret, is listed.
    fn word(&mut self, text: &str) {
        if self.is_sayable("a word of the command", text) {
            self.serve.words.push(Word::Text(text.to_owned()));
        }
    }

    fn is_sayable(&mut self, what: &str, text: &str) -> bool {
        if let Some(unset) = marks(text).first() {
            let why = format!("`{unset}` has no value in the imported text: write it into `command` of `launch`");
            self.missing(what, &why);
            return false;
        }
        let is_secret = self.notes.secrets.are_in(text);
        if is_secret {
            self.missing(what, HOLDS);
        }
        !is_secret
    }

    /// Reads the options of `vllm serve`.
    fn options(&mut self, words: &[String]) {
        let mut words = words.iter().peekable();
        let mut has_model = false;
        while let Some(word) = words.next() {
            let short = SHORT.iter().find(|(short, _)| short == word).map(|(_, long)| *long);
            let (name, inline) = match (short, word.strip_prefix("--")) {
                (Some(long), _) => (long.to_owned(), None),
                (None, Some(option)) if !option.is_empty() => match option.split_once('=') {
                    Some((name, value)) => (flag_name(name), Some(value.to_owned())),
                    None => (flag_name(option), None),
                },
                _ if !has_model && !word.starts_with('-') => {
                    has_model = true;
                    self.model(word);
                    continue;
                }
                _ => {
                    self.word(word);
                    continue;
                }
            };
            let is_secret = names_secret(&name);
            let most = match (&inline, SWITCHES.contains(&name.as_str()) || name.starts_with("no_")) {
                (Some(_), _) | (_, true) => 0,
                // Every word up to the next option is a value. A word that begins with a dash may also be a
                // value, namely an API key.
                _ => usize::MAX,
            };
            let mut values: Vec<String> = inline.into_iter().collect();
            while values.len() < most {
                let is_value = |word: &&String| {
                    !word.starts_with('-')
                        || word.parse::<f64>().is_ok()
                        || (is_secret && values.is_empty() && !word.starts_with("--"))
                };
                let Some(value) = words.next_if(is_value) else { break };
                values.push(value.clone());
            }
            self.option(&name, values);
        }
    }

    /// Adds the model of `vllm serve`, or the benchmark's model if the model is known only when the script
    /// runs.
    fn model(&mut self, word: &str) {
        match marks(word).first() {
            Some(unset) => {
                let why = format!(
                    "`{unset}` has no value in the imported text: the server is started with the model that the \
                     benchmark requests"
                );
                self.needless("the model of vllm serve", &why);
                self.serve.words.push(Word::Model(String::new()));
            }
            None if self.is_sayable("a word of the command", word) => {
                self.serve.words.push(Word::Model(word.to_owned()))
            }
            None => {}
        }
    }

    fn option(&mut self, name: &str, values: Vec<String>) {
        let dashed = format!("--{}", name.replace('_', "-"));
        self.notes.setting(&dashed, self.line);
        if names_secret(name) {
            return self.secret_option(name, &dashed, &values);
        }
        if values.iter().any(|value| !self.is_sayable(&dashed, value)) {
            return;
        }
        let words = &mut self.serve.words;
        match (name, values.as_slice()) {
            ("host", [host]) => {
                self.serve.host = Some(host.clone());
                words.extend([dashed, host.clone()].map(Word::Text));
            }
            ("port" | "host", []) => self.missing(&dashed, "it has no value"),
            ("port", [port]) => words.extend([Word::Text(dashed), Word::Port(port.clone())]),
            ("model" | "model_path" | "served_model_name", [model, more @ ..]) => {
                words.extend([Word::Text(dashed), Word::Model(model.clone())]);
                words.extend(more.iter().cloned().map(Word::Text));
            }
            (name, []) if is_flag_name(name) => {
                let (name, value) = name.strip_prefix("no_").map_or((name, "true"), |name| (name, "false"));
                self.serve.flags.insert(name.to_owned(), value.to_owned());
            }
            (name, [value]) if is_flag_name(name) && flag_value(value).is_some() => {
                self.serve.flags.extend(flag_value(value).map(|value| (name.to_owned(), value)));
            }
            _ => words.extend([dashed].into_iter().chain(values).map(Word::Text)),
        }
    }

    /// Reads an option with a secret. A secret is never an argument of a plan's command; vLLM reads two of
    /// its secrets from variables.
    fn secret_option(&mut self, name: &str, dashed: &str, values: &[String]) {
        let variable = match name {
            "api_key" if self.serve.port == SGLANG_PORT => None,
            "api_key" => Some(SERVER_KEY),
            "hf_token" => Some("HF_TOKEN"),
            _ => None,
        };
        let of_mark = values.first().and_then(|value| marks(value).first().map(|name| (*name).to_owned()));
        match variable {
            _ if values.first().is_none_or(|value| is_no_key(value)) => {
                self.needless(dashed, "not a key: the launched server requires none");
            }
            Some(variable) => {
                self.secret(variable, of_mark.as_deref().filter(|name| is_variable(name)).unwrap_or(variable));
                self.needless(
                    &format!("{dashed} ***"),
                    &format!("the server reads it from the variable {variable}: see `env` of `launch`"),
                );
            }
            None => self.missing(
                &format!("{dashed} ***"),
                "a plan holds no secret: pass it to the server as a variable, env: { NAME: { secret: env:NAME } } of \
                 `launch`",
            ),
        }
    }

    /// Reads a program with unknown options. Its words stay unchanged, except for options that parameters
    /// override.
    fn verbatim(&mut self, words: &[String], varied: &[String]) {
        let mut words = words.iter().peekable();
        let mut is_key = false;
        while let Some(word) = words.next() {
            if std::mem::replace(&mut is_key, word == "Bearer") {
                self.missing("a word of the command", HOLDS);
                continue;
            }
            let option = word.strip_prefix("--").map(|option| option.split_once('=').unwrap_or((option, "")));
            let Some((name, inline)) = option.map(|(name, value)| (flag_name(name), value.to_owned())) else {
                if self.is_sayable("a word of the command", word) {
                    // The word may be the model.
                    self.serve.words.push(Word::Model(word.clone()));
                }
                continue;
            };
            let is_value = |word: &&String| !word.starts_with("--");
            if names_secret(&name) {
                let value = if inline.is_empty() { words.next_if(is_value).cloned() } else { Some(inline) };
                self.secret_option(
                    &name,
                    word.split('=').next().unwrap_or_default(),
                    &value.into_iter().collect::<Vec<_>>(),
                );
            } else if varied.contains(&name) || varied.iter().any(|flag| name.strip_prefix("no_") == Some(flag)) {
                let value = if inline.is_empty() { words.next_if(is_value).cloned() } else { Some(inline) };
                self.option(&name, value.into_iter().collect());
            } else if name == "port"
                && let Some(port) =
                    Some(inline).filter(|port| !port.is_empty()).or_else(|| words.next_if(is_value).cloned())
            {
                self.serve.words.extend([Word::Text("--port".to_owned()), Word::Port(port)]);
            } else {
                self.word(word);
            }
        }
    }
}

/// Whether the words before a server's options start SGLang's server.
fn is_sglang(words: &[String]) -> bool {
    words.iter().any(|word| word.rsplit('/').next().is_some_and(|file| file.starts_with("sglang")))
}

/// Returns the program that starts a server, and the line of the command, as text for comments.
pub(crate) fn origin(words: &[String], line: usize) -> String {
    let program = match is_sglang(words) {
        true if words.iter().any(|word| word == "sglang.launch_server") => "sglang.launch_server",
        true => "sglang serve",
        false => "vllm serve",
    };
    if line == 0 { program.to_owned() } else { format!("{program} (line {line})") }
}
