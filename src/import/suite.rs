//! Converts the serving suites of vLLM's own CI, `serving-tests*.json`. A test contains a server with its
//! variables and options, and is measured at all rates and concurrencies in its lists
//! (`.buildkite/performance-benchmarks/scripts/run-performance-benchmarks.sh`, `run_serving_tests`).

use serde_json::Value;

use super::bench;
use super::draft::{Draft, Field};
use super::error::ImportError;
use super::importer::{Context, FileReader, Importer, Input};
use super::job::{Around, Job};
use super::options::Fate;
use super::program::Tool;
use super::serve::serve;
use super::shell::Command;
use super::tables;
use super::text::one_line;
use super::tree::{At, Item, Known};
use super::write;

/// Maximum number of loads, which is more than any real suite has.
const MOST_LOADS: usize = 10_000;
/// The time limit that the suite's script sets for a server.
const READY: &str = "{ within: 20m }";

/// The importer for these suites.
pub(super) const IMPORTER: Importer = Importer {
    name: "vllm-ci",
    title: "serving tests of vLLM's CI",
    takes: "`serving-tests*.json` of vLLM's CI",
    file: Some(FileReader { is, known: KNOWN, read }),
    command: None,
};

/// Fields that `read` does not read.
const KNOWN: &[Known] = &[("defaults", Fate::Needless("every test specifies it itself"))];

fn tests(root: &Item) -> Vec<&Item> {
    if root.is_list() { root.children() } else { root.peek("tests").map(Item::children).unwrap_or_default() }
}

fn is(input: &Input) -> bool {
    let tests = input.tree.as_ref().map(tests).unwrap_or_default();
    tests.iter().any(|test| test.has(&["client_parameters", "server_parameters"]))
}

fn read(input: &Input, context: &Context) -> Result<Draft, ImportError> {
    let root = input.root(context)?;
    let defaults = root.get("defaults");
    let tests = if root.is_list() { Some(root) } else { root.get("tests") };
    let mut jobs = Vec::new();
    for test in tests.map(At::list).unwrap_or_default() {
        jobs.extend(Test { test, defaults, file: input.name, context }.jobs(jobs.len())?);
    }
    if jobs.is_empty() {
        let why = write::reasons(&context.notes.listed.borrow());
        return Err(ImportError::nothing(
            input.name,
            if why.is_empty() { "no test in it measures anything".to_owned() } else { why },
        ));
    }
    Ok(tables::draft(jobs, context.name.clone(), context.notes))
}

/// One test of a suite.
struct Test<'a> {
    test: At<'a>,
    defaults: Option<At<'a>>,
    file: &'a str,
    context: &'a Context<'a>,
}

