//! Converts an entry to jobs, one for each load of each row.

use super::entry::{Entry, Lengths};
use super::row::{Drafts, ROUTER, Row};
use super::server::{Flags, Framework, config, framework, settings};
use crate::import::draft::Field;
use crate::import::error::ImportError;
use crate::import::importer::Context;
use crate::import::job::{Job, Lasts, Load, Setting};
use crate::import::said::Said;
use crate::import::text::{cell_text, name_of, scalar, table, text_value};

/// The number of requests that InferenceX's scripts send for each request in flight.
const ROUNDS: u32 = 10;
/// Number of tokens that InferenceX's generator adds to the lengths of prompt and output for `max-model-len`.
const SPARE: u32 = 256;
/// Minimum length of a prompt in a scenario, in tokens. The prompt's nonce has to fit into it.
const SHORTEST: u32 = 16;
/// The server's address on InferenceX's runners.
const URL: &str = "http://127.0.0.1:8888/v1";

/// Returns the jobs of an entry.
pub(super) fn jobs(entry: &Entry, context: &Context) -> Result<Vec<Job>, ImportError> {
    let known = entry.word("framework");
    let lengths = entry.lengths(context)?;
    let made = framework(known);
    let rows: Vec<&Row> = lengths.iter().flat_map(|one| &one.rows).collect();
    let flags = settings(known, &rows);
    let endpoint = endpoint(entry, made, &flags, &lengths, context)?;
    let model = model(entry, context)?;
    drafts(entry, known, &lengths, context);
    defaults(entry, &lengths, context);
    let mut jobs = Vec::new();
    let mut flags = flags.into_iter();
    for one in &lengths {
        let scenario = scenario(one);
        for row in &one.rows {
            let setting = Setting { flags: flags.next().unwrap_or_default(), name: None, origin: row.origin.clone() };
            for load in &row.loads {
                let mut job = Job::new((entry.key.to_owned(), endpoint.clone()), model.clone(), scenario.clone());
                job.setting = context.wishes.url.is_none().then(|| setting.clone());
                job.load = Load { batch_size: Some(load.clone()), ..Load::default() };
                let origin = "10 × concurrency, as its scripts send".to_owned();
                job.lasts = Lasts::Requests(Said { value: load.value.saturating_mul(ROUNDS), origin });
                job.line = row.line;
                jobs.push(job);
            }
        }
    }
    Ok(jobs)
}

/// Returns the endpoint, with the command that starts its server.
fn endpoint(
    entry: &Entry,
    made: &Framework,
    settings: &[Flags],
    lengths: &[Lengths],
    context: &Context,
) -> Result<Vec<Field>, ImportError> {
    let origin = entry.said("framework").map_or_else(String::new, |said| said.origin);
    let mut fields = vec![
        url(context),
        Field::new("engine", made.engine, origin),
        Field::new("api", "completions", "its scripts use --backend vllm"),
    ];
    let image = entry.said("image");
    let mut facts: Vec<(String, String)> = Vec::new();
    facts.extend(image.iter().map(|image| ("image".to_owned(), scalar(&cell_text(&image.value)))));
    let (flags, origin) = match &context.wishes.url {
        None => {
            let command = format!("{{ command: [{}] }}", made.command.join(", "));
            let origin = "the scripts' command without their additional flags: run the plan where the image runs";
            fields.push(Field::new("launch", command, origin));
            let longest = lengths.iter().map(|one| one.isl.0.saturating_add(one.osl.0)).max().unwrap_or_default();
            let flags = format!("{{ {}: {} }}", made.longest, longest.saturating_add(SPARE));
            (flags, "max-model-len as its generator computes it from the longest lengths")
        }
        Some(_) => {
            let flags = only(entry, settings, context)?;
            (table(flags.iter().map(|(name, value)| (name, value))), "its only setting")
        }
    };
    facts.push(("flags".to_owned(), flags));
    let origin = image.map_or_else(|| origin.to_owned(), |image| format!("{}; {origin}", image.origin));
    fields.push(Field::new("server", table(facts.iter().map(|(name, value)| (name, value))), origin));
    fields.extend(hardware(entry, made, settings, context));
    if let Some(router) = entry.at.get("router") {
        router.refused(ROUTER);
    }
    for key in ["multinode", "disagg"] {
        entry.at.get(key).into_iter().for_each(|at| at.needless("one server on one node, as in a plan"));
    }
    Ok(fields)
}

/// Returns the only setting of an entry. Fails if there are several, because a running server has only one
/// setting.
fn only<'f>(entry: &Entry, settings: &'f [Flags], context: &Context) -> Result<&'f Flags, ImportError> {
    let mut different: Vec<&Flags> = Vec::new();
    for one in settings {
        if !different.contains(&one) {
            different.push(one);
        }
    }
    let [only] = different.as_slice() else {
        let what = format!("it has {} settings of the server, and --url names one running server", different.len());
        let remedy = "omit --url, so that the plan starts each of them";
        return Err(entry.at.wrong(&context.wishes.name, &what, remedy));
    };
    Ok(only)
}

