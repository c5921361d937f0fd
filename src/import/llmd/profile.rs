//! Converts a workload profile to jobs, using the importer for its harness.

use super::tokens;
use crate::import::bench;
use crate::import::draft::Draft;
use crate::import::error::ImportError;
use crate::import::importer::{Asked, Context, Input};
use crate::import::job::Job;
use crate::import::program::{Program, program};
use crate::import::shell;
use crate::import::tree::{self, At, Item};

/// The format's name for `--format`.
pub(super) const NAME: &str = "llm-d";

/// The result of reading a profile.
pub(super) enum Made {
    /// The jobs of the profile.
    Jobs(Vec<Job>),
    /// The complete plan of another importer.
    Draft(Box<Draft>),
}

/// Returns a profile's values, with the model and the server filled in.
pub(super) fn rendered(name: &str, text: &str, context: &Context) -> Result<Item, ImportError> {
    let text = tokens::filled(text, context)?;
    tree::parse(&format!("{name}.yaml"), &text)?.ok_or_else(|| ImportError::unknown(name, "not YAML"))
}

/// Reads the profile in a file.
pub(super) fn of_file(input: &Input, context: &Context) -> Result<Made, ImportError> {
    // The settings of the rendered profile are counted instead of the settings in the file.
    input.root(context)?.skip();
    of_tree(input.name, input.text, rendered(input.name, input.text, context)?, context)
}

/// Reads a rendered profile.
pub(super) fn of_tree(name: &str, text: &str, tree: Item, context: &Context) -> Result<Made, ImportError> {
    if tree.has(&["executable"]) {
        tree.enter(context.notes);
        return Ok(Made::Jobs(of_vllm(name, tree.at(context.notes), context)?));
    }
    if tree.has(&["endpoint-type", "url"]) {
        tree.enter(context.notes);
        if let Some(jobs) = of_aiperf(name, tree.at(context.notes), context) {
            return Ok(Made::Jobs(jobs?));
        }
    }
    let input = Input { name, text, tree: Some(tree) };
    let others = context.formats.iter().filter(|one| one.name != NAME);
    let reader = others.filter_map(|one| one.file.as_ref()).find(|file| (file.is)(&input));
    let Some(reader) = reader else {
        let what = "no importer reads the input of this harness";
        let remedy = "use a profile of vllm-benchmark, inferencemax, guidellm, inference-perf or aiperf";
        return Err(ImportError::shape(name, what, remedy));
    };
    if let Some(tree) = &input.tree {
        tree.enter(context.notes);
    }
    let draft = (reader.read)(&input, context)?;
    if let Some(tree) = &input.tree {
        tree.list_rest(reader.known, context.notes);
    }
    Ok(Made::Draft(Box::new(draft)))
}

/// Returns the command of a harness that turns every key of a profile into an option: `max-concurrency: 8`
/// becomes `--max-concurrency=8`, and `none` marks an option without a value.
fn words(begin: &[&str], root: At, context: &Context) -> Vec<String> {
    let mut words: Vec<String> = begin.iter().map(|word| (*word).to_owned()).collect();
    for (key, at) in root.entries() {
        let text = at.text().map(|said| said.value);
        match (key, text.as_deref()) {
            ("executable", _) => {
                at.needless("a plan does not run a benchmark program");
                continue;
            }
            (_, None) => continue,
            (_, Some("none")) => words.push(format!("--{key}")),
            (_, Some(value)) => words.push(format!("--{key}={value}")),
        }
        // The resulting option is counted instead of the key.
        at.skip();
    }
    let count = words.len() - begin.len();
    let why = "like the harness, import turns each into an option";
    context.notes.needless(&format!("{count} keys of the profile"), why, 0);
    words
}

/// Reads a profile of vllm-benchmark or inferencemax.
fn of_vllm(name: &str, root: At, context: &Context) -> Result<Vec<Job>, ImportError> {
    let is_script = name.contains("inferencemax");
    let begin: &[&str] = if is_script { &["python3", "benchmark_serving.py"] } else { &["vllm", "bench", "serve"] };
    let command = shell::command(&words(begin, root, context), context.notes.secrets);
    let Program::Measure(tool, arguments) = program(&command.words) else {
        return Err(ImportError::unknown(name, "not a benchmark"));
    };
    let job = bench::job(name, tool, &command, arguments, &context.around(), context.notes)?;
    Ok(job.into_iter().collect())
}

/// Reads a profile of AIPerf; `None` if no importer can read its commands.
fn of_aiperf(name: &str, root: At, context: &Context) -> Option<Result<Vec<Job>, ImportError>> {
    let probe = ["aiperf", "profile"].map(str::to_owned);
    let mut readers = context.formats.iter().filter_map(|one| one.command.as_ref());
    let reader = readers.find(|reader| (reader.arguments)(&probe).is_some())?;
    let command = shell::command(&words(&["aiperf", "profile"], root, context), context.notes.secrets);
    let around = context.around();
    let words = (reader.arguments)(&command.words)?;
    let asked = Asked { place: name.to_owned(), command: &command, words, around: &around };
    Some((reader.read)(&asked, context))
}