impl<'a> Test<'a> {
    /// Returns the loads of a list, which is the test's own list or else the list of the defaults. Without a
    /// list, there is one unspecified load; an empty list gives no loads.
    fn loads(&self, key: &str) -> Vec<Option<At<'a>>> {
        let Some(said) = self.test.get(key).or_else(|| self.defaults?.get(key)) else { return vec![None] };
        let loads = said.take().list();
        if loads.is_empty() {
            said.missing("it is empty, so this test measures nothing: skipped");
        }
        loads.into_iter().map(Some).collect()
    }

    /// Returns the entries of the test's table, merged on top of the table of the defaults.
    fn table(&self, key: &str) -> Vec<(&'a str, At<'a>)> {
        let mut all: Vec<(&str, At)> = Vec::new();
        let tables = [self.defaults.and_then(|defaults| defaults.get(key)), self.test.get(key)];
        for (key, at) in tables.into_iter().flatten().flat_map(At::entries) {
            match all.iter_mut().find(|(known, _)| known.replace('_', "-") == key.replace('_', "-")) {
                Some(known) => *known = (key, at),
                None => all.push((key, at)),
            }
        }
        all
    }

    fn jobs(&self, before: usize) -> Result<Vec<Job>, ImportError> {
        let notes = self.context.notes;
        let name = self.test.get("test_name").and_then(At::text);
        let (server, client) = (self.table("server_parameters"), self.table("client_parameters"));
        let model = |table: &[(&str, At<'a>)]| {
            table.iter().find(|(key, _)| *key == "model").and_then(|(_, at)| at.text()).map(|said| said.value)
        };
        if self.test.get("server_parameters").is_none() && self.test.get("client_parameters").is_none() {
            let name = name.map_or_else(|| "a test".to_owned(), |name| name.value);
            let why = "this test is skipped: it sends no requests to a server, and a plan measures servers";
            notes.missing(&one_line(&name), why, self.test.line());
            self.test.skip();
            return Ok(Vec::new());
        }
        let Some(served) = model(&server) else {
            let remedy = "add \"model\" to its server_parameters";
            return Err(self.test.wrong(self.file, "this test names no model for its server", remedy));
        };
        if model(&client).is_some_and(|asked| asked != served) {
            let why = "the suite skips this test: its server and its client name different models";
            let name = name.map_or_else(|| "a test".to_owned(), |name| name.value);
            notes.needless(&one_line(&name), why, self.test.line());
            self.test.skip();
            for (_, at) in client.iter().chain(&server) {
                at.take();
            }
            return Ok(Vec::new());
        }
        let around = self.around(&served, &server);
        let mut jobs = Vec::new();
        let (rates, sizes) = (self.loads("qps_list"), self.loads("max_concurrency_list"));
        for rate in &rates {
            for size in &sizes {
                if before + jobs.len() >= MOST_LOADS {
                    let (place, remedy) = (self.file.to_owned(), "split the file");
                    return Err(ImportError::TooMany { place, what: "loads", most: MOST_LOADS, remedy });
                }
                let job = self.job(&client, (*rate, *size), &around)?;
                jobs.extend(job.map(|job| Job { apart: name.clone(), ..job }));
            }
        }
        Ok(jobs)
    }

    /// Returns the context with the server: `vllm serve MODEL` with these options and the test's variables.
    fn around(&self, model: &str, server: &[(&str, At)]) -> Around {
        let notes = self.context.notes;
        let mut words = vec!["vllm".to_owned(), "serve".to_owned(), model.to_owned()];
        server.iter().filter(|(key, _)| *key != "model").for_each(|(key, at)| words.extend(option(key, *at)));
        let env = self.table("server_environment_variables").into_iter();
        let env = env.filter_map(|(name, at)| Some((name.to_owned(), at.text()?.value))).collect();
        let line = self.test.line();
        let command = Command { words, line, env, ..Command::default() };
        let before = self.context.around();
        let found = bench::facts(&command.words[2..], super::serve::origin(&command.words, line), notes.secrets);
        let started = before.url.is_none().then(|| serve(&command, &[], "server_parameters", notes));
        let ready = started.is_some().then(|| Field::new("ready", READY, "the suite waits 1200 s for its server"));
        let model = before.model.or_else(|| Some((model.to_owned(), "server_parameters.model".to_owned())));
        Around { model, url: before.url.or(found.url), serve: started, ready, folder: before.folder, ..found }
    }

    fn job(
        &self,
        client: &[(&str, At)],
        (rate, size): (Option<At>, Option<At>),
        around: &Around,
    ) -> Result<Option<Job>, ImportError> {
        let mut words: Vec<String> = Vec::new();
        client.iter().for_each(|(key, at)| words.extend(option(key, at.as_option())));
        let count = client.iter().find(|(key, _)| key.replace('_', "-") == "num-prompts").and_then(|(_, at)| at.text());
        // Without `max_concurrency_list`, the suite keeps all prompts in flight.
        let size = size.and_then(At::text).or(count);
        let given = [("--request-rate", rate.and_then(At::text)), ("--max-concurrency", size)];
        for (name, said) in given.into_iter().filter_map(|(name, said)| Some((name, said?))) {
            words.extend([name.to_owned(), said.value]);
        }
        let line = self.test.line();
        let command = Command { words: words.clone(), line, ..Command::default() };
        let mut job = bench::job(self.file, Tool::Bench, &command, &words, around, self.context.notes)?;
        if let Some(job) = &mut job {
            job.endpoint.0 = hint(around, &job.endpoint.0);
        }
        Ok(job)
    }
}

/// Returns an entry as an option; an empty text means an option without a value.
fn option(key: &str, at: At) -> Vec<String> {
    let name = format!("--{}", key.replace('_', "-"));
    match at.json() {
        Value::String(text) if text.is_empty() => vec![name],
        Value::String(text) => vec![name, text],
        other => vec![name, other.to_string()],
    }
}

/// Returns a hint for the name of an endpoint: the engine, and each degree of parallelism other than 1, as in
/// `vllm-tp4`.
fn hint(around: &Around, engine: &str) -> String {
    let flag = |flag: &str| around.serve.as_ref().and_then(|serve| serve.flag(flag)).filter(|value| *value != "1");
    let parts = [("tp", "tensor_parallel_size"), ("pp", "pipeline_parallel_size"), ("dp", "data_parallel_size")];
    let spread: String = parts.iter().filter_map(|(short, name)| Some(format!("-{short}{}", flag(name)?))).collect();
    format!("{engine}{spread}")
}