/// Lists the number of rows that state a default explicitly.
fn defaults(entry: &Entry, lengths: &[Lengths], context: &Context) {
    let mut counted: Vec<(&str, usize, usize)> = Vec::new();
    for row in lengths.iter().flat_map(|one| &one.rows) {
        for name in &row.defaults {
            match counted.iter_mut().find(|(known, ..)| known == name) {
                Some((_, count, _)) => *count += 1,
                None => counted.push((name, 1, row.line)),
            }
        }
    }
    for (name, count, line) in counted {
        let what = format!("{}: {name} in {count} rows", entry.key);
        context.notes.needless(&what, "the default", line);
    }
}

fn url(context: &Context) -> Field {
    match &context.wishes.url {
        Some(url) => Field::new("url", text_value(url), "import --url"),
        None => Field::new("url", URL, "the port of its runners"),
    }
}

/// Returns the accelerators.
fn hardware(entry: &Entry, made: &Framework, settings: &[Flags], context: &Context) -> Option<Field> {
    let said = entry.said("runner")?;
    let mut facts = vec![("gpu".to_owned(), scalar(&cell_text(&entry.gpu())))];
    if context.wishes.url.is_none() {
        facts.push(("gpus".to_owned(), made.gpus(settings)));
    }
    Some(Field::new("hardware", table(facts.iter().map(|(name, value)| (name, value))), said.origin))
}

fn model(entry: &Entry, context: &Context) -> Result<(String, Vec<Field>), ImportError> {
    let said = |key: &str| entry.said(key);
    let file = &context.wishes.name;
    let id = said("model").ok_or_else(|| entry.at.wrong(file, "it has no `model`", "write the model's ID"))?;
    let id = match &context.wishes.model {
        Some(other) => Said { value: other.clone(), origin: format!("import --model, replaces {}", id.origin) },
        None => id,
    };
    let mut fields = vec![Field::new("id", text_value(&id.value), id.origin)];
    fields.extend(said("precision").map(|said| Field::new("precision", text_value(&said.value), said.origin)));
    let name = said("model-prefix")
        .map_or_else(|| id.value.rsplit('/').next().unwrap_or("model").to_owned(), |said| said.value);
    Ok((name_of(&name, "model"), fields))
}

/// Lists how speculative decoding is set, and the files from which TensorRT-LLM reads settings.
fn drafts(entry: &Entry, framework: &str, lengths: &[Lengths], context: &Context) {
    let notes = context.notes;
    let rows = || lengths.iter().flat_map(|one| &one.rows);
    let drafted = rows().find(|row| row.drafts == Drafts::Mtp);
    if framework == "trt" {
        let mut files: Vec<String> = rows().map(config).collect();
        files.sort_unstable();
        files.dedup();
        let why = "trtllm-serve reads settings without a flag from these files: write them, with \
                   `enable_attention_dp: true` and the `speculative_config` of the entry's script if their names \
                   contain dp-attention or mtp";
        notes.differs(&format!("{}: {}", entry.key, files.join(", ")), why, entry.at.line());
    } else if let Some(row) = drafted {
        let why = format!(
            "speculative decoding is set as in most scripts; {} sets the number of tokens and, for some models, the \
             draft model",
            entry.script()
        );
        notes.differs(&format!("{}: spec-decoding = mtp", entry.key), &why, row.line);
    }
}

/// Returns the scenario.
fn scenario(lengths: &Lengths) -> (String, Vec<Field>) {
    let Lengths { isl, osl, .. } = lengths;
    let name = match (isl.0 % 1024, osl.0 % 1024) {
        (0, 0) => format!("{}k{}k", isl.0 / 1024, osl.0 / 1024),
        _ => format!("{}-{}", isl.0, osl.0),
    };
    // Lengths are drawn as in InferenceX's `benchmark_serving.py` with --random-range-ratio 0.8.
    let range = |tokens: u32, least: u32| {
        let most = tokens.max(least);
        format!(
            "{{ uniform: {{ min: {}, max: {most} }} }}",
            (u64::from(tokens) * 8 / 10).clamp(u64::from(least), u64::from(most))
        )
    };
    let drawn = format!("{{ prompt: {}, output: {} }}", range(isl.0, SHORTEST), range(osl.0, 1));
    let origin =
        format!("{}, {}: at least 0.8 of this length, from the random-range-ratio of its workflow", isl.1, osl.1);
    let fields = vec![
        Field::new("base", "B1", "random prompts that differ"),
        Field::new("lengths", drawn, origin),
        Field::new("ignore_eos", "true", "benchmark_lib.sh: --ignore-eos"),
        Field::new("temperature", "0", "sent by its benchmark_serving.py"),
    ];
    (name, fields)
}
