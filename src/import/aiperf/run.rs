//! Converts a configuration to jobs: one job for each measured phase of each variation of its sweep.

use super::content;
use super::dataset::{self, Content};
use super::extra::Extra;
use super::leaves::{At, Ledger, Tree};
use super::load::{load, warmup};
use super::variations::{self, Variation};
use super::{env, once, server, shape, variables};
use crate::import::draft::Field;
use crate::import::error::ImportError;
use crate::import::job::{Around, Job};
use crate::import::said::Said;

/// Returns the jobs of a configuration.
pub(super) fn jobs(file: &str, mut tree: Tree, ledger: &Ledger, around: &Around) -> Result<Vec<Job>, ImportError> {
    shape::keys(&mut tree);
    env::fill(&mut tree);
    shape::envelope(&mut tree);
    let root = tree.clone();
    let mut jobs = Vec::new();
    for Variation { name, mut tree } in variations::all(file, tree, ledger)? {
        let variables = match &mut tree {
            Tree::Map(entries) => entries.shift_remove("variables"),
            _ => None,
        };
        variables::render(file, &mut tree, variables.as_ref(), ledger)?;
        let reader = Reader { file, around, root: At::new(&root, ledger), name };
        jobs.extend(reader.variation(At::new(&tree, ledger))?);
    }
    Ok(jobs)
}

/// Converts one variation of a configuration to jobs.
struct Reader<'a> {
    file: &'a str,
    around: &'a Around,
    /// The configuration with its sweep.
    root: At<'a>,
    /// The variation's name.
    name: Option<String>,
}

impl Reader<'_> {
    fn variation(&self, tree: At) -> Result<Vec<Job>, ImportError> {
        let body = tree.get("benchmark");
        let Some(api) = server::api_of(body) else { return Ok(Vec::new()) };
        let extra = Extra::of(body.get("endpoint").get("extra"), api.value, body.get("reset_kv_cache").is_there());
        let endpoint = server::endpoint(self.file, body, api, &extra, self.around)?;
        let model = server::model(self.file, body, self.around)?;
        let once = once::once(tree, body, self.root.get("sweep"));
        let repeats = once::repeats(tree);
        let phases = body.get("phases").entries();
        let is_warmup = |(name, at): &(&str, At)| {
            at.get("kind").text().map_or(*name == "warmup", |said| said.value == "warmup")
                || at.get("exclude_from_results").flag().is_some_and(|said| said.value)
        };
        let (warmups, measured): (Vec<_>, Vec<_>) = phases.into_iter().partition(is_warmup);
        let settled: Vec<Field> = warmups.into_iter().filter_map(|(_, at)| warmup(at)).take(1).collect();
        if measured.is_empty() {
            let remedy = "write `phases: { type: concurrency, concurrency: 8, requests: 100 }`";
            return Err(ImportError::shape(tree.place(self.file), "no phase is measured", remedy));
        }
        let is_alone = measured.len() == 1;
        let mut jobs = Vec::new();
        for (name, phase) in measured {
            let made = self.content(body, phase, &extra, &endpoint)?;
            let asked = load(self.file, phase, made.turns, made.is_trace)?;
            let mut fields = made.fields;
            fields.extend(endpoint.stream.clone());
            let hint = self.name.clone().unwrap_or(made.hint);
            let hint_of_server = if endpoint.fields[1].value == "openai" { "server" } else { "vllm" };
            let mut job = Job::new((hint_of_server.to_owned(), endpoint.fields.clone()), model.clone(), (hint, fields));
            job.load = asked.load;
            job.lasts = asked.lasts;
            job.phases = asked.phases.into_iter().chain(settled.iter().cloned()).collect();
            job.phases.sort_by_key(|field| ["fill", "stabilize", "drain"].iter().position(|key| *key == field.key));
            job.fields = endpoint.beside.clone();
            job.apart = (!is_alone).then(|| Said::default(name.to_owned(), "the name of a phase"));
            job.repeats = repeats.clone();
            job.once = once.clone();
            jobs.push(job);
        }
        Ok(jobs)
    }

    /// Returns the content of a phase, from the data set that the phase names or else from the first one.
    fn content(&self, body: At, phase: At, extra: &Extra, endpoint: &server::Endpoint) -> Result<Content, ImportError> {
        let sets = body.get("datasets").entries();
        let named = phase.get("dataset").text();
        let own = named.and_then(|said| sets.iter().find(|(name, _)| *name == said.value));
        let own = own.or_else(|| sets.first());
        let at = own.map_or_else(|| At::nowhere(body), |(_, at)| *at);
        let around = dataset::Around {
            file: self.file,
            folder: &self.around.folder,
            task: endpoint.api.protocol().task(),
            is_schedule: phase.get("type").text().is_some_and(|said| said.value == "fixed_schedule"),
        };
        let made = content::content(at, extra, &around)?;
        if around.is_schedule && !made.is_trace {
            let remedy = "name a trace: --input-file FILE --custom-dataset-type mooncake_trace";
            return Err(ImportError::shape(
                phase.place(self.file),
                "a fixed schedule needs a file with its times",
                remedy,
            ));
        }
        Ok(made)
    }
}
