//! Determines what a command does: the program that it starts, and that program's arguments.

/// The tool to which a benchmark command belongs. The tools differ in their defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// `vllm bench serve`.
    Bench,
    /// `benchmark_serving.py`.
    Script,
}

impl Tool {
    /// Returns the name of the tool.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Tool::Bench => "vllm bench serve",
            Tool::Script => "benchmark_serving.py",
        }
    }
}

/// What a command does.
#[derive(Debug, PartialEq)]
pub(crate) enum Program<'a> {
    /// The command runs a benchmark; the words are its arguments.
    Measure(Tool, &'a [String]),
    /// The command starts `vllm bench sweep …`, with the kind of sweep and the arguments.
    Sweep(&'a str, &'a [String]),
    /// The command measures how long a server takes to start; the words are its arguments.
    Startup(&'a [String]),
    /// The command starts a server; the words are its arguments.
    Serve(&'a [String]),
    /// The command runs a benchmark without a server; contains the benchmark's name.
    Offline(&'static str),
    /// Any other command.
    Other,
}

/// Benchmarks of vLLM that use no server.
const OFFLINE: [(&str, &str); 4] = [
    ("latency", "vllm bench latency"),
    ("throughput", "vllm bench throughput"),
    ("benchmark_latency.py", "benchmark_latency.py"),
    ("benchmark_throughput.py", "benchmark_throughput.py"),
];

/// Programs whose arguments may contain the names of other programs, which they do not run.
const NAMING: [&str; 5] = ["echo", "printf", "pkill", "pip", "alias"];

fn file(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

/// Whether a command only names programs and runs none of them.
fn is_naming(words: &[String]) -> bool {
    words.first().is_some_and(|word| NAMING.contains(&file(word)))
}

/// Returns the words after the module or script of one of these names: `python3 -m a.b …`, `python a/b.py …`.
pub(super) fn module<'w>(words: &'w [String], names: &[&str]) -> Option<&'w [String]> {
    let at = words.iter().position(|word| names.contains(&file(word))).filter(|_| !is_naming(words))?;
    words.get(at + 1..)
}

/// Returns the words after a program and one of its subcommands: `guidellm benchmark …`.
pub(super) fn after<'w>(words: &'w [String], program: &str, commands: &[&str]) -> Option<&'w [String]> {
    let rest = module(words, &[program])?;
    rest.first().filter(|word| commands.contains(&word.as_str()))?;
    rest.get(1..)
}

fn offline(word: &str) -> Option<&'static str> {
    OFFLINE.iter().find(|(known, _)| *known == word).map(|(_, name)| *name)
}

/// Finds the program in a command; the words before it (`nohup`, `uv run`, `taskset …`) do not affect
/// any number in the plan.
pub(crate) fn program(words: &[String]) -> Program<'_> {
    // If the name of the program is empty, a shell starts nothing.
    if is_naming(words) || words.first().is_some_and(String::is_empty) {
        return Program::Other;
    }
    for (at, word) in words.iter().enumerate() {
        let rest = |count: usize| words.get(at + count..).unwrap_or_default();
        let next = |count: usize| words.get(at + count).map(String::as_str);
        if file(word) == "benchmark_serving.py" || word.ends_with("vllm.benchmarks.serve") {
            return Program::Measure(Tool::Script, rest(1));
        }
        let is_vllm = file(word) == "vllm" || word.starts_with("vllm.entrypoints.cli");
        match (is_vllm, next(1), next(2)) {
            (true, Some("bench"), Some("serve")) => return Program::Measure(Tool::Bench, rest(3)),
            (true, Some("bench"), Some("sweep")) => {
                return Program::Sweep(next(3).unwrap_or_default(), rest(4));
            }
            (true, Some("bench"), Some(kind)) if offline(kind).is_some() => {
                return offline(kind).map_or(Program::Other, Program::Offline);
            }
            _ if offline(file(word)).is_some() && file(word).ends_with(".py") => {
                return offline(file(word)).map_or(Program::Other, Program::Offline);
            }
            (true, Some("bench"), Some("startup")) => return Program::Startup(rest(3)),
            (true, Some("serve"), _) => return Program::Serve(rest(2)),
            (_, Some("serve"), _) if file(word) == "sglang" => return Program::Serve(rest(2)),
            _ if word == "sglang.launch_server" => return Program::Serve(rest(1)),
            _ if file(word) == "vllm-bench" => return Program::Measure(Tool::Bench, rest(1)),
            _ => {}
        }
    }
    Program::Other
}
